/* from_onnx.c - see from_onnx.h.
 *
 * A scope maps the names of one record list (a graph, or a function body at one call) to values of
 * the graph under construction. Subgraph scopes look further outwards and make captures on the way;
 * function scopes see only their own names. All names that a scope's nodes produce are declared
 * before the first node is built, so that the order of records does not matter. */
#include "graph/from_onnx.h"

#include <stdio.h>

enum { DEPTH_MAX = 64, TOTAL_NODES_MAX = 1 << 17 };

typedef struct call call;

typedef struct scope {
    ox_graph *g;
    struct scope *outer; /* subgraphs: where unknown names are looked up; functions: NULL */
    const call *call;    /* the function call whose body this is in; NULL = none */
    ox_map names;        /* record name -> value id in g */
    int depth;
} scope;

/* One function call being replaced by its body. */
struct call {
    const call *outer;
    const ox_onnx_function *f;
    const ox_attr *attrs; /* of the calling node, references resolved */
    size_t n_attrs;
    ox_str prefix; /* "<node name>/" with the prefixes of outer calls */
};

typedef struct build {
    const ox_onnx *o;
    ox_arena *arena;
    const ox_from_onnx_options *options;
    ox_map functions; /* "domain\1name\1overload" -> index */
    size_t n_nodes, n_renamed;
    ox_err *err;
} build;

static ox_status no_memory(build *b)
{
    return OX_FAIL(b->err, OX_NO_MEMORY, "no memory to build the graph");
}

static ox_str plain_domain(ox_str d)
{
    return ox_str_is(d, "ai.onnx") ? (ox_str){"", 0} : d;
}

/* "<prefix><name>" in the arena; p NULL = no memory. */
static ox_str joined(build *b, ox_str prefix, ox_str name)
{
    char *p = ox_arena_take(b->arena, prefix.n + name.n + 1);
    if (!p) return (ox_str){0};
    if (prefix.n) memcpy(p, prefix.p, prefix.n);
    if (name.n) memcpy(p + prefix.n, name.p, name.n);
    return (ox_str){p, prefix.n + name.n};
}

static ox_str scoped(build *b, const scope *s, ox_str name)
{
    return s->call ? joined(b, s->call->prefix, name) : name;
}

static ox_status bind(build *b, scope *s, ox_str name, ox_value_id v)
{
    uint64_t old;
    if (ox_map_get(&s->names, name, &old))
        return OX_FAIL(b->err, OX_BAD_FILE, "\"%.*s\" is defined twice in graph \"%.*s\"",
                       OX_STR_ARGS(name), OX_STR_ARGS(s->g->name));
    return ox_map_put(&s->names, name, (uint64_t)v.i) ? OX_OK : no_memory(b);
}

/* A new value of g named after `name`; made unique when an inlined body or
 * a subgraph repeats it. */
static ox_status new_value(build *b, scope *s, ox_str name, ox_value_id *out)
{
    ox_str full = scoped(b, s, name);
    char more[24];
    if (name.n && !full.p) return no_memory(b);
    while (s->call && full.n && ox_value_is(ox_graph_find(s->g, full))) {
        const int n = snprintf(more, sizeof(more), "#%zu", ++b->n_renamed);
        full = joined(b, scoped(b, s, name), (ox_str){more, (size_t)n});
        if (!full.p) return no_memory(b);
    }
    return ox_graph_add_value(s->g, full, out, b->err);
}

static ox_status declare(build *b, scope *s, ox_str name, ox_value_id *out)
{
    uint64_t old;
    if (name.n && ox_map_get(&s->names, name, &old))
        return OX_FAIL(b->err, OX_BAD_FILE, "\"%.*s\" is defined twice in graph \"%.*s\"",
                       OX_STR_ARGS(name), OX_STR_ARGS(s->g->name));
    OX_TRY(new_value(b, s, name, out));
    return name.n ? bind(b, s, name, *out) : OX_OK;
}

