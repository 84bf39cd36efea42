/* attend.c - what every attention operator ends in: its past and present ports become a cache
 * object, and the scores a term. */
#include "opt/opt_internal.h"

#include <math.h>

/* The name of v where it leaves the graph; empty when it does not. */
static ox_str output_name(const ox_opt *o, ox_value_id v)
{
    for (size_t i = 0; ox_value_is(v) && i < o->old->outputs.n; i++) {
        const ox_value_id port = o->old->outputs.p[i];
        if (port.i == v.i || ox_opt_bare(o, port).i == v.i)
            return ox_graph_value(o->old, port)->name;
    }
    return OX_STR("");
}

/* The graph input behind a past operand; false = something else stands there. */
static bool past_port(const ox_opt *o, ox_value_id v, ox_str *name, ox_dtype *type)
{
    *name = OX_STR("");
    if (!ox_value_is(v)) return true;
    const ox_value *x = ox_graph_value(o->old, ox_opt_bare(o, v));
    if (x->kind != OX_VALUE_INPUT) return false;
    *name = x->name;
    *type = x->dtype;
    return true;
}

/* Quantised caches are declared as float16: how the engine stores keys is its own business. */
static ox_dtype cache_type(ox_dtype t)
{
    if (t == OX_DTYPE_NONE || t == OX_DTYPE_F64) return OX_DTYPE_F32;
    return ox_dtype_is_float(t) ? t : OX_DTYPE_F16;
}

bool ox_opt_attend_keys(ox_opt *o, ox_opt_attend *a, int64_t n_heads)
{
    const ox_appended *k = a->k.kv, *v = a->v.kv;
    const int32_t repeat = k ? k->repeat : 1;
    if (!k != !v ||
        (k && (k->repeat != v->repeat || ox_value_is(k->past) != ox_value_is(v->past)))) {
        (void)ox_opt_refuse(o, "keys and values are treated differently");
        return false;
    }
    if (a->k.last <= 0 || a->v.last <= 0 || a->k.width / a->k.last != a->v.width / a->v.last ||
        a->k.width / a->k.last * repeat != n_heads) {
        (void)ox_opt_refuse(o, "keys and values have other heads than the operator says");
        return false;
    }
    a->term.n_kv_heads = a->k.width / a->k.last;
    a->k.kv = a->v.kv = NULL;
    if (!k || !ox_value_is(k->past)) return true;
    if (ox_value_is(a->past_k) || ox_value_is(a->past_v)) {
        (void)ox_opt_refuse(o, "it has two pasts");
        return false;
    }
    a->past_k = k->past;
    a->past_v = v->past;
    a->present_k = k->present;
    a->present_v = v->present;
    return true;
}

ox_status ox_opt_attend_mask(ox_opt *o, ox_opt_attend *a, ox_value_id mask, bool is_causal,
                             bool *ok)
{
    ox_masked m = {.known = true};
    *ok = false;
    if (ox_value_is(mask)) OX_TRY(ox_opt_mask(o, mask, &m));
    if (!m.known) return ox_opt_refuse(o, "its mask is more than a causal one with a window");
    if (!is_causal && !m.causal) return ox_opt_refuse(o, "it is not causal");
    if (m.window && (!a->term.window || m.window < a->term.window)) a->term.window = m.window;
    *ok = true;
    return OX_OK;
}

ox_status ox_opt_attend_say(ox_opt *o, const ox_node *n, ox_opt_attend *a)
{
    ox_cache c = {.dtype = OX_DTYPE_NONE};
    ox_term *t = &a->term;
    const ox_saying in[3] = {a->q, a->k, a->v};
    ox_saying y;
    ox_dtype v_type;
    for (int i = 0; i < 3; i++) {
        if (!ox_value_is(in[i].v)) return OX_OK;
        if (in[i].last_row) return ox_opt_refuse(o, "rows were dropped before this attention");
    }
    if (t->n_heads <= 0 || t->n_kv_heads <= 0 || t->n_heads % t->n_kv_heads ||
        a->q.width % t->n_heads || a->k.width % t->n_kv_heads || a->v.width % t->n_kv_heads)
        return ox_opt_refuse(o, "the head counts do not fit the widths");
    t->head_size = a->q.width / t->n_heads;
    t->v_head_size = a->v.width / t->n_kv_heads;
    if (t->head_size != a->k.width / t->n_kv_heads)
        return ox_opt_refuse(o, "queries and keys have heads of different sizes");
    if (t->scale == 0.0f) t->scale = (float)(1.0 / sqrt((double)t->head_size));
    if (!past_port(o, a->past_k, &c.past_k, &c.dtype) ||
        !past_port(o, a->past_v, &c.past_v, &v_type))
        return ox_opt_refuse(o, "its past is not an input of the graph");
    c.n_kv_heads = t->n_kv_heads;
    c.head_size = t->head_size;
    c.v_head_size = t->v_head_size;
    c.dtype = cache_type(c.dtype);
    c.present_k = output_name(o, a->present_k);
    c.present_v = output_name(o, a->present_v);
    OX_TRY(ox_graph_add_cache(o->g, &c, &t->cache, o->err));
    OX_TRY(ox_opt_term(o, n, "", t, in, 3, &y));
    y.last = a->v.heads_first ? t->v_head_size : y.width;
    y.heads_first = a->q.heads_first;
    if (a->q.heads_first) y.last = t->v_head_size;
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}
