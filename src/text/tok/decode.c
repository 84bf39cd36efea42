/* decode.c - ids back to text. The decoders of the file act one after the other on the list of
 * token strings; without any, tokens are joined by spaces. pieces.c has the short way that most
 * files allow. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

static void end_token(ox_token_list *out, size_t at)
{
    if (out->text.failed) return; /* at may be off */
    if (!ox_vec_push(&out->spans, (ox_span){(uint32_t)at, (uint32_t)(out->text.n - at)}))
        out->text.failed = true;
}

static ox_str token_at(const ox_token_list *list, size_t i)
{
    const ox_span s = list->spans.p[i];
    return s.n ? (ox_str){list->text.p + s.at, s.n} : (ox_str){"", 0}; /* text.p may be NULL */
}

static void piece_byte_level(const ox_decoder *d, ox_str token, ox_buf *out)
{
    (void)d;
    if (!ox_chars_to_bytes(token, out)) ox_buf_put_str(out, token);
}

static void all_byte_level(const ox_decoder *d, const ox_token_list *in, ox_token_list *out)
{
    ox_buf bytes = {0};
    for (size_t i = 0; i < in->spans.n; i++)
        piece_byte_level(d, token_at(in, i), &bytes);
    if (bytes.failed) out->text.failed = true;
    ox_utf8_put_lossy(&out->text, ox_buf_view(&bytes));
    end_token(out, 0);
    ox_buf_deinit(&bytes);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return -1;
}

int ox_tok_byte_token(ox_str t)
{
    if (t.n != 6 || memcmp(t.p, "<0x", 3) != 0 || t.p[5] != '>') return -1;
    const int a = hex_digit(t.p[3]), b = hex_digit(t.p[4]);
    return a < 0 || b < 0 ? -1 : a * 16 + b;
}

static void piece_byte_fallback(const ox_decoder *d, ox_str token, ox_buf *out)
{
    const int b = ox_tok_byte_token(token);
    (void)d;
    if (b < 0)
        ox_buf_put_str(out, token);
    else
        ox_buf_put_c(out, (char)b);
}

/* A run of bytes is text only as a whole; else every byte becomes U+FFFD. */
static void end_byte_run(ox_token_list *out, ox_buf *run)
{
    const size_t at = out->text.n;
    if (!run->n) return;
    if (ox_utf8_check(ox_buf_view(run)) == run->n) {
        ox_buf_put_str(&out->text, ox_buf_view(run));
        end_token(out, at);
    } else {
        for (size_t i = 0; i < run->n; i++) {
            ox_buf_put_z(&out->text, "\xef\xbf\xbd");
            end_token(out, out->text.n - 3);
        }
    }
    ox_buf_clear(run);
}

static void all_byte_fallback(const ox_decoder *d, const ox_token_list *in, ox_token_list *out)
{
    ox_buf run = {0};
    (void)d;
    for (size_t i = 0; i < in->spans.n; i++) {
        const ox_str t = token_at(in, i);
        const int b = ox_tok_byte_token(t);
        if (b >= 0) {
            ox_buf_put_c(&run, (char)b);
            continue;
        }
        end_byte_run(out, &run);
        ox_buf_put_str(&out->text, t);
        end_token(out, out->text.n - t.n);
    }
    end_byte_run(out, &run);
    if (run.failed) out->text.failed = true;
    ox_buf_deinit(&run);
}

static void all_fuse(const ox_decoder *d, const ox_token_list *in, ox_token_list *out)
{
    (void)d;
    for (size_t i = 0; i < in->spans.n; i++)
        ox_buf_put_str(&out->text, token_at(in, i));
    end_token(out, 0);
}

static void put_replaced(ox_str in, ox_str from, ox_str to, ox_buf *out)
{
    size_t done = 0;
    while (from.n) {
        const size_t at = ox_str_find(in, from, done);
        if (at == SIZE_MAX) break;
        ox_buf_put(out, in.p + done, at - done);
        ox_buf_put_str(out, to);
        done = at + from.n;
    }
    ox_buf_put(out, in.p + done, in.n - done);
}

static ox_status read_replace(ox_tokenizer *tok, ox_decoder *d, const ox_json *json, ox_err *err)
{
    OX_TRY(ox_tok_read_pattern(tok, json, "decoder Replace", &d->regex, &d->text, err));
    OX_TRY(ox_json_need_str(json, "content", &d->content, err));
    return ox_tok_copy(tok, d->content, &d->content, err);
}

