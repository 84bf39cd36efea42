/* Reference: the formula, value by value. */
#include "kernel/quantize/quantize.h"

#include "tensor/half.h"

#include <math.h>

/* Code of plane p out of the rounded value. */
static int plane_code(int v, int planes, int p)
{
    const int hi = (v + 32768 + 128) / 256 - 128; /* v / 256 to the nearest, halves upwards */
    return planes == 1 ? v : p ? v - 256 * hi : hi;
}

/* Plane p of a block. */
static void quantize_block(const float *x, size_t n, const ox_qact *q, int p, int8_t *codes,
                           float *scale, int32_t *sum)
{
    const float steps = q->planes == 1 ? 127.0f : 32512.0f;
    const size_t block = (size_t)q->block;
    uint32_t top = 0; /* bits of max |x|: NaN above infinity above every number */
    for (size_t k = 0; k < n; k++) {
        const uint32_t bits = ox_f32_bits(x[k]) & 0x7fffffffu;
        if (bits > top) top = bits;
    }
    const float max = ox_f32_from_bits(top);
    const bool finite = top < 0x7f800000u, zero = !finite || max < 0x1p-100f;
    *scale = !finite ? ox_f32_from_bits(0x7fc00000u) : zero ? 0.0f : max / steps;
    if (q->planes == 2 && p == 0) *scale *= 256.0f;
    *sum = 0;
    for (size_t k = 0; k < block; k++) {
        const int whole = zero || k >= n ? 0 : (int)rintf(x[k] * (steps / max));
        const int v = plane_code(whole, q->planes, p);
        codes[q->bits == 8 ? k : k / 8 * 8 + k % 2 * 4 + k % 8 / 2] = (int8_t)v;
        *sum += v;
    }
}

void ox_quantize_ref(const ox_quantize_args *a, size_t begin, size_t end)
{
    const ox_qact *q = a->y;
    const size_t block = (size_t)q->block;
    for (size_t r = begin; r < end; r++)
        for (size_t b = 0; b < q->blocks; b++) {
            const size_t first = b * block, n = q->k - first < block ? q->k - first : block;
            for (int p = 0; p < q->planes; p++) {
                const size_t i = r * (size_t)q->planes + (size_t)p;
                quantize_block(a->x + r * a->ldx + first, n, q, p, ox_qact_codes(q, i) + first,
                               ox_qact_scales(q, i) + b, ox_qact_sums(q, i) + b);
            }
        }
}
