/* The vector body: one pass that skips whole vectors which hold nothing better than the worst kept.
 * An ISA file includes its simd header, defines SELECT_NAME, then includes this. */
#include "kernel/select/heap.h"
#include "kernel/select/select.h"

#include <math.h>

/* k = 1: the maximum first, then where it is. NaN never enters a maximum taken in this order. */
static int32_t arg_max(const float *x, size_t n)
{
    vf m[4];
    for (int j = 0; j < 4; j++)
        m[j] = vf_set1(-INFINITY);
    size_t i = 0;
    for (; i + 4 * VF_N <= n; i += 4 * VF_N)
        for (size_t j = 0; j < 4; j++)
            m[j] = vf_max(vf_load(x + i + j * VF_N), m[j]);
    float max = vf_max_lane(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
    for (; i < n; i++)
        if (x[i] > max) max = x[i];
    const vf top = vf_set1(max);
    for (i = 0; i + VF_N <= n; i += VF_N) {
        const unsigned hit = vf_equal(vf_load(x + i), top);
        if (hit) return (int32_t)i + __builtin_ctz(hit);
    }
    for (; i < n; i++)
        if (x[i] == max) return (int32_t)i;
    return 0; /* all NaN */
}

static void offer_hits(float *v, int32_t *ids, size_t k, const float *x, size_t i, unsigned hits)
{
    for (; hits; hits &= hits - 1) {
        const size_t j = i + (size_t)__builtin_ctz(hits);
        heap_offer(v, ids, k, x[j], j);
    }
}

static void top_k(float *v, int32_t *ids, size_t k, const float *x, size_t n)
{
    heap_start(v, ids, x, k);
    size_t i = k;
    for (; i + 4 * VF_N <= n; i += 4 * VF_N) {
        const vf bar = vf_set1(v[0]);
        unsigned hits[4];
        for (size_t j = 0; j < 4; j++)
            hits[j] = vf_not_le(vf_load(x + i + j * VF_N), bar);
        if (!(hits[0] | hits[1] | hits[2] | hits[3])) continue;
        for (size_t j = 0; j < 4; j++)
            offer_hits(v, ids, k, x, i + j * VF_N, hits[j]);
    }
    for (; i < n; i++)
        heap_offer(v, ids, k, x[i], i);
    heap_finish(v, ids, k);
}

void SELECT_NAME(const ox_select_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        int32_t *ids = a->ids + r * a->k;
        float *values = a->values + r * a->k;
        if (a->k > 1) {
            top_k(values, ids, a->k, x, a->dim);
            continue;
        }
        ids[0] = arg_max(x, a->dim);
        values[0] = x[ids[0]];
    }
}
