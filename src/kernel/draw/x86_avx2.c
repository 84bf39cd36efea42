/* Eight ids at a time: the even and the odd ones in two registers of 64-bit lanes. */
#include "kernel/draw/draw.h"

#include <immintrin.h>

typedef __m256i wide;
enum { DRAW_N = 8 };

static inline wide wide_all(uint64_t v)
{
    return _mm256_set1_epi64x((long long)v);
}
static inline wide wide_mul(wide a, wide b)
{
    return _mm256_mul_epu32(a, b);
}
static inline wide wide_high(wide a)
{
    return _mm256_shuffle_epi32(a, 0xf5);
}
static inline wide wide_xor(wide a, wide b, wide c)
{
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}

#include "kernel/draw/words.h"

static inline unsigned may_win(const rounds *r, const ox_draw_args *a, size_t i, float slope,
                               float at)
{
    const __m256i iota = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256 b =
        _mm256_fmadd_ps(_mm256_loadu_ps(a->x + i), _mm256_set1_ps(slope), _mm256_set1_ps(at));
    if (!_mm256_movemask_ps(_mm256_cmp_ps(b, _mm256_set1_ps(-33.0f), _CMP_GE_OQ))) return 0;
    const __m256i id = a->ids ? _mm256_loadu_si256((const void *)(a->ids + i))
                              : _mm256_add_epi32(iota, _mm256_set1_epi32((int)i));
    const __m256i even = words_of(r, id), odd = words_of(r, wide_high(id));
    const __m256i w = _mm256_blend_epi32(even, _mm256_shuffle_epi32(odd, 0xa0), 0xaa);
    /* half of ~w, since there is only a signed conversion: one less in the exponent */
    const __m256i half = _mm256_srli_epi32(_mm256_xor_si256(w, _mm256_set1_epi32(-1)), 1);
    const __m256i bits = _mm256_castps_si256(_mm256_cvtepi32_ps(half));
    const __m256 log2 = _mm256_fmadd_ps(_mm256_cvtepi32_ps(bits), _mm256_set1_ps(0x1p-23f),
                                        _mm256_set1_ps(-158.0f));
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(log2, b, _CMP_LE_OQ));
}

#define DRAW_NAME ox_draw_avx2
#include "kernel/draw/body.h"
