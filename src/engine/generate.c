/* generate.c - the generation loop: pick, check for an end, show, append. */
#include "engine/engine_internal.h"
#include "sample/sample.h"

#include <string.h>

enum { DEFAULT_MAX_NEW = 2048, DEVICE_TOKENS = 256 };

void ox_generate_options_init(ox_generate_options *o)
{
    *o = (ox_generate_options){.struct_size = sizeof(*o), .max_new = -1};
}

typedef struct generation {
    ox_session *s;
    const ox_generate_options *o;
    ox_sampler *sampler;
    ox_sampler_options settings; /* the sampler's */
    ox_stream_text *text;
    ox_stream_text *marks; /* with the format's special tokens, for the parser */
    size_t n_prompt;
    bool by_step; /* the device has no loop for this request */
} generation;

static ox_status open_generation(generation *g, ox_err *err)
{
    ox_model_sampler_options(g->s->model, &g->settings);
    if (g->o->sampler) {
        const size_t n = g->o->sampler->struct_size;
        ox_sampler_options_init(&g->settings);
        memcpy(&g->settings, g->o->sampler, n < sizeof(g->settings) ? n : sizeof(g->settings));
    }
    OX_TRY(ox_sampler_open(&g->sampler, &g->settings, err));
    g->n_prompt = g->s->ids.n;
    g->by_step = g->o->guide || !ox_sampler_is_basic(&g->settings);
    for (size_t i = 0; i < g->s->ids.n; i++)
        OX_TRY(ox_sampler_accept(g->sampler, g->s->ids.p[i], 0, err));
    if (g->s->model->tokenizer && g->o->parser && g->o->on_part)
        OX_TRY(ox_stream_text_open(&g->marks, g->s->model, g->o->stops, g->o->n_stops, 1, err));
    if (g->s->model->tokenizer)
        OX_TRY(ox_stream_text_open(&g->text, g->s->model, g->o->stops, g->o->n_stops,
                                   g->o->show_special, err));
    return OX_OK;
}

/* One token's text to the parser; special tokens that are no mark of its format stay out. */
static ox_status take_apart(generation *g, int32_t id, ox_err *err)
{
    const ox_tokenizer *tok = g->s->model->tokenizer;
    const char *text;
    size_t n;
    int32_t stopped;
    if (!g->marks) return OX_OK;
    if (ox_tokenizer_is_special(tok, id)) {
        const char *piece = ox_model_piece(g->s->model, id, &n);
        if (!piece || !ox_parser_mentions(g->o->parser, (ox_str){piece, n})) return OX_OK;
    }
    OX_TRY(ox_stream_text_feed(g->marks, id, &text, &n, &stopped, err));
    return ox_parser_feed(g->o->parser, text, n, g->o->on_part, g->o->user, err);
}

/* Shows one token's text. *done: a stop string or the caller ended it. */
static ox_status show(generation *g, int32_t id, bool *done, ox_finish *why, ox_err *err)
{
    const char *text = "";
    size_t n = 0;
    int32_t stopped = 0;
    if (g->text) OX_TRY(ox_stream_text_feed(g->text, id, &text, &n, &stopped, err));
    OX_TRY(take_apart(g, id, err));
    const int cancel = g->o->on_text ? g->o->on_text(g->o->user, text, n, id) : 0;
    *done = stopped || cancel;
    if (*done) *why = stopped ? OX_FINISH_STOP_STRING : OX_FINISH_CANCELLED;
    return OX_OK;
}

static ox_status flush(generation *g, ox_err *err)
{
    const char *text;
    size_t n;
    if (g->marks) {
        OX_TRY(ox_stream_text_flush(g->marks, &text, &n, err));
        OX_TRY(ox_parser_feed(g->o->parser, text, n, g->o->on_part, g->o->user, err));
        OX_TRY(ox_parser_finish(g->o->parser, g->o->on_part, g->o->user, err));
    }
    if (!g->text) return OX_OK;
    OX_TRY(ox_stream_text_flush(g->text, &text, &n, err));
    if (n && g->o->on_text) g->o->on_text(g->o->user, text, n, -1);
    return OX_OK;
}

/* Tokens that the device hands over while it goes on by itself. */
typedef struct device_run {
    generation *g;
    int32_t last; /* shown, not in the cache yet */
    int64_t n;
    bool ended; /* *why says how */
    ox_finish *why;
    ox_status st;
    ox_err *err;
} device_run;

