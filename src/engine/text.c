/* text.c - the public text functions of a model: encode, decode, chat templates, streaming. */
#include "base/clock.h"
#include "base/json.h"
#include "engine/engine_internal.h"

#include <string.h>

void ox_release(void *p)
{
    ox_free(p);
}

ox_status ox_model_need_tokenizer(const ox_model *m, ox_err *err)
{
    if (m->tokenizer) return OX_OK;
    for (size_t i = 0; i < m->source->warnings.n; i++) { /* the files' own reason */
        const char *reason = m->source->warnings.p[i];
        if (strstr(reason, "only token ids can"))
            return OX_FAIL(err, OX_UNSUPPORTED, "%s; give them with --ids", reason);
    }
    if (m->source->form == OX_FORM_GGUF)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "%s has no tokenizer (key tokenizer.ggml.tokens); give token ids with --ids",
                       m->source->path);
    return OX_FAIL(
        err, OX_UNSUPPORTED,
        "the model has no tokenizer.json; put one into its folder, or give token ids with "
        "--ids");
}

ox_status ox_engine_hand_over(ox_buf *b, char **text, size_t *n, ox_err *err)
{
    if (!b->failed && !b->p) ox_buf_reserve(b, 1);
    if (b->failed || !b->p) {
        ox_buf_deinit(b);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a text");
    }
    b->p[b->n] = 0;
    *text = b->p;
    if (n) *n = b->n;
    return OX_OK;
}

/* A tokenizer of another model may give ids that this one has no row for. */
static ox_status check_ids(const ox_model *m, const ox_ids *v, ox_err *err)
{
    const int64_t vocab = m->plan || m->interp ? ox_model_vocab(m) : 0;
    for (size_t i = 0; vocab && i < v->n; i++)
        if (v->p[i] >= vocab)
            return OX_FAIL(err, OX_BAD_FILE,
                           "the tokenizer gives the text id %d and the model knows %lld ids: they "
                           "do not belong together",
                           v->p[i], (long long)vocab);
    return OX_OK;
}

static ox_status hand_over_ids(ox_ids *v, int32_t **ids, size_t *n_ids, ox_err *err)
{
    if (!v->p) v->p = ox_alloc(sizeof(*v->p)); /* an empty result is still something to free */
    if (!v->p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for token ids");
    *ids = v->p;
    *n_ids = v->n;
    return OX_OK;
}

ox_status ox_model_encode(const ox_model *m, const char *text, size_t n, uint32_t flags,
                          int32_t **ids, size_t *n_ids, ox_err *err)
{
    ox_ids v = {0};
    OX_TRY(ox_model_need_tokenizer(m, err));
    const unsigned f = (flags & OX_TEXT_ADD_SPECIAL ? OX_ENCODE_ADD_SPECIAL : 0u) |
                       (flags & OX_TEXT_PLAIN_SPECIAL ? 0u : OX_ENCODE_PARSE_SPECIAL);
    ox_status st = ox_tokenizer_encode(m->tokenizer, (ox_str){text, n}, f, &v, err);
    if (!st) st = check_ids(m, &v, err);
    if (!st) st = hand_over_ids(&v, ids, n_ids, err);
    if (st) ox_vec_deinit(&v);
    return st;
}

static ox_status hand_over_ranges(const ox_ranges *r, ox_text_range **ranges, ox_err *err)
{
    ox_text_range *out = ox_calloc(r->n + 1, sizeof(*out));
    if (!out) return OX_FAIL(err, OX_NO_MEMORY, "no memory for the ranges of tokens");
    for (size_t i = 0; i < r->n; i++)
        out[i] = (ox_text_range){r->p[i].begin, r->p[i].end};
    *ranges = out;
    return OX_OK;
}

ox_status ox_model_encode_ranges(const ox_model *m, const char *text, size_t n, uint32_t flags,
                                 int32_t **ids, ox_text_range **ranges, size_t *n_ids, ox_err *err)
{
    ox_ids v = {0};
    ox_ranges r = {0};
    OX_TRY(ox_model_need_tokenizer(m, err));
    const unsigned f = (flags & OX_TEXT_ADD_SPECIAL ? OX_ENCODE_ADD_SPECIAL : 0u) |
                       (flags & OX_TEXT_PLAIN_SPECIAL ? 0u : OX_ENCODE_PARSE_SPECIAL);
    ox_status st = ox_tokenizer_encode_ranges(m->tokenizer, (ox_str){text, n}, f, &v, &r, err);
    if (!st) st = check_ids(m, &v, err);
    if (!st) st = hand_over_ranges(&r, ranges, err);
    if (!st) st = hand_over_ids(&v, ids, n_ids, err);
    if (st) ox_vec_deinit(&v);
    ox_vec_deinit(&r);
    return st;
}

ox_status ox_model_decode(const ox_model *m, const int32_t *ids, size_t n_ids, uint32_t flags,
                          char **text, size_t *n, ox_err *err)
{
    ox_buf b = {0};
    OX_TRY(ox_model_need_tokenizer(m, err));
    const size_t vocab = ox_tokenizer_n_vocab(m->tokenizer);
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "token id %d is outside the vocabulary of %zu",
                           ids[i], vocab);
    const ox_status st =
        ox_tokenizer_decode(m->tokenizer, ids, n_ids, flags & OX_TEXT_SKIP_SPECIAL, &b, err);
    if (st) {
        ox_buf_deinit(&b);
        return st;
    }
    return ox_engine_hand_over(&b, text, n, err);
}

