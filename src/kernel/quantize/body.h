/* The rows of all SIMD tiers: an ISA file defines
 *   QUANTIZE_NAME
 *   top_bits(x, n)           largest bits of |x[0..n)| as integers, n = 16 or 32
 *   codes_of(x, n, s, order4, out)   writes n codes of x*s, returns their sum
 * and includes this. */
#include "kernel/quantize/quantize.h"

#include <string.h>

static float of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static void quantize_block(const float *x, int n, bool order4, int8_t *codes, float *scale,
                           int32_t *sum)
{
    const uint32_t top = top_bits(x, n);
    const float max = of_bits(top);
    if (top >= 0x7f800000u || max < 0x1p-100f) {
        *scale = top >= 0x7f800000u ? of_bits(0x7fc00000u) : 0.0f;
        *sum = 0;
        memset(codes, 0, (size_t)n);
        return;
    }
    *scale = max / 127.0f;
    *sum = codes_of(x, n, 127.0f / max, order4, codes);
}

void QUANTIZE_NAME(const ox_quantize_args *a, size_t begin, size_t end)
{
    const ox_qact *q = a->y;
    const size_t block = (size_t)q->block, whole = q->k / block;
    const bool order4 = q->bits == 4;
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        int8_t *codes = ox_qact_codes(q, r);
        float *scales = ox_qact_scales(q, r);
        int32_t *sums = ox_qact_sums(q, r);
        if (block == 32)
            for (size_t b = 0; b < whole; b++)
                quantize_block(x + 32 * b, 32, order4, codes + 32 * b, scales + b, sums + b);
        else
            for (size_t b = 0; b < whole; b++)
                quantize_block(x + 16 * b, 16, order4, codes + 16 * b, scales + b, sums + b);
        if (whole < q->blocks) {
            float tail[32] = {0};
            memcpy(tail, x + whole * block, (q->k - whole * block) * sizeof(float));
            quantize_block(tail, q->block, order4, codes + whole * block, scales + whole,
                           sums + whole);
        }
    }
}
