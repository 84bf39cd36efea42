/* control.c - If, Loop and Scan: they run subgraphs through the context. */
#include "ops/op_internal.h"

static ox_status body_of(ox_op_ctx *c, const char *name, const ox_graph **g)
{
    const ox_attr *a = ox_node_attr(c->node, name);
    *g = NULL;
    if (!c->run) return OP_FAIL_AS(c, OX_UNSUPPORTED, "control flow is not allowed here");
    if (!a || a->type != OX_ATTR_GRAPH || !a->g) return OP_FAIL(c, "has no graph %s", name);
    *g = a->g;
    return OX_OK;
}

static ox_status one_bool(ox_op_ctx *c, const ox_rt_value *v, bool *out)
{
    if (!v || v->kind != OX_RT_TENSOR || v->t.dtype != OX_DTYPE_BOOL || ox_op_size(&v->t) != 1)
        return OP_FAIL(c, "its condition must be one bool");
    *out = *(const uint8_t *)v->t.data != 0;
    return OX_OK;
}

ox_status ox_op_eval_if(ox_op_ctx *c)
{
    const ox_graph *g;
    bool yes;
    OX_TRY(one_bool(c, c->in[0], &yes));
    OX_TRY(body_of(c, yes ? "then_branch" : "else_branch", &g));
    return c->run(c, g, NULL, 0, c->out, c->n_out);
}

typedef OX_VEC(ox_rt_value *) value_list;

static void list_close(value_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        ox_rt_unref(&l->p[i]);
    ox_vec_deinit(l);
}

/* Stacks what a body gave for one scan output; `like` tells type and shape when it gave nothing. */
static ox_status stack_list(ox_op_ctx *c, const value_list *l, const ox_value *like, int64_t axis,
                            bool reverse, ox_rt_value **out)
{
    int64_t dims[OX_RANK_MAX] = {0};
    if (l->n) return ox_op_stack(c, l->p, l->n, axis, reverse, true, out);
    const int32_t rank = like->rank < 0 ? 0 : like->rank;
    if (rank + 1 > OX_RANK_MAX || !like->dtype) return OP_FAIL(c, "made nothing of a known type");
    for (int32_t i = 0; i < rank; i++)
        dims[i + 1] = like->dims[i] < 0 ? 0 : like->dims[i];
    *out = ox_rt_tensor_new(c->mem, like->dtype, rank + 1, dims);
    return *out ? OX_OK : OP_NO_MEMORY(c);
}

typedef struct state {
    const ox_graph *body;
    size_t n_state, n_scan; /* carried values, outputs to be stacked */
    ox_rt_value **in, **out;
    value_list *made; /* [n_scan] */
} state;

static void state_close(state *s)
{
    for (size_t i = 0; s->in && i < s->body->inputs.n; i++)
        ox_rt_unref(&s->in[i]);
    for (size_t i = 0; s->out && i < s->body->outputs.n; i++)
        ox_rt_unref(&s->out[i]);
    for (size_t i = 0; s->made && i < s->n_scan; i++)
        list_close(&s->made[i]);
    ox_free(s->in);
    ox_free(s->out);
    ox_free(s->made);
}

static ox_status state_open(ox_op_ctx *c, state *s)
{
    s->in = ox_calloc(s->body->inputs.n + 1, sizeof(*s->in));
    s->out = ox_calloc(s->body->outputs.n + 1, sizeof(*s->out));
    s->made = ox_calloc(s->n_scan + 1, sizeof(*s->made));
    return s->in && s->out && s->made ? OX_OK : OP_NO_MEMORY(c);
}

