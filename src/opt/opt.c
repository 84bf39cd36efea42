/* opt.c - runs the rules of passes.def over a graph and swaps the new graph in: see opt.h. */
#include "opt/opt_internal.h"

#include "base/fs.h"

#include <stdio.h>

typedef struct rule {
    const char *pass, *op;
    ox_opt_rule_fn *fn;
} rule;

static const rule rules[] = {
#define OX_OPT_RULE(name, op, fn) {name, op, fn},
#include "opt/passes.def"
#undef OX_OPT_RULE
};

static ox_opt_change *change_of(ox_opt_report *r, const char *pass, size_t n)
{
    for (size_t i = 0; i < r->n_changes; i++)
        if (strlen(r->changes[i].pass) == n && !memcmp(r->changes[i].pass, pass, n))
            return &r->changes[i];
    return NULL;
}

static void list_passes(ox_opt_report *r)
{
    for (size_t i = 0; i < OX_COUNT(rules); i++)
        if (!change_of(r, rules[i].pass, strlen(rules[i].pass)) && r->n_changes < OX_OPT_PASSES_MAX)
            r->changes[r->n_changes++].pass = rules[i].pass;
}

/* "-name,-name"; names that are no pass are somebody else's. */
static void switch_off(ox_opt_report *r, const char *list)
{
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        ox_opt_change *c = n > 1 && *list == '-' ? change_of(r, list + 1, n - 1) : NULL;
        if (c) c->off = true;
        list += n + (list[n] == ',');
    }
}

bool ox_opt_has_pass(ox_str name)
{
    for (size_t i = 0; i < OX_COUNT(rules); i++)
        if (ox_str_is(name, rules[i].pass)) return true;
    return false;
}

static ox_value_id port(const ox_graph *g, ox_str name, const char *usual)
{
    const ox_value_id v = ox_graph_find(g, name.n ? name : ox_str_of(usual));
    return ox_value_is(v) && ox_graph_value(g, v)->kind == OX_VALUE_INPUT ? v : OX_NO_VALUE;
}

static ox_status begin(ox_opt *o)
{
    ox_value_id ids;
    o->ids = port(o->old, o->ports->ids, "input_ids");
    o->mask = port(o->old, o->ports->mask, "attention_mask");
    o->positions = port(o->old, o->ports->positions, "position_ids");
    o->said = ox_calloc(o->old->values.n + 1, sizeof(*o->said));
    o->unsaid = ox_calloc(o->old->nodes.n + 1, sizeof(*o->unsaid));
    if (!o->said || !o->unsaid) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for the terms");
    for (size_t i = 0; i < o->old->values.n; i++)
        o->said[i].v = OX_NO_VALUE;
    for (size_t i = 0; i < o->old->nodes.n; i++)
        o->unsaid[i].blame = OX_NO_VALUE;
    OX_TRY(ox_graph_open(&o->g, o->arena, NULL, o->err));
    o->g->name = o->old->name;
    const ox_str name = ox_value_is(o->ids) ? ox_graph_value(o->old, o->ids)->name : OX_STR("ids");
    OX_TRY(ox_graph_add_value(o->g, name, &ids, o->err));
    ox_value *v = ox_graph_value(o->g, ids);
    v->kind = OX_VALUE_INPUT;
    v->dtype = OX_DTYPE_I64;
    v->rank = 1;
    v->dims[0] = ox_graph_symbol(o->g, OX_STR("rows"));
    if (!ox_vec_push(&o->g->inputs, ids)) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory");
    return OX_OK;
}

static bool is_said(const ox_opt *o, const ox_node *n)
{
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (ox_value_is(n->outputs[i]) && ox_value_is(o->said[n->outputs[i].i].v)) return true;
    return false;
}

static ox_status say_node(ox_opt *o, ox_opt_report *r, ox_node_id id)
{
    const ox_node *n = ox_graph_node(o->old, id);
    o->now = (ox_unsaid){.blame = OX_NO_VALUE};
    for (size_t i = 0; i < OX_COUNT(rules); i++) {
        if (!ox_node_is(n, rules[i].op)) continue;
        ox_opt_change *c = change_of(r, rules[i].pass, strlen(rules[i].pass));
        if (c->off) continue;
        OX_TRY(rules[i].fn(o, n));
        if (!is_said(o, n)) continue;
        c->n_changes++;
        return OX_OK;
    }
    o->unsaid[id.i] = o->now;
    return OX_OK;
}

static void add_remaining(const ox_opt *o, ox_opt_report *r, const ox_node *n, const char *reason)
{
    if (r->n_remaining == OX_OPT_REMAINING_MAX) return;
    ox_opt_remaining *x = &r->remaining[r->n_remaining++];
    (void)o;
    x->node = n->name;
    x->op_type = n->op_type;
    snprintf(x->reason, sizeof(x->reason), "%s", reason);
}

