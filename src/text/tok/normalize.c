/* normalize.c - the normalizers, one function a kind; each rewrites one piece of
 * text as a whole. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

static ox_status run_form(ox_tok_work *w, ox_str in, bool compat, bool compose, ox_buf *out)
{
    return ox_tok_normal_form(w, in, compat, compose, out) ? OX_OK : ox_tok_no_memory(w);
}

static ox_status run_nfc(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    return run_form(w, in, false, true, out);
}

static ox_status run_nfd(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    return run_form(w, in, false, false, out);
}

static ox_status run_nfkc(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    return run_form(w, in, true, true, out);
}

static ox_status run_nfkd(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    return run_form(w, in, true, false, out);
}

static void put_lowercase(ox_tok_work *w, ox_str in, ox_buf *out)
{
    for (const char *p = in.p, *end = in.p + in.n; p < end;) {
        const char *at = p;
        ox_char_put_lower(out, ox_utf8_next(&p));
        ox_tok_made(w, out, in, at, p);
    }
}

static ox_status run_lowercase(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    put_lowercase(w, in, out);
    return OX_OK;
}

static ox_status read_strip(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json, ox_err *err)
{
    (void)tok;
    OX_TRY(ox_json_need_bool(json, "strip_left", &n->on[0], err));
    return ox_json_need_bool(json, "strip_right", &n->on[1], err);
}

static ox_status run_strip(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    const char *begin = in.p, *end = in.p + in.n, *last = in.p;
    for (const char *p = in.p; p < end;) {
        const char *at = p;
        if (ox_char_is_space(ox_utf8_next(&p))) continue;
        if (last == in.p && n->on[0]) begin = at;
        last = p;
    }
    if (last == in.p && (n->on[0] || n->on[1])) return OX_OK; /* nothing but space */
    if (n->on[1]) end = last;
    ox_buf_put(out, begin, (size_t)(end - begin));
    ox_tok_copied(w, out, in, begin, end);
    return OX_OK;
}

static void put_without(ox_tok_work *w, ox_str in, bool (*drop)(uint32_t), ox_buf *out)
{
    for (const char *p = in.p, *end = in.p + in.n; p < end;) {
        const char *at = p;
        if (!drop(ox_utf8_next(&p))) ox_buf_put(out, at, (size_t)(p - at));
        ox_tok_made(w, out, in, at, p);
    }
}

static ox_status run_strip_accents(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    put_without(w, in, ox_char_is_mark, out);
    return OX_OK;
}

enum { BERT_CLEAN, BERT_CHINESE };

static ox_status run_strip_nonspacing(const ox_normalizer *n, ox_tok_work *w, ox_str in,
                                      ox_buf *out)
{
    (void)n;
    put_without(w, in, ox_char_is_mark_nonspacing, out);
    return OX_OK;
}

/* Another step by its name in normalizers.def. */
static ox_status push_step(ox_tokenizer *tok, const char *name, ox_err *err);

/* The cleaning is this step; what else is asked for follows as steps of its own. */
static ox_status read_bert(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json, ox_err *err)
{
    bool accents, lower;
    OX_TRY(ox_json_need_bool(json, "clean_text", &n->on[BERT_CLEAN], err));
    OX_TRY(ox_json_need_bool(json, "handle_chinese_chars", &n->on[BERT_CHINESE], err));
    OX_TRY(ox_json_need_bool(json, "lowercase", &lower, err));
    accents = lower;
    OX_TRY(ox_json_opt_bool(json, "strip_accents", &accents, err));
    if (accents) {
        OX_TRY(push_step(tok, "NFD", err));
        OX_TRY(push_step(tok, "StripNonspacing", err));
    }
    return lower ? push_step(tok, "Lowercase", err) : OX_OK;
}

