/* graph.c - building and editing the IR: see graph.h. Strings, dimensions and nodes' arrays live in
 * the arena; the tables of values and nodes grow on the heap and are freed by ox_graph_close.
 * Symbols are kept by the outermost graph, so that a dimension means the same in every subgraph. */
#include "graph/graph.h"

#include <stdio.h>

enum { VALUES_MAX = 1 << 24, NODES_MAX = 1 << 22, SYMBOLS_MAX = 1 << 20 };

ox_status ox_graph_open(ox_graph **out, ox_arena *arena, ox_graph *parent, ox_err *err)
{
    ox_graph *g = ox_calloc(1, sizeof(*g));
    *out = NULL;
    if (!g) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a graph");
    g->arena = arena;
    g->parent = parent;
    *out = g;
    return OX_OK;
}

static void close_subgraphs(ox_node *n)
{
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        ox_attr *a = &n->attrs[i];
        if (a->type == OX_ATTR_GRAPH) ox_graph_close(&a->g);
        if (a->type != OX_ATTR_GRAPHS) continue;
        for (size_t j = 0; j < a->n; j++) {
            ox_graph *sub = a->graphs[j];
            ox_graph_close(&sub);
        }
    }
}

void ox_graph_close(ox_graph **g)
{
    if (!g || !*g) return;
    ox_graph *x = *g;
    for (size_t i = 0; i < x->nodes.n; i++)
        close_subgraphs(&x->nodes.p[i]);
    ox_vec_deinit(&x->values);
    ox_vec_deinit(&x->nodes);
    ox_vec_deinit(&x->inputs);
    ox_vec_deinit(&x->outputs);
    ox_vec_deinit(&x->symbols);
    ox_vec_deinit(&x->caches);
    ox_map_deinit(&x->by_name);
    ox_free(x);
    *g = NULL;
}

static bool copy_str(ox_arena *a, ox_str s, ox_str *out)
{
    char *p = ox_arena_copy(a, s.p ? s.p : "", s.n);
    *out = (ox_str){p, s.n};
    return p != NULL;
}

ox_status ox_graph_add_value(ox_graph *g, ox_str name, ox_value_id *out, ox_err *err)
{
    char made[32];
    uint64_t old;
    ox_value v = {.kind = OX_VALUE_NODE, .rank = -1, .producer = OX_NO_NODE, .outer = OX_NO_VALUE};
    *out = OX_NO_VALUE;
    for (size_t k = g->values.n; !name.n || (name.p == made && ox_map_get(&g->by_name, name, &old));
         k++) {
        const int n = snprintf(made, sizeof(made), "_%zu", k);
        name = (ox_str){made, (size_t)n};
    }
    if (ox_map_get(&g->by_name, name, &old))
        return OX_FAIL(err, OX_BAD_FILE, "graph \"%.*s\" defines the value \"%.*s\" twice",
                       OX_STR_ARGS(g->name), OX_STR_ARGS(name));
    if (g->values.n >= VALUES_MAX)
        return OX_FAIL(err, OX_LIMIT, "a graph has more than %d values", VALUES_MAX);
    const ox_value_id id = {(int32_t)g->values.n};
    if (!copy_str(g->arena, name, &v.name) || !ox_vec_push(&g->values, v) ||
        !ox_map_put(&g->by_name, v.name, (uint64_t)id.i))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for value \"%.*s\"", OX_STR_ARGS(name));
    *out = id;
    return OX_OK;
}

ox_status ox_graph_add_constant(ox_graph *g, ox_str name, const ox_tensor *t, ox_value_id *out,
                                ox_err *err)
{
    ox_tensor *copy = ox_arena_take(g->arena, sizeof(*copy));
    *out = OX_NO_VALUE;
    if (!copy) return OX_FAIL(err, OX_NO_MEMORY, "no memory for \"%.*s\"", OX_STR_ARGS(name));
    *copy = *t;
    OX_TRY(ox_graph_add_value(g, name, out, err));
    ox_value *v = ox_graph_value(g, *out);
    v->kind = OX_VALUE_CONSTANT;
    v->dtype = t->dtype;
    v->rank = t->rank;
    memcpy(v->dims, t->dims, sizeof(v->dims));
    v->constant = copy;
    return OX_OK;
}

/* size bytes copied to the arena; a NULL result with n > 0 is out of memory. */
static void *copy_n(ox_arena *a, const void *p, size_t n, size_t size)
{
    void *q = ox_arena_take_n(a, n ? n : 1, size);
    if (q && n) memcpy(q, p, n * size);
    return q;
}

