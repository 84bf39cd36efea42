/* Every row bit for bit against the reference, and every row against raw weights in double: once
 * with the dequantised activations (float rounding only: any wrong constant, order or scale shows),
 * once with the float activations (the int8 class's own bound). Odd shapes, any split, any number
 * of rows. */
#include "kernel/qlinear/qlinear.h"
#include "kernel/act/act_ref.h"
#include "tests/ktest/qweights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double EPS = 0x1p-23;

typedef struct shape {
    size_t m, n, k;
    bool pairs, bias, add;
    ox_qlinear_act act;
    int extreme_x; /* x = +-1 alternating, so that the codes are +-127 */
    int planes;
} shape;

typedef struct truth { /* a product in double, its rounding size, and what int8 may cost */
    double fine, coarse, size, slack;
} truth;

static double act_double(ox_qlinear_act act, double x)
{
    return act ? act_in_double((ox_act)(act - 1), x) : x;
}

static double act_slope(ox_qlinear_act act, double x, double around)
{
    return act == OX_QLINEAR_RELU2 ? 2 * (fabs(x) + around) : 1.2;
}

static truth product(const float *w, const float *sizes, const float *x, const ox_qact *q, size_t r)
{
    truth t = {0};
    const size_t planes = (size_t)q->planes;
    for (size_t k = 0; k < q->k; k++) {
        const size_t at = q->bits == 8 ? k : k / 8 * 8 + k % 2 * 4 + k % 8 / 2;
        double v = 0, s = 0;
        for (size_t p = 0; p < planes; p++) {
            s = (double)ox_qact_scales(q, r * planes + p)[k / (size_t)q->block];
            v += s * ox_qact_codes(q, r * planes + p)[at];
            t.size += (double)sizes[k] * fabs(s * ox_qact_codes(q, r * planes + p)[at]);
        }
        t.fine += (double)w[k] * v;
        t.coarse += (double)w[k] * (double)x[k];
        t.slack += fabs((double)w[k]) * s * 0.5001;
    }
    return t;
}

static void check_value(float got, const ox_qlinear_args *a, const truth *t, size_t r, size_t c,
                        const char *what)
{
    const size_t n_out = a->w->n_out;
    const double eps = EPS * (4.0 + (double)a->w->blocks);
    const double bias = a->bias ? (double)a->bias[c] : 0.0;
    const double bias_up = a->bias && a->w->pairs ? (double)a->bias[n_out + c] : 0.0;
    const double add = a->add ? (double)a->add[r * a->ldadd + c] : 0.0;
    for (int coarse = 0; coarse < 2; coarse++) {
        const double g = (coarse ? t[0].coarse : t[0].fine) + bias;
        double want = act_double(a->act, g);
        double tol = eps * t[0].size + EPS * fabs(g) + (coarse ? t[0].slack : 0);
        if (a->act) tol = act_slope(a->act, g, tol) * tol + 16 * EPS * fabs(want);
        if (a->w->pairs) {
            const double u = (coarse ? t[1].coarse : t[1].fine) + bias_up;
            const double tol_u = eps * t[1].size + (coarse ? t[1].slack : 0) + EPS * fabs(u);
            tol = tol * (fabs(u) + tol_u) + fabs(want) * tol_u;
            want *= u;
        }
        want += add;
        tol += 2 * EPS * (fabs(want) + fabs(add));
        if (!(fabs((double)got - want) <= tol))
            ktest_fail("[%zu][%zu] want %.9g got %.9g (allowed %.3g, %s); %s", r, c, want,
                       (double)got, tol, coarse ? "float activations" : "integer activations",
                       what);
    }
}

static void check_truth(const qweights *q, const ox_qlinear_args *a, const float *x, const float *y,
                        const char *what)
{
    const size_t k = a->w->k, n_out = a->w->n_out;
    ktest_buf rows = ktest_floats(4 * k);
    float *w = rows.p;
    for (size_t c = 0; c < n_out; c++) {
        qweights_row(q, c, w, w + k);
        if (a->w->pairs) qweights_row(q, n_out + c, w + 2 * k, w + 3 * k);
        for (size_t r = 0; r < a->rows; r++) {
            truth t[2] = {product(w, w + k, x + r * k, a->x, r)};
            if (a->w->pairs) t[1] = product(w + 2 * k, w + 3 * k, x + r * k, a->x, r);
            check_value(y[r * a->ldy + c], a, t, r, c, what);
        }
    }
    ktest_free(&rows);
}

