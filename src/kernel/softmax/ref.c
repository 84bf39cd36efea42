/* Reference: the formula in double. */
#include "kernel/softmax/softmax.h"

#include <math.h>

void ox_softmax_ref(const ox_softmax_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        float *y = a->y + r * a->ldy;
        double max = -HUGE_VAL, sum = 0.0;
        for (size_t i = 0; i < a->dim; i++)
            if ((double)x[i] > max || isnan(x[i])) max = (double)x[i];
        for (size_t i = 0; i < a->dim; i++)
            sum += exp((double)x[i] - max);
        for (size_t i = 0; i < a->dim; i++)
            y[i] = (float)(exp((double)x[i] - max) / sum);
    }
}
