/* weights.c - constants as weight objects. Nothing is copied but small vectors that a file writes
 * as arithmetic (gamma + 1) or in a type that weights do not have. */
#include "opt/opt_internal.h"

enum { WALK_MAX = 16, VECTOR_MAX = 1 << 24 };

static bool same_weight(const ox_weight *a, const ox_weight *b)
{
    const ox_nbits *x = &a->nbits, *y = &b->nbits;
    return a->format == b->format && a->rows == b->rows && a->cols == b->cols &&
           a->data == b->data && a->transposed == b->transposed && x->bits == y->bits &&
           x->block == y->block && x->codes == y->codes && x->scales == y->scales &&
           x->zeros == y->zeros && x->g_idx == y->g_idx;
}

ox_status ox_opt_share(ox_opt *o, const ox_weight *w, const ox_weight **out)
{
    for (size_t i = 0; i < o->weights.n; i++) {
        *out = o->weights.p[i];
        if (same_weight(*out, w)) return OX_OK;
    }
    ox_weight *copy = ox_arena_take(o->arena, sizeof(*copy));
    *out = copy;
    if (!copy || !ox_vec_push(&o->weights, copy))
        return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for weight \"%.*s\"", OX_STR_ARGS(w->name));
    *copy = *w;
    return OX_OK;
}

static bool float_format(ox_dtype t, ox_format *f)
{
    *f = t == OX_DTYPE_F16 ? OX_FORMAT_F16 : t == OX_DTYPE_BF16 ? OX_FORMAT_BF16 : OX_FORMAT_F32;
    return t == OX_DTYPE_F32 || t == OX_DTYPE_F16 || t == OX_DTYPE_BF16;
}

static ox_status float_weight(ox_opt *o, ox_str name, const ox_tensor *t, int64_t rows,
                              int64_t cols, bool transposed, const ox_weight **out)
{
    ox_weight w = {.name = name, .rows = rows, .cols = cols, .data = t->data};
    w.transposed = transposed;
    *out = NULL;
    if (!float_format(t->dtype, &w.format) || !t->data || !ox_tensor_bytes(t, &w.bytes))
        return OX_OK;
    return ox_opt_share(o, &w, out);
}

/* Elements of v as float32 when v is a constant, or a constant plus or times a number. */
static ox_status computed_vector(ox_opt *o, ox_value_id v, const ox_node *n, const ox_weight **out)
{
    const bool adds = ox_node_is(n, "Add");
    *out = NULL;
    if (!adds && !ox_node_is(n, "Mul")) return OX_OK;
    for (uint32_t i = 0; i < 2; i++) {
        const ox_tensor *t = ox_opt_constant(o, ox_opt_bare(o, ox_node_in(n, i)));
        float c;
        size_t count;
        if (!t || !ox_opt_scalar(o, ox_node_in(n, 1 - i), &c)) continue;
        if (!ox_tensor_count(t, &count) || count < 2 || count > VECTOR_MAX || !t->data ||
            !ox_dtype_is_float(t->dtype) || t->rank < 1 || t->dims[t->rank - 1] != (int64_t)count)
            continue;
        float *p = ox_arena_take_n(o->arena, count, sizeof(*p));
        if (!p) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for a vector");
        for (size_t k = 0; k < count; k++)
            p[k] = adds ? ox_tensor_f32(t, k) + c : ox_tensor_f32(t, k) * c;
        const ox_weight w = {.name = ox_graph_value(o->old, v)->name,
                             .format = OX_FORMAT_F32,
                             .rows = 1,
                             .cols = (int64_t)count,
                             .data = p,
                             .bytes = count * sizeof(*p)};
        return ox_opt_share(o, &w, out);
    }
    return OX_OK;
}

ox_status ox_opt_vector(ox_opt *o, ox_value_id v, const ox_weight **out)
{
    size_t n;
    *out = NULL;
    for (int i = 0; i < WALK_MAX && ox_value_is(v); i++) {
        const ox_value_id bare = ox_opt_bare(o, v);
        const ox_tensor *t = ox_opt_constant(o, bare);
        if (t) {
            if (!ox_tensor_count(t, &n) || n == 0 || t->rank < 1) return OX_OK;
            if (t->dims[t->rank - 1] != (int64_t)n) return OX_OK;
            return float_weight(o, ox_graph_value(o->old, bare)->name, t, 1, (int64_t)n, false,
                                out);
        }
        const ox_node *p = ox_opt_producer(o, bare);
        if (!ox_node_is(p, "Reshape") && !ox_node_is(p, "Unsqueeze") && !ox_node_is(p, "Squeeze"))
            return computed_vector(o, bare, p, out);
        v = ox_node_in(p, 0);
    }
    return OX_OK;
}

/* The float or dequantised matrix behind v as rows x columns of the weight; swap = v itself is
 * [columns, rows]. */
static ox_status matrix(ox_opt *o, ox_value_id v, bool swap, const ox_weight **out)
{
    *out = NULL;
    for (int i = 0; i < WALK_MAX && ox_value_is(v); i++) {
        v = ox_opt_bare(o, v);
        const ox_tensor *t = ox_opt_constant(o, v);
        if (t) {
            if (t->rank != 2 || t->dims[0] <= 0 || t->dims[1] <= 0) return OX_OK;
            return float_weight(o, ox_graph_value(o->old, v)->name, t, t->dims[swap ? 1 : 0],
                                t->dims[swap ? 0 : 1], swap, out);
        }
        const ox_node *n = ox_opt_producer(o, v);
        if (ox_node_is(n, "DequantizeLinear")) return ox_opt_dequantized(o, n, swap, out);
        if (!ox_node_is(n, "Transpose")) return OX_OK;
        const ox_attr *p = ox_node_attr(n, "perm");
        if (p && (p->type != OX_ATTR_INTS || p->n != 2)) return OX_OK;
        if (!p || p->ints[0] == 1) swap = !swap;
        v = ox_node_in(n, 0);
    }
    return OX_OK;
}

ox_status ox_opt_matrix(ox_opt *o, ox_value_id v, const ox_weight **out)
{
    return matrix(o, v, true, out);
}

ox_status ox_opt_table(ox_opt *o, ox_value_id v, const ox_weight **out)
{
    return matrix(o, v, false, out);
}