static bool copy_attr(ox_arena *a, ox_attr *x)
{
    if (!copy_str(a, x->name, &x->name)) return false;
    switch (x->type) {
    case OX_ATTR_STRING:
        return copy_str(a, x->s, &x->s);
    case OX_ATTR_TENSOR:
        return !x->t || (x->t = copy_n(a, x->t, 1, sizeof(*x->t))) != NULL;
    case OX_ATTR_FLOATS:
        return (x->floats = copy_n(a, x->floats, x->n, sizeof(float))) != NULL;
    case OX_ATTR_INTS:
        return (x->ints = copy_n(a, x->ints, x->n, sizeof(int64_t))) != NULL;
    case OX_ATTR_TENSORS:
        return (x->tensors = copy_n(a, x->tensors, x->n, sizeof(ox_tensor))) != NULL;
    case OX_ATTR_GRAPHS:
        return (x->graphs = copy_n(a, x->graphs, x->n, sizeof(ox_graph *))) != NULL;
    case OX_ATTR_STRINGS: {
        ox_str *s = copy_n(a, x->strings, x->n, sizeof(ox_str));
        for (size_t i = 0; s && i < x->n; i++)
            if (!copy_str(a, s[i], &s[i])) return false;
        x->strings = s;
        return s != NULL;
    }
    default:
        return true;
    }
}

static bool copy_node(ox_graph *g, const ox_node *from, ox_node *n)
{
    char made[32];
    *n = *from;
    n->dead = false;
    n->inputs = copy_n(g->arena, from->inputs, from->n_inputs, sizeof(ox_value_id));
    n->outputs = copy_n(g->arena, from->outputs, from->n_outputs, sizeof(ox_value_id));
    n->attrs = copy_n(g->arena, from->attrs, from->n_attrs, sizeof(ox_attr));
    if (!n->inputs || !n->outputs || !n->attrs) return false;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!copy_attr(g->arena, &n->attrs[i])) return false;
    if (!copy_str(g->arena, from->op_type, &n->op_type)) return false;
    if (!copy_str(g->arena, from->domain, &n->domain)) return false;
    if (from->name.n) return copy_str(g->arena, from->name, &n->name);
    const int digits = snprintf(made, sizeof(made), "_%zu", g->nodes.n);
    char *p = ox_arena_take(g->arena, n->op_type.n + (size_t)digits + 1);
    if (!p) return false;
    memcpy(p, n->op_type.p, n->op_type.n);
    memcpy(p + n->op_type.n, made, (size_t)digits + 1);
    n->name = (ox_str){p, n->op_type.n + (size_t)digits};
    return true;
}

static bool ids_fit(const ox_graph *g, const ox_value_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i].i < -1 || ids[i].i >= (int32_t)g->values.n) return false;
    return true;
}

ox_status ox_graph_add_node(ox_graph *g, const ox_node *node, ox_node_id *out, ox_err *err)
{
    ox_node n;
    *out = OX_NO_NODE;
    if (g->nodes.n >= NODES_MAX)
        return OX_FAIL(err, OX_LIMIT, "a graph has more than %d nodes", NODES_MAX);
    if (!ids_fit(g, node->inputs, node->n_inputs) || !ids_fit(g, node->outputs, node->n_outputs))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "node \"%.*s\" (%.*s) names a value the graph lacks",
                       OX_STR_ARGS(node->name), OX_STR_ARGS(node->op_type));
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (!ox_value_is(node->outputs[i])) continue;
        const ox_value *v = ox_graph_value(g, node->outputs[i]);
        if (v->kind != OX_VALUE_NODE || v->producer.i >= 0)
            return OX_FAIL(err, OX_BAD_FILE,
                           "node \"%.*s\" (%.*s) produces \"%.*s\", which already has a producer",
                           OX_STR_ARGS(node->name), OX_STR_ARGS(node->op_type),
                           OX_STR_ARGS(v->name));
        for (uint32_t j = 0; j < i; j++)
            if (node->outputs[j].i == node->outputs[i].i)
                return OX_FAIL(err, OX_BAD_FILE, "node \"%.*s\" (%.*s) produces \"%.*s\" twice",
                               OX_STR_ARGS(node->name), OX_STR_ARGS(node->op_type),
                               OX_STR_ARGS(v->name));
    }
    if (!copy_node(g, node, &n) || !ox_vec_push(&g->nodes, n))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for node \"%.*s\"", OX_STR_ARGS(node->name));
    *out = (ox_node_id){(int32_t)g->nodes.n - 1};
    for (uint32_t i = 0; i < n.n_outputs; i++)
        if (ox_value_is(n.outputs[i])) ox_graph_value(g, n.outputs[i])->producer = *out;
    return OX_OK;
}

ox_status ox_graph_add_cache(ox_graph *g, const ox_cache *c, ox_cache_id *out, ox_err *err)
{
    ox_cache x = *c;
    *out = (ox_cache_id){-1};
    if (!copy_str(g->arena, c->past_k, &x.past_k) || !copy_str(g->arena, c->past_v, &x.past_v) ||
        !copy_str(g->arena, c->present_k, &x.present_k) ||
        !copy_str(g->arena, c->present_v, &x.present_v) || !ox_vec_push(&g->caches, x))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a cache");
    *out = (ox_cache_id){(int32_t)g->caches.n - 1};
    return OX_OK;
}

