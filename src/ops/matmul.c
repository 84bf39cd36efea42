/* matmul.c - matrix products: MatMul, Gemm, Einsum, Det and the integer and quantised forms. All
 * accumulate in double, or in int64 where the operands are integers. */
#include "ops/op_internal.h"

#include <math.h>

/* Shapes of a numpy matrix product. */
typedef struct mm {
    int64_t m, k, n;
    int32_t rank; /* of the batch */
    int64_t batch[OX_RANK_MAX];
    size_t a_strides[OX_RANK_MAX], b_strides[OX_RANK_MAX]; /* of batches, in elements */
    int32_t out_rank;
    int64_t out[OX_RANK_MAX];
} mm;

static ox_status plan(ox_op_ctx *c, const ox_tensor *a, const ox_tensor *b, mm *p)
{
    ox_tensor x = *a, y = *b;
    if (!a->rank || !b->rank) return OP_FAIL(c, "cannot multiply scalars");
    if (a->rank == 1) {
        x.rank = 2;
        x.dims[1] = x.dims[0];
        x.dims[0] = 1;
    }
    if (b->rank == 1) {
        y.rank = 2;
        y.dims[1] = 1;
    }
    p->m = x.dims[x.rank - 2];
    p->k = x.dims[x.rank - 1];
    p->n = y.dims[y.rank - 1];
    if (y.dims[y.rank - 2] != p->k)
        return OP_FAIL(c, "multiplies rows of %lld with columns of %lld", (long long)p->k,
                       (long long)y.dims[y.rank - 2]);
    x.rank -= 2;
    y.rank -= 2;
    const ox_tensor *both[2] = {&x, &y};
    if (!ox_op_broadcast(both, 2, &p->rank, p->batch))
        return OP_FAIL(c, "the batches do not broadcast");
    ox_op_strides(&x, p->rank, p->a_strides);
    ox_op_strides(&y, p->rank, p->b_strides);
    for (int32_t i = 0; i < p->rank; i++) {
        p->a_strides[i] *= (size_t)(p->m * p->k);
        p->b_strides[i] *= (size_t)(p->k * p->n);
        p->out[i] = p->batch[i];
    }
    p->out_rank = p->rank;
    if (a->rank > 1) p->out[p->out_rank++] = p->m;
    if (b->rank > 1) p->out[p->out_rank++] = p->n;
    return OX_OK;
}

static void product_f(const mm *p, const double *a, const double *b, double *out)
{
    for (int64_t i = 0; i < p->m; i++) {
        double *row = out + i * p->n;
        for (int64_t j = 0; j < p->n; j++)
            row[j] = 0;
        for (int64_t k = 0; k < p->k; k++)
            for (int64_t j = 0; j < p->n; j++)
                row[j] += a[i * p->k + k] * b[k * p->n + j];
    }
}

static void product_i(const mm *p, const int64_t *a, const int64_t *b, int64_t *out)
{
    for (int64_t i = 0; i < p->m; i++) {
        uint64_t *row = (uint64_t *)out + i * p->n;
        for (int64_t j = 0; j < p->n; j++)
            row[j] = 0;
        for (int64_t k = 0; k < p->k; k++)
            for (int64_t j = 0; j < p->n; j++)
                row[j] += (uint64_t)a[i * p->k + k] * (uint64_t)b[k * p->n + j];
    }
}

/* Runs the batches; a and b are doubles, or int64 when ints. */
static ox_status batches(ox_op_ctx *c, const mm *p, const void *a, const void *b, void *out,
                         bool ints)
{
    int64_t at[OX_RANK_MAX] = {0};
    OX_TRY(ox_op_work(c, ox_op_product(p->out, 0, p->out_rank), (size_t)p->k, 1));
    for (size_t i = 0, n = ox_op_product(p->batch, 0, p->rank); i < n; i++) {
        const size_t oa = ox_op_offset(at, p->a_strides, p->rank),
                     ob = ox_op_offset(at, p->b_strides, p->rank);
        const size_t oo = i * (size_t)(p->m * p->n);
        if (ints)
            product_i(p, (const int64_t *)a + oa, (const int64_t *)b + ob, (int64_t *)out + oo);
        else
            product_f(p, (const double *)a + oa, (const double *)b + ob, (double *)out + oo);
        (void)ox_op_next(at, p->batch, p->rank);
        OX_TRY(ox_op_cancelled(c));
    }
    return OX_OK;
}

