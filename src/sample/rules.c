/* rules.c - steps that change or forbid logits whatever the temperature.
 *
 * guidance: Ho, Salimans, "Classifier-free diffusion guidance", 2022; Sanchez et al., "Stay on
 * topic with classifier-free guidance", 2023: u + scale * (c - u) on log-probabilities. penalties:
 * repetition: Keskar et al., "CTRL", 2019, with Hugging Face's rule for negative logits (positive
 * ones are divided, negative ones multiplied, once per token that occurred); frequency and
 * presence: OpenAI's API reference, over the answer's tokens: logit - count * frequency - (count >
 * 0) * presence. dry: p-e-w, "DRY: a modern repetition penalty", 2024 (text-generation-webui
 * #5677): a token that would make a repetition of n tokens n + 1 long loses multiplier * base^(n -
 * allowed), n >= allowed; repetitions do not reach across a breaker. no_repeat_ngram, bad_words,
 * min_length, suppress, forced: Hugging Face's processors of like names. */
#include "sample/sample_internal.h"

#include <float.h>
#include <math.h>

static const ox_accepted *tokens(const ox_sampler *s)
{
    return s->history.tokens.p;
}

/* Every step that edits begins so; false ends the step. */
static float *edit(ox_sampler *s)
{
    float *x = ox_pool_edit(&s->pool);
    if (!x) s->no_memory = true;
    return x;
}

static void forbid(ox_sampler *s, float *x, int32_t id)
{
    const size_t i = ox_pool_find(&s->pool, id);
    if (i != SIZE_MAX) x[i] = -INFINITY;
}

static void forbid_all(ox_sampler *s, const ox_sample_ids *ids)
{
    float *x = edit(s);
    for (size_t i = 0; x && i < ids->n; i++)
        forbid(s, x, ids->p[i]);
}

/* log of the sum of e^x */
static double log_sum(const float *x, size_t n, bool *bad)
{
    float top = -INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] < INFINITY)) *bad = true; /* NaN too */
        if (x[i] > top) top = x[i];
    }
    if (top == -INFINITY) *bad = true;
    for (size_t i = 0; !*bad && i < n; i++)
        sum += exp((double)x[i] - (double)top);
    return (double)top + log(sum);
}

ox_status ox_step_guidance(ox_sampler *s, ox_err *err)
{
    const double scale = (double)s->o.guidance_scale;
    bool bad = false;
    if (s->o.guidance_scale == 1.0f) return OX_OK;
    if (!s->guide)
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "guidance-scale %g needs logits without the condition; give them with "
                       "ox_sampler_guide before each choice",
                       scale);
    if (s->n_guide != s->n_logits)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "guidance: %zu logits, expected %zu as the model's",
                       s->n_guide, s->n_logits);
    float *x = edit(s);
    if (!x) return OX_OK;
    const double c = log_sum(x, s->pool.n, &bad), u = log_sum(s->guide, s->n_guide, &bad);
    if (bad)
        return OX_FAIL(err, OX_FAILED, "guidance: logits hold NaN or infinity at position %llu",
                       (unsigned long long)s->position);
    for (size_t i = 0; i < s->pool.n; i++) {
        const double uncond = (double)s->guide[ox_pool_id(&s->pool, i)] - u;
        const double v = uncond + scale * ((double)x[i] - c - uncond);
        x[i] = v == v ? (float)v : -INFINITY; /* -inf on both sides */
    }
    return OX_OK;
}

ox_status ox_step_bias(ox_sampler *s, ox_err *err)
{
    (void)err;
    if (!s->bias.n) return OX_OK;
    float *x = edit(s);
    for (size_t k = 0; x && k < s->bias.n; k++) {
        const size_t i = ox_pool_find(&s->pool, s->bias.p[k].id);
        if (i != SIZE_MAX) x[i] += s->bias.p[k].bias;
    }
    return OX_OK;
}

ox_status ox_step_penalties(ox_sampler *s, ox_err *err)
{
    const ox_sampler_options *o = &s->o;
    (void)err;
    if (o->repetition_penalty == 1.0f && o->frequency_penalty == 0.0f &&
        o->presence_penalty == 0.0f)
        return OX_OK;
    float *x = edit(s);
    for (size_t k = 0; x && k < s->history.seen.n; k++) {
        const ox_seen *e = &s->history.seen.p[k];
        const size_t i = e->n_all > 0 ? ox_pool_find(&s->pool, e->id) : SIZE_MAX;
        if (i == SIZE_MAX) continue;
        x[i] = x[i] > 0 ? x[i] / o->repetition_penalty : x[i] * o->repetition_penalty;
        if (e->n_new > 0) x[i] -= (float)e->n_new * o->frequency_penalty + o->presence_penalty;
    }
    return OX_OK;
}

static bool is_breaker(const ox_sampler *s, int32_t id)
{
    for (size_t i = 0; i < s->breakers.n; i++)
        if (s->breakers.p[i] == id) return true;
    return false;
}

/* z[k] = how many tokens before place n - k equal those at the end, read backwards (Z algorithm):
 * t is the window's last token, t[-i] the i-th before it. */
