/* cast.c - Cast, CastLike and BitCast: every element type to every other, strings included. */
#include "ops/op_internal.h"

#include <math.h>
#include <stdio.h>

enum { CHUNK = 512 };

typedef struct cast {
    ox_dtype from, to;
    bool saturate;
    char round_mode; /* float8e8m0 */
} cast;

/* The reference makes 0 of what a type below 8 bits cannot hold; wider types wrap when stored. */
static int64_t small_int(ox_dtype t, int64_t x)
{
    const int bits = ox_dtype_bits(t);
    if (bits >= 8) return x;
    const bool is_signed = t == OX_DTYPE_I4 || t == OX_DTYPE_I2;
    const int64_t least = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
    return x < least || x >= least + ((int64_t)1 << bits) ? 0 : x;
}

/* Lanes of one class into lanes of the other, as the destination type wants them. */
static void convert(const cast *k, ox_lane *x, size_t n)
{
    const ox_lane_class from = ox_lane_class_of(k->from), to = ox_lane_class_of(k->to);
    if (k->to == OX_DTYPE_BOOL) {
        for (size_t i = 0; i < n; i++)
            x[i].i = from == OX_LANE_F ? !(x[i].f >= 0 && x[i].f <= 0) : x[i].u != 0;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (from == OX_LANE_F && to == OX_LANE_U)
            x[i].u = x[i].f >= 9223372036854775808.0
                         ? (x[i].f >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)x[i].f)
                         : (uint64_t)ox_lane_int(x[i].f);
        else if (from == OX_LANE_F && to == OX_LANE_I)
            x[i].i = small_int(k->to, ox_lane_int(x[i].f));
        else if (from == OX_LANE_I && to == OX_LANE_F)
            x[i].f = (double)x[i].i;
        else if (from == OX_LANE_U && to == OX_LANE_F)
            x[i].f = (double)x[i].u;
    }
}

static void store(const cast *k, void *data, size_t at, size_t n, const ox_lane *x)
{
    const bool small = ox_dtype_bits(k->to) == 8 && ox_lane_class_of(k->to) == OX_LANE_F;
    if (!small || (k->saturate && k->to != OX_DTYPE_F8E8M0)) {
        ox_lane_store(k->to, data, at, n, x);
        return;
    }
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)data)[at + i] = k->to == OX_DTYPE_F8E8M0
                                        ? ox_e8m0_encode(x[i].f, k->saturate, k->round_mode)
                                        : ox_small_float_encode(k->to, x[i].f, k->saturate);
}

static ox_status from_string(ox_op_ctx *c, const cast *k, ox_str s, ox_lane *x)
{
    const ox_lane_class to = ox_lane_class_of(k->to);
    int64_t i;
    uint64_t u;
    double f;
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == '\n'))
        s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\n'))
        s.n--;
    if (to == OX_LANE_U && ox_str_to_u64(s, &u)) {
        x->u = u;
        return OX_OK;
    }
    if (to == OX_LANE_I && ox_str_to_i64(s, &i)) {
        x->i = i;
        return OX_OK;
    }
    ox_str digits = s;
    if (digits.n && digits.p[0] == '+') digits.p++, digits.n--;
    if (!ox_str_to_f64(digits, &f)) {
        const bool minus = s.n && s.p[0] == '-';
        if (minus) digits.p++, digits.n--;
        if (digits.n == 3 && (digits.p[0] == 'I' || digits.p[0] == 'i') && digits.p[2] != 'n' &&
            digits.p[2] != 'N')
            f = minus ? -(double)INFINITY : (double)INFINITY;
        else if (digits.n == 3 && (digits.p[0] == 'N' || digits.p[0] == 'n'))
            f = (double)NAN;
        else
            return OP_FAIL(c, "\"%.*s\" is no number", OX_STR_ARGS(s));
    }
    x->f = f;
    const cast from_f = {.from = OX_DTYPE_F64, .to = k->to};
    convert(&from_f, x, 1);
    return OX_OK;
}

