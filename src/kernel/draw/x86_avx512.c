/* Sixteen ids at a time: the even and the odd ones in two registers of 64-bit lanes. */
#include "kernel/draw/draw.h"

#include <immintrin.h>

typedef __m512i wide;
enum { DRAW_N = 16 };

static inline wide wide_all(uint64_t v)
{
    return _mm512_set1_epi64((long long)v);
}
static inline wide wide_mul(wide a, wide b)
{
    return _mm512_mul_epu32(a, b);
}
static inline wide wide_high(wide a) /* as a shuffle: ports that multiply stay free */
{
    return _mm512_shuffle_epi32(a, _MM_PERM_DDBB);
}
static inline wide wide_xor(wide a, wide b, wide c)
{
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

#include "kernel/draw/words.h"

static inline unsigned may_win(const rounds *r, const ox_draw_args *a, size_t i, float slope,
                               float at)
{
    const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512 b =
        _mm512_fmadd_ps(_mm512_loadu_ps(a->x + i), _mm512_set1_ps(slope), _mm512_set1_ps(at));
    if (!_mm512_cmp_ps_mask(b, _mm512_set1_ps(-33.0f), _CMP_GE_OQ)) return 0;
    const __m512i id =
        a->ids ? _mm512_loadu_si512(a->ids + i) : _mm512_add_epi32(iota, _mm512_set1_epi32((int)i));
    const __m512i even = words_of(r, id), odd = words_of(r, wide_high(id));
    const __m512i w = _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA);
    const __m512 f = _mm512_cvtepu32_ps(_mm512_xor_si512(w, _mm512_set1_epi32(-1)));
    const __m512 log2 = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_castps_si512(f)),
                                        _mm512_set1_ps(0x1p-23f), _mm512_set1_ps(-159.0f));
    return _mm512_cmp_ps_mask(log2, b, _CMP_LE_OQ);
}

#define DRAW_NAME ox_draw_avx512
#include "kernel/draw/body.h"
