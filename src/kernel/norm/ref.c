/* Reference: the obvious loop, sums in double. It defines right. */
#include "kernel/norm/norm.h"

#include <math.h>

void ox_norm_f32_ref(const ox_norm_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        float *y = a->y + r * a->ldy;
        double mean = 0.0, sum = 0.0;
        if (a->centre) {
            for (size_t i = 0; i < a->dim; i++)
                mean += (double)x[i];
            mean /= (double)a->dim;
        }
        for (size_t i = 0; i < a->dim; i++)
            sum += ((double)x[i] - mean) * ((double)x[i] - mean);
        const double scale = 1.0 / sqrt(sum / (double)a->dim + (double)a->eps);
        for (size_t i = 0; i < a->dim; i++)
            y[i] = (float)(((double)x[i] - mean) * scale * (double)a->gamma[i] +
                           (a->beta ? (double)a->beta[i] : 0.0));
    }
}