/* A pattern that takes too long on a token leaves the rest of it as it is. */
static void put_regex_replaced(const ox_decoder *d, ox_str in, ox_buf *out)
{
    ox_regex_run run = {0};
    ox_err err = OX_ERR_INIT;
    size_t done = 0, at = 0, last_end = SIZE_MAX;
    bool hit = true;
    while (at <= in.n && hit) {
        size_t begin, end;
        if (ox_regex_next(d->regex, &run, in, at, &hit, &begin, &end, &err) || !hit) break;
        at = end > begin ? end : end + (end < in.n ? ox_utf8_length(in.p + end, in.n - end) : 1);
        if (begin == end && end == last_end) continue; /* nothing, right behind a match */
        last_end = end;
        ox_buf_put(out, in.p + done, begin - done);
        ox_buf_put_str(out, d->content);
        done = end;
    }
    if (done < in.n) ox_buf_put(out, in.p + done, in.n - done);
    ox_regex_run_deinit(&run);
}

static void one_replace(const ox_decoder *d, ox_str token, size_t i, size_t n, ox_buf *out)
{
    (void)i;
    (void)n;
    if (d->regex) {
        put_regex_replaced(d, token, out);
        return;
    }
    put_replaced(token, d->text, d->content, out);
}

static ox_status read_char(ox_tokenizer *tok, const ox_json *json, const char *key, ox_str *out,
                           ox_err *err)
{
    OX_TRY(ox_json_need_str(json, key, out, err));
    if (!out->n || ox_utf8_length(out->p, out->n) != out->n)
        return OX_FAIL(err, OX_BAD_FILE, "\"%s\" must be one character", key);
    return ox_tok_copy(tok, *out, out, err);
}

static ox_status read_strip(ox_tokenizer *tok, ox_decoder *d, const ox_json *json, ox_err *err)
{
    int64_t start = 0, stop = 0;
    OX_TRY(read_char(tok, json, "content", &d->text, err));
    OX_TRY(ox_json_need_i64(json, "start", 0, 1 << 20, &start, err));
    OX_TRY(ox_json_need_i64(json, "stop", 0, 1 << 20, &stop, err));
    d->n_start = (uint32_t)start;
    d->n_stop = (uint32_t)stop;
    return OX_OK;
}

static void one_strip(const ox_decoder *d, ox_str token, size_t i, size_t n, ox_buf *out)
{
    (void)i;
    (void)n;
    for (uint32_t k = 0; k < d->n_start && ox_str_starts(token, d->text); k++)
        token = (ox_str){token.p + d->text.n, token.n - d->text.n};
    for (uint32_t k = 0; k < d->n_stop && ox_str_ends(token, d->text); k++)
        token.n -= d->text.n;
    ox_buf_put_str(out, token);
}

static void piece_same(const ox_decoder *d, ox_str token, ox_buf *out)
{
    (void)d;
    ox_buf_put_str(out, token);
}

static ox_status read_metaspace(ox_tokenizer *tok, ox_decoder *d, const ox_json *json, ox_err *err)
{
    ox_str scheme = {0};
    bool add = true;
    OX_TRY(read_char(tok, json, "replacement", &d->text, err));
    OX_TRY(ox_json_opt_str(json, "prepend_scheme", &scheme, err));
    OX_TRY(ox_json_opt_bool(json, "add_prefix_space", &add, err));
    d->on[OX_DECODER_KEEPS_FIRST] = ox_str_is(scheme, "never") || (!scheme.p && !add);
    return OX_OK;
}

static void one_metaspace(const ox_decoder *d, ox_str token, size_t i, size_t n, ox_buf *out)
{
    (void)n;
    put_replaced(token, d->text,
                 i == 0 && !d->on[OX_DECODER_KEEPS_FIRST] ? OX_STR("") : OX_STR(" "), out);
}

static ox_status read_wordpiece(ox_tokenizer *tok, ox_decoder *d, const ox_json *json, ox_err *err)
{
    d->text = OX_STR("##");
    d->on[OX_DECODER_CLEANS_UP] = true;
    OX_TRY(ox_json_opt_str(json, "prefix", &d->text, err));
    OX_TRY(ox_json_opt_bool(json, "cleanup", &d->on[OX_DECODER_CLEANS_UP], err));
    return ox_tok_copy(tok, d->text, &d->text, err);
}

