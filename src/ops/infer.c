/* infer.c - see infer.h: walks the nodes in order, asks each operator's rule, and merges what it
 * says into the values. Small integer tensors (shapes under way) are
 * followed element by element. */
#include "ops/infer.h"

#include "ops/infer_internal.h"

typedef struct known {
    int32_t n; /* elements; 0 entries behind e NULL mean nothing known */
    ox_op_elem *e;
} known;

typedef struct walk {
    ox_graph *g;
    const struct walk *outer;
    known *k; /* [values] */
    ox_arena *arena;
    ox_infer_visit_fn *visit;
    void *user;
    ox_err *err;
} walk;

static ox_op_info info_of(const walk *w, ox_value_id id)
{
    ox_op_info x = {.rank = -1, .n_elems = -1};
    if (!ox_value_is(id)) return x;
    const ox_value *v = ox_graph_value(w->g, id);
    while (v->kind == OX_VALUE_CAPTURE && w->outer) {
        w = w->outer;
        id = v->outer;
        v = ox_graph_value(w->g, id);
    }
    x.present = true;
    x.type = v->type;
    x.dtype = v->dtype;
    x.rank = v->rank;
    memcpy(x.dims, v->dims, sizeof(x.dims));
    x.constant = v->kind == OX_VALUE_CONSTANT ? v->constant : NULL;
    if (!w->k[id.i].e) return x;
    x.n_elems = w->k[id.i].n;
    memcpy(x.elems, w->k[id.i].e, (size_t)x.n_elems * sizeof(*x.elems));
    return x;
}

static ox_status merge(walk *w, const ox_node *n, ox_value_id id, const ox_op_info *o)
{
    ox_value *v = ox_graph_value(w->g, id);
    if (v->kind != OX_VALUE_NODE) return OX_OK;
    if (o->type != OX_TYPE_TENSOR) v->type = o->type;
    if (o->dtype && v->dtype && o->dtype != v->dtype)
        return OX_FAIL(w->err, OX_BAD_FILE,
                       "node \"%.*s\" (%.*s) makes \"%.*s\" %s, the file says %s",
                       OX_STR_ARGS(n->name), OX_STR_ARGS(n->op_type), OX_STR_ARGS(v->name),
                       ox_dtype_name(o->dtype), ox_dtype_name(v->dtype));
    if (o->dtype) v->dtype = o->dtype;
    if (o->rank >= 0) {
        const bool fresh = v->rank != o->rank;
        v->rank = o->rank;
        for (int32_t i = 0; i < o->rank; i++)
            if (fresh || o->dims[i] >= 0 || (o->dims[i] != OX_DIM_UNKNOWN && v->dims[i] < 0))
                v->dims[i] = o->dims[i];
    }
    if (o->n_elems < 0) return OX_OK;
    known *k = &w->k[id.i];
    k->n = o->n_elems;
    k->e = ox_arena_take_n(w->arena, (size_t)o->n_elems + 1, sizeof(*k->e));
    if (!k->e) return OX_FAIL(w->err, OX_NO_MEMORY, "no memory to infer shapes");
    memcpy(k->e, o->elems, (size_t)o->n_elems * sizeof(*k->e));
    bool numbers = v->dtype == OX_DTYPE_I64 || v->dtype == OX_DTYPE_I32;
    for (int32_t i = 0; i < k->n; i++)
        numbers &= k->e[i].kind == OX_ELEM_VALUE;
    numbers &= v->rank == 0 ? k->n == 1 : v->rank == 1 && v->dims[0] == k->n;
    return numbers && w->visit ? w->visit(w->user, w->g, id, k->e, k->n) : OX_OK;
}

static ox_status infer_graph(walk *w);

