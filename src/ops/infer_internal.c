/* infer_internal.c - see infer_internal.h. */
#include "ops/infer_internal.h"

#include <stdio.h>

void ox_infer_set(ox_infer_ctx *c, size_t i, ox_dtype t, int32_t rank, const int64_t *dims)
{
    if (i >= c->n_out) return;
    ox_op_info *o = &c->out[i];
    o->dtype = t;
    o->rank = rank > OX_RANK_MAX ? -1 : rank;
    for (int32_t k = 0; k < o->rank; k++)
        o->dims[k] = dims[k];
}

void ox_infer_like(ox_infer_ctx *c, size_t i, const ox_op_info *x, ox_dtype t)
{
    if (x)
        ox_infer_set(c, i, t, x->rank, x->dims);
    else if (i < c->n_out)
        c->out[i].dtype = t;
}

int ox_infer_elems(const ox_op_info *x, ox_op_elem *e)
{
    size_t n = 0;
    if (!x) return -1;
    if (x->constant) {
        const ox_tensor *t = x->constant;
        if (ox_lane_class_of(t->dtype) != OX_LANE_I || t->rank > 1 || !ox_tensor_count(t, &n) ||
            n > OX_OP_ELEMS)
            return -1;
        for (size_t i = 0; i < n; i++) {
            ox_lane v;
            ox_lane_load(t->dtype, t->data, NULL, i, 1, &v);
            e[i] = (ox_op_elem){v.i, OX_ELEM_VALUE};
        }
        return (int)n;
    }
    if (x->n_elems >= 0) {
        memcpy(e, x->elems, (size_t)x->n_elems * sizeof(*e));
        return x->n_elems;
    }
    /* A list of known length has that many unknown elements. */
    if (x->rank == 0 || (x->rank == 1 && x->dims[0] >= 0 && x->dims[0] <= OX_OP_ELEMS)) {
        n = x->rank ? (size_t)x->dims[0] : 1;
        for (size_t i = 0; i < n; i++)
            e[i] = (ox_op_elem){0, OX_ELEM_UNKNOWN};
        return (int)n;
    }
    return -1;
}

void ox_infer_set_elems(ox_infer_ctx *c, size_t i, const ox_op_elem *e, int n)
{
    if (i >= c->n_out || n < 0 || n > OX_OP_ELEMS) return;
    c->out[i].n_elems = n;
    memcpy(c->out[i].elems, e, (size_t)n * sizeof(*e));
}

bool ox_infer_list(ox_infer_ctx *c, size_t i, const char *attr, int64_t *list, int *n)
{
    const ox_op_info *x = ox_infer_in(c, i);
    ox_op_elem e[OX_OP_ELEMS];
    *n = -1;
    if (!x) {
        const ox_attr *a = attr ? ox_node_attr(c->node, attr) : NULL;
        if (!a || a->type != OX_ATTR_INTS) return true;
        if (a->n > OX_OP_ELEMS) return false;
        if (a->n) memcpy(list, a->ints, a->n * sizeof(*list));
        *n = (int)a->n;
        return true;
    }
    const int k = ox_infer_elems(x, e);
    for (int j = 0; j < k; j++) {
        if (e[j].kind != OX_ELEM_VALUE) return false;
        list[j] = e[j].v;
    }
    *n = k;
    return k >= 0;
}

