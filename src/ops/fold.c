/* fold.c - see fold.h. */
#include "ops/fold.h"

#include "ops/infer.h"
#include "ops/op_internal.h"

typedef struct fold {
    size_t max_bytes;
    ox_err *err;
} fold;

/* The value as a constant with a copy of t's data in the arena. */
static ox_status make_constant(fold *f, ox_graph *g, ox_value_id id, const ox_tensor *t)
{
    size_t bytes = 0, n = 0;
    (void)ox_tensor_bytes(t, &bytes);
    ox_tensor *copy = ox_arena_take(g->arena, sizeof(*copy));
    void *data = copy ? ox_arena_take(g->arena, bytes ? bytes : 1) : NULL;
    if (!data) return OX_FAIL(f->err, OX_NO_MEMORY, "no memory to fold constants");
    if (bytes) memcpy(data, t->data, bytes);
    if (t->dtype == OX_DTYPE_STRING && ox_tensor_count(t, &n)) {
        for (size_t i = 0; i < n; i++) {
            ox_str *s = (ox_str *)data + i;
            s->p = ox_arena_copy(g->arena, s->p ? s->p : "", s->n);
            if (!s->p) return OX_FAIL(f->err, OX_NO_MEMORY, "no memory to fold constants");
        }
    }
    *copy = *t;
    copy->data = data;
    ox_value *v = ox_graph_value(g, id);
    v->kind = OX_VALUE_CONSTANT;
    v->type = OX_TYPE_TENSOR;
    v->dtype = t->dtype;
    v->rank = t->rank;
    memcpy(v->dims, t->dims, sizeof(v->dims));
    v->constant = copy;
    v->producer = OX_NO_NODE;
    return OX_OK;
}

/* Detaches a node: outputs that are constants now are no longer its own. */
static void drop_outputs(ox_graph *g, ox_node *n)
{
    bool all = true;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        if (!ox_value_is(n->outputs[i])) continue;
        if (ox_graph_value(g, n->outputs[i])->kind == OX_VALUE_CONSTANT)
            n->outputs[i] = OX_NO_VALUE;
        else
            all = false;
    }
    if (all) n->dead = true;
}

static ox_status known_list(void *user, ox_graph *g, ox_value_id id, const ox_op_elem *e, int n)
{
    int64_t wide[OX_OP_ELEMS];
    int32_t narrow[OX_OP_ELEMS];
    const ox_value *v = ox_graph_value(g, id);
    for (int i = 0; i < n; i++) {
        wide[i] = e[i].v;
        narrow[i] = (int32_t)e[i].v;
    }
    const ox_tensor t = {.dtype = v->dtype,
                         .rank = v->rank,
                         .dims = {n},
                         .data = v->dtype == OX_DTYPE_I64 ? (void *)wide : (void *)narrow};
    const ox_node_id producer = v->producer;
    OX_TRY(make_constant(user, g, id, &t));
    if (producer.i >= 0) drop_outputs(g, ox_graph_node(g, producer));
    return OX_OK;
}

/* A constant that a value is or captures. */
static const ox_tensor *constant_of(const ox_graph *g, ox_value_id id)
{
    const ox_value *v = ox_graph_value(g, id);
    while (v->kind == OX_VALUE_CAPTURE && g->parent && ox_value_is(v->outer)) {
        g = g->parent;
        v = ox_graph_value(g, v->outer);
    }
    return v->kind == OX_VALUE_CONSTANT ? v->constant : NULL;
}

/* All inputs constant, something to gain, and no output known to be too large. */
static bool may_fold(const fold *f, const ox_graph *g, const ox_node *n, const ox_op *op)
{
    if (!op || (op->flags & (OX_OP_CONTROL | OX_OP_RANDOM)) || n->n_inputs > OX_OP_LIST ||
        n->n_outputs > OX_OP_LIST)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (ox_value_is(n->inputs[i]) && !constant_of(g, n->inputs[i])) return false;
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        if (!ox_value_is(n->outputs[i])) continue;
        const ox_value *v = ox_graph_value(g, n->outputs[i]);
        size_t count, bytes;
        if (v->type != OX_TYPE_TENSOR) return false;
        if (v->rank >= 0 && v->dtype && ox_dims_count(v->dims, v->rank, &count) &&
            (!ox_dtype_bytes(v->dtype, count, &bytes) || bytes > f->max_bytes))
            return false;
    }
    return n->n_inputs > 0;
}

static ox_status fold_node(fold *f, ox_graph *g, ox_node *n, const ox_op *op)
{
    ox_rt_value *in[OX_OP_LIST] = {0}, *out[OX_OP_LIST] = {0};
    ox_rt_memory mem = {.limit = f->max_bytes > SIZE_MAX / 64 ? 0 : f->max_bytes * 32 + (1u << 20)};
    ox_err quiet = OX_ERR_INIT;
    ox_status st = OX_OK;
    size_t n_in = n->n_inputs, bytes;
    bool fits = true;
    while (n_in && !ox_value_is(n->inputs[n_in - 1]))
        n_in--;
    for (size_t i = 0; i < n_in; i++) {
        if (!ox_value_is(n->inputs[i])) continue;
        in[i] = ox_rt_tensor_view(&mem, constant_of(g, n->inputs[i]));
        fits &= in[i] != NULL;
    }
    ox_op_ctx c = {.node = n,
                   .n_in = n_in,
                   .in = in,
                   .n_out = n->n_outputs,
                   .out = out,
                   .mem = &mem,
                   .work_limit = 1u << 30,
                   .err = &quiet};
    if (fits) fits = ox_op_eval(op, &c) == OX_OK;
    for (uint32_t i = 0; fits && i < n->n_outputs; i++)
        if (ox_value_is(n->outputs[i]))
            fits = out[i] && out[i]->kind == OX_RT_TENSOR && ox_tensor_bytes(&out[i]->t, &bytes) &&
                   bytes <= f->max_bytes;
    for (uint32_t i = 0; fits && !st && i < n->n_outputs; i++)
        if (ox_value_is(n->outputs[i])) st = make_constant(f, g, n->outputs[i], &out[i]->t);
    if (fits && !st) drop_outputs(g, n);
    for (size_t i = 0; i < OX_OP_LIST; i++) {
        ox_rt_unref(&in[i]);
        ox_rt_unref(&out[i]);
    }
    ox_rt_memory_close(&mem);
    return st;
}

static ox_status fold_graph(fold *f, ox_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        ox_node *n = &g->nodes.p[i];
        if (n->dead || n->term) continue;
        const ox_op *op = ox_op_find(n->domain, n->op_type, n->version);
        if (may_fold(f, g, n, op)) OX_TRY(fold_node(f, g, n, op));
        for (uint32_t k = 0; k < n->n_attrs; k++)
            if (n->attrs[k].type == OX_ATTR_GRAPH && n->attrs[k].g)
                OX_TRY(fold_graph(f, n->attrs[k].g));
    }
    return OX_OK;
}

ox_status ox_graph_fold(ox_graph *g, size_t max_bytes, ox_err *err)
{
    fold f = {.max_bytes = max_bytes, .err = err};
    OX_TRY(ox_graph_infer_with(g, known_list, &f, err));
    return fold_graph(&f, g);
}
