/* Reference: the formulas in double. */
#include "kernel/glu/glu.h"

#include "kernel/act/act_ref.h"

void ox_glu_ref(const ox_glu_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++)
        for (size_t i = 0; i < a->dim; i++) {
            const double gate = act_in_double(a->act, (double)a->gate[r * a->ld_gate + i]);
            a->y[r * a->ldy + i] = (float)(gate * (double)a->up[r * a->ld_up + i]);
        }
}