bool ox_infer_axis(int64_t axis, int32_t rank, int32_t *out)
{
    if (axis < -rank || axis >= rank) return false;
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

static int elem_text(const ox_graph *root, ox_op_elem e, char *text, size_t cap)
{
    if (e.kind == OX_ELEM_VALUE) return snprintf(text, cap, "%lld", (long long)e.v);
    const size_t i = (size_t)(-e.v - 2);
    if (i >= root->symbols.n) return -1;
    const ox_str s = root->symbols.p[i];
    const bool compound = ox_str_find(s, OX_STR(" "), 0) != SIZE_MAX;
    return snprintf(text, cap, compound ? "(%.*s)" : "%.*s", OX_STR_ARGS(s));
}

static ox_op_elem calc_values(int64_t a, int64_t b, char op)
{
    ox_op_elem r = {0, OX_ELEM_VALUE};
    bool bad = false;
    if (op == '+') bad = __builtin_add_overflow(a, b, &r.v);
    if (op == '-') bad = __builtin_sub_overflow(a, b, &r.v);
    if (op == '*') bad = __builtin_mul_overflow(a, b, &r.v);
    if (op == '/' && (b == 0 || b == -1)) bad = true;
    if (op == '/' && !bad) r.v = a / b;
    if (bad) r.kind = OX_ELEM_UNKNOWN;
    return r;
}

ox_op_elem ox_infer_calc(ox_graph *g, ox_op_elem a, ox_op_elem b, char op)
{
    char x[48], y[48], text[112];
    const ox_op_elem unknown = {0, OX_ELEM_UNKNOWN};
    const ox_graph *root = g;
    while (root->parent)
        root = root->parent;
    if (!a.kind || !b.kind) return unknown;
    if (a.kind == OX_ELEM_VALUE && b.kind == OX_ELEM_VALUE) return calc_values(a.v, b.v, op);
    const bool same = a.kind == b.kind && a.v == b.v;
    if (b.kind == OX_ELEM_VALUE && b.v == (op == '*' || op == '/')) return a;
    if (a.kind == OX_ELEM_VALUE && ((op == '+' && a.v == 0) || (op == '*' && a.v == 1))) return b;
    if (op == '*' && ((a.kind == OX_ELEM_VALUE && !a.v) || (b.kind == OX_ELEM_VALUE && !b.v)))
        return (ox_op_elem){0, OX_ELEM_VALUE};
    if (same && op == '-') return (ox_op_elem){0, OX_ELEM_VALUE};
    if (same && op == '/') return (ox_op_elem){1, OX_ELEM_VALUE};
    const int nx = elem_text(root, a, x, sizeof(x)), ny = elem_text(root, b, y, sizeof(y));
    if (nx < 0 || ny < 0 || nx >= (int)sizeof(x) || ny >= (int)sizeof(y)) return unknown;
    const bool swap = (op == '+' || op == '*') && strcmp(x, y) > 0; /* one name for a+b and b+a */
    const int n = snprintf(text, sizeof(text), "%s %c %s", swap ? y : x, op, swap ? x : y);
    const int64_t s = ox_graph_symbol(g, (ox_str){text, (size_t)n});
    return s == OX_DIM_UNKNOWN ? unknown : (ox_op_elem){s, OX_ELEM_DIM};
}

int64_t ox_infer_dim(ox_graph *g, int64_t a, int64_t b, char op)
{
    return ox_dim_of_elem(ox_infer_calc(g, ox_elem_of_dim(a), ox_elem_of_dim(b), op));
}

static int64_t broadcast_dim(int64_t a, int64_t b)
{
    if (a == b || b == 1) return a;
    if (a == 1) return b;
    if (a >= 0) return a; /* the other must be that or 1 */
    if (b >= 0) return b;
    return OX_DIM_UNKNOWN;
}

void ox_infer_broadcast(const ox_op_info *const *in, size_t n, int32_t *rank, int64_t *dims)
{
    *rank = 0;
    for (size_t i = 0; i < n; i++) {
        if (!in[i]) continue;
        if (in[i]->rank < 0) {
            *rank = -1;
            return;
        }
        if (in[i]->rank > *rank) *rank = in[i]->rank;
    }
    for (int32_t k = 0; k < *rank; k++)
        dims[k] = 1;
    for (size_t i = 0; i < n; i++)
        for (int32_t k = 0; in[i] && k < in[i]->rank; k++) {
            int64_t *d = &dims[*rank - in[i]->rank + k];
            *d = broadcast_dim(*d, in[i]->dims[k]);
        }
}
