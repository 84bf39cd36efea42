/* bpe.c - byte-pair encoding: reading the model, and one piece to ids. Characters (or bytes) of a
 * piece become symbols, then the pair with the lowest merge rank is joined, leftmost first, until
 * none is left (bpe_merge.c). bpe_word.c cuts text into words and remembers them. */
#include "text/tok/bpe.h"

#include "text/unicode.h"

ox_status ox_bpe_read(ox_tokenizer *tok, const ox_json *json, ox_err *err);

enum { MAX_PROBES = 512, RAW_WHOLE = OX_TOK_MAX_CONTENT };

static ox_status put_merge(ox_tokenizer *tok, int32_t left, int32_t right, size_t rank, ox_err *err)
{
    const uint64_t pair = ox_bpe_pair(left, right);
    const uint64_t hash = ox_bpe_hash(pair);
    const size_t bit = (size_t)(hash >> 32) & tok->merge_bits_mask;
    size_t at = (size_t)hash & tok->merge_mask;
    tok->merge_bits[bit / 64] |= 1ull << bit % 64;
    for (size_t probes = 0; probes < MAX_PROBES; probes++, at = (at + 1) & tok->merge_mask) {
        const uint64_t there = tok->merges[at];
        if (there != UINT64_MAX && (there ^ pair) >> OX_BPE_RANK_BITS) continue;
        tok->merges[at] = pair | rank; /* a pair listed twice has its last rank */
        return OX_OK;
    }
    return OX_FAIL(err, OX_LIMIT, "the merges collide on purpose");
}

static bool merge_halves(const ox_json *j, ox_str *a, ox_str *b)
{
    if (ox_json_is(j, OX_JSON_ARRAY) && ox_json_n(j) == 2) {
        *a = ox_json_str(ox_json_at(j, 0));
        *b = ox_json_str(ox_json_at(j, 1));
        return a->n && b->n;
    }
    const ox_str s = ox_json_str(j);
    const size_t space = ox_str_find(s, OX_STR(" "), 0);
    if (space == SIZE_MAX || ox_str_find(s, OX_STR(" "), space + 1) != SIZE_MAX) return false;
    *a = (ox_str){s.p, space};
    *b = (ox_str){s.p + space + 1, s.n - space - 1};
    return a->n && b->n;
}

static ox_status read_merge(ox_tokenizer *tok, const ox_json *j, size_t i, ox_buf *joined,
                            ox_err *err)
{
    ox_str a, b;
    if (!merge_halves(j, &a, &b))
        return OX_FAIL(err, OX_BAD_FILE, "merge %zu is not a pair of tokens", i);
    const ox_str tail =
        tok->prefix.n <= b.n ? (ox_str){b.p + tok->prefix.n, b.n - tok->prefix.n} : b;
    ox_buf_clear(joined);
    ox_buf_put_str(joined, a);
    ox_buf_put_str(joined, tail);
    if (joined->failed) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for merges");
    const int32_t left = ox_vocab_find(&tok->vocab, a), right = ox_vocab_find(&tok->vocab, b);
    const int32_t both = ox_vocab_find(&tok->vocab, ox_buf_view(joined));
    if (left < 0 || right < 0 || both < 0)
        return OX_FAIL(err, OX_BAD_FILE,
                       "merge %zu (\"%.*s\" and \"%.*s\") names a token that is not "
                       "in the vocabulary",
                       i, OX_STR_ARGS(a), OX_STR_ARGS(b));
    tok->merged[i] = both;
    return put_merge(tok, left, right, i, err);
}

static ox_status alloc_merges(ox_tokenizer *tok, size_t n_pairs, size_t n_ranks, ox_err *err)
{
    size_t size = 16;
    if (n_pairs >= 1u << OX_BPE_RANK_BITS || n_ranks >= 1u << OX_BPE_RANK_BITS ||
        tok->vocab.n_ids > 1u << OX_BPE_ID_BITS)
        return OX_FAIL(err, OX_LIMIT,
                       "the model has %zu merges and %zu tokens, the limits are %u and %u", n_pairs,
                       tok->vocab.n_ids, 1u << OX_BPE_RANK_BITS, 1u << OX_BPE_ID_BITS);
    while (size < n_pairs + n_pairs / 2)
        size *= 2;
    tok->n_merges = n_ranks;
    tok->merge_bits_mask = 63;
    while (tok->merge_bits_mask < n_pairs * 6)
        tok->merge_bits_mask = tok->merge_bits_mask * 2 + 1;
    tok->merges = ox_alloc(size * sizeof(*tok->merges));
    tok->merged = ox_calloc(n_ranks + 1, sizeof(*tok->merged));
    tok->merge_bits = ox_calloc((tok->merge_bits_mask + 1) / 64, sizeof(*tok->merge_bits));
    if (!tok->merges || !tok->merged || !tok->merge_bits)
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for merges");
    memset(tok->merges, 0xff, size * sizeof(*tok->merges));
    tok->merge_mask = size - 1;
    return OX_OK;
}

