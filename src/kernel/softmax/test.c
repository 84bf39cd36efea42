/* Every row against the reference on odd sizes, in place; -inf entries; a row of -inf gives NaN. */
#include "kernel/softmax/softmax.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

/* Another fast row gives the same bits. */
static void check_tiers(const ox_kernel_row *row, ox_softmax_args a, const float *x,
                        const float *want, size_t n)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    ktest_buf got = ktest_floats(n);
    for (const ox_kernel_row *other = ox_softmax_rows; row->needs && other->needs; other++) {
        if (!ox_kernel_runs_on(other, &m)) continue;
        memcpy(got.p, x, got.n);
        a.x = a.y = got.p;
        ((ox_softmax_fn *)other->fn)(&a, 0, a.rows);
        if (memcmp(got.p, want, got.n)) ktest_fail("differs from %s", other->name);
    }
    ktest_free(&got);
}

static void check(const ox_kernel_row *row, size_t rows, size_t dim, size_t pad, int kind)
{
    const size_t ld = dim + pad, n = rows * ld;
    ktest_buf x = ktest_floats(n), want = ktest_floats(n), first = ktest_floats(n);
    float *p = x.p;
    ktest_fill(p, n, -20.0f, 20.0f);
    for (size_t i = 0; i < n; i++)
        if ((kind == 1 && ktest_bits() % 4 == 0) || kind == 2) p[i] = -INFINITY;
    if (kind == 3) p[n / 2 % dim] = NAN;
    memcpy(first.p, p, n * sizeof(float));
    memcpy(want.p, p, n * sizeof(float));
    ox_softmax_args a = {want.p, want.p, rows, dim, ld, ld};
    ox_softmax_ref(&a, 0, rows);
    a.x = a.y = p;
    ((ox_softmax_fn *)row->fn)(&a, 0, rows);
    ktest_same(row, p, want.p, n, dim, 1e-3f, "dim=%zu kind=%d", dim, kind);
    check_tiers(row, a, first.p, p, n);
    ktest_free(&first);
    ktest_free(&x);
    ktest_free(&want);
}

void ktest_softmax(void);
void ktest_softmax(void)
{
    static const size_t dims[] = {1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 255, 4097};
    for (const ox_kernel_row *row = ox_softmax_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t d = 0; d < OX_COUNT(dims); d++)
            for (int kind = 0; kind < 4; kind++)
                check(row, 1 + d % 3, dims[d], d % 2 * 3, kind);
        ktest_end(row);
    }
}
