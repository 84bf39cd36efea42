/* interp.c - decoders that opt/ could not bring to terms: the graph as written runs operator by
 * operator, past and present are real tensors of the session. Slow and right. */
#include "engine/engine_internal.h"
#include "ops/run.h"
#include "tensor/half.h"

#include <stdio.h>
#include <string.h>

/* One past input and the present output that becomes it. */
typedef struct port {
    ox_str past, present;
    ox_dtype dtype;
    int32_t rank, axis; /* axis that grows */
    int64_t dims[OX_RANK_MAX];
} port;

struct ox_interp {
    ox_source *source; /* borrowed */
    OX_VEC(port) ports;
    OX_VEC(ox_str) wanted; /* logits, then the presents */
};

struct ox_interp_state {
    const ox_interp *p;
    ox_tensor *past; /* [ports] data owned */
    size_t n_positions;
};

static ox_status add_port(ox_interp *p, ox_str past, ox_str present, ox_err *err)
{
    const ox_graph *g = p->source->graph;
    const ox_value *v = ox_graph_value(g, ox_graph_find(g, past));
    port q = {.past = past, .present = present, .dtype = v->dtype, .rank = v->rank, .axis = -1};
    for (int32_t i = 0; i < v->rank; i++) {
        q.dims[i] = v->dims[i];
        if (i == 0 && v->dims[i] < 0) q.dims[i] = 1;
        if (i == 2 && v->dims[i] < 0) q.axis = i;
    }
    if (q.axis >= 0) q.dims[q.axis] = 0;
    if (v->rank == 4 && q.dims[3] < 0 && p->source->facts.head_size)
        q.dims[3] = p->source->facts.head_size;
    for (int32_t i = 0; i < v->rank; i++)
        if (q.dims[i] < 0)
            return OX_FAIL(err, OX_UNSUPPORTED,
                           "input %.*s: dimension %d is not a number; its size is needed to start",
                           OX_STR_ARGS(past), i);
    if (!ox_vec_push(&p->ports, q) || !ox_vec_push(&p->wanted, present))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    return OX_OK;
}

/* "past.%d.key" with the layer's number, as a string in the source's arena. */
static ox_str layer_name(ox_source *s, ox_str pattern, int layer)
{
    char text[512];
    const size_t at = ox_str_find(pattern, OX_STR("%d"), 0);
    if (at == SIZE_MAX || pattern.n > 400) return (ox_str){0};
    const int n = snprintf(text, sizeof(text), "%.*s%d%.*s", (int)at, pattern.p, layer,
                           (int)(pattern.n - at - 2), pattern.p + at + 2);
    return (ox_str){ox_arena_copy(&s->arena, text, (size_t)n), (size_t)n};
}

static ox_status find_ports(ox_interp *p, ox_err *err)
{
    enum { MAX_LAYERS = 1000, MAX_GAP = 64 };
    ox_source *s = p->source;
    int gap = 0;
    for (int layer = 0; layer < MAX_LAYERS && gap < MAX_GAP; layer++) {
        const ox_str past[2] = {layer_name(s, s->in_past_k, layer),
                                layer_name(s, s->in_past_v, layer)};
        const ox_str present[2] = {layer_name(s, s->out_present_k, layer),
                                   layer_name(s, s->out_present_v, layer)};
        gap++;
        for (int i = 0; i < 2; i++) {
            if (!past[i].n || !ox_value_is(ox_graph_find(s->graph, past[i]))) continue;
            if (!ox_value_is(ox_graph_find(s->graph, present[i])))
                return OX_FAIL(err, OX_BAD_FILE, "the graph has input %.*s but no output %.*s",
                               OX_STR_ARGS(past[i]), OX_STR_ARGS(present[i]));
            OX_TRY(add_port(p, past[i], present[i], err));
            gap = 0;
        }
    }
    return OX_OK;
}

ox_status ox_interp_open(ox_interp **out, ox_source *s, ox_err *err)
{
    ox_status st = OX_OK;
    *out = NULL;
    OX_TRY(ox_op_check_graph(s->graph, err));
    ox_interp *p = ox_calloc(1, sizeof(*p));
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    p->source = s;
    if (!ox_value_is(ox_graph_find(s->graph, s->in_ids)) ||
        !ox_value_is(ox_graph_find(s->graph, s->out_logits))) {
        st = OX_FAIL(err, OX_UNSUPPORTED, "the graph has no token ids input or no logits output");
        goto fail;
    }
    const ox_value *logits = ox_graph_value(s->graph, ox_graph_find(s->graph, s->out_logits));
    if (logits->rank > 0 && logits->dims[logits->rank - 1] > 0)
        s->facts.vocab_size = logits->dims[logits->rank - 1];
    if (s->facts.vocab_size <= 0) {
        st = OX_FAIL(err, OX_UNSUPPORTED,
                     "the width of the logits is not stated by graph or config");
        goto fail;
    }
    if (!ox_vec_push(&p->wanted, s->out_logits)) {
        st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
        goto fail;
    }
    OX_TRY_GOTO(find_ports(p, err));
    *out = p;
    return OX_OK;
fail:
    ox_interp_close(&p);
    return st;
}

