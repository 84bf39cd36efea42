/* decode.c - the backend's decode entry on the chain: builds the chain of a plan once, then lets
 * the device run ahead of the host by at most 16 tokens and hands tokens over as they come.
 *
 * A plan that match.c refuses, or settings that need the host (anything but greedy and plain
 * temperature), leave *n_done 0: the engine goes on step by step. Read match.h and chain.h next. */
#include "backend/cuda/chain/chain.h"
#include "backend/cuda/chain/match.h"
#include "backend/cuda/cuda.h"
#include "base/fs.h"
#include "base/log.h"

enum { AHEAD = 16, POLLS = 1 << 14 };

typedef struct decoder {
    const ox_call *calls; /* of the plan it was made for */
    size_t n_calls;
    ox_chain *chain; /* NULL: the plan has none */
    void *memory;    /* the chain's */
    int32_t n_positions, vocab;
} decoder;

/* What is being built. */
typedef struct builder {
    ox_cuda_backend *b;
    const ox_decode_plan *plan;
    const ox_kv_pool *kv;
    ox_match match;
    ox_chain_model model;
    ox_chain_layer *layers;
    const float *cos_table; /* of the pair table made last */
    float *pairs;
    const char *why;
    ox_err *err;
} builder;

static const ox_call *call(const builder *u, int32_t i)
{
    return &u->plan->calls[i];
}

static const ox_cuda_bound *bound(const builder *u, int32_t i)
{
    return u->plan->calls[i].bound;
}

static ox_status refuse(builder *u, const char *why)
{
    if (!u->why) u->why = why;
    return OX_OK;
}

static ox_status halves(builder *u, const void **out, const float *from, int64_t n)
{
    void *p;
    OX_TRY(ox_cuda_small(u->b, &p, (size_t)n * 2, u->err));
    if (ox_chain_halves(p, from, n, u->b->stream)) return refuse(u, "a kernel could not start");
    *out = p;
    return OX_OK;
}

static ox_status put_linear(builder *u, ox_chain_linear *to, int32_t i)
{
    const ox_cuda_bound *x = bound(u, i);
    const ox_cuda_matrix *m = x->n_matrices == 1 ? x->matrix[0] : NULL;
    if (!m) return refuse(u, "the weights of one linear have different formats");
    if (!m->is_pack) return refuse(u, "a layer's weights are not block-quantised");
    to->w = m->pack;
    to->bias = x->vectors[0];
    return OX_OK;
}

static ox_status put_rotary(builder *u, ox_chain_layer *to, const ox_match_layer *l)
{
    const ox_term *q = call(u, l->q_rotate)->term, *k = call(u, l->k_rotate)->term;
    const ox_cuda_bound *x = bound(u, l->q_rotate);
    const ox_rotary *r = q->rotary;
    if (r->cos_table != k->rotary->cos_table || r->rotary != k->rotary->rotary)
        return refuse(u, "q and k turn by different rules");
    if (r->long_cos) return refuse(u, "the rotary rule changes with the length");
    if (u->model.rotary && (u->model.rotary != r->rotary || u->model.interleaved != r->interleaved))
        return refuse(u, "layers turn different numbers of channels");
    u->model.rotary = r->rotary;
    u->model.interleaved = r->interleaved;
    if (u->cos_table != x->tables[0]) {
        const int64_t n = (int64_t)r->n_positions * (r->rotary / 2);
        OX_TRY(ox_cuda_small(u->b, (void **)&u->pairs, (size_t)n * 8, u->err));
        if (ox_chain_pairs(u->pairs, x->tables[0], x->tables[1], n, u->b->stream))
            return refuse(u, "a kernel could not start");
        u->cos_table = x->tables[0];
    }
    to->rotary = u->pairs;
    if (!u->model.max_positions || r->n_positions < u->model.max_positions)
        u->model.max_positions = r->n_positions;
    return OX_OK;
}

static ox_status put_layer(builder *u, size_t i)
{
    const ox_match_layer *l = &u->match.layers.p[i];
    const ox_term *t = call(u, l->attend)->term, *norm = call(u, l->norm1)->term;
    ox_chain_layer *to = &u->layers[i];
    ox_chain_model *m = &u->model;
    const int32_t act = (int32_t)call(u, l->gate_up)->term->act;
    if (i == 0) {
        m->epsilon = norm->epsilon;
        m->scale = t->scale;
        m->attend_softcap = t->softcap;
        m->act = act;
    }
    if (norm->epsilon != m->epsilon || call(u, l->norm2)->term->epsilon != m->epsilon ||
        t->scale != m->scale || t->softcap != m->attend_softcap || act != m->act)
        return refuse(u, "layers have different constants");
    OX_TRY(put_linear(u, &to->qkv, l->qkv));
    OX_TRY(put_linear(u, &to->o, l->o));
    OX_TRY(put_linear(u, &to->gate_up, l->gate_up));
    OX_TRY(put_linear(u, &to->down, l->down));
    OX_TRY(halves(u, &to->norm1, bound(u, l->norm1)->vectors[0], u->match.hidden));
    OX_TRY(halves(u, &to->norm2, bound(u, l->norm2)->vectors[0], u->match.hidden));
    if (l->q_norm >= 0) {
        const int64_t n = u->match.head_size;
        OX_TRY(halves(u, &to->q_norm, bound(u, l->q_norm)->vectors[0], n));
        OX_TRY(halves(u, &to->k_norm, bound(u, l->k_norm)->vectors[0], n));
    }
    OX_TRY(put_rotary(u, to, l));
    const ox_kv_place *p = &ox_kv_pool_places(u->kv)[t->cache.i];
    to->kv = (ox_chain_kv){(int64_t)p->k_offset, (int64_t)p->v_offset, p->n_kv_heads, p->head_size,
                           p->v_head_size};
    to->sinks = bound(u, l->attend)->vectors[0];
    to->window = t->window;
    return OX_OK;
}

