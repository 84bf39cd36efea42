/* op.c - the catalogue's table and look-up, and what the operators share (op_internal.h). */
#include "ops/op_internal.h"

#include <stdarg.h>

static const ox_op rows[] = {
#define OX_OP(domain, name, since, types, n_out, infer, eval, flags)                               \
    {domain, name, since, types, n_out, ox_op_infer_##infer, ox_op_eval_##eval, flags},
#include "ops/ops.def"
#undef OX_OP
};

size_t ox_op_count(void)
{
    return OX_COUNT(rows);
}

const ox_op *ox_op_at(size_t i)
{
    return &rows[i];
}

const ox_op *ox_op_find(ox_str domain, ox_str name, int32_t version)
{
    const ox_op *best = NULL;
    if (ox_str_is(domain, "ai.onnx")) domain = OX_STR("");
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        if (rows[i].since > version || (best && best->since >= rows[i].since)) continue;
        if (ox_str_is(name, rows[i].name) && ox_str_is(domain, rows[i].domain)) best = &rows[i];
    }
    return best;
}

bool ox_op_keep(void *user, ox_str domain, ox_str name, int32_t version)
{
    (void)user;
    return ox_op_find(domain, name, version) != NULL;
}

/* ---- operators we lack ---- */

typedef struct lack {
    ox_str domain, name, node;
    int32_t version;
    size_t n;
} lack;

typedef OX_VEC(lack) lacks;

static bool add_lacks(const ox_graph *g, void *list)
{
    lacks *l = list;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        size_t k = 0;
        if (n->dead || n->term) continue;
        for (uint32_t j = 0; j < n->n_attrs; j++) {
            const ox_attr *a = &n->attrs[j];
            if (a->type == OX_ATTR_GRAPH && a->g && !add_lacks(a->g, l)) return false;
            for (size_t m = 0; a->type == OX_ATTR_GRAPHS && m < a->n; m++)
                if (!add_lacks(a->graphs[m], l)) return false;
        }
        if (ox_op_find(n->domain, n->op_type, n->version)) continue;
        while (k < l->n &&
               !(ox_str_eq(l->p[k].name, n->op_type) && ox_str_eq(l->p[k].domain, n->domain)))
            k++;
        if (k < l->n)
            l->p[k].n++;
        else if (!ox_vec_push(l, (lack){n->domain, n->op_type, n->name, n->version, 1}))
            return false;
    }
    return true;
}

ox_status ox_op_check_graph(const ox_graph *g, ox_err *err)
{
    lacks l = {0};
    ox_buf text = {0};
    ox_status st = OX_OK;
    if (!add_lacks(g, &l)) OX_TRY_GOTO(OX_FAIL(err, OX_NO_MEMORY, "no memory to check operators"));
    for (size_t i = 0; i < l.n; i++) {
        const lack *x = &l.p[i];
        if (i) ox_buf_put_z(&text, "; ");
        if (x->domain.n) ox_buf_printf(&text, "%.*s.", OX_STR_ARGS(x->domain));
        ox_buf_printf(&text, "%.*s-%d (node \"%.*s\", %zu in all)", OX_STR_ARGS(x->name),
                      x->version, OX_STR_ARGS(x->node), x->n);
    }
    if (l.n)
        OX_TRY_GOTO(OX_FAIL(err, OX_UNSUPPORTED, "operators not supported: %.*s",
                            OX_STR_ARGS(ox_buf_view(&text))));
fail:
    ox_buf_deinit(&text);
    ox_vec_deinit(&l);
    return st;
}

/* ---- failing ---- */

ox_status ox_op_fail_at(const ox_node *n, ox_err *err, const char *where, ox_status st,
                        const char *fmt, ...)
{
    ox_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    ox_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    ox_fail_at(err, where, st, "node \"%.*s\" (%.*s): %.*s", OX_STR_ARGS(n->name),
               OX_STR_ARGS(n->op_type), OX_STR_ARGS(ox_buf_view(&text)));
    ox_buf_deinit(&text);
    return st;
}

ox_status ox_op_no_memory(ox_op_ctx *c, const char *where)
{
    if (c->mem->limit)
        return ox_op_fail_at(c->node, c->err, where, OX_NO_MEMORY,
                             "needs more memory than is left of %zu bytes", c->mem->limit);
    return ox_op_fail_at(c->node, c->err, where, OX_NO_MEMORY, "needs more memory than there is");
}

ox_status ox_op_cancelled(ox_op_ctx *c)
{
    if (c->cancel && *(const volatile bool *)c->cancel)
        return OP_FAIL_AS(c, OX_CANCELLED, "interrupted");
    return OX_OK;
}

