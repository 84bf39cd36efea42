/* run.c - see run.h. A frame holds the values of one graph while it runs; subgraphs get a frame of
 * their own that looks up captures in the outer one when they are first read. */
#include "ops/run.h"

#include "ops/op_internal.h"

enum { NEVER = INT32_MAX };

/* The last node that reads each value of a graph; NEVER = kept to the end. */
typedef struct lifetimes {
    const ox_graph *g;
    int32_t *last;
} lifetimes;

typedef struct runner {
    ox_rt_memory *mem;
    const ox_run_options *o;
    uint64_t n_nodes;
    OX_VEC(lifetimes) plans;
    ox_err *err;
} runner;

typedef struct frame {
    const ox_graph *g;
    struct frame *outer;
    ox_rt_value **v;
    const int32_t *last;
    runner *r;
} frame;

static void note_captures(const ox_graph *sub, int32_t i_node, int32_t *last)
{
    for (size_t i = 0; sub && i < sub->values.n; i++) {
        const ox_value *v = &sub->values.p[i];
        if (v->kind == OX_VALUE_CAPTURE && last[v->outer.i] < i_node) last[v->outer.i] = i_node;
    }
}

static ox_status last_uses(runner *r, const ox_graph *g, const int32_t **out)
{
    for (size_t i = 0; i < r->plans.n; i++) {
        *out = r->plans.p[i].last;
        if (r->plans.p[i].g == g) return OX_OK;
    }
    int32_t *last = ox_calloc(g->values.n + 1, sizeof(*last));
    if (!last || !ox_vec_push(&r->plans, (lifetimes){g, last})) {
        ox_free(last);
        return OX_FAIL(r->err, OX_NO_MEMORY, "no memory to run the graph");
    }
    for (size_t i = 0; i < g->values.n; i++)
        last[i] = -1;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        if (n->dead) continue;
        for (uint32_t k = 0; k < n->n_inputs; k++)
            if (ox_value_is(n->inputs[k])) last[n->inputs[k].i] = (int32_t)i;
        for (uint32_t k = 0; k < n->n_attrs; k++) {
            const ox_attr *a = &n->attrs[k];
            if (a->type == OX_ATTR_GRAPH) note_captures(a->g, (int32_t)i, last);
            for (size_t m = 0; a->type == OX_ATTR_GRAPHS && m < a->n; m++)
                note_captures(a->graphs[m], (int32_t)i, last);
        }
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        last[g->outputs.p[i].i] = NEVER;
    *out = last;
    return OX_OK;
}

static ox_status value_of(frame *f, ox_value_id id, ox_rt_value **out)
{
    const ox_value *v = ox_graph_value(f->g, id);
    if (!f->v[id.i] && v->kind == OX_VALUE_CONSTANT) {
        f->v[id.i] = ox_rt_tensor_view(f->r->mem, v->constant);
        if (!f->v[id.i]) return OX_FAIL(f->r->err, OX_NO_MEMORY, "no memory to run the graph");
    }
    if (!f->v[id.i] && v->kind == OX_VALUE_CAPTURE) {
        if (!f->outer)
            return OX_FAIL(f->r->err, OX_FAILED, "\"%.*s\" is captured from nowhere",
                           OX_STR_ARGS(v->name));
        OX_TRY(value_of(f->outer, v->outer, out));
        f->v[id.i] = ox_rt_ref(*out);
    }
    *out = f->v[id.i];
    if (*out) return OX_OK;
    return OX_FAIL(f->r->err, OX_BAD_ARGUMENT, "value \"%.*s\" is needed but not given",
                   OX_STR_ARGS(v->name));
}

static ox_status run_frame(frame *f);

static ox_status run_subgraph(ox_op_ctx *c, const ox_graph *g, ox_rt_value *const *in, size_t n_in,
                              ox_rt_value **out, size_t n_out)
{
    ox_status st = OX_OK;
    frame f = {.g = g, .outer = c->runner};
    f.r = f.outer->r;
    if (n_in != g->inputs.n || n_out != g->outputs.n)
        return OP_FAIL(c, "its graph has %zu inputs and %zu outputs, not %zu and %zu", g->inputs.n,
                       g->outputs.n, n_in, n_out);
    OX_TRY(last_uses(f.r, g, &f.last));
    f.v = ox_calloc(g->values.n + 1, sizeof(*f.v));
    if (!f.v) return OP_NO_MEMORY(c);
    for (size_t i = 0; i < n_in; i++)
        if (in[i]) f.v[g->inputs.p[i].i] = ox_rt_ref(in[i]);
    OX_TRY_GOTO(run_frame(&f));
    for (size_t i = 0; i < n_out; i++) {
        ox_rt_value *v;
        OX_TRY_GOTO(value_of(&f, g->outputs.p[i], &v));
        out[i] = ox_rt_ref(v);
    }
fail:
    for (size_t i = 0; st && i < n_out; i++)
        ox_rt_unref(&out[i]);
    for (size_t i = 0; i < g->values.n; i++)
        ox_rt_unref(&f.v[i]);
    ox_free(f.v);
    return st;
}