void ox_interp_close(ox_interp **interp)
{
    ox_interp *p = *interp;
    if (!p) return;
    ox_vec_deinit(&p->ports);
    ox_vec_deinit(&p->wanted);
    ox_free(p);
    *interp = NULL;
}

static void start_past(const port *q, ox_tensor *t)
{
    *t = (ox_tensor){.dtype = q->dtype, .rank = q->rank};
    memcpy(t->dims, q->dims, sizeof(t->dims));
}

ox_status ox_interp_state_open(struct ox_interp_state **out, ox_interp *p, ox_err *err)
{
    *out = NULL;
    struct ox_interp_state *s = ox_calloc(1, sizeof(*s));
    if (s) s->past = ox_calloc(p->ports.n, sizeof(*s->past));
    if (!s || !s->past) {
        ox_free(s);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a session");
    }
    s->p = p;
    for (size_t i = 0; i < p->ports.n; i++)
        start_past(&p->ports.p[i], &s->past[i]);
    *out = s;
    return OX_OK;
}

void ox_interp_state_close(struct ox_interp_state **state)
{
    struct ox_interp_state *s = *state;
    if (!s) return;
    for (size_t i = 0; i < s->p->ports.n; i++)
        ox_free(s->past[i].data);
    ox_free(s->past);
    ox_free(s);
    *state = NULL;
}

/* Keeps the first n positions along the growing axis, in place. */
static void cut(ox_tensor *t, int32_t axis, int64_t n)
{
    size_t outer = 1, inner = (size_t)ox_dtype_bits(t->dtype) / 8;
    if (axis < 0 || t->dims[axis] <= n) return;
    for (int32_t i = 0; i < axis; i++)
        outer *= (size_t)t->dims[i];
    for (int32_t i = axis + 1; i < t->rank; i++)
        inner *= (size_t)t->dims[i];
    for (size_t o = 0; o < outer && t->data; o++)
        memmove((char *)t->data + o * (size_t)n * inner,
                (char *)t->data + o * (size_t)t->dims[axis] * inner, (size_t)n * inner);
    t->dims[axis] = n;
}

void ox_interp_state_truncate(struct ox_interp_state *s, size_t n_positions)
{
    for (size_t i = 0; i < s->p->ports.n; i++)
        cut(&s->past[i], s->p->ports.p[i].axis, (int64_t)n_positions);
    s->n_positions = n_positions;
}

/* The data of one step's integer inputs. */
typedef struct step_ints {
    int64_t *ids, *mask, *pos; /* int64; narrowed in place when the graph wants int32 */
} step_ints;

static ox_status add_ints(ox_run_input *in, size_t *n_in, const ox_graph *g, ox_str name,
                          int64_t *data, size_t n, ox_err *err)
{
    const ox_value_id id = name.n ? ox_graph_find(g, name) : OX_NO_VALUE;
    if (!ox_value_is(id) || ox_graph_value(g, id)->kind != OX_VALUE_INPUT) return OX_OK;
    const ox_dtype t = ox_graph_value(g, id)->dtype;
    if (t == OX_DTYPE_I32)
        for (size_t i = 0; i < n; i++) {
            const int32_t v = (int32_t)data[i];
            memcpy((char *)data + i * 4, &v, 4);
        }
    else if (t != OX_DTYPE_I64)
        return OX_FAIL(err, OX_UNSUPPORTED, "input %.*s has type %s; expected int64 or int32",
                       OX_STR_ARGS(name), ox_dtype_name(t));
    ox_run_input *q = &in[(*n_in)++];
    *q = (ox_run_input){.name = name, .kind = OX_RT_TENSOR};
    q->t = (ox_tensor){.dtype = t, .rank = 2, .dims = {1, (int64_t)n}, .data = data};
    return OX_OK;
}

