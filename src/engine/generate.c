/* generate.c - the generation loop: pick, check for an end, show, append. */
#include "engine/engine_internal.h"

#include <string.h>

enum { DEFAULT_MAX_NEW = 2048 };

void ox_generate_options_init(ox_generate_options *o)
{
    *o = (ox_generate_options){.struct_size = sizeof(*o), .max_new = -1};
}

void ox_model_sampler_options(const ox_model *m, ox_sampler_options *o)
{
    const ox_search *s = &m->source->facts.search;
    ox_sampler_options_init(o);
    if (s->has_repetition) o->repetition_penalty = s->repetition;
    if (!s->do_sample) return;
    o->temperature = s->has_temperature ? s->temperature : 1.0f;
    if (s->has_top_k) o->top_k = s->top_k;
    if (s->has_top_p) o->top_p = s->top_p;
    if (s->has_min_p) o->min_p = s->min_p;
}

typedef struct generation {
    ox_session *s;
    const ox_generate_options *o;
    ox_sampler *sampler;
    ox_stream_text *text;
} generation;

static ox_status open_generation(generation *g, ox_err *err)
{
    ox_sampler_options so;
    ox_model_sampler_options(g->s->model, &so);
    OX_TRY(ox_sampler_open(&g->sampler, g->o->sampler ? g->o->sampler : &so, err));
    for (size_t i = 0; i < g->s->ids.n; i++)
        OX_TRY(ox_sampler_accept(g->sampler, g->s->ids.p[i], 0, err));
    if (g->s->model->tokenizer)
        OX_TRY(ox_stream_text_open(&g->text, g->s->model, g->o->stops, g->o->n_stops, 0, err));
    return OX_OK;
}

/* Shows one token's text. *done: a stop string or the caller ended it. */
static ox_status show(generation *g, int32_t id, bool *done, ox_finish *why, ox_err *err)
{
    const char *text = "";
    size_t n = 0;
    int32_t stopped = 0;
    if (g->text) OX_TRY(ox_stream_text_feed(g->text, id, &text, &n, &stopped, err));
    const int cancel = g->o->on_text ? g->o->on_text(g->o->user, text, n, id) : 0;
    *done = stopped || cancel;
    if (*done) *why = stopped ? OX_FINISH_STOP_STRING : OX_FINISH_CANCELLED;
    return OX_OK;
}

static ox_status flush(generation *g, ox_err *err)
{
    const char *text;
    size_t n;
    if (!g->text) return OX_OK;
    OX_TRY(ox_stream_text_flush(g->text, &text, &n, err));
    if (n && g->o->on_text) g->o->on_text(g->o->user, text, n, -1);
    return OX_OK;
}

static ox_status loop(generation *g, ox_finish *why, ox_err *err)
{
    ox_session *s = g->s;
    const ox_model *m = s->model;
    const int64_t most = g->o->max_new < 0 ? DEFAULT_MAX_NEW : g->o->max_new;

    *why = OX_FINISH_LENGTH;
    for (int64_t i = 0; i < most && s->ids.n < (size_t)m->context; i++) {
        int32_t id;
        bool done = false;
        OX_TRY(
            ox_sampler_pick(g->sampler, s->logits, (size_t)ox_model_vocab(m), s->ids.n, &id, err));
        if (ox_model_is_eos(m, id) && !g->o->ignore_eos) {
            *why = OX_FINISH_STOP;
            return OX_OK;
        }
        OX_TRY(show(g, id, &done, why, err));
        OX_TRY(ox_sampler_accept(g->sampler, id, 1, err));
        if (done) return OX_OK;
        OX_TRY(ox_session_append(s, &id, 1, 0, NULL, NULL, err));
    }
    return OX_OK;
}

ox_status ox_generate(ox_session *s, const ox_generate_options *options, ox_finish *why,
                      ox_err *err)
{
    ox_generate_options o;
    ox_finish ignored;
    ox_generate_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    if (!s->has_logits)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "the session holds no prompt; append one first");
    generation g = {.s = s, .o = &o};
    ox_status st = open_generation(&g, err);
    if (!st) st = loop(&g, why ? why : &ignored, err);
    if (!st) st = flush(&g, err);
    ox_stream_text_close(&g.text);
    ox_sampler_close(&g.sampler);
    return st;
}
