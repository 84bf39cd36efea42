/* lanes_avx2.h - 8 columns a register: what body.h needs besides the dot product. */
#ifndef OX_KERNEL_QLINEAR_LANES_AVX2_H
#define OX_KERNEL_QLINEAR_LANES_AVX2_H
#include "simd/avx2.h"

/* Columns a register; planes of rows and registers of columns held at once by the small loop; rows
 * of one plane, rows of two planes and registers held by the large one. */
enum { QW = 8, SMALL_ROWS = 4, SMALL_REGS = 2, LARGE_ROWS = 4, LARGE_PAIRS = 2, LARGE_REGS = 2 };
typedef __m256i qi;
typedef __m256 qf;

static inline qi qi_zero(void)
{
    return _mm256_setzero_si256();
}
static inline qi qi_set1(int32_t v)
{
    return _mm256_set1_epi32(v);
}
static inline qi qi_load(const void *p)
{
    return _mm256_loadu_si256(p);
}
static inline void qi_store(void *p, qi v)
{
    _mm256_storeu_si256(p, v);
}
static inline qi qi_load_n(const void *p, size_t n) /* the first n words (at most QW), then zeros */
{
    return _mm256_maskload_epi32(p, vf_mask_((int)n));
}
static inline qi qi_load_u8(const void *p) /* one byte a lane */
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
}
static inline qi qi_low4(qi v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}
static inline qi qi_high4(qi v)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}
static inline qi qi_mul16(qi a, qi b) /* low halves, signed, to 32 bits; high halves are zero */
{
    return _mm256_madd_epi16(a, b);
}
static inline qi qi_join(qi high, qi low) /* 256 high + low */
{
    return _mm256_add_epi32(_mm256_slli_epi32(high, 8), low);
}
static inline qf qf_zero(void)
{
    return _mm256_setzero_ps();
}
static inline qf qf_set1(float v)
{
    return _mm256_set1_ps(v);
}
static inline qf qf_load(const void *p)
{
    return _mm256_loadu_ps(p);
}
static inline qf qf_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}
static inline void qf_store(float *p, qf v)
{
    _mm256_storeu_ps(p, v);
}
static inline qf qf_mul(qf a, qf b)
{
    return _mm256_mul_ps(a, b);
}
static inline qf qf_fma(qf a, qf b, qf c) /* a*b + c */
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline qf qf_of_bits(qi v)
{
    return _mm256_castsi256_ps(v);
}
static inline qf qf_of_int(qi v)
{
    return _mm256_cvtepi32_ps(v);
}
#endif