/* The value a name means in a scope; captures are made in every graph between. */
static ox_status resolve(build *b, scope *s, ox_str name, ox_value_id *out)
{
    uint64_t id;
    ox_value_id outer;
    *out = OX_NO_VALUE;
    if (!name.n) return OX_OK;
    if (ox_map_get(&s->names, name, &id)) {
        *out = (ox_value_id){(int32_t)id};
        return OX_OK;
    }
    if (!s->outer)
        return OX_FAIL(b->err, OX_BAD_FILE, "graph \"%.*s\" reads \"%.*s\", which nothing defines",
                       OX_STR_ARGS(s->g->name), OX_STR_ARGS(name));
    OX_TRY(resolve(b, s->outer, name, &outer));
    if (s->outer->g == s->g) {
        *out = outer;
        return OX_OK;
    }
    OX_TRY(ox_graph_add_value(s->g, ox_graph_value(s->outer->g, outer)->name, out, b->err));
    const ox_value *from = ox_graph_value(s->outer->g, outer);
    ox_value *v = ox_graph_value(s->g, *out);
    const ox_str own = v->name;
    *v = *from;
    v->name = own;
    v->kind = OX_VALUE_CAPTURE;
    v->constant = NULL;
    v->producer = OX_NO_NODE;
    v->outer = outer;
    return bind(b, s, name, *out);
}

static ox_status set_type(build *b, ox_graph *g, ox_value_id id, const ox_onnx_value *from)
{
    ox_value *v = ox_graph_value(g, id);
    v->type = from->kind == OX_ONNX_SEQUENCE   ? OX_TYPE_SEQUENCE
              : from->kind == OX_ONNX_OPTIONAL ? OX_TYPE_OPTIONAL
                                               : OX_TYPE_TENSOR;
    v->dtype = from->dtype;
    v->rank = from->rank;
    if (from->rank > OX_RANK_MAX)
        return OX_FAIL(b->err, OX_UNSUPPORTED, "\"%.*s\" has more than %d dimensions",
                       OX_STR_ARGS(from->name), OX_RANK_MAX);
    for (int32_t i = 0; i < from->rank; i++) {
        v->dims[i] = from->dims[i].value;
        if (v->dims[i] >= 0) continue;
        v->dims[i] = OX_DIM_UNKNOWN;
        if (from->dims[i].symbol.n) v->dims[i] = ox_graph_symbol(g, from->dims[i].symbol);
    }
    return OX_OK;
}

/* ---- constants ---- */

static ox_status tensor_of(build *b, ox_dtype type, int32_t rank, size_t n, const void *data,
                           ox_tensor *t)
{
    size_t bytes;
    *t = (ox_tensor){.dtype = type, .rank = rank, .dims = {(int64_t)n}};
    if (!ox_tensor_bytes(t, &bytes)) return no_memory(b);
    t->data = ox_arena_take(b->arena, bytes ? bytes : 1);
    if (!t->data) return no_memory(b);
    if (bytes) memcpy(t->data, data, bytes);
    return OX_OK;
}

