/* lanes_avx512.h - 16 columns a register: what body.h needs besides the dot product. */
#ifndef OX_KERNEL_QLINEAR_LANES_AVX512_H
#define OX_KERNEL_QLINEAR_LANES_AVX512_H
#include "simd/avx512.h"

/* Columns a register; planes of rows and registers of columns held at once by the small loop; rows
 * of one plane, rows of two planes and registers held by the large one. */
enum { QW = 16, SMALL_ROWS = 8, SMALL_REGS = 2, LARGE_ROWS = 6, LARGE_PAIRS = 4, LARGE_REGS = 2 };
typedef __m512i qi;
typedef __m512 qf;

static inline qi qi_zero(void)
{
    return _mm512_setzero_si512();
}
static inline qi qi_set1(int32_t v)
{
    return _mm512_set1_epi32(v);
}
static inline qi qi_load(const void *p)
{
    return _mm512_loadu_si512(p);
}
static inline void qi_store(void *p, qi v)
{
    _mm512_storeu_si512(p, v);
}
static inline qi qi_load_n(const void *p, size_t n) /* the first n words (at most QW), then zeros */
{
    return _mm512_maskz_loadu_epi32((__mmask16)(n < QW ? (1u << n) - 1u : 0xffffu), p);
}
static inline qi qi_load_u8(const void *p) /* one byte a lane */
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(p));
}
static inline qi qi_low4(qi v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}
static inline qi qi_high4(qi v)
{
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}
static inline qi qi_mul16(qi a, qi b) /* low halves, signed, to 32 bits; high halves are zero */
{
    return _mm512_madd_epi16(a, b);
}
static inline qi qi_join(qi high, qi low) /* 256 high + low */
{
    return _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
}
static inline qf qf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline qf qf_set1(float v)
{
    return _mm512_set1_ps(v);
}
static inline qf qf_load(const void *p)
{
    return _mm512_loadu_ps(p);
}
static inline qf qf_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}
static inline void qf_store(float *p, qf v)
{
    _mm512_storeu_ps(p, v);
}
static inline qf qf_mul(qf a, qf b)
{
    return _mm512_mul_ps(a, b);
}
static inline qf qf_fma(qf a, qf b, qf c) /* a*b + c */
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline qf qf_of_bits(qi v)
{
    return _mm512_castsi512_ps(v);
}
static inline qf qf_of_int(qi v)
{
    return _mm512_cvtepi32_ps(v);
}
#endif
