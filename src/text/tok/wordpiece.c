/* wordpiece.c - WordPiece (greedy, longest token first) and WordLevel (whole pieces). */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

ox_status ox_wordpiece_read(ox_tokenizer *tok, const ox_json *json, ox_err *err);
ox_status ox_wordpiece_run(ox_tok_work *w, ox_str piece);
ox_status ox_wordlevel_read(ox_tokenizer *tok, const ox_json *json, ox_err *err);
ox_status ox_wordlevel_run(ox_tok_work *w, ox_str piece);

static ox_status read_unk(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    ox_str unk;
    OX_TRY(ox_tok_read_vocab_object(tok, json, err));
    OX_TRY(ox_json_need_str(json, "unk_token", &unk, err));
    tok->unk = ox_vocab_find(&tok->vocab, unk);
    return OX_OK;
}

static ox_status put_unk(ox_tok_work *w)
{
    if (w->tok->unk < 0)
        return OX_FAIL(w->err, OX_BAD_FILE,
                       "the text needs the model's unk_token, which is not in "
                       "the vocabulary");
    return ox_ids_push(w->ids, w->tok->unk) ? OX_OK : ox_tok_no_memory(w);
}

ox_status ox_wordlevel_read(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    return read_unk(tok, json, err);
}

ox_status ox_wordlevel_run(ox_tok_work *w, ox_str piece)
{
    const int32_t id = ox_vocab_find(&w->tok->vocab, piece);
    if (id < 0) return put_unk(w);
    return ox_ids_push(w->ids, id) ? OX_OK : ox_tok_no_memory(w);
}

ox_status ox_wordpiece_read(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    int64_t max_chars = 100;
    OX_TRY(read_unk(tok, json, err));
    tok->prefix = OX_STR("##");
    OX_TRY(ox_json_opt_str(json, "continuing_subword_prefix", &tok->prefix, err));
    OX_TRY(ox_tok_copy(tok, tok->prefix, &tok->prefix, err));
    if (tok->prefix.n > 256)
        return OX_FAIL(err, OX_LIMIT, "the subword prefix is longer than 256 bytes");
    OX_TRY(ox_json_opt_i64(json, "max_input_chars_per_word", 0, 512, &max_chars, err));
    tok->max_chars = (size_t)max_chars;
    return OX_OK;
}

/* The longest token that begins piece[at]; *end behind it. */
static int32_t longest(const ox_tok_work *w, ox_buf *text, ox_str piece, size_t at, size_t *end)
{
    for (*end = piece.n; *end > at;) {
        ox_buf_clear(text);
        if (at) ox_buf_put_str(text, w->tok->prefix);
        ox_buf_put(text, piece.p + at, *end - at);
        if (text->failed) return -1;
        const int32_t id = ox_vocab_find(&w->tok->vocab, ox_buf_view(text));
        if (id >= 0) return id;
        do
            (*end)--;
        while (*end > at && ((unsigned char)piece.p[*end] & 0xc0) == 0x80);
    }
    return -1;
}

ox_status ox_wordpiece_run(ox_tok_work *w, ox_str piece)
{
    const size_t before = w->ids->n;
    size_t n_chars = 0;
    for (size_t i = 0; i < piece.n; i++)
        n_chars += ((unsigned char)piece.p[i] & 0xc0) != 0x80;
    if (n_chars > w->tok->max_chars) return put_unk(w);
    ox_buf text = {0};
    bool known = true, memory = true;
    for (size_t at = 0, end; at < piece.n && known && memory; at = end) {
        const int32_t id = longest(w, &text, piece, at, &end);
        known = id >= 0;
        memory = !text.failed && (!known || ox_ids_push(w->ids, id));
    }
    ox_buf_deinit(&text);
    if (!memory) return ox_tok_no_memory(w);
    if (known) return OX_OK;
    w->ids->n = before;
    return put_unk(w);
}
