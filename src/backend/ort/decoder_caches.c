/* decoder_caches.c - pairs of past inputs and present outputs, their geometry, and which pairs may
 * be one buffer: those that only a GroupQueryAttention reads and writes, which works in place and
 * takes the length from its other inputs. */
#include "backend/ort/decoder_internal.h"
#include "base/log.h"

#include <string.h>

static const ox_onnx_value *find(const ox_onnx_value *v, size_t n, ox_str name)
{
    for (size_t i = 0; i < n; i++)
        if (ox_str_eq(v[i].name, name)) return &v[i];
    return NULL;
}

static bool has(ox_str name, const char *part)
{
    return ox_str_find(name, ox_str_of(part), 0) != SIZE_MAX;
}

/* name with the first `from` replaced by `to` in b; false when there is none. */
static bool renamed(ox_buf *b, ox_str name, const char *from, const char *to)
{
    const size_t at = ox_str_find(name, ox_str_of(from), 0), n = strlen(from);
    ox_buf_clear(b);
    if (at == SIZE_MAX) return false;
    ox_buf_put(b, name.p, at);
    ox_buf_put_z(b, to);
    ox_buf_put(b, name.p + at + n, name.n - at - n);
    return !b->failed;
}

/* The layer's digits of a name that fits "past.%d.key", as the same name of the other template. */
static bool by_template(ox_buf *b, ox_str name, ox_str past, ox_str present)
{
    const size_t at = ox_str_find(past, OX_STR("%d"), 0);
    const size_t to = ox_str_find(present, OX_STR("%d"), 0);
    ox_buf_clear(b);
    if (at == SIZE_MAX || to == SIZE_MAX || name.n < past.n - 1) return false;
    const ox_str head = {past.p, at}, tail = {past.p + at + 2, past.n - at - 2};
    if (!ox_str_starts(name, head) || !ox_str_ends(name, tail)) return false;
    ox_buf_put(b, present.p, to);
    ox_buf_put(b, name.p + at, name.n - head.n - tail.n);
    ox_buf_put(b, present.p + to + 2, present.n - to - 2);
    return !b->failed;
}

static const ox_onnx_value *present_of(const ox_ort_decoder *d, const ox_source *s, ox_str past)
{
    static const char *const words[][2] = {
        {"past_key_values", "present"},
        {"past_key_value", "present"},
        {"past", "present"},
        {"_in", "_out"},
    };
    const ox_onnx_value *out = d->ports.outputs, *found = NULL;
    const size_t n = d->ports.n_outputs;
    ox_buf b = {0};
    if (by_template(&b, past, s->in_past_k, s->out_present_k))
        found = find(out, n, ox_buf_view(&b));
    if (!found && by_template(&b, past, s->in_past_v, s->out_present_v))
        found = find(out, n, ox_buf_view(&b));
    for (size_t i = 0; !found && i < OX_COUNT(words); i++)
        if (renamed(&b, past, words[i][0], words[i][1])) found = find(out, n, ox_buf_view(&b));
    ox_buf_deinit(&b);
    return found;
}

static bool is_fixed_state(ox_str name)
{
    static const char *const words[] = {"conv", "recurrent", "ssm", "state"};
    for (size_t i = 0; i < OX_COUNT(words); i++)
        if (has(name, words[i])) return true;
    return false;
}

/* The dimension that grows: the one named after a length, else where exporters put it. */
static int32_t growing_axis(const ox_onnx_value *v, int32_t batch)
{
    if (is_fixed_state(v->name)) return -1;
    for (int32_t i = 0; i < v->rank; i++) {
        const ox_str symbol = v->dims[i].symbol;
        if (i == batch || v->dims[i].value >= 0 || has(symbol, "batch")) continue;
        if (has(symbol, "past") || has(symbol, "seq") || has(symbol, "len")) return i;
    }
    if (v->rank >= 4 && v->dims[v->rank - 2].value < 0) return v->rank - 2;
    if (v->rank >= 4 && v->dims[v->rank - 3].value < 0) return v->rank - 3;
    return -1;
}

static ox_status measure(cache_port *c, ox_err *err)
{
    const int bits = ox_dtype_bits(c->dtype);
    size_t inner = 1, outer = 1, bytes = 0;
    bool ok = true;
    for (int32_t i = 0; i < c->rank; i++) {
        size_t *side = i < c->axis ? &outer : &inner;
        if (i != c->axis) ok &= ox_size_mul(*side, (size_t)c->dims[i], side);
    }
    ok &= ox_dtype_bytes(c->dtype, inner, &bytes);
    if (!ok || bits <= 0 || c->dtype == OX_DTYPE_STRING || inner * (size_t)bits % 8)
        return OX_FAIL(err, OX_UNSUPPORTED, "input %s: its element type or size is not usable",
                       c->past);
    c->outer = outer;
    c->inner = bytes;
    return OX_OK;
}

