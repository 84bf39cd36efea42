/* avx2.h - the vector vocabulary on AVX2. Static functions only: this header is compiled with ISA
 * flags, so nothing in it may have external linkage.
 *
 * `vf` is always a *virtual 16-lane* float vector (here two registers), so that a reduction runs
 * in the same order on every tier: vf_sum folds 16 -> 8 -> 4 -> 2 -> 1 (lane
 * i with lane i+half). */
#ifndef OX_SIMD_AVX2_H
#define OX_SIMD_AVX2_H
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VF_N = 16 };
typedef struct vf {
    __m256 a, b; /* lanes 0..7, 8..15 */
} vf;

static inline vf vf_set1(float s)
{
    return (vf){_mm256_set1_ps(s), _mm256_set1_ps(s)};
}
static inline vf vf_zero(void)
{
    return (vf){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
static inline vf vf_load(const float *p)
{
    return (vf){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
static inline __m256i vf_mask_(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/* First n lanes (0..16), the rest zero; nothing beyond p[n-1] is touched. */
static inline vf vf_load_n(const float *p, size_t n)
{
    const int k = (int)n;
    return (vf){_mm256_maskload_ps(p, vf_mask_(k)),
                k > 8 ? _mm256_maskload_ps(p + 8, vf_mask_(k - 8)) : _mm256_setzero_ps()};
}
static inline void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    const int k = (int)n;
    _mm256_maskstore_ps(p, vf_mask_(k), v.a);
    if (k > 8) _mm256_maskstore_ps(p + 8, vf_mask_(k - 8), v.b);
}
static inline vf vf_add(vf x, vf y)
{
    return (vf){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
static inline vf vf_sub(vf x, vf y)
{
    return (vf){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
static inline vf vf_mul(vf x, vf y)
{
    return (vf){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
static inline vf vf_div(vf x, vf y)
{
    return (vf){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
static inline vf vf_max(vf x, vf y)
{
    return (vf){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
static inline vf vf_min(vf x, vf y)
{
    return (vf){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
static inline vf vf_fma(vf x, vf y, vf z) /* x*y + z */
{
    return (vf){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
static inline float vf_sum(vf v)
{
    const __m256 e = _mm256_add_ps(v.a, v.b);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
static inline float vf_max_lane(vf v)
{
    const __m256 e = _mm256_max_ps(v.a, v.b);
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
static inline vf vf_load_f16(const uint16_t *p)
{
    return (vf){_mm256_cvtph_ps(_mm_loadu_si128((const void *)p)),
                _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p + 8)))};
}
static inline void vf_store_f16(uint16_t *p, vf v)
{
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph(v.a, 0));
    _mm_storeu_si128((void *)(p + 8), _mm256_cvtps_ph(v.b, 0));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
    const __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p + 8)));
    return (vf){_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
}
static inline vf vf_round(vf x) /* to nearest even */
{
    return (vf){_mm256_round_ps(x.a, 8), _mm256_round_ps(x.b, 8)};
}
/* x * 2^n for integral n in [-126, 127]; both inputs as floats. */
static inline vf vf_scale2(vf x, vf n)
{
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.a), bias), 23);
    const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.b), bias), 23);
    return (vf){_mm256_mul_ps(x.a, _mm256_castsi256_ps(a)),
                _mm256_mul_ps(x.b, _mm256_castsi256_ps(b))};
}
static inline vf vf_fnma(vf x, vf y, vf z) /* z - x*y */
{
    return (vf){_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
static inline float vf_lane0(vf v)
{
    return _mm256_cvtss_f32(v.a);
}
static inline vf vf_abs(vf x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (vf){_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
static inline vf vf_copysign(vf x, vf s) /* |x| with the sign of s */
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (vf){_mm256_or_ps(_mm256_andnot_ps(sign, x.a), _mm256_and_ps(sign, s.a)),
                _mm256_or_ps(_mm256_andnot_ps(sign, x.b), _mm256_and_ps(sign, s.b))};
}
static inline vf vf_if_less(vf x, vf y, vf then, vf other) /* lane by lane: x < y ? then : other */
{
    return (vf){_mm256_blendv_ps(other.a, then.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
                _mm256_blendv_ps(other.b, then.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
}
/* Bit i set: lane i of x is greater than that of y, or one of them is NaN. */
static inline unsigned vf_not_le(vf x, vf y)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_NLE_UQ)) |
           (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_NLE_UQ)) << 8;
}
static inline unsigned vf_unordered(vf x, vf y) /* lanes in which either is NaN */
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_UNORD_Q)) |
           (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_UNORD_Q)) << 8;
}
static inline unsigned vf_equal(vf x, vf y)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ)) |
           (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ)) << 8;
}
/* Lanes lo <= i < hi of x, the others of y. */
static inline vf vf_range(vf x, vf y, int lo, int hi)
{
    const __m256i ma = _mm256_andnot_si256(vf_mask_(lo), vf_mask_(hi));
    const __m256i mb = _mm256_andnot_si256(vf_mask_(lo - 8), vf_mask_(hi - 8));
    return (vf){_mm256_blendv_ps(y.a, x.a, _mm256_castsi256_ps(ma)),
                _mm256_blendv_ps(y.b, x.b, _mm256_castsi256_ps(mb))};
}
static inline __m128i vf_to_bf16_(__m256 x) /* 8 lanes, to nearest even, NaN kept */
{
    const __m256i u = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    __m256i r = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    r = _mm256_blendv_epi8(r, _mm256_or_si256(u, _mm256_set1_epi32(0x400000)), nan);
    r = _mm256_srli_epi32(r, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
static inline void vf_store_bf16(uint16_t *p, vf v)
{
    _mm_storeu_si128((void *)p, vf_to_bf16_(v.a));
    _mm_storeu_si128((void *)(p + 8), vf_to_bf16_(v.b));
}
/* The first n lanes (0..16) of a narrow vector; the rest reads as zero. */
static inline vf vf_load_f16_n(const uint16_t *p, size_t n)
{
    uint16_t t[VF_N] = {0};
    memcpy(t, p, n * sizeof(t[0]));
    return vf_load_f16(t);
}
static inline vf vf_load_bf16_n(const uint16_t *p, size_t n)
{
    uint16_t t[VF_N] = {0};
    memcpy(t, p, n * sizeof(t[0]));
    return vf_load_bf16(t);
}
static inline void vf_store_f16_n(uint16_t *p, vf v, size_t n)
{
    uint16_t t[VF_N];
    vf_store_f16(t, v);
    memcpy(p, t, n * sizeof(t[0]));
}
static inline void vf_store_bf16_n(uint16_t *p, vf v, size_t n)
{
    uint16_t t[VF_N];
    vf_store_bf16(t, v);
    memcpy(p, t, n * sizeof(t[0]));
}
static inline __m256 vf_pow2_(__m256i n) /* 2^n for n in [-126, 127] */
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
static inline __m256 vf_ldexp_(__m256 x, __m256 n)
{
    const __m256i e = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(e, 1);
    return _mm256_mul_ps(_mm256_mul_ps(x, vf_pow2_(half)), vf_pow2_(_mm256_sub_epi32(e, half)));
}
/* x * 2^n, rounded once, for x in [0.5, 2) and integral n in [-250, 250]. */
static inline vf vf_ldexp(vf x, vf n)
{
    return (vf){vf_ldexp_(x.a, n.a), vf_ldexp_(x.b, n.b)};
}
#endif