/* Dense tensor of a sparse one: indices are [nnz] linear or [nnz, rank]. */
static ox_status densify(build *b, const ox_onnx_sparse *s, ox_tensor *t)
{
    size_t bytes, count, nnz, n_indices;
    const ox_tensor *v = &s->values.t, *ix = &s->indices.t;
    *t = (ox_tensor){.dtype = v->dtype, .rank = s->rank};
    if (s->rank < 0 || s->rank > OX_RANK_MAX || ox_dtype_bits(v->dtype) % 8 ||
        v->dtype == OX_DTYPE_STRING)
        return OX_FAIL(b->err, OX_UNSUPPORTED, "sparse tensor \"%.*s\" of type %s and rank %d",
                       OX_STR_ARGS(s->values.name), ox_dtype_name(v->dtype), s->rank);
    memcpy(t->dims, s->dims, sizeof(t->dims));
    if (!ox_tensor_count(t, &count) || !ox_tensor_bytes(t, &bytes) || !ox_tensor_count(v, &nnz) ||
        !ox_tensor_count(ix, &n_indices) || bytes > (size_t)1 << 30)
        return OX_FAIL(b->err, OX_LIMIT, "sparse tensor \"%.*s\" is too large",
                       OX_STR_ARGS(s->values.name));
    const size_t per = ix->rank == 2 ? (size_t)s->rank : 1;
    if (nnz && (ix->dtype != OX_DTYPE_I64 || n_indices != nnz * per))
        return OX_FAIL(b->err, OX_BAD_FILE, "sparse tensor \"%.*s\" has malformed indices",
                       OX_STR_ARGS(s->values.name));
    t->data = ox_arena_take(b->arena, bytes ? bytes : 1);
    if (!t->data) return no_memory(b);
    const size_t width = (size_t)ox_dtype_bits(v->dtype) / 8;
    for (size_t i = 0; i < nnz; i++) {
        uint64_t at = 0;
        for (size_t k = 0; k < per; k++) {
            int64_t x;
            memcpy(&x, (const char *)ix->data + (i * per + k) * 8, 8);
            const uint64_t limit = per == 1 && ix->rank != 2 ? count : (uint64_t)t->dims[k];
            if (x < 0 || (uint64_t)x >= limit)
                return OX_FAIL(b->err, OX_BAD_FILE, "sparse tensor \"%.*s\" has index %lld",
                               OX_STR_ARGS(s->values.name), (long long)x);
            at = ix->rank == 2 ? at * (uint64_t)t->dims[k] + (uint64_t)x : (uint64_t)x;
        }
        memcpy((char *)t->data + at * width, (const char *)v->data + i * width, width);
    }
    return OX_OK;
}

/* True when the node is a Constant of a form that becomes a tensor. */
static ox_status constant_of(build *b, const ox_attr *a, ox_tensor *t, bool *is)
{
    *is = true;
    if (a->type == OX_ATTR_TENSOR && a->t) {
        *t = *a->t; /* value, or sparse_value made dense */
        return OX_OK;
    }
    switch (a->type) {
    case OX_ATTR_FLOAT:
        return tensor_of(b, OX_DTYPE_F32, 0, 1, &a->f, t);
    case OX_ATTR_INT:
        return tensor_of(b, OX_DTYPE_I64, 0, 1, &a->i, t);
    case OX_ATTR_STRING:
        return tensor_of(b, OX_DTYPE_STRING, 0, 1, &a->s, t);
    case OX_ATTR_FLOATS:
        return tensor_of(b, OX_DTYPE_F32, 1, a->n, a->floats, t);
    case OX_ATTR_INTS:
        return tensor_of(b, OX_DTYPE_I64, 1, a->n, a->ints, t);
    case OX_ATTR_STRINGS:
        return tensor_of(b, OX_DTYPE_STRING, 1, a->n, a->strings, t);
    default:
        *is = false;
        return OX_OK;
    }
}

static bool is_constant(const ox_onnx_node *n)
{
    return ox_str_is(n->op_type, "Constant") && !plain_domain(n->domain).n && n->n_outputs == 1 &&
           n->n_attrs == 1;
}

/* ---- nodes ---- */

static ox_status build_graph(build *b, const ox_onnx_graph *r, ox_graph *parent, scope *outer,
                             int depth, ox_graph **out);

static int32_t version_of(const build *b, const scope *s, ox_str domain)
{
    const ox_onnx_opset *p = b->o->opsets;
    size_t n = b->o->n_opsets;
    if (s->call && s->call->f->n_opsets) {
        p = s->call->f->opsets;
        n = s->call->f->n_opsets;
    }
    for (size_t i = 0; i < n; i++)
        if (ox_str_eq(plain_domain(p[i].domain), domain))
            return p[i].version > 0 && p[i].version < INT32_MAX ? (int32_t)p[i].version : 1;
    return 1;
}