static ox_status add_cache(ox_ort_decoder *d, const ox_source *s, const ox_onnx_value *v,
                           const ox_onnx_value *present, ox_err *err)
{
    const int32_t batch = v->rank == 5 ? 1 : 0;
    cache_port c = {.past = v->name.p,
                    .present = present->name.p,
                    .dtype = v->dtype,
                    .rank = v->rank,
                    .axis = growing_axis(v, batch)};
    for (int32_t i = 0; i < v->rank; i++) {
        c.dims[i] = v->dims[i].value;
        if (i == batch && c.dims[i] < 0) c.dims[i] = 1;
        if (i == c.axis) c.dims[i] = 0;
        if (c.dims[i] < 0 && i == v->rank - 1 && s->facts.head_size) c.dims[i] = s->facts.head_size;
        if (c.dims[i] < 0)
            return OX_FAIL(err, OX_UNSUPPORTED,
                           "input %s: dimension %d is not a number; its size is needed to start",
                           c.past, i);
    }
    if (c.rank > batch && c.dims[batch] != 1)
        return OX_FAIL(err, OX_UNSUPPORTED, "input %s: made for a batch of %lld; expected 1",
                       c.past, (long long)c.dims[batch]);
    OX_TRY(measure(&c, err));
    if (c.axis < 0) d->can_go_back = false;
    return ox_vec_push(&d->caches, c) ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
}

static bool is_feed(const ox_ort_decoder *d, const ox_onnx_value *v)
{
    for (size_t i = 0; i < d->feeds.n; i++)
        if (d->feeds.p[i].port == v) return true;
    return false;
}

ox_status ox_ort_find_caches(ox_ort_decoder *d, const ox_source *s, ox_err *err)
{
    d->can_go_back = true;
    for (size_t i = 0; i < d->ports.n_inputs; i++) {
        const ox_onnx_value *v = &d->ports.inputs[i];
        if (is_feed(d, v)) continue;
        const ox_onnx_value *present = v->rank >= 0 ? present_of(d, s, v->name) : NULL;
        if (!present)
            return OX_FAIL(err, OX_UNSUPPORTED,
                           "input %.*s of the graph has no role that oxgen knows; expected token "
                           "ids, mask, positions or a past with its present",
                           OX_STR_ARGS(v->name));
        OX_TRY(add_cache(d, s, v, present, err));
    }
    return OX_OK;
}

/* True when the only reader of past is an attention that also makes present from it. */
static bool works_in_place(const ox_onnx_graph *g, ox_str past, ox_str present)
{
    bool in_place = false;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const ox_onnx_node *n = &g->nodes[i];
        const bool attends = ox_str_is(n->op_type, "GroupQueryAttention");
        for (size_t k = 0; k < n->n_inputs; k++) {
            if (!ox_str_eq(n->inputs[k], past)) continue;
            if (!attends || in_place || (k != 3 && k != 4) || n->n_outputs < k - 1 ||
                !ox_str_eq(n->outputs[k - 2], present))
                return false;
            in_place = true;
        }
        for (size_t k = 0; k < n->n_inputs; k++)
            if (ox_str_eq(n->inputs[k], present)) return false;
    }
    return in_place;
}

static bool has_subgraphs(const ox_onnx_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_attrs; k++)
            if (g->nodes[i].attrs[k].g || g->nodes[i].attrs[k].graphs) return true;
    return false;
}

static bool is_gather(ox_str op_type)
{
    return ox_str_starts(op_type, OX_STR("Gather"));
}

/* True when a node reads all of it, not some rows. */
static bool is_read_whole(const ox_onnx_graph *g, ox_str name)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_inputs && !is_gather(g->nodes[i].op_type); k++)
            if (ox_str_eq(g->nodes[i].inputs[k], name)) return true;
    return false;
}

static int64_t int_attr(const ox_onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attrs; i++)
        if (ox_str_is(n->attrs[i].name, name)) return n->attrs[i].i;
    return 0;
}

/* Multiply-adds of one row through a node that multiplies with a constant matrix, doubled. */
static double ops_of(const ox_onnx_graph *g, const ox_onnx_node *n)
{
    size_t count = 0;
    if (ox_str_is(n->op_type, "MatMulNBits"))
        return 2.0 * (double)int_attr(n, "K") * (double)int_attr(n, "N");
    if (!ox_str_is(n->op_type, "MatMul") && !ox_str_is(n->op_type, "Gemm")) return 0;
    for (size_t i = 0; i < g->n_initializers && n->n_inputs > 1; i++)
        if (ox_str_eq(g->initializers[i].name, n->inputs[1]) &&
            ox_tensor_count(&g->initializers[i].t, &count))
            return 2.0 * (double)count;
    return 0;
}

static void add_costs(ox_ort_decoder *d, const ox_onnx_graph *g)
{
    for (size_t i = 0; i < g->n_initializers; i++) {
        size_t bytes;
        if (!ox_tensor_bytes(&g->initializers[i].t, &bytes)) continue;
        d->weight_bytes += bytes;
        if (is_read_whole(g, g->initializers[i].name)) d->cost.weight_bytes += (double)bytes;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        d->cost.ops += ops_of(g, &g->nodes[i]);
}

ox_status ox_ort_look_into_file(ox_ort_decoder *d, const char *onnx, ox_err *err)
{
    ox_onnx *f = NULL;
    ox_err why = OX_ERR_INIT;
    const ox_status st = ox_onnx_open(&f, onnx, &why);
    if (st == OX_NO_MEMORY) return OX_FAIL(err, st, "%s", why.msg);
    if (st) { /* ONNX Runtime has read it all the same */
        ox_log(OX_LOG_INFO, "no cache grows in place: %s", why.msg);
        return OX_OK;
    }
    const ox_onnx_graph *g = f->graph;
    const bool simple = !has_subgraphs(g);
    add_costs(d, g);
    for (size_t i = 0; simple && i < d->caches.n; i++) {
        cache_port *c = &d->caches.p[i];
        c->shared = c->axis >= 0 && works_in_place(g, ox_str_of(c->past), ox_str_of(c->present));
    }
    ox_onnx_close(&f);
    return OX_OK;
}