static void match_lengths(const ox_accepted *t, size_t n, int32_t *z)
{
    size_t left = 0, right = 0; /* the match that reaches farthest is [left, right) */
    for (size_t k = 1; k < n; k++) {
        size_t m = 0;
        if (k < right) {
            const size_t known = (size_t)z[k - left];
            m = known < right - k ? known : right - k;
        }
        while (k + m < n && t[-(ptrdiff_t)m].id == t[-(ptrdiff_t)(k + m)].id)
            m++;
        z[k] = (int32_t)m;
        if (k + m > right) {
            left = k;
            right = k + m;
        }
    }
}

ox_status ox_step_dry(ox_sampler *s, ox_err *err)
{
    const ox_sampler_options *o = &s->o;
    const size_t allowed = (size_t)o->dry_allowed_length;
    size_t n = s->history.tokens.n, limit = 0;
    (void)err;
    if (o->dry_multiplier == 0.0f) return OX_OK;
    if (o->dry_last_n >= 0 && (size_t)o->dry_last_n < n) n = (size_t)o->dry_last_n;
    if (n <= allowed) return OX_OK;
    const ox_accepted *last = tokens(s) + s->history.tokens.n - 1;
    while (limit < n && !is_breaker(s, last[-(ptrdiff_t)limit].id))
        limit++;
    if (limit < allowed) return OX_OK;
    float *x = edit(s);
    if (!x || !ox_vec_reserve(&s->scratch, n)) {
        s->no_memory = true;
        return OX_OK;
    }
    int32_t *z = s->scratch.p;
    match_lengths(last, n, z);
    for (size_t k = 1; k < n; k++) {
        const size_t m = (size_t)z[k] < limit ? (size_t)z[k] : limit;
        if (m < allowed) continue;
        ox_seen *e = ox_history_find(&s->history, last[1 - (ptrdiff_t)k].id); /* what came then */
        if (e->repeat < (int32_t)m) e->repeat = (int32_t)m;
    }
    for (size_t k = 1; k < n; k++) {
        ox_seen *e = ox_history_find(&s->history, last[1 - (ptrdiff_t)k].id);
        const size_t i = e->repeat ? ox_pool_find(&s->pool, e->id) : SIZE_MAX;
        if (i != SIZE_MAX) {
            const double power = pow((double)o->dry_base, (double)e->repeat - (double)allowed);
            const double cost = (double)o->dry_multiplier * power;
            x[i] -= cost < (double)FLT_MAX ? (float)cost : FLT_MAX;
        }
        e->repeat = 0;
    }
    return OX_OK;
}

ox_status ox_step_no_repeat_ngram(ox_sampler *s, ox_err *err)
{
    const size_t n = (size_t)s->o.no_repeat_ngram, have = s->history.tokens.n;
    (void)err;
    if (!n || have + 1 < n) return OX_OK;
    const ox_accepted *t = tokens(s);
    float *x = edit(s);
    for (size_t i = 0; x && i + n <= have; i++) {
        size_t same = 0;
        while (same + 1 < n && t[i + same].id == t[have + 1 - n + same].id)
            same++;
        if (same + 1 == n) forbid(s, x, t[i + same].id);
    }
    return OX_OK;
}

ox_status ox_step_bad_words(ox_sampler *s, ox_err *err)
{
    const size_t have = s->history.tokens.n;
    size_t at = 0;
    (void)err;
    if (!s->word_ends.n) return OX_OK;
    float *x = edit(s);
    for (size_t w = 0; x && w < s->word_ends.n; at = s->word_ends.p[w++]) {
        const int32_t *word = s->words.p + at;
        const size_t n = s->word_ends.p[w] - at;
        size_t same = 0;
        if (n - 1 > have) continue;
        while (same + 1 < n && tokens(s)[have + 1 - n + same].id == word[same])
            same++;
        if (same + 1 == n) forbid(s, x, word[n - 1]);
    }
    return OX_OK;
}

ox_status ox_step_min_length(ox_sampler *s, ox_err *err)
{
    (void)err;
    if (s->end_ids.n &&
        (s->position < (uint64_t)s->o.min_length || s->history.n_new < (size_t)s->o.min_new))
        forbid_all(s, &s->end_ids);
    return OX_OK;
}

ox_status ox_step_suppress(ox_sampler *s, ox_err *err)
{
    (void)err;
    if (s->suppress.n) forbid_all(s, &s->suppress);
    if (s->begin_suppress.n && !s->history.n_new) forbid_all(s, &s->begin_suppress);
    return OX_OK;
}

ox_status ox_step_forced(ox_sampler *s, ox_err *err)
{
    for (size_t k = 0; k < s->forced.n; k++) {
        const ox_forced_token f = s->forced.p[k];
        if (f.position != s->position) continue;
        if (f.id < 0 || (size_t)f.id >= s->n_logits)
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "forced token %d at position %llu is outside the %zu logits", f.id,
                           (unsigned long long)f.position, s->n_logits);
        float *x = edit(s);
        for (size_t i = 0; x && i < s->pool.n; i++)
            x[i] = ox_pool_id(&s->pool, i) == f.id ? 0.0f : -INFINITY;
        return OX_OK;
    }
    return OX_OK;
}
