/* Every row equal to the reference: ties, NaN, infinities, ascending and descending rows, k from 1
 * to all; and a vocabulary-sized row. */
#include "kernel/select/select.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

enum { UNIFORM, TIES, NANS, ALL_NAN, INFINITE, RISING, FALLING, ZEROS, ONE_NAN, KINDS };

static float value(int kind, size_t i)
{
    switch (kind) {
    case TIES:
        return (float)(ktest_bits() % 5);
    case NANS:
        return ktest_bits() % 2 ? NAN : ktest_uniform(-2.0f, 2.0f);
    case ALL_NAN:
        return NAN;
    case INFINITE:
        return ktest_bits() % 3 ? -INFINITY : ktest_bits() % 2 ? INFINITY : 1.0f;
    case RISING:
        return (float)i;
    case FALLING:
        return -(float)i;
    case ZEROS:
        return ktest_bits() % 2 ? 0.0f : -0.0f;
    case ONE_NAN:
        return ktest_bits() % 20 ? ktest_uniform(-10.0f, 10.0f) : NAN;
    default:
        return ktest_uniform(-10.0f, 10.0f);
    }
}

static void check(const ox_kernel_row *row, size_t rows, size_t dim, size_t k, int kind)
{
    const size_t ld = dim + 3;
    ktest_buf x = ktest_floats(rows * ld), ids = ktest_bytes(rows * k * 4);
    ktest_buf values = ktest_floats(rows * k), want_ids = ktest_bytes(rows * k * 4);
    ktest_buf want = ktest_floats(rows * k);
    for (size_t i = 0; i < rows * ld; i++)
        ((float *)x.p)[i] = value(kind, i);
    bool nan[4], want_nan[4];
    ox_select_args a = {x.p, want_ids.p, want.p, rows, dim, k, ld, want_nan};
    ox_select_ref(&a, 0, rows);
    a.ids = ids.p;
    a.has_nan = nan;
    a.values = values.p;
    ((ox_select_fn *)row->fn)(&a, 0, rows);
    if (memcmp(ids.p, want_ids.p, rows * k * 4) || memcmp(values.p, want.p, rows * k * 4))
        ktest_fail("dim=%zu k=%zu kind=%d: different choice", dim, k, kind);
    if (memcmp(nan, want_nan, rows))
        ktest_fail("dim=%zu k=%zu kind=%d: NaN not noticed, or seen where none is", dim, k, kind);
    ktest_free(&x);
    ktest_free(&ids);
    ktest_free(&values);
    ktest_free(&want_ids);
    ktest_free(&want);
}

void ktest_select(void);
void ktest_select(void)
{
    static const size_t dims[] = {1, 2, 7, 16, 17, 31, 64, 65, 100, 257};
    for (const ox_kernel_row *row = ox_select_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t d = 0; d < OX_COUNT(dims); d++)
            for (int kind = 0; kind < KINDS; kind++)
                for (size_t k = 1; k <= dims[d]; k += 1 + dims[d] / 5)
                    check(row, 1 + d % 3, dims[d], k, kind);
        check(row, 1, 100000, 1, UNIFORM);
        check(row, 1, 100000, 1, RISING);
        check(row, 1, 100000, 1, FALLING);
        check(row, 1, 3000, 1, NANS);
        check(row, 1, 100000, 20, UNIFORM);
        check(row, 1, 50000, 20, TIES);
        ktest_end(row);
    }
}
