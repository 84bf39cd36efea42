/* 8 floats a register, packed to bytes 16 at a time. */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

static uint32_t top_bits(const float *x, int n)
{
    const __m256i abs = _mm256_set1_epi32(0x7fffffff);
    __m256i m = _mm256_setzero_si256();
    for (int i = 0; i < n; i += 8)
        m = _mm256_max_epi32(m, _mm256_and_si256(_mm256_loadu_si256((const void *)(x + i)), abs));
    __m128i t = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(t);
}

static __m256i round8(const float *x, float s)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), _mm256_set1_ps(s)));
}

static void put16(__m256i a, __m256i b, bool order4, int8_t *out)
{
    const __m128i even_odd = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const __m128i c = _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
    _mm_storeu_si128((void *)out, order4 ? _mm_shuffle_epi8(c, even_odd) : c);
}

static int32_t sum8(__m256i sum)
{
    __m128i t = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    return _mm_cvtsi128_si32(t);
}

static int32_t codes_of(const float *x, int n, float s, bool order4, int8_t *out)
{
    __m256i sum = _mm256_setzero_si256();
    for (int i = 0; i < n; i += 16) {
        const __m256i a = round8(x + i, s), b = round8(x + i + 8, s);
        put16(a, b, order4, out + i);
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(a, b));
    }
    return sum8(sum);
}

static __m256i high8(__m256i v)
{
    return _mm256_srai_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(128)), 8);
}

static __m256i low8(__m256i v, __m256i high)
{
    return _mm256_sub_epi32(v, _mm256_slli_epi32(high, 8));
}

static void planes_of(const float *x, int n, float s, bool order4, int8_t *hi, int8_t *lo,
                      int32_t sums[2])
{
    __m256i sum_hi = _mm256_setzero_si256(), sum_lo = sum_hi;
    for (int i = 0; i < n; i += 16) {
        const __m256i a = round8(x + i, s), b = round8(x + i + 8, s);
        const __m256i ha = high8(a), hb = high8(b), la = low8(a, ha), lb = low8(b, hb);
        put16(ha, hb, order4, hi + i);
        put16(la, lb, order4, lo + i);
        sum_hi = _mm256_add_epi32(sum_hi, _mm256_add_epi32(ha, hb));
        sum_lo = _mm256_add_epi32(sum_lo, _mm256_add_epi32(la, lb));
    }
    sums[0] = sum8(sum_hi);
    sums[1] = sum8(sum_lo);
}

#define QUANTIZE_NAME ox_quantize_avx2
#include "kernel/quantize/body.h"
