/* micro_sample.c - choosing tokens, the sorts that a naive sampler would run instead, and pages of
 * the key/value cache. */
#include "engine/micro.h"

#include "base/mem.h"
#include "kv/kv.h"

#include <math.h>
#include <stdlib.h>

/* ---- the sampler ---- */

typedef struct chain {
    int32_t top_k;
    float temperature, top_p, min_p, repetition, frequency, presence;
    const char *order;
    size_t masked; /* only the best so many logits are not -inf; 0 = all */
} chain;

/* kind of a row: greedy, top_k, top_p, min_p; then the chains of the large vocabulary; then all */
static const chain chains[] = {
    {0, 0, 1, 0, 1, 0, 0, NULL, 0},
    {50, 1, 1, 0, 1, 0, 0, "top_k,temperature", 0},
    {0, 1, 0.9f, 0, 1, 0, 0, "top_p,temperature", 0},
    {0, 1, 1, 0.05f, 1, 0, 0, "min_p,temperature", 0},
    {20, 1, 1, 0, 1, 0, 0, "top_k", 0},
    {0, 1, 0.95f, 0, 1, 0, 0, "top_p", 20},
    {20, 1, 0.95f, 0, 1, 0, 0, "top_k,top_p", 0},
    {50, 0.8f, 0.9f, 0.05f, 1.1f, 0.2f, 0.1f, "penalties,temperature,top_k,top_p,min_p", 0},
};

enum { SMALL_VOCAB = 32000, PROMPT = 128, GENERATED = 64 };

static float logit(size_t i, size_t n)
{
    if (n == SMALL_VOCAB) return ((float)(i * 17 % 997) - 498.0f) / 73.0f;
    return (float)((i * 1103515245u + 12345u) % 1048573u) / 65536.0f - 8.0f;
}

typedef struct sample_case {
    ox_sampler *sampler;
    float *logits;
    size_t n;
    int32_t id;
} sample_case;

static void sample_close(void *state)
{
    sample_case *s = state;
    ox_sampler_close(&s->sampler);
    ox_free(s);
}

static ox_status sample_run(ox_micro_case *c, ox_err *err)
{
    sample_case *s = c->state;
    return ox_sampler_pick(s->sampler, s->logits, s->n, PROMPT + GENERATED, &s->id, err);
}

static int descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Everything below the masked-th best becomes -inf. */
static ox_status mask(float *logits, size_t n, size_t keep, ox_err *err)
{
    float *sorted = ox_alloc(n * sizeof(*sorted));
    if (!sorted) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    memcpy(sorted, logits, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), descending);
    for (size_t i = 0; i < n; i++)
        if (logits[i] < sorted[keep - 1]) logits[i] = -INFINITY;
    ox_free(sorted);
    return OX_OK;
}

/* kind: row of chains; a logits */
ox_status ox_micro_sample(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const chain *k = &chains[row->kind];
    ox_sampler_options o;
    sample_case *s = c->state = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    c->close = sample_close;
    c->run = sample_run;
    s->n = (size_t)row->a;
    s->logits = ox_micro_floats(c, s->n, err);
    if (!s->logits) return OX_NO_MEMORY;
    for (size_t i = 0; i < s->n; i++)
        s->logits[i] = logit(i, s->n);
    if (k->masked) OX_TRY(mask(s->logits, s->n, k->masked, err));
    ox_sampler_options_init(&o);
    o.temperature = k->temperature;
    o.top_k = k->top_k;
    o.top_p = k->top_p;
    o.min_p = k->min_p;
    o.repetition_penalty = k->repetition;
    o.frequency_penalty = k->frequency;
    o.presence_penalty = k->presence;
    o.order = k->order;
    OX_TRY(ox_sampler_open(&s->sampler, &o, err));
    for (int32_t i = 0; i < PROMPT; i++)
        OX_TRY(ox_sampler_accept(s->sampler, i % 97, 0, err));
    for (int32_t i = 0; i < GENERATED; i++)
        OX_TRY(ox_sampler_accept(s->sampler, i % 31, 1, err));
    c->cost.unit = "token";
    c->cost.work = 1;
    c->cost.bytes = (double)s->n * 4;
    return sample_run(c, err);
}

/* ---- full sorts ---- */

typedef struct sorted_case {
    const float *logits;
    float *list;
    size_t n, kept;
    bool top_k, top_p;
} sorted_case;

