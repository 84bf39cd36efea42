/* read.c - looking back in the old graph: producers without the casts between, constants, scalars
 * and small integer lists. Every walk is bounded, so that a file cannot make it long. */
#include "opt/opt_internal.h"

#include "ops/op.h"
#include "tensor/half.h"

#include <math.h>

enum { WALK_MAX = 64 };

bool ox_node_is(const ox_node *n, const char *op)
{
    return n && !n->term && ox_str_is(n->op_type, op) &&
           (!n->domain.n || ox_op_find(n->domain, n->op_type, n->version));
}

bool ox_dtype_is_float(ox_dtype t)
{
    return t == OX_DTYPE_F32 || t == OX_DTYPE_F16 || t == OX_DTYPE_BF16 || t == OX_DTYPE_F64;
}

static const ox_node *made_by(const ox_opt *o, ox_value_id v)
{
    if (!ox_value_is(v)) return NULL;
    const ox_value *x = ox_graph_value(o->old, v);
    if (x->kind != OX_VALUE_NODE || x->producer.i < 0) return NULL;
    return ox_graph_node(o->old, x->producer);
}

static bool is_float_cast(const ox_opt *o, const ox_node *n)
{
    if (!ox_node_is(n, "Cast") || !ox_node_has(n, 0)) return false;
    const ox_dtype from = ox_graph_value(o->old, ox_node_in(n, 0))->dtype;
    return ox_dtype_is_float((ox_dtype)ox_node_int(n, "to", 0)) &&
           (from == OX_DTYPE_NONE || ox_dtype_is_float(from));
}

ox_value_id ox_opt_bare(const ox_opt *o, ox_value_id v)
{
    for (int i = 0; i < WALK_MAX; i++) {
        const ox_node *n = made_by(o, v);
        if (!n || !ox_node_has(n, 0)) break;
        const bool alone = ox_node_is(n, "Concat") && n->n_inputs == 1;
        if (!ox_node_is(n, "Identity") && !alone && !is_float_cast(o, n)) break;
        v = ox_node_in(n, 0);
    }
    return v;
}

const ox_node *ox_opt_producer(const ox_opt *o, ox_value_id v)
{
    return made_by(o, ox_opt_bare(o, v));
}

const ox_tensor *ox_opt_constant(const ox_opt *o, ox_value_id v)
{
    for (int i = 0; i < WALK_MAX && ox_value_is(v); i++) {
        const ox_value *x = ox_graph_value(o->old, v);
        if (x->kind == OX_VALUE_CONSTANT) return x->constant;
        const ox_node *n = made_by(o, v);
        if (ox_node_is(n, "Constant")) {
            const ox_attr *a = ox_node_attr(n, "value");
            return a && a->type == OX_ATTR_TENSOR ? a->t : NULL;
        }
        if (!ox_node_is(n, "Identity") || !ox_node_has(n, 0)) return NULL;
        v = ox_node_in(n, 0);
    }
    return NULL;
}

float ox_tensor_f32(const ox_tensor *t, size_t i)
{
    switch (t->dtype) {
    case OX_DTYPE_F32:
        return ((const float *)t->data)[i];
    case OX_DTYPE_F16:
        return ox_f16_to_f32(((const uint16_t *)t->data)[i]);
    case OX_DTYPE_BF16:
        return ox_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case OX_DTYPE_F64:
        return (float)((const double *)t->data)[i];
    case OX_DTYPE_I64:
        return (float)((const int64_t *)t->data)[i];
    case OX_DTYPE_I32:
        return (float)((const int32_t *)t->data)[i];
    default:
        return NAN;
    }
}

/* A node that only changes shape or type; of constants it keeps the elements. */
static bool keeps_elements(const ox_node *n)
{
    return ox_node_is(n, "Cast") || ox_node_is(n, "Identity") || ox_node_is(n, "Reshape") ||
           ox_node_is(n, "Squeeze") || ox_node_is(n, "Unsqueeze");
}

bool ox_opt_scalar(const ox_opt *o, ox_value_id v, float *out)
{
    for (int i = 0; i < WALK_MAX; i++) {
        const ox_tensor *t = ox_opt_constant(o, v);
        size_t n;
        if (t) {
            if (!ox_tensor_count(t, &n) || n != 1 || !t->data) return false;
            *out = ox_tensor_f32(t, 0);
            return isfinite(*out);
        }
        const ox_node *p = made_by(o, v);
        if (!keeps_elements(p) || !ox_node_has(p, 0)) return false;
        v = ox_node_in(p, 0);
    }
    return false;
}

bool ox_opt_ints(const ox_opt *o, ox_value_id v, int64_t *out, size_t max, size_t *n)
{
    const ox_tensor *t = ox_opt_constant(o, v);
    if (!t || !ox_tensor_count(t, n) || *n > max || (*n && !t->data)) return false;
    for (size_t i = 0; i < *n; i++) {
        if (t->dtype == OX_DTYPE_I64)
            out[i] = ((const int64_t *)t->data)[i];
        else if (t->dtype == OX_DTYPE_I32)
            out[i] = ((const int32_t *)t->data)[i];
        else
            return false;
    }
    return true;
}

bool ox_opt_axes(const ox_opt *o, const ox_node *n, uint32_t i, int64_t *out, size_t max,
                 size_t *n_out)
{
    if (ox_node_has(n, i)) return ox_opt_ints(o, ox_node_in(n, i), out, max, n_out);
    const ox_attr *a = ox_node_attr(n, "axes");
    if (!a || a->type != OX_ATTR_INTS || a->n > max) return false;
    for (size_t k = 0; k < a->n; k++)
        out[k] = a->ints[k];
    *n_out = a->n;
    return true;
}
