/* probe.c - see opt_internal.h, "asking the old graph by example". The nodes behind the value are
 * copied to a graph of their own; shapes of rows and caches, which a step fixes, become inputs. */
#include "opt/opt_internal.h"

#include "ops/run.h"

enum { CONE_MAX = 512, NESTED_MAX = 3 };

/* Bytes that an example may take: shapes and small masks, and long steps. */
enum { SHORT_STEP = 64, SHORT_BYTES = 1 << 22, LONG_BYTES = 1 << 29 };

typedef struct cone {
    ox_opt *o;
    int64_t n_past, n_rows;
    ox_arena arena;
    ox_graph *g;
    int32_t nodes[CONE_MAX]; /* of the old graph, unordered */
    size_t n_nodes;
    OX_VEC(ox_run_input) inputs;
    OX_VEC(int32_t) done; /* old values that the new graph has */
} cone;

int32_t ox_opt_dims(const ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, int64_t *dims)
{
    if (!ox_value_is(v)) return 0;
    const ox_value *x = ox_graph_value(o->old, v);
    const ox_saying s = o->said[v.i];
    if (!ox_value_is(s.v) || s.last_row || (s.kv && s.kv->stage != OX_REPEAT_DONE)) return 0;
    const int64_t total = s.kv && ox_value_is(s.kv->past) ? n_past + n_rows : n_rows;
    const int64_t heads = (int64_t)s.width / s.last * (s.kv ? s.kv->repeat : 1);
    dims[0] = 1;
    if (s.heads_first) {
        dims[1] = heads;
        dims[2] = total;
        dims[3] = s.last;
        return 4;
    }
    dims[1] = n_rows;
    dims[2] = s.last;
    if (x->rank == 4 || (x->rank < 0 && heads > 1)) {
        dims[2] = heads;
        dims[3] = s.last;
        return 4;
    }
    if (x->rank == 2 && heads == 1) {
        dims[0] = n_rows;
        dims[1] = s.last;
        return 2;
    }
    return x->rank < 0 || (x->rank == 3 && heads == 1) ? 3 : 0;
}

/* Dimensions of a graph input that is a cache: [1, heads, past, head]. */
static int32_t past_dims(const ox_value *x, int64_t n_past, int64_t *dims)
{
    if (x->rank != 4 || !ox_dtype_is_float(x->dtype)) return 0;
    dims[0] = 1;
    dims[1] = x->dims[1] > 0 ? x->dims[1] : 1;
    dims[2] = n_past;
    dims[3] = x->dims[3] > 0 ? x->dims[3] : 1;
    return 4;
}

/* Dimensions of a part of every head of a said value. */
static int32_t part_dims(ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, int64_t *dims)
{
    ox_opt_part p;
    if (!ox_opt_part_of(o, v, &p)) return 0;
    const int32_t rank = ox_opt_dims(o, p.of, n_past, n_rows, dims);
    if (!rank) return 0;
    const int64_t last = dims[rank - 1], end = p.end < last ? p.end : last;
    dims[rank - 1] = end > p.first ? end - p.first : 0;
    return rank;
}

static ox_status add_input(cone *c, ox_value_id old, ox_dtype type, int32_t rank,
                           const int64_t *dims, const int64_t *values, size_t n)
{
    ox_value_id id;
    ox_run_input in = {.name = ox_graph_value(c->o->old, old)->name, .kind = OX_RT_TENSOR};
    const size_t item = type == OX_DTYPE_I64 ? 8 : 4;
    char *data = ox_arena_take_n(&c->arena, n + 1, item);
    in.t = (ox_tensor){.dtype = type, .rank = rank, .data = data};
    for (int32_t i = 0; i < rank; i++)
        in.t.dims[i] = dims[i];
    for (size_t i = 0; data && i < n; i++) {
        if (item == 8)
            ((int64_t *)(void *)data)[i] = values[i];
        else
            ((int32_t *)(void *)data)[i] = (int32_t)values[i];
    }
    OX_TRY(ox_graph_add_value(c->g, in.name, &id, c->o->err));
    ox_value *v = ox_graph_value(c->g, id);
    v->kind = OX_VALUE_INPUT;
    v->dtype = type;
    v->rank = rank;
    for (int32_t i = 0; i < rank; i++)
        v->dims[i] = dims[i];
    if (!data || !ox_vec_push(&c->inputs, in) || !ox_vec_push(&c->g->inputs, id))
        return OX_FAIL(c->o->err, OX_NO_MEMORY, "no memory to evaluate a shape");
    return OX_OK;
}

