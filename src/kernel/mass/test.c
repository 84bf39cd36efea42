/* Every row bit-equal to the reference, and the reference close to a sum in double. */
#include "kernel/mass/mass.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

static float value(int kind)
{
    if (kind == 1) return ktest_bits() % 50 ? -INFINITY : ktest_uniform(-4.0f, 4.0f);
    return kind == 2 ? ktest_uniform(-200.0f, 4.0f) : ktest_uniform(-9.0f, 4.0f);
}

static void check(const ox_kernel_row *row, size_t n, int kind, float scale)
{
    ktest_buf x = ktest_floats(n);
    double got = -1, want = -1, exact = 0;
    for (size_t i = 0; i < n; i++)
        ((float *)x.p)[i] = value(kind);
    ((float *)x.p)[n / 2] = 4.0f;
    for (size_t i = 0; i < n; i++)
        exact += exp(((double)((float *)x.p)[i] - 4.0) * (double)scale);
    ox_mass_args a = {x.p, 4.0f, scale, &want, n};
    ox_mass_ref(&a);
    a.sum = &got;
    ((ox_mass_fn *)row->fn)(&a);
    if (memcmp(&got, &want, sizeof(got)))
        ktest_fail("n=%zu kind=%d: %.17g, reference %.17g", n, kind, got, want);
    if (!(fabs(want - exact) <= 2e-6 * exact))
        ktest_fail("n=%zu kind=%d: reference %.17g, in double %.17g", n, kind, want, exact);
    ktest_free(&x);
}

void ktest_mass(void);
void ktest_mass(void)
{
    static const size_t lengths[] = {1, 15, 16, 17, 32, 33, 48, 255, 256, 257, 1000, 32003};
    for (const ox_kernel_row *row = ox_mass_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t l = 0; l < OX_COUNT(lengths); l++)
            for (int kind = 0; kind < 3; kind++) {
                check(row, lengths[l], kind, 1.0f);
                check(row, lengths[l], kind, 0.3f);
                check(row, lengths[l], kind, 7.0f);
            }
        ktest_end(row);
    }
}
