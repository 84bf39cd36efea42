/* Every row against the reference: odd sizes, strides, batches; then bit for bit: one row at a
 * time, unit by unit, and on the other tiers. */
#include "kernel/gemm/gemm.h"
#include "tests/ktest/ktest.h"

#include <string.h>

static void same_bits(const ox_gemm_args *a, const float *got, const float *want, size_t n,
                      const char *what)
{
    if (memcmp(got, want, n * sizeof(float)))
        ktest_fail("%s: other bits; m=%zu n=%zu k=%zu", what, a->m, a->n, a->k);
}

static void check_splits(const ox_kernel_row *row, ox_gemm_args a, const float *want, size_t n)
{
    const ox_machine machine = {.cpu_features = ox_cpu_detected()};
    const ox_gemm_args all = a;
    ktest_buf got = ktest_floats(n);
    memcpy(got.p, want, n * sizeof(float));
    a.c = got.p;
    for (size_t u = ox_gemm_units(&a); u-- > 0;)
        ((ox_gemm_fn *)row->fn)(&a, u, u + 1);
    same_bits(&all, got.p, want, n, "unit by unit");
    for (size_t r = 0; r < all.m; r++) {
        a.m = 1;
        a.a = all.a + r * all.lda;
        a.c = (float *)got.p + r * all.ldc;
        ((ox_gemm_fn *)row->fn)(&a, 0, ox_gemm_units(&a));
    }
    same_bits(&all, got.p, want, n, "row by row");
    a = all;
    a.c = got.p;
    for (const ox_kernel_row *other = ox_gemm_rows; other->needs; other++) {
        if (!ox_kernel_runs_on(other, &machine)) continue;
        ((ox_gemm_fn *)other->fn)(&a, 0, ox_gemm_units(&a));
        same_bits(&all, got.p, want, n, other->name);
    }
    ktest_free(&got);
}

static void check(const ox_kernel_row *row, size_t m, size_t n, size_t k, size_t batch, size_t pad)
{
    const size_t lda = k + pad, ldb = n + pad, ldc = n + pad;
    const size_t sa = m * lda, sb = batch % 2 ? k * ldb : 0, sc = m * ldc;
    ktest_buf x = ktest_floats(batch * sa - pad);
    ktest_buf w = ktest_floats((sb ? batch * sb : k * ldb) - (k ? pad : 0));
    ktest_buf want = ktest_floats(batch * sc), got = ktest_floats(batch * sc);
    ktest_fill(x.p, batch * sa - pad, -1.0f, 1.0f);
    ktest_fill(w.p, w.n / 4, -1.0f, 1.0f);
    ktest_fill(want.p, batch * sc, -1.0f, 1.0f);
    memcpy(got.p, want.p, want.n);
    ox_gemm_args a = {x.p, w.p, want.p, m, n, k, lda, ldb, ldc, batch, sa, sb, sc};
    ox_gemm_ref(&a, 0, ox_gemm_units(&a));
    a.c = got.p;
    ((ox_gemm_fn *)row->fn)(&a, 0, ox_gemm_units(&a));
    ktest_same(row, got.p, want.p, batch * sc, k, (float)k * 0.3f, "m=%zu n=%zu k=%zu", m, n, k);
    if (row->needs) check_splits(row, a, got.p, batch * sc);
    ktest_free(&x);
    ktest_free(&w);
    ktest_free(&want);
    ktest_free(&got);
}

void ktest_gemm(void);
void ktest_gemm(void)
{
    static const size_t ms[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 150};
    static const size_t ns[] = {1, 5, 16, 17, 47, 48, 49, 80, 130};
    static const size_t ks[] = {1, 7, 64, 255, 256, 600};
    for (const ox_kernel_row *row = ox_gemm_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t i = 0; i < OX_COUNT(ms); i++)
            for (size_t j = 0; j < OX_COUNT(ns); j++)
                check(row, ms[i], ns[j], ks[(i + j) % OX_COUNT(ks)], 1 + (i + j) % 3, i % 2 * 3);
        ktest_end(row);
    }
}
