/* The vector body: one pass that skips whole vectors which hold nothing better than the worst kept.
 * An ISA file includes its simd header, defines SELECT_NAME, then includes this. */
#include "kernel/select/heap.h"
#include "kernel/select/select.h"

#include <math.h>

/* k = 1. A block's maximum tells whether the arg-max lies in it; the place inside is searched once,
 * at the end. NaN never enters a maximum taken in this order. */
static int32_t arg_max(const float *x, size_t n, bool *has_nan)
{
    enum { BLOCK = 64 * VF_N };
    float best = -INFINITY;
    size_t i = 0, block = 0;
    unsigned nan = 0;
    while (i + 4 * VF_N <= n) {
        vf m[4];
        const size_t start = i, stop = i + BLOCK <= n ? i + BLOCK : n;
        for (int j = 0; j < 4; j++)
            m[j] = vf_set1(-INFINITY);
        for (; i + 4 * VF_N <= stop; i += 4 * VF_N) {
            vf v[4];
            for (size_t j = 0; j < 4; j++) {
                v[j] = vf_load(x + i + j * VF_N);
                m[j] = vf_max(v[j], m[j]);
            }
            nan |= vf_unordered(v[0], v[1]) | vf_unordered(v[2], v[3]);
        }
        const float max = vf_max_lane(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
        if (max > best) {
            best = max;
            block = start;
        }
    }
    for (; i < n; i++) {
        nan |= x[i] != x[i];
        if (x[i] > best) {
            best = x[i];
            block = i;
        }
    }
    *has_nan = nan != 0;
    const vf top = vf_set1(best);
    for (i = block; i + VF_N <= n; i += VF_N) {
        const unsigned hit = vf_equal(vf_load(x + i), top);
        if (hit) return (int32_t)i + __builtin_ctz(hit);
    }
    for (; i < n; i++)
        if (x[i] == best) return (int32_t)i;
    return 0; /* all NaN */
}

static bool offer_hits(float *v, int32_t *ids, size_t k, const float *x, size_t i, unsigned hits)
{
    bool nan = false;
    for (; hits; hits &= hits - 1) {
        const size_t j = i + (size_t)__builtin_ctz(hits);
        nan |= x[j] != x[j];
        heap_offer(v, ids, k, x[j], j);
    }
    return nan;
}

static void top_k(float *v, int32_t *ids, size_t k, const float *x, size_t n, bool *has_nan)
{
    bool nan = false;
    for (size_t j = 0; j < k; j++)
        nan |= x[j] != x[j];
    heap_start(v, ids, x, k);
    size_t i = k;
    for (; i + 4 * VF_N <= n; i += 4 * VF_N) {
        const vf bar = vf_set1(v[0]);
        unsigned hits[4];
        for (size_t j = 0; j < 4; j++)
            hits[j] = vf_not_le(vf_load(x + i + j * VF_N), bar); /* NaN is always a hit */
        if (!(hits[0] | hits[1] | hits[2] | hits[3])) continue;
        for (size_t j = 0; j < 4; j++)
            nan |= offer_hits(v, ids, k, x, i + j * VF_N, hits[j]);
    }
    for (; i < n; i++) {
        nan |= x[i] != x[i];
        heap_offer(v, ids, k, x[i], i);
    }
    heap_finish(v, ids, k);
    *has_nan = nan;
}

void SELECT_NAME(const ox_select_args *a, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        int32_t *ids = a->ids + r * a->k;
        float *values = a->values + r * a->k;
        bool nan;
        if (a->k > 1) {
            top_k(values, ids, a->k, x, a->dim, &nan);
        } else {
            ids[0] = arg_max(x, a->dim, &nan);
            values[0] = x[ids[0]];
        }
        if (a->has_nan) a->has_nan[r] = nan;
    }
}
