/* The vector body; an ISA file includes its simd header, defines SOFTMAX_NAME, then includes this.
 * The sum runs in 16 virtual lanes, so tiers agree bit for bit. */
#include "kernel/softmax/softmax.h"

#include "simd/math.h"

#include <math.h>
#include <string.h>

/* First n lanes of p, the rest -inf: they change neither the maximum nor the sum. */
static vf load_rest(const float *p, size_t n)
{
    return vf_range(vf_load_n(p, n), vf_set1(-INFINITY), 0, (int)n);
}

void SOFTMAX_NAME(const ox_softmax_args *a, size_t begin, size_t end)
{
    const size_t n = a->dim, whole = n / VF_N * VF_N, rest = n - whole;
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        float *y = a->y + r * a->ldy;
        vf m0 = vf_set1(-INFINITY), m1 = m0, sum = vf_zero();
        size_t i = 0;
        for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
            m0 = vf_max(vf_load(x + i), m0);
            m1 = vf_max(vf_load(x + i + VF_N), m1);
        }
        for (; i < whole; i += VF_N)
            m0 = vf_max(vf_load(x + i), m0);
        if (rest) m0 = vf_max(load_rest(x + whole, rest), m0);
        const vf max = vf_set1(vf_max_lane(vf_max(m0, m1)));
        for (i = 0; i < whole; i += VF_N) {
            const vf e = vf_exp(vf_sub(vf_load(x + i), max)); /* NaN shows up here, not in max */
            sum = vf_add(sum, e);
            vf_store(y + i, e);
        }
        if (rest) {
            const vf e = vf_exp(vf_sub(load_rest(x + whole, rest), max));
            sum = vf_add(sum, vf_range(e, vf_zero(), 0, (int)rest));
            vf_store_n(y + whole, e, rest);
        }
        const vf total = vf_set1(vf_sum(sum));
        for (i = 0; i < whole; i += VF_N)
            vf_store(y + i, vf_div(vf_load(y + i), total));
        if (rest) vf_store_n(y + whole, vf_div(vf_load_n(y + whole, rest), total), rest);
    }
}
