/* Reference: the turn in double. */
#include "kernel/rotate/rotate.h"

void ox_rotate_ref(const ox_rotate_args *a, size_t begin, size_t end)
{
    const size_t half = a->rotary / 2;
    for (size_t r = begin; r < end; r++)
        for (size_t h = 0; h < a->n_heads; h++)
            for (size_t i = 0; i < half; i++) {
                float *x = a->x + r * a->ldx + h * a->head_size;
                const double c = (double)a->cos_table[(size_t)a->pos[r] * half + i];
                const double s = (double)a->sin_table[(size_t)a->pos[r] * half + i];
                float *p0 = a->interleaved ? x + 2 * i : x + i;
                float *p1 = a->interleaved ? x + 2 * i + 1 : x + i + half;
                const double x0 = (double)*p0, x1 = (double)*p1;
                *p0 = (float)(x0 * c - x1 * s);
                *p1 = (float)(x1 * c + x0 * s);
            }
}
