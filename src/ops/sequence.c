/* sequence.c - sequences and optionals, and cutting and joining tensors for them. */
#include "ops/op_internal.h"
#include <assert.h>

/* x[.., i, ..] along the axis, which goes away unless kept. */
ox_status ox_op_take(ox_op_ctx *c, const ox_tensor *x, int32_t axis, int64_t i, bool keep,
                     ox_rt_value **out)
{
    return ox_op_cut(c, x, axis, i, 1, keep, out);
}

ox_status ox_op_cut(ox_op_ctx *c, const ox_tensor *x, int32_t axis, int64_t first, int64_t n,
                    bool keep, ox_rt_value **out)
{
    int64_t dims[OX_RANK_MAX];
    int32_t rank = 0;
    size_t width;
    char *from, *to;
    *out = NULL;
    for (int32_t k = 0; k < x->rank; k++)
        if (k != axis || keep) dims[rank++] = k == axis ? n : x->dims[k];
    ox_rt_value *v = ox_rt_tensor_new(c->mem, x->dtype, rank, dims);
    if (!v) return OP_NO_MEMORY(c);
    *out = v;
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, &v->t, &to, &width));
    const size_t outer = ox_op_product(x->dims, 0, axis),
                 inner = ox_op_product(x->dims, axis + 1, x->rank) * width;
    for (size_t o = 0; inner && n && o < outer; o++)
        memcpy(to + o * (size_t)n * inner,
               from + (o * (size_t)x->dims[axis] + (size_t)first) * inner, (size_t)n * inner);
    ox_op_cells_done(&v->t, to);
    return OX_OK;
}

static bool joins(const ox_tensor *a, const ox_tensor *b, int32_t axis, bool new_axis)
{
    if (a->rank != b->rank || a->dtype != b->dtype) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] && (new_axis || i != axis)) return false;
    return true;
}

ox_status ox_op_stack(ox_op_ctx *c, ox_rt_value *const *items, size_t n, int64_t axis, bool reverse,
                      bool new_axis, ox_rt_value **out)
{
    int64_t dims[OX_RANK_MAX];
    int32_t at;
    size_t width, done = 0;
    char *from, *to;
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (!items[i] || items[i]->kind != OX_RT_TENSOR) return OP_FAIL(c, "can only join tensors");
    if (!n) return OP_FAIL(c, "has nothing to join");
    const ox_tensor *x = &items[0]->t;
    const int32_t rank = x->rank + new_axis;
    if (rank > OX_RANK_MAX) return OP_FAIL_AS(c, OX_UNSUPPORTED, "makes %d dimensions", rank);
    OX_TRY(ox_op_axis(c, axis, rank, &at));
    int64_t length = 0;
    for (size_t i = 0; i < n; i++) {
        if (!joins(x, &items[i]->t, at, new_axis))
            return OP_FAIL(c, "joins tensors of different shapes");
        length += new_axis ? 1 : items[i]->t.dims[at];
    }
    for (int32_t i = 0, k = 0; i < rank; i++)
        dims[i] = i == at ? length : x->dims[new_axis ? k++ : i];
    ox_rt_value *v = ox_rt_tensor_new(c->mem, x->dtype, rank, dims);
    if (!v) return OP_NO_MEMORY(c);
    ox_status st = ox_op_cells_out(c, &v->t, &to, &width);
    const size_t outer = ox_op_product(dims, 0, at);
    const size_t inner = ox_op_product(dims, at + 1, rank) * width, row = (size_t)length * inner;
    for (size_t i = 0; !st && i < n; i++) {
        const ox_tensor *p = &items[reverse ? n - 1 - i : i]->t;
        const size_t bytes = (new_axis ? 1 : (size_t)p->dims[at]) * inner;
        st = ox_op_cells(c, p, &from, &width);
        for (size_t o = 0; !st && bytes && o < outer; o++)
            memcpy(to + o * row + done, from + o * bytes, bytes);
        done += bytes;
    }
    if (st) {
        ox_rt_unref(&v);
        return st;
    }
    ox_op_cells_done(&v->t, to);
    *out = v;
    return OX_OK;
}

/* ---- sequences ---- */