static bool on_token(void *user, int32_t id)
{
    device_run *r = user;
    ox_session *s = r->g->s;
    s->ids.p[s->ids.n++] = r->last; /* room was made before */
    s->kv.n_positions++;
    r->last = -1;
    if (ox_model_is_eos(s->model, id) && !r->g->o->ignore_eos) {
        *r->why = OX_FINISH_STOP;
        r->ended = true;
        return false;
    }
    r->n++;
    r->last = id;
    r->st = show(r->g, id, &r->ended, r->why, r->err);
    if (!r->st) r->st = ox_sampler_accept(r->g->sampler, id, 1, r->err);
    return !r->st && !r->ended;
}

/* Tokens the device may make without the host: pages and rotary tables must hold. */
static int64_t device_most(const generation *g, int64_t left)
{
    const ox_session *s = g->s;
    const int64_t at = (int64_t)s->ids.n, limit = s->model->switch_length;
    int64_t n = left < DEVICE_TOKENS ? left : DEVICE_TOKENS;
    if (n > s->model->context - at - 1) n = s->model->context - at - 1;
    if (limit && !s->long_keys && n > limit - at) n = limit - at;
    return n;
}

/* Goes on from the shown token `r->last` on the device; r->n 0 and not ended: it cannot. */
static ox_status device_tokens(device_run *r, int64_t left)
{
    generation *g = r->g;
    ox_session *s = g->s;
    ox_model *m = s->model;
    const int64_t n = device_most(g, left);
    int64_t n_done;
    if (n < 1 || g->by_step || !m->exec || m->profile || g->o->keep_logits) return OX_OK;
    OX_TRY(ox_kv_seq_reserve(&s->kv, s->ids.n + (size_t)n, r->err));
    if (!ox_vec_reserve(&s->ids, s->ids.n + (size_t)n + 1))
        return OX_FAIL(r->err, OX_NO_MEMORY, "no memory for the token history");
    s->ids.p[s->ids.n] = r->last;
    const ox_decode_request request = {.table = s->kv.table.p,
                                       .n_pages = s->kv.table.n,
                                       .position = (int32_t)s->ids.n,
                                       .last = r->last,
                                       .total = (int32_t)s->ids.n + 1,
                                       .n_tokens = n,
                                       .sampler = &g->settings,
                                       .history = s->ids.p,
                                       .n_history = s->ids.n + 1,
                                       .n_prompt = g->n_prompt,
                                       .stops = m->source->facts.eos,
                                       .n_stops =
                                           g->o->ignore_eos ? 0 : (size_t)m->source->facts.n_eos};
    const ox_status st = ox_exec_decode(m->exec, &request, m->kv, on_token, r, &n_done, r->err);
    if (n_done || r->n || r->ended) s->has_logits = false;
    ox_kv_seq_truncate(&s->kv, s->kv.n_positions);
    g->by_step = !st && !r->n && !r->ended;
    return st ? st : r->st;
}

static ox_status append(generation *g, int32_t id, ox_err *err)
{
    ox_session *const both[] = {g->s, g->o->guide};
    if (g->o->guide) return ox_sessions_step(both, (const int32_t[]){id, id}, 2, err);
    return ox_session_append(g->s, &id, 1, 0, NULL, NULL, err);
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
        const float *logits = ox_session_logits(s);
        const float *guide = g->o->guide ? ox_session_logits(g->o->guide) : logits;
        if (!logits || !guide) return OX_FAIL(err, OX_FAILED, "the device gave no logits");
        if (g->o->guide) ox_sampler_guide(g->sampler, guide, (size_t)ox_model_vocab(m));
        OX_TRY(ox_sampler_pick(g->sampler, logits, (size_t)ox_model_vocab(m), s->ids.n, &id, err));
        if (ox_model_is_eos(m, id) && !g->o->ignore_eos) {
            *why = OX_FINISH_STOP;
            return OX_OK;
        }
        OX_TRY(show(g, id, &done, why, err));
        OX_TRY(ox_sampler_accept(g->sampler, id, 1, err));
        if (done) return OX_OK;
        device_run r = {.g = g, .last = id, .why = why, .err = err};
        do {
            r.n = 0;
            OX_TRY(device_tokens(&r, most - i - 1));
            if (r.ended) return OX_OK;
            i += r.n;
        } while (r.n);
        OX_TRY(append(g, r.last, err));
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
    if (o.guide && (o.guide == s || o.guide->model != s->model || !o.guide->has_logits))
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "guide must be another session of the same model that holds a prompt");
    generation g = {.s = s, .o = &o};
    ox_status st = open_generation(&g, err);
    if (!st) st = loop(&g, why ? why : &ignored, err);
    if (!st) st = flush(&g, err);
    ox_stream_text_close(&g.text);
    ox_stream_text_close(&g.marks);
    ox_sampler_close(&g.sampler);
    return st;
}