static ox_status multiply(ox_op_ctx *c, const ox_tensor *a, const ox_tensor *b, double alpha)
{
    const bool ints = !ox_dtype_is_float(a->dtype);
    mm p = {0};
    ox_tensor *y;
    void *x, *w, *out;
    OX_TRY(plan(c, a, b, &p));
    OX_TRY(ox_op_out(c, 0, a->dtype, p.out_rank, p.out, &y));
    const size_t n = ox_op_size(y);
    if (ints) {
        OX_TRY(ox_op_ints(c, a, (int64_t **)&x));
        OX_TRY(ox_op_ints(c, b, (int64_t **)&w));
    } else {
        OX_TRY(ox_op_doubles(c, a, (double **)&x));
        OX_TRY(ox_op_doubles(c, b, (double **)&w));
    }
    OX_TRY(ox_op_temp(c, n, sizeof(double), &out));
    OX_TRY(batches(c, &p, x, w, out, ints));
    for (size_t i = 0; !ints && i < n; i++)
        ((double *)out)[i] *= alpha;
    ox_lane_store(y->dtype, y->data, 0, n, out);
    return OX_OK;
}

ox_status ox_op_eval_matmul(ox_op_ctx *c)
{
    return multiply(c, ox_op_in(c, 0), ox_op_in(c, 1), 1);
}

/* A copy of x with dimensions in order perm. */
static ox_status permuted(ox_op_ctx *c, const ox_tensor *x, const int32_t *perm, ox_tensor *out)
{
    int64_t at[OX_RANK_MAX] = {0};
    size_t s[OX_RANK_MAX], from[OX_RANK_MAX], width = (size_t)ox_dtype_bits(x->dtype) / 8;
    *out = (ox_tensor){.dtype = x->dtype, .rank = x->rank};
    ox_op_strides_of(x->dims, x->rank, from);
    for (int32_t i = 0; i < x->rank; i++) {
        out->dims[i] = x->dims[perm[i]];
        s[i] = from[perm[i]];
    }
    OX_TRY(ox_op_temp(c, ox_op_size(x), width, &out->data));
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        memcpy((char *)out->data + i * width,
               (const char *)x->data + ox_op_offset(at, s, x->rank) * width, width);
        (void)ox_op_next(at, out->dims, x->rank);
    }
    return OX_OK;
}

/* transBatch: the stored order has the row dimension first; trans swaps row and column. */
static ox_status operand(ox_op_ctx *c, const ox_tensor *x, bool trans, bool trans_batch,
                         ox_tensor *out)
{
    int32_t perm[OX_RANK_MAX];
    const int32_t r = x->rank;
    if (r < 2 || (!trans && !trans_batch)) {
        *out = *x;
        return OX_OK;
    }
    for (int32_t i = 0; i < r; i++)
        perm[i] = i;
    if (trans_batch) {
        for (int32_t i = 0; i + 2 < r; i++)
            perm[i] = i + 1;
        perm[r - 2] = 0;
    }
    if (trans) {
        const int32_t t = perm[r - 1];
        perm[r - 1] = perm[r - 2];
        perm[r - 2] = t;
    }
    return permuted(c, x, perm, out);
}

ox_status ox_op_eval_fused_matmul(ox_op_ctx *c)
{
    ox_tensor a, b;
    OX_TRY(operand(c, ox_op_in(c, 0), ox_node_int(c->node, "transA", 0) != 0,
                   ox_node_int(c->node, "transBatchA", 0) != 0, &a));
    OX_TRY(operand(c, ox_op_in(c, 1), ox_node_int(c->node, "transB", 0) != 0,
                   ox_node_int(c->node, "transBatchB", 0) != 0, &b));
    return multiply(c, &a, &b, (double)ox_node_float(c->node, "alpha", 1));
}

