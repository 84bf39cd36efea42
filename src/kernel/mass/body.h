/* The vector body, the reference's too. An ISA file includes its simd header, defines MASS_NAME and
 * includes this. */
#include "kernel/mass/mass.h"

#include "simd/math.h"

#include <math.h>

static vf terms(vf x, vf max, vf scale, vf far)
{
    const vf d = vf_mul(vf_sub(x, max), scale);
    return vf_not_le(d, far) ? vf_exp(d) : vf_zero();
}

static void add_block(double lanes[VF_N], vf even, vf odd)
{
    float sums[VF_N];
    vf_store(sums, vf_add(even, odd));
    for (size_t j = 0; j < VF_N; j++)
        lanes[j] += (double)sums[j];
}

/* Whether 4 * VF_N values all count as 0, which adding would not change. */
static bool all_far(const float *x, vf bar)
{
    const vf a = vf_max(vf_load(x), vf_load(x + VF_N));
    const vf b = vf_max(vf_load(x + 2 * VF_N), vf_load(x + 3 * VF_N));
    return !vf_not_le(vf_max(a, b), bar);
}

void MASS_NAME(const ox_mass_args *a)
{
    enum { BLOCK = 16 * VF_N };
    const vf bar = vf_set1(a->max - 41.0f / a->scale); /* 1 more than far, for rounding's sake */
    const vf max = vf_set1(a->max), scale = vf_set1(a->scale), far = vf_set1(-40.0f);
    double lanes[VF_N] = {0}, sum = 0;
    size_t i = 0;
    while (i + VF_N <= a->n) {
        vf even = vf_zero(), odd = vf_zero();
        const size_t stop = i + BLOCK <= a->n ? i + BLOCK : a->n;
        while (i + 2 * VF_N <= stop) {
            if (i + 4 * VF_N <= stop && all_far(a->x + i, bar)) {
                i += 4 * VF_N;
                continue;
            }
            even = vf_add(even, terms(vf_load(a->x + i), max, scale, far));
            odd = vf_add(odd, terms(vf_load(a->x + i + VF_N), max, scale, far));
            i += 2 * VF_N;
        }
        for (; i + VF_N <= stop; i += VF_N)
            even = vf_add(even, terms(vf_load(a->x + i), max, scale, far));
        add_block(lanes, even, odd);
    }
    if (i < a->n) {
        const int rest = (int)(a->n - i);
        const vf x = vf_range(vf_load_n(a->x + i, a->n - i), vf_set1(-INFINITY), 0, rest);
        add_block(lanes, terms(x, max, scale, far), vf_zero());
    }
    for (size_t j = 0; j < VF_N; j++)
        sum += lanes[j];
    *a->sum = sum;
}