static void put_cleaned(ox_str in, ox_buf *out)
{
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    ox_buf a = {0}, b = {0};
    ox_buf_put_str(&a, in);
    for (size_t i = 0; i < OX_COUNT(pairs); i++) {
        ox_buf_clear(&b);
        put_replaced(ox_buf_view(&a), ox_str_of(pairs[i][0]), ox_str_of(pairs[i][1]), &b);
        const ox_buf swap = a;
        a = b;
        b = swap;
    }
    ox_buf_put_str(out, ox_buf_view(&a));
    if (a.failed || b.failed) out->failed = true;
    ox_buf_deinit(&a);
    ox_buf_deinit(&b);
}

static void one_wordpiece(const ox_decoder *d, ox_str token, size_t i, size_t n, ox_buf *out)
{
    ox_buf joined = {0};
    (void)n;
    if (i > 0 && d->text.n && ox_str_starts(token, d->text)) {
        token = (ox_str){token.p + d->text.n, token.n - d->text.n};
    } else if (i > 0 && d->text.n) {
        ox_buf_put_c(&joined, ' ');
    }
    ox_buf_put_str(&joined, token);
    if (d->on[OX_DECODER_CLEANS_UP])
        put_cleaned(ox_buf_view(&joined), out);
    else
        ox_buf_put_str(out, ox_buf_view(&joined));
    if (joined.failed) out->failed = true;
    ox_buf_deinit(&joined);
}

static ox_status read_suffix(ox_tokenizer *tok, ox_decoder *d, const ox_json *json, ox_err *err)
{
    d->text = OX_STR("</w>");
    OX_TRY(ox_json_opt_str(json, "suffix", &d->text, err));
    return ox_tok_copy(tok, d->text, &d->text, err);
}

static void one_suffix(const ox_decoder *d, ox_str token, size_t i, size_t n, ox_buf *out)
{
    put_replaced(token, d->text, i + 1 == n ? OX_STR("") : OX_STR(" "), out);
}

static ox_status read_ctc(ox_tokenizer *tok, ox_decoder *d, const ox_json *json, ox_err *err)
{
    d->text = OX_STR("<pad>");
    d->content = OX_STR("|");
    d->on[OX_DECODER_CLEANS_UP] = true;
    OX_TRY(ox_json_opt_str(json, "pad_token", &d->text, err));
    OX_TRY(ox_json_opt_str(json, "word_delimiter_token", &d->content, err));
    OX_TRY(ox_json_opt_bool(json, "cleanup", &d->on[OX_DECODER_CLEANS_UP], err));
    OX_TRY(ox_tok_copy(tok, d->text, &d->text, err));
    return ox_tok_copy(tok, d->content, &d->content, err);
}

/* Runs of one token count once; pads vanish. */
static void all_ctc(const ox_decoder *d, const ox_token_list *in, ox_token_list *out)
{
    ox_buf kept = {0}, cleaned = {0};
    for (size_t i = 0; i < in->spans.n; i++) {
        const ox_str t = token_at(in, i);
        if (i && ox_str_eq(t, token_at(in, i - 1))) continue;
        ox_buf_clear(&kept);
        ox_buf_clear(&cleaned);
        put_replaced(t, d->text, OX_STR(""), &kept);
        if (d->on[OX_DECODER_CLEANS_UP]) put_cleaned(ox_buf_view(&kept), &cleaned);
        const size_t at = out->text.n;
        if (d->on[OX_DECODER_CLEANS_UP])
            put_replaced(ox_buf_view(&cleaned), d->content, OX_STR(" "), &out->text);
        else
            ox_buf_put_str(&out->text, ox_buf_view(&kept));
        if (out->text.n > at) end_token(out, at);
    }
    if (kept.failed || cleaned.failed) out->text.failed = true;
    ox_buf_deinit(&kept);
    ox_buf_deinit(&cleaned);
}

static const ox_decoder_kind kinds[] = {
#define OX_DECODER(name, read, one, all, piece) {#name, read, one, all, piece},
#include "text/tok/decoders.def"
#undef OX_DECODER
};

