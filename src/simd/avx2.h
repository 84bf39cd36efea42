/* avx2.h - the vector vocabulary on AVX2. Static functions only: this header is compiled with ISA
 * flags, so nothing in it may have external linkage.
 *
 * `vf` is always a *virtual 16-lane* float vector (here two registers), so that a reduction runs
 * in the same order on every tier: vf_sum folds 16 -> 8 -> 4 -> 2 -> 1 (lane i with lane i+half). */
#ifndef OX_SIMD_AVX2_H
#define OX_SIMD_AVX2_H
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

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
#endif
