/* Every row against the reference: both pairings, partial rotation, odd sizes, strides. */
#include "kernel/rotate/rotate.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

/* Another fast row gives the same bits. */
static void check_tiers(const ox_kernel_row *row, ox_rotate_args a, const float *x,
                        const float *want, size_t n)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    ktest_buf got = ktest_floats(n);
    for (const ox_kernel_row *other = ox_rotate_rows; row->needs && other->needs; other++) {
        if (!ox_kernel_runs_on(other, &m)) continue;
        memcpy(got.p, x, got.n);
        a.x = got.p;
        ((ox_rotate_fn *)other->fn)(&a, 0, a.rows);
        if (memcmp(got.p, want, got.n)) ktest_fail("differs from %s", other->name);
    }
    ktest_free(&got);
}

static void check(const ox_kernel_row *row, size_t n_heads, size_t head, size_t rotary, bool pairs)
{
    enum { ROWS = 5, POSITIONS = 40 };
    const size_t ld = n_heads * head + 3, n = ROWS * ld, half = rotary / 2;
    ktest_buf x = ktest_floats(n), want = ktest_floats(n), first = ktest_floats(n);
    ktest_buf c = ktest_floats(POSITIONS * half), s = ktest_floats(POSITIONS * half);
    const int32_t pos[ROWS] = {39, 0, 7, 7, 21};
    ktest_fill(x.p, n, -4.0f, 4.0f);
    for (size_t i = 0; i < POSITIONS * half; i++) {
        const float angle = ktest_uniform(-3.0f, 3.0f);
        ((float *)c.p)[i] = cosf(angle);
        ((float *)s.p)[i] = sinf(angle);
    }
    memcpy(first.p, x.p, n * sizeof(float));
    memcpy(want.p, x.p, n * sizeof(float));
    ox_rotate_args a = {want.p, ROWS, ld, n_heads, head, rotary, pairs, c.p, s.p, pos};
    ox_rotate_ref(&a, 0, ROWS);
    a.x = x.p;
    ((ox_rotate_fn *)row->fn)(&a, 0, 2);
    ((ox_rotate_fn *)row->fn)(&a, 2, ROWS);
    ktest_same(row, x.p, want.p, n, 2, 8.0f, "head=%zu rotary=%zu pairs=%d", head, rotary, pairs);
    check_tiers(row, a, first.p, x.p, n);
    ktest_free(&first);
    ktest_free(&x);
    ktest_free(&want);
    ktest_free(&c);
    ktest_free(&s);
}

void ktest_rotate(void);
void ktest_rotate(void)
{
    static const size_t shapes[][2] = {{2, 2},   {8, 4},   {64, 64},   {64, 32},
                                       {80, 20}, {96, 96}, {128, 128}, {256, 64}};
    for (const ox_kernel_row *row = ox_rotate_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t i = 0; i < OX_COUNT(shapes); i++) {
            check(row, 1 + i % 3, shapes[i][0], shapes[i][1], false);
            check(row, 1 + i % 3, shapes[i][0], shapes[i][1], true);
        }
        ktest_end(row);
    }
}
