/* reduce.c - the Reduce family, ArgMax and ArgMin, running sums and products, and the softmaxes. */
#include "ops/op_internal.h"

#include <math.h>

typedef enum reduction {
    SUM,
    MEAN,
    MAX,
    MIN,
    PROD,
    L1,
    L2,
    LOG_SUM,
    LOG_SUM_EXP,
    SUM_SQUARE
} reduction;

static const struct {
    const char *name;
    reduction kind;
} rows[] = {
    {"ReduceSum", SUM},
    {"ReduceMean", MEAN},
    {"ReduceMax", MAX},
    {"ReduceMin", MIN},
    {"ReduceProd", PROD},
    {"ReduceL1", L1},
    {"ReduceL2", L2},
    {"ReduceLogSum", LOG_SUM},
    {"ReduceLogSumExp", LOG_SUM_EXP},
    {"ReduceSumSquare", SUM_SQUARE},
};

static double start_f(reduction k)
{
    return k == MAX || k == LOG_SUM_EXP ? -(double)INFINITY
           : k == MIN                   ? (double)INFINITY
                                        : k == PROD;
}

static double step_f(reduction k, double acc, double x)
{
    switch (k) {
    case MAX:
    case LOG_SUM_EXP: /* first pass */
        return isnan(acc) || isnan(x) ? (double)NAN : x > acc ? x : acc;
    case MIN:
        return isnan(acc) || isnan(x) ? (double)NAN : x < acc ? x : acc;
    case PROD:
        return acc * x;
    case L1:
        return acc + fabs(x);
    case L2:
    case SUM_SQUARE:
        return acc + x * x;
    default:
        return acc + x;
    }
}

static int64_t step_i(reduction k, int64_t acc, int64_t x, bool is_unsigned)
{
    const uint64_t a = (uint64_t)acc, b = (uint64_t)x;
    switch (k) {
    case MAX:
        return (is_unsigned ? b > a : x > acc) ? x : acc;
    case MIN:
        return (is_unsigned ? b < a : x < acc) ? x : acc;
    case PROD:
        return (int64_t)(a * b);
    case L1:
        return (int64_t)(a + (!is_unsigned && x < 0 ? 0 - b : b));
    case SUM_SQUARE:
        return (int64_t)(a + b * b);
    default:
        return (int64_t)(a + b);
    }
}

/* What an empty set gives for integers: the type's own extremes. */
static int64_t start_i(reduction k, ox_dtype t)
{
    const int bits = ox_dtype_bits(t);
    const bool is_signed =
        t == OX_DTYPE_I8 || t == OX_DTYPE_I16 || t == OX_DTYPE_I32 || t == OX_DTYPE_I64;
    if (k == PROD) return 1;
    if (k != MAX && k != MIN) return 0;
    if (t == OX_DTYPE_BOOL) return k == MIN;
    if (is_signed) {
        const int64_t least = INT64_MIN >> (64 - bits);
        return k == MAX ? least : -(least + 1);
    }
    return k == MAX ? 0 : (int64_t)(UINT64_MAX >> (64 - bits));
}

typedef struct plan {
    reduction kind;
    size_t strides[OX_RANK_MAX]; /* of the output, 0 on reduced axes */
    size_t n_out, n_in, set;     /* set: elements behind one output */
} plan;

static ox_status reduce_f(ox_op_ctx *c, const plan *p, const ox_tensor *x, ox_tensor *y)
{
    int64_t at[OX_RANK_MAX] = {0};
    double *in, *acc, *sum = NULL;
    void *q;
    OX_TRY(ox_op_doubles(c, x, &in));
    OX_TRY(ox_op_temp(c, p->n_out, sizeof(double), &q));
    acc = q;
    for (size_t i = 0; i < p->n_out; i++)
        acc[i] = start_f(p->kind);
    for (size_t i = 0; i < p->n_in; i++) {
        double *a = &acc[ox_op_offset(at, p->strides, x->rank)];
        *a = step_f(p->kind, *a, in[i]);
        (void)ox_op_next(at, x->dims, x->rank);
    }
    if (p->kind == LOG_SUM_EXP) {
        OX_TRY(ox_op_temp(c, p->n_out, sizeof(double), &q));
        sum = q;
        memset(at, 0, sizeof(at));
        for (size_t i = 0; i < p->n_in; i++) {
            const size_t o = ox_op_offset(at, p->strides, x->rank);
            sum[o] += isinf(acc[o]) ? exp(in[i] > acc[o] || in[i] < acc[o] ? -(double)INFINITY : 0)
                                    : exp(in[i] - acc[o]);
            (void)ox_op_next(at, x->dims, x->rank);
        }
    }
    for (size_t i = 0; i < p->n_out; i++) {
        if (p->kind == MEAN) acc[i] /= (double)p->set;
        if (p->kind == L2) acc[i] = sqrt(acc[i]);
        if (p->kind == LOG_SUM) acc[i] = log(acc[i]);
        if (p->kind == LOG_SUM_EXP && sum) acc[i] += log(sum[i]);
        if (p->kind == LOG_SUM_EXP && !p->set) acc[i] = -(double)INFINITY;
    }
    ox_lane *lanes = (ox_lane *)acc;
    if (!ox_dtype_is_float(y->dtype))
        for (size_t i = 0; i < p->n_out; i++)
            lanes[i].i = ox_lane_int(lanes[i].f);
    ox_lane_store(y->dtype, y->data, 0, p->n_out, lanes);
    return OX_OK;
}