static const ox_attr *find_attr(const ox_attr *attrs, size_t n, ox_str name)
{
    for (size_t i = 0; i < n; i++)
        if (ox_str_eq(attrs[i].name, name)) return &attrs[i];
    return NULL;
}

static ox_status convert_attr(build *b, scope *s, const ox_onnx_attr *r, ox_attr *a)
{
    *a = (ox_attr){.name = r->name,
                   .type = (ox_attr_type)r->type,
                   .f = r->f,
                   .i = r->i,
                   .s = r->s,
                   .n = r->n,
                   .floats = r->floats,
                   .ints = r->ints,
                   .strings = r->strings};
    if (r->type == OX_ATTR_TENSOR) a->t = r->t ? &r->t->t : NULL;
    if (r->type == OX_ONNX_ATTR_SPARSE && r->sparse) {
        ox_tensor *t = ox_arena_take(b->arena, sizeof(*t));
        if (!t) return no_memory(b);
        OX_TRY(densify(b, r->sparse, t));
        a->type = OX_ATTR_TENSOR;
        a->t = t;
    }
    if (r->type == OX_ATTR_TYPE && r->type_value) {
        a->i = r->type_value->dtype;
        a->n = r->type_value->kind;
    }
    if (r->type == OX_ATTR_TENSORS) {
        ox_tensor *ts = ox_arena_take_n(b->arena, r->n ? r->n : 1, sizeof(*ts));
        if (!ts) return no_memory(b);
        for (size_t i = 0; i < r->n; i++)
            ts[i] = r->tensors[i].t;
        a->tensors = ts;
    }
    if (r->type == OX_ATTR_GRAPH) {
        if (!r->g)
            return OX_FAIL(b->err, OX_BAD_FILE, "attribute \"%.*s\" holds no graph",
                           OX_STR_ARGS(r->name));
        OX_TRY(build_graph(b, r->g, s->g, s, s->depth + 1, &a->g));
    }
    if (r->type == OX_ATTR_GRAPHS) {
        ox_graph **gs = ox_arena_take_n(b->arena, r->n ? r->n : 1, sizeof(*gs));
        if (!gs) return no_memory(b);
        a->graphs = gs;
        for (size_t i = 0; i < r->n; i++)
            OX_TRY(build_graph(b, r->graphs[i], s->g, s, s->depth + 1, &gs[i]));
    }
    return OX_OK;
}

static void close_attrs(ox_attr *attrs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (attrs[i].type == OX_ATTR_GRAPH) ox_graph_close(&attrs[i].g);
        for (size_t j = 0; attrs[i].type == OX_ATTR_GRAPHS && j < attrs[i].n; j++) {
            ox_graph *g = attrs[i].graphs[j];
            ox_graph_close(&g);
        }
    }
}

/* Attributes of a node, references to the calling node's attributes replaced or dropped. *n counts
 * what is built so far, also when this fails. */
static ox_status convert_attrs(build *b, scope *s, const ox_onnx_node *r, ox_attr **out,
                               uint32_t *n)
{
    ox_attr *attrs = ox_arena_take_n(b->arena, r->n_attrs ? r->n_attrs : 1, sizeof(*attrs));
    *n = 0;
    *out = attrs;
    if (!attrs) return no_memory(b);
    for (size_t i = 0; i < r->n_attrs; i++) {
        const ox_onnx_attr *x = &r->attrs[i];
        if (!x->ref_name.n) {
            ox_attr *a = &attrs[(*n)++];
            OX_TRY(convert_attr(b, s, x, a));
            continue;
        }
        if (!s->call)
            return OX_FAIL(b->err, OX_BAD_FILE,
                           "node \"%.*s\" refers to attribute \"%.*s\" outside a function",
                           OX_STR_ARGS(r->name), OX_STR_ARGS(x->ref_name));
        const ox_attr *given = find_attr(s->call->attrs, s->call->n_attrs, x->ref_name);
        if (!given) continue;
        if (given->type == OX_ATTR_GRAPH || given->type == OX_ATTR_GRAPHS)
            return OX_FAIL(b->err, OX_UNSUPPORTED,
                           "function \"%.*s\" takes a graph as attribute \"%.*s\"",
                           OX_STR_ARGS(s->call->f->name), OX_STR_ARGS(x->ref_name));
        attrs[*n] = *given;
        attrs[(*n)++].name = x->name;
    }
    return OX_OK;
}

