/* pretokenize.c - the pre-tokenizers. Each turns the list of pieces (spans of one text) into
 * another; those that change letters write a new text and point the spans into it. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

static const ox_str gpt2_pattern = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    sizeof("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+") -
        1};

ox_status ox_tok_no_memory(ox_tok_work *w)
{
    return OX_FAIL(w->err, OX_NO_MEMORY, "out of memory while encoding");
}

ox_buf *ox_tok_next_text(ox_tok_work *w)
{
    ox_buf *to = &w->text[w->i_text];
    ox_buf_clear(to);
    w->made.n = 0;
    return to;
}

ox_status ox_tok_swap_text(ox_tok_work *w)
{
    const ox_buf *done = &w->text[w->i_text];
    if (done->failed) return ox_tok_no_memory(w);
    if (done->n > OX_TOK_MAX_BYTES)
        return OX_FAIL(w->err, OX_LIMIT, "the pre-tokenizer makes the text longer than %d bytes",
                       (int)OX_TOK_MAX_BYTES);
    if (w->track && w->made.n != done->n) return ox_tok_no_memory(w);
    if (w->track) {
        const ox_origins old = w->text_from[w->i_text];
        w->text_from[w->i_text] = w->made;
        w->made = old;
        w->from = w->text_from[w->i_text].p;
    }
    w->now = ox_buf_view(done);
    w->i_text ^= 1;
    return OX_OK;
}

static ox_str piece_of(const ox_tok_work *w, size_t i)
{
    return (ox_str){w->now.p + w->spans.p[i].at, w->spans.p[i].n};
}

enum { ADD_SPACE, USE_REGEX };

static ox_status read_byte_level(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json,
                                 ox_err *err)
{
    (void)tok;
    p->on[ADD_SPACE] = p->on[USE_REGEX] = true;
    OX_TRY(ox_json_opt_bool(json, "add_prefix_space", &p->on[ADD_SPACE], err));
    OX_TRY(ox_json_opt_bool(json, "use_regex", &p->on[USE_REGEX], err));
    return p->on[USE_REGEX] ? ox_regex_open(&p->regex, gpt2_pattern, err) : OX_OK;
}

/* Puts `prefix` before every piece that does not begin with it; `only_first`: at the start of the
 * text. */
static ox_status add_prefix(ox_tok_work *w, ox_str prefix, bool only_first)
{
    ox_buf *to = ox_tok_next_text(w);
    for (size_t i = 0; i < w->spans.n && to->n <= OX_TOK_MAX_BYTES; i++) {
        const ox_str s = piece_of(w, i);
        const size_t at = to->n;
        if ((!only_first || (i == 0 && w->at_start)) && !ox_str_starts(s, prefix))
            ox_buf_put_str(to, prefix);
        ox_tok_made(w, to, w->now, s.p, s.p + ox_utf8_length(s.p, s.n));
        ox_buf_put_str(to, s);
        ox_tok_copied(w, to, w->now, s.p, s.p + s.n);
        w->spans.p[i] = (ox_span){(uint32_t)at, (uint32_t)(to->n - at)};
    }
    return ox_tok_swap_text(w);
}

static ox_status run_byte_level(const ox_pretokenizer *p, ox_tok_work *w)
{
    if (p->on[ADD_SPACE]) OX_TRY(add_prefix(w, OX_STR(" "), false));
    if (p->regex) OX_TRY(ox_tok_split_by(w, p->regex, OX_SPLIT_ISOLATED, false));
    if (w->tok->raw) return OX_OK;
    ox_buf *to = ox_tok_next_text(w);
    for (size_t i = 0; i < w->spans.n && to->n <= OX_TOK_MAX_BYTES; i++) {
        const size_t at = to->n;
        const ox_str s = piece_of(w, i);
        ox_bytes_to_chars(s, to);
        for (size_t k = 0; w->track && k < s.n && !to->failed; k++) { /* one or two bytes each */
            const ox_buf upto = {.p = to->p, .n = w->made.n + ox_byte_to_char((uint8_t)s.p[k]).n};
            ox_tok_made(w, &upto, w->now, s.p + k, s.p + k + 1);
        }
        w->spans.p[i] = (ox_span){(uint32_t)at, (uint32_t)(to->n - at)};
    }
    return ox_tok_swap_text(w);
}

