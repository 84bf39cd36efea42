/* verify.c - the invariants of the IR, checked after building and after every rewrite in tests. */
#include "graph/graph.h"
#include "graph/terms.h"

static const struct {
    uint32_t in_min, in_max, n_out;
} operands[OX_TERM_COUNT] = {
#define OX_TERM(suffix, name, in_min, in_max, n_out) {in_min, in_max, n_out},
#include "graph/terms.def"
#undef OX_TERM
};

static ox_status check_ids(const ox_graph *g, const ox_node *n, const ox_value_id *ids, uint32_t k,
                           ox_err *err)
{
    for (uint32_t i = 0; i < k; i++)
        if (ids[i].i < -1 || ids[i].i >= (int32_t)g->values.n)
            return OX_FAIL(err, OX_FAILED, "node \"%.*s\" (%.*s) names value %d of %zu",
                           OX_STR_ARGS(n->name), OX_STR_ARGS(n->op_type), ids[i].i, g->values.n);
    return OX_OK;
}

/* In order: every value that i_node or its subgraphs read has an earlier, live producer. */
static ox_status check_read(const ox_graph *g, size_t i_node, ox_value_id id, ox_err *err)
{
    const ox_node *n = &g->nodes.p[i_node];
    if (!ox_value_is(id)) return OX_OK;
    const ox_value *v = ox_graph_value(g, id);
    if (v->kind != OX_VALUE_NODE) return OX_OK;
    if (v->producer.i < 0 || v->producer.i >= (int32_t)g->nodes.n)
        return OX_FAIL(err, OX_FAILED, "node \"%.*s\" (%.*s) reads \"%.*s\", which nobody produces",
                       OX_STR_ARGS(n->name), OX_STR_ARGS(n->op_type), OX_STR_ARGS(v->name));
    if (v->producer.i >= (int32_t)i_node || g->nodes.p[v->producer.i].dead)
        return OX_FAIL(err, OX_FAILED,
                       "node \"%.*s\" (%.*s) reads \"%.*s\", whose producer is dead or later",
                       OX_STR_ARGS(n->name), OX_STR_ARGS(n->op_type), OX_STR_ARGS(v->name));
    return OX_OK;
}

static ox_status check_subgraph(const ox_graph *g, size_t i_node, const ox_graph *sub, ox_err *err)
{
    if (!sub || sub->parent != g)
        return OX_FAIL(err, OX_FAILED, "node \"%.*s\" holds a subgraph of another graph",
                       OX_STR_ARGS(g->nodes.p[i_node].name));
    for (size_t i = 0; i < sub->values.n; i++) {
        const ox_value *v = &sub->values.p[i];
        if (v->kind != OX_VALUE_CAPTURE) continue;
        if (v->outer.i < 0 || v->outer.i >= (int32_t)g->values.n)
            return OX_FAIL(err, OX_FAILED, "capture \"%.*s\" names no outer value",
                           OX_STR_ARGS(v->name));
        OX_TRY(check_read(g, i_node, v->outer, err));
    }
    return ox_graph_verify(sub, err);
}

static ox_status check_node(const ox_graph *g, size_t i_node, ox_err *err)
{
    const ox_node *n = &g->nodes.p[i_node];
    OX_TRY(check_ids(g, n, n->inputs, n->n_inputs, err));
    OX_TRY(check_ids(g, n, n->outputs, n->n_outputs, err));
    for (uint32_t i = 0; i < n->n_inputs; i++)
        OX_TRY(check_read(g, i_node, n->inputs[i], err));
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        if (!ox_value_is(n->outputs[i])) continue;
        const ox_value *v = ox_graph_value(g, n->outputs[i]);
        if (v->kind != OX_VALUE_NODE || v->producer.i != (int32_t)i_node)
            return OX_FAIL(err, OX_FAILED, "value \"%.*s\" does not name node \"%.*s\" as producer",
                           OX_STR_ARGS(v->name), OX_STR_ARGS(n->name));
    }
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const ox_attr *a = &n->attrs[i];
        if (a->type == OX_ATTR_GRAPH) OX_TRY(check_subgraph(g, i_node, a->g, err));
        for (size_t j = 0; a->type == OX_ATTR_GRAPHS && j < a->n; j++)
            OX_TRY(check_subgraph(g, i_node, a->graphs[j], err));
    }
    if (!n->term) return OX_OK;
    if ((unsigned)n->term->kind >= OX_TERM_COUNT)
        return OX_FAIL(err, OX_FAILED, "node \"%.*s\" is no known term", OX_STR_ARGS(n->name));
    if (n->n_inputs < operands[n->term->kind].in_min ||
        n->n_inputs > operands[n->term->kind].in_max ||
        n->n_outputs != operands[n->term->kind].n_out)
        return OX_FAIL(err, OX_FAILED, "term \"%.*s\" (%s) has %u inputs and %u outputs",
                       OX_STR_ARGS(n->name), ox_term_name(n->term->kind), n->n_inputs,
                       n->n_outputs);
    if (n->term->kind == OX_TERM_ATTEND &&
        (n->term->cache.i < 0 || n->term->cache.i >= (int32_t)g->caches.n))
        return OX_FAIL(err, OX_FAILED, "term \"%.*s\" names cache %d of %zu", OX_STR_ARGS(n->name),
                       n->term->cache.i, g->caches.n);
    return OX_OK;
}

ox_status ox_graph_verify(const ox_graph *g, ox_err *err)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.p[i].dead) OX_TRY(check_node(g, i, err));
    for (size_t i = 0; i < g->inputs.n; i++) {
        const ox_value_id v = g->inputs.p[i];
        if (v.i < 0 || v.i >= (int32_t)g->values.n || ox_graph_value(g, v)->kind != OX_VALUE_INPUT)
            return OX_FAIL(err, OX_FAILED, "graph input %zu is no input value", i);
    }
    for (size_t i = 0; i < g->outputs.n; i++) {
        const ox_value_id v = g->outputs.p[i];
        if (v.i < 0 || v.i >= (int32_t)g->values.n)
            return OX_FAIL(err, OX_FAILED, "graph output %zu names no value", i);
        const ox_value *x = ox_graph_value(g, v);
        if (x->kind == OX_VALUE_NODE && (x->producer.i < 0 || g->nodes.p[x->producer.i].dead))
            return OX_FAIL(err, OX_FAILED, "graph output \"%.*s\" has no live producer",
                           OX_STR_ARGS(x->name));
    }
    for (size_t i = 0; i < g->values.n; i++)
        if (g->values.p[i].kind == OX_VALUE_CONSTANT && !g->values.p[i].constant)
            return OX_FAIL(err, OX_FAILED, "constant \"%.*s\" has no tensor",
                           OX_STR_ARGS(g->values.p[i].name));
    return OX_OK;
}
