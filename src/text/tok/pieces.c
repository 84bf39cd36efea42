/* pieces.c - the bytes of every token in the middle of a text, for streaming and for fast decoding:
 * most decoders treat tokens one by one, so that a text is its pieces one after the other. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

enum { PAD = 16, IS_SPECIAL = 1u << 31, IS_BYTE = 1 << 30, PLACE = IS_BYTE - 1 };

static void put_piece(const ox_tokenizer *tok, ox_str token, ox_buf *a, ox_buf *b, ox_buf *out)
{
    ox_buf_clear(a);
    if (!tok->has_decoder) ox_buf_put_c(a, ' ');
    ox_buf_put_str(a, token);
    for (size_t i = 0; i < tok->decoders.n; i++) {
        const ox_decoder *d = &tok->decoders.p[i];
        ox_buf_clear(b);
        if (d->kind->piece)
            d->kind->piece(d, ox_buf_view(a), b);
        else if (d->kind->one)
            d->kind->one(d, ox_buf_view(a), 1, 3, b);
        else
            continue;
        const ox_buf swap = *a;
        *a = *b;
        *b = swap;
    }
    ox_buf_put_str(out, ox_buf_view(a));
    if (a->failed || b->failed) out->failed = true;
}

static bool drops_first_space(const ox_tokenizer *tok)
{
    for (size_t i = 0; i < tok->decoders.n; i++) {
        const ox_decoder *d = &tok->decoders.p[i];
        if (!strcmp(d->kind->name, "Strip") && ox_str_is(d->text, " ") && d->n_start) return true;
        if (!strcmp(d->kind->name, "Metaspace") && !d->on[OX_DECODER_KEEPS_FIRST]) return true;
        if (!strcmp(d->kind->name, "WordPiece")) return true;
    }
    return !tok->has_decoder;
}

/* Tokens one by one, wherever they stand: Replace. Then bytes may be put together (ByteFallback),
 * and what follows acts on the whole text (behind Fuse). Or all is one row that treats only the
 * first token differently. */
static void find_way(ox_tokenizer *tok)
{
    const ox_decoder *d = tok->decoders.p;
    const size_t n = tok->decoders.n;
    size_t i = 0;
    tok->decode_how = OX_DECODE_SLOWLY;
    if (!tok->has_decoder) return;
    if (n == 1 && !strcmp(d->kind->name, "ByteLevel")) tok->decode_how = OX_DECODE_BYTES;
    if (n == 1 && (!strcmp(d->kind->name, "Metaspace") || !strcmp(d->kind->name, "WordPiece")))
        tok->decode_how = OX_DECODE_FIRST_APART;
    if (tok->decode_how != OX_DECODE_SLOWLY) return;
    for (; i < n && !strcmp(d[i].kind->name, "Replace"); i++) {
        const bool may_spell_bytes = d[i].regex || d[i].content.n >= 6 || !d[i].text.n ||
                                     ((uint8_t)d[i].text.p[0] < 0x80 && d[i].text.p[0] != ' ');
        if (may_spell_bytes) return;
    }
    const bool bytes = i < n && !strcmp(d[i].kind->name, "ByteFallback");
    i += bytes;
    const bool fused = i < n && !strcmp(d[i].kind->name, "Fuse");
    i += fused;
    for (size_t k = i; k < n; k++) {
        if (!fused || strcmp(d[k].kind->name, "Strip") != 0) return;
    }
    tok->decode_rest = i;
    tok->decode_how = bytes ? OX_DECODE_FALLBACK : OX_DECODE_PIECES;
}

ox_status ox_tok_build_pieces(ox_tokenizer *tok, ox_err *err)
{
    if (tok->borrowed) {
        tok->strips_first_space = drops_first_space(tok);
        find_way(tok);
        return OX_OK;
    }
    ox_buf a = {0}, b = {0}, all = {0};
    tok->piece_at = ox_calloc(tok->n_vocab + 1, sizeof(*tok->piece_at));
    bool ok = tok->piece_at != NULL;
    for (size_t id = 0; ok && id < tok->n_vocab; id++) {
        const ox_str t = ox_tok_shown(tok, (int32_t)id);
        if (t.p) put_piece(tok, t, &a, &b, &all);
        if (t.p && ox_tok_byte_token(t) >= 0) tok->piece_at[id] |= IS_BYTE;
        if (ox_tok_is_hidden(tok, (int32_t)id)) tok->piece_at[id] |= IS_SPECIAL;
        tok->piece_at[id + 1] = (uint32_t)all.n;
        ok = !all.failed && all.n < PLACE;
    }
    for (size_t i = 0; ok && i < PAD; i++)
        ox_buf_put_c(&all, 0);
    ok = ok && !all.failed;
    ox_buf_deinit(&a);
    ox_buf_deinit(&b);
    tok->piece_bytes = all.p; /* owned by the tokenizer from here */
    tok->n_piece_bytes = all.n;
    tok->strips_first_space = drops_first_space(tok);
    find_way(tok);
    return ok ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "out of memory for the bytes of the tokens");
}

size_t ox_tok_piece_bytes(const ox_tokenizer *tok)
{
    return tok->n_piece_bytes;
}

bool ox_tok_pieces_are_sound(const ox_tokenizer *tok)
{
    if (tok->n_piece_bytes < PAD || tok->n_piece_bytes >= PLACE) return false;
    for (size_t id = 0; id < tok->n_vocab; id++) {
        if ((tok->piece_at[id] & PLACE) > (tok->piece_at[id + 1] & PLACE)) return false;
    }
    return (tok->piece_at[tok->n_vocab] & PLACE) <= tok->n_piece_bytes - PAD;
}

