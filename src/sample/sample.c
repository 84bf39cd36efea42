/* sample.c - logits to a token: the steps of samplers.def over a pool of candidates in the chosen
 * order, then the best or a Gumbel draw. A greedy choice runs only the steps that change logits;
 * without any it is one pass over the logits.
 *
 * Read next: pool.h, rules.c, cuts.c. */
#include "base/mem.h"
#include "base/str.h"
#include "sample/sample_internal.h"

#include <math.h>
#include <string.h>

typedef enum step_kind { KIND_RULE, KIND_LOGITS, KIND_CUT } step_kind;

typedef struct sampler_row {
    const char *name;
    ox_step_fn *fn;
    step_kind kind;
} sampler_row;

static const sampler_row rows[] = {
#define OX_SAMPLER(name, fn, kind, options) {name, ox_step_##fn, KIND_##kind},
#include "sample/samplers.def"
#undef OX_SAMPLER
};

const char *ox_sampler_step(size_t i)
{
    return i < OX_COUNT(rows) ? rows[i].name : NULL;
}

static ox_status unknown_step(const char *name, int n, ox_err *err)
{
    ox_buf names = {0};
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        ox_buf_printf(&names, "%s%s", i ? ", " : "", rows[i].name);
    ox_fail_at(err, __func__, OX_BAD_ARGUMENT, "sampler '%.*s' is not known; expected some of %s",
               n, name, names.p ? names.p : "");
    ox_buf_deinit(&names);
    return OX_BAD_ARGUMENT;
}

static ox_status read_order(ox_sampler *s, const char *order, ox_err *err)
{
    bool listed[OX_COUNT(rows)] = {false};
    enum { MOST = 4 * OX_COUNT(rows) };
    for (const char *at = order; at && *at;) {
        const size_t n = strcspn(at, ",;");
        size_t i = 0;
        while (i < OX_COUNT(rows) && !ox_str_eq((ox_str){at, n}, ox_str_of(rows[i].name)))
            i++;
        if (i == OX_COUNT(rows)) return unknown_step(at, (int)(n < 60 ? n : 60), err);
        if (s->order.n == MOST)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "more than %d steps of sampling", MOST);
        listed[i] = true;
        if (!ox_vec_push(&s->order, (uint8_t)i))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
        at += n + (at[n] != 0);
    }
    size_t n_first = 0; /* rules that the list leaves out come before it */
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        if (order && (rows[i].kind != KIND_RULE || listed[i])) continue;
        if (!ox_vec_push(&s->order, (uint8_t)i))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
        memmove(s->order.p + n_first + 1, s->order.p + n_first, s->order.n - 1 - n_first);
        s->order.p[n_first++] = (uint8_t)i;
    }
    return OX_OK;
}

static bool copy_ids(ox_sample_ids *to, const int32_t *ids, size_t n)
{
    if (!ox_vec_reserve(to, to->n + n)) return false;
    if (n) memcpy(to->p + to->n, ids, n * sizeof(*ids));
    to->n += n;
    return true;
}

static ox_status copy_lists(ox_sampler *s, const ox_sampler_options *o, ox_err *err)
{
    bool ok = copy_ids(&s->suppress, o->suppress, o->n_suppress) &&
              copy_ids(&s->begin_suppress, o->begin_suppress, o->n_begin_suppress) &&
              copy_ids(&s->end_ids, o->end_ids, o->n_end_ids) &&
              copy_ids(&s->breakers, o->dry_breakers, o->n_dry_breakers);
    for (size_t i = 0; i < o->n_bias; i++) {
        if (!isfinite(o->bias[i].bias) && !(o->bias[i].bias < 0))
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "bias of token %d must be finite or -inf, found %g", o->bias[i].id,
                           (double)o->bias[i].bias);
        ok = ok && ox_vec_push(&s->bias, o->bias[i]);
    }
    for (size_t i = 0; i < o->n_forced; i++)
        ok = ok && ox_vec_push(&s->forced, o->forced[i]);
    for (size_t i = 0; i < o->n_bad_words; i++) {
        const ox_token_list w = o->bad_words[i];
        if (!w.n)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "bad word %zu has no tokens; expected 1 or more",
                           i);
        ok = ok && copy_ids(&s->words, w.ids, w.n) && ox_vec_push(&s->word_ends, s->words.n);
    }
    return ok ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
}

static void forget_pointers(ox_sampler_options *o)
{
    o->bias = NULL;
    o->order = NULL;
    o->suppress = o->end_ids = o->begin_suppress = o->dry_breakers = NULL;
    o->bad_words = NULL;
    o->forced = NULL;
}