/* Shortest decimal that reads back as the same number of the source type, as Python writes it. */
static int number_text(const cast *k, ox_lane x, char *text, size_t cap)
{
    const ox_lane_class from = ox_lane_class_of(k->from);
    if (k->from == OX_DTYPE_BOOL) return snprintf(text, cap, "%s", x.i ? "True" : "False");
    if (from == OX_LANE_I) return snprintf(text, cap, "%lld", (long long)x.i);
    if (from == OX_LANE_U) return snprintf(text, cap, "%llu", (unsigned long long)x.u);
    if (isnan(x.f)) return snprintf(text, cap, "NaN");
    if (isinf(x.f)) return snprintf(text, cap, x.f > 0 ? "INF" : "-INF");
    int n = 0;
    for (int digits = 1; digits <= 17; digits++) {
        char back[16] = {0}, want[16] = {0};
        double f = 0;
        n = snprintf(text, cap, "%.*g", digits, x.f);
        if (!ox_str_to_f64((ox_str){text, (size_t)n}, &f)) continue;
        const ox_lane a = {.f = f};
        ox_lane_store(k->from, back, 0, 1, &a);
        ox_lane_store(k->from, want, 0, 1, &x);
        if (!memcmp(back, want, sizeof(back))) break;
    }
    if (!strchr(text, '.') && !strchr(text, 'e')) n += snprintf(text + n, cap - (size_t)n, ".0");
    return n;
}

static ox_status cast_tensor(ox_op_ctx *c, const cast *k, const ox_tensor *x)
{
    ox_lane lane[CHUNK];
    char text[64];
    ox_tensor *y;
    if (k->from == k->to) return ox_op_out_value(c, 0, ox_rt_ref(c->in[0]));
    if (!ox_dtype_bits(k->to) || k->to == OX_DTYPE_C64 || k->to == OX_DTYPE_C128 ||
        k->from == OX_DTYPE_C64 || k->from == OX_DTYPE_C128)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "cannot convert %s to %s", ox_dtype_name(k->from),
                          ox_dtype_name(k->to));
    OX_TRY(ox_op_out(c, 0, k->to, x->rank, x->dims, &y));
    for (size_t at = 0, n = ox_op_size(x); at < n; at += CHUNK) {
        const size_t m = n - at < CHUNK ? n - at : CHUNK;
        if (k->from == OX_DTYPE_STRING) {
            for (size_t i = 0; i < m; i++)
                OX_TRY(from_string(c, k, ((const ox_str *)x->data)[at + i], &lane[i]));
        } else {
            ox_lane_load(k->from, x->data, NULL, at, m, lane);
        }
        if (k->to == OX_DTYPE_STRING) {
            for (size_t i = 0; i < m; i++) {
                const int len = number_text(k, lane[i], text, sizeof(text));
                const ox_str s = ox_rt_string(c->mem, text, (size_t)len);
                if (!s.p) return OP_NO_MEMORY(c);
                ((ox_str *)y->data)[at + i] = s;
            }
            continue;
        }
        if (k->from != OX_DTYPE_STRING) convert(k, lane, m);
        store(k, y->data, at, m, lane);
    }
    return OX_OK;
}

static cast cast_of(const ox_node *n, const ox_tensor *x, ox_dtype to)
{
    const ox_str mode = ox_node_str(n, "round_mode", "up");
    return (cast){.from = x->dtype,
                  .to = to,
                  .saturate = ox_node_int(n, "saturate", 1) != 0,
                  .round_mode = mode.n ? mode.p[0] : 'u'};
}

ox_status ox_op_eval_cast(ox_op_ctx *c)
{
    const ox_attr *a = ox_node_attr(c->node, "to");
    if (!a || a->type != OX_ATTR_INT || a->i <= 0 || a->i >= OX_DTYPE_COUNT)
        return OP_FAIL(c, "attribute to must be an element type");
    const cast k = cast_of(c->node, ox_op_in(c, 0), (ox_dtype)a->i);
    return cast_tensor(c, &k, ox_op_in(c, 0));
}

ox_status ox_op_eval_cast_like(ox_op_ctx *c)
{
    const cast k = cast_of(c->node, ox_op_in(c, 0), ox_op_in(c, 1)->dtype);
    return cast_tensor(c, &k, ox_op_in(c, 0));
}

ox_status ox_op_eval_bit_cast(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const int64_t to = ox_node_int(c->node, "to", 0);
    size_t bytes = 0;
    ox_tensor *y;
    if (to <= 0 || to >= OX_DTYPE_COUNT || ox_dtype_bits((ox_dtype)to) != ox_dtype_bits(x->dtype) ||
        x->dtype == OX_DTYPE_STRING || to == OX_DTYPE_STRING)
        return OP_FAIL(c, "cannot reinterpret %s as type %lld", ox_dtype_name(x->dtype),
                       (long long)to);
    OX_TRY(ox_op_out(c, 0, (ox_dtype)to, x->rank, x->dims, &y));
    (void)ox_tensor_bytes(x, &bytes);
    if (bytes) memcpy(y->data, x->data, bytes);
    return OX_OK;
}
