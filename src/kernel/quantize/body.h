/* The rows of all SIMD tiers: an ISA file defines
 *   QUANTIZE_NAME
 *   top_bits(x, n)           largest bits of |x[0..n)| as integers, n = 16 or 32
 *   codes_of(x, n, s, order4, out)       writes n codes of x*s, returns their sum
 *   planes_of(x, n, s, order4, hi, lo, sums)   the same as two planes
 * and includes this. */
#include "kernel/quantize/quantize.h"

#include <string.h>

static float of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

/* A block's plane 0 at i and, with two planes, plane 1 at i + 1. */
static void quantize_block(const float *x, int n, const ox_qact *q, size_t i, size_t b)
{
    const bool order4 = q->bits == 4, wide = q->planes == 2;
    const size_t first = b * (size_t)q->block;
    const uint32_t top = top_bits(x, n);
    const float max = of_bits(top), steps = wide ? 32512.0f : 127.0f;
    float *scale = ox_qact_scales(q, i) + b;
    int32_t sums[2] = {0, 0};
    int8_t *codes = ox_qact_codes(q, i) + first, *low = codes + (wide ? q->ld : 0);
    float s = max / steps;
    if (top >= 0x7f800000u || max < 0x1p-100f) {
        s = top >= 0x7f800000u ? of_bits(0x7fc00000u) : 0.0f;
        memset(codes, 0, (size_t)n);
        memset(low, 0, (size_t)n);
    } else if (wide) {
        planes_of(x, n, steps / max, order4, codes, low, sums);
    } else {
        sums[0] = codes_of(x, n, steps / max, order4, codes);
    }
    *scale = wide ? s * 256.0f : s;
    ox_qact_sums(q, i)[b] = sums[0];
    if (!wide) return;
    ox_qact_scales(q, i + 1)[b] = s;
    ox_qact_sums(q, i + 1)[b] = sums[1];
}

void QUANTIZE_NAME(const ox_quantize_args *a, size_t begin, size_t end)
{
    const ox_qact *q = a->y;
    const size_t block = (size_t)q->block, whole = q->k / block;
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        const size_t i = r * (size_t)q->planes;
        if (block == 32)
            for (size_t b = 0; b < whole; b++)
                quantize_block(x + 32 * b, 32, q, i, b);
        else
            for (size_t b = 0; b < whole; b++)
                quantize_block(x + 16 * b, 16, q, i, b);
        if (whole < q->blocks) {
            float tail[32] = {0};
            memcpy(tail, x + whole * block, (q->k - whole * block) * sizeof(float));
            quantize_block(tail, q->block, q, i, whole);
        }
    }
}
