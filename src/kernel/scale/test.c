/* Every row within a few ulp of the reference, with and without cap, in place. */
#include "kernel/scale/scale.h"
#include "tests/ktest/ktest.h"

#include <string.h>

/* Another fast row gives the same bits. */
static void check_tiers(const ox_kernel_row *row, ox_scale_args a, const float *x,
                        const float *want, size_t n)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    ktest_buf got = ktest_floats(n);
    for (const ox_kernel_row *other = ox_scale_rows; row->needs && other->needs; other++) {
        if (!ox_kernel_runs_on(other, &m)) continue;
        memcpy(got.p, x, got.n);
        a.x = a.y = got.p;
        ((ox_scale_fn *)other->fn)(&a, 0, a.rows);
        if (memcmp(got.p, want, got.n)) ktest_fail("differs from %s", other->name);
    }
    ktest_free(&got);
}

static void check(const ox_kernel_row *row, size_t rows, size_t dim, size_t pad, float cap)
{
    const size_t ld = dim + pad, n = rows * ld;
    ktest_buf x = ktest_floats(n), want = ktest_floats(n), first = ktest_floats(n);
    ktest_fill(x.p, n, -90.0f, 90.0f);
    memcpy(first.p, x.p, n * sizeof(float));
    memcpy(want.p, x.p, n * sizeof(float));
    ox_scale_args a = {want.p, want.p, rows, dim, ld, ld, 0.37f, cap};
    ox_scale_ref(&a, 0, rows);
    a.x = a.y = x.p;
    ((ox_scale_fn *)row->fn)(&a, 0, rows);
    ktest_same(row, x.p, want.p, n, 1, 0.0f, "dim=%zu cap=%g", dim, (double)cap);
    check_tiers(row, a, first.p, x.p, n);
    ktest_free(&first);
    ktest_free(&x);
    ktest_free(&want);
}

void ktest_scale(void);
void ktest_scale(void)
{
    static const size_t dims[] = {1, 7, 8, 15, 16, 17, 31, 64, 255};
    for (const ox_kernel_row *row = ox_scale_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t d = 0; d < OX_COUNT(dims); d++) {
            check(row, 1 + d % 3, dims[d], d % 2 * 3, 0.0f);
            check(row, 1 + d % 3, dims[d], d % 2 * 3, 30.0f);
        }
        ktest_end(row);
    }
}