ox_status ox_op_work(ox_op_ctx *x, size_t a, size_t b, size_t c)
{
    size_t n;
    if (!ox_size_mul(a, b, &n) || !ox_size_mul(n, c, &n) || (x->work_limit && n > x->work_limit))
        return ox_op_fail_at(x->node, x->err, __func__, OX_LIMIT,
                             "would cost %zu x %zu x %zu multiplications", a, b, c);
    return OX_OK;
}

/* ---- operand types ---- */

static bool is_class(char letter, ox_dtype t)
{
    const ox_lane_class k = ox_lane_class_of(t);
    const int bits = ox_dtype_bits(t);
    switch (letter) {
    case 'f':
    case 'g':
    case 'h':
        return ox_dtype_is_float(t);
    case 'n':
    case 'm':
    case 'r':
        return ox_dtype_is_float(t) ||
               ((k == OX_LANE_I || k == OX_LANE_U) && bits >= 8 && t != OX_DTYPE_BOOL);
    case 'i':
    case 'j':
        return (k == OX_LANE_I || k == OX_LANE_U) && t != OX_DTYPE_BOOL;
    case 'b':
    case 'c':
        return t == OX_DTYPE_BOOL;
    case 's':
        return t == OX_DTYPE_STRING;
    case 'x':
    case 'y':
    case 'z':
        return t == OX_DTYPE_I32 || t == OX_DTYPE_I64;
    case 'k':
    case 'l':
        return t == OX_DTYPE_I64;
    case 'q':
    case 'p':
    case 'o':
        return k != OX_LANE_NONE;
    default:
        return true; /* a d e v w */
    }
}

static ox_status check_input(ox_op_ctx *c, char letter, size_t i, ox_dtype *bound)
{
    const ox_rt_value *v = c->in[i];
    if (letter == 'v' || letter == 'w') return OX_OK;
    if (letter == 'S') {
        if (v->kind == OX_RT_SEQUENCE) return OX_OK;
        return OP_FAIL(c, "input %zu must be a sequence", i);
    }
    if (v->kind != OX_RT_TENSOR) return OP_FAIL(c, "input %zu must be a tensor", i);
    if (!is_class(letter, v->t.dtype))
        return OP_FAIL(c, "input %zu has type %s, which the operator does not take", i,
                       ox_dtype_name(v->t.dtype));
    ox_dtype *b = &bound[letter - 'a'];
    if (*b && *b != v->t.dtype)
        return OP_FAIL(c, "input %zu has type %s, but an earlier one %s: they must agree", i,
                       ox_dtype_name(v->t.dtype), ox_dtype_name(*b));
    *b = v->t.dtype;
    return OX_OK;
}

static ox_status check_operands(const ox_op *op, ox_op_ctx *c)
{
    ox_dtype bound[26] = {OX_DTYPE_NONE};
    size_t i = 0;
    for (const char *p = op->types; *p; p++) {
        const char letter = *p, mode = p[1];
        if (mode == '*' || mode == '+') {
            if (mode == '+' && i >= c->n_in) return OP_FAIL(c, "has too few inputs");
            for (; i < c->n_in; i++) {
                if (!c->in[i]) return OP_FAIL(c, "input %zu is missing", i);
                OX_TRY(check_input(c, letter, i, bound));
            }
            p++;
            continue;
        }
        if (mode == '?') p++;
        if (i >= c->n_in || !c->in[i]) {
            if (mode != '?') return OP_FAIL(c, "input %zu is missing", i);
            i++;
            continue;
        }
        OX_TRY(check_input(c, letter, i, bound));
        i++;
    }
    if (c->n_in > i) return OP_FAIL(c, "has %zu inputs, more than %zu", c->n_in, i);
    if (op->n_out >= 0 && c->n_out > (size_t)op->n_out)
        return OP_FAIL(c, "has %zu outputs, more than %d", c->n_out, op->n_out);
    return OX_OK;
}

ox_status ox_op_eval(const ox_op *op, ox_op_ctx *c)
{
    ox_status st = check_operands(op, c);
    const size_t used = c->mem->used;
    if (!st) st = op->eval(c);
    if (c->temp.used_bytes) ox_rt_release(c->mem, c->temp.used_bytes);
    (void)used;
    ox_arena_deinit(&c->temp);
    for (size_t i = 0; !st && i < c->n_out; i++)
        if (ox_op_wants(c, i) && !c->out[i])
            st = OP_FAIL_AS(c, OX_UNSUPPORTED, "output %zu is not supported", i);
    for (size_t i = 0; st && i < c->n_out; i++)
        ox_rt_unref(&c->out[i]);
    return st;
}

ox_status ox_op_infer(const ox_op *op, ox_infer_ctx *c)
{
    return op->infer ? op->infer(c) : OX_OK;
}

