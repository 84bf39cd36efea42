/* Every row bit-equal to the reference: odd sizes, strides, in place, one row for all. */
#include "kernel/add/add.h"
#include "tests/ktest/ktest.h"

#include <string.h>

static void check(const ox_kernel_row *row, size_t rows, size_t dim, size_t pad, bool one_row)
{
    const size_t ld = dim + pad, n = rows * ld;
    ktest_buf x = ktest_floats(n), b = ktest_floats(n), want = ktest_floats(n);
    ktest_fill(x.p, n, -4.0f, 4.0f);
    ktest_fill(b.p, n, -4.0f, 4.0f);
    memcpy(want.p, x.p, n * sizeof(float));
    ox_add_args a = {want.p, b.p, want.p, rows, dim, ld, one_row ? 0 : ld, ld};
    ox_add_ref(&a, 0, rows);
    a.a = a.y = x.p;
    ((ox_add_fn *)row->fn)(&a, 0, rows);
    ktest_same(row, x.p, want.p, n, 1, 0.0f, "rows=%zu dim=%zu", rows, dim);
    ktest_free(&x);
    ktest_free(&b);
    ktest_free(&want);
}

void ktest_add(void);
void ktest_add(void)
{
    static const size_t dims[] = {1, 7, 8, 15, 16, 17, 31, 64, 255};
    for (const ox_kernel_row *row = ox_add_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t d = 0; d < OX_COUNT(dims); d++)
            check(row, 1 + d % 3, dims[d], d % 2 * 3, d % 3 == 1);
        ktest_end(row);
    }
}
