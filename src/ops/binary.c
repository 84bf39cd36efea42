/* binary.c - operators of two or more tensors with numpy broadcasting, element by element.
 * One driver walks the outputs in chunks, loads each input's lanes through its broadcast strides
 * and folds them into an accumulator; rows give the fold for doubles, int64 and uint64. */
#include "ops/op_internal.h"

#include <assert.h>
#include <math.h>

enum { CHUNK = 512 };

typedef struct zip zip;
typedef ox_lane fold_fn(ox_lane a, ox_lane b, const zip *z);

struct zip {
    fold_fn *fold;
    const ox_node *node;
    ox_lane_class cls, second; /* lane classes of the first and the second input */
    int bits;                  /* of the first input's type */
    bool flag;                 /* Mod: fmod; BitShift: left */
    bool zero;                 /* an integer division by zero is met */
};

#define FF(name, expr)                                                                             \
    static ox_lane name(ox_lane x, ox_lane y, const zip *z)                                        \
    {                                                                                              \
        const double a = x.f, b = y.f;                                                             \
        ox_lane r;                                                                                 \
        (void)z;                                                                                   \
        r.f = expr;                                                                                \
        return r;                                                                                  \
    }
#define II(name, T, field, out, expr)                                                              \
    static ox_lane name(ox_lane x, ox_lane y, const zip *z)                                        \
    {                                                                                              \
        const T a = x.field, b = y.field;                                                          \
        ox_lane r;                                                                                 \
        (void)z;                                                                                   \
        r.out = expr;                                                                              \
        return r;                                                                                  \
    }