/* The ports that say which rows a step has; false = another input. */
static ox_status add_port(cone *c, ox_value_id v, bool *ok)
{
    const ox_opt *o = c->o;
    const bool mask = v.i == o->mask.i, positions = v.i == o->positions.i;
    const ox_dtype type = ox_graph_value(o->old, v)->dtype;
    const int64_t n = mask ? c->n_past + c->n_rows : c->n_rows, dims[2] = {1, n};
    *ok = (mask || positions) && (type == OX_DTYPE_I64 || type == OX_DTYPE_I32);
    if (!*ok) return OX_OK;
    int64_t *values = ox_arena_take_n(&c->arena, (size_t)n + 1, sizeof(*values));
    if (!values) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory to evaluate a shape");
    for (int64_t i = 0; i < n; i++)
        values[i] = mask ? 1 : c->n_past + i;
    return add_input(c, v, type, 2, dims, values, (size_t)n);
}

/* A Shape node of something whose dimensions a step fixes becomes an input; *ok = false: it must
 * be evaluated. */
static ox_status add_shape(cone *c, const ox_node *n, bool *ok)
{
    ox_value_id of = n->inputs[0];
    if (!ox_value_is(c->o->said[of.i].v)) of = ox_opt_bare(c->o, of);
    const ox_value *x = ox_graph_value(c->o->old, of);
    const int64_t ids[2] = {1, c->n_rows};
    int64_t dims[OX_RANK_MAX] = {0};
    int32_t rank = ox_opt_dims(c->o, of, c->n_past, c->n_rows, dims);
    if (!rank && x->kind == OX_VALUE_INPUT) {
        rank = past_dims(x, c->n_past, dims);
        if (of.i == c->o->ids.i) {
            memcpy(dims, ids, sizeof(ids));
            rank = 2;
        }
    }
    if (!rank && x->kind == OX_VALUE_NODE) rank = part_dims(c->o, of, c->n_past, c->n_rows, dims);
    *ok = rank > 0;
    if (!*ok) return OX_OK;
    int64_t begin = ox_node_int(n, "start", 0), end = ox_node_int(n, "end", rank);
    if (begin < 0) begin += rank;
    if (end < 0) end += rank;
    if (begin < 0) begin = 0;
    if (end > rank) end = rank;
    const int64_t count = end > begin ? end - begin : 0;
    return add_input(c, n->outputs[0], OX_DTYPE_I64, 1, &count, dims + begin, (size_t)count);
}

static bool has_graph(const ox_node *n)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].type == OX_ATTR_GRAPH || n->attrs[i].type == OX_ATTR_GRAPHS) return true;
    return false;
}

static bool is_done(const cone *c, ox_value_id v)
{
    for (size_t i = 0; i < c->done.n; i++)
        if (c->done.p[i] == v.i) return true;
    return false;
}