bool ox_tok_is_byte_level(const ox_pretokenizer *p, const ox_regex **split)
{
    *split = p->regex;
    return p->kind->run == run_byte_level && !p->on[ADD_SPACE];
}

static ox_status read_how(const ox_json *json, ox_split_how *how, ox_err *err)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    ox_str name = {0};
    OX_TRY(ox_json_opt_str(json, "behavior", &name, err));
    if (!name.p) return OX_OK;
    for (size_t i = 0; i < OX_COUNT(names); i++) {
        if (!ox_str_is(name, names[i])) continue;
        *how = (ox_split_how)i;
        return OX_OK;
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "split behavior \"%.*s\" is not supported",
                   OX_STR_ARGS(name));
}

static ox_status read_split(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json, ox_err *err)
{
    p->how = OX_SPLIT_ISOLATED;
    OX_TRY(read_how(json, &p->how, err));
    OX_TRY(ox_json_opt_bool(json, "invert", &p->invert, err));
    return ox_tok_read_pattern(tok, json, "pre-tokenizer Split", &p->regex, &p->text, err);
}

static ox_status read_whitespace_split(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json,
                                       ox_err *err)
{
    (void)tok;
    (void)json;
    (void)err;
    p->is = ox_char_is_space;
    p->how = OX_SPLIT_REMOVED;
    return OX_OK;
}

static ox_status read_delimiter(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json,
                                ox_err *err)
{
    OX_TRY(ox_json_need_str(json, "delimiter", &p->text, err));
    if (!p->text.n || ox_utf8_length(p->text.p, p->text.n) != p->text.n)
        return OX_FAIL(err, OX_BAD_FILE, "\"delimiter\" must be one character");
    p->how = OX_SPLIT_REMOVED;
    return ox_tok_copy(tok, p->text, &p->text, err);
}

static ox_status read_punctuation(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json,
                                  ox_err *err)
{
    (void)tok;
    p->is = ox_char_is_punct;
    p->how = OX_SPLIT_ISOLATED;
    return read_how(json, &p->how, err);
}

static ox_status read_digits(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json,
                             ox_err *err)
{
    bool single = false;
    (void)tok;
    OX_TRY(ox_json_opt_bool(json, "individual_digits", &single, err));
    p->is = ox_char_is_numeric;
    p->how = single ? OX_SPLIT_ISOLATED : OX_SPLIT_CONTIGUOUS;
    return OX_OK;
}

enum { PREPEND_FIRST, PREPEND_NEVER };

static ox_status read_metaspace(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json,
                                ox_err *err)
{
    ox_str scheme = {0};
    bool add = true, split = true;
    OX_TRY(ox_json_need_str(json, "replacement", &p->text, err));
    if (!p->text.n || ox_utf8_length(p->text.p, p->text.n) != p->text.n)
        return OX_FAIL(err, OX_BAD_FILE, "\"replacement\" must be one character");
    OX_TRY(ox_json_opt_str(json, "prepend_scheme", &scheme, err));
    OX_TRY(ox_json_opt_bool(json, "add_prefix_space", &add, err));
    OX_TRY(ox_json_opt_bool(json, "split", &split, err));
    p->on[PREPEND_FIRST] = ox_str_is(scheme, "first");
    p->on[PREPEND_NEVER] = ox_str_is(scheme, "never") || (!scheme.p && !add);
    if (scheme.p && !p->on[PREPEND_FIRST] && !p->on[PREPEND_NEVER] && !ox_str_is(scheme, "always"))
        return OX_FAIL(err, OX_UNSUPPORTED, "prepend_scheme \"%.*s\" is not supported",
                       OX_STR_ARGS(scheme));
    tok->needs_origin = tok->needs_origin || p->on[PREPEND_FIRST];
    p->how = OX_SPLIT_WITH_NEXT;
    p->invert = !split; /* stands for: don't split */
    return ox_tok_copy(tok, p->text, &p->text, err);
}