static void run_in_pieces(const ox_kernel_row *row, const ox_qlinear_args *a)
{
    ox_qlinear_fn *fn = (ox_qlinear_fn *)row->fn;
    size_t at = 0;
    while (at < a->w->units) {
        size_t next = at + 1 + ktest_bits() % 3;
        if (next > a->w->units) next = a->w->units;
        fn(a, at, next);
        at = next;
    }
}

static void run_by_row(const ox_kernel_row *row, const ox_qlinear_args *a, float *y)
{
    for (size_t r = 0; r < a->rows; r++) {
        ox_qact one = *a->x;
        ox_qlinear_args b = *a;
        one.data += r * (size_t)one.planes * one.ld;
        b.x = &one;
        b.rows = 1;
        b.y = y + r * a->ldy;
        if (a->add) b.add = a->add + r * a->ldadd;
        ((ox_qlinear_fn *)row->fn)(&b, 0, a->w->units);
    }
}

static void fill_x(float *x, const shape *s)
{
    ktest_fill(x, s->m * s->k, -2.0f, 2.0f);
    for (size_t i = 0; s->extreme_x && i < s->m * s->k; i++)
        x[i] = s->extreme_x == 1 ? 1.0f : s->extreme_x == 2 ? -1.0f : i % 3 ? 1.0f : -1.0f;
}

static void check(const ox_kernel_row *row, qform f, shape s)
{
    char what[160];
    snprintf(what, sizeof(what),
             "bits %d block %d zeros %d f16 %d m %zu n %zu k %zu pairs %d act %d planes %d", f.bits,
             f.block, f.zeros, f.f16, s.m, s.n, s.k, s.pairs, s.act, s.planes);
    qweights q;
    qweights_open(&q, f, s.n, s.k, s.pairs ? s.n / 2 : s.n - s.n / 3, s.pairs);
    const ox_qpack *p = &q.pack;
    if (row->accepts && !row->accepts(&(ox_qlinear_args){.w = p, .rows = 256})) {
        qweights_close(&q);
        return;
    }
    ox_qact act = ox_qact_shape(s.m, s.k, p->code.block, p->code.bits, s.planes);
    size_t bytes = 0;
    if (!ox_qact_bytes(&act, &bytes)) ktest_fail("no bytes");
    const size_t ldy = p->n_out + 3;
    ktest_buf data = ktest_bytes(bytes), x = ktest_floats(s.m * s.k), bias = ktest_floats(s.n);
    ktest_buf y = ktest_floats(s.m * ldy), want = ktest_floats(s.m * ldy);
    ktest_buf add = ktest_floats(s.m * ldy);
    act.data = data.p;
    fill_x(x.p, &s);
    ktest_fill(bias.p, s.n, -0.5f, 0.5f);
    ktest_fill(add.p, s.m * ldy, -1.0f, 1.0f);
    memcpy(y.p, add.p, y.n);
    memcpy(want.p, add.p, y.n);
    ox_quantize_ref(&(ox_quantize_args){.x = x.p, .ldx = s.k, .y = &act}, 0, s.m);
    ox_qlinear_args a = {.w = p, .x = &act, .rows = s.m, .y = want.p, .ldy = ldy, .act = s.act};
    if (s.bias) a.bias = bias.p;
    if (s.add) a.add = add.p, a.ldadd = ldy;
    ox_qlinear_ref(&a, 0, p->units);
    a.y = y.p;
    if (s.add) a.add = y.p; /* in place */
    run_in_pieces(row, &a);
    ktest_same(row, y.p, want.p, s.m * ldy, s.k, 0.0f, "%s", what);
    a.add = s.add ? add.p : NULL;
    check_truth(&q, &a, x.p, y.p, what);
    run_by_row(row, &a, want.p);
    ktest_same(row, want.p, y.p, s.m * ldy, s.k, 0.0f, "row by row; %s", what);
    ktest_free(&data);
    ktest_free(&x);
    ktest_free(&bias);
    ktest_free(&y);
    ktest_free(&want);
    ktest_free(&add);
    qweights_close(&q);
}

