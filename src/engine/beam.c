/* beam.c - beam search over forks of a session. One step: each running beam's log-probabilities go
 * through the sampler's rules, the best continuations of all beams are ranked, those that end
 * become finished answers (if they rank among the first n_beams), the best others run on, together.
 *
 * Rules as in Hugging Face's generation (transformers 5, _beam_search): K = max(2, 1 + end ids) *
 * n_beams continuations are ranked; a finished answer's score is its sum of log-probabilities, the
 * end token's included, divided by its length, end token counted, to the power of length_penalty.
 */
#include "engine/engine_internal.h"

#include "kernel/select/select.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_MAX_NEW = 2048, MOST_BEAMS = 32 };

typedef struct running {
    ox_session *s;
    ox_sampler *sampler;
    float score; /* sum of log-probabilities */
} running;

typedef struct finished {
    int32_t *ids; /* owned */
    size_t n;
    float score;
    bool ended;
} finished;

typedef struct continuation {
    int32_t beam, id;
    float score;
    bool stops, by_end;
} continuation;

struct ox_beams {
    OX_VEC(finished) list; /* best first */
};

typedef struct search {
    const ox_beam_options *o;
    const ox_session *start;
    ox_model *m;
    size_t n_beams, most_new, n_ranked, vocab;
    running beams[MOST_BEAMS];
    size_t n_running;
    continuation *ranked; /* [n_ranked] best first */
    size_t n_continued;
    float *scores, *values;
    int32_t *ids;
    ox_select_fn *select;
    ox_beams *out;
    bool hopeless; /* no running beam can still beat the finished ones */
} search;

void ox_beam_options_init(ox_beam_options *o)
{
    *o = (ox_beam_options){.struct_size = sizeof(*o),
                           .n_beams = 1,
                           .n_return = 1,
                           .max_new = -1,
                           .length_penalty = 1.0f};
}

static void close_beam(running *r)
{
    ox_session_close(&r->s);
    ox_sampler_close(&r->sampler);
}

static ox_status check_options(const ox_beam_options *o, ox_err *err)
{
    if (o->n_beams < 1 || o->n_beams > MOST_BEAMS)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "num-beams must be 1 to %d, found %d", MOST_BEAMS,
                       o->n_beams);
    if (o->n_return < 1 || o->n_return > o->n_beams)
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "num-return-sequences must be 1 to num-beams (%d), found %d", o->n_beams,
                       o->n_return);
    if (!(o->length_penalty >= -100 && o->length_penalty <= 100))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "length-penalty must be -100 to 100, found %g",
                       (double)o->length_penalty);
    return OX_OK;
}

static ox_status open_search(search *b, const ox_session *s, const ox_beam_options *o, ox_err *err)
{
    ox_machine machine = {0};
    ox_sampler_options so;
    b->o = o;
    b->start = s;
    b->m = s->model;
    b->vocab = (size_t)ox_model_vocab(b->m);
    b->n_beams = (size_t)o->n_beams;
    const size_t room = (size_t)b->m->context - s->ids.n;
    b->most_new = o->max_new < 0 ? DEFAULT_MAX_NEW : (size_t)o->max_new;
    if (b->most_new > room) b->most_new = room;
    const size_t ends = o->ignore_eos ? 0 : ox_model_n_eos(b->m);
    b->n_ranked = (ends < 1 ? 2 : 1 + ends) * b->n_beams;
    const size_t each = b->n_ranked < b->vocab ? b->n_ranked : b->vocab;
    OX_TRY(ox_cpu_features(&machine.cpu_features, err));
    b->select = (ox_select_fn *)ox_kernel_pick(ox_select_rows, OX_DEVICE_CPU, &machine, NULL)->fn;
    b->ranked = ox_alloc(b->n_ranked * sizeof(*b->ranked));
    b->scores = ox_alloc(b->vocab * sizeof(float));
    b->values = ox_alloc(each * sizeof(float));
    b->ids = ox_alloc(each * sizeof(*b->ids));
    b->out = ox_calloc(1, sizeof(*b->out));
    if (!b->ranked || !b->scores || !b->values || !b->ids || !b->out)
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a beam search");
    ox_model_sampler_options(b->m, &so);
    OX_TRY(ox_sampler_open(&b->beams[0].sampler, o->sampler ? o->sampler : &so, err));
    b->n_running = 1;
    for (size_t i = 0; i < s->ids.n; i++)
        OX_TRY(ox_sampler_accept(b->beams[0].sampler, s->ids.p[i], 0, err));
    return ox_session_fork(&b->beams[0].s, s, err);
}