ox_status ox_op_eval_gemm(ox_op_ctx *c)
{
    const ox_tensor *bias = ox_op_in(c, 2);
    const double alpha = (double)ox_node_float(c->node, "alpha", 1);
    const double beta = (double)ox_node_float(c->node, "beta", 1);
    ox_tensor a, b, *y;
    mm p = {0};
    double *x, *w, *add;
    size_t s[2] = {0};
    void *out;
    if (ox_op_in(c, 0)->rank != 2 || ox_op_in(c, 1)->rank != 2)
        return OP_FAIL(c, "needs two matrices");
    OX_TRY(operand(c, ox_op_in(c, 0), ox_node_int(c->node, "transA", 0) != 0, false, &a));
    OX_TRY(operand(c, ox_op_in(c, 1), ox_node_int(c->node, "transB", 0) != 0, false, &b));
    OX_TRY(plan(c, &a, &b, &p));
    OX_TRY(ox_op_out(c, 0, a.dtype, 2, p.out, &y));
    OX_TRY(ox_op_doubles(c, &a, &x));
    OX_TRY(ox_op_doubles(c, &b, &w));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &out));
    OX_TRY(batches(c, &p, x, w, out, false));
    double *v = out;
    for (size_t i = 0, n = ox_op_size(y); i < n; i++)
        v[i] *= alpha;
    if (bias) {
        const ox_tensor *both[2] = {y, bias};
        int64_t dims[OX_RANK_MAX];
        int32_t rank;
        if (!ox_op_broadcast(both, 2, &rank, dims) || rank != 2 || dims[0] != p.m || dims[1] != p.n)
            return OP_FAIL(c, "C does not broadcast to the product");
        OX_TRY(ox_op_doubles(c, bias, &add));
        ox_op_strides(bias, 2, s);
        for (size_t i = 0; i < (size_t)p.m; i++)
            for (size_t j = 0; j < (size_t)p.n; j++)
                v[i * (size_t)p.n + j] += beta * add[i * s[0] + j * s[1]];
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), out);
    return OX_OK;
}

/* ---- integers ---- */

/* x - zero point; zero points are one, or one for each row (A) or column (B). */
static ox_status minus_zero(ox_op_ctx *c, const ox_tensor *x, const ox_tensor *zero, bool rows,
                            int64_t **out)
{
    int64_t *z;
    OX_TRY(ox_op_ints(c, x, out));
    if (!zero) return OX_OK;
    OX_TRY(ox_op_ints(c, zero, &z));
    const size_t n = ox_op_size(x), nz = ox_op_size(zero);
    const size_t cols = x->rank ? (size_t)x->dims[x->rank - 1] : 1;
    const size_t n_rows = x->rank > 1 ? (size_t)x->dims[x->rank - 2] : 1;
    if (nz == 1) {
        for (size_t i = 0; i < n; i++)
            (*out)[i] -= z[0];
        return OX_OK;
    }
    if (!cols || !n_rows || !nz) return n ? OP_FAIL(c, "zero points do not fit") : OX_OK;
    const size_t period = rows ? n_rows : cols;
    if (nz != period && nz != n / (rows ? cols : n_rows))
        return OP_FAIL(c, "zero points do not fit");
    for (size_t i = 0; i < n; i++) {
        const size_t line = rows ? i / cols : i / cols / n_rows * cols + i % cols;
        (*out)[i] -= z[line % nz];
    }
    return OX_OK;
}