static void check_nan_stays_in_its_row(const ox_kernel_row *row)
{
    enum { M = 11, N = 40, K = 64 };
    qweights q;
    qweights_open(&q, (qform){4, 32, 2, true, 0}, N, K, N, false);
    ox_qact act = ox_qact_shape(M, K, 32, 4, 1);
    ktest_buf data = ktest_bytes(M * act.ld), x = ktest_floats(M * K), y = ktest_floats(M * N);
    act.data = data.p;
    float *xs = x.p, *ys = y.p;
    ktest_fill(xs, M * K, -1.0f, 1.0f);
    xs[3 * K + 40] = NAN;
    xs[9 * K + 1] = INFINITY;
    ox_quantize_ref(&(ox_quantize_args){.x = xs, .ldx = K, .y = &act}, 0, M);
    const ox_qlinear_args a = {.w = &q.pack, .x = &act, .rows = M, .y = ys, .ldy = N};
    ((ox_qlinear_fn *)row->fn)(&a, 0, q.pack.units);
    for (size_t i = 0; i < M * N; i++)
        if ((i / N == 3 || i / N == 9) != !!isnan(ys[i]))
            ktest_fail("NaN and infinity: row %zu column %zu is %g", i / N, i % N, (double)ys[i]);
    ktest_free(&data);
    ktest_free(&x);
    ktest_free(&y);
    qweights_close(&q);
}

static void check_form(const ox_kernel_row *row, qform f, size_t i)
{
    static const size_t ms[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64};
    static const size_t ns[] = {1, 31, 32, 33, 48, 70, 96};
    static const size_t ks[] = {1, 16, 31, 32, 40, 64, 100, 136, 256};
    for (size_t j = 0; j < OX_COUNT(ms); j++) {
        const size_t t = i * 7 + j;
        shape s = {.m = ms[j], .n = ns[t % OX_COUNT(ns)], .k = ks[(t * 5 + i) % OX_COUNT(ks)]};
        s.planes = 1 + (int)(j + i) % 2;
        s.bias = t & 1;
        s.add = t & 2;
        s.pairs = t % 3 == 0;
        if (s.pairs) s.n += s.n % 2;
        if (s.pairs || t % 5 == 0) s.act = (ox_qlinear_act)(t % 7);
        s.extreme_x = f.extreme ? (int)(t % 4) : 0;
        check(row, f, s);
    }
}

void ktest_qlinear(void);
void ktest_qlinear(void)
{
    for (const ox_kernel_row *row = ox_qlinear_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        size_t i = 0;
        for (int form = 0; form < 48; form++) {
            const int32_t blocks[4] = {16, 32, 64, 256};
            const qform f = {form & 1 ? 8 : 4, blocks[form >> 1 & 3], form / 8 % 3, form >= 24, 0};
            check_form(row, f, i++);
        }
        for (int form = 0; form < 36; form++)
            check_form(
                row,
                (qform){form & 1 ? 8 : 4, form & 2 ? 16 : 32, form / 4 % 3, true, 1 + form / 12},
                i++);
        for (int form = 0; form < 12; form++) { /* several pieces of k, several pieces of rows */
            const qform f = {form & 1 ? 8 : 4, form & 2 ? 16 : 32, form / 4, true, 0};
            check(row, f,
                  (shape){.m = 13, .n = 40, .k = 1700, .bias = true, .planes = 1 + form % 2});
            check(row, f,
                  (shape){
                      .m = 2, .n = 34, .k = 1100, .pairs = true, .act = 1, .planes = 2 - form % 2});
        }
        check(row, (qform){4, 32, 2, true, 0},
              (shape){.m = 300, .n = 36, .k = 600, .add = true, .planes = 2});
        check(row, (qform){2, 32, 0, true, 0}, (shape){.m = 3, .n = 36, .k = 96, .planes = 1});
        check_nan_stays_in_its_row(row);
        ktest_end(row);
    }
}
