/* avx512.h - the vector vocabulary of avx2.h on one 512-bit register: same lanes, same order. */
#ifndef OX_SIMD_AVX512_H
#define OX_SIMD_AVX512_H
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { VF_N = 16 };
typedef __m512 vf;

static inline vf vf_set1(float s)
{
    return _mm512_set1_ps(s);
}
static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline __mmask16 vf_mask_(size_t n)
{
    return (__mmask16)((1u << n) - 1u);
}
static inline vf vf_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(vf_mask_(n), p);
}
static inline void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, vf_mask_(n), v);
}
static inline vf vf_add(vf x, vf y)
{
    return _mm512_add_ps(x, y);
}
static inline vf vf_sub(vf x, vf y)
{
    return _mm512_sub_ps(x, y);
}
static inline vf vf_mul(vf x, vf y)
{
    return _mm512_mul_ps(x, y);
}
static inline vf vf_div(vf x, vf y)
{
    return _mm512_div_ps(x, y);
}
static inline vf vf_max(vf x, vf y)
{
    return _mm512_max_ps(x, y);
}
static inline vf vf_min(vf x, vf y)
{
    return _mm512_min_ps(x, y);
}
static inline vf vf_fma(vf x, vf y, vf z)
{
    return _mm512_fmadd_ps(x, y, z);
}
static inline float vf_sum(vf v)
{
    const __m256 e = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
static inline float vf_max_lane(vf v)
{
    const __m256 e = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
static inline vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
static inline void vf_store_f16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph(v, 0));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)), 16));
}
static inline vf vf_round(vf x)
{
    return _mm512_roundscale_ps(x, 8);
}
static inline vf vf_scale2(vf x, vf n)
{
    const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_mul_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(e, 23)));
}
static inline vf vf_fnma(vf x, vf y, vf z)
{
    return _mm512_fnmadd_ps(x, y, z);
}
static inline float vf_lane0(vf v)
{
    return _mm512_cvtss_f32(v);
}
static inline vf vf_abs(vf x)
{
    return _mm512_abs_ps(x);
}
static inline vf vf_copysign(vf x, vf s)
{
    const __m512 sign = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(sign, x), _mm512_and_ps(sign, s));
}
static inline vf vf_if_less(vf x, vf y, vf then, vf other)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), other, then);
}
static inline unsigned vf_not_le(vf x, vf y)
{
    return _mm512_cmp_ps_mask(x, y, _CMP_NLE_UQ);
}
static inline unsigned vf_unordered(vf x, vf y) /* lanes in which either is NaN */
{
    return _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q);
}
static inline unsigned vf_equal(vf x, vf y)
{
    return _mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ);
}
static inline __mmask16 vf_below_(int n) /* lanes < n, any n */
{
    return n >= 16 ? (__mmask16)0xffff : n <= 0 ? (__mmask16)0 : vf_mask_((size_t)n);
}
static inline vf vf_range(vf x, vf y, int lo, int hi)
{
    return _mm512_mask_blend_ps((__mmask16)(vf_below_(hi) & ~vf_below_(lo)), y, x);
}
static inline __m256i vf_to_bf16_(vf x)
{
    const __m512i u = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    __m512i r = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    r = _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16));
}
static inline void vf_store_bf16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((void *)p, vf_to_bf16_(v));
}
static inline vf vf_load_f16_n(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vf_mask_(n), p));
}
static inline vf vf_load_bf16_n(const uint16_t *p, size_t n)
{
    const __m512i u = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(vf_mask_(n), p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(u, 16));
}
static inline void vf_store_f16_n(uint16_t *p, vf v, size_t n)
{
    _mm256_mask_storeu_epi16(p, vf_mask_(n), _mm512_cvtps_ph(v, 0));
}
static inline void vf_store_bf16_n(uint16_t *p, vf v, size_t n)
{
    _mm256_mask_storeu_epi16(p, vf_mask_(n), vf_to_bf16_(v));
}
static inline vf vf_ldexp(vf x, vf n)
{
    return _mm512_scalef_ps(x, n);
}
#endif