static bool is_ideograph(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_bert_control(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r') return false;
    return c == 0 || c == 0xfffd || ox_char_is_other(c);
}

/* Cleaning and padding of ideographs, character by character. */
static ox_status run_bert(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    for (const char *p = in.p, *end = in.p + in.n; p < end;) {
        const char *at = p;
        const uint32_t c = ox_utf8_next(&p);
        if (n->on[BERT_CLEAN] && is_bert_control(c)) continue;
        const bool pad = n->on[BERT_CHINESE] && is_ideograph(c);
        if (pad) ox_buf_put_c(out, ' ');
        if (n->on[BERT_CLEAN] && ox_char_is_space(c))
            ox_buf_put_c(out, ' ');
        else
            ox_buf_put(out, at, (size_t)(p - at));
        if (pad) ox_buf_put_c(out, ' ');
        ox_tok_made(w, out, in, at, p);
    }
    return OX_OK;
}

static bool nmt_drops(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
           c == 0x9f;
}

static bool nmt_is_space(uint32_t c)
{
    return c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
           (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xfeff || c == 0xfffd;
}

static ox_status run_nmt(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    for (const char *p = in.p, *end = in.p + in.n; p < end;) {
        const char *at = p;
        const uint32_t c = ox_utf8_next(&p);
        if (nmt_drops(c)) continue;
        if (nmt_is_space(c))
            ox_buf_put_c(out, ' ');
        else
            ox_buf_put(out, at, (size_t)(p - at));
        ox_tok_made(w, out, in, at, p);
    }
    return OX_OK;
}

static ox_status read_replace(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json, ox_err *err)
{
    OX_TRY(ox_tok_read_pattern(tok, json, "normalizer Replace", &n->regex, &n->text, err));
    OX_TRY(ox_json_need_str(json, "content", &n->content, err));
    return ox_tok_copy(tok, n->content, &n->content, err);
}

/* What one step may make of a text: more is a file that wants the machine's memory. */
static size_t most_bytes(ox_str in)
{
    const size_t most = (in.n < OX_TOK_MAX_BYTES / 64 ? in.n * 64 : OX_TOK_MAX_BYTES) + (1 << 20);
    return most < OX_TOK_MAX_BYTES ? most : OX_TOK_MAX_BYTES;
}

/* All matches give way to the literal content. */
static ox_status run_replace(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    size_t done = 0, at = 0, last_end = SIZE_MAX;
    while (in.n && at <= in.n) {
        bool hit = true;
        size_t begin, end;
        if (n->regex) {
            OX_TRY(ox_regex_next(n->regex, &w->run, in, at, &hit, &begin, &end, w->err));
        } else {
            begin = ox_str_find(in, n->text, at);
            hit = begin != SIZE_MAX;
            end = begin + n->text.n;
        }
        if (!hit) break;
        at = end > begin ? end : end + (end < in.n ? ox_utf8_length(in.p + end, in.n - end) : 1);
        if (begin == end && end == last_end) continue; /* nothing, right behind a match */
        last_end = end;
        ox_buf_put(out, in.p + done, begin - done);
        ox_tok_copied(w, out, in, in.p + done, in.p + begin);
        ox_buf_put_str(out, n->content);
        ox_tok_made(w, out, in, in.p + begin, in.p + end);
        done = end;
        if (out->n > most_bytes(in)) break;
    }
    if (done < in.n) ox_buf_put(out, in.p + done, in.n - done);
    ox_tok_copied(w, out, in, in.p + done, in.p + in.n);
    return OX_OK;
}

static ox_status read_prepend(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json, ox_err *err)
{
    OX_TRY(ox_json_need_str(json, "prepend", &n->text, err));
    return ox_tok_copy(tok, n->text, &n->text, err);
}

static ox_status run_prepend(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    if (!in.n) return OX_OK;
    ox_buf_put_str(out, n->text);
    ox_tok_made(w, out, in, in.p, in.p + ox_utf8_length(in.p, in.n));
    ox_buf_put_str(out, in);
    ox_tok_copied(w, out, in, in.p, in.p + in.n);
    return OX_OK;
}

static ox_status run_byte_level(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    (void)n;
    if (!w->track) {
        ox_bytes_to_chars(in, out);
        return OX_OK;
    }
    for (size_t i = 0; i < in.n; i++) {
        ox_bytes_to_chars((ox_str){in.p + i, 1}, out);
        ox_tok_made(w, out, in, in.p + i, in.p + i + 1);
    }
    return OX_OK;
}

static const ox_normalizer_kind kinds[] = {
#define OX_NORMALIZER(name, read, run, skips_ascii) {#name, read, run, skips_ascii},
#include "text/tok/normalizers.def"
#undef OX_NORMALIZER
};

static ox_status push_step(ox_tokenizer *tok, const char *name, ox_err *err)
{
    size_t i = 0;
    while (strcmp(kinds[i].name, name) != 0)
        i++;
    if (tok->normalizers.n >= OX_TOK_MAX_STEPS)
        return OX_FAIL(err, OX_LIMIT, "more than %d normalizers", (int)OX_TOK_MAX_STEPS);
    return ox_vec_push(&tok->normalizers, (ox_normalizer){.kind = &kinds[i]})
               ? OX_OK
               : OX_FAIL(err, OX_NO_MEMORY, "out of memory for normalizers");
}

ox_status ox_tok_read_normalizers(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err)
{
    ox_str type;
    if (ox_json_is_null(json)) return OX_OK;
    OX_TRY(ox_json_need_str(json, "type", &type, err));
    if (ox_str_is(type, "Sequence") && depth < 8) {
        const ox_json *list = ox_json_get(json, "normalizers");
        for (size_t i = 0; i < ox_json_n(list); i++)
            OX_TRY(ox_tok_read_normalizers(tok, ox_json_at(list, i), depth + 1, err));
        return OX_OK;
    }
    if (tok->normalizers.n == OX_TOK_MAX_STEPS)
        return OX_FAIL(err, OX_LIMIT, "more than %d normalizers", (int)OX_TOK_MAX_STEPS);
    for (size_t i = 0; i < OX_COUNT(kinds); i++) {
        if (!ox_str_is(type, kinds[i].name)) continue;
        if (!ox_vec_push(&tok->normalizers, (ox_normalizer){.kind = &kinds[i]}))
            return OX_FAIL(err, OX_NO_MEMORY, "out of memory for normalizers");
        ox_normalizer *n = &tok->normalizers.p[tok->normalizers.n - 1];
        return kinds[i].read ? kinds[i].read(tok, n, json, err) : OX_OK;
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "normalizer \"%.*s\" is not supported", OX_STR_ARGS(type));
}

static bool is_ascii(ox_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] >= 0x80) return false;
    }
    return true;
}

ox_status ox_tok_normalize(ox_tok_work *w, ox_str text, ox_str *out)
{
    unsigned turn = 0;
    for (size_t i = 0; i < w->tok->normalizers.n; i++) {
        const ox_normalizer *n = &w->tok->normalizers.p[i];
        if (n->kind->skips_ascii && is_ascii(text)) continue;
        ox_buf *to = &w->normal[turn];
        ox_buf_clear(to);
        w->made.n = 0;
        OX_TRY(n->kind->run(n, w, text, to));
        if (to->failed) return ox_tok_no_memory(w);
        if (to->n > most_bytes(text))
            return OX_FAIL(w->err, OX_LIMIT, "normalizer %s makes %zu bytes longer than %zu",
                           n->kind->name, text.n, most_bytes(text));
        if (w->track && w->made.n != to->n) return ox_tok_no_memory(w);
        if (w->track) {
            const ox_origins old = w->normal_from[turn];
            w->normal_from[turn] = w->made;
            w->made = old;
            w->from = w->normal_from[turn].p;
        }
        text = ox_buf_view(to);
        turn ^= 1;
    }
    *out = text;
    return OX_OK;
}