static ox_status read_merges(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    const ox_json *list;
    ox_status st = OX_OK;
    ox_buf joined = {0};
    OX_TRY(ox_json_need(json, "merges", OX_JSON_ARRAY, &list, err));
    OX_TRY(alloc_merges(tok, ox_json_n(list), ox_json_n(list), err));
    for (size_t i = 0; i < ox_json_n(list); i++)
        OX_TRY_GOTO(read_merge(tok, ox_json_at(list, i), i, &joined, err));
fail:
    ox_buf_deinit(&joined);
    return st;
}

typedef struct cut {
    int32_t left, right;
    uint32_t rank;
} cut;

typedef OX_VEC(cut) cuts;

/* Every way to cut the token into two others makes it, at its rank. */
static bool find_token_cuts(const ox_tokenizer *tok, int32_t id, uint32_t rank, cuts *all)
{
    const ox_str s = ox_vocab_str(&tok->vocab, id);
    for (size_t at = s.n ? ox_utf8_length(s.p, s.n) : 0; at < s.n;
         at += ox_utf8_length(s.p + at, s.n - at)) {
        const int32_t left = ox_vocab_find(&tok->vocab, (ox_str){s.p, at});
        if (left < 0) continue;
        const int32_t right = ox_vocab_find(&tok->vocab, (ox_str){s.p + at, s.n - at});
        if (right >= 0 && !ox_vec_push(all, (cut){left, right, rank})) return false;
    }
    return true;
}

/* Instead of merges: the rank of each token as the result of one; "by id": the id is the rank. */
static ox_status read_ranks(ox_tokenizer *tok, const ox_json *ranks, ox_err *err)
{
    const bool by_id = ox_json_is(ranks, OX_JSON_STRING);
    const size_t n = tok->vocab.n_ids;
    ox_status st = OX_OK;
    cuts all = {0};
    for (size_t id = 0; id < n; id++) {
        const ox_json *r = ox_json_at(ranks, id);
        const int64_t rank = by_id ? (int64_t)id : ox_json_is_i64(r) ? ox_json_i64(r) : -1;
        if (rank < 0) continue;
        if ((size_t)rank >= n) {
            st = OX_FAIL(err, OX_BAD_FILE, "ranks[%zu] is %lld, expected less than %zu", id,
                         (long long)rank, n);
            goto fail;
        }
        if (!find_token_cuts(tok, (int32_t)id, (uint32_t)rank, &all)) {
            st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for merges");
            goto fail;
        }
    }
    OX_TRY_GOTO(alloc_merges(tok, all.n, n, err));
    for (size_t id = 0; id < n; id++) {
        const ox_json *r = ox_json_at(ranks, id);
        const int64_t rank = by_id ? (int64_t)id : ox_json_is_i64(r) ? ox_json_i64(r) : -1;
        if (rank >= 0) tok->merged[rank] = (int32_t)id;
    }
    for (size_t i = 0; i < all.n; i++)
        OX_TRY_GOTO(put_merge(tok, all.p[i].left, all.p[i].right, all.p[i].rank, err));
fail:
    ox_vec_deinit(&all);
    return st;
}

/* Text may be cut before a mark that follows another character when no token holds that pair: no
 * merge can reach over the cut, so words are encoded, and remembered, one by one. */
static void find_cuts(ox_tokenizer *tok)
{
    const ox_str mark = OX_STR(OX_BPE_MARK);
    tok->cuts = !tok->prefix.n && !tok->suffix.n && !tok->ignore_merges &&
                ox_vocab_find(&tok->vocab, mark) >= 0;
    for (size_t id = 0; tok->cuts && id < tok->vocab.n_ids; id++) {
        const ox_str s = ox_vocab_str(&tok->vocab, (int32_t)id);
        if (!s.p) continue;
        size_t at = ox_str_find(s, mark, 0);
        for (; at != SIZE_MAX; at = ox_str_find(s, mark, at + mark.n)) {
            if (at && !ox_str_ends((ox_str){s.p, at}, mark))
                tok->joins[(uint8_t)s.p[at - 1]] = true;
        }
    }
}

