/* through.c - operators that leave a row's numbers alone: casts between float types, reshapes,
 * heads moved before the rows and back, and taking the last row before the logits. */
#include "opt/opt_internal.h"

ox_status ox_opt_through_same(ox_opt *o, const ox_node *n)
{
    ox_saying x;
    if (ox_opt_in(o, n, 0, &x)) ox_opt_say(o, n, 0, x);
    return OX_OK;
}

ox_status ox_opt_through_cast(ox_opt *o, const ox_node *n)
{
    if (!ox_dtype_is_float((ox_dtype)ox_node_int(n, "to", 0))) return OX_OK;
    return ox_opt_through_same(o, n);
}

enum { PARTS_MAX = 8, PART_UNKNOWN = -2, PAST = 5, ROWS = 7 };

/* The elements of a shape operand: a constant, or a Concat whose parts are partly constant (the
 * others read as PART_UNKNOWN). 0 = not known at all. */
static size_t shape_parts(ox_opt *o, ox_value_id v, int64_t *parts)
{
    size_t n = 0;
    if (ox_opt_ints(o, v, parts, PARTS_MAX, &n)) return n;
    const ox_node *c = ox_opt_producer(o, v);
    if (!ox_node_is(c, "Concat") || c->n_inputs > PARTS_MAX) return 0;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        int64_t part[PARTS_MAX];
        size_t k = 0;
        if (!ox_opt_ints(o, ox_node_in(c, i), part, PARTS_MAX, &k)) {
            part[0] = PART_UNKNOWN; /* a dimension read from some shape: one element */
            k = 1;
        }
        if (n + k > PARTS_MAX) return 0;
        for (size_t j = 0; j < k; j++)
            parts[n++] = part[j];
    }
    return n;
}

/* The same from an example step whose shape the graph computes. */
static int64_t example_last(ox_opt *o, const ox_node *n, const ox_saying *x)
{
    int64_t parts[PARTS_MAX], known = 1;
    size_t k;
    if (!ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, parts, PARTS_MAX, &k) || k < 2) return 0;
    if (parts[k - 1] > 0) return parts[k - 1];
    for (size_t i = 0; i + 1 < k; i++) {
        if (parts[i] <= 0 || parts[i] > INT32_MAX) return 0;
        known *= parts[i];
        if (known > INT32_MAX) return 0;
    }
    return ROWS * (int64_t)x->width % known ? 0 : ROWS * (int64_t)x->width / known;
}

/* Size of the last dimension after a Reshape of rows; 0 = cannot be told. */
static int64_t reshaped_last(ox_opt *o, const ox_node *n, const ox_saying *x)
{
    int64_t parts[PARTS_MAX];
    size_t k = shape_parts(o, ox_node_in(n, 1), parts);
    if (k && parts[k - 1] > 0) return parts[k - 1];
    const ox_value *out = ox_graph_value(o->old, n->outputs[0]);
    if (out->rank >= 1 && out->dims[out->rank - 1] > 0) return out->dims[out->rank - 1];
    if (k == 4 && parts[3] == -1 && parts[2] > 0)
        return x->width % parts[2] ? 0 : x->width / parts[2];
    /* [batch, rows, rest]: the rest of a row is the row */
    if (k == 3 && parts[2] == -1 && parts[0] <= 0 && parts[1] <= 0) return x->width;
    return example_last(o, n, x);
}

/* A Reshape that leaves a value with its heads first as it is. */
static bool keeps_shape(ox_opt *o, const ox_node *n)
{
    int64_t parts[PARTS_MAX], dims[OX_RANK_MAX];
    const int32_t rank = ox_opt_dims(o, ox_node_in(n, 0), PAST, ROWS, dims);
    size_t k;
    if (!rank || !ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, parts, PARTS_MAX, &k)) return false;
    if (k != (size_t)rank) return false;
    for (size_t i = 0; i < k; i++)
        if (parts[i] != dims[i] && parts[i] != 0 && parts[i] != -1) return false;
    return true;
}

ox_status ox_opt_through_reshape(ox_opt *o, const ox_node *n)
{
    ox_saying x;
    if (!ox_opt_in(o, n, 0, &x) || !ox_node_wants(n, 0)) return OX_OK;
    if (x.heads_first) {
        if (!ox_node_is(n, "Reshape") || !keeps_shape(o, n))
            return ox_opt_refuse(o, "it mixes rows and heads");
        ox_opt_say(o, n, 0, x);
        return OX_OK;
    }
    if (ox_node_is(n, "Reshape")) {
        const int64_t last = reshaped_last(o, n, &x);
        if (last <= 0 || x.width % last)
            return ox_opt_refuse(o, "the last dimension of the new shape is not known");
        x.last = (int32_t)last;
    } else if (!ox_node_is(n, "Flatten")) {
        int64_t axes[PARTS_MAX];
        size_t k;
        if (!ox_opt_axes(o, n, 1, axes, PARTS_MAX, &k))
            return ox_opt_refuse(o, "the axes are not constant");
        for (size_t i = 0; i < k; i++)
            if (axes[i] < 0 || axes[i] > 1)
                return ox_opt_refuse(o, "it may change the last dimension");
    }
    ox_opt_say(o, n, 0, x);
    return OX_OK;
}

ox_status ox_opt_through_transpose(ox_opt *o, const ox_node *n)
{
    ox_saying x;
    const ox_attr *p = ox_node_attr(n, "perm");
    if (!ox_opt_in(o, n, 0, &x)) return OX_OK;
    if (!p || p->type != OX_ATTR_INTS || p->n != 4 || p->ints[0] != 0 || p->ints[1] != 2 ||
        p->ints[2] != 1 || p->ints[3] != 3)
        return ox_opt_refuse(o, "this permutation does more than move heads");
    const ox_value *in = ox_graph_value(o->old, ox_node_in(n, 0));
    if (in->rank >= 0 && in->rank != 4) return ox_opt_refuse(o, "the operand is not of rank 4");
    x.heads_first = !x.heads_first;
    ox_opt_say(o, n, 0, x);
    return OX_OK;
}

/* Gather(x, -1, axis 1) and Slice(x, -1:, axis 1). Logits are asked for by row anyway. */
ox_status ox_opt_through_last_row(ox_opt *o, const ox_node *n)
{
    ox_saying x = ox_opt_said(o, ox_node_in(n, 0)); /* quiet: most gathers are something else */
    int64_t at[2], end[2], axis[2], step[2] = {1};
    size_t k, k2, k3, k4;
    if (!ox_value_is(x.v) || x.heads_first || x.last != x.width) return OX_OK;
    if (ox_node_is(n, "Gather")) {
        if (ox_node_int(n, "axis", 0) != 1 || !ox_opt_ints(o, ox_node_in(n, 1), at, 1, &k) ||
            k != 1 || at[0] != -1)
            return OX_OK;
    } else {
        if (!ox_opt_ints(o, ox_node_in(n, 1), at, 1, &k) || k != 1 || at[0] != -1) return OX_OK;
        if (!ox_opt_ints(o, ox_node_in(n, 2), end, 1, &k2) || k2 != 1 || end[0] < INT32_MAX)
            return OX_OK;
        if (!ox_opt_ints(o, ox_node_in(n, 3), axis, 1, &k3) || k3 != 1 || axis[0] != 1)
            return OX_OK;
        if (ox_node_has(n, 4) && (!ox_opt_ints(o, ox_node_in(n, 4), step, 1, &k4) || step[0] != 1))
            return OX_OK;
    }
    x.last_row = true;
    ox_opt_say(o, n, 0, x);
    return OX_OK;
}