const char *ox_model_piece(const ox_model *m, int32_t id, size_t *n)
{
    const ox_str s = m->tokenizer ? ox_tokenizer_token(m->tokenizer, id) : (ox_str){0};
    if (n) *n = s.n;
    return s.p;
}

/* --- templates ---------------------------------------------------------------------------------
 */

enum { N_TOKENS = 4 };

static void special_tokens(const ox_model *m, ox_template_token out[N_TOKENS])
{
    static const char *const names[N_TOKENS] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    static const ox_special which[N_TOKENS] = {OX_SPECIAL_BOS, OX_SPECIAL_EOS, OX_SPECIAL_PAD,
                                               OX_SPECIAL_UNK};
    for (int i = 0; i < N_TOKENS; i++) {
        const int32_t id = m->tokenizer ? ox_tokenizer_special(m->tokenizer, which[i]) : -1;
        out[i] = (ox_template_token){ox_str_of(names[i]), {"", 0}};
        if (id >= 0) out[i].text = ox_tokenizer_token(m->tokenizer, id);
    }
}

/* "No chat template means raw": the contents one after the other, a newline between them. */
static ox_status join_contents(const ox_json *messages, ox_buf *out, ox_template_spans *spans,
                               ox_err *err)
{
    for (size_t i = 0; i < messages->n; i++) {
        const ox_json *content = ox_json_get(ox_json_at(messages, i), "content");
        if (!content || content->kind != OX_JSON_STRING)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "message %zu has no text content", i);
        if (i) ox_buf_put_c(out, '\n');
        const size_t begin = out->n;
        ox_buf_put_str(out, ox_json_str(content));
        if (spans && !ox_vec_push(spans, (ox_template_span){begin, out->n}))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for a prompt");
    }
    return OX_OK;
}

static ox_status parse(const ox_json **out, ox_arena *arena, const char *json, ox_json_kind kind,
                       const char *what, ox_err *err)
{
    *out = NULL;
    if (!json) return OX_OK;
    OX_TRY(ox_json_parse(out, arena, ox_str_of(json), err));
    if ((*out)->kind != (uint8_t)kind)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%s must be a JSON %s", what,
                       kind == OX_JSON_ARRAY ? "array" : "object");
    return OX_OK;
}

static ox_status render(const ox_model *m, const char *messages_json, const char *tools_json,
                        const char *vars_json, bool add_prompt, ox_buf *out,
                        ox_template_spans *spans, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_template_token tokens[N_TOKENS];
    ox_template_input in = {.add_generation_prompt = add_prompt,
                            .tokens = tokens,
                            .n_tokens = N_TOKENS,
                            .now_seconds = ox_clock_unix()};
    ox_status st = OX_OK;

    in.utc_offset_seconds = ox_clock_utc_offset(in.now_seconds);
    special_tokens(m, tokens);
    OX_TRY_GOTO(parse(&in.messages, &arena, messages_json, OX_JSON_ARRAY, "messages", err));
    OX_TRY_GOTO(parse(&in.tools, &arena, tools_json, OX_JSON_ARRAY, "tools", err));
    OX_TRY_GOTO(parse(&in.extra, &arena, vars_json, OX_JSON_OBJECT, "variables", err));
    if (!in.messages) OX_TRY_GOTO(OX_FAIL(err, OX_BAD_ARGUMENT, "there are no messages"));
    const ox_template *t = in.tools && m->tools ? m->tools : m->chat;
    if (t)
        OX_TRY_GOTO(ox_template_render(t, &in, out, spans, err));
    else
        OX_TRY_GOTO(join_contents(in.messages, out, spans, err));
    if (out->failed) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a prompt");
fail:
    ox_arena_deinit(&arena);
    return st;
}

ox_status ox_model_template(const ox_model *m, const char *messages_json, const char *tools_json,
                            const char *vars_json, int32_t add_generation_prompt, char **text,
                            size_t *n, ox_err *err)
{
    ox_buf b = {0};
    const ox_status st =
        render(m, messages_json, tools_json, vars_json, add_generation_prompt != 0, &b, NULL, err);
    if (st) {
        ox_buf_deinit(&b);
        return st;
    }
    return ox_engine_hand_over(&b, text, n, err);
}

/* Encodes the template's own text with control tokens and the user's spans without. Byte ranges are
 * encoded piece by piece only where a user's span spells a control token; otherwise in one go, so
 * that merges across the borders are those of the whole text. */
