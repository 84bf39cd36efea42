/* Four streams of 32-byte loads; then chains of vpmaddubsw + vpmaddwd +
 * vpaddd, the AVX2 product. */
#include "kernel/probe/probe.h"

#include <immintrin.h>

static void products(ox_probe_args *a)
{
    enum { CHAINS = 8 };
    __m256i acc[CHAINS];
    const __m256i x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(5), one = _mm256_set1_epi16(1);
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm256_set1_epi32(i);
    for (size_t r = 0; r < a->repeats; r++)
#pragma GCC unroll 8
        for (int i = 0; i < CHAINS; i++) {
            __m256i t;
            __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(t) : "x"(x), "x"(y));
            acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(t, one));
        }
#pragma GCC unroll 16
    for (int i = 1; i < CHAINS; i++)
        acc[0] = _mm256_xor_si256(acc[0], acc[i]);
    __asm__ volatile("" : : "x"(acc[0]));
    a->ops = (double)a->repeats * CHAINS * 8 * 4 * 2;
}

/* Latency 4, two a cycle: 10 chains keep both units busy. One statement, because chains in an array
 * ended up in memory (65 instead of 134 GF/s). */
static void float_products(ox_probe_args *a)
{
    enum { CHAINS = 10 };
    const __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
    __m256 c0 = x, c1 = x, c2 = x, c3 = x, c4 = x, c5 = x, c6 = x, c7 = x, c8 = x, c9 = x;
    for (size_t r = 0; r < a->repeats; r++)
        __asm__ volatile("vfmadd231ps %10, %11, %0\n\tvfmadd231ps %10, %11, %1\n\t"
                         "vfmadd231ps %10, %11, %2\n\tvfmadd231ps %10, %11, %3\n\t"
                         "vfmadd231ps %10, %11, %4\n\tvfmadd231ps %10, %11, %5\n\t"
                         "vfmadd231ps %10, %11, %6\n\tvfmadd231ps %10, %11, %7\n\t"
                         "vfmadd231ps %10, %11, %8\n\tvfmadd231ps %10, %11, %9"
                         : "+x"(c0), "+x"(c1), "+x"(c2), "+x"(c3), "+x"(c4), "+x"(c5), "+x"(c6),
                           "+x"(c7), "+x"(c8), "+x"(c9)
                         : "x"(x), "x"(y));
    a->ops = (double)a->repeats * CHAINS * 8 * 2;
}

void ox_probe_avx2(ox_probe_args *a, size_t begin, size_t end)
{
    __m256i s[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t i = begin; i < end; i += 8) {
        const uint64_t *p = a->words + i;
        _mm_prefetch((const char *)(p + 512), _MM_HINT_T0);
        s[0] = _mm256_xor_si256(s[0], _mm256_load_si256((const void *)p));
        s[1] = _mm256_xor_si256(s[1], _mm256_load_si256((const void *)(p + 4)));
    }
    _mm256_storeu_si256((void *)a->out, s[0]);
    _mm256_storeu_si256((void *)(a->out + 4), s[1]);
    if (a->floats)
        float_products(a);
    else
        products(a);
}
