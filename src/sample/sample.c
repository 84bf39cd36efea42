/* sample.c - logits to a token: a list of candidates goes through the rows of samplers.def in the
 * chosen order, then greedy or Gumbel choice.
 *
 * Candidates keep (id, logit). Truncating steps need them sorted: they are sorted once, descending,
 * ties to the lower id (top_k sorts only the best k). Sources: repetition penalty: Hugging Face
 * RepetitionPenaltyLogitsProcessor (positive logits divided, negative multiplied); frequency and
 * presence: OpenAI's API reference (logit - count*frequency - [count>0]*presence over new tokens);
 * top-p: smallest prefix whose probability reaches p; min-p: probability >= p * the highest one. */
#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"
#include "base/vec.h"
#include "kernel/draw/philox.h"
#include "kernel/select/select.h"
#include "oxgen/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    int32_t id;
    float logit;
} candidate;

typedef struct accepted {
    int32_t id;
    bool is_new;
} accepted;

struct ox_sampler {
    ox_sampler_options o;
    OX_VEC(ox_logit_bias) bias;
    OX_VEC(int32_t) suppress;
    OX_VEC(accepted) history;
    OX_VEC(candidate) list;
    OX_VEC(int32_t) counts; /* scratch, one per id: new-token counts, -1 = only in the prompt */
    bool sorted;
    ox_select_fn *select;  /* row of kernel/select for this machine; all rows agree */
    OX_VEC(uint8_t) order; /* rows of samplers.def */
};

typedef void step_fn(ox_sampler *s);

static void penalties(ox_sampler *s)
{
    const ox_sampler_options *o = &s->o;
    if (o->repetition_penalty == 1.0f && o->frequency_penalty == 0.0f &&
        o->presence_penalty == 0.0f)
        return;
    memset(s->counts.p, 0, s->counts.n * sizeof(*s->counts.p));
    for (size_t i = 0; i < s->history.n; i++) {
        const accepted a = s->history.p[i];
        if (a.id < 0 || (size_t)a.id >= s->counts.n) continue;
        int32_t *c = &s->counts.p[a.id];
        if (a.is_new)
            *c = (*c < 0 ? 0 : *c) + 1;
        else if (!*c)
            *c = -1;
    }
    for (size_t i = 0; i < s->list.n; i++) {
        candidate *c = &s->list.p[i];
        const int32_t count = s->counts.p[c->id];
        if (!count) continue;
        c->logit =
            c->logit > 0 ? c->logit / o->repetition_penalty : c->logit * o->repetition_penalty;
        if (count > 0) c->logit -= (float)count * o->frequency_penalty + o->presence_penalty;
    }
    s->sorted = false;
}

static void bias(ox_sampler *s)
{
    for (size_t i = 0; i < s->list.n; i++)
        for (size_t k = 0; k < s->bias.n; k++)
            if (s->bias.p[k].id == s->list.p[i].id) s->list.p[i].logit += s->bias.p[k].bias;
    if (s->bias.n) s->sorted = false;
}

static int by_logit(const void *pa, const void *pb)
{
    const candidate *a = pa, *b = pb;
    if (a->logit != b->logit) return a->logit > b->logit ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static void sort(ox_sampler *s)
{
    if (!s->sorted) qsort(s->list.p, s->list.n, sizeof(*s->list.p), by_logit);
    s->sorted = true;
}

/* Lets the worst of heap[0..n), which is at i, sink to where its children are better. */
static void sift(candidate *heap, size_t n, size_t i)
{
    for (size_t child = 2 * i + 1; child < n; i = child, child = 2 * i + 1) {
        if (child + 1 < n && by_logit(&heap[child + 1], &heap[child]) > 0) child++;
        if (by_logit(&heap[child], &heap[i]) <= 0) return;
        const candidate t = heap[i];
        heap[i] = heap[child];
        heap[child] = t;
    }
}

/* The k best come first, as a heap whose root is the worst of them. */
static void select_best(candidate *list, size_t n, size_t k)
{
    for (size_t i = k / 2; i-- > 0;)
        sift(list, k, i);
    for (size_t i = k; i < n; i++)
        if (by_logit(&list[i], &list[0]) < 0) {
            list[0] = list[i];
            sift(list, k, 0);
        }
}

static void top_k(ox_sampler *s)
{
    if (s->o.top_k <= 0 || (size_t)s->o.top_k >= s->list.n) return;
    if (!s->sorted) select_best(s->list.p, s->list.n, (size_t)s->o.top_k);
    s->list.n = (size_t)s->o.top_k;
    sort(s);
}

/* Sum of e^(logit - highest) over the sorted list. */
static double mass(const ox_sampler *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->list.n; i++)
        sum += exp((double)s->list.p[i].logit - (double)s->list.p[0].logit);
    return sum;
}