ox_status ox_sampler_open(ox_sampler **out, const ox_sampler_options *options, ox_err *err)
{
    ox_status st = OX_OK;
    ox_sampler_options o;

    *out = NULL;
    ox_sampler_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    OX_TRY(ox_sampler_check(&o, err));
    ox_sampler *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
    s->o = o;
    forget_pointers(&s->o);
    s->mu = 2 * o.mirostat_tau;
    s->picked = -1;
    s->history.window = (size_t)o.penalty_last_n;
    OX_TRY_GOTO(ox_pool_kernels_pick(&s->pool.k, err));
    OX_TRY_GOTO(copy_lists(s, &o, err));
    OX_TRY_GOTO(read_order(s, o.order, err));
    *out = s;
    return OX_OK;
fail:
    ox_sampler_close(&s);
    return st;
}

void ox_sampler_close(ox_sampler **sampler)
{
    ox_sampler *s = *sampler;
    if (!s) return;
    ox_vec_deinit(&s->bias);
    ox_vec_deinit(&s->forced);
    ox_vec_deinit(&s->suppress);
    ox_vec_deinit(&s->begin_suppress);
    ox_vec_deinit(&s->end_ids);
    ox_vec_deinit(&s->breakers);
    ox_vec_deinit(&s->words);
    ox_vec_deinit(&s->word_ends);
    ox_vec_deinit(&s->order);
    ox_vec_deinit(&s->scratch);
    ox_history_deinit(&s->history);
    ox_pool_deinit(&s->pool);
    ox_free(s);
    *sampler = NULL;
}

#define COPY_LIST(to, from)                                                                        \
    (ox_vec_reserve(&(to), (from).n) &&                                                            \
     ((from).n ? (memcpy((to).p, (from).p, (from).n * sizeof(*(from).p)), true) : true) &&         \
     ((to).n = (from).n, true))

ox_status ox_sampler_fork(ox_sampler **out, const ox_sampler *s, ox_err *err)
{
    *out = NULL;
    ox_sampler *f = ox_calloc(1, sizeof(*f));
    if (!f) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
    f->o = s->o;
    f->mu = s->mu;
    f->mu_next = s->mu_next;
    f->picked = s->picked;
    f->pool.k = s->pool.k;
    f->history.n_new = s->history.n_new;
    f->history.window = s->history.window;
    if (COPY_LIST(f->bias, s->bias) && COPY_LIST(f->forced, s->forced) &&
        COPY_LIST(f->suppress, s->suppress) && COPY_LIST(f->begin_suppress, s->begin_suppress) &&
        COPY_LIST(f->end_ids, s->end_ids) && COPY_LIST(f->breakers, s->breakers) &&
        COPY_LIST(f->words, s->words) && COPY_LIST(f->word_ends, s->word_ends) &&
        COPY_LIST(f->order, s->order) && COPY_LIST(f->history.tokens, s->history.tokens) &&
        COPY_LIST(f->history.seen, s->history.seen) &&
        COPY_LIST(f->history.slots, s->history.slots)) {
        *out = f;
        return OX_OK;
    }
    ox_sampler_close(&f);
    return OX_FAIL(err, OX_NO_MEMORY, "no memory for a sampler");
}

ox_status ox_sampler_accept(ox_sampler *s, int32_t id, int32_t is_new, ox_err *err)
{
    const float mu = is_new && id == s->picked ? s->mu_next : s->mu;
    if (!ox_history_push(&s->history, id, is_new != 0, mu))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for the token history");
    s->mu = mu;
    s->picked = -1;
    return OX_OK;
}

void ox_sampler_rewind(ox_sampler *s, size_t n_tokens)
{
    while (s->history.tokens.n > n_tokens)
        ox_history_pop(&s->history);
    const size_t n = s->history.tokens.n;
    s->mu = n ? s->history.tokens.p[n - 1].mu : 2 * s->o.mirostat_tau;
    s->picked = -1;
}

void ox_sampler_guide(ox_sampler *s, const float *logits, size_t n)
{
    s->guide = logits;
    s->n_guide = n;
}

ox_status ox_sampler_change(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                            float *out, ox_err *err)
{
    ox_status st = OX_OK;
    if (!n || n > INT32_MAX) return OX_FAIL(err, OX_BAD_ARGUMENT, "%zu logits to change", n);
    s->position = position;
    s->n_logits = n;
    s->no_memory = false;
    ox_pool_start(&s->pool, logits, n);
    for (size_t i = 0; !st && i < s->order.n; i++)
        if (rows[s->order.p[i]].kind != KIND_CUT) st = rows[s->order.p[i]].fn(s, err);
    s->guide = NULL;
    if (st) return st;
    if (s->no_memory) return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu candidates", n);
    memcpy(out, s->pool.x, n * sizeof(*out)); /* nothing was dropped: the pool is dense */
    return OX_OK;
}

