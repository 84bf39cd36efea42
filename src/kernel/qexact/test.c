/* Every row against the reference within float rounding, the reference against raw weights, SIMD
 * rows bit for bit among themselves, any split, any number of rows. */
#include "kernel/qexact/qexact.h"
#include "tests/ktest/qweights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void run_by_row(const ox_kernel_row *row, const ox_qexact_args *a, float *y)
{
    for (size_t r = 0; r < a->rows; r++) {
        ox_qexact_args b = *a;
        b.xf = a->xf + r * a->ldx;
        b.rows = 1;
        b.y = y + r * a->ldy;
        if (a->add) b.add = a->add + r * a->ldadd;
        for (size_t u = 0; u < a->w->units; u++)
            ((ox_qexact_fn *)row->fn)(&b, u, u + 1);
    }
}

/* Raw weights in double; *scale bounds the terms of any output. */
static void truth(const qweights *q, const ox_qexact_args *a, float *y, float *scale)
{
    const size_t k = a->w->k;
    ktest_buf rows = ktest_floats(2 * k);
    float *w = rows.p;
    *scale = 0.0f;
    for (size_t c = 0; c < a->w->n_out; c++) {
        qweights_row(q, c, w, w + k);
        for (size_t r = 0; r < a->rows; r++) {
            double sum = a->bias ? (double)a->bias[c] : 0.0, size = 1.0;
            for (size_t i = 0; i < k; i++) {
                sum += (double)w[i] * (double)a->xf[r * a->ldx + i];
                size += fabs((double)w[k + i] * (double)a->xf[r * a->ldx + i]);
            }
            if (a->add) sum += (double)a->add[r * a->ldadd + c];
            y[r * a->ldy + c] = (float)sum;
            if (size > (double)*scale) *scale = (float)size;
        }
    }
    ktest_free(&rows);
}

static const ox_kernel_row *first_simd(const ox_kernel_row *row)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    return row->needs ? ox_kernel_pick(ox_qexact_rows, OX_DEVICE_CPU, &m, NULL) : row;
}

static void check(const ox_kernel_row *row, qform f, size_t m, size_t n, size_t k, int flags)
{
    char what[160];
    snprintf(what, sizeof(what), "bits %d block %d zeros %d f16 %d m %zu n %zu k %zu flags %d",
             f.bits, f.block, f.zeros, f.f16, m, n, k, flags);
    qweights q;
    qweights_open(&q, f, n, k, n - n / 3, false);
    const size_t ldx = k + 1, ldy = n + 2;
    ktest_buf x = ktest_floats(m * ldx), bias = ktest_floats(n), add = ktest_floats(m * ldy);
    ktest_buf got = ktest_floats(m * ldy), want = ktest_floats(m * ldy);
    ktest_fill(x.p, m * ldx, -2.0f, 2.0f);
    ktest_fill(bias.p, n, -1.0f, 1.0f);
    ktest_fill(add.p, m * ldy, -1.0f, 1.0f);
    memcpy(got.p, add.p, got.n);
    memcpy(want.p, add.p, got.n);
    ox_qexact_args a = {.w = &q.pack, .xf = x.p, .ldx = ldx, .rows = m, .y = want.p, .ldy = ldy};
    if (flags & 1) a.bias = bias.p;
    if (flags & 2) a.add = add.p, a.ldadd = ldy;
    float scale;
    truth(&q, &a, want.p, &scale);
    a.y = got.p;
    ((ox_qexact_fn *)row->fn)(&a, 0, q.pack.units);
    ox_kernel_row sum = *row;
    sum.tol = OX_TOL_SUM;
    ktest_same(&sum, got.p, want.p, m * ldy, k, scale, "%s", what);
    ox_kernel_row exact = *row;
    exact.tol = OX_TOL_EXACT;
    run_by_row(row, &a, want.p);
    ktest_same(&exact, want.p, got.p, m * ldy, k, 0.0f, "row by row; %s", what);
    a.y = want.p;
    ((ox_qexact_fn *)first_simd(row)->fn)(&a, 0, q.pack.units);
    ktest_same(&exact, got.p, want.p, m * ldy, k, 0.0f, "against the first row; %s", what);
    ktest_free(&x);
    ktest_free(&bias);
    ktest_free(&add);
    ktest_free(&got);
    ktest_free(&want);
    qweights_close(&q);
}

static void check_glu(const ox_kernel_row *row)
{
    enum { M = 9, N = 140, K = 96 };
    qweights q;
    qweights_open(&q, (qform){4, 32, 2, true, 0}, N, K, N / 2, true);
    ktest_buf x = ktest_floats(M * K), got = ktest_floats(M * N / 2),
              want = ktest_floats(M * N / 2);
    ktest_fill(x.p, M * K, -2.0f, 2.0f);
    ox_qexact_args a = {.w = &q.pack,
                        .xf = x.p,
                        .ldx = K,
                        .rows = M,
                        .y = want.p,
                        .ldy = N / 2,
                        .act = OX_QLINEAR_SILU};
    ox_qexact_ref(&a, 0, q.pack.units);
    a.y = got.p;
    ((ox_qexact_fn *)row->fn)(&a, 0, q.pack.units);
    ox_kernel_row sum = *row;
    sum.tol = OX_TOL_SUM;
    ktest_same(&sum, got.p, want.p, M * N / 2, K, 200.0f, "gate and up");
    ktest_free(&x);
    ktest_free(&got);
    ktest_free(&want);
    qweights_close(&q);
}

void ktest_qexact(void);
void ktest_qexact(void)
{
    static const size_t ms[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 40};
    static const size_t ns[] = {1, 31, 32, 33, 70}, ks[] = {1, 16, 31, 40, 64, 100, 136, 600};
    for (const ox_kernel_row *row = ox_qexact_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t i = 0; i < 36 * OX_COUNT(ms); i++) {
            const size_t form = i / OX_COUNT(ms);
            const int32_t blocks[3] = {16, 32, 128};
            const qform f = {form & 1 ? 8 : 4, blocks[form / 2 % 3], (int)(form / 6 % 3),
                             form >= 18, 0};
            check(row, f, ms[i % OX_COUNT(ms)], ns[i % OX_COUNT(ns)], ks[i * 3 % OX_COUNT(ks)],
                  (int)(i % 4));
        }
        check_glu(row);
        ktest_end(row);
    }
}