static void free_after(frame *f, int32_t i_node, const ox_value_id *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (ox_value_is(ids[i]) && f->last[ids[i].i] <= i_node) ox_rt_unref(&f->v[ids[i].i]);
}

static void free_captured(frame *f, int32_t i_node, const ox_graph *sub)
{
    for (size_t i = 0; sub && i < sub->values.n; i++) {
        const ox_value *v = &sub->values.p[i];
        if (v->kind == OX_VALUE_CAPTURE) free_after(f, i_node, &v->outer, 1);
    }
}

static ox_status run_node(frame *f, int32_t i_node)
{
    const ox_node *n = &f->g->nodes.p[i_node];
    ox_status st = OX_OK;
    ox_rt_value *few[16] = {0}, **io = few;
    const size_t n_io = (size_t)n->n_inputs + n->n_outputs;
    const ox_op *op = n->term ? NULL : ox_op_find(n->domain, n->op_type, n->version);
    if (!op)
        return OX_FAIL(f->r->err, OX_UNSUPPORTED, "node \"%.*s\": operator %.*s is not supported",
                       OX_STR_ARGS(n->name), OX_STR_ARGS(n->op_type));
    if (f->r->o->node_limit && ++f->r->n_nodes > f->r->o->node_limit)
        return OX_FAIL(f->r->err, OX_LIMIT,
                       "more than %llu operators were executed: does a loop never end?",
                       (unsigned long long)f->r->o->node_limit);
    if (n_io > OX_COUNT(few)) io = ox_calloc(n_io, sizeof(*io));
    if (!io) return OX_FAIL(f->r->err, OX_NO_MEMORY, "no memory to run the graph");
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (ox_value_is(n->inputs[i])) OX_TRY_GOTO(value_of(f, n->inputs[i], &io[i]));
    size_t n_in = n->n_inputs; /* trailing absent inputs do not count */
    while (n_in && !io[n_in - 1])
        n_in--;
    ox_rt_value **out = io + n->n_inputs;
    ox_op_ctx c = {.node = n,
                   .n_in = n_in,
                   .in = io,
                   .n_out = n->n_outputs,
                   .out = out,
                   .mem = f->r->mem,
                   .err = f->r->err,
                   .cancel = f->r->o->cancel,
                   .work_limit = f->r->o->work_limit,
                   .run = run_subgraph,
                   .runner = f,
                   .seed = f->r->o->seed};
    OX_TRY_GOTO(ox_op_cancelled(&c));
    OX_TRY_GOTO(ox_op_eval(op, &c));
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        if (!ox_value_is(n->outputs[i]) || f->last[n->outputs[i].i] < 0) {
            ox_rt_unref(&out[i]);
            continue;
        }
        ox_rt_unref(&f->v[n->outputs[i].i]);
        f->v[n->outputs[i].i] = out[i];
    }
    free_after(f, i_node, n->inputs, n->n_inputs);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].type == OX_ATTR_GRAPH) free_captured(f, i_node, n->attrs[i].g);
fail:
    if (io != few) ox_free(io);
    return st;
}

static ox_status run_frame(frame *f)
{
    for (size_t i = 0; i < f->g->nodes.n; i++)
        if (!f->g->nodes.p[i].dead) OX_TRY(run_node(f, (int32_t)i));
    return OX_OK;
}

/* ---- the outermost graph ---- */