static ox_str function_key(build *b, ox_str domain, ox_str name, ox_str overload)
{
    ox_str k = joined(b, plain_domain(domain), OX_STR("\1"));
    if (k.p) k = joined(b, k, name);
    if (k.p) k = joined(b, k, OX_STR("\1"));
    return k.p ? joined(b, k, overload) : k;
}

static const ox_onnx_function *function_of(build *b, const ox_onnx_node *n)
{
    uint64_t i;
    if (!b->o->n_functions) return NULL;
    const ox_str key = function_key(b, n->domain, n->op_type, n->overload);
    return key.p && ox_map_get(&b->functions, key, &i) ? &b->o->functions[i] : NULL;
}

static ox_status build_nodes(build *b, scope *s, const ox_onnx_node *nodes, size_t n);

/* y = Identity(x), for a function whose output is its input. */
static ox_status add_identity(build *b, scope *s, ox_value_id x, ox_value_id y)
{
    ox_node_id id;
    const ox_node n = {.op_type = OX_STR("Identity"),
                       .version = 13,
                       .n_inputs = 1,
                       .inputs = &x,
                       .n_outputs = 1,
                       .outputs = &y};
    return ox_graph_add_node(s->g, &n, &id, b->err);
}

/* Names of the body: inputs are the caller's values, outputs that the body itself produces are the
 * caller's outputs, everything else is new. */
static ox_status bind_call(build *b, scope *outer, scope *s, const ox_onnx_node *r,
                           const ox_value_id *outputs)
{
    const ox_onnx_function *f = s->call->f;
    for (size_t i = 0; i < f->n_inputs; i++) {
        ox_value_id v = OX_NO_VALUE;
        if (i < r->n_inputs) OX_TRY(resolve(b, outer, r->inputs[i], &v));
        OX_TRY(bind(b, s, f->inputs[i], v));
    }
    for (size_t i = 0; i < f->n_outputs; i++) {
        uint64_t old;
        if (i >= r->n_outputs || !ox_value_is(outputs[i])) continue;
        if (!ox_map_get(&s->names, f->outputs[i], &old))
            OX_TRY(bind(b, s, f->outputs[i], outputs[i]));
    }
    return OX_OK;
}

