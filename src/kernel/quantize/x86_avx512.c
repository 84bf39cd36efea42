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

static __m512i codes16(const float *x, float s, bool order4, int8_t *out)
{
    const __m128i even_odd = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(s)));
    const __m128i b = _mm512_cvtepi32_epi8(q);
    _mm_storeu_si128((void *)out, order4 ? _mm_shuffle_epi8(b, even_odd) : b);
    return q;
}

static int32_t codes_of(const float *x, int n, float s, bool order4, int8_t *out)
{
    __m512i sum = codes16(x, s, order4, out);
    if (n == 32) sum = _mm512_add_epi32(sum, codes16(x + 16, s, order4, out + 16));
    return _mm512_reduce_add_epi32(sum);
}

#define QUANTIZE_NAME ox_quantize_avx512
#include "kernel/quantize/body.h"
