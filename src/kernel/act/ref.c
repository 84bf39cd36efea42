/* Reference: the formulas in double. */
#include "kernel/act/act_ref.h"

void ox_act_ref(const ox_act_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++)
        for (size_t i = 0; i < a->dim; i++)
            a->y[r * a->ldy + i] = (float)act_in_double(a->act, (double)a->x[r * a->ldx + i]);
}