/* Runs the body once; out[skip ..] become the carried values from in[at] on, the rest is kept. */
static ox_status step(ox_op_ctx *c, state *s, size_t at, size_t skip)
{
    OX_TRY(ox_op_cancelled(c));
    const ox_status st = c->run(c, s->body, s->in, s->body->inputs.n, s->out, s->body->outputs.n);
    if (st == OX_LIMIT || st == OX_NO_MEMORY)
        ox_err_prefix(c->err, "node \"%.*s\" (%.*s)", OX_STR_ARGS(c->node->name),
                      OX_STR_ARGS(c->node->op_type));
    OX_TRY(st);
    for (size_t i = 0; i < s->n_state; i++) {
        ox_rt_unref(&s->in[at + i]);
        s->in[at + i] = s->out[skip + i];
        s->out[skip + i] = NULL;
    }
    for (size_t i = 0; i < s->n_scan; i++) {
        ox_rt_value **v = &s->out[skip + s->n_state + i];
        if (!ox_vec_push(&s->made[i], *v)) return OP_NO_MEMORY(c);
        *v = NULL;
    }
    return OX_OK;
}

static ox_status loop_run(ox_op_ctx *c, state *s, int64_t trips, bool cond)
{
    const bool watches = c->n_in > 1 && c->in[1];
    const bool yes = true;
    for (size_t i = 0; i < s->n_state; i++) {
        if (!c->in[2 + i]) return OP_FAIL(c, "carried value %zu is missing", i);
        s->in[2 + i] = ox_rt_ref(c->in[2 + i]);
    }
    s->in[1] = ox_rt_tensor_new(c->mem, OX_DTYPE_BOOL, 0, NULL);
    if (!s->in[1]) return OP_NO_MEMORY(c);
    memcpy(s->in[1]->t.data, &yes, 1);
    for (int64_t k = 0; k < trips && cond; k++) {
        ox_rt_unref(&s->in[0]);
        s->in[0] = ox_rt_tensor_new(c->mem, OX_DTYPE_I64, 0, NULL);
        if (!s->in[0]) return OP_NO_MEMORY(c);
        memcpy(s->in[0]->t.data, &k, sizeof(k));
        OX_TRY(step(c, s, 2, 1));
        OX_TRY(one_bool(c, s->out[0], &cond));
        if (!watches) cond = true;
        ox_rt_unref(&s->in[1]);
        s->in[1] = s->out[0];
        s->out[0] = NULL;
    }
    for (size_t i = 0; i < s->n_state && i < c->n_out; i++)
        OX_TRY(ox_op_out_value(c, i, ox_rt_ref(s->in[2 + i])));
    for (size_t i = 0; i < s->n_scan && s->n_state + i < c->n_out; i++) {
        const ox_value *like = ox_graph_value(s->body, s->body->outputs.p[1 + s->n_state + i]);
        ox_rt_value *v;
        OX_TRY(stack_list(c, &s->made[i], like, 0, false, &v));
        OX_TRY(ox_op_out_value(c, s->n_state + i, v));
    }
    return OX_OK;
}

ox_status ox_op_eval_loop(ox_op_ctx *c)
{
    state s = {.n_state = c->n_in > 2 ? c->n_in - 2 : 0};
    int64_t trips;
    bool cond = true;
    OX_TRY(body_of(c, "body", &s.body));
    OX_TRY(ox_op_int_in(c, 0, INT64_MAX, &trips));
    if (c->n_in > 1 && c->in[1]) OX_TRY(one_bool(c, c->in[1], &cond));
    if (s.body->inputs.n != 2 + s.n_state || s.body->outputs.n < 1 + s.n_state)
        return OP_FAIL(c, "its body has %zu inputs and %zu outputs for %zu carried values",
                       s.body->inputs.n, s.body->outputs.n, s.n_state);
    s.n_scan = s.body->outputs.n - 1 - s.n_state;
    ox_status st = state_open(c, &s);
    if (!st) st = loop_run(c, &s, trips, cond);
    state_close(&s);
    return st;
}

typedef struct scan {
    size_t n_in; /* scan inputs */
    const ox_tensor *in[OX_OP_LIST];
    int64_t in_axes[OX_OP_LIST], in_dirs[OX_OP_LIST], out_axes[OX_OP_LIST], out_dirs[OX_OP_LIST];
    int64_t trips;
} scan;