static ox_status position(ox_op_ctx *c, size_t i, size_t n, bool inserting, size_t *at)
{
    int64_t p;
    *at = 0;
    OX_TRY(ox_op_int_in(c, i, inserting ? (int64_t)n : -1, &p));
    if (p < 0) p += (int64_t)n;
    if (p < 0 || (size_t)p >= n + inserting)
        return OP_FAIL(c, "position %lld is outside of %zu items", (long long)p, n);
    *at = (size_t)p;
    return OX_OK;
}

ox_status ox_op_eval_sequence_empty(ox_op_ctx *c)
{
    const int64_t t = ox_node_int(c->node, "dtype", OX_DTYPE_F32);
    if (t <= 0 || t >= OX_DTYPE_COUNT) return OP_FAIL(c, "has the type %lld", (long long)t);
    return ox_op_out_value(c, 0, ox_rt_sequence_new(c->mem, (ox_dtype)t, 0));
}

ox_status ox_op_eval_sequence_construct(ox_op_ctx *c)
{
    ox_rt_value *s = ox_rt_sequence_new(c->mem, c->in[0]->t.dtype, c->n_in);
    if (!s) return OP_NO_MEMORY(c);
    for (size_t i = 0; i < c->n_in; i++)
        s->items[i] = ox_rt_ref(c->in[i]);
    return ox_op_out_value(c, 0, s);
}

ox_status ox_op_eval_sequence_at(ox_op_ctx *c)
{
    size_t at;
    OX_TRY(position(c, 1, c->in[0]->n_items, false, &at));
    return ox_op_out_value(c, 0, ox_rt_ref(c->in[0]->items[at]));
}

ox_status ox_op_eval_sequence_insert(ox_op_ctx *c)
{
    const ox_rt_value *s = c->in[0];
    size_t at;
    if (s->dtype && s->n_items && s->dtype != c->in[1]->dtype)
        return OP_FAIL(c, "inserts another type");
    OX_TRY(position(c, 2, s->n_items, true, &at));
    ox_rt_value *r = ox_rt_sequence_new(c->mem, c->in[1]->dtype, s->n_items + 1);
    if (!r) return OP_NO_MEMORY(c);
    for (size_t i = 0; i < r->n_items; i++)
        r->items[i] = ox_rt_ref(i == at ? c->in[1] : s->items[i < at ? i : i - 1]);
    return ox_op_out_value(c, 0, r);
}

ox_status ox_op_eval_sequence_erase(ox_op_ctx *c)
{
    const ox_rt_value *s = c->in[0];
    size_t at;
    OX_TRY(position(c, 1, s->n_items, false, &at));
    ox_rt_value *r = ox_rt_sequence_new(c->mem, s->dtype, s->n_items - 1);
    if (!r) return OP_NO_MEMORY(c);
    for (size_t i = 0; i < r->n_items; i++)
        r->items[i] = ox_rt_ref(s->items[i < at ? i : i + 1]);
    return ox_op_out_value(c, 0, r);
}

ox_status ox_op_eval_sequence_length(ox_op_ctx *c)
{
    ox_tensor *y;
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_I64, 0, NULL, &y));
    *(int64_t *)y->data = (int64_t)c->in[0]->n_items;
    return OX_OK;
}

ox_status ox_op_eval_concat_from_sequence(ox_op_ctx *c)
{
    const bool new_axis = ox_node_int(c->node, "new_axis", 0) != 0;
    ox_rt_value *v;
    OX_TRY(ox_op_stack(c, c->in[0]->items, c->in[0]->n_items,
                       ox_node_int(c->node, "axis", INT64_MIN), false, new_axis, &v));
    return ox_op_out_value(c, 0, v);
}

