/* unary.c - operators of one tensor, element by element, computed in double or int64. Rows give the
 * float form, the integer form where the operator takes integers, and attributes with defaults. */
#include "ops/op_internal.h"

#include <math.h>

enum { CHUNK = 512 };

typedef struct params {
    double a, b;
    bool flag;
} params;

typedef double float_fn(double x, const params *p);
typedef int64_t int_fn(int64_t x);

#define F1(name, expr)                                                                             \
    static double name(double x, const params *p)                                                  \
    {                                                                                              \
        (void)p;                                                                                   \
        return expr;                                                                               \
    }
#define I1(name, expr)                                                                             \
    static int64_t name(int64_t x)                                                                 \
    {                                                                                              \
        return expr;                                                                               \
    }

static double sigmoid(double x)
{
    if (x >= 0) return 1 / (1 + exp(-x));
    const double e = exp(x);
    return e / (1 + e);
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

F1(f_abs, fabs(x))
I1(i_abs, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
F1(f_neg, -x)
I1(i_neg, (int64_t)(0 - (uint64_t)x))
F1(f_sign, isnan(x) ? x : (x > 0) - (x < 0))
I1(i_sign, (x > 0) - (x < 0))
F1(f_ceil, ceil(x))
F1(f_floor, floor(x))
F1(f_round, nearbyint(x))
F1(f_sqrt, sqrt(x))
F1(f_exp, exp(x))
F1(f_log, log(x))
F1(f_erf, erf(x))
F1(f_reciprocal, 1 / x)
F1(f_sin, sin(x))
F1(f_cos, cos(x))
F1(f_tan, tan(x))
F1(f_asin, asin(x))
F1(f_acos, acos(x))
F1(f_atan, atan(x))
F1(f_sinh, sinh(x))
F1(f_cosh, cosh(x))
F1(f_tanh, tanh(x))
F1(f_asinh, asinh(x))
F1(f_acosh, acosh(x))
F1(f_atanh, atanh(x))
F1(f_sigmoid, sigmoid(x))
F1(f_relu, x > 0 || isnan(x) ? x : 0)
I1(i_relu, x > 0 ? x : 0)
F1(f_leaky_relu, x < 0 ? p->a * x : x)
F1(f_elu, x < 0 ? p->a * expm1(x) : x)
F1(f_selu, p->b *(x > 0 ? x : p->a * expm1(x)))
F1(f_celu, fmax(x, 0) + fmin(0, p->a *expm1(x / p->a)))
F1(f_thresholded_relu, x > p->a ? x : 0)
F1(f_hard_sigmoid, fmax(0, fmin(1, p->a *x + p->b)))
F1(f_hard_swish, x *fmax(0, fmin(1, x / 6 + 0.5)))
F1(f_softplus, softplus(x))
F1(f_softsign, x / (1 + fabs(x)))
F1(f_mish, x *tanh(softplus(x)))
F1(f_gelu, p->flag ? gelu_tanh(x) : 0.5 * x * (1 + erf(x * 0.7071067811865476)))
F1(f_swish, x *sigmoid(p->a *x))
F1(f_shrink, x<-p->b ? x + p->a : x> p->b ? x - p->a : 0)
F1(f_quick_gelu, x *sigmoid(p->a *x))

static const struct unary {
    const char *name;
    float_fn *f;
    int_fn *i;
    const char *a, *b;
    double a0, b0;
} rows[] = {
    {"Abs", f_abs, i_abs, NULL, NULL, 0, 0},
    {"Neg", f_neg, i_neg, NULL, NULL, 0, 0},
    {"Sign", f_sign, i_sign, NULL, NULL, 0, 0},
    {"Ceil", f_ceil, NULL, NULL, NULL, 0, 0},
    {"Floor", f_floor, NULL, NULL, NULL, 0, 0},
    {"Round", f_round, NULL, NULL, NULL, 0, 0},
    {"Sqrt", f_sqrt, NULL, NULL, NULL, 0, 0},
    {"Exp", f_exp, NULL, NULL, NULL, 0, 0},
    {"Log", f_log, NULL, NULL, NULL, 0, 0},
    {"Erf", f_erf, NULL, NULL, NULL, 0, 0},
    {"Reciprocal", f_reciprocal, NULL, NULL, NULL, 0, 0},
    {"Sin", f_sin, NULL, NULL, NULL, 0, 0},
    {"Cos", f_cos, NULL, NULL, NULL, 0, 0},
    {"Tan", f_tan, NULL, NULL, NULL, 0, 0},
    {"Asin", f_asin, NULL, NULL, NULL, 0, 0},
    {"Acos", f_acos, NULL, NULL, NULL, 0, 0},
    {"Atan", f_atan, NULL, NULL, NULL, 0, 0},
    {"Sinh", f_sinh, NULL, NULL, NULL, 0, 0},
    {"Cosh", f_cosh, NULL, NULL, NULL, 0, 0},
    {"Tanh", f_tanh, NULL, NULL, NULL, 0, 0},
    {"Asinh", f_asinh, NULL, NULL, NULL, 0, 0},
    {"Acosh", f_acosh, NULL, NULL, NULL, 0, 0},
    {"Atanh", f_atanh, NULL, NULL, NULL, 0, 0},
    {"Sigmoid", f_sigmoid, NULL, NULL, NULL, 0, 0},
    {"Relu", f_relu, i_relu, NULL, NULL, 0, 0},
    {"LeakyRelu", f_leaky_relu, NULL, "alpha", NULL, (double)0.01f, 0},
    {"Elu", f_elu, NULL, "alpha", NULL, 1, 0},
    {"Selu", f_selu, NULL, "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875},
    {"Celu", f_celu, NULL, "alpha", NULL, 1, 0},
    {"ThresholdedRelu", f_thresholded_relu, NULL, "alpha", NULL, 1, 0},
    {"HardSigmoid", f_hard_sigmoid, NULL, "alpha", "beta", (double)0.2f, 0.5},
    {"HardSwish", f_hard_swish, NULL, NULL, NULL, 0, 0},
    {"Softplus", f_softplus, NULL, NULL, NULL, 0, 0},
    {"Softsign", f_softsign, NULL, NULL, NULL, 0, 0},
    {"Mish", f_mish, NULL, NULL, NULL, 0, 0},
    {"Gelu", f_gelu, NULL, NULL, NULL, 0, 0},
    {"Swish", f_swish, NULL, "alpha", NULL, 1, 0},
    {"Shrink", f_shrink, NULL, "bias", "lambd", 0, 0.5},
    {"QuickGelu", f_quick_gelu, NULL, "alpha", NULL, (double)1.702f, 0},
};

static const struct unary *find(ox_str name)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (ox_str_is(name, rows[i].name)) return &rows[i];
    return NULL;
}

ox_status ox_op_eval_unary(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const struct unary *r = find(c->node->op_type);
    const ox_lane_class k = ox_lane_class_of(x->dtype);
    ox_lane lane[CHUNK];
    ox_tensor *y;
    if (!r) return OP_FAIL_AS(c, OX_UNSUPPORTED, "has no element function");
    params p = {.a = r->a ? (double)ox_node_float(c->node, r->a, (float)r->a0) : 0,
                .b = r->b ? (double)ox_node_float(c->node, r->b, (float)r->b0) : 0,
                .flag = ox_str_is(ox_node_str(c->node, "approximate", "none"), "tanh")};
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    for (size_t at = 0, n = ox_op_size(x); at < n; at += CHUNK) {
        const size_t m = n - at < CHUNK ? n - at : CHUNK;
        ox_lane_load(x->dtype, x->data, NULL, at, m, lane);
        if (k == OX_LANE_F)
            for (size_t i = 0; i < m; i++)
                lane[i].f = r->f(lane[i].f, &p);
        else if (k == OX_LANE_I && r->i)
            for (size_t i = 0; i < m; i++)
                lane[i].i = r->i(lane[i].i);
        else if (k == OX_LANE_I)
            for (size_t i = 0; i < m; i++)
                lane[i].i = ox_lane_int(r->f((double)lane[i].i, &p));
        else if (ox_str_is(c->node->op_type, "Sign"))
            for (size_t i = 0; i < m; i++)
                lane[i].u = lane[i].u != 0;
        ox_lane_store(y->dtype, y->data, at, m, lane);
    }
    return OX_OK;
}

ox_status ox_op_eval_not(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    ox_tensor *y;
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    for (size_t i = 0, n = ox_op_size(x); i < n; i++)
        ((uint8_t *)y->data)[i] = !((const uint8_t *)x->data)[i];
    return OX_OK;
}

ox_status ox_op_eval_bitwise_not(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    size_t bytes = 0;
    ox_tensor *y;
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    (void)ox_tensor_bytes(x, &bytes);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)y->data)[i] = (uint8_t) ~((const uint8_t *)x->data)[i];
    return OX_OK;
}