/* Takes v into the cone; values to look at next are pushed on c->done behind it. */
static ox_status take_value(cone *c, ox_value_id v, bool *ok)
{
    const ox_value *x = ox_graph_value(c->o->old, v);
    ox_value_id id;
    *ok = true;
    if (x->kind == OX_VALUE_CONSTANT)
        return ox_graph_add_constant(c->g, x->name, x->constant, &id, c->o->err);
    if (x->kind == OX_VALUE_INPUT) return add_port(c, v, ok);
    *ok = x->kind == OX_VALUE_NODE && x->producer.i >= 0 && !ox_value_is(c->o->said[v.i].v);
    if (!*ok) return OX_OK;
    const ox_node *n = ox_graph_node(c->o->old, x->producer);
    if (ox_node_is(n, "Shape") && ox_node_has(n, 0) && n->outputs[0].i == v.i) {
        OX_TRY(add_shape(c, n, ok));
        if (*ok) return OX_OK;
    }
    *ok = !n->term && !has_graph(n) && c->n_nodes < CONE_MAX;
    if (!*ok) return OX_OK;
    for (size_t i = 0; i < c->n_nodes; i++)
        if (c->nodes[i] == x->producer.i) return OX_OK;
    c->nodes[c->n_nodes++] = x->producer.i;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (ox_value_is(n->inputs[i]) && !is_done(c, n->inputs[i]) &&
            !ox_vec_push(&c->done, n->inputs[i].i))
            return OX_FAIL(c->o->err, OX_NO_MEMORY, "no memory to evaluate a shape");
    return OX_OK;
}

static void sort_numbers(int32_t *p, size_t n)
{
    for (size_t i = 1; i < n; i++) /* few, and nearly in order backwards */
        for (size_t k = i; k > 0 && p[k - 1] > p[k]; k--) {
            const int32_t x = p[k];
            p[k] = p[k - 1];
            p[k - 1] = x;
        }
}

static ox_status copy_value(cone *c, ox_value_id old, ox_value_id *out)
{
    if (!ox_value_is(old)) {
        *out = OX_NO_VALUE;
        return OX_OK;
    }
    const ox_str name = ox_graph_value(c->o->old, old)->name;
    *out = ox_graph_find(c->g, name);
    return ox_value_is(*out) ? OX_OK : ox_graph_add_value(c->g, name, out, c->o->err);
}

static ox_status copy_node(cone *c, const ox_node *n)
{
    ox_node copy = *n;
    ox_node_id id;
    copy.inputs = ox_arena_take_n(&c->arena, (size_t)n->n_inputs + 1, sizeof(*copy.inputs));
    copy.outputs = ox_arena_take_n(&c->arena, (size_t)n->n_outputs + 1, sizeof(*copy.outputs));
    if (!copy.inputs || !copy.outputs)
        return OX_FAIL(c->o->err, OX_NO_MEMORY, "no memory to evaluate a shape");
    for (uint32_t i = 0; i < n->n_inputs; i++)
        OX_TRY(copy_value(c, n->inputs[i], &copy.inputs[i]));
    for (uint32_t i = 0; i < n->n_outputs; i++)
        OX_TRY(copy_value(c, n->outputs[i], &copy.outputs[i]));
    return ox_graph_add_node(c->g, &copy, &id, c->o->err);
}

static ox_status build(cone *c, ox_value_id v, bool *ok)
{
    *ok = false;
    if (!ox_vec_push(&c->done, v.i)) return OX_FAIL(c->o->err, OX_NO_MEMORY, "no memory");
    for (size_t i = 0; i < c->done.n; i++) {
        OX_TRY(take_value(c, (ox_value_id){c->done.p[i]}, ok));
        if (!*ok) return OX_OK;
    }
    sort_numbers(c->nodes, c->n_nodes);
    for (size_t i = 0; i < c->n_nodes; i++)
        OX_TRY(copy_node(c, &c->o->old->nodes.p[c->nodes[i]]));
    return OX_OK;
}