static ox_status inline_call(build *b, scope *outer, const ox_onnx_node *r,
                             const ox_onnx_function *f, const ox_value_id *outputs)
{
    ox_status st = OX_OK;
    ox_attr *attrs = NULL;
    uint32_t n_attrs = 0;
    call c = {.outer = outer->call, .f = f};
    scope s = {.g = outer->g, .call = &c, .depth = outer->depth + 1};
    for (const call *up = outer->call; up; up = up->outer)
        if (up->f == f)
            return OX_FAIL(b->err, OX_BAD_FILE, "function \"%.*s\" calls itself",
                           OX_STR_ARGS(f->name));
    if (s.depth > DEPTH_MAX)
        return OX_FAIL(b->err, OX_LIMIT, "functions and subgraphs nest deeper than %d", DEPTH_MAX);
    if (r->n_inputs > f->n_inputs || r->n_outputs > f->n_outputs)
        return OX_FAIL(
            b->err, OX_BAD_FILE,
            "node \"%.*s\" calls function \"%.*s\" with %zu inputs and %zu outputs, which "
            "has %zu and %zu",
            OX_STR_ARGS(r->name), OX_STR_ARGS(f->name), r->n_inputs, r->n_outputs, f->n_inputs,
            f->n_outputs);
    OX_TRY_GOTO(convert_attrs(b, outer, r, &attrs, &n_attrs));
    ox_attr *all = ox_arena_take_n(b->arena, n_attrs + f->n_attr_defaults + 1, sizeof(*all));
    if (!all) OX_TRY_GOTO(no_memory(b));
    memcpy(all, attrs, n_attrs * sizeof(*all));
    c.attrs = all;
    c.n_attrs = n_attrs;
    for (size_t i = 0; i < f->n_attr_defaults; i++) {
        if (find_attr(all, c.n_attrs, f->attr_defaults[i].name)) continue;
        OX_TRY_GOTO(convert_attr(b, outer, &f->attr_defaults[i], &all[c.n_attrs]));
        c.n_attrs++;
    }
    c.prefix = joined(b, scoped(b, outer, r->name.n ? r->name : f->name), OX_STR("/"));
    if (!c.prefix.p) OX_TRY_GOTO(no_memory(b));
    OX_TRY_GOTO(bind_call(b, outer, &s, r, outputs));
    OX_TRY_GOTO(build_nodes(b, &s, f->nodes, f->n_nodes));
    for (size_t i = 0; i < f->n_outputs; i++) {
        ox_value_id v;
        if (i >= r->n_outputs || !ox_value_is(outputs[i])) continue;
        OX_TRY_GOTO(resolve(b, &s, f->outputs[i], &v));
        if (!ox_value_is(v))
            OX_TRY_GOTO(OX_FAIL(b->err, OX_BAD_FILE,
                                "node \"%.*s\": output \"%.*s\" of function \"%.*s\" is absent",
                                OX_STR_ARGS(r->name), OX_STR_ARGS(f->outputs[i]),
                                OX_STR_ARGS(f->name)));
        if (v.i != outputs[i].i) OX_TRY_GOTO(add_identity(b, &s, v, outputs[i]));
    }
fail:
    close_attrs(attrs, n_attrs);
    ox_map_deinit(&s.names);
    return st;
}

static ox_status add_plain(build *b, scope *s, const ox_onnx_node *r, const ox_value_id *outputs)
{
    ox_status st = OX_OK;
    ox_node_id id;
    ox_node n = {.op_type = r->op_type,
                 .domain = plain_domain(r->domain),
                 .n_inputs = (uint32_t)r->n_inputs,
                 .n_outputs = (uint32_t)r->n_outputs};
    n.version = version_of(b, s, n.domain);
    n.name = r->name.n ? scoped(b, s, r->name) : (ox_str){0};
    ox_value_id *in = ox_arena_take_n(b->arena, r->n_inputs ? r->n_inputs : 1, sizeof(*in));
    if (!in || (r->name.n && !n.name.p)) return no_memory(b);
    for (size_t i = 0; i < r->n_inputs; i++)
        OX_TRY(resolve(b, s, r->inputs[i], &in[i]));
    n.inputs = in;
    n.outputs = (ox_value_id *)outputs;
    OX_TRY_GOTO(convert_attrs(b, s, r, &n.attrs, &n.n_attrs));
    OX_TRY_GOTO(ox_graph_add_node(s->g, &n, &id, b->err));
    return OX_OK;
fail:
    close_attrs(n.attrs, n.n_attrs);
    return st;
}