ox_str ox_tokenizer_piece(const ox_tokenizer *tok, int32_t id)
{
    if (id < 0 || (size_t)id >= tok->n_vocab || !tok->piece_bytes) return (ox_str){"", 0};
    const uint32_t at = tok->piece_at[id] & PLACE;
    return (ox_str){tok->piece_bytes + at, (tok->piece_at[id + 1] & PLACE) - at};
}

static bool put_piece_of(const ox_tokenizer *tok, uint32_t first, uint32_t next, ox_buf *out)
{
    const size_t at = first & PLACE, n = (next & PLACE) - at;
    if (out->cap < out->n + n + PAD + 1 && !ox_buf_reserve(out, n + PAD)) return false;
    if (n <= PAD)
        memcpy(out->p + out->n, tok->piece_bytes + at, PAD);
    else
        memcpy(out->p + out->n, tok->piece_bytes + at, n);
    out->n += n;
    return true;
}

/* Bytes out.p[from..n) came from byte tokens in a row: text only as a whole, else each U+FFFD. */
static void end_bytes(ox_buf *out, size_t from)
{
    const size_t n = out->n - from;
    if (!n || ox_utf8_check((ox_str){out->p + from, n}) == n) return;
    out->n = from;
    for (size_t i = 0; i < n; i++)
        ox_buf_put_z(out, "\xef\xbf\xbd");
}

/* false: memory is short or the text too long. */
static bool join_pieces(const ox_tokenizer *tok, const int32_t *ids, size_t n, bool skip_special,
                        ox_buf *out)
{
    const bool fallback = tok->decode_how == OX_DECODE_FALLBACK;
    const uint32_t skip = skip_special ? IS_SPECIAL : 0;
    size_t run = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= tok->n_vocab) continue;
        const uint32_t first = tok->piece_at[ids[i]];
        if (first & skip) continue;
        if (fallback) {
            if (first & IS_BYTE) {
                if (run == SIZE_MAX) run = out->n;
            } else if (run != SIZE_MAX && ox_tok_shown(tok, ids[i]).p) {
                end_bytes(out, run);
                run = SIZE_MAX;
            }
        }
        if (!put_piece_of(tok, first, tok->piece_at[ids[i] + 1], out)) return false;
        if (out->n > OX_TOK_MAX_BYTES) return false;
    }
    if (run != SIZE_MAX) end_bytes(out, run);
    if (out->p) out->p[out->n] = 0;
    return !out->failed;
}

/* The first token that shows: by the decoders, alone. */
static bool decode_first(const ox_tokenizer *tok, const int32_t *ids, size_t n, bool skip_special,
                         ox_buf *out, size_t *used)
{
    ox_token_list a = {0}, b = {0};
    bool ok = true;
    for (*used = 0; *used < n;) {
        const int32_t id = ids[(*used)++];
        const ox_str t = ox_tok_shown(tok, id);
        if (!t.p || (skip_special && ox_tok_is_hidden(tok, id))) continue;
        ox_buf_put_str(&a.text, t);
        ok = ox_vec_push(&a.spans, (ox_span){0, (uint32_t)t.n}) &&
             ox_tok_run_decoders(tok, 0, &a, &b);
        break;
    }
    ox_buf_put_str(out, ox_buf_view(&a.text));
    ok = ok && !a.text.failed;
    ox_buf_deinit(&a.text);
    ox_buf_deinit(&b.text);
    ox_vec_deinit(&a.spans);
    ox_vec_deinit(&b.spans);
    return ok;
}

/* What the file's further decoders make of the text in *text. */
static bool finish_text(const ox_tokenizer *tok, ox_buf *text, ox_buf *out)
{
    ox_token_list a = {.text = *text}, b = {0};
    *text = (ox_buf){0};
    const bool ok = ox_vec_push(&a.spans, (ox_span){0, (uint32_t)a.text.n}) &&
                    ox_tok_run_decoders(tok, tok->decode_rest, &a, &b);
    ox_buf_put_str(out, ox_buf_view(&a.text));
    ox_buf_deinit(&a.text);
    ox_buf_deinit(&b.text);
    ox_vec_deinit(&a.spans);
    ox_vec_deinit(&b.spans);
    return ok;
}

ox_status ox_tok_decode_pieces(const ox_tokenizer *tok, const int32_t *ids, size_t n,
                               bool skip_special, ox_buf *out, ox_err *err)
{
    const bool direct = tok->decode_how == OX_DECODE_FIRST_APART ||
                        (tok->decode_how != OX_DECODE_BYTES && tok->decode_rest == tok->decoders.n);
    if (!n) return OX_OK;
    ox_buf text = {0}, *to = direct ? out : &text;
    const size_t before = to->n;
    size_t first = 0;
    bool ok = ox_buf_reserve(to, n < (1 << 24) ? n * 4 : 0);
    if (ok && tok->decode_how == OX_DECODE_FIRST_APART)
        ok = decode_first(tok, ids, n, skip_special, to, &first);
    ok = ok && join_pieces(tok, ids + first, n - first, skip_special, to);
    const size_t n_bytes = to->n - before;
    if (ok && tok->decode_how == OX_DECODE_BYTES)
        ox_utf8_put_lossy(out, ox_buf_view(to));
    else if (ok && !direct)
        ok = finish_text(tok, &text, out);
    ox_buf_deinit(&text);
    if (n_bytes > OX_TOK_MAX_BYTES)
        return OX_FAIL(err, OX_LIMIT, "the text of %zu ids is longer than %d bytes", n,
                       (int)OX_TOK_MAX_BYTES);
    return ok && !out->failed
               ? OX_OK
               : OX_FAIL(err, OX_NO_MEMORY, "out of memory while decoding %zu ids", n);
}