static void top_p(ox_sampler *s)
{
    if (s->o.top_p <= 0.0f || s->o.top_p >= 1.0f || !s->list.n) return;
    sort(s);
    const double goal = (double)s->o.top_p * mass(s);
    double sum = 0;
    size_t n = 0;
    while (n < s->list.n && sum < goal)
        sum += exp((double)s->list.p[n++].logit - (double)s->list.p[0].logit);
    s->list.n = n ? n : 1;
}

static void min_p(ox_sampler *s)
{
    if (s->o.min_p <= 0.0f || !s->list.n) return;
    sort(s);
    const double floor = (double)s->list.p[0].logit + log((double)s->o.min_p);
    size_t n = 1;
    while (n < s->list.n && (double)s->list.p[n].logit >= floor)
        n++;
    s->list.n = n;
}

static void temperature(ox_sampler *s)
{
    if (s->o.temperature <= 0.0f) return;
    for (size_t i = 0; i < s->list.n; i++)
        s->list.p[i].logit /= s->o.temperature;
}

typedef struct sampler_row {
    const char *name;
    step_fn *fn;
} sampler_row;

static const sampler_row rows[] = {
#define OX_SAMPLER(name, fn) {name, fn},
#include "sample/samplers.def"
#undef OX_SAMPLER
};

void ox_sampler_options_init(ox_sampler_options *o)
{
    *o = (ox_sampler_options){.struct_size = sizeof(*o), .top_p = 1.0f, .repetition_penalty = 1.0f};
}

static ox_status read_order(ox_sampler *s, const char *order, ox_err *err)
{
    for (size_t i = 0; !order && i < OX_COUNT(rows); i++)
        if (!ox_vec_push(&s->order, (uint8_t)i))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
    while (order && *order) {
        const size_t n = strcspn(order, ",;");
        size_t i = 0;
        while (i < OX_COUNT(rows) && !ox_str_eq((ox_str){order, n}, ox_str_of(rows[i].name)))
            i++;
        if (i == OX_COUNT(rows)) {
            ox_buf names = {0};
            for (i = 0; i < OX_COUNT(rows); i++)
                ox_buf_printf(&names, "%s%s", i ? ", " : "", rows[i].name);
            ox_fail_at(err, __func__, OX_BAD_ARGUMENT,
                       "sampler '%.*s' is not known; expected some of %s", (int)n, order,
                       names.p ? names.p : "");
            ox_buf_deinit(&names);
            return OX_BAD_ARGUMENT;
        }
        if (!ox_vec_push(&s->order, (uint8_t)i))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
        order += n + (order[n] != 0);
    }
    return OX_OK;
}

static ox_status check_options(const ox_sampler_options *o, ox_err *err)
{
    if (!(o->temperature >= 0.0f) || !isfinite(o->temperature))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "temperature must be >= 0, found %g",
                       (double)o->temperature);
    if (!(o->top_p >= 0.0f && o->top_p <= 1.0f))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "top-p must lie in 0..1, found %g", (double)o->top_p);
    if (!(o->min_p >= 0.0f && o->min_p <= 1.0f))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "min-p must lie in 0..1, found %g", (double)o->min_p);
    if (o->top_k < 0)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "top-k must be >= 0, found %d", o->top_k);
    if (!(o->repetition_penalty > 0.0f) || !isfinite(o->repetition_penalty))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "repetition penalty must be > 0, found %g",
                       (double)o->repetition_penalty);
    if (!isfinite(o->frequency_penalty) || !isfinite(o->presence_penalty))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "frequency and presence penalties must be finite");
    return OX_OK;
}

static ox_status pick_select(ox_sampler *s, ox_err *err)
{
    ox_machine m = {0};
    OX_TRY(ox_cpu_features(&m.cpu_features, err));
    const ox_select_args a = {.rows = 1, .k = 1};
    s->select = (ox_select_fn *)ox_kernel_pick(ox_select_rows, OX_DEVICE_CPU, &m, &a)->fn;
    return OX_OK;
}

ox_status ox_sampler_open(ox_sampler **out, const ox_sampler_options *o, ox_err *err)
{
    ox_status st = OX_OK;
    ox_sampler_options defaults;

    *out = NULL;
    ox_sampler_options_init(&defaults);
    if (!o) o = &defaults;
    OX_TRY(check_options(o, err));
    ox_sampler *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
    s->o = *o;
    OX_TRY_GOTO(pick_select(s, err));
    for (size_t i = 0; i < o->n_bias; i++)
        if (!ox_vec_push(&s->bias, o->bias[i])) goto no_memory;
    for (size_t i = 0; i < o->n_suppress; i++)
        if (!ox_vec_push(&s->suppress, o->suppress[i])) goto no_memory;
    OX_TRY_GOTO(read_order(s, o->order, err));
    s->o.bias = NULL;
    s->o.suppress = NULL;
    s->o.order = NULL;
    *out = s;
    return OX_OK;
no_memory:
    st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
fail:
    ox_sampler_close(&s);
    return st;
}