static ox_status put_ends(builder *u)
{
    const ox_match *x = &u->match;
    const ox_call *embed = call(u, x->embed), *norm = call(u, x->norm);
    const ox_cuda_matrix *table = bound(u, x->embed)->matrix[0];
    const ox_cuda_matrix *head = bound(u, x->head)->matrix[0];
    void *p;
    if (norm->term->epsilon != u->model.epsilon) return refuse(u, "norms have different constants");
    OX_TRY(halves(u, &u->model.norm, bound(u, x->norm)->vectors[0], x->hidden));
    if (!head || bound(u, x->head)->n_matrices != 1) return refuse(u, "the head is no one matrix");
    u->model.head = (ox_chain_linear){head->pack, bound(u, x->head)->vectors[0]};
    if (!head->is_pack) { /* a float head, often the embedding itself: float16 in tiles */
        const size_t n = ox_chain_head_bytes(head->n, head->k);
        OX_TRY(ox_cuda_alloc(u->b, &p, n, "the head", u->err));
        u->b->weight_bytes += n;
        if (ox_chain_head(&u->model.head.w, p, &head->floats, u->b->stream))
            return refuse(u, "a kernel could not start");
    }
    if (x->head_scale >= 0) {
        const ox_term *t = call(u, x->head_scale)->term;
        if (t->scale != 1.0f) return refuse(u, "logits are scaled");
        u->model.logit_softcap = t->softcap;
    }
    if (!table) return refuse(u, "the embedding is no one matrix");
    const int32_t rows = table->n;
    OX_TRY(ox_cuda_alloc(u->b, &p, (size_t)rows * (size_t)x->hidden * 2, "the embedding", u->err));
    u->b->weight_bytes += (uint64_t)rows * (uint64_t)x->hidden * 2;
    if (ox_chain_table(p, table->is_pack ? &table->pack : NULL, &table->floats, rows, x->hidden,
                       embed->term->scale, u->b->stream))
        return refuse(u, "a kernel could not start");
    u->model.embedding = p;
    return OX_OK;
}

static ox_status build(builder *u, decoder *d)
{
    const ox_match *x = &u->match;
    char text[256] = "";
    ox_chain_model *m = &u->model;
    ox_chain_defaults(m);
    m->n_layers = (int32_t)x->layers.n;
    m->hidden = x->hidden;
    m->ffn = x->ffn;
    m->vocab = x->vocab;
    m->n_heads = x->n_heads;
    m->n_kv_heads = x->n_kv_heads;
    m->head_size = x->head_size;
    for (size_t i = 0; i < x->layers.n && !u->why; i++)
        OX_TRY(put_layer(u, i));
    if (!u->why) OX_TRY(put_ends(u));
    if (u->why) return OX_OK;
    m->layers = u->layers;
    d->memory = ox_calloc(1, ox_chain_bytes(m->n_layers));
    if (!d->memory) return OX_FAIL(u->err, OX_NO_MEMORY, "no memory for a plan");
    if (ox_chain_open(&d->chain, d->memory, m, u->b->stream, text, sizeof(text))) {
        (void)cudaGetLastError();
        ox_log(OX_LOG_INFO, "decoding goes step by step: %s", text);
        return OX_OK;
    }
    d->n_positions = m->max_positions;
    d->vocab = m->vocab;
    return OX_OK;
}

/* The chain of a plan; *out stays without a chain when there is none. */
static ox_status open_decoder(ox_cuda_backend *b, const ox_decode_plan *plan, const ox_kv_pool *kv,
                              decoder *d, ox_err *err)
{
    builder u = {.b = b, .plan = plan, .kv = kv, .err = err};
    ox_status st = OX_OK;
    const char *off = ox_env("OXGEN_CUDA_CHAIN");
    d->calls = plan->calls;
    d->n_calls = plan->n_calls;
    if (off && !strcmp(off, "0")) return OX_OK;
    if (b->sm < 90)
        u.why = "the device has no programmatic launch";
    else if (ox_kv_pool_dtype(kv) != OX_DTYPE_F16)
        u.why = "the cache is not float16";
    else if (ox_chain_matches(&u.match, plan->calls, plan->n_calls, &u.why)) {
        u.layers = ox_calloc(u.match.layers.n, sizeof(*u.layers));
        st = u.layers ? build(&u, d) : OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    }
    if (!st && u.why) ox_log(OX_LOG_INFO, "decoding goes step by step: %s", u.why);
    ox_free(u.layers);
    ox_match_free(&u.match);
    return st;
}