static void find_char_tokens(ox_tokenizer *tok)
{
    memset(tok->char_ids, 0xff, OX_BPE_CHARS * sizeof(*tok->char_ids));
    for (size_t id = 0; id < tok->vocab.n_ids; id++) {
        const ox_str s = ox_vocab_str(&tok->vocab, (int32_t)id);
        if (!s.n || s.n > 3 || ox_utf8_length(s.p, s.n) != s.n) continue;
        const char *p = s.p;
        tok->char_ids[ox_utf8_next(&p)] = ox_vocab_find(&tok->vocab, s);
    }
}

ox_status ox_bpe_read(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    ox_str unk = {0};
    double dropout = 0;
    OX_TRY(ox_json_opt_f64(json, "dropout", &dropout, err));
    if (dropout != 0)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "the model's \"dropout\" is %g: it cuts text at random, which is for "
                       "training; set it to null",
                       dropout);
    OX_TRY(ox_tok_read_vocab_object(tok, json, err));
    OX_TRY(ox_json_opt_str(json, "unk_token", &unk, err));
    OX_TRY(ox_json_opt_bool(json, "fuse_unk", &tok->fuse_unk, err));
    OX_TRY(ox_json_opt_bool(json, "byte_fallback", &tok->byte_fallback, err));
    OX_TRY(ox_json_opt_bool(json, "ignore_merges", &tok->ignore_merges, err));
    OX_TRY(ox_json_opt_str(json, "continuing_subword_prefix", &tok->prefix, err));
    OX_TRY(ox_json_opt_str(json, "end_of_word_suffix", &tok->suffix, err));
    OX_TRY(ox_tok_copy(tok, tok->prefix, &tok->prefix, err));
    OX_TRY(ox_tok_copy(tok, tok->suffix, &tok->suffix, err));
    if (tok->prefix.n > 256 || tok->suffix.n > 256)
        return OX_FAIL(err, OX_LIMIT, "a subword prefix or suffix is longer than 256 bytes");
    if (unk.p) tok->unk = ox_vocab_find(&tok->vocab, unk);
    if (unk.p && tok->unk < 0) tok->unk = OX_TOK_UNK_MISSING;
    tok->char_ids = ox_alloc(OX_BPE_CHARS * sizeof(*tok->char_ids));
    if (!tok->char_ids) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a vocabulary");
    find_char_tokens(tok);
    find_cuts(tok);
    const ox_json *ranks = ox_json_get(json, "ranks");
    return ranks ? read_ranks(tok, ranks, err) : read_merges(tok, json, err);
}

/* The symbol of one character with prefix and suffix, or -1. */
static int32_t symbol_of(const ox_tokenizer *tok, ox_str c, bool first, bool last)
{
    char text[600];
    size_t n = 0;
    if (!first && tok->prefix.n) {
        memcpy(text, tok->prefix.p, tok->prefix.n);
        n = tok->prefix.n;
    }
    memcpy(text + n, c.p, c.n);
    n += c.n;
    if (last && tok->suffix.n) {
        memcpy(text + n, tok->suffix.p, tok->suffix.n);
        n += tok->suffix.n;
    }
    return ox_vocab_find(&tok->vocab, (ox_str){text, n});
}

/* A character that is no token: bytes, the unknown token, or nothing. *pending: an unknown that is
 * not written yet, because its neighbours may fuse with it. */
static ox_status put_unknown(ox_tok_work *w, ox_str c, bool *pending)
{
    const ox_tokenizer *tok = w->tok;
    if (tok->byte_fallback && ox_tok_put_bytes(tok, c, &w->pieces)) return OX_OK;
    if (tok->unk == OX_TOK_UNK_MISSING)
        return OX_FAIL(w->err, OX_BAD_FILE,
                       "the text needs the model's unk_token, which is not in "
                       "the vocabulary");
    if (tok->unk < 0) return OX_OK;
    if (*pending && !tok->fuse_unk && !ox_ids_push(&w->pieces, tok->unk))
        return ox_tok_no_memory(w);
    *pending = true;
    return OX_OK;
}

static ox_status put_raw_symbols(ox_tok_work *w, ox_str piece)
{
    if (!ox_vec_reserve(&w->pieces, piece.n)) return ox_tok_no_memory(w);
    for (size_t i = 0; i < piece.n; i++)
        w->pieces.p[i] = w->tok->raw_ids[(uint8_t)piece.p[i]];
    w->pieces.n = piece.n;
    return OX_OK;
}