ox_status ox_op_eval_split_to_sequence(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *split = ox_op_in(c, 1);
    const bool keep = split || ox_node_int(c->node, "keepdims", 1) != 0;
    int32_t axis;
    int64_t *size = NULL, chunk = 1;
    size_t n, at = 0;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", 0), x->rank, &axis));
    const int64_t d = x->dims[axis];
    if (split) OX_TRY(ox_op_ints(c, split, &size));
    if (split && !split->rank) {
        chunk = size[0];
        if (chunk < 1) return OP_FAIL(c, "has the part size %lld", (long long)chunk);
        n = (size_t)((d + chunk - 1) / chunk);
    } else {
        n = split ? ox_op_size(split) : (size_t)d;
    }
    if (n > 1u << 24) return OP_FAIL_AS(c, OX_LIMIT, "makes %zu parts", n);
    ox_rt_value *s = ox_rt_sequence_new(c->mem, x->dtype, n);
    OX_TRY(ox_op_out_value(c, 0, s));
    for (size_t i = 0; i < n; i++) {
        int64_t len = split && split->rank ? size[i] : chunk;
        if (!(split && split->rank) && len > d - (int64_t)at) len = d - (int64_t)at;
        if (len < 0 || len > d - (int64_t)at) return OP_FAIL(c, "the parts do not fit");
        OX_TRY(ox_op_cut(c, x, axis, (int64_t)at, len, keep, &s->items[i]));
        at += (size_t)len;
    }
    return (int64_t)at == d ? OX_OK : OP_FAIL(c, "the parts do not add up");
}

/* ---- optionals: the value itself, or nothing ---- */

ox_status ox_op_eval_optional(ox_op_ctx *c)
{
    if (c->n_in && c->in[0]) return ox_op_out_value(c, 0, ox_rt_ref(c->in[0]));
    return ox_op_out_value(c, 0, ox_rt_none_new(c->mem));
}

ox_status ox_op_eval_optional_has(ox_op_ctx *c)
{
    ox_tensor *y;
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_BOOL, 0, NULL, &y));
    *(uint8_t *)y->data = c->n_in && c->in[0] && c->in[0]->kind != OX_RT_NONE;
    return OX_OK;
}

ox_status ox_op_eval_optional_get(ox_op_ctx *c)
{
    if (c->in[0]->kind == OX_RT_NONE) return OP_FAIL(c, "the optional holds nothing");
    return ox_op_out_value(c, 0, ox_rt_ref(c->in[0]));
}

/* SequenceMap: the body runs once for each item; other inputs that
 * are sequences advance together. */
ox_status ox_op_eval_sequence_map(ox_op_ctx *c)
{
    const ox_attr *a = ox_node_attr(c->node, "body");
    ox_rt_value *in[OX_OP_LIST], *out[OX_OP_LIST] = {0}, *made[OX_OP_LIST] = {0};
    const ox_rt_value *first = c->in[0];
    ox_status st = OX_OK;
    if (!c->run) return OP_FAIL_AS(c, OX_UNSUPPORTED, "control flow is not allowed here");
    if (!a || a->type != OX_ATTR_GRAPH || !a->g || c->n_out > OX_OP_LIST || c->n_in > OX_OP_LIST ||
        a->g->outputs.n != c->n_out)
        return OP_FAIL(c, "has no fitting body");
    for (size_t k = 0; k < c->n_out; k++) {
        made[k] = ox_rt_sequence_new(c->mem, ox_graph_value(a->g, a->g->outputs.p[k])->dtype,
                                     first->n_items);
        if (!made[k]) OX_TRY_GOTO(OP_NO_MEMORY(c));
    }
    for (size_t i = 0; i < first->n_items; i++) {
        OX_TRY_GOTO(ox_op_cancelled(c));
        for (size_t k = 0; k < c->n_in; k++) {
            in[k] = c->in[k];
            if (!in[k] || in[k]->kind != OX_RT_SEQUENCE) continue;
            if (in[k]->n_items != first->n_items)
                OX_TRY_GOTO(OP_FAIL(c, "its sequences differ in length"));
            in[k] = in[k]->items[i];
        }
        OX_TRY_GOTO(c->run(c, a->g, in, c->n_in, out, c->n_out));
        for (size_t k = 0; k < c->n_out; k++) {
            assert(made[k] && out[k]);
            made[k]->items[i] = out[k];
            made[k]->dtype = out[k]->dtype;
            out[k] = NULL;
        }
    }
    for (size_t k = 0; k < c->n_out; k++) {
        OX_TRY_GOTO(ox_op_out_value(c, k, made[k]));
        made[k] = NULL;
    }
fail:
    for (size_t k = 0; k < c->n_out; k++)
        ox_rt_unref(&made[k]);
    return st;
}
