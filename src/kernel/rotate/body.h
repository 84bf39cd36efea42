/* The vector body; an ISA file includes its simd header, defines
 * ROTATE_NAME, then includes this. */
#include "kernel/rotate/rotate.h"

#include <math.h>

static void turn_halves(float *x, size_t half, const float *c, const float *s)
{
    size_t i = 0;
    for (; i < half; i += VF_N) {
        const size_t n = half - i < VF_N ? half - i : VF_N;
        const vf x0 = vf_load_n(x + i, n), x1 = vf_load_n(x + half + i, n);
        const vf vc = vf_load_n(c + i, n), vs = vf_load_n(s + i, n);
        vf_store_n(x + i, vf_fnma(x1, vs, vf_mul(x0, vc)), n);
        vf_store_n(x + half + i, vf_fma(x0, vs, vf_mul(x1, vc)), n);
    }
}

static void turn_pairs(float *x, size_t half, const float *c, const float *s)
{
    for (size_t i = 0; i < half; i++) {
        const float x0 = x[2 * i], x1 = x[2 * i + 1];
        x[2 * i] = fmaf(-x1, s[i], x0 * c[i]);
        x[2 * i + 1] = fmaf(x0, s[i], x1 * c[i]);
    }
}

void ROTATE_NAME(const ox_rotate_args *a, size_t begin, size_t end)
{
    const size_t half = a->rotary / 2;
    for (size_t r = begin; r < end; r++) {
        const float *c = a->cos_table + (size_t)a->pos[r] * half;
        const float *s = a->sin_table + (size_t)a->pos[r] * half;
        for (size_t h = 0; h < a->n_heads; h++) {
            float *x = a->x + r * a->ldx + h * a->head_size;
            if (a->interleaved)
                turn_pairs(x, half, c, s);
            else
                turn_halves(x, half, c, s);
        }
    }
}