ox_status ox_tok_read_decoders(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err)
{
    ox_str type;
    if (ox_json_is_null(json)) return OX_OK;
    tok->has_decoder = true;
    OX_TRY(ox_json_need_str(json, "type", &type, err));
    if (ox_str_is(type, "Sequence") && depth < 8) {
        const ox_json *list = ox_json_get(json, "decoders");
        for (size_t i = 0; i < ox_json_n(list); i++)
            OX_TRY(ox_tok_read_decoders(tok, ox_json_at(list, i), depth + 1, err));
        return OX_OK;
    }
    if (tok->decoders.n == OX_TOK_MAX_STEPS)
        return OX_FAIL(err, OX_LIMIT, "more than %d decoders", (int)OX_TOK_MAX_STEPS);
    for (size_t i = 0; i < OX_COUNT(kinds); i++) {
        if (!ox_str_is(type, kinds[i].name)) continue;
        if (!ox_vec_push(&tok->decoders, (ox_decoder){.kind = &kinds[i]}))
            return OX_FAIL(err, OX_NO_MEMORY, "out of memory for decoders");
        ox_decoder *d = &tok->decoders.p[tok->decoders.n - 1];
        return kinds[i].read ? kinds[i].read(tok, d, json, err) : OX_OK;
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "decoder \"%.*s\" is not supported", OX_STR_ARGS(type));
}

static void list_clear(ox_token_list *list)
{
    ox_buf_clear(&list->text);
    list->spans.n = 0;
}

static void list_deinit(ox_token_list *list)
{
    ox_buf_deinit(&list->text);
    ox_vec_deinit(&list->spans);
}

static void run_decoder(const ox_decoder *d, const ox_token_list *in, ox_token_list *out)
{
    list_clear(out);
    if (d->kind->all) {
        d->kind->all(d, in, out);
        return;
    }
    for (size_t i = 0; i < in->spans.n; i++) {
        const size_t at = out->text.n;
        d->kind->one(d, token_at(in, i), i, in->spans.n, &out->text);
        end_token(out, at);
    }
}

/* decoders[from..] on the list *a; *b is room. */
bool ox_tok_run_decoders(const ox_tokenizer *tok, size_t from, ox_token_list *a, ox_token_list *b)
{
    bool ok = !a->text.failed;
    for (size_t i = from; i < tok->decoders.n && a->spans.n && ok; i++) {
        run_decoder(&tok->decoders.p[i], a, b);
        ok = !b->text.failed;
        const ox_token_list swap = *a;
        *a = *b;
        *b = swap;
    }
    return ok;
}

static ox_status decode_slowly(const ox_tokenizer *tok, const int32_t *ids, size_t n,
                               bool skip_special, ox_buf *out, ox_err *err)
{
    ox_token_list a = {0}, b = {0};
    for (size_t i = 0; i < n; i++) {
        const ox_str t = ox_tok_shown(tok, ids[i]);
        if (!t.p || (skip_special && ox_tok_is_hidden(tok, ids[i]))) continue;
        if (!tok->has_decoder && a.spans.n) ox_buf_put_c(&a.text, ' ');
        ox_buf_put_str(&a.text, t);
        end_token(&a, a.text.n - t.n);
        if (a.text.n > OX_TOK_MAX_BYTES) break;
    }
    if (a.text.n > OX_TOK_MAX_BYTES) {
        list_deinit(&a);
        return OX_FAIL(err, OX_LIMIT, "the text of %zu ids is longer than %d bytes", n,
                       (int)OX_TOK_MAX_BYTES);
    }
    const bool ok = ox_tok_run_decoders(tok, 0, &a, &b);
    ox_buf_put_str(out, ox_buf_view(&a.text));
    list_deinit(&a);
    list_deinit(&b);
    return ok && !out->failed
               ? OX_OK
               : OX_FAIL(err, OX_NO_MEMORY, "out of memory while decoding %zu ids", n);
}

ox_status ox_tokenizer_decode(const ox_tokenizer *tok, const int32_t *ids, size_t n,
                              bool skip_special, ox_buf *out, ox_err *err)
{
    if (tok->decode_how == OX_DECODE_SLOWLY)
        return decode_slowly(tok, ids, n, skip_special, out, err);
    return ox_tok_decode_pieces(tok, ids, n, skip_special, out, err);
}