ox_status ox_op_eval_is(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool nan = ox_str_is(c->node->op_type, "IsNaN");
    const bool minus = ox_node_int(c->node, "detect_negative", 1) != 0;
    const bool plus = ox_node_int(c->node, "detect_positive", 1) != 0;
    double *v;
    ox_tensor *y;
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_BOOL, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        const bool yes = nan ? isnan(v[i]) : (isinf(v[i]) && (v[i] > 0 ? plus : minus));
        ((uint8_t *)y->data)[i] = yes;
    }
    return OX_OK;
}

ox_status ox_op_eval_identity(ox_op_ctx *c)
{
    return ox_op_out_value(c, 0, ox_rt_ref(c->in[0]));
}

ox_status ox_op_eval_clip(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *lo = ox_op_in(c, 1), *hi = ox_op_in(c, 2);
    const ox_attr *lo_attr = ox_node_attr(c->node, "min"), *hi_attr = ox_node_attr(c->node, "max");
    const ox_lane_class k = ox_lane_class_of(x->dtype);
    ox_lane lane[CHUNK], a = {.f = -(double)INFINITY}, b = {.f = (double)INFINITY};
    ox_tensor *y;
    bool has_a = lo || lo_attr, has_b = hi || hi_attr;
    if ((lo && ox_op_size(lo) != 1) || (hi && ox_op_size(hi) != 1))
        return OP_FAIL(c, "min and max must be single numbers");
    if (lo_attr) a.f = (double)lo_attr->f;
    if (hi_attr) b.f = (double)hi_attr->f;
    if (lo) ox_lane_load(lo->dtype, lo->data, NULL, 0, 1, &a);
    if (hi) ox_lane_load(hi->dtype, hi->data, NULL, 0, 1, &b);
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    for (size_t at = 0, n = ox_op_size(x); at < n; at += CHUNK) {
        const size_t m = n - at < CHUNK ? n - at : CHUNK;
        ox_lane_load(x->dtype, x->data, NULL, at, m, lane);
        for (size_t i = 0; i < m; i++) {
            ox_lane *v = &lane[i];
            if (k == OX_LANE_F) {
                if (has_a && v->f < a.f) v->f = a.f;
                if (has_b && v->f > b.f) v->f = b.f;
            } else if (k == OX_LANE_U) {
                if (has_a && v->u < a.u) v->u = a.u;
                if (has_b && v->u > b.u) v->u = b.u;
            } else {
                if (has_a && v->i < a.i) v->i = a.i;
                if (has_b && v->i > b.i) v->i = b.i;
            }
        }
        ox_lane_store(y->dtype, y->data, at, m, lane);
    }
    return OX_OK;
}