static ox_status reduce_i(ox_op_ctx *c, const plan *p, const ox_tensor *x, ox_tensor *y)
{
    int64_t at[OX_RANK_MAX] = {0}, *in, *acc;
    const bool is_unsigned = x->dtype == OX_DTYPE_U64;
    void *q;
    OX_TRY(ox_op_ints(c, x, &in));
    OX_TRY(ox_op_temp(c, p->n_out, sizeof(int64_t), &q));
    acc = q;
    for (size_t i = 0; i < p->n_out; i++)
        acc[i] = start_i(p->kind, x->dtype);
    for (size_t i = 0; i < p->n_in; i++) {
        int64_t *a = &acc[ox_op_offset(at, p->strides, x->rank)];
        *a = step_i(p->kind, *a, in[i], is_unsigned);
        (void)ox_op_next(at, x->dims, x->rank);
    }
    ox_lane_store(y->dtype, y->data, 0, p->n_out, (const ox_lane *)acc);
    return OX_OK;
}

ox_status ox_op_eval_reduce(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool keep = ox_node_int(c->node, "keepdims", 1) != 0;
    const bool noop = ox_node_int(c->node, "noop_with_empty_axes", 0) != 0;
    int64_t axes[OX_OP_LIST], kept[OX_RANK_MAX], dims[OX_RANK_MAX];
    bool marked[OX_RANK_MAX] = {false};
    plan p = {.n_in = ox_op_size(x), .set = 1};
    int32_t rank = 0;
    ox_tensor *y;
    int n;
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (ox_str_is(c->node->op_type, rows[i].name)) p.kind = rows[i].kind;
    OX_TRY(ox_op_list(c, 1, "axes", axes, &n));
    if (n > 0)
        OX_TRY(ox_op_axes(c, axes, n, x->rank, marked));
    else if (!noop)
        for (int32_t i = 0; i < x->rank; i++)
            marked[i] = true;
    for (int32_t i = 0; i < x->rank; i++) {
        kept[i] = marked[i] ? 1 : x->dims[i];
        if (marked[i]) p.set *= (size_t)x->dims[i];
        if (!marked[i] || keep) dims[rank++] = kept[i];
    }
    const ox_tensor shape = {.rank = x->rank, .dims = {0}};
    ox_tensor full = shape;
    memcpy(full.dims, kept, sizeof(int64_t) * (size_t)x->rank);
    ox_op_strides(&full, x->rank, p.strides);
    OX_TRY(ox_op_out(c, 0, x->dtype, rank, dims, &y));
    p.n_out = ox_op_size(y);
    const bool as_float = ox_dtype_is_float(x->dtype) || p.kind == MEAN || p.kind == L2 ||
                          p.kind == LOG_SUM || p.kind == LOG_SUM_EXP;
    return as_float ? reduce_f(c, &p, x, y) : reduce_i(c, &p, x, y);
}

/* ---- along one axis: [outer, n, inner] ---- */

typedef struct line {
    size_t outer, n, inner;
} line;

static ox_status line_of(ox_op_ctx *c, const ox_tensor *x, int64_t axis, line *l, int32_t *at)
{
    OX_TRY(ox_op_axis(c, axis, x->rank, at));
    l->outer = ox_op_product(x->dims, 0, *at);
    l->n = (size_t)x->dims[*at];
    l->inner = ox_op_product(x->dims, *at + 1, x->rank);
    return OX_OK;
}

