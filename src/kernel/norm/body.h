/* The vector body, written once in the simd/ vocabulary. An ISA file includes its simd header,
 * defines NORM_NAME, then includes this. Sums run in 16 virtual lanes, so tiers
 * agree bit for bit. */
#include "kernel/norm/norm.h"

#include <math.h>

static float sum_of(const float *x, size_t n)
{
    vf acc = vf_zero();
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        acc = vf_add(acc, vf_load(x + i));
    if (i < n) acc = vf_add(acc, vf_load_n(x + i, n - i));
    return vf_sum(acc);
}

static float sum_of_squares(const float *x, size_t n, float mean)
{
    const vf m = vf_set1(mean);
    vf acc = vf_zero();
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        const vf d = vf_sub(vf_load(x + i), m);
        acc = vf_fma(d, d, acc);
    }
    float tail[VF_N] = {0};
    for (size_t j = i; j < n; j++)
        tail[j - i] = x[j] - mean;
    const vf d = vf_load(tail);
    return vf_sum(vf_fma(d, d, acc));
}

static vf norm_lanes(vf x, vf mean, vf scale, vf gamma, vf beta)
{
    return vf_fma(vf_mul(vf_sub(x, mean), scale), gamma, beta);
}

void NORM_NAME(const ox_norm_args *a, size_t begin, size_t end)
{
    const size_t n = a->dim;
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        float *y = a->y + r * a->ldy;
        const float mean = a->centre ? sum_of(x, n) / (float)n : 0.0f;
        const vf scale = vf_set1(1.0f / sqrtf(sum_of_squares(x, n, mean) / (float)n + a->eps));
        const vf m = vf_set1(mean);
        size_t i = 0;
        for (; i + VF_N <= n; i += VF_N) {
            const vf beta = a->beta ? vf_load(a->beta + i) : vf_zero();
            vf_store(y + i, norm_lanes(vf_load(x + i), m, scale, vf_load(a->gamma + i), beta));
        }
        if (i < n) {
            const vf beta = a->beta ? vf_load_n(a->beta + i, n - i) : vf_zero();
            const vf g = vf_load_n(a->gamma + i, n - i);
            vf_store_n(y + i, norm_lanes(vf_load_n(x + i, n - i), m, scale, g, beta), n - i);
        }
    }
}