static ox_status give_logits(const ox_interp *p, const ox_rt_value *v, size_t n, size_t at,
                             size_t n_wanted, ox_logits_fn *fn, void *user, ox_err *err)
{
    const size_t vocab = (size_t)p->source->facts.vocab_size;
    size_t count;
    if (v->kind != OX_RT_TENSOR || !ox_tensor_count(&v->t, &count) || count % vocab || !count)
        return OX_FAIL(err, OX_BAD_FILE, "the logits output has an unexpected shape");
    const size_t rows = count / vocab;
    float *row = ox_alloc(vocab * sizeof(float));
    if (!row) return OX_FAIL(err, OX_NO_MEMORY, "no memory for logits");
    ox_status st = OX_OK;
    if (rows < n_wanted)
        st = OX_FAIL(err, OX_UNSUPPORTED, "the graph gives logits of its last token only");
    for (size_t i = 0; !st && i < n_wanted; i++) {
        const size_t r = (rows - n_wanted + i) * vocab;
        for (size_t k = 0; k < vocab; k++)
            switch ((int)v->t.dtype) {
            case OX_DTYPE_F16:
                row[k] = ox_f16_to_f32(((const uint16_t *)v->t.data)[r + k]);
                break;
            case OX_DTYPE_BF16:
                row[k] = ox_bf16_to_f32(((const uint16_t *)v->t.data)[r + k]);
                break;
            default:
                row[k] = ((const float *)v->t.data)[r + k];
            }
        st = fn(user, at + n - n_wanted + i, row, vocab);
    }
    ox_free(row);
    return st;
}

static ox_status keep_presents(struct ox_interp_state *s, const ox_run_results *r, ox_err *err)
{
    for (size_t i = 0; i < s->p->ports.n; i++) {
        const ox_rt_value *v = r->values[1 + i];
        size_t bytes;
        if (v->kind != OX_RT_TENSOR || !ox_tensor_bytes(&v->t, &bytes))
            return OX_FAIL(err, OX_BAD_FILE, "output %.*s is not a tensor",
                           OX_STR_ARGS(s->p->ports.p[i].present));
        void *data = ox_alloc(bytes);
        if (!data) return OX_FAIL(err, OX_NO_MEMORY, "no memory for the key/value cache");
        memcpy(data, v->t.data, bytes);
        ox_free(s->past[i].data);
        s->past[i] = v->t;
        s->past[i].data = data;
    }
    return OX_OK;
}

ox_status ox_interp_append(ox_interp *p, struct ox_interp_state *s, const int32_t *ids, size_t n,
                           size_t n_wanted, ox_logits_fn *fn, void *user, ox_err *err)
{
    const ox_source *src = p->source;
    const size_t total = s->n_positions + n;
    ox_run_results *results = NULL;
    size_t n_in = 0;
    ox_status st = OX_OK;

    ox_run_input *in = ox_calloc(p->ports.n + 3, sizeof(*in));
    step_ints v = {ox_alloc(n * 8), ox_alloc(total * 8), ox_alloc(n * 8)};
    if (!in || !v.ids || !v.mask || !v.pos) {
        st = OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu tokens", n);
        goto fail;
    }
    for (size_t i = 0; i < n; i++) {
        v.ids[i] = ids[i];
        v.pos[i] = (int64_t)(s->n_positions + i);
    }
    for (size_t i = 0; i < total; i++)
        v.mask[i] = 1;
    OX_TRY_GOTO(add_ints(in, &n_in, src->graph, src->in_ids, v.ids, n, err));
    OX_TRY_GOTO(add_ints(in, &n_in, src->graph, src->in_mask, v.mask, total, err));
    OX_TRY_GOTO(add_ints(in, &n_in, src->graph, src->in_positions, v.pos, n, err));
    for (size_t i = 0; i < p->ports.n; i++)
        in[n_in++] =
            (ox_run_input){.name = p->ports.p[i].past, .kind = OX_RT_TENSOR, .t = s->past[i]};
    OX_TRY_GOTO(ox_graph_eval(&results, src->graph, in, n_in, p->wanted.p, p->wanted.n, NULL, err));
    OX_TRY_GOTO(keep_presents(s, results, err));
    OX_TRY_GOTO(give_logits(p, results->values[0], n, s->n_positions, n_wanted, fn, user, err));
    s->n_positions = total;
fail:
    ox_run_results_close(&results);
    ox_free(in);
    ox_free(v.ids);
    ox_free(v.mask);
    ox_free(v.pos);
    return st;
}

uint64_t ox_interp_state_bytes(const struct ox_interp_state *s)
{
    uint64_t total = 0;
    for (size_t i = 0; i < s->p->ports.n; i++) {
        size_t bytes;
        if (ox_tensor_bytes(&s->past[i], &bytes)) total += bytes;
    }
    return total;
}