static void put_metaspace(ox_tok_work *w, ox_buf *to, ox_str s, ox_str replacement)
{
    size_t done = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != ' ') continue;
        ox_buf_put(to, s.p + done, i - done);
        ox_tok_copied(w, to, w->now, s.p + done, s.p + i);
        ox_buf_put_str(to, replacement);
        ox_tok_made(w, to, w->now, s.p + i, s.p + i + 1);
        done = i + 1;
    }
    ox_buf_put(to, s.p + done, s.n - done);
    ox_tok_copied(w, to, w->now, s.p + done, s.p + s.n);
}

static ox_status run_metaspace(const ox_pretokenizer *p, ox_tok_work *w)
{
    ox_buf *to = ox_tok_next_text(w);
    for (size_t i = 0; i < w->spans.n && to->n <= OX_TOK_MAX_BYTES; i++) {
        const size_t at = to->n;
        put_metaspace(w, to, piece_of(w, i), p->text);
        w->spans.p[i] = (ox_span){(uint32_t)at, (uint32_t)(to->n - at)};
    }
    OX_TRY(ox_tok_swap_text(w));
    if (!p->on[PREPEND_NEVER]) OX_TRY(add_prefix(w, p->text, p->on[PREPEND_FIRST]));
    if (p->invert) return OX_OK;
    const ox_pretokenizer split = {.text = p->text, .how = OX_SPLIT_WITH_NEXT};
    return ox_tok_split(&split, w);
}

static bool push_piece(ox_tok_work *w, const char *begin, const char *end)
{
    return ox_vec_push(&w->next, (ox_span){(uint32_t)(begin - w->now.p), (uint32_t)(end - begin)});
}

static ox_status take_next(ox_tok_work *w)
{
    const ox_spans old = w->spans;
    w->spans = w->next;
    w->next = old;
    return OX_OK;
}

/* Runs of word characters and runs of neither word nor space; space is dropped. */
static ox_status run_whitespace(const ox_pretokenizer *p, ox_tok_work *w)
{
    enum { NONE, WORD, OTHER };
    (void)p;
    w->next.n = 0;
    for (size_t i = 0; i < w->spans.n; i++) {
        const ox_str s = piece_of(w, i);
        int in = NONE;
        for (const char *at = s.p, *q = s.p; at < s.p + s.n; at = q) {
            const uint32_t c = ox_utf8_next(&q);
            const int kind = ox_char_is_word(c) ? WORD : ox_char_is_space(c) ? NONE : OTHER;
            const uint32_t pos = (uint32_t)(at - w->now.p), n = (uint32_t)(q - at);
            if (kind != NONE && kind == in)
                w->next.p[w->next.n - 1].n += n;
            else if (kind != NONE && !ox_vec_push(&w->next, (ox_span){pos, n}))
                return ox_tok_no_memory(w);
            in = kind;
        }
    }
    return take_next(w);
}

static ox_status run_bert(const ox_pretokenizer *p, ox_tok_work *w)
{
    (void)p;
    OX_TRY(ox_tok_split_chars(w, ox_char_is_space, OX_SPLIT_REMOVED, false));
    return ox_tok_split_chars(w, ox_char_is_punct, OX_SPLIT_ISOLATED, false);
}

static ox_status read_fixed_length(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json,
                                   ox_err *err)
{
    int64_t length = 5;
    (void)tok;
    OX_TRY(ox_json_opt_i64(json, "length", 1, 1 << 30, &length, err));
    p->length = (size_t)length;
    return OX_OK;
}

static ox_status run_fixed_length(const ox_pretokenizer *p, ox_tok_work *w)
{
    w->next.n = 0;
    for (size_t i = 0; i < w->spans.n; i++) {
        const ox_str s = piece_of(w, i);
        const char *q = s.p;
        while (q < s.p + s.n) {
            const char *begin = q;
            for (size_t k = 0; k < p->length && q < s.p + s.n; k++)
                ox_utf8_next(&q);
            if (!push_piece(w, begin, q)) return ox_tok_no_memory(w);
        }
    }
    return take_next(w);
}

