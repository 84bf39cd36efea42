/* Every row equal to the reference: lengths around the registers, nothing kept, everything kept,
 * NaN and infinities, given ids, and in place. */
#include "kernel/cut/cut.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

static float value(int kind)
{
    if (kind == 1) return ktest_bits() % 3 ? -INFINITY : ktest_uniform(-1.0f, 1.0f);
    if (kind == 2) return ktest_bits() % 3 ? NAN : (float)(ktest_bits() % 3);
    return ktest_uniform(-1.0f, 1.0f);
}

static void check(const ox_kernel_row *row, size_t n, int kind, float floor, float ceiling,
                  bool with_ids, bool in_place)
{
    ktest_buf x = ktest_floats(n + OX_CUT_ROOM), v = ktest_floats(n + OX_CUT_ROOM);
    ktest_buf id = ktest_bytes((n + OX_CUT_ROOM) * 4), out = ktest_bytes((n + OX_CUT_ROOM) * 4);
    ktest_buf want = ktest_floats(n + OX_CUT_ROOM), want_ids = ktest_bytes((n + OX_CUT_ROOM) * 4);
    size_t got_n = 0, want_n = 0;
    for (size_t i = 0; i < n; i++) {
        ((float *)x.p)[i] = value(kind);
        ((int32_t *)id.p)[i] = (int32_t)(i * 3 + 5);
    }
    ox_cut_args a = {x.p, with_ids ? id.p : NULL, floor, ceiling, want.p, want_ids.p, &want_n, n};
    ox_cut_ref(&a);
    a.values = in_place ? x.p : v.p;
    a.kept_ids = in_place && with_ids ? id.p : out.p;
    a.n_kept = &got_n;
    ((ox_cut_fn *)row->fn)(&a);
    size_t values_n = 0;
    ox_cut_args only = a;
    only.kept_ids = NULL;
    only.n_kept = &values_n;
    only.values = v.p;
    if (!in_place) ((ox_cut_fn *)row->fn)(&only);
    if (!in_place && (values_n != want_n || memcmp(v.p, want.p, want_n * 4)))
        ktest_fail("n=%zu kind=%d without ids: %zu kept, expected %zu", n, kind, values_n, want_n);
    if (got_n != want_n || memcmp(a.values, want.p, want_n * 4) ||
        memcmp(a.kept_ids, want_ids.p, want_n * 4))
        ktest_fail("n=%zu kind=%d floor=%g ids=%d in_place=%d: %zu kept, expected %zu", n, kind,
                   (double)floor, with_ids, in_place, got_n, want_n);
    ktest_buf *all[] = {&x, &v, &id, &out, &want, &want_ids};
    for (size_t i = 0; i < 6; i++)
        ktest_free(all[i]);
}

void ktest_cut(void);
void ktest_cut(void)
{
    static const size_t lengths[] = {1, 2, 15, 16, 17, 31, 63, 64, 65, 127, 500, 4099};
    static const float floors[] = {-INFINITY, -2.0f, -0.5f, 0.0f, 0.9f, 2.0f, INFINITY};
    for (const ox_kernel_row *row = ox_cut_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t l = 0; l < OX_COUNT(lengths); l++)
            for (size_t f = 0; f < OX_COUNT(floors); f++)
                for (int kind = 0; kind < 3; kind++)
                    for (int how = 0; how < 8; how++)
                        check(row, lengths[l], kind, floors[f], how & 4 ? 0.5f : NAN, how & 1,
                              how & 2);
        ktest_end(row);
    }
}