static ox_status build_node(build *b, scope *s, const ox_onnx_node *r)
{
    const ox_onnx_function *f = function_of(b, r);
    const ox_str domain = plain_domain(r->domain);
    if (++b->n_nodes > TOTAL_NODES_MAX)
        return OX_FAIL(b->err, OX_LIMIT, "the model has more than %d nodes", TOTAL_NODES_MAX);
    if (r->n_inputs > UINT16_MAX || r->n_outputs > UINT16_MAX || r->n_attrs > UINT16_MAX)
        return OX_FAIL(b->err, OX_LIMIT, "node \"%.*s\" (%.*s) has too many operands",
                       OX_STR_ARGS(r->name), OX_STR_ARGS(r->op_type));
    ox_value_id *out = ox_arena_take_n(b->arena, r->n_outputs ? r->n_outputs : 1, sizeof(*out));
    if (!out) return no_memory(b);
    for (size_t i = 0; i < r->n_outputs; i++)
        OX_TRY(resolve(b, s, r->outputs[i], &out[i]));
    if (f && domain.n && b->options->keep &&
        b->options->keep(b->options->user, domain, r->op_type, version_of(b, s, domain)))
        f = NULL;
    if (f) return inline_call(b, s, r, f, out);
    if (is_constant(r) && ox_value_is(out[0])) {
        ox_attr *attrs;
        uint32_t n;
        ox_tensor t = {0};
        bool is = false;
        OX_TRY(convert_attrs(b, s, r, &attrs, &n));
        if (n) OX_TRY(constant_of(b, &attrs[0], &t, &is));
        close_attrs(attrs, n);
        if (is) {
            ox_tensor *copy = ox_arena_take(b->arena, sizeof(*copy));
            if (!copy) return no_memory(b);
            *copy = t;
            ox_value *v = ox_graph_value(s->g, out[0]);
            v->kind = OX_VALUE_CONSTANT;
            v->constant = copy;
            v->dtype = t.dtype;
            v->rank = t.rank;
            memcpy(v->dims, t.dims, sizeof(v->dims));
            return OX_OK;
        }
    }
    return add_plain(b, s, r, out);
}

static ox_status build_nodes(build *b, scope *s, const ox_onnx_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < nodes[i].n_outputs; j++) {
            const ox_str name = nodes[i].outputs[j];
            uint64_t old;
            ox_value_id v;
            if (!name.n) continue;
            /* A function's output is bound to the caller's value already. */
            if (s->call && ox_map_get(&s->names, name, &old) && (int32_t)old >= 0) {
                const ox_value *x = ox_graph_value(s->g, (ox_value_id){(int32_t)old});
                bool is_output = false;
                for (size_t k = 0; k < s->call->f->n_outputs; k++)
                    is_output |= ox_str_eq(s->call->f->outputs[k], name);
                if (is_output && x->kind == OX_VALUE_NODE && x->producer.i < 0) continue;
            }
            OX_TRY(declare(b, s, name, &v));
        }
    }
    for (size_t i = 0; i < n; i++)
        OX_TRY(build_node(b, s, &nodes[i]));
    return OX_OK;
}

/* ---- graphs ---- */

static ox_status add_initializer(build *b, scope *s, ox_str name, const ox_tensor *t)
{
    ox_value_id v;
    if (!name.n)
        return OX_FAIL(b->err, OX_BAD_FILE, "an initializer of graph \"%.*s\" has no name",
                       OX_STR_ARGS(s->g->name));
    OX_TRY(ox_graph_add_constant(s->g, name, t, &v, b->err));
    return bind(b, s, name, v);
}

static ox_status add_ports(build *b, scope *s, const ox_onnx_graph *r)
{
    uint64_t old;
    for (size_t i = 0; i < r->n_initializers; i++)
        OX_TRY(add_initializer(b, s, r->initializers[i].name, &r->initializers[i].t));
    for (size_t i = 0; i < r->n_sparse; i++) {
        ox_tensor t;
        OX_TRY(densify(b, &r->sparse[i], &t));
        OX_TRY(add_initializer(b, s, r->sparse[i].values.name, &t));
    }
    for (size_t i = 0; i < r->n_inputs; i++) {
        ox_value_id v;
        if (ox_map_get(&s->names, r->inputs[i].name, &old) &&
            ox_graph_value(s->g, (ox_value_id){(int32_t)old})->kind == OX_VALUE_CONSTANT)
            continue; /* a default that nobody overrides */
        OX_TRY(declare(b, s, r->inputs[i].name, &v));
        ox_graph_value(s->g, v)->kind = OX_VALUE_INPUT;
        OX_TRY(set_type(b, s->g, v, &r->inputs[i]));
        if (!ox_vec_push(&s->g->inputs, v)) return no_memory(b);
    }
    return OX_OK;
}