static void log_softmax(float *out, const float *x, size_t n)
{
    float top = -INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (x[i] > top) top = x[i];
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)top);
    const double norm = (double)top + log(sum);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)x[i] - norm);
}

/* Puts one continuation in its place among the ranked; equal scores: the earlier beam, lower id. */
static void rank(search *b, continuation c)
{
    size_t i = b->n_continued;
    while (i && b->ranked[i - 1].score < c.score)
        i--;
    if (i == b->n_ranked) return;
    const size_t n = b->n_continued < b->n_ranked ? b->n_continued : b->n_ranked - 1;
    memmove(b->ranked + i + 1, b->ranked + i, (n - i) * sizeof(c));
    b->ranked[i] = c;
    b->n_continued = n + 1;
}

static ox_status rank_all(search *b, bool last, ox_err *err)
{
    const size_t each = b->n_ranked < b->vocab ? b->n_ranked : b->vocab;
    bool nan = false;
    b->n_continued = 0;
    for (size_t k = 0; k < b->n_running; k++) {
        const running *r = &b->beams[k];
        const float *logits = ox_session_logits(r->s);
        if (!logits) return OX_FAIL(err, OX_FAILED, "the device gave no logits");
        log_softmax(b->scores, logits, b->vocab);
        OX_TRY(ox_sampler_change(r->sampler, b->scores, b->vocab, r->s->ids.n, b->scores, err));
        const ox_select_args a = {.x = b->scores,
                                  .ids = b->ids,
                                  .values = b->values,
                                  .rows = 1,
                                  .dim = b->vocab,
                                  .k = each,
                                  .ldx = b->vocab,
                                  .has_nan = &nan};
        b->select(&a, 0, 1);
        if (nan)
            return OX_FAIL(err, OX_FAILED,
                           "the model's logits hold NaN at position %zu: its weights are damaged "
                           "or too large for --numerics; try --numerics exact",
                           r->s->ids.n);
        for (size_t i = 0; i < each && b->values[i] > -INFINITY; i++) {
            const bool end = !b->o->ignore_eos && ox_model_is_eos(b->m, b->ids[i]);
            rank(b,
                 (continuation){(int32_t)k, b->ids[i], r->score + b->values[i], end || last, end});
        }
    }
    return b->n_continued ? OX_OK
                          : OX_FAIL(err, OX_FAILED, "no token is left for any beam at position %zu",
                                    b->beams[0].s->ids.n);
}

static bool is_full(const search *b)
{
    return b->out->list.n == b->n_beams;
}

/* Takes an answer among the finished ones if it is good enough. */
static ox_status finish(search *b, const continuation *c, size_t length, ox_err *err)
{
    const running *r = &b->beams[c->beam];
    const float score = c->score / powf((float)length, b->o->length_penalty);
    size_t at = b->out->list.n;
    while (at && b->out->list.p[at - 1].score < score)
        at--;
    if (at == b->n_beams) return OX_OK;
    finished f = {.n = length - (c->by_end ? 1 : 0), .score = score, .ended = c->by_end};
    f.ids = ox_alloc((f.n ? f.n : 1) * sizeof(*f.ids));
    if (!f.ids || !ox_vec_reserve(&b->out->list, b->n_beams)) {
        ox_free(f.ids);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for an answer");
    }
    memcpy(f.ids, r->s->ids.p + b->start->ids.n, (length - 1) * sizeof(*f.ids));
    if (!c->by_end) f.ids[length - 1] = c->id;
    if (is_full(b)) ox_free(b->out->list.p[--b->out->list.n].ids);
    finished *list = b->out->list.p;
    memmove(list + at + 1, list + at, (b->out->list.n - at) * sizeof(f));
    list[at] = f;
    b->out->list.n++;
    return OX_OK;
}

