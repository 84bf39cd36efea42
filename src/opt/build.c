/* build.c - saying values in the new graph: looking up operands, adding terms, reasons. */
#include "opt/opt_internal.h"

#include <stdio.h>

ox_term ox_term_init(ox_term_kind kind)
{
    return (ox_term){.kind = kind, .scale = 1.0f, .cache = {-1}};
}

ox_status ox_opt_refuse(ox_opt *o, const char *fmt, ...)
{
    char text[OX_OPT_REASON];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    o->now.reason = ox_arena_copy(o->arena, text, strlen(text));
    if (!o->now.reason) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for a report");
    return OX_OK;
}

ox_saying ox_opt_said_keys(const ox_opt *o, ox_value_id old)
{
    if (!ox_value_is(old)) return (ox_saying){.v = OX_NO_VALUE};
    return o->said[old.i];
}

ox_saying ox_opt_said(const ox_opt *o, ox_value_id old)
{
    const ox_saying s = ox_opt_said_keys(o, old);
    return s.kv ? (ox_saying){.v = OX_NO_VALUE} : s;
}

bool ox_opt_in(ox_opt *o, const ox_node *n, uint32_t i, ox_saying *out)
{
    const ox_value_id v = ox_node_in(n, i);
    *out = ox_opt_said(o, v);
    if (ox_value_is(out->v)) return true;
    if (ox_value_is(v) && !ox_value_is(o->now.blame) && !o->said[v.i].kv) o->now.blame = v;
    return false;
}

bool ox_opt_in_keys(ox_opt *o, const ox_node *n, uint32_t i, ox_saying *out)
{
    const ox_value_id v = ox_node_in(n, i);
    *out = ox_opt_said_keys(o, v);
    if (ox_value_is(out->v) && (!out->kv || out->kv->stage == OX_REPEAT_DONE)) return true;
    if (ox_value_is(v) && !ox_value_is(out->v) && !ox_value_is(o->now.blame)) o->now.blame = v;
    return false;
}

bool ox_opt_in_rows(ox_opt *o, const ox_node *n, uint32_t i, ox_saying *out)
{
    return ox_opt_in(o, n, i, out) && !out->heads_first;
}

static ox_status unused_name(ox_opt *o, const ox_node *n, const char *suffix, ox_str *out)
{
    char text[512];
    const int len = n->name.n > 400 ? 400 : (int)n->name.n;
    snprintf(text, sizeof(text), "%.*s%s", len, n->name.p ? n->name.p : "", suffix);
    for (int k = 2; ox_value_is(ox_graph_find(o->g, ox_str_of(text))); k++)
        snprintf(text, sizeof(text), "%.*s%s#%d", len, n->name.p ? n->name.p : "", suffix, k);
    out->n = strlen(text);
    out->p = ox_arena_copy(o->arena, text, out->n);
    return out->p ? OX_OK : OX_FAIL(o->err, OX_NO_MEMORY, "no memory for a name");
}

ox_status ox_opt_term(ox_opt *o, const ox_node *n, const char *suffix, const ox_term *t,
                      const ox_saying *in, size_t n_in, ox_saying *out)
{
    ox_value_id ids[3], made;
    ox_str name;
    ox_err err = {0};
    const ox_saying first = in[0];
    bool all = true;
    for (size_t i = 0; i < n_in; i++) {
        ids[i] = in[i].v;
        all = all && ox_value_is(ids[i]);
    }
    *out = (ox_saying){.v = OX_NO_VALUE}; /* may be one of the operands */
    if (!all) return OX_OK;               /* the reason is known already */
    OX_TRY(unused_name(o, n, suffix, &name));
    const ox_status st = ox_graph_add_term(o->g, t, name, ids, n_in, &made, &err);
    if (st == OX_NO_MEMORY) return OX_FAIL(o->err, st, "%s", err.msg);
    if (st) return ox_opt_refuse(o, "%s", err.msg);
    const ox_value *v = ox_graph_value(o->g, made);
    const int64_t width = v->rank >= 1 ? v->dims[v->rank - 1] : -1;
    if (width <= 0 || width > INT32_MAX) return ox_opt_refuse(o, "the width is not known");
    *out = (ox_saying){.v = made, .width = (int32_t)width, .last = (int32_t)width};
    if (out->width == first.width) { /* the same heads in the same places */
        out->last = first.last;
        out->heads_first = first.heads_first;
    }
    out->last_row = first.last_row;
    return OX_OK;
}

void ox_opt_say(ox_opt *o, const ox_node *n, uint32_t output, ox_saying s)
{
    if (ox_node_wants(n, output)) o->said[n->outputs[output].i] = s;
}

const ox_term *ox_opt_term_of(const ox_opt *o, ox_saying s, ox_saying *in)
{
    if (!ox_value_is(s.v)) return NULL;
    const ox_value *v = ox_graph_value(o->g, s.v);
    if (v->kind != OX_VALUE_NODE || v->producer.i < 0) return NULL;
    const ox_node *n = ox_graph_node(o->g, v->producer);
    const ox_value *x = ox_graph_value(o->g, ox_node_in(n, 0));
    const int32_t width = x->rank >= 2 ? (int32_t)x->dims[x->rank - 1] : 1;
    *in = (ox_saying){.v = ox_node_in(n, 0), .width = width, .last = width, .last_row = s.last_row};
    if (width == s.width) {
        in->last = s.last;
        in->heads_first = s.heads_first;
    }
    return n->term;
}
