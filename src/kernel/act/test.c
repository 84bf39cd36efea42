/* Every row against the reference (error relative to |x|: near the zero of an activation its value
 * is the difference of larger numbers), on odd sizes, in place; tiers
 * against each other bitwise. */
#include "kernel/act/act.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

static void fill(float *x, size_t n)
{
    static const float odd[] = {0.0f, -0.0f, 1e-30f, -1e-30f, 88.0f, -88.0f, 3e38f, -3e38f, NAN};
    ktest_fill(x, n, -12.0f, 12.0f);
    for (size_t i = 0; i < n; i += 5)
        x[i] = odd[i / 5 % OX_COUNT(odd)];
}

static void check(const ox_kernel_row *row, size_t rows, size_t dim, size_t pad, ox_act act)
{
    const size_t ld = dim + pad, n = rows * ld;
    ktest_buf x = ktest_floats(n), want = ktest_floats(n), got = ktest_floats(n);
    fill(x.p, n);
    memcpy(want.p, x.p, n * sizeof(float));
    memcpy(got.p, x.p, n * sizeof(float));
    ox_act_args a = {want.p, want.p, rows, dim, ld, ld, act};
    ox_act_ref(&a, 0, rows);
    a.x = a.y = got.p;
    ((ox_act_fn *)row->fn)(&a, 0, rows);
    for (size_t i = 0; i < n; i++)
        if (!ktest_same(row, (float *)got.p + i, (float *)want.p + i, 1, 1,
                        fabsf(((float *)x.p)[i]), "x=%g dim=%zu act=%d", (double)((float *)x.p)[i],
                        dim, (int)act))
            break;
    ktest_free(&x);
    ktest_free(&want);
    ktest_free(&got);
}

static void check_tiers(const ox_kernel_row *row, ox_act act)
{
    enum { N = 16 * 40 + 5 };
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    ktest_buf x = ktest_floats(N), a = ktest_floats(N), b = ktest_floats(N);
    fill(x.p, N);
    ox_act_args args = {x.p, a.p, 1, N, N, N, act};
    ((ox_act_fn *)row->fn)(&args, 0, 1);
    for (const ox_kernel_row *other = ox_act_rows; other->needs; other++) {
        if (!ox_kernel_runs_on(other, &m)) continue;
        args.y = b.p;
        ((ox_act_fn *)other->fn)(&args, 0, 1);
        if (memcmp(a.p, b.p, N * sizeof(float))) ktest_fail("differs from %s", other->name);
    }
    ktest_free(&x);
    ktest_free(&a);
    ktest_free(&b);
}

void ktest_act(void);
void ktest_act(void)
{
    static const size_t dims[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 255};
    for (const ox_kernel_row *row = ox_act_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t d = 0; d < OX_COUNT(dims); d++)
            for (int act = 0; act <= OX_ACT_RELU2; act++)
                check(row, 1 + d % 3, dims[d], d % 2 * 3, (ox_act)act);
        for (int act = 0; row->needs && act <= OX_ACT_RELU2; act++)
            check_tiers(row, (ox_act)act);
        ktest_end(row);
    }
}