#define SAME(name, expr)                                                                           \
    FF(f_##name, expr)                                                                             \
    II(i_##name, int64_t, i, i, expr)                                                              \
    II(u_##name, uint64_t, u, u, expr)
#define COMPARE(name, expr)                                                                        \
    II(f_##name, double, f, i, expr)                                                               \
    II(i_##name, int64_t, i, i, expr)                                                              \
    II(u_##name, uint64_t, u, i, expr)

static double fmod_floor(double a, double b)
{
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t imod(int64_t a, int64_t b, bool c_style)
{
    if (b == 0 || b == -1) return 0;
    const int64_t r = a % b;
    return !c_style && r && (r < 0) != (b < 0) ? r + b : r;
}

static uint64_t ipow(uint64_t a, int64_t n)
{
    uint64_t r = 1;
    if (n < 0) return a == 1 ? 1 : 0;
    for (; n; n >>= 1, a *= a)
        if (n & 1) r *= a;
    return r;
}

FF(f_add, a + b)
II(i_add, uint64_t, u, u, a + b)
FF(f_sub, a - b)
II(i_sub, uint64_t, u, u, a - b)
FF(f_mul, a *b)
II(i_mul, uint64_t, u, u, a *b)
FF(f_div, a / b)
II(i_div, int64_t, i, i, b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
II(u_div, uint64_t, u, u, b ? a / b : 0)
FF(f_mod, z->flag ? fmod(a, b) : fmod_floor(a, b))
II(i_mod, int64_t, i, i, imod(a, b, z->flag))
II(u_mod, uint64_t, u, u, b ? a % b : 0)
FF(f_prelu, a < 0 ? a * b : a)
II(i_prelu, int64_t, i, i, a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a)
II(u_prelu, uint64_t, u, u, a + 0 * b)
FF(f_max, isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b)
II(i_max, int64_t, i, i, a > b ? a : b)
II(u_max, uint64_t, u, u, a > b ? a : b)
FF(f_min, isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b)
II(i_min, int64_t, i, i, a < b ? a : b)
II(u_min, uint64_t, u, u, a < b ? a : b)
II(i_and, uint64_t, u, u, a &b)
II(i_or, uint64_t, u, u, a | b)
II(i_xor, uint64_t, u, u, a ^ b)
COMPARE(equal, a == b)
COMPARE(less, a < b)
COMPARE(less_equal, a <= b)
COMPARE(greater, a > b)
COMPARE(greater_equal, a >= b)

/* The base's type wins; the exponent has its own. */
static ox_lane pow_any(ox_lane x, ox_lane y, const zip *z)
{
    ox_lane r;
    const double e = z->second == OX_LANE_F   ? y.f
                     : z->second == OX_LANE_I ? (double)y.i
                                              : (double)y.u;
    if (z->cls == OX_LANE_F) {
        r.f = pow(x.f, e);
    } else if (z->second == OX_LANE_F) {
        const double v = pow(z->cls == OX_LANE_I ? (double)x.i : (double)x.u, e);
        r.i = ox_lane_int(v);
    } else {
        r.u = ipow(x.u, y.i);
    }
    return r;
}

static ox_lane shift(ox_lane x, ox_lane y, const zip *z)
{
    ox_lane r;
    if (z->flag)
        r.u = y.u < (uint64_t)z->bits ? x.u << y.u : 0;
    else if (z->cls == OX_LANE_U)
        r.u = y.u < 64 ? x.u >> y.u : 0;
    else
        r.i = y.u < 64 ? x.i >> y.u : x.i < 0 ? -1 : 0;
    return r;
}

static const struct binary {
    const char *name;
    fold_fn *f, *i, *u;
    bool to_bool;
} rows[] = {
    {"Add", f_add, i_add, i_add, false},
    {"Sum", f_add, i_add, i_add, false},
    {"Mean", f_add, i_add, i_add, false},
    {"Sub", f_sub, i_sub, i_sub, false},
    {"Mul", f_mul, i_mul, i_mul, false},
    {"Div", f_div, i_div, u_div, false},
    {"Mod", f_mod, i_mod, u_mod, false},
    {"Pow", pow_any, pow_any, pow_any, false},
    {"PRelu", f_prelu, i_prelu, u_prelu, false},
    {"Max", f_max, i_max, u_max, false},
    {"Min", f_min, i_min, u_min, false},
    {"And", i_and, i_and, i_and, false},
    {"Or", i_or, i_or, i_or, false},
    {"Xor", i_xor, i_xor, i_xor, false},
    {"BitwiseAnd", i_and, i_and, i_and, false},
    {"BitwiseOr", i_or, i_or, i_or, false},
    {"BitwiseXor", i_xor, i_xor, i_xor, false},
    {"BitShift", shift, shift, shift, false},
    {"Equal", f_equal, i_equal, u_equal, true},
    {"Less", f_less, i_less, u_less, true},
    {"LessOrEqual", f_less_equal, i_less_equal, u_less_equal, true},
    {"Greater", f_greater, i_greater, u_greater, true},
    {"GreaterOrEqual", f_greater_equal, i_greater_equal, u_greater_equal, true},
};

static const struct binary *find(ox_str name)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (ox_str_is(name, rows[i].name)) return &rows[i];
    return NULL;
}

/* Versions before 7 broadcast the second operand from `axis` on when asked to: the shape of b that
 * does the same under numpy rules. */
static ox_status old_broadcast(ox_op_ctx *c, const ox_tensor *a, ox_tensor *b)
{
    const ox_attr *axis = ox_node_attr(c->node, "axis");
    if (c->node->version >= 7 || !ox_node_int(c->node, "broadcast", 0) || !axis) return OX_OK;
    int32_t at;
    OX_TRY(ox_op_axis(c, axis->i, a->rank + 1, &at));
    while (at + b->rank < a->rank && b->rank < OX_RANK_MAX)
        b->dims[b->rank++] = 1;
    return OX_OK;
}

static bool same_shape(const ox_tensor *t, int32_t rank, const int64_t *dims)
{
    return t->rank == rank && !memcmp(t->dims, dims, (size_t)rank * sizeof(*dims));
}

/* out = fold of all inputs; scale multiplies the result (Mean). */
static ox_status zip_run(ox_op_ctx *c, zip *z, const ox_tensor *const *in, size_t n_in,
                         double scale, ox_tensor *out)
{
    int64_t at[OX_RANK_MAX] = {0}, start[OX_RANK_MAX];
    size_t strides[OX_RANK_MAX], index[CHUNK];
    ox_lane x[CHUNK], acc[CHUNK];
    const size_t n = ox_op_size(out);
    assert(n_in);
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t m = n - first < CHUNK ? n - first : CHUNK;
        memcpy(start, at, sizeof(at));
        for (size_t k = 0; k < n_in; k++) {
            ox_lane *to = k ? x : acc;
            if (same_shape(in[k], out->rank, out->dims)) {
                ox_lane_load(in[k]->dtype, in[k]->data, NULL, first, m, to);
            } else {
                ox_op_strides(in[k], out->rank, strides);
                memcpy(at, start, sizeof(at));
                for (size_t i = 0; i < m; i++) {
                    index[i] = ox_op_offset(at, strides, out->rank);
                    (void)ox_op_next(at, out->dims, out->rank);
                }
                ox_lane_load(in[k]->dtype, in[k]->data, index, 0, m, to);
            }
            for (size_t i = 0; k && i < m; i++)
                acc[i] = z->fold(acc[i], x[i], z);
        }
        memcpy(at, start, sizeof(at));
        for (size_t i = 0; i < m; i++) {
            (void)ox_op_next(at, out->dims, out->rank);
            if (scale < 1 || scale > 1) acc[i].f *= scale;
        }
        ox_lane_store(out->dtype, out->data, first, m, acc);
        OX_TRY(ox_op_cancelled(c));
    }
    return OX_OK;
}

ox_status ox_op_eval_binary(ox_op_ctx *c)
{
    const struct binary *r = find(c->node->op_type);
    const ox_tensor *in[OX_OP_LIST];
    ox_tensor second;
    int64_t dims[OX_RANK_MAX];
    int32_t rank;
    ox_tensor *out;
    if (!r) return OP_FAIL_AS(c, OX_UNSUPPORTED, "has no element function");
    if (c->n_in > OX_OP_LIST) return OP_FAIL_AS(c, OX_UNSUPPORTED, "has %zu inputs", c->n_in);
    for (size_t i = 0; i < c->n_in; i++)
        in[i] = ox_op_in(c, i);
    if (c->n_in == 2) {
        second = *in[1];
        OX_TRY(old_broadcast(c, in[0], &second));
        in[1] = &second;
    }
    zip z = {.node = c->node, .cls = ox_lane_class_of(in[0]->dtype)};
    z.second = c->n_in > 1 ? ox_lane_class_of(in[1]->dtype) : z.cls;
    z.bits = ox_dtype_bits(in[0]->dtype);
    z.flag =
        ox_node_int(c->node, "fmod", 0) || ox_str_is(ox_node_str(c->node, "direction", ""), "LEFT");
    z.fold = z.cls == OX_LANE_F ? r->f : z.cls == OX_LANE_U ? r->u : r->i;
    if (!ox_op_broadcast(in, c->n_in, &rank, dims))
        return OP_FAIL(c, "the inputs' shapes do not broadcast");
    OX_TRY(ox_op_out(c, 0, r->to_bool ? OX_DTYPE_BOOL : in[0]->dtype, rank, dims, &out));
    const bool mean = ox_str_is(c->node->op_type, "Mean");
    return zip_run(c, &z, in, c->n_in, mean ? 1.0 / (double)c->n_in : 1.0, out);
}

/* Equal also compares strings. */
ox_status ox_op_eval_equal(ox_op_ctx *c)
{
    const ox_tensor *in[2] = {ox_op_in(c, 0), ox_op_in(c, 1)};
    int64_t dims[OX_RANK_MAX], at[OX_RANK_MAX] = {0};
    size_t sa[OX_RANK_MAX], sb[OX_RANK_MAX];
    int32_t rank;
    ox_tensor *out;
    assert(in[0] && in[1]);
    if (in[0]->dtype != OX_DTYPE_STRING) return ox_op_eval_binary(c);
    if (!ox_op_broadcast(in, 2, &rank, dims))
        return OP_FAIL(c, "the inputs' shapes do not broadcast");
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_BOOL, rank, dims, &out));
    ox_op_strides(in[0], rank, sa);
    ox_op_strides(in[1], rank, sb);
    for (size_t i = 0, n = ox_op_size(out); i < n; i++) {
        const ox_str *a = (const ox_str *)in[0]->data + ox_op_offset(at, sa, rank);
        const ox_str *b = (const ox_str *)in[1]->data + ox_op_offset(at, sb, rank);
        ((uint8_t *)out->data)[i] = ox_str_eq(*a, *b);
        (void)ox_op_next(at, dims, rank);
    }
    return OX_OK;
}

ox_status ox_op_eval_where(ox_op_ctx *c)
{
    const ox_tensor *in[3] = {ox_op_in(c, 0), ox_op_in(c, 1), ox_op_in(c, 2)};
    int64_t dims[OX_RANK_MAX], at[OX_RANK_MAX] = {0};
    size_t s[3][OX_RANK_MAX], width;
    char *cell[2], *to;
    int32_t rank;
    ox_tensor *out;
    if (!ox_op_broadcast(in, 3, &rank, dims))
        return OP_FAIL(c, "the inputs' shapes do not broadcast");
    OX_TRY(ox_op_out(c, 0, in[1]->dtype, rank, dims, &out));
    OX_TRY(ox_op_cells(c, in[1], &cell[0], &width));
    OX_TRY(ox_op_cells(c, in[2], &cell[1], &width));
    OX_TRY(ox_op_cells_out(c, out, &to, &width));
    for (int k = 0; k < 3; k++)
        ox_op_strides(in[k], rank, s[k]);
    for (size_t i = 0, n = ox_op_size(out); i < n; i++) {
        const bool yes = ((const uint8_t *)in[0]->data)[ox_op_offset(at, s[0], rank)] != 0;
        const int k = yes ? 0 : 1;
        memcpy(to + i * width, cell[k] + ox_op_offset(at, s[k + 1], rank) * width, width);
        (void)ox_op_next(at, dims, rank);
    }
    ox_op_cells_done(out, to);
    return OX_OK;
}

/* BiasGelu and FastGelu of the second domain: gelu(x + bias). */
ox_status ox_op_eval_bias_gelu(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *bias = ox_op_in(c, 1);
    const bool fast = ox_str_is(c->node->op_type, "FastGelu");
    const size_t n = ox_op_size(x), nb = bias ? ox_op_size(bias) : 1;
    double *v, *b = NULL;
    ox_tensor *y;
    if (bias && (x->rank < 1 || bias->rank != 1 || bias->dims[0] != x->dims[x->rank - 1]))
        return OP_FAIL(c, "the bias must have the length of the last dimension");
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &b));
    for (size_t i = 0; i < n; i++) {
        const double a = v[i] + (b ? b[i % nb] : 0);
        v[i] = fast ? 0.5 * a * (1 + tanh(0.7978845608 * a + 0.0356774081 * a * a * a))
                    : 0.5 * a * (1 + erf(a * 0.7071067811865476));
    }
    ox_lane_store(y->dtype, y->data, 0, n, (const ox_lane *)v);
    return OX_OK;
}
