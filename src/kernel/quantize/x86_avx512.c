/* 16 floats a register; the order of 4-bit weights is one byte shuffle. */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

static uint32_t top_bits(const float *x, int n)
{
    const __m512i abs = _mm512_set1_epi32(0x7fffffff);
    __m512i m = _mm512_and_si512(_mm512_loadu_si512(x), abs);
    if (n == 32) m = _mm512_max_epi32(m, _mm512_and_si512(_mm512_loadu_si512(x + 16), abs));
    return (uint32_t)_mm512_reduce_max_epi32(m);
}

static void put16(__m512i q, bool order4, int8_t *out)
{
    const __m128i even_odd = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m128i b = _mm512_cvtepi32_epi8(q);
    _mm_storeu_si128((void *)out, order4 ? _mm_shuffle_epi8(b, even_odd) : b);
}

static void planes_of(const float *x, int n, float s, bool order4, int8_t *hi, int8_t *lo,
                      int32_t sums[2])
{
    __m512i sum_hi = _mm512_setzero_si512(), sum_lo = sum_hi;
    for (int i = 0; i < n; i += 16) {
        const __m512i v =
            _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(s)));
        const __m512i h = _mm512_srai_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(128)), 8);
        const __m512i l = _mm512_sub_epi32(v, _mm512_slli_epi32(h, 8));
        put16(h, order4, hi + i);
        put16(l, order4, lo + i);
        sum_hi = _mm512_add_epi32(sum_hi, h);
        sum_lo = _mm512_add_epi32(sum_lo, l);
    }
    sums[0] = _mm512_reduce_add_epi32(sum_hi);
    sums[1] = _mm512_reduce_add_epi32(sum_lo);
}

static int32_t codes_of(const float *x, int n, float s, bool order4, int8_t *out)
{
    __m512i sum = _mm512_setzero_si512();
    for (int i = 0; i < n; i += 16) {
        const __m512i q =
            _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(s)));
        put16(q, order4, out + i);
        sum = _mm512_add_epi32(sum, q);
    }
    return _mm512_reduce_add_epi32(sum);
}

#define QUANTIZE_NAME ox_quantize_avx512
#include "kernel/quantize/body.h"