static ox_status infer_subgraph(const walk *w, ox_graph *sub)
{
    walk in = *w;
    in.g = sub;
    in.outer = w;
    in.k = ox_calloc(sub->values.n + 1, sizeof(*in.k));
    if (!in.k) return OX_FAIL(w->err, OX_NO_MEMORY, "no memory to infer shapes");
    for (size_t i = 0; i < sub->values.n; i++) {
        ox_value *v = &sub->values.p[i];
        if (v->kind != OX_VALUE_CAPTURE) continue;
        const ox_op_info x = info_of(&in, (ox_value_id){(int32_t)i});
        v->type = x.type;
        v->dtype = x.dtype;
        v->rank = x.rank;
        memcpy(v->dims, x.dims, sizeof(v->dims));
    }
    const ox_status st = infer_graph(&in);
    ox_free(in.k);
    return st;
}

static void give_type(ox_graph *sub, size_t i, const ox_op_info *x, int32_t drop_axis)
{
    if (i >= sub->inputs.n || !x->present) return;
    ox_value *v = ox_graph_value(sub, sub->inputs.p[i]);
    if (!v->dtype) v->dtype = x->dtype;
    if (v->type == OX_TYPE_TENSOR) v->type = x->type;
    if (drop_axis < 0 || drop_axis >= x->rank || v->rank >= 0) return;
    v->rank = 0;
    for (int32_t k = 0; k < x->rank; k++)
        if (k != drop_axis) v->dims[v->rank++] = x->dims[k];
}

/* What is common to two descriptions of one value. */
static ox_op_info common(const ox_op_info *a, const ox_value *b)
{
    ox_op_info r = *a;
    r.n_elems = -1;
    r.constant = NULL;
    if (r.dtype != b->dtype) r.dtype = OX_DTYPE_NONE;
    if (r.rank != b->rank) r.rank = -1;
    for (int32_t i = 0; i < r.rank; i++)
        if (r.dims[i] != b->dims[i]) r.dims[i] = OX_DIM_UNKNOWN;
    return r;
}

static ox_op_info plain(const ox_value *v)
{
    ox_op_info x = {
        .present = true, .type = v->type, .dtype = v->dtype, .rank = v->rank, .n_elems = -1};
    memcpy(x.dims, v->dims, sizeof(x.dims));
    return x;
}

static ox_status infer_if(walk *w, const ox_node *n)
{
    const ox_attr *a = ox_node_attr(n, "then_branch"), *b = ox_node_attr(n, "else_branch");
    if (!a || !b || a->type != OX_ATTR_GRAPH || b->type != OX_ATTR_GRAPH) return OX_OK;
    for (uint32_t i = 0; i < n->n_outputs && i < a->g->outputs.n && i < b->g->outputs.n; i++) {
        const ox_op_info x = plain(ox_graph_value(a->g, a->g->outputs.p[i]));
        const ox_op_info both = common(&x, ox_graph_value(b->g, b->g->outputs.p[i]));
        if (ox_value_is(n->outputs[i])) OX_TRY(merge(w, n, n->outputs[i], &both));
    }
    return OX_OK;
}

/* Loop and Scan: types of the carried values, types and known sizes of what is stacked. */
static ox_status infer_loop(walk *w, const ox_node *n, const ox_graph *body, size_t skip,
                            size_t n_state)
{
    for (uint32_t i = 0; i < n->n_outputs && skip + i < body->outputs.n; i++) {
        ox_op_info x = plain(ox_graph_value(body, body->outputs.p[skip + i]));
        const bool axis0 = skip == 1 || !ox_node_attr(n, "scan_output_axes");
        if (i < n_state || x.rank < 0 || x.rank >= OX_RANK_MAX || !axis0) {
            x.rank = -1;
        } else {
            for (int32_t k = x.rank; k > 0; k--)
                x.dims[k] = x.dims[k - 1] < 0 ? OX_DIM_UNKNOWN : x.dims[k - 1];
            x.dims[0] = OX_DIM_UNKNOWN;
            x.rank++;
        }
        if (ox_value_is(n->outputs[i])) OX_TRY(merge(w, n, n->outputs[i], &x));
    }
    return OX_OK;
}