/* Greedy, or temperature and nothing else. */
static bool is_plain(const ox_sampler_options *o)
{
    const bool untouched = o->repetition_penalty == 1.0f && !(o->frequency_penalty != 0.0f) &&
                           !(o->presence_penalty != 0.0f) && !o->n_bias && !o->n_suppress &&
                           !o->order && !(o->dry_multiplier > 0.0f) && !o->mirostat &&
                           !o->no_repeat_ngram && !o->min_length && !o->min_new &&
                           o->guidance_scale == 1.0f && !o->n_bad_words && !o->n_forced;
    const bool all = o->top_k <= 0 && (o->top_p <= 0.0f || o->top_p >= 1.0f) && o->min_p <= 0.0f &&
                     o->dynatemp_range <= 0.0f && (o->typical_p <= 0.0f || o->typical_p >= 1.0f) &&
                     o->top_n_sigma <= 0.0f && o->epsilon_cutoff <= 0.0f && o->eta_cutoff <= 0.0f &&
                     (o->tail_free <= 0.0f || o->tail_free >= 1.0f) && o->top_a <= 0.0f &&
                     o->xtc_probability <= 0.0f;
    return untouched && (o->temperature <= 0.0f || all);
}

/* Waits for the token that follows position pos; false: the device failed. */
static bool wait_token(ox_cuda_backend *b, const ox_chain *c, int32_t pos, int32_t *id)
{
    for (;;) {
        for (int i = 0; i < POLLS; i++) {
            *id = ox_chain_token(c, pos);
            if (*id >= 0) return true;
        }
        const cudaError_t e = cudaStreamQuery(b->stream);
        if (e == cudaErrorNotReady) continue;
        *id = ox_chain_token(c, pos);
        return e == cudaSuccess && *id >= 0;
    }
}

static ox_status run(ox_cuda_backend *b, decoder *d, const ox_decode_request *q,
                     ox_decode_token_fn *token, void *user, int64_t *n_done, ox_err *err)
{
    static const int32_t sizes[] = {8, 4, 2, 1};
    const ox_chain_sampling how = {q->sampler->temperature, q->sampler->seed};
    int64_t queued = 0;
    bool more = true;
    if (ox_chain_start(d->chain, q->position, q->last, (char *const *)q->table, (int32_t)q->n_pages,
                       &how))
        return ox_cuda_check(b, cudaGetLastError(), "starting the chain(", err);
    while (more && *n_done < q->n_tokens) {
        while (queued < q->n_tokens && queued - *n_done < AHEAD) {
            /* Graphs begin at multiples of their size, and which phases they have depends on where
             * they end: so a position's bits do not depend on where requests begin and end. */
            const int32_t at = q->position + (int32_t)queued;
            int i = 0;
            while (sizes[i] > q->n_tokens - queued || at % sizes[i])
                i++;
            if (ox_chain_enqueue(d->chain, sizes[i], at + sizes[i]))
                return ox_cuda_check(b, cudaGetLastError(), "capturing the chain(", err);
            queued += sizes[i];
        }
        int32_t id;
        if (!wait_token(b, d->chain, q->position + (int32_t)*n_done, &id))
            return ox_cuda_check(b, cudaStreamSynchronize(b->stream), "the chain(", err);
        ++*n_done;
        more = token(user, id);
    }
    OX_CUDA_TRY(b, err, cudaStreamSynchronize(b->stream));
    return OX_OK;
}

ox_status ox_cuda_decode(ox_backend *base, const ox_decode_plan *plan,
                         const ox_decode_request *request, const ox_kv_pool *kv,
                         ox_decode_token_fn *token, void *user, int64_t *n_done, ox_err *err)
{
    ox_cuda_backend *b = (ox_cuda_backend *)base;
    decoder *d = b->chain;
    *n_done = 0;
    if (!is_plain(request->sampler) || request->n_tokens < 1) return OX_OK;
    if (d && (d->calls != plan->calls || d->n_calls != plan->n_calls)) {
        ox_cuda_chain_close(b);
        d = NULL;
    }
    if (!d) {
        d = ox_calloc(1, sizeof(*d));
        if (!d) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
        b->chain = d;
        OX_TRY(open_decoder(b, plan, kv, d, err));
    }
    if (!d->chain || request->position + request->n_tokens > d->n_positions) return OX_OK;
    return run(b, d, request, token, user, n_done, err);
}

void ox_cuda_chain_close(ox_cuda_backend *b)
{
    decoder *d = b->chain;
    if (!d) return;
    ox_chain_close(&d->chain);
    ox_free(d->memory);
    ox_free(d);
    b->chain = NULL;
}
