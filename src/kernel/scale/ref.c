/* Reference: the formula in double. */
#include "kernel/scale/scale.h"

#include <math.h>

void ox_scale_ref(const ox_scale_args *a, size_t begin, size_t end)
{
    const double cap = (double)a->softcap;
    for (size_t r = begin; r < end; r++)
        for (size_t i = 0; i < a->dim; i++) {
            const double t = (double)(a->x[r * a->ldx + i] * a->scale);
            a->y[r * a->ldy + i] = (float)(cap > 0.0 ? cap * tanh(t / cap) : t);
        }
}