static ox_status evaluate(cone *c, ox_value_id v, ox_arena *arena, const ox_tensor **out)
{
    const bool is_short = c->n_past + c->n_rows < SHORT_STEP;
    const ox_run_options limits = {.memory_limit = is_short ? SHORT_BYTES : LONG_BYTES,
                                   .node_limit = 4 * CONE_MAX};
    ox_run_results *r = NULL;
    ox_err quiet = OX_ERR_INIT; /* a cone that cannot run is no failure */
    size_t bytes;
    if (ox_graph_eval(&r, c->g, c->inputs.p, c->inputs.n, &ox_graph_value(c->o->old, v)->name, 1,
                      &limits, &quiet))
        return OX_OK;
    const ox_rt_value *y = r->values[0];
    ox_status st = OX_OK;
    if (y && y->kind == OX_RT_TENSOR && ox_tensor_bytes(&y->t, &bytes)) {
        ox_tensor *t = ox_arena_take(arena, sizeof(*t));
        void *data = ox_arena_take(arena, bytes + 1);
        if (t && data) {
            *t = y->t;
            t->data = data;
            if (bytes) memcpy(data, y->t.data, bytes);
            *out = t;
        } else {
            st = OX_FAIL(c->o->err, OX_NO_MEMORY, "no memory to evaluate a shape");
        }
    }
    ox_run_results_close(&r);
    return st;
}

ox_status ox_opt_probe(ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, ox_arena *arena,
                       const ox_tensor **out)
{
    bool ok;
    ox_status st = OX_OK;
    *out = NULL;
    if (!ox_value_is(v) || o->probing == NESTED_MAX) return OX_OK;
    cone *c = ox_calloc(1, sizeof(*c));
    if (!c) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory to evaluate a shape");
    o->probing++;
    c->o = o;
    c->n_past = n_past;
    c->n_rows = n_rows;
    OX_TRY_GOTO(ox_graph_open(&c->g, &c->arena, NULL, o->err));
    OX_TRY_GOTO(build(c, v, &ok));
    if (ok) OX_TRY_GOTO(evaluate(c, v, arena, out));
fail:
    o->probing--;
    ox_vec_deinit(&c->inputs);
    ox_vec_deinit(&c->done);
    ox_graph_close(&c->g);
    ox_arena_deinit(&c->arena);
    ox_free(c);
    return st;
}

bool ox_opt_shape(ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, int64_t *out,
                  size_t max, size_t *n)
{
    ox_arena temp = OX_ARENA_INIT;
    const ox_tensor *t = NULL;
    ox_err *err = o->err;
    if (ox_opt_ints(o, v, out, max, n)) return true;
    o->err = NULL; /* out of memory here only means not known */
    (void)ox_opt_probe(o, v, n_past, n_rows, &temp, &t);
    o->err = err;
    bool ok = t && ox_tensor_count(t, n) && *n <= max &&
              (t->dtype == OX_DTYPE_I64 || t->dtype == OX_DTYPE_I32);
    for (size_t i = 0; ok && i < *n; i++)
        out[i] = t->dtype == OX_DTYPE_I64 ? ((const int64_t *)t->data)[i]
                                          : ((const int32_t *)t->data)[i];
    ox_arena_deinit(&temp);
    return ok;
}

bool ox_opt_number(ox_opt *o, ox_value_id v, float *out)
{
    static const int64_t steps[2][2] = {{5, 7}, {0, 3}};
    ox_err *err = o->err;
    float x[2] = {0, 1};
    bool ok = true;
    if (!ox_value_is(v)) return false;
    if (ox_opt_scalar(o, v, out)) return true;
    if (ox_graph_value(o->old, v)->rank > 1) return false;
    o->err = NULL;
    for (int i = 0; i < 2 && ok; i++) {
        ox_arena temp = OX_ARENA_INIT;
        const ox_tensor *t = NULL;
        size_t n;
        (void)ox_opt_probe(o, v, steps[i][0], steps[i][1], &temp, &t);
        ok = t && ox_dtype_is_float(t->dtype) && ox_tensor_count(t, &n) && n == 1;
        if (ok) x[i] = ox_tensor_f32(t, 0);
        ox_arena_deinit(&temp);
    }
    o->err = err;
    *out = x[0];
    return ok && x[0] == x[1];
}