/* ---- outputs and scratch ---- */

ox_status ox_op_out_value(ox_op_ctx *c, size_t i, ox_rt_value *v)
{
    if (!v) return OP_NO_MEMORY(c);
    if (i >= c->n_out) {
        ox_rt_unref(&v);
        return OX_OK;
    }
    ox_rt_unref(&c->out[i]);
    c->out[i] = v;
    return OX_OK;
}

ox_status ox_op_out(ox_op_ctx *c, size_t i, ox_dtype t, int32_t rank, const int64_t *dims,
                    ox_tensor **out)
{
    if (rank > OX_RANK_MAX)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "output %zu would have %d dimensions, more than %d", i,
                          rank, OX_RANK_MAX);
    if (i >= c->n_out) { /* nobody wants it: scratch */
        void *p;
        size_t bytes;
        OX_TRY(ox_op_temp(c, 1, sizeof(**out), &p));
        *out = p;
        **out = (ox_tensor){.dtype = t, .rank = rank};
        if (rank) memcpy((*out)->dims, dims, (size_t)rank * sizeof(*dims));
        if (!ox_tensor_bytes(*out, &bytes)) return OP_NO_MEMORY(c);
        return ox_op_temp(c, bytes, 1, &(*out)->data);
    }
    ox_rt_value *v = ox_rt_tensor_new(c->mem, t, rank, dims);
    if (!v) return OP_NO_MEMORY(c);
    *out = &v->t;
    return ox_op_out_value(c, i, v);
}

ox_status ox_op_out_view(ox_op_ctx *c, size_t i, size_t k, int32_t rank, const int64_t *dims)
{
    size_t n;
    if (rank > OX_RANK_MAX || !ox_dims_count(dims, rank, &n) || n != ox_op_size(&c->in[k]->t))
        return OP_FAIL(c, "input %zu cannot take the new shape: the number of elements differs", k);
    return ox_op_out_value(c, i, ox_rt_tensor_share(c->in[k], rank, dims));
}

ox_status ox_op_temp(ox_op_ctx *c, size_t n, size_t size, void **p)
{
    size_t bytes;
    *p = NULL;
    if (!ox_size_mul(n, size, &bytes)) return OP_NO_MEMORY(c);
    if (!bytes) bytes = 1;
    const size_t before = c->temp.used_bytes;
    if (!ox_rt_charge(c->mem, bytes)) return OP_NO_MEMORY(c);
    *p = ox_arena_take(&c->temp, bytes);
    ox_rt_release(c->mem, bytes);
    if (!*p) return OP_NO_MEMORY(c);
    c->mem->used += c->temp.used_bytes - before;
    return OX_OK;
}

ox_status ox_op_doubles(ox_op_ctx *c, const ox_tensor *t, double **p)
{
    const size_t n = ox_op_size(t);
    const ox_lane_class k = ox_lane_class_of(t->dtype);
    void *q;
    OX_TRY(ox_op_temp(c, n, sizeof(ox_lane), &q));
    ox_lane *x = q;
    ox_lane_load(t->dtype, t->data, NULL, 0, n, x);
    *p = q;
    if (k == OX_LANE_I)
        for (size_t i = 0; i < n; i++)
            x[i].f = (double)x[i].i;
    if (k == OX_LANE_U)
        for (size_t i = 0; i < n; i++)
            x[i].f = (double)x[i].u;
    return OX_OK;
}

ox_status ox_op_ints(ox_op_ctx *c, const ox_tensor *t, int64_t **p)
{
    const size_t n = ox_op_size(t);
    void *q;
    OX_TRY(ox_op_temp(c, n, sizeof(ox_lane), &q));
    ox_lane *x = q;
    ox_lane_load(t->dtype, t->data, NULL, 0, n, x);
    *p = q;
    if (ox_lane_class_of(t->dtype) == OX_LANE_F)
        for (size_t i = 0; i < n; i++)
            x[i].i = ox_lane_int(x[i].f);
    return OX_OK;
}

ox_status ox_op_cells(ox_op_ctx *c, const ox_tensor *t, char **p, size_t *width)
{
    const int bits = ox_dtype_bits(t->dtype);
    const size_t n = ox_op_size(t);
    void *q;
    *width = bits < 8 ? 1 : (size_t)bits / 8;
    *p = t->data;
    if (bits >= 8) return OX_OK;
    OX_TRY(ox_op_temp(c, n, 1, &q));
    const uint8_t *from = t->data;
    uint8_t *to = q;
    for (size_t i = 0; i < n; i++) {
        const size_t bit = i * (size_t)bits;
        to[i] = (uint8_t)(from[bit / 8] >> bit % 8 & ((1u << bits) - 1));
    }
    *p = q;
    return OX_OK;
}

