/* Every row against the reference, error relative to |gate * up|; in place on either operand. */
#include "kernel/glu/glu.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

static void check(const ox_kernel_row *row, size_t rows, size_t dim, size_t pad, ox_act act)
{
    const size_t ld = dim + pad, n = rows * ld;
    ktest_buf gate = ktest_floats(n), up = ktest_floats(n), want = ktest_floats(n);
    ktest_buf bound = ktest_floats(n);
    ktest_fill(gate.p, n, -12.0f, 12.0f);
    ktest_fill(up.p, n, -4.0f, 4.0f);
    for (size_t i = 0; i < n; i++) {
        ((float *)want.p)[i] = ((float *)up.p)[i];
        ((float *)bound.p)[i] = fabsf(((float *)up.p)[i] * ((float *)gate.p)[i]);
        if (act == OX_ACT_RELU2) ((float *)bound.p)[i] *= fabsf(((float *)gate.p)[i]);
    }
    ox_glu_args a = {gate.p, want.p, want.p, rows, dim, ld, ld, ld, act};
    ox_glu_ref(&a, 0, rows);
    a.up = up.p;
    a.y = dim % 2 ? gate.p : up.p;
    ((ox_glu_fn *)row->fn)(&a, 0, rows);
    for (size_t i = 0; i < n; i++)
        if (i % ld < dim &&
            !ktest_same(row, a.y + i, (float *)want.p + i, 1, 1, ((float *)bound.p)[i],
                        "dim=%zu act=%d at %zu", dim, (int)act, i))
            break;
    ktest_free(&gate);
    ktest_free(&up);
    ktest_free(&want);
    ktest_free(&bound);
}

void ktest_glu(void);
void ktest_glu(void)
{
    static const size_t dims[] = {1, 7, 8, 15, 16, 17, 31, 64, 255};
    for (const ox_kernel_row *row = ox_glu_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t d = 0; d < OX_COUNT(dims); d++)
            for (int act = 0; act <= OX_ACT_RELU2; act++)
                check(row, 1 + d % 3, dims[d], d % 2 * 3, (ox_act)act);
        ktest_end(row);
    }
}