static ox_status spells_control(const ox_model *m, ox_str span, bool *yes, ox_err *err)
{
    ox_ids with = {0}, without = {0};
    ox_status st = ox_tokenizer_encode(m->tokenizer, span, OX_ENCODE_PARSE_SPECIAL, &with, err);
    if (!st) st = ox_tokenizer_encode(m->tokenizer, span, 0, &without, err);
    *yes = with.n != without.n || (with.n && memcmp(with.p, without.p, with.n * sizeof(*with.p)));
    ox_vec_deinit(&with);
    ox_vec_deinit(&without);
    return st;
}

static ox_status encode_spans(const ox_model *m, ox_str text, const ox_template_spans *spans,
                              ox_ids *ids, ox_err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < spans->n; i++) {
        const ox_template_span s = spans->p[i];
        bool control;
        OX_TRY(spells_control(m, (ox_str){text.p + s.begin, s.end - s.begin}, &control, err));
        if (!control) continue;
        OX_TRY(ox_tokenizer_encode(m->tokenizer, (ox_str){text.p + at, s.begin - at},
                                   OX_ENCODE_PARSE_SPECIAL, ids, err));
        OX_TRY(ox_tokenizer_encode(m->tokenizer, (ox_str){text.p + s.begin, s.end - s.begin}, 0,
                                   ids, err));
        at = s.end;
    }
    return ox_tokenizer_encode(m->tokenizer, (ox_str){text.p + at, text.n - at},
                               OX_ENCODE_PARSE_SPECIAL | (m->chat ? 0 : OX_ENCODE_ADD_SPECIAL), ids,
                               err);
}

ox_status ox_model_chat_ids(const ox_model *m, const char *messages_json, const char *tools_json,
                            const char *vars_json, int32_t add_generation_prompt, int32_t **ids,
                            size_t *n_ids, ox_err *err)
{
    ox_buf b = {0};
    ox_template_spans spans = {0};
    ox_ids v = {0};
    ox_status st = ox_model_need_tokenizer(m, err);
    if (!st)
        st = render(m, messages_json, tools_json, vars_json, add_generation_prompt != 0, &b, &spans,
                    err);
    if (!st) st = encode_spans(m, ox_buf_view(&b), &spans, &v, err);
    if (!st) st = check_ids(m, &v, err);
    if (!st) st = hand_over_ids(&v, ids, n_ids, err);
    if (st) ox_vec_deinit(&v);
    ox_vec_deinit(&spans);
    ox_buf_deinit(&b);
    return st;
}

/* --- streaming ---------------------------------------------------------------------------------
 */

struct ox_stream_text {
    ox_detok detok;
    ox_stops stops;
    ox_buf piece, shown;
};

ox_status ox_stream_text_open(ox_stream_text **out, const ox_model *m, const char *const *stops,
                              size_t n_stops, int32_t show_special, ox_err *err)
{
    *out = NULL;
    OX_TRY(ox_model_need_tokenizer(m, err));
    if (n_stops > OX_STOPS_MAX)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%zu stop strings; at most %d are possible", n_stops,
                       OX_STOPS_MAX);
    ox_str list[OX_STOPS_MAX];
    for (size_t i = 0; i < n_stops; i++)
        list[i] = ox_str_of(stops[i]);
    ox_stream_text *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a text stream");
    ox_detok_init(&s->detok, m->tokenizer, show_special != 0, false);
    const ox_status st = ox_stops_init(&s->stops, list, n_stops, err);
    if (st) {
        ox_free(s);
        return st;
    }
    *out = s;
    return OX_OK;
}

static ox_status shown(ox_stream_text *s, const char **text, size_t *n, ox_err *err)
{
    if (s->piece.failed || s->shown.failed)
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a text stream");
    const ox_str v = ox_buf_view(&s->shown);
    *text = v.p;
    *n = v.n;
    return OX_OK;
}

ox_status ox_stream_text_feed(ox_stream_text *s, int32_t id, const char **text, size_t *n,
                              int32_t *stopped, ox_err *err)
{
    ox_buf_clear(&s->piece);
    ox_buf_clear(&s->shown);
    ox_detok_push(&s->detok, id, &s->piece);
    ox_stops_push(&s->stops, ox_buf_view(&s->piece), &s->shown);
    *stopped = s->stops.hit;
    return shown(s, text, n, err);
}

ox_status ox_stream_text_flush(ox_stream_text *s, const char **text, size_t *n, ox_err *err)
{
    ox_buf_clear(&s->piece);
    ox_buf_clear(&s->shown);
    ox_detok_flush(&s->detok, &s->piece);
    ox_stops_push(&s->stops, ox_buf_view(&s->piece), &s->shown);
    ox_stops_flush(&s->stops, &s->shown);
    return shown(s, text, n, err);
}

void ox_stream_text_close(ox_stream_text **stream)
{
    ox_stream_text *s = *stream;
    if (!s) return;
    ox_stops_deinit(&s->stops);
    ox_buf_deinit(&s->piece);
    ox_buf_deinit(&s->shown);
    ox_free(s);
    *stream = NULL;
}