/* The beams of the next step: the first child of a beam takes its session, the others fork it. */
static ox_status go_on(search *b, ox_err *err)
{
    running next[MOST_BEAMS] = {{0}};
    ox_session *sessions[MOST_BEAMS];
    int32_t ids[MOST_BEAMS], owner[MOST_BEAMS];
    bool taken[MOST_BEAMS] = {false};
    size_t n = 0;
    ox_status st = OX_OK;

    for (size_t i = 0; i < b->n_continued && n < b->n_beams; i++) {
        const continuation *c = &b->ranked[i];
        if (c->stops) continue;
        next[n].score = c->score;
        ids[n] = c->id;
        owner[n++] = c->beam;
    }
    for (size_t i = n; i-- > 0;) { /* from behind: whoever comes first takes, after the forks */
        running *from = &b->beams[owner[i]];
        bool first = true;
        for (size_t j = 0; j < i; j++)
            first = first && owner[j] != owner[i];
        if (first) {
            taken[owner[i]] = true;
            next[i].s = from->s;
            next[i].sampler = from->sampler;
            continue;
        }
        OX_TRY_GOTO(ox_session_fork(&next[i].s, from->s, err));
        OX_TRY_GOTO(ox_sampler_fork(&next[i].sampler, from->sampler, err));
    }
    for (size_t i = 0; i < b->n_running; i++)
        if (!taken[i]) close_beam(&b->beams[i]);
    memcpy(b->beams, next, sizeof(next));
    b->n_running = n;
    for (size_t i = 0; i < n; i++) {
        sessions[i] = next[i].s;
        OX_TRY(ox_sampler_accept(next[i].sampler, ids[i], 1, err));
    }
    return n ? ox_sessions_step(sessions, ids, n, err) : OX_OK;
fail:
    for (size_t i = 0; i < n; i++)
        if (next[i].s && next[i].s != b->beams[owner[i]].s) close_beam(&next[i]);
    return st;
}

/* Whether a running beam may still enter the finished ones, by the chosen rule. */
static bool may_improve(const search *b, size_t length)
{
    const bool at_most = b->o->early_stopping == OX_EARLY_NEVER && b->o->length_penalty > 0;
    if (!b->n_running) return false;
    if (!is_full(b)) return true;
    const float l = (float)(at_most ? b->most_new : length);
    const float best = b->beams[0].score / powf(l, b->o->length_penalty);
    return best > b->out->list.p[b->n_beams - 1].score;
}

static ox_status run(search *b, ox_err *err)
{
    for (size_t done = 0; done < b->most_new && !b->hopeless; done++) {
        const size_t length = done + 1;
        OX_TRY(rank_all(b, length == b->most_new, err));
        const bool closed = is_full(b) && b->o->early_stopping == OX_EARLY_YES;
        for (size_t i = 0; i < b->n_continued && i < b->n_beams && !closed; i++)
            if (b->ranked[i].stops) OX_TRY(finish(b, &b->ranked[i], length, err));
        if (length == b->most_new) break;
        OX_TRY(go_on(b, err));
        b->hopeless =
            !may_improve(b, length) || (is_full(b) && b->o->early_stopping == OX_EARLY_YES);
        if (b->o->progress && b->o->progress(b->o->user, "search", length, b->most_new))
            return OX_FAIL(err, OX_CANCELLED, "interrupted after %zu of at most %zu tokens", length,
                           b->most_new);
    }
    return OX_OK;
}

ox_status ox_beam_search(ox_beams **out, const ox_session *s, const ox_beam_options *options,
                         ox_err *err)
{
    ox_beam_options o;
    search b = {0};
    *out = NULL;
    ox_model_beam_options(s->model, &o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    OX_TRY(check_options(&o, err));
    if (!s->has_logits)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "the session holds no prompt; append one first");
    ox_status st = open_search(&b, s, &o, err);
    if (!st) st = run(&b, err);
    for (size_t i = 0; i < MOST_BEAMS; i++)
        close_beam(&b.beams[i]);
    ox_free(b.ranked);
    ox_free(b.scores);
    ox_free(b.values);
    ox_free(b.ids);
    if (st) {
        ox_beams_close(&b.out);
        return st;
    }
    while (b.out->list.n > (size_t)o.n_return)
        ox_free(b.out->list.p[--b.out->list.n].ids);
    *out = b.out;
    return OX_OK;
}

size_t ox_beams_n(const ox_beams *b)
{
    return b->list.n;
}

void ox_beams_get(const ox_beams *b, size_t i, ox_beam *beam)
{
    *beam = (ox_beam){0};
    if (i >= b->list.n) return;
    const finished *f = &b->list.p[i];
    *beam = (ox_beam){f->ids, f->n, f->score, f->ended};
}

void ox_beams_close(ox_beams **beams)
{
    ox_beams *b = *beams;
    if (!b) return;
    for (size_t i = 0; i < b->list.n; i++)
        ox_free(b->list.p[i].ids);
    ox_vec_deinit(&b->list);
    ox_free(b);
    *beams = NULL;
}