ox_status ox_op_eval_arg(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool max = ox_str_is(c->node->op_type, "ArgMax");
    const bool last = ox_node_int(c->node, "select_last_index", 0) != 0;
    const bool keep = ox_node_int(c->node, "keepdims", 1) != 0;
    int64_t dims[OX_RANK_MAX];
    int32_t at, rank = 0;
    ox_tensor *y;
    double *v;
    line l;
    OX_TRY(line_of(c, x, ox_node_int(c->node, "axis", 0), &l, &at));
    for (int32_t i = 0; i < x->rank; i++)
        if (i != at || keep) dims[rank++] = i == at ? 1 : x->dims[i];
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_I64, rank, dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    if (!l.n && ox_op_size(y)) return OP_FAIL(c, "the axis has no elements");
    for (size_t o = 0; o < l.outer; o++) {
        for (size_t k = 0; k < l.inner; k++) {
            size_t best = 0;
            for (size_t i = 1; i < l.n; i++) {
                const double a = v[(o * l.n + i) * l.inner + k],
                             b = v[(o * l.n + best) * l.inner + k];
                if ((max ? a > b : a < b) || (last && a >= b && a <= b)) best = i;
            }
            ((int64_t *)y->data)[o * l.inner + k] = (int64_t)best;
        }
    }
    return OX_OK;
}

ox_status ox_op_eval_cum(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool prod = ox_str_is(c->node->op_type, "CumProd");
    const bool exclusive = ox_node_int(c->node, "exclusive", 0) != 0;
    const bool reverse = ox_node_int(c->node, "reverse", 0) != 0;
    const bool is_float = ox_lane_class_of(x->dtype) == OX_LANE_F;
    int64_t axis;
    int32_t at;
    ox_tensor *y;
    ox_lane *v;
    void *q;
    line l;
    OX_TRY(ox_op_int_in(c, 1, 0, &axis));
    OX_TRY(line_of(c, x, axis, &l, &at));
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_temp(c, ox_op_size(x), sizeof(ox_lane), &q));
    v = q;
    ox_lane_load(x->dtype, x->data, NULL, 0, ox_op_size(x), v);
    for (size_t o = 0; o < l.outer; o++) {
        for (size_t k = 0; k < l.inner; k++) {
            ox_lane acc;
            if (is_float)
                acc.f = prod;
            else
                acc.i = prod;
            for (size_t i = 0; i < l.n; i++) {
                ox_lane *p = &v[(o * l.n + (reverse ? l.n - 1 - i : i)) * l.inner + k];
                const ox_lane before = acc;
                if (is_float)
                    acc.f = prod ? acc.f * p->f : acc.f + p->f;
                else
                    acc.u = prod ? acc.u * p->u : acc.u + p->u;
                *p = exclusive ? before : acc;
            }
        }
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(x), v);
    return OX_OK;
}

typedef enum soft { SOFTMAX, LOG_SOFTMAX, HARDMAX } soft;

static void soft_line(soft kind, double *v, size_t n, size_t step)
{
    double max = -(double)INFINITY, sum = 0;
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(v[i * step] > max)) continue;
        max = v[i * step];
        best = i;
    }
    for (size_t i = 0; i < n && kind != HARDMAX; i++)
        sum += exp(v[i * step] - max);
    for (size_t i = 0; i < n; i++) {
        double *x = &v[i * step];
        *x = kind == HARDMAX   ? i == best
             : kind == SOFTMAX ? exp(*x - max) / sum
                               : *x - max - log(sum);
    }
}

ox_status ox_op_eval_softmax(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool old = c->node->version < 13; /* flattens to two dimensions at the axis */
    const ox_str name = c->node->op_type;
    const soft kind = ox_str_is(name, "Softmax")   ? SOFTMAX
                      : ox_str_is(name, "Hardmax") ? HARDMAX
                                                   : LOG_SOFTMAX;
    int32_t at;
    ox_tensor *y;
    double *v;
    line l;
    const ox_tensor scalar = {.dtype = x->dtype, .rank = 1, .dims = {1}, .data = x->data};
    OX_TRY(line_of(c, x->rank ? x : &scalar, ox_node_int(c->node, "axis", old ? 1 : -1), &l, &at));
    if (old) {
        l.n *= l.inner;
        l.inner = 1;
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    for (size_t o = 0; o < l.outer; o++)
        for (size_t k = 0; k < l.inner; k++)
            soft_line(kind, v + o * l.n * l.inner + k, l.n, l.inner);
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(x), (const ox_lane *)v);
    return OX_OK;
}
