/* Every row of kernels.def against the reference: odd sizes, strides, in place, guard bands. */
#include "kernel/norm/norm.h"
#include "tests/ktest/ktest.h"

#include <string.h>

static void check(const ox_kernel_row *row, size_t rows, size_t dim, size_t pad, int flags)
{
    ox_norm_args a = {.rows = rows, .dim = dim, .ldx = dim + pad, .ldy = dim + pad, .eps = 1e-5f};
    ktest_buf x = ktest_floats(rows * a.ldx), gamma = ktest_floats(dim), beta = ktest_floats(dim);
    ktest_buf want = ktest_floats(rows * a.ldy);
    ktest_fill(x.p, rows * a.ldx, -4.0f, 4.0f);
    ktest_fill(gamma.p, dim, 0.5f, 1.5f);
    ktest_fill(beta.p, dim, -1.0f, 1.0f);
    a.x = x.p;
    a.gamma = gamma.p;
    a.beta = flags & 1 ? beta.p : NULL;
    a.centre = flags & 2;
    memcpy(want.p, x.p, rows * a.ldy * sizeof(float));
    a.y = want.p;
    ox_norm_f32_ref(&a, 0, rows);
    a.y = x.p; /* in place */
    ((ox_norm_fn *)row->fn)(&a, 0, rows);
    ktest_same(row, x.p, want.p, rows * a.ldy, dim, 8.0f, "rows=%zu dim=%zu pad=%zu flags=%d", rows,
               dim, pad, flags);
    ktest_free(&x);
    ktest_free(&gamma);
    ktest_free(&beta);
    ktest_free(&want);
}

void ktest_norm(void);
void ktest_norm(void)
{
    static const size_t dims[] = {1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 65, 255, 1024, 4095};
    for (const ox_kernel_row *row = ox_norm_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t d = 0; d < OX_COUNT(dims); d++)
            for (int flags = 0; flags < 4; flags++)
                check(row, 1 + d % 3, dims[d], d % 2 * 3, flags);
        ktest_end(row);
    }
}
