/* Every row chooses as the reference does: flat and steep distributions, ties, -inf, extreme
 * temperatures and values, given ids, seeds and positions beyond 32 bits. */
#include "kernel/draw/draw.h"
#include "tests/ktest/ktest.h"

enum { FLAT, NORMAL, STEEP, TIES, MASKED, HUGE_VALUES, ALL_MASKED, FAR_DOWN, KINDS };

static float value(int kind)
{
    switch (kind) {
    case FLAT:
        return 1.0f;
    case STEEP:
        return ktest_uniform(-400.0f, 40.0f);
    case TIES:
        return (float)(ktest_bits() % 4);
    case MASKED:
        return ktest_bits() % 40 ? -INFINITY : ktest_uniform(-3.0f, 3.0f);
    case HUGE_VALUES:
        return ktest_uniform(-1.0f, 1.0f) * 3e38f;
    case ALL_MASKED:
        return -INFINITY;
    case FAR_DOWN:
        return -3e38f + (float)(ktest_bits() % 3) * 1e37f;
    default:
        return ktest_uniform(-10.0f, 10.0f);
    }
}

static void check(const ox_kernel_row *row, size_t n, int kind, double temperature, bool with_ids)
{
    ktest_buf x = ktest_floats(n), id = ktest_bytes(n * 4);
    size_t got = 0, want = 0;
    for (size_t i = 0; i < n; i++) {
        ((float *)x.p)[i] = value(kind);
        ((int32_t *)id.p)[i] = (int32_t)(i * 7 + 3);
    }
    const uint64_t seed = ktest_bits(), position = ktest_bits() >> (ktest_bits() % 50);
    ox_draw_args a = {x.p,      with_ids ? id.p : NULL, temperature, seed,
                      position, ktest_bits() % n,       &want,       n};
    ox_draw_ref(&a);
    a.chosen = &got;
    ((ox_draw_fn *)row->fn)(&a);
    if (got != want)
        ktest_fail("n=%zu kind=%d temperature=%g ids=%d: %zu, expected %zu", n, kind, temperature,
                   with_ids, got, want);
    ktest_free(&x);
    ktest_free(&id);
}

void ktest_draw(void);
void ktest_draw(void)
{
    static const size_t lengths[] = {1, 2, 8, 15, 16, 17, 40, 333, 4100};
    static const double temperatures[] = {1e-30, 1e-4, 0.1, 0.8, 1.0, 3.0, 1e4, 1e30};
    for (const ox_kernel_row *row = ox_draw_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t l = 0; l < OX_COUNT(lengths); l++)
            for (int kind = 0; kind < KINDS; kind++)
                for (size_t t = 0; t < OX_COUNT(temperatures); t++)
                    for (int again = 0; again < 8; again++)
                        check(row, lengths[l], kind, temperatures[t], again & 1);
        for (int again = 0; again < 50; again++)
            check(row, 20000, again % KINDS, 1.0, again & 1);
        ktest_end(row);
    }
}
