/* Four streams of 64-byte loads with a fetch 4 KB ahead; then 12 chains of vpdpbusd. Every loop
 * over the chains is unrolled: otherwise the array stays in memory (286 instead of 950 Gop/s a
 * core). */
#include "kernel/probe/probe.h"

#include <immintrin.h>

static void products(ox_probe_args *a)
{
    enum { CHAINS = 12 };
    __m512i acc[CHAINS];
    const __m512i x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5);
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm512_set1_epi32(i);
    for (size_t r = 0; r < a->repeats; r++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(acc[i]) : "v"(x), "v"(y));
#pragma GCC unroll 16
    for (int i = 1; i < CHAINS; i++)
        acc[0] = _mm512_xor_si512(acc[0], acc[i]);
    __asm__ volatile("" : : "v"(acc[0]));
    a->ops = (double)a->repeats * CHAINS * 16 * 4 * 2;
}

/* Latency 4, two a cycle: 16 chains keep both units busy. */
static void float_products(ox_probe_args *a)
{
    enum { CHAINS = 16 };
    __m512 acc[CHAINS];
    const __m512 x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm512_set1_ps((float)i);
    for (size_t r = 0; r < a->repeats; r++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++)
            __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(acc[i]) : "v"(x), "v"(y));
#pragma GCC unroll 16
    for (int i = 1; i < CHAINS; i++)
        acc[0] = _mm512_add_ps(acc[0], acc[i]);
    __asm__ volatile("" : : "v"(acc[0]));
    a->ops = (double)a->repeats * CHAINS * 16 * 2;
}

void ox_probe_avx512vnni(ox_probe_args *a, size_t begin, size_t end)
{
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    for (size_t i = begin; i < end; i += 32) {
        const uint64_t *p = a->words + i;
        for (int line = 0; line < 4; line++)
            _mm_prefetch((const char *)(p + 512 + 8 * line), _MM_HINT_T0);
        s0 = _mm512_xor_si512(s0, _mm512_load_si512(p));
        s1 = _mm512_xor_si512(s1, _mm512_load_si512(p + 8));
        s2 = _mm512_xor_si512(s2, _mm512_load_si512(p + 16));
        s3 = _mm512_xor_si512(s3, _mm512_load_si512(p + 24));
    }
    s0 = _mm512_xor_si512(_mm512_xor_si512(s0, s1), _mm512_xor_si512(s2, s3));
    _mm512_storeu_si512(a->out, s0);
    if (a->floats)
        float_products(a);
    else
        products(a);
}