static ox_status put_symbols(ox_tok_work *w, ox_str piece)
{
    const ox_tokenizer *tok = w->tok;
    const bool plain = !tok->prefix.n && !tok->suffix.n;
    const char *end = piece.p + piece.n;
    bool pending = false;
    w->pieces.n = 0;
    if (!ox_vec_reserve(&w->pieces, piece.n + 1)) return ox_tok_no_memory(w);
    for (const char *p = piece.p; p < end;) {
        const char *at = p;
        const uint32_t code = ox_utf8_next(&p);
        const ox_str c = {at, (size_t)(p - at)};
        const int32_t id = plain && code < OX_BPE_CHARS
                               ? tok->char_ids[code]
                               : symbol_of(tok, c, at == piece.p, p == end);
        if (id < 0) {
            OX_TRY(put_unknown(w, c, &pending));
            continue;
        }
        if (pending && !ox_ids_push(&w->pieces, tok->unk)) return ox_tok_no_memory(w);
        pending = false;
        if (!ox_ids_push(&w->pieces, id)) return ox_tok_no_memory(w);
    }
    if (pending && !ox_ids_push(&w->pieces, tok->unk)) return ox_tok_no_memory(w);
    return OX_OK;
}

/* The token of a whole piece of bytes, which the vocabulary spells in ByteLevel's alphabet. */
static int32_t find_raw(const ox_tokenizer *tok, ox_str piece)
{
    char text[RAW_WHOLE * 2];
    size_t n = 0;
    for (size_t i = 0; i < piece.n; i++) {
        const ox_byte_char c = tok->raw_chars[(uint8_t)piece.p[i]];
        text[n] = c.utf8[0];
        text[n + 1] = c.utf8[1];
        n += c.n;
    }
    return ox_vocab_find(&tok->vocab, (ox_str){text, n});
}

ox_status ox_bpe_encode(ox_tok_work *w, ox_str piece)
{
    const bool raw = w->tok->raw;
    if (w->tok->ignore_merges && (!raw || piece.n <= RAW_WHOLE)) {
        const int32_t id = raw ? find_raw(w->tok, piece) : ox_vocab_find(&w->tok->vocab, piece);
        w->pieces.n = 0;
        if (id >= 0) return ox_ids_push(&w->pieces, id) ? OX_OK : ox_tok_no_memory(w);
    }
    OX_TRY(raw ? put_raw_symbols(w, piece) : put_symbols(w, piece));
    return ox_bpe_merge(w, raw ? piece.p : NULL) ? OX_OK : ox_tok_no_memory(w);
}

/* Ranks of pairs of bytes by the bytes themselves. */
static void find_raw_ranks(ox_tokenizer *tok)
{
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++)
            tok->raw_ranks[a << 8 | b] = ox_bpe_rank(tok, tok->raw_ids[a], tok->raw_ids[b]);
    }
}

ox_status ox_bpe_find_raw(ox_tokenizer *tok, ox_err *err)
{
    const ox_regex *split = NULL;
    const size_t n = tok->pretokenizers.n;
    if (tok->model->run != ox_bpe_run || tok->prefix.n || tok->suffix.n || !n) return OX_OK;
    if (!ox_tok_is_byte_level(&tok->pretokenizers.p[n - 1], &split)) return OX_OK;
    for (size_t i = 0; i + 1 < n; i++) {
        if (tok->pretokenizers.p[i].kind->rewrites) return OX_OK;
    }
    for (unsigned b = 0; b < 256; b++)
        tok->raw_chars[b] = ox_byte_to_char((uint8_t)b);
    if (tok->borrowed && !tok->raw_ranks) return OX_OK;
    for (unsigned b = 0; b < 256 && !tok->borrowed; b++) {
        const ox_byte_char c = tok->raw_chars[b];
        tok->raw_ids[b] = ox_vocab_find(&tok->vocab, (ox_str){c.utf8, c.n});
        if (tok->raw_ids[b] < 0) return OX_OK;
    }
    if (!tok->borrowed) {
        tok->raw_ranks = ox_alloc(65536 * sizeof(*tok->raw_ranks));
        if (!tok->raw_ranks) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for merges");
        find_raw_ranks(tok);
    }
    tok->raw = true;
    tok->cuts = false;
    if (n == 1) tok->only_split = split;
    const ox_pretokenizer *first = &tok->pretokenizers.p[0];
    if (n == 2 && !split && first->regex && first->how == OX_SPLIT_ISOLATED)
        tok->only_split = first->regex;
    return OX_OK;
}
