/* encode.c - runs a text through the parts of a tokenizer; see text/tokenizer.h for the order. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

static ox_status put_id(ox_tok_work *w, int32_t id, ox_range range)
{
    if (w->ranges && !ox_vec_push(w->ranges, range)) return ox_tok_no_memory(w);
    return ox_ids_push(w->ids, id) ? OX_OK : ox_tok_no_memory(w);
}

static ox_status encode_run(ox_tok_work *w, ox_str text, bool at_start)
{
    const bool moves = text.p < w->whole.p || text.p >= w->whole.p + w->whole.n ||
                       (w->tok->pretokenizers.n && !w->tok->raw);
    if (w->tok->spare) ox_bpe_begin_text(w, moves);
    if (w->tok->only_split && !w->ranges) return ox_bpe_run_split(w, text);
    OX_TRY(ox_tok_pretokenize(w, text, at_start));
    return ox_tok_run_model(w);
}

/* Text between added tokens that are matched raw. */
static ox_status encode_between(ox_tok_work *w, ox_str text, bool at_start)
{
    ox_added_hits hits = {0};
    ox_status st = OX_OK;
    w->from = NULL;
    w->base = (size_t)(text.p - w->whole.p);
    OX_TRY(ox_tok_normalize(w, text, &text));
    const ox_range *from = w->from;
    const size_t base = w->base;
    if (!w->tok->added_normal.n_nodes) return encode_run(w, text, at_start);
    if (!ox_tok_split_added(w, &w->tok->added_normal, text, &hits)) st = ox_tok_no_memory(w);
    for (size_t i = 0; !st && i < hits.n; i++) {
        const ox_added_hit h = hits.p[i];
        w->from = from;
        w->base = base;
        if (h.id >= 0) {
            st = put_id(w, h.id, ox_tok_origin(w, text, h.span.at, w->ranges ? h.span.n : 0));
            continue;
        }
        if (from)
            w->from += h.span.at;
        else
            w->base += h.span.at;
        st = encode_run(w, (ox_str){text.p + h.span.at, h.span.n}, at_start && i == 0);
    }
    ox_vec_deinit(&hits);
    return st;
}

static ox_status encode_all(ox_tok_work *w, ox_str text)
{
    ox_added_hits hits = {0};
    ox_status st = OX_OK;
    if (!ox_tok_split_added(w, &w->tok->added_raw, text, &hits)) st = ox_tok_no_memory(w);
    for (size_t i = 0; !st && i < hits.n; i++) {
        const ox_added_hit h = hits.p[i];
        const ox_range range = {h.span.at, h.span.at + h.span.n};
        st = h.id >= 0 ? put_id(w, h.id, range)
                       : encode_between(w, (ox_str){text.p + h.span.at, h.span.n}, i == 0);
    }
    ox_vec_deinit(&hits);
    return st;
}

static void work_deinit(ox_tok_work *w)
{
    for (size_t i = 0; i < 2; i++) {
        ox_buf_deinit(&w->normal[i]);
        ox_buf_deinit(&w->text[i]);
        ox_vec_deinit(&w->normal_from[i]);
        ox_vec_deinit(&w->text_from[i]);
    }
    ox_vec_deinit(&w->made);
    ox_vec_deinit(&w->spans);
    ox_vec_deinit(&w->next);
    ox_vec_deinit(&w->symbols);
    ox_vec_deinit(&w->heap);
    ox_vec_deinit(&w->pieces);
    ox_regex_run_deinit(&w->run);
    ox_bpe_end_text(w);
    ox_free(w->paths);
}

/* White space, or what stands for it in the alphabet of bytes. */
static bool shows_space(uint32_t c)
{
    return c == 0x120 || ox_char_is_space(c);
}

static const char *char_before(const char *p)
{
    do
        p--;
    while (((unsigned char)*p & 0xc0) == 0x80);
    return p;
}

/* Leaves out the white space that the token begins and ends with. */
static void trim(ox_str text, ox_str token, ox_range *r)
{
    const char *begin = text.p + r->begin, *end = text.p + r->end, *p;
    for (const char *t = token.p; t < token.p + token.n && begin < end; begin = p) {
        p = begin;
        if (!shows_space(ox_utf8_next(&t)) || !ox_char_is_space(ox_utf8_next(&p))) break;
    }
    for (const char *t = token.p + token.n; t > token.p && end > begin; end = p) {
        t = char_before(t);
        p = char_before(end);
        const char *c = t, *d = p;
        if (!shows_space(ox_utf8_next(&c)) || !ox_char_is_space(ox_utf8_next(&d))) break;
    }
    *r = (ox_range){(uint32_t)(begin - text.p), (uint32_t)(end - text.p)};
}

ox_status ox_tokenizer_encode(const ox_tokenizer *tok, ox_str text, unsigned flags, ox_ids *ids,
                              ox_err *err)
{
    return ox_tokenizer_encode_ranges(tok, text, flags, ids, NULL, err);
}

ox_status ox_tokenizer_encode_ranges(const ox_tokenizer *tok, ox_str text, unsigned flags,
                                     ox_ids *ids, ox_ranges *ranges, ox_err *err)
{
    const bool wrap = flags & OX_ENCODE_ADD_SPECIAL;
    const size_t n_before = ids->n, bad = ox_utf8_check(text), n_ranges = ranges ? ranges->n : 0;
    ox_tok_work w = {
        .tok = tok, .err = err, .flags = flags, .ids = ids, .whole = text, .text_bytes = text.n};
    w.ranges = ranges;
    w.track = ranges || (tok->needs_origin && tok->normalizers.n);
    ox_status st = OX_OK;
    if (text.n > OX_TOKENIZER_MAX_TEXT)
        return OX_FAIL(err, OX_LIMIT, "the text has %zu bytes, the limit is %d", text.n,
                       (int)OX_TOKENIZER_MAX_TEXT);
    if (bad < text.n)
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "the text is not UTF-8: byte %zu (0x%02x) is ill-formed", bad,
                       (unsigned)(unsigned char)text.p[bad]);
    for (size_t i = 0; wrap && i < tok->before.n; i++)
        OX_TRY_GOTO(put_id(&w, tok->before.p[i], (ox_range){0, 0}));
    OX_TRY_GOTO(encode_all(&w, text));
    for (size_t i = n_ranges; ranges && tok->trims && i < ranges->n; i++)
        trim(text, ox_tokenizer_token(tok, ids->p[n_before + (i - n_ranges)]), &ranges->p[i]);
    for (size_t i = 0; wrap && i < tok->after.n; i++)
        OX_TRY_GOTO(put_id(&w, tok->after.p[i], (ox_range){0, 0}));
fail:
    if (st) ids->n = n_before;
    if (st && ranges) ranges->n = n_ranges;
    work_deinit(&w);
    return st;
}