int64_t ox_graph_symbol(ox_graph *g, ox_str name)
{
    char made[32];
    ox_str own;
    while (g->parent)
        g = g->parent;
    for (size_t i = 0; name.n && i < g->symbols.n; i++)
        if (ox_str_eq(g->symbols.p[i], name)) return -(2 + (int64_t)i);
    if (!name.n) {
        const int n = snprintf(made, sizeof(made), "?%zu", g->symbols.n);
        name = (ox_str){made, (size_t)n};
    }
    if (g->symbols.n >= SYMBOLS_MAX || !copy_str(g->arena, name, &own) ||
        !ox_vec_push(&g->symbols, own))
        return OX_DIM_UNKNOWN;
    return -(2 + (int64_t)g->symbols.n - 1);
}

ox_value_id ox_graph_find(const ox_graph *g, ox_str name)
{
    uint64_t id;
    if (!ox_map_get(&g->by_name, name, &id)) return OX_NO_VALUE;
    return (ox_value_id){(int32_t)id};
}

/* Calls fn for every capture of g's values by the node's subgraphs. */
typedef void capture_fn(void *user, ox_value *capture);

static void graph_captures(ox_graph *sub, capture_fn *fn, void *user)
{
    if (!sub) return;
    for (size_t i = 0; i < sub->values.n; i++)
        if (sub->values.p[i].kind == OX_VALUE_CAPTURE) fn(user, &sub->values.p[i]);
}

static void node_captures(const ox_node *n, capture_fn *fn, void *user)
{
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const ox_attr *a = &n->attrs[i];
        if (a->type == OX_ATTR_GRAPH) graph_captures(a->g, fn, user);
        for (size_t j = 0; a->type == OX_ATTR_GRAPHS && j < a->n; j++)
            graph_captures(a->graphs[j], fn, user);
    }
}

typedef struct count {
    ox_value_id v;
    size_t n;
} count;

static void count_capture(void *user, ox_value *capture)
{
    count *c = user;
    c->n += capture->outer.i == c->v.i;
}

size_t ox_graph_uses(const ox_graph *g, ox_value_id v)
{
    count c = {.v = v};
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        bool reads = false;
        if (n->dead) continue;
        for (uint32_t j = 0; j < n->n_inputs; j++)
            reads |= n->inputs[j].i == v.i;
        c.n += reads;
        node_captures(n, count_capture, &c);
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        c.n += g->outputs.p[i].i == v.i;
    return c.n;
}

typedef struct change {
    ox_value_id from, to;
} change;

static void change_capture(void *user, ox_value *capture)
{
    const change *c = user;
    if (capture->outer.i == c->from.i) capture->outer = c->to;
}

void ox_graph_replace_uses(ox_graph *g, ox_value_id from, ox_value_id to)
{
    change c = {from, to};
    for (size_t i = 0; i < g->nodes.n; i++) {
        ox_node *n = &g->nodes.p[i];
        for (uint32_t j = 0; j < n->n_inputs; j++)
            if (n->inputs[j].i == from.i) n->inputs[j] = to;
        node_captures(n, change_capture, &c);
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        if (g->outputs.p[i].i == from.i) g->outputs.p[i] = to;
}

static void mark_capture(void *user, ox_value *capture)
{
    bool *wanted = user;
    if (ox_value_is(capture->outer)) wanted[capture->outer.i] = true;
}

void ox_graph_remove_dead(ox_graph *g)
{
    bool *wanted = ox_calloc(g->values.n + 1, sizeof(*wanted));
    if (!wanted) return; /* nothing removed: correct, only slower */
    for (size_t i = 0; i < g->outputs.n; i++)
        wanted[g->outputs.p[i].i] = true;
    /* Nodes are in order except between an edit and its sort: repeat until nothing changes. */
    for (bool again = true; again;) {
        again = false;
        for (size_t i = g->nodes.n; i-- > 0;) {
            ox_node *n = &g->nodes.p[i];
            bool used = false, fresh = false;
            if (n->dead) continue;
            for (uint32_t j = 0; j < n->n_outputs; j++)
                used |= ox_value_is(n->outputs[j]) && wanted[n->outputs[j].i];
            if (!used) continue;
            for (uint32_t j = 0; j < n->n_inputs; j++) {
                if (!ox_value_is(n->inputs[j]) || wanted[n->inputs[j].i]) continue;
                wanted[n->inputs[j].i] = fresh = true;
            }
            node_captures(n, mark_capture, wanted);
            again |= fresh;
        }
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        ox_node *n = &g->nodes.p[i];
        bool used = n->n_outputs == 0;
        for (uint32_t j = 0; j < n->n_outputs; j++)
            used |= ox_value_is(n->outputs[j]) && wanted[n->outputs[j].i];
        if (!used) n->dead = true;
    }
    ox_free(wanted);
}