/* Runs the steps; afterwards the pool holds what may be chosen, at least one candidate. */
static ox_status run_steps(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                           ox_err *err)
{
    const bool greedy = s->o.temperature == 0.0f;
    ox_status st = OX_OK;
    if (!n || n > INT32_MAX) return OX_FAIL(err, OX_BAD_ARGUMENT, "%zu logits to choose from", n);
    s->position = position;
    s->n_logits = n;
    s->no_memory = false;
    s->mirostat_mass = 0;
    ox_pool_start(&s->pool, logits, n);
    for (size_t i = 0; !st && i < s->order.n; i++) {
        const sampler_row *r = &rows[s->order.p[i]];
        if (!greedy || r->kind != KIND_CUT) st = r->fn(s, err);
    }
    s->guide = NULL;
    if (st) return st;
    if (s->no_memory) return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu candidates", n);
    const float top = ox_pool_top(&s->pool);
    if (s->pool.has_nan)
        return OX_FAIL(err, OX_FAILED,
                       "the model's logits hold NaN at position %llu: its weights are damaged or "
                       "too large for --numerics; try --numerics exact",
                       (unsigned long long)position);
    if (top == -INFINITY)
        return OX_FAIL(err, OX_FAILED,
                       "no token is left at position %llu: the logits are all -inf, or bias, bad "
                       "words, n-grams and suppressed ids exclude every one",
                       (unsigned long long)position);
    return OX_OK;
}

static size_t draw(const ox_sampler *s)
{
    const ox_pool *p = &s->pool;
    size_t chosen;
    const ox_draw_args a = {.x = p->x,
                            .ids = p->ids,
                            .temperature = p->temperature,
                            .seed = s->o.seed,
                            .position = s->position,
                            .first = p->i_top,
                            .chosen = &chosen,
                            .n = p->n};
    p->k.draw(&a);
    return chosen;
}

ox_status ox_sampler_pick(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                          int32_t *id, ox_err *err)
{
    OX_TRY(run_steps(s, logits, n, position, err));
    ox_pool *p = &s->pool;
    const size_t i = s->o.temperature == 0.0f || p->n == 1 ? p->i_top : draw(s);
    *id = ox_pool_id(p, i);
    if (s->mirostat_mass > 0) {
        const double surprise = -log2(ox_pool_weight(p, i) / s->mirostat_mass);
        s->mu_next = (float)((double)s->mu -
                             (double)s->o.mirostat_eta * (surprise - (double)s->o.mirostat_tau));
        s->picked = *id;
    }
    return OX_OK;
}

ox_status ox_sampler_kept(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                          int32_t *ids, float *probs, size_t room, size_t *n_kept, ox_err *err)
{
    OX_TRY(run_steps(s, logits, n, position, err));
    ox_pool *p = &s->pool;
    double sum = 0;
    if (!ox_pool_best(p, s->o.temperature == 0.0f ? 1 : p->n))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu candidates", n);
    ox_pool_top(p);
    for (size_t i = 0; i < p->n; i++)
        sum += ox_pool_weight(p, i);
    for (size_t i = 0; i < p->n && i < room; i++) {
        ids[i] = ox_pool_id(p, i);
        probs[i] = (float)(ox_pool_weight(p, i) / sum);
    }
    *n_kept = p->n;
    return OX_OK;
}

ox_status ox_logprobs(const float *logits, size_t n, int32_t chosen, size_t k, float *chosen_lp,
                      int32_t *ids, float *values, float *margin, ox_err *err)
{
    if (!n || chosen < 0 || (size_t)chosen >= n)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "token %d is outside the %zu logits", chosen, n);
    const size_t want = k < 2 ? 2 : k, have = want < n ? want : n;
    ox_pool p = {0};
    OX_TRY(ox_pool_kernels_pick(&p.k, err));
    int32_t *best = ox_alloc(have * sizeof(*best));
    float *v = ox_alloc(have * sizeof(*v));
    if (!best || !v) {
        ox_free(best);
        ox_free(v);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu log-probabilities", have);
    }
    const ox_select_args a = {
        .x = logits, .ids = best, .values = v, .rows = 1, .dim = n, .k = have, .ldx = n};
    p.k.select(&a, 0, 1); /* NaN comes last, so it is seen in the sum only */
    double sum = 0;
    const ox_mass_args mass = {logits, v[0], 1.0f, &sum, n};
    p.k.mass(&mass);
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