ox_status ox_op_eval_matmul_integer(ox_op_ctx *c)
{
    mm p = {0};
    int64_t *a, *b;
    ox_tensor *y;
    void *out;
    OX_TRY(plan(c, ox_op_in(c, 0), ox_op_in(c, 1), &p));
    OX_TRY(minus_zero(c, ox_op_in(c, 0), ox_op_in(c, 2), true, &a));
    OX_TRY(minus_zero(c, ox_op_in(c, 1), ox_op_in(c, 3), false, &b));
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_I32, p.out_rank, p.out, &y));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(int64_t), &out));
    OX_TRY(batches(c, &p, a, b, out, true));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), out);
    return OX_OK;
}

/* Scale of row i (A, Y) or column j (B): one, or one each. */
static double scale_at(const double *s, size_t n, size_t i)
{
    return n == 1 ? s[0] : s[i % n];
}

ox_status ox_op_eval_qlinear_matmul(ox_op_ctx *c)
{
    const ox_tensor *a = ox_op_in(c, 0), *b = ox_op_in(c, 3), *zero = ox_op_in(c, 7);
    double *sa, *sb, *sy;
    int64_t *x, *w, *zy;
    mm p = {0};
    ox_tensor *y;
    void *out;
    OX_TRY(plan(c, a, b, &p));
    OX_TRY(minus_zero(c, a, ox_op_in(c, 2), true, &x));
    OX_TRY(minus_zero(c, b, ox_op_in(c, 5), false, &w));
    OX_TRY(ox_op_doubles(c, ox_op_in(c, 1), &sa));
    OX_TRY(ox_op_doubles(c, ox_op_in(c, 4), &sb));
    OX_TRY(ox_op_doubles(c, ox_op_in(c, 6), &sy));
    OX_TRY(ox_op_ints(c, zero, &zy));
    const size_t na = ox_op_size(ox_op_in(c, 1)), nb = ox_op_size(ox_op_in(c, 4));
    const size_t ny = ox_op_size(ox_op_in(c, 6)), nz = ox_op_size(zero);
    if (!na || !nb || !ny || !nz) return OP_FAIL(c, "has an empty scale");
    OX_TRY(ox_op_out(c, 0, zero->dtype, p.out_rank, p.out, &y));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(int64_t), &out));
    OX_TRY(batches(c, &p, x, w, out, true));
    ox_lane *v = out;
    const int bits = ox_dtype_bits(y->dtype);
    const bool is_signed = y->dtype == OX_DTYPE_I8 || y->dtype == OX_DTYPE_I16;
    const double lo = is_signed ? -ldexp(1, bits - 1) : 0,
                 hi = ldexp(1, is_signed ? bits - 1 : bits) - 1;
    for (size_t i = 0, n = ox_op_size(y); i < n; i++) {
        const size_t row = i / (size_t)p.n, col = i % (size_t)p.n;
        const double s = scale_at(sa, na, row) * scale_at(sb, nb, col) / scale_at(sy, ny, row);
        const double q = nearbyint((double)v[i].i * s) + (double)zy[nz == 1 ? 0 : row % nz];
        v[i].i = ox_lane_int(q < lo ? lo : q > hi ? hi : q);
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), v);
    return OX_OK;
}

/* float = a_scale * b_scale * (A - a_zero)(B - b_zero) + bias; scales of B one, or one a column. */
static ox_status scaled_product(ox_op_ctx *c, const int64_t *a, const int64_t *b, const mm *p,
                                double a_scale, const ox_tensor *b_scale, const ox_tensor *bias,
                                ox_dtype t)
{
    double *sb, *add = NULL;
    ox_tensor *y;
    void *out;
    const size_t nb = ox_op_size(b_scale), n = (size_t)p->n;
    if ((nb != 1 && nb != n) || (bias && ox_op_size(bias) != n))
        return OP_FAIL(c, "scales or bias do not fit %zu columns", n);
    OX_TRY(ox_op_doubles(c, b_scale, &sb));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &add));
    OX_TRY(ox_op_out(c, 0, t, p->out_rank, p->out, &y));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(int64_t), &out));
    OX_TRY(batches(c, p, a, b, out, true));
    ox_lane *v = out;
    for (size_t i = 0; i < ox_op_size(y); i++)
        v[i].f = (double)v[i].i * a_scale * sb[nb == 1 ? 0 : i % n] + (add ? add[i % n] : 0);
    ox_lane_store(t, y->data, 0, ox_op_size(y), v);
    return OX_OK;
}