static ox_status give_input(frame *f, const ox_run_input *in)
{
    const ox_value_id id = ox_graph_find(f->g, in->name);
    ox_rt_memory *m = f->r->mem;
    if (!ox_value_is(id) || ox_graph_value(f->g, id)->kind != OX_VALUE_INPUT)
        return OX_FAIL(f->r->err, OX_BAD_ARGUMENT, "the graph has no input \"%.*s\"",
                       OX_STR_ARGS(in->name));
    const ox_value *v = ox_graph_value(f->g, id);
    const ox_dtype given = in->kind == OX_RT_TENSOR ? in->t.dtype : in->item_dtype;
    if (v->dtype && given && v->dtype != given)
        return OX_FAIL(f->r->err, OX_BAD_ARGUMENT, "input \"%.*s\" is %s, the graph takes %s",
                       OX_STR_ARGS(in->name), ox_dtype_name(given), ox_dtype_name(v->dtype));
    ox_rt_value *x = in->kind == OX_RT_NONE       ? ox_rt_none_new(m)
                     : in->kind == OX_RT_SEQUENCE ? ox_rt_sequence_new(m, given, in->n_items)
                                                  : ox_rt_tensor_view(m, &in->t);
    ox_rt_unref(&f->v[id.i]);
    f->v[id.i] = x;
    bool short_of = !x;
    for (size_t i = 0; x && x->kind == OX_RT_SEQUENCE && i < in->n_items; i++) {
        x->items[i] = ox_rt_tensor_view(m, &in->items[i]);
        short_of |= !x->items[i];
    }
    return short_of ? OX_FAIL(f->r->err, OX_NO_MEMORY, "no memory for the inputs") : OX_OK;
}

static ox_status wanted_id(const frame *f, ox_str name, ox_value_id *id)
{
    *id = ox_graph_find(f->g, name);
    if (ox_value_is(*id)) return OX_OK;
    return OX_FAIL(f->r->err, OX_BAD_ARGUMENT, "the graph has no value \"%.*s\"",
                   OX_STR_ARGS(name));
}

ox_status ox_graph_eval(ox_run_results **out, const ox_graph *g, const ox_run_input *in,
                        size_t n_in, const ox_str *wanted, size_t n_wanted,
                        const ox_run_options *options, ox_err *err)
{
    static const ox_run_options none = {0};
    ox_status st = OX_OK;
    ox_value_id id;
    ox_rt_value *v;
    ox_run_results *res = ox_calloc(1, sizeof(*res));
    runner r = {.o = options ? options : &none, .err = err};
    frame f = {.g = g, .r = &r};
    *out = NULL;
    if (!res) return OX_FAIL(err, OX_NO_MEMORY, "no memory to run the graph");
    r.mem = &res->mem;
    res->mem.limit = r.o->memory_limit;
    res->n = n_wanted ? n_wanted : g->outputs.n;
    res->values = ox_calloc(res->n + 1, sizeof(*res->values));
    f.v = ox_calloc(g->values.n + 1, sizeof(*f.v));
    if (!res->values || !f.v) OX_TRY_GOTO(OX_FAIL(err, OX_NO_MEMORY, "no memory to run the graph"));
    OX_TRY_GOTO(ox_op_check_graph(g, err));
    OX_TRY_GOTO(last_uses(&r, g, &f.last));
    for (size_t i = 0; i < n_wanted; i++) {
        OX_TRY_GOTO(wanted_id(&f, wanted[i], &id));
        r.plans.p[0].last[id.i] = NEVER;
    }
    for (size_t i = 0; i < n_in; i++)
        OX_TRY_GOTO(give_input(&f, &in[i]));
    OX_TRY_GOTO(run_frame(&f));
    for (size_t i = 0; i < res->n; i++) {
        id = n_wanted ? ox_graph_find(g, wanted[i]) : g->outputs.p[i];
        OX_TRY_GOTO(value_of(&f, id, &v));
        res->values[i] = ox_rt_ref(v);
    }
fail:
    for (size_t i = 0; f.v && i < g->values.n; i++)
        ox_rt_unref(&f.v[i]);
    ox_free(f.v);
    for (size_t i = 0; i < r.plans.n; i++)
        ox_free(r.plans.p[i].last);
    ox_vec_deinit(&r.plans);
    if (st)
        ox_run_results_close(&res);
    else
        *out = res;
    return st;
}

void ox_run_results_close(ox_run_results **p)
{
    if (!p || !*p) return;
    ox_run_results *r = *p;
    for (size_t i = 0; r->values && i < r->n; i++)
        ox_rt_unref(&r->values[i]);
    ox_free(r->values);
    ox_rt_memory_close(&r->mem);
    ox_free(r);
    *p = NULL;
}