static ox_status sorted_run(ox_micro_case *c, ox_err *err)
{
    sorted_case *s = c->state;
    (void)err;
    memcpy(s->list, s->logits, s->n * sizeof(*s->list));
    s->kept = s->n;
    for (int pass = 0; pass < 2; pass++) {
        if (pass ? !s->top_p : !s->top_k) continue;
        double sum = 0, mass = 0;
        qsort(s->list, s->n, sizeof(*s->list), descending);
        if (!pass) {
            s->kept = 20;
            continue;
        }
        for (size_t i = 0; i < s->kept; i++)
            sum += exp((double)(s->list[i] - s->list[0]));
        for (size_t i = 0; i < s->kept && mass < 0.95 * sum; i++)
            mass += exp((double)(s->list[i] - s->list[0]));
    }
    return OX_OK;
}

/* kind: 1 top-k, 2 top-p over masked logits, 3 both, each with a sort of all a logits */
ox_status ox_micro_sorted(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    sorted_case *s = c->state = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    c->close = ox_free;
    c->run = sorted_run;
    s->n = (size_t)row->a;
    s->top_k = row->kind & 1;
    s->top_p = row->kind & 2;
    float *logits = ox_micro_floats(c, s->n, err);
    s->logits = logits;
    s->list = ox_micro_floats(c, s->n, err);
    if (!s->logits || !s->list) return OX_NO_MEMORY;
    for (size_t i = 0; i < s->n; i++)
        logits[i] = logit(i, s->n);
    if (row->kind == 2) OX_TRY(mask(logits, s->n, 20, err));
    c->cost.unit = "token";
    c->cost.work = 1;
    c->cost.bytes = (double)s->n * 4;
    return OX_OK;
}

/* ---- what the sampler's kernels do to a vocabulary ---- */

/* Room for results of cut and draw; the logits lie behind it. */
typedef struct pool_out {
    double sum;
    size_t n;
} pool_out;

/* kind: 0 cut at the upper fifth, 1 mass, 2 draw; a logits */
ox_status ox_micro_pool(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t n = (size_t)row->a;
    pool_out *out = ox_micro_bytes(c, sizeof(*out), err);
    float *x = ox_micro_floats(c, n, err), *values = ox_micro_floats(c, n + OX_CUT_ROOM, err);
    int32_t *ids = ox_micro_bytes(c, (n + OX_CUT_ROOM) * sizeof(*ids), err);
    micro_args a = {0};
    if (!out || !x || !values || !ids) return OX_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        x[i] = logit(i, n);
    c->cost.unit = "byte";
    c->cost.work = c->cost.bytes = (double)n * 4;
    if (row->kind == 0) {
        a.cut = (ox_cut_args){x, NULL, 4.0f, NAN, values, ids, &out->n, n};
        return MICRO_LAUNCH(c, cut, &a, 1, 1, err);
    }
    if (row->kind == 1) {
        a.mass = (ox_mass_args){x, 8.0f, 1.0f, &out->sum, n};
        return MICRO_LAUNCH(c, mass, &a, 1, 1, err);
    }
    a.draw = (ox_draw_args){
        .x = x, .temperature = 1, .seed = 1, .position = 5, .chosen = &out->n, .n = n};
    return MICRO_LAUNCH(c, draw, &a, 1, 1, err);
}

/* ---- pages ---- */

static void pool_close(void *state)
{
    ox_kv_pool *pool = state;
    ox_kv_pool_close(&pool);
}

/* A sequence grows by 256 positions one at a time and goes. */
static ox_status pages_run(ox_micro_case *c, ox_err *err)
{
    ox_kv_seq seq;
    ox_status st = OX_OK;
    ox_kv_seq_open(&seq, c->state);
    for (size_t i = 1; !st && i <= (size_t)c->cost.work; i++) {
        st = ox_kv_seq_reserve(&seq, i, err);
        if (!st) seq.n_positions = i;
    }
    ox_kv_seq_close(&seq);
    return st;
}

ox_status ox_micro_kv_pages(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_cache cache = {
        .n_kv_heads = 1, .head_size = 16, .v_head_size = 16, .dtype = OX_DTYPE_F32};
    ox_kv_pool *pool = NULL;
    OX_TRY(ox_kv_pool_open(&pool, &cache, 1, OX_DTYPE_F32, 0, err));
    c->state = pool;
    c->close = pool_close;
    c->run = pages_run;
    c->cost.unit = "position";
    c->cost.work = row->a;
    return pages_run(c, err);
}