static ox_status add_outputs(build *b, scope *s, const ox_onnx_graph *r)
{
    for (size_t i = 0; i < r->n_outputs; i++) {
        ox_value_id v;
        if (!r->outputs[i].name.n)
            return OX_FAIL(b->err, OX_BAD_FILE, "an output of graph \"%.*s\" has no name",
                           OX_STR_ARGS(s->g->name));
        OX_TRY(resolve(b, s, r->outputs[i].name, &v));
        const ox_value *x = ox_graph_value(s->g, v);
        if (x->kind == OX_VALUE_NODE) OX_TRY(set_type(b, s->g, v, &r->outputs[i]));
        if (!ox_vec_push(&s->g->outputs, v)) return no_memory(b);
    }
    for (size_t i = 0; i < r->n_values; i++) {
        uint64_t id;
        if (!ox_map_get(&s->names, r->values[i].name, &id)) continue;
        const ox_value *x = ox_graph_value(s->g, (ox_value_id){(int32_t)id});
        if (x->kind == OX_VALUE_NODE && x->rank < 0 && !x->dtype)
            OX_TRY(set_type(b, s->g, (ox_value_id){(int32_t)id}, &r->values[i]));
    }
    return OX_OK;
}

static ox_status build_graph(build *b, const ox_onnx_graph *r, ox_graph *parent, scope *outer,
                             int depth, ox_graph **out)
{
    ox_status st = OX_OK;
    ox_graph *g = NULL;
    scope s = {.outer = outer, .depth = depth};
    *out = NULL;
    if (depth > DEPTH_MAX)
        return OX_FAIL(b->err, OX_LIMIT, "functions and subgraphs nest deeper than %d", DEPTH_MAX);
    OX_TRY(ox_graph_open(&g, b->arena, parent, b->err));
    g->name = r->name;
    s.g = g;
    s.call = outer ? outer->call : NULL;
    OX_TRY_GOTO(add_ports(b, &s, r));
    OX_TRY_GOTO(build_nodes(b, &s, r->nodes, r->n_nodes));
    OX_TRY_GOTO(add_outputs(b, &s, r));
    OX_TRY_GOTO(ox_graph_sort(g, b->err));
    *out = g;
    g = NULL;
fail:
    ox_map_deinit(&s.names);
    ox_graph_close(&g);
    return st;
}

ox_status ox_graph_from_onnx_with(ox_graph **out, ox_arena *arena, const ox_onnx *o,
                                  const ox_from_onnx_options *options, ox_err *err)
{
    ox_status st = OX_OK;
    build b = {.o = o, .arena = arena, .options = options, .err = err};
    *out = NULL;
    if (!o->graph) return OX_FAIL(err, OX_BAD_FILE, "the file holds no graph");
    for (size_t i = 0; i < o->n_functions; i++) {
        const ox_onnx_function *f = &o->functions[i];
        const ox_str key = function_key(&b, f->domain, f->name, f->overload);
        uint64_t old;
        if (!key.p) OX_TRY_GOTO(no_memory(&b));
        if (ox_map_get(&b.functions, key, &old))
            OX_TRY_GOTO(OX_FAIL(err, OX_BAD_FILE, "function \"%.*s\" is defined twice",
                                OX_STR_ARGS(f->name)));
        if (!ox_map_put(&b.functions, key, i)) OX_TRY_GOTO(no_memory(&b));
    }
    OX_TRY_GOTO(build_graph(&b, o->graph, NULL, NULL, 0, out));
    if (st == OX_OK) st = ox_graph_verify(*out, err);
    if (st) ox_graph_close(out);
fail:
    ox_map_deinit(&b.functions);
    return st;
}

ox_status ox_graph_from_onnx(ox_graph **out, ox_arena *arena, const ox_onnx *o, ox_err *err)
{
    const ox_from_onnx_options none = {0};
    return ox_graph_from_onnx_with(out, arena, o, &none, err);
}