void ox_sampler_close(ox_sampler **sampler)
{
    ox_sampler *s = *sampler;
    if (!s) return;
    ox_vec_deinit(&s->bias);
    ox_vec_deinit(&s->suppress);
    ox_vec_deinit(&s->history);
    ox_vec_deinit(&s->list);
    ox_vec_deinit(&s->counts);
    ox_vec_deinit(&s->order);
    ox_free(s);
    *sampler = NULL;
}

ox_status ox_sampler_accept(ox_sampler *s, int32_t id, int32_t is_new, ox_err *err)
{
    if (!ox_vec_push(&s->history, (accepted){id, is_new != 0}))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for the token history");
    return OX_OK;
}

void ox_sampler_rewind(ox_sampler *s, size_t n_tokens)
{
    if (n_tokens < s->history.n) s->history.n = n_tokens;
}

static bool is_plain_greedy(const ox_sampler *s)
{
    const ox_sampler_options *o = &s->o;
    return o->temperature == 0.0f && o->repetition_penalty == 1.0f &&
           o->frequency_penalty == 0.0f && o->presence_penalty == 0.0f && !s->bias.n &&
           !s->suppress.n;
}

static bool has_nan(const float *logits, size_t n)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= logits[i] != logits[i];
    return any != 0;
}

/* The best of logits, ties to the lower id; none is NaN. */
static int32_t best_of(const ox_sampler *s, const float *logits, size_t n)
{
    int32_t id;
    float value;
    const ox_select_args a = {
        .x = logits, .ids = &id, .values = &value, .rows = 1, .dim = n, .k = 1, .ldx = n};
    s->select(&a, 0, 1);
    return id;
}

static bool is_suppressed(const ox_sampler *s, int32_t id)
{
    for (size_t i = 0; i < s->suppress.n; i++)
        if (s->suppress.p[i] == id) return true;
    return false;
}

/* The candidate with the highest logit + noise; noise = Gumbel when sampling, 0 when greedy. */
static int32_t choose(const ox_sampler *s, uint64_t position)
{
    int32_t best = s->list.p[0].id;
    double highest = -INFINITY;
    for (size_t i = 0; i < s->list.n; i++) {
        const candidate c = s->list.p[i];
        double v = (double)c.logit;
        if (s->o.temperature > 0.0f) v += ox_gumbel(s->o.seed, position, (uint32_t)c.id);
        if (v > highest || (v == highest && c.id < best)) {
            highest = v;
            best = c.id;
        }
    }
    return best;
}

ox_status ox_sampler_pick(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                          int32_t *id, ox_err *err)
{
    if (!n || n > INT32_MAX) return OX_FAIL(err, OX_BAD_ARGUMENT, "%zu logits to choose from", n);
    if (has_nan(logits, n))
        return OX_FAIL(err, OX_FAILED,
                       "the model's logits hold NaN at position %llu: its weights are damaged or "
                       "too large for --numerics; try --numerics exact",
                       (unsigned long long)position);
    if (is_plain_greedy(s)) {
        *id = best_of(s, logits, n);
        return OX_OK;
    }
    if (!ox_vec_reserve(&s->list, n) || !ox_vec_reserve(&s->counts, n))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu candidates", n);
    s->counts.n = n;
    s->list.n = 0;
    for (size_t i = 0; i < n; i++)
        if (logits[i] == logits[i] && !is_suppressed(s, (int32_t)i))
            s->list.p[s->list.n++] = (candidate){(int32_t)i, logits[i]};
    s->sorted = false;
    if (!s->list.n) {
        *id = 0;
        return OX_OK;
    }
    for (size_t i = 0; i < s->order.n; i++)
        rows[s->order.p[i]].fn(s);
    *id = choose(s, position);
    return OX_OK;
}

ox_status ox_logprobs(const float *logits, size_t n, int32_t chosen, size_t k, float *chosen_lp,
                      int32_t *ids, float *values, float *margin, ox_err *err)
{
    if (!n || chosen < 0 || (size_t)chosen >= n)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "token %d is outside the %zu logits", chosen, n);
    const size_t want = k < 2 ? 2 : k, have = want < n ? want : n;
    int32_t *best = ox_alloc(have * sizeof(*best));
    float *v = ox_alloc(have * sizeof(*v));
    if (!best || !v) {
        ox_free(best);
        ox_free(v);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu log-probabilities", have);
    }
    const ox_select_args a = {
        .x = logits, .ids = best, .values = v, .rows = 1, .dim = n, .k = have, .ldx = n};
    ox_select_ref(&a, 0, 1);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - (double)v[0]);
    const double norm = (double)v[0] + log(sum);
    if (chosen_lp) *chosen_lp = (float)((double)logits[chosen] - norm);
    for (size_t i = 0; i < k; i++) {
        ids[i] = i < have ? best[i] : -1;
        values[i] = i < have ? (float)((double)v[i] - norm) : -INFINITY;
    }
    if (margin) *margin = have > 1 ? v[0] - v[1] : INFINITY;
    ox_free(best);
    ox_free(v);
    return OX_OK;
}