ox_status ox_op_eval_matmul_integer_to_float(ox_op_ctx *c)
{
    const ox_tensor *scale = ox_op_in(c, 2);
    mm p = {0};
    double *sa;
    int64_t *a, *b;
    OX_TRY(plan(c, ox_op_in(c, 0), ox_op_in(c, 1), &p));
    OX_TRY(minus_zero(c, ox_op_in(c, 0), ox_op_in(c, 4), true, &a));
    OX_TRY(minus_zero(c, ox_op_in(c, 1), ox_op_in(c, 5), false, &b));
    if (ox_op_size(scale) != 1) return OP_FAIL(c, "needs one scale of A");
    OX_TRY(ox_op_doubles(c, scale, &sa));
    return scaled_product(c, a, b, &p, sa[0], ox_op_in(c, 3), ox_op_in(c, 6), scale->dtype);
}

/* A is quantised to uint8 as DynamicQuantizeLinear does it. */
ox_status ox_op_eval_dynamic_quantize_matmul(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    mm p = {0};
    int64_t *b, *a;
    void *q;
    float lo = 0, hi = 0;
    double *v;
    const size_t n = ox_op_size(x);
    if (x->dtype != OX_DTYPE_F32) return OP_FAIL(c, "needs float32");
    OX_TRY(plan(c, x, ox_op_in(c, 1), &p));
    OX_TRY(minus_zero(c, ox_op_in(c, 1), ox_op_in(c, 3), false, &b));
    OX_TRY(ox_op_temp(c, n, sizeof(int64_t), &q));
    a = q;
    OX_TRY(ox_op_doubles(c, x, &v));
    for (size_t i = 0; i < n; i++) {
        const float e = (float)v[i];
        lo = e < lo ? e : lo;
        hi = e > hi ? e : hi;
    }
    float s = (hi - lo) / 255;
    if (!(s > 0)) s = 1;
    float zero = nearbyintf(-lo / s);
    zero = zero < 0 ? 0 : zero > 255 ? 255 : zero;
    for (size_t i = 0; i < n; i++) {
        float k = nearbyintf((float)v[i] / s) + zero;
        k = !(k > 0) ? 0 : k > 255 ? 255 : k;
        a[i] = (int64_t)(k - zero);
    }
    return scaled_product(c, a, b, &p, (double)s, ox_op_in(c, 2), ox_op_in(c, 4), OX_DTYPE_F32);
}

ox_status ox_op_eval_det(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    ox_tensor *y;
    double *v;
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return OP_FAIL(c, "needs square matrices");
    const size_t n = (size_t)x->dims[x->rank - 1];
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank - 2, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    for (size_t m = 0, count = ox_op_size(y); m < count; m++, v += n * n) {
        ox_lane det = {.f = 1};
        for (size_t k = 0; k < n; k++) {
            size_t best = k;
            for (size_t i = k + 1; i < n; i++)
                if (fabs(v[i * n + k]) > fabs(v[best * n + k])) best = i;
            if (best != k) det.f = -det.f;
            for (size_t j = 0; best != k && j < n; j++) {
                const double t = v[k * n + j];
                v[k * n + j] = v[best * n + j];
                v[best * n + j] = t;
            }
            det.f *= v[k * n + k];
            if (fabs(v[k * n + k]) <= 0) break;
            for (size_t i = k + 1; i < n; i++) {
                const double f = v[i * n + k] / v[k * n + k];
                for (size_t j = k; j < n; j++)
                    v[i * n + j] -= f * v[k * n + j];
            }
        }
        ox_lane_store(y->dtype, y->data, m, 1, &det);
    }
    return OX_OK;
}