typedef struct script_range {
    uint32_t first, last;
    int script; /* 0 = goes with any */
} script_range;

static const script_range scripts[] = {
#define S(first, last, script) {first, last, script},
#include "text/scripts.def"
#undef S
};

static int script_of(uint32_t c)
{
    size_t low = 0, high = OX_COUNT(scripts);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c > scripts[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < OX_COUNT(scripts) && c >= scripts[low].first ? scripts[low].script : 0;
}

/* A new piece begins where the script changes. Characters that go with any change nothing; before
 * the first other one they are dropped. */
static ox_status run_unicode_scripts(const ox_pretokenizer *p, ox_tok_work *w)
{
    (void)p;
    w->next.n = 0;
    for (size_t i = 0; i < w->spans.n; i++) {
        const ox_str s = piece_of(w, i);
        const char *begin = NULL;
        int last = 0;
        for (const char *at = s.p, *q = s.p; at < s.p + s.n; at = q) {
            const int script = script_of(ox_utf8_next(&q));
            if (script && script != last) {
                if (begin && !push_piece(w, begin, at)) return ox_tok_no_memory(w);
                begin = at;
                last = script;
            }
        }
        if (begin && !push_piece(w, begin, s.p + s.n)) return ox_tok_no_memory(w);
    }
    return take_next(w);
}

static const ox_pretokenizer_kind kinds[] = {
#define OX_PRETOKENIZER(name, read, run, rewrites) {#name, read, run, rewrites},
#include "text/tok/pretokenizers.def"
#undef OX_PRETOKENIZER
};

ox_status ox_tok_read_pretokenizers(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err)
{
    ox_str type;
    if (ox_json_is_null(json)) return OX_OK;
    OX_TRY(ox_json_need_str(json, "type", &type, err));
    if (ox_str_is(type, "Sequence") && depth < 8) {
        const ox_json *list = ox_json_get(json, "pretokenizers");
        for (size_t i = 0; i < ox_json_n(list); i++)
            OX_TRY(ox_tok_read_pretokenizers(tok, ox_json_at(list, i), depth + 1, err));
        return OX_OK;
    }
    if (tok->pretokenizers.n == OX_TOK_MAX_STEPS)
        return OX_FAIL(err, OX_LIMIT, "more than %d pre-tokenizers", (int)OX_TOK_MAX_STEPS);
    for (size_t i = 0; i < OX_COUNT(kinds); i++) {
        if (!ox_str_is(type, kinds[i].name)) continue;
        if (!ox_vec_push(&tok->pretokenizers, (ox_pretokenizer){.kind = &kinds[i]}))
            return OX_FAIL(err, OX_NO_MEMORY, "out of memory for pre-tokenizers");
        ox_pretokenizer *p = &tok->pretokenizers.p[tok->pretokenizers.n - 1];
        return kinds[i].read ? kinds[i].read(tok, p, json, err) : OX_OK;
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "pre-tokenizer \"%.*s\" is not supported",
                   OX_STR_ARGS(type));
}

ox_status ox_tok_pretokenize(ox_tok_work *w, ox_str text, bool at_start)
{
    w->now = text;
    w->spans.n = 0;
    if (!text.n) return OX_OK;
    w->at_start = at_start && (!w->track || ox_tok_begins_text(w));
    if (!ox_vec_push(&w->spans, (ox_span){0, (uint32_t)text.n})) return ox_tok_no_memory(w);
    for (size_t i = 0; i < w->tok->pretokenizers.n; i++) {
        const ox_pretokenizer *p = &w->tok->pretokenizers.p[i];
        OX_TRY(p->kind->run(p, w));
        w->at_start = w->at_start && w->spans.n && w->spans.p[0].at == 0;
    }
    return OX_OK;
}
