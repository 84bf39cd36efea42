/* ktest.c - see ktest.h. Usage: ktest [family] [seed]. Zero rows run is a failure. */
#include "tests/ktest/ktest.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256 };
static const uint32_t guard_bits = 0x7fc0beefu;
static uint64_t state = 1;
static int row_failures, n_ok, n_failed, n_absent;

uint64_t ktest_bits(void) /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

float ktest_uniform(float lo, float hi)
{
    return lo + (hi - lo) * ((float)(ktest_bits() >> 40) / (float)(1u << 24));
}

void ktest_fill(float *p, size_t n, float lo, float hi)
{
    for (size_t i = 0; i < n; i++)
        p[i] = ktest_uniform(lo, hi);
}

static void put_guard(char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        memcpy(p + i, &guard_bits, 4);
}

ktest_buf ktest_bytes(size_t n)
{
    const size_t padded = (n + 63) / 64 * 64;
    ktest_buf b = {.n = n, .raw = aligned_alloc(64, padded + 2 * GUARD)};
    if (!b.raw) abort();
    put_guard(b.raw, padded + 2 * GUARD);
    b.p = (char *)b.raw + GUARD;
    return b;
}

void ktest_free(ktest_buf *b)
{
    const size_t padded = (b->n + 63) / 64 * 64;
    const char *p = b->raw;
    int bad = 0;
    for (size_t i = 0; i < GUARD; i++)
        bad |= p[i] != ((const char *)&guard_bits)[i % 4];
    for (size_t i = GUARD + b->n; i < padded + 2 * GUARD; i++)
        bad |= p[i] != ((const char *)&guard_bits)[i % 4];
    if (bad) ktest_fail("wrote outside a buffer of %zu bytes", b->n);
    free(b->raw);
    *b = (ktest_buf){0};
}

int ktest_begin(const ox_kernel_row *row)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    row_failures = 0;
    if (ox_kernel_runs_on(row, &m)) return 1;
    printf("  absent %s\n", row->name);
    n_absent++;
    return 0;
}

void ktest_end(const ox_kernel_row *row)
{
    printf("  %s %s\n", row_failures ? "FAIL  " : "ok    ", row->name);
    if (row_failures)
        n_failed++;
    else
        n_ok++;
}

void ktest_fail(const char *fmt, ...)
{
    va_list ap;
    if (row_failures++ > 8) return;
    va_start(ap, fmt);
    printf("    ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

int ktest_same(const ox_kernel_row *row, const float *got, const float *want, size_t n, size_t k,
               float scale, const char *fmt, ...)
{
    for (size_t i = 0; i < n; i++) {
        const float w = want[i], g = got[i];
        if (!memcmp(&w, &g, sizeof(w))) continue;
        float tol = 0.0f;
        if (row->tol == OX_TOL_ROUND) tol = 8 * FLT_EPSILON * fmaxf(fabsf(w), FLT_MIN);
        if (row->tol == OX_TOL_SUM)
            tol = FLT_EPSILON * (2.0f + sqrtf((float)k)) * fmaxf(scale, fabsf(w));
        if (fabsf(w - g) <= tol || (isnan(w) && isnan(g))) continue;
        char what[256];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(what, sizeof(what), fmt, ap);
        va_end(ap);
        ktest_fail("[%zu] want %.9g got %.9g (allowed %.3g); %s", i, (double)w, (double)g,
                   (double)tol, what);
        return 0;
    }
    return 1;
}

#define OX_KERNEL_FAMILY(name) void ktest_##name(void);
#include "kernel/families.def"
#undef OX_KERNEL_FAMILY

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    if (argc > 2) state = strtoull(argv[2], NULL, 0);
    printf("seed %llu\n", (unsigned long long)state);
#define OX_KERNEL_FAMILY(name)                                                                     \
    if (!only || !strcmp(only, #name)) {                                                           \
        printf("%s\n", #name);                                                                     \
        ktest_##name();                                                                            \
    }
#include "kernel/families.def"
#undef OX_KERNEL_FAMILY
    printf("%d passed, %d failed, %d absent on this machine\n", n_ok, n_failed, n_absent);
    return n_failed || !n_ok;
}