static ox_status scan_list(ox_op_ctx *c, const char *name, size_t want, int64_t *list)
{
    int n;
    for (size_t i = 0; i < want; i++)
        list[i] = 0;
    OX_TRY(ox_op_attr_list(c, name, list, &n));
    if (n >= 0 && (size_t)n != want) return OP_FAIL(c, "%s has %d entries, not %zu", name, n, want);
    return OX_OK;
}

static ox_status scan_run(ox_op_ctx *c, state *s, const scan *k, size_t first_out)
{
    for (int64_t t = 0; t < k->trips; t++) {
        for (size_t i = 0; i < k->n_in; i++) {
            int32_t axis;
            OX_TRY(ox_op_axis(c, k->in_axes[i], k->in[i]->rank, &axis));
            ox_rt_unref(&s->in[s->n_state + i]);
            OX_TRY(ox_op_take(c, k->in[i], axis, k->in_dirs[i] ? k->trips - 1 - t : t, false,
                              &s->in[s->n_state + i]));
        }
        OX_TRY(step(c, s, 0, 0));
    }
    for (size_t i = 0; i < s->n_scan && s->n_state + i < c->n_out; i++) {
        const ox_value *like = ox_graph_value(s->body, s->body->outputs.p[s->n_state + i]);
        ox_rt_value *v;
        OX_TRY(stack_list(c, &s->made[i], like, k->out_axes[i], k->out_dirs[i] != 0, &v));
        OX_TRY(ox_op_out_value(c, first_out + s->n_state + i, v));
    }
    for (size_t i = 0; i < s->n_state; i++)
        OX_TRY(ox_op_out_value(c, first_out + i, ox_rt_ref(s->in[i])));
    return OX_OK;
}

ox_status ox_op_eval_scan(ox_op_ctx *c)
{
    state s = {0};
    scan k = {0};
    const int64_t n_scan_in = ox_node_int(c->node, "num_scan_inputs", 0);
    OX_TRY(body_of(c, "body", &s.body));
    if (c->node->version < 9) return OP_FAIL_AS(c, OX_UNSUPPORTED, "version 8 is not supported");
    if (n_scan_in < 1 || (size_t)n_scan_in > c->n_in || n_scan_in > OX_OP_LIST)
        return OP_FAIL(c, "has %lld scan inputs of %zu", (long long)n_scan_in, c->n_in);
    k.n_in = (size_t)n_scan_in;
    s.n_state = c->n_in - k.n_in;
    if (s.body->inputs.n != c->n_in || s.body->outputs.n < s.n_state ||
        s.body->outputs.n - s.n_state > OX_OP_LIST)
        return OP_FAIL(c, "its body has %zu inputs and %zu outputs", s.body->inputs.n,
                       s.body->outputs.n);
    s.n_scan = s.body->outputs.n - s.n_state;
    OX_TRY(scan_list(c, "scan_input_axes", k.n_in, k.in_axes));
    OX_TRY(scan_list(c, "scan_input_directions", k.n_in, k.in_dirs));
    OX_TRY(scan_list(c, "scan_output_axes", s.n_scan, k.out_axes));
    OX_TRY(scan_list(c, "scan_output_directions", s.n_scan, k.out_dirs));
    for (size_t i = 0; i < k.n_in; i++) {
        int32_t axis;
        k.in[i] = ox_op_in(c, s.n_state + i);
        if (!k.in[i]) return OP_FAIL(c, "scan input %zu must be a tensor", i);
        OX_TRY(ox_op_axis(c, k.in_axes[i], k.in[i]->rank, &axis));
        if (i && k.in[i]->dims[axis] != k.trips) return OP_FAIL(c, "scan inputs differ in length");
        k.trips = k.in[i]->dims[axis];
    }
    ox_status st = state_open(c, &s);
    for (size_t i = 0; !st && i < s.n_state; i++) {
        if (!c->in[i]) st = OP_FAIL(c, "state %zu is missing", i);
        if (!st) s.in[i] = ox_rt_ref(c->in[i]);
    }
    if (!st) st = scan_run(c, &s, &k, 0);
    state_close(&s);
    return st;
}
