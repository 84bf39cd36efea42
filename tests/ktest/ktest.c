/* ktest.c - see ktest.h. Usage: ktest [family|all] [seed] [cases]. Zero rows run is a failure; with
 * cases a family starts over, the seed moving on, until it has compared that many outputs.
 * KTEST_BANDS=1: no guard pages, for an emulator whose masked stores touch what they mask. */
#define _DEFAULT_SOURCE
#include "tests/ktest/ktest.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };
static const uint32_t guard_bits = 0x7fc0beefu;
static uint64_t state = 1;
static int row_failures, n_ok, n_failed, n_absent, is_quiet;
static long n_cases;

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

/* Pages nobody may touch before and behind; the buffer ends where the last page does, or up to 63
 * bytes before, which hold a guard band like the page's beginning. */
static size_t pages_for(size_t n)
{
    return (n + 63) / 64 * 64 / PAGE * PAGE + PAGE;
}

ktest_buf ktest_bytes(size_t n)
{
    const size_t inner = pages_for(n), padded = (n + 63) / 64 * 64;
    char *raw =
        mmap(NULL, inner + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) abort();
    if (!getenv("KTEST_BANDS") &&
        (mprotect(raw, PAGE, PROT_NONE) || mprotect(raw + PAGE + inner, PAGE, PROT_NONE)))
        abort();
    put_guard(raw + PAGE, inner);
    return (ktest_buf){.n = n, .raw = raw, .p = raw + PAGE + inner - padded};
}

void ktest_free(ktest_buf *b)
{
    const size_t inner = pages_for(b->n);
    const char *from = (const char *)b->raw + PAGE, *p = b->p;
    int bad = 0;
    for (const char *at = from; at < p; at++)
        bad |= *at != ((const char *)&guard_bits)[(at - from) % 4];
    for (const char *at = p + b->n; at < from + inner; at++)
        bad |= *at != ((const char *)&guard_bits)[(at - from) % 4];
    if (bad) ktest_fail("wrote outside a buffer of %zu bytes", b->n);
    munmap(b->raw, inner + 2 * PAGE);
    *b = (ktest_buf){0};
}

int ktest_begin(const ox_kernel_row *row)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    row_failures = 0;
    if (ox_kernel_runs_on(row, &m)) return 1;
    if (is_quiet) return 0;
    printf("  absent %s\n", row->name);
    n_absent++;
    return 0;
}

void ktest_end(const ox_kernel_row *row)
{
    if (!is_quiet || row_failures)
        printf("  %s %s\n", row_failures ? "FAIL  " : "ok    ", row->name);
    if (row_failures)
        n_failed++;
    else if (!is_quiet)
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
    n_cases++;
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

/* One round of a family, and more until it has compared n_wanted outputs. */
static void run_family(const char *name, void (*family)(void), long n_wanted)
{
    printf("%s\n", name);
    n_cases = 0;
    is_quiet = 0;
    do {
        const uint64_t seed = state;
        const int failed = n_failed;
        const long before = n_cases;
        family();
        if (n_failed > failed) printf("  seed %llu\n", (unsigned long long)seed);
        if (n_failed > failed || n_cases == before) break;
        is_quiet = 1;
    } while (n_cases < n_wanted);
    if (n_wanted) printf("  %ld cases\n", n_cases);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 && strcmp(argv[1], "all") ? argv[1] : NULL;
    const long n_wanted = argc > 3 ? strtol(argv[3], NULL, 0) : 0;
    if (argc > 2) state = strtoull(argv[2], NULL, 0);
    printf("seed %llu\n", (unsigned long long)state);
#define OX_KERNEL_FAMILY(name)                                                                     \
    if (!only || !strcmp(only, #name)) run_family(#name, ktest_##name, n_wanted);
#include "kernel/families.def"
#undef OX_KERNEL_FAMILY
    printf("%d passed, %d failed, %d absent on this machine\n", n_ok, n_failed, n_absent);
    return n_failed || !n_ok;
}
