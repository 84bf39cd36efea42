/* append.c - caches spelled out: Concat(past, new keys) along the rows, and heads repeated for
 * grouped attention by Unsqueeze, Expand, Reshape. The sayings remember
 * both; attention uses them. */
#include "opt/opt_internal.h"

enum { PAST = 5, ROWS = 7 };

static ox_status say_keys(ox_opt *o, const ox_node *n, ox_saying x, const ox_appended *kv)
{
    ox_appended *copy = ox_arena_take(o->arena, sizeof(*copy));
    if (!copy) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for the caches");
    *copy = *kv;
    x.kv = copy;
    ox_opt_say(o, n, 0, x);
    return OX_OK;
}

ox_status ox_opt_append(ox_opt *o, const ox_node *n)
{
    const int64_t axis = ox_node_int(n, "axis", 0);
    if (n->n_inputs != 2 || !ox_node_wants(n, 0) || (axis != 2 && axis != -2)) return OX_OK;
    const ox_value_id past = ox_opt_bare(o, ox_node_in(n, 0));
    const ox_saying x = ox_opt_said(o, ox_node_in(n, 1));
    if (!ox_value_is(past) || ox_graph_value(o->old, past)->kind != OX_VALUE_INPUT) return OX_OK;
    if (!ox_value_is(x.v)) {
        o->now.blame = ox_node_in(n, 1);
        return OX_OK;
    }
    if (!x.heads_first) return ox_opt_refuse(o, "it appends to a cache in another layout");
    const ox_appended kv = {.past = past, .present = n->outputs[0], .repeat = 1};
    return say_keys(o, n, x, &kv);
}

ox_status ox_opt_repeat_axis(ox_opt *o, const ox_node *n)
{
    const ox_saying x = ox_opt_said_keys(o, ox_node_in(n, 0));
    ox_appended kv = {.past = OX_NO_VALUE, .present = OX_NO_VALUE, .repeat = 1};
    int64_t axes[2];
    size_t k;
    if (!ox_value_is(x.v) || !x.heads_first) return OX_OK;
    if (!ox_opt_axes(o, n, 1, axes, 2, &k) || k != 1 || axes[0] != 2) return OX_OK;
    if (x.kv) kv = *x.kv;
    if (kv.stage != OX_REPEAT_DONE || kv.repeat != 1) return OX_OK;
    kv.stage = OX_REPEAT_AXIS;
    return say_keys(o, n, x, &kv);
}

ox_status ox_opt_repeat_expand(ox_opt *o, const ox_node *n)
{
    const ox_saying x = ox_opt_said_keys(o, ox_node_in(n, 0));
    int64_t shape[8];
    size_t k;
    if (!x.kv || x.kv->stage != OX_REPEAT_AXIS) return OX_OK;
    if (!ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, shape, OX_COUNT(shape), &k) || k != 5 ||
        shape[2] <= 0 || shape[2] > 1 << 12)
        return ox_opt_refuse(o, "how often heads are repeated is not known");
    ox_appended kv = *x.kv;
    kv.repeat = (int32_t)shape[2];
    kv.stage = OX_REPEAT_EXPANDED;
    return say_keys(o, n, x, &kv);
}

ox_status ox_opt_repeat_reshape(ox_opt *o, const ox_node *n)
{
    const ox_saying x = ox_opt_said_keys(o, ox_node_in(n, 0));
    int64_t shape[8];
    size_t k;
    if (!x.kv || x.kv->stage != OX_REPEAT_EXPANDED) return OX_OK;
    const int64_t heads = (int64_t)x.width / x.last * x.kv->repeat;
    if (!ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, shape, OX_COUNT(shape), &k) || k != 4 ||
        (shape[1] != heads && shape[1] != -1) || (shape[3] != x.last && shape[3] != -1))
        return ox_opt_refuse(o, "repeated heads get another shape");
    ox_appended kv = *x.kv;
    kv.stage = OX_REPEAT_DONE;
    return say_keys(o, n, x, &kv);
}