/* Inference only: the ratio is ignored, everything is kept. */
ox_status ox_op_eval_dropout(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *training = ox_op_in(c, 2), *ratio = ox_op_in(c, 1);
    ox_tensor *mask;
    double *r;
    if (training && ox_op_size(training) == 1 && *(const uint8_t *)training->data) {
        if (!ratio) return OP_FAIL_AS(c, OX_UNSUPPORTED, "training mode is not supported");
        OX_TRY(ox_op_doubles(c, ratio, &r));
        if (ox_op_size(ratio) != 1 || r[0] > 0)
            return OP_FAIL_AS(c, OX_UNSUPPORTED, "training mode is not supported");
    }
    OX_TRY(ox_op_out_value(c, 0, ox_rt_ref(c->in[0])));
    if (!ox_op_wants(c, 1)) return OX_OK;
    const ox_dtype t = c->node->version >= 10 ? OX_DTYPE_BOOL : x->dtype;
    const ox_lane one = {.i = 1}, one_f = {.f = 1};
    OX_TRY(ox_op_out(c, 1, t, x->rank, x->dims, &mask));
    for (size_t i = 0, n = ox_op_size(x); i < n; i++)
        ox_lane_store(t, mask->data, i, 1, t == OX_DTYPE_BOOL ? &one : &one_f);
    return OX_OK;
}