/* From the logits back along what each node waits for, to the node that nothing explains. */
static void explain(const ox_opt *o, ox_opt_report *r, ox_value_id v)
{
    const ox_node *n = NULL;
    const ox_unsaid *why = NULL;
    for (size_t step = 0; step <= o->old->nodes.n && ox_value_is(v); step++) {
        const ox_value *x = ox_graph_value(o->old, v);
        if (x->kind != OX_VALUE_NODE || x->producer.i < 0) break;
        n = ox_graph_node(o->old, x->producer);
        why = &o->unsaid[x->producer.i];
        v = why->reason ? OX_NO_VALUE : why->blame;
    }
    if (!n) return;
    const char *reason = why->reason;
    if (!reason && ox_value_is(why->blame)) reason = "it reads an input that is not token ids";
    add_remaining(o, r, n, reason ? reason : "no rule knows it in this place");
}

static ox_value_id logits_of(const ox_opt *o)
{
    const ox_graph *g = o->old;
    const ox_str name = o->ports->logits.n ? o->ports->logits : OX_STR("logits");
    for (size_t i = 0; i < g->outputs.n; i++)
        if (ox_str_eq(ox_graph_value(g, g->outputs.p[i])->name, name)) return g->outputs.p[i];
    return g->outputs.n ? g->outputs.p[0] : OX_NO_VALUE;
}

/* Gives the new graph its output; false when the logits could not be said. */
static ox_status finish(ox_opt *o, ox_opt_report *r, bool *done)
{
    ox_value_id out;
    const ox_value_id logits = logits_of(o);
    const ox_saying s = ox_opt_said(o, logits);
    *done = false;
    if (!ox_value_is(s.v)) {
        explain(o, r, logits);
        return OX_OK;
    }
    OX_TRY(ox_opt_make_head(o, s, &out));
    if (!ox_value_is(out)) {
        const ox_value *v = ox_graph_value(o->old, logits);
        if (v->producer.i >= 0 && v->kind == OX_VALUE_NODE)
            add_remaining(o, r, ox_graph_node(o->old, v->producer),
                          "the logits are not a linear map");
        return OX_OK;
    }
    if (!ox_vec_push(&o->g->outputs, out)) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory");
    ox_graph_remove_dead(o->g);
    OX_TRY(ox_graph_sort(o->g, o->err));
    OX_TRY(ox_graph_verify(o->g, o->err));
    *done = true;
    return OX_OK;
}

ox_status ox_opt_run(ox_graph *g, const ox_opt_ports *ports, ox_arena *arena, ox_opt_report *report,
                     ox_err *err)
{
    static const ox_opt_ports no_ports;
    ox_opt o = {.old = g, .arena = arena, .ports = ports ? ports : &no_ports, .err = err};
    ox_status st = OX_OK;
    bool done = false;
    *report = (ox_opt_report){.is_terms = ox_graph_is_terms(g)};
    list_passes(report);
    switch_off(report, ox_env("OXGEN_PASSES"));
    if (report->is_terms) return OX_OK;
    OX_TRY_GOTO(begin(&o));
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.p[i].dead) OX_TRY_GOTO(say_node(&o, report, (ox_node_id){(int32_t)i}));
    OX_TRY_GOTO(finish(&o, report, &done));
    if (done) {
        const ox_graph old = *g;
        *g = *o.g;
        *o.g = old;
        report->is_terms = true;
    }
fail:
    ox_graph_close(&o.g);
    ox_free(o.said);
    ox_free(o.unsaid);
    ox_vec_deinit(&o.weights);
    ox_vec_deinit(&o.rotaries);
    ox_vec_deinit(&o.rotary_keys);
    ox_vec_deinit(&o.masks);
    ox_vec_deinit(&o.turned);
    return st;
}

void ox_opt_report_print(const ox_opt_report *r, ox_buf *out)
{
    for (size_t i = 0; i < r->n_changes; i++) {
        const ox_opt_change *c = &r->changes[i];
        if (c->off)
            ox_buf_printf(out, "%-20s off\n", c->pass);
        else if (c->n_changes)
            ox_buf_printf(out, "%-20s %d\n", c->pass, (int)c->n_changes);
    }
    for (size_t i = 0; i < r->n_remaining; i++)
        ox_buf_printf(out, "remains: %.*s \"%.*s\": %s\n", OX_STR_ARGS(r->remaining[i].op_type),
                      OX_STR_ARGS(r->remaining[i].node), r->remaining[i].reason);
    if (!r->is_terms) ox_buf_put_z(out, "the graph runs operator by operator\n");
}
