/* sort.c - topological order, stable: a sorted graph stays as it is. Depth-first from each node in
 * the present order, producers first; the stack is explicit because files decide its depth. */
#include "graph/graph.h"
#include <assert.h>

typedef struct reads {
    int32_t *at; /* producers that node i waits for: list[at[i] .. at[i+1]) */
    OX_VEC(int32_t) list;
    bool failed;
} reads;

static void add_read(const ox_graph *g, reads *r, ox_value_id v)
{
    if (!ox_value_is(v)) return;
    const ox_value *x = ox_graph_value(g, v);
    if (x->kind == OX_VALUE_NODE && x->producer.i >= 0 && !ox_vec_push(&r->list, x->producer.i))
        r->failed = true;
}

static void add_captures(const ox_graph *g, reads *r, const ox_graph *sub)
{
    for (size_t i = 0; sub && i < sub->values.n; i++)
        if (sub->values.p[i].kind == OX_VALUE_CAPTURE) add_read(g, r, sub->values.p[i].outer);
}

static void add_node(const ox_graph *g, reads *r, const ox_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        add_read(g, r, n->inputs[i]);
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const ox_attr *a = &n->attrs[i];
        if (a->type == OX_ATTR_GRAPH) add_captures(g, r, a->g);
        for (size_t j = 0; a->type == OX_ATTR_GRAPHS && j < a->n; j++)
            add_captures(g, r, a->graphs[j]);
    }
}

enum { NEW = 0, OPEN = 1, DONE = 2 };

typedef struct walk {
    reads r;
    uint8_t *state;
    int32_t *stack, *next; /* next: position in the reads list of each open node */
    int32_t *order;        /* new position -> old index */
    int32_t n_order;
} walk;

/* False: a cycle through node *at. */
static bool visit(walk *w, int32_t root, int32_t *at)
{
    int32_t depth = 0;
    w->stack[depth++] = root;
    w->state[root] = OPEN;
    w->next[root] = w->r.at[root];
    while (depth) {
        const int32_t n = w->stack[depth - 1];
        if (w->next[n] == w->r.at[n + 1]) {
            w->state[n] = DONE;
            w->order[w->n_order++] = n;
            depth--;
            continue;
        }
        assert(w->r.list.p);
        const int32_t p = w->r.list.p[w->next[n]++];
        if (w->state[p] == DONE) continue;
        if (w->state[p] == OPEN) {
            *at = p;
            return false;
        }
        w->state[p] = OPEN;
        w->next[p] = w->r.at[p];
        w->stack[depth++] = p;
    }
    return true;
}

static void apply(ox_graph *g, const walk *w, ox_node *sorted)
{
    for (int32_t i = 0; i < w->n_order; i++) {
        sorted[i] = g->nodes.p[w->order[i]];
        for (uint32_t j = 0; j < sorted[i].n_outputs; j++) {
            const ox_value_id v = sorted[i].outputs[j];
            if (ox_value_is(v)) ox_graph_value(g, v)->producer = (ox_node_id){i};
        }
    }
    /* Dead nodes go, and with them the subgraphs only they held. */
    for (size_t i = 0; i < g->nodes.n; i++) {
        ox_node *n = &g->nodes.p[i];
        for (uint32_t j = 0; n->dead && j < n->n_attrs; j++) {
            if (n->attrs[j].type == OX_ATTR_GRAPH) ox_graph_close(&n->attrs[j].g);
            for (size_t k = 0; n->attrs[j].type == OX_ATTR_GRAPHS && k < n->attrs[j].n; k++) {
                ox_graph *sub = n->attrs[j].graphs[k];
                ox_graph_close(&sub);
            }
        }
        for (uint32_t j = 0; n->dead && j < n->n_outputs; j++)
            if (ox_value_is(n->outputs[j]) &&
                ox_graph_value(g, n->outputs[j])->producer.i == (int32_t)i)
                ox_graph_value(g, n->outputs[j])->producer = OX_NO_NODE;
    }
    if (w->n_order) memcpy(g->nodes.p, sorted, (size_t)w->n_order * sizeof(*sorted));
    g->nodes.n = (size_t)w->n_order;
}

ox_status ox_graph_sort(ox_graph *g, ox_err *err)
{
    ox_status st = OX_OK;
    const size_t n = g->nodes.n;
    int32_t at = 0;
    walk w = {0};
    ox_node *sorted = ox_calloc(n + 1, sizeof(*sorted));
    w.r.at = ox_calloc(n + 2, sizeof(int32_t));
    w.state = ox_calloc(n + 1, 1);
    w.stack = ox_calloc(n + 1, sizeof(int32_t));
    w.next = ox_calloc(n + 1, sizeof(int32_t));
    w.order = ox_calloc(n + 1, sizeof(int32_t));
    if (!sorted || !w.r.at || !w.state || !w.stack || !w.next || !w.order)
        OX_TRY_GOTO(OX_FAIL(err, OX_NO_MEMORY, "no memory to sort %zu nodes", n));
    for (size_t i = 0; i < n; i++) {
        if (!g->nodes.p[i].dead) add_node(g, &w.r, &g->nodes.p[i]);
        if (w.r.failed || w.r.list.n > INT32_MAX)
            OX_TRY_GOTO(OX_FAIL(err, OX_NO_MEMORY, "no memory to sort %zu nodes", n));
        w.r.at[i + 1] = (int32_t)w.r.list.n;
    }
    for (size_t i = 0; i < n; i++) {
        if (g->nodes.p[i].dead || w.state[i]) continue;
        if (!visit(&w, (int32_t)i, &at))
            OX_TRY_GOTO(OX_FAIL(err, OX_BAD_FILE, "node \"%.*s\" (%.*s) depends on its own output",
                                OX_STR_ARGS(g->nodes.p[at].name),
                                OX_STR_ARGS(g->nodes.p[at].op_type)));
    }
    for (int32_t i = 0; i < w.n_order; i++)
        if (g->nodes.p[w.order[i]].dead)
            OX_TRY_GOTO(OX_FAIL(err, OX_FAILED, "a live node reads an output of dead node \"%.*s\"",
                                OX_STR_ARGS(g->nodes.p[w.order[i]].name)));
    apply(g, &w, sorted);
fail:
    ox_free(sorted);
    ox_free(w.r.at);
    ox_vec_deinit(&w.r.list);
    ox_free(w.state);
    ox_free(w.stack);
    ox_free(w.next);
    ox_free(w.order);
    return st;
}