static ox_status infer_control(walk *w, const ox_node *n)
{
    const ox_attr *body = ox_node_attr(n, "body");
    const bool loop = ox_str_is(n->op_type, "Loop"), scan = ox_str_is(n->op_type, "Scan");
    const size_t n_scan = (size_t)ox_node_int(n, "num_scan_inputs", 0);
    ox_graph *sub = body && body->type == OX_ATTR_GRAPH ? body->g : NULL;
    const size_t n_state = loop                   ? (n->n_inputs > 2 ? n->n_inputs - 2 : 0)
                           : n->n_inputs > n_scan ? n->n_inputs - n_scan
                                                  : 0;
    for (size_t i = 0; loop && sub && i < 2 && i < sub->inputs.n; i++) { /* iteration, condition */
        ox_value *v = ox_graph_value(sub, sub->inputs.p[i]);
        if (v->rank < 0) v->rank = 0;
        if (!v->dtype) v->dtype = i ? OX_DTYPE_BOOL : OX_DTYPE_I64;
    }
    for (uint32_t i = 0; sub && i < n->n_inputs; i++) {
        const ox_op_info x = info_of(w, n->inputs[i]);
        const bool scanned = scan && i >= n_state && !ox_node_attr(n, "scan_input_axes");
        if (loop || scan) give_type(sub, i, &x, scanned ? 0 : -1);
    }
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].type == OX_ATTR_GRAPH) OX_TRY(infer_subgraph(w, n->attrs[i].g));
    if (ox_str_is(n->op_type, "If")) return infer_if(w, n);
    if (sub && loop) return infer_loop(w, n, sub, 1, n_state);
    if (sub && scan && n->version >= 9) return infer_loop(w, n, sub, 0, n_state);
    return OX_OK;
}

static ox_status infer_node(walk *w, const ox_node *n, const ox_op *op)
{
    ox_status st = OX_OK;
    const size_t n_io = (size_t)n->n_inputs + n->n_outputs;
    ox_op_info few[12], *io = n_io <= OX_COUNT(few) ? few : ox_calloc(n_io, sizeof(*io));
    if (!io) return OX_FAIL(w->err, OX_NO_MEMORY, "no memory to infer shapes");
    for (uint32_t i = 0; i < n->n_inputs; i++)
        io[i] = info_of(w, n->inputs[i]);
    ox_op_info *out = io + n->n_inputs;
    for (uint32_t i = 0; i < n->n_outputs; i++)
        out[i] = (ox_op_info){.rank = -1, .n_elems = -1};
    ox_infer_ctx c = {.node = n,
                      .g = w->g,
                      .n_in = n->n_inputs,
                      .in = io,
                      .n_out = n->n_outputs,
                      .out = out,
                      .err = w->err};
    OX_TRY_GOTO(ox_op_infer(op, &c));
    for (uint32_t i = 0; i < n->n_outputs; i++)
        if (ox_value_is(n->outputs[i])) OX_TRY_GOTO(merge(w, n, n->outputs[i], &out[i]));
fail:
    if (io != few) ox_free(io);
    return st;
}

static ox_status infer_graph(walk *w)
{
    for (size_t i = 0; i < w->g->nodes.n; i++) {
        const ox_node *n = &w->g->nodes.p[i];
        if (n->dead || n->term) continue;
        const ox_op *op = ox_op_find(n->domain, n->op_type, n->version);
        if (!op) continue;
        OX_TRY(op->flags & OX_OP_CONTROL ? infer_control(w, n) : infer_node(w, n, op));
    }
    return OX_OK;
}

ox_status ox_graph_infer_with(ox_graph *g, ox_infer_visit_fn *visit, void *user, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    walk w = {.g = g, .arena = &arena, .visit = visit, .user = user, .err = err};
    w.k = ox_calloc(g->values.n + 1, sizeof(*w.k));
    if (!w.k) return OX_FAIL(err, OX_NO_MEMORY, "no memory to infer shapes");
    const ox_status st = infer_graph(&w);
    ox_free(w.k);
    ox_arena_deinit(&arena);
    return st;
}

ox_status ox_graph_infer(ox_graph *g, ox_err *err)
{
    return ox_graph_infer_with(g, NULL, NULL, err);
}