ox_status ox_op_cells_out(ox_op_ctx *c, ox_tensor *t, char **p, size_t *width)
{
    const int bits = ox_dtype_bits(t->dtype);
    void *q;
    *width = bits < 8 ? 1 : (size_t)bits / 8;
    *p = t->data;
    if (bits >= 8) return OX_OK;
    OX_TRY(ox_op_temp(c, ox_op_size(t), 1, &q));
    *p = q;
    return OX_OK;
}

void ox_op_cells_done(ox_tensor *t, const char *p)
{
    const int bits = ox_dtype_bits(t->dtype);
    uint8_t *to = t->data;
    if (bits >= 8) return;
    for (size_t i = 0, n = ox_op_size(t); i < n; i++) {
        const size_t bit = i * (size_t)bits;
        to[bit / 8] = (uint8_t)(to[bit / 8] | (unsigned)(uint8_t)p[i] << bit % 8);
    }
}

/* ---- small integer operands ---- */

ox_status ox_op_int_in(ox_op_ctx *c, size_t i, int64_t otherwise, int64_t *out)
{
    const ox_tensor *t = ox_op_in(c, i);
    ox_lane x;
    *out = otherwise;
    if (!t) return OX_OK;
    if (ox_op_size(t) != 1 || ox_lane_class_of(t->dtype) != OX_LANE_I)
        return OP_FAIL(c, "input %zu must be one integer", i);
    ox_lane_load(t->dtype, t->data, NULL, 0, 1, &x);
    *out = x.i;
    return OX_OK;
}

ox_status ox_op_attr_list(ox_op_ctx *c, const char *attr, int64_t *list, int *n)
{
    const ox_attr *a = ox_node_attr(c->node, attr);
    *n = -1;
    if (!a || a->type != OX_ATTR_INTS) return OX_OK;
    if (a->n > OX_OP_LIST)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "attribute %s has %zu entries", attr, a->n);
    if (a->n) memcpy(list, a->ints, a->n * sizeof(*list));
    *n = (int)a->n;
    return OX_OK;
}

ox_status ox_op_list(ox_op_ctx *c, size_t i, const char *attr, int64_t *list, int *n)
{
    const ox_tensor *t = ox_op_in(c, i);
    *n = -1;
    if (!t) return attr ? ox_op_attr_list(c, attr, list, n) : OX_OK;
    const size_t k = ox_op_size(t);
    if (t->rank > 1 || (ox_lane_class_of(t->dtype) != OX_LANE_I))
        return OP_FAIL(c, "input %zu must be a list of integers", i);
    if (k > OX_OP_LIST) return OP_FAIL_AS(c, OX_UNSUPPORTED, "input %zu has %zu entries", i, k);
    ox_lane_load(t->dtype, t->data, NULL, 0, k, (ox_lane *)list);
    *n = (int)k;
    return OX_OK;
}

ox_status ox_op_axis(ox_op_ctx *c, int64_t axis, int32_t rank, int32_t *out)
{
    *out = 0;
    if (axis < -rank || axis >= rank)
        return OP_FAIL(c, "axis %lld is outside of %d dimensions", (long long)axis, rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return OX_OK;
}

ox_status ox_op_axes(ox_op_ctx *c, const int64_t *list, int n, int32_t rank, bool *marked)
{
    for (int i = 0; i < n; i++) {
        int32_t a;
        OX_TRY(ox_op_axis(c, list[i], rank, &a));
        if (marked[a]) return OP_FAIL(c, "axis %d is given twice", a);
        marked[a] = true;
    }
    return OX_OK;
}

bool ox_op_broadcast(const ox_tensor *const *in, size_t n, int32_t *rank, int64_t *dims)
{
    *rank = 0;
    for (size_t i = 0; i < n; i++)
        if (in[i] && in[i]->rank > *rank) *rank = in[i]->rank;
    for (int32_t k = 0; k < *rank; k++)
        dims[k] = 1;
    for (size_t i = 0; i < n; i++) {
        for (int32_t k = 0; in[i] && k < in[i]->rank; k++) {
            int64_t *d = &dims[*rank - in[i]->rank + k];
            if (in[i]->dims[k] == 1 || in[i]->dims[k] == *d) continue;
            if (*d != 1) return false;
            *d = in[i]->dims[k];
        }
    }
    return true;
}

void ox_op_strides(const ox_tensor *t, int32_t rank, size_t *strides)
{
    size_t s = 1;
    for (int32_t i = 0; i < rank; i++)
        strides[i] = 0;
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        if (t->dims[i] != 1) strides[rank - t->rank + i] = s;
        s *= (size_t)t->dims[i];
    }
}
