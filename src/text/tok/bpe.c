/* bpe.c - byte-pair encoding: characters of a piece become symbols, then the pair with the lowest
 * merge rank is joined, leftmost first, until none is left. Pieces up to SMALL symbols are scanned
 * for the lowest rank; longer ones use a heap over a linked list, O(n log n). Short pieces are
 * remembered for the length of one encode call. */
#include "base/hash.h"
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

ox_status ox_bpe_read(ox_tokenizer *tok, const ox_json *json, ox_err *err);
ox_status ox_bpe_run(ox_tok_work *w, ox_str piece);

enum {
    SMALL = 48,
    MAX_PROBES = 512,
    CACHE_SIZE = 1 << 13,
    CACHE_FROM = 1 << 12, /* bytes of text that pay for a cache */
    CACHED_BYTES = 15,
    CACHED_IDS = 3,
    RAW_WHOLE = OX_TOK_MAX_CONTENT
};

#define MARK "\xe2\x96\x81" /* U+2581 stands for a space */

typedef struct cached_word {
    char bytes[CACHED_BYTES];
    uint8_t n_bytes; /* 0 = free */
    int32_t ids[CACHED_IDS];
    int32_t n_ids;
} cached_word;

typedef struct ox_word_cache {
    cached_word words[CACHE_SIZE];
} ox_word_cache;

static size_t home_of(uint64_t pair, size_t mask)
{
    const uint64_t h = pair * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32 ^ h >> 14) & mask;
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static const ox_merge *find_merge(const ox_tokenizer *tok, int32_t left, int32_t right)
{
    const uint64_t pair = pair_of(left, right);
    for (size_t at = home_of(pair, tok->merge_mask);; at = (at + 1) & tok->merge_mask) {
        const ox_merge *m = &tok->merges[at];
        if (m->pair == pair) return m;
        if (m->pair == UINT64_MAX) return NULL;
    }
}

static ox_status put_merge(ox_tokenizer *tok, ox_merge merge, ox_err *err)
{
    size_t at = home_of(merge.pair, tok->merge_mask);
    for (size_t probes = 0; probes < MAX_PROBES; probes++, at = (at + 1) & tok->merge_mask) {
        ox_merge *m = &tok->merges[at];
        if (m->pair != UINT64_MAX && m->pair != merge.pair) continue;
        *m = merge; /* a pair listed twice has its last rank */
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
    return put_merge(tok, (ox_merge){pair_of(left, right), (uint32_t)i, both}, err);
}

static ox_status read_merges(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    const ox_json *list;
    ox_status st = OX_OK;
    ox_buf joined = {0};
    size_t size = 16;
    OX_TRY(ox_json_need(json, "merges", OX_JSON_ARRAY, &list, err));
    while (size < ox_json_n(list) * 2)
        size *= 2;
    tok->merges = ox_alloc(size * sizeof(*tok->merges));
    if (!tok->merges) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for merges");
    memset(tok->merges, 0xff, size * sizeof(*tok->merges));
    tok->merge_mask = size - 1;
    for (size_t i = 0; i < ox_json_n(list); i++)
        OX_TRY_GOTO(read_merge(tok, ox_json_at(list, i), i, &joined, err));
fail:
    ox_buf_deinit(&joined);
    return st;
}

/* Text may be cut before a mark that follows another character when no token holds that pair: no
 * merge can reach over the cut, so words are encoded, and remembered, one by one. */
static void find_cuts(ox_tokenizer *tok)
{
    const ox_str mark = OX_STR(MARK);
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
    for (uint32_t c = 0; c < OX_COUNT(tok->char_ids); c++) {
        char utf8[4];
        const size_t n = ox_utf8_encode(utf8, c);
        tok->char_ids[c] = ox_vocab_find(&tok->vocab, (ox_str){utf8, n});
    }
}

ox_status ox_bpe_read(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    ox_str unk = {0};
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
    find_char_tokens(tok);
    find_cuts(tok);
    return read_merges(tok, json, err);
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
        const int32_t id = plain && code < OX_COUNT(tok->char_ids)
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

static void rank_pair(const ox_tokenizer *tok, const int32_t *ids, uint32_t *rank, int32_t *into)
{
    const ox_merge *m = find_merge(tok, ids[0], ids[1]);
    *rank = m ? m->rank : UINT32_MAX;
    *into = m ? m->id : -1;
}

/* ids[n], n <= SMALL: merges in place, returns what is left. */
static size_t merge_small(const ox_tokenizer *tok, int32_t *ids, size_t n)
{
    uint32_t rank[SMALL];
    int32_t into[SMALL];
    for (size_t i = 0; i + 1 < n; i++)
        rank_pair(tok, ids + i, &rank[i], &into[i]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            if (rank[i] < rank[best]) best = i;
        }
        if (rank[best] == UINT32_MAX) break;
        ids[best] = into[best];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            ids[i] = ids[i + 1];
            rank[i - 1] = rank[i];
            into[i - 1] = into[i];
        }
        if (best + 1 < n) rank_pair(tok, ids + best, &rank[best], &into[best]);
        if (best > 0) rank_pair(tok, ids + best - 1, &rank[best - 1], &into[best - 1]);
    }
    return n;
}

static bool before(ox_candidate a, ox_candidate b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.at < b.at);
}

static bool heap_push(ox_tok_work *w, ox_candidate c)
{
    if (!ox_vec_push(&w->heap, c)) return false;
    ox_candidate *h = w->heap.p;
    size_t i = w->heap.n - 1;
    for (; i > 0 && before(c, h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = c;
    return true;
}

static ox_candidate heap_pop(ox_tok_work *w)
{
    ox_candidate *h = w->heap.p;
    const ox_candidate top = h[0], c = h[--w->heap.n];
    const size_t n = w->heap.n;
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && before(h[child + 1], h[child])) child++;
        if (!before(h[child], c)) break;
        h[i] = h[child];
        i = child;
    }
    if (n) h[i] = c;
    return top;
}

static bool offer(ox_tok_work *w, int32_t at)
{
    const ox_symbol *s = &w->symbols.p[at];
    if (s->next < 0) return true;
    const ox_merge *m = find_merge(w->tok, s->id, w->symbols.p[s->next].id);
    return !m || heap_push(w, (ox_candidate){m->rank, at, m->id});
}

static bool merge_large(ox_tok_work *w, size_t *left)
{
    const size_t n = w->pieces.n;
    if (!ox_vec_reserve(&w->symbols, n)) return false;
    ox_symbol *s = w->symbols.p;
    for (size_t i = 0; i < n; i++)
        s[i] = (ox_symbol){w->pieces.p[i], (int32_t)i - 1, i + 1 < n ? (int32_t)i + 1 : -1};
    w->symbols.n = n;
    w->heap.n = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        if (!offer(w, (int32_t)i)) return false;
    }
    while (w->heap.n) {
        const ox_candidate c = heap_pop(w);
        if (s[c.at].id < 0 || s[c.at].next < 0) continue;
        const int32_t right = s[c.at].next;
        const ox_merge *m = find_merge(w->tok, s[c.at].id, s[right].id);
        if (!m || m->id != c.id || m->rank != c.rank) continue; /* its symbols have changed */
        s[c.at].id = c.id;
        s[c.at].next = s[right].next;
        if (s[right].next >= 0) s[s[right].next].prev = c.at;
        s[right].id = -1;
        if (!offer(w, c.at)) return false;
        if (s[c.at].prev >= 0 && !offer(w, s[c.at].prev)) return false;
    }
    *left = 0;
    for (int32_t i = 0; i >= 0; i = s[i].next)
        w->pieces.p[(*left)++] = s[i].id;
    return true;
}

static cached_word *cache_slot(ox_tok_work *w, ox_str piece, cached_word *key)
{
    if (!w->cache) return NULL;
    memset(key, 0, sizeof(*key));
    memcpy(key->bytes, piece.p, piece.n);
    key->n_bytes = (uint8_t)piece.n;
    uint64_t half[2];
    memcpy(half, key, sizeof(half));
    const uint64_t h = (half[0] ^ half[1] * 0xe7037ed1a0b428dbu) * 0x9e3779b97f4a7c15u;
    return &w->cache->words[h >> 40 & (CACHE_SIZE - 1)];
}

static bool put_ids(ox_tok_work *w, const int32_t *ids, size_t n)
{
    if (!n) return true;
    if (!ox_vec_reserve(w->ids, w->ids->n + n)) return false;
    memcpy(w->ids->p + w->ids->n, ids, n * sizeof(*ids));
    w->ids->n += n;
    return true;
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

static ox_status encode_piece(ox_tok_work *w, ox_str piece)
{
    const bool raw = w->tok->raw;
    if (w->tok->ignore_merges && (!raw || piece.n <= RAW_WHOLE)) {
        const int32_t id = raw ? find_raw(w->tok, piece) : ox_vocab_find(&w->tok->vocab, piece);
        w->pieces.n = 0;
        if (id >= 0) return ox_ids_push(&w->pieces, id) ? OX_OK : ox_tok_no_memory(w);
    }
    OX_TRY(raw ? put_raw_symbols(w, piece) : put_symbols(w, piece));
    if (w->pieces.n <= SMALL)
        w->pieces.n = merge_small(w->tok, w->pieces.p, w->pieces.n);
    else if (!merge_large(w, &w->pieces.n))
        return ox_tok_no_memory(w);
    return OX_OK;
}

static ox_status encode_word(ox_tok_work *w, ox_str piece)
{
    cached_word key;
    cached_word *slot = NULL;
    if (piece.n <= CACHED_BYTES) {
        if (!w->cache && w->text_bytes >= CACHE_FROM) w->cache = ox_calloc(1, sizeof(*w->cache));
        slot = cache_slot(w, piece, &key);
        if (slot && !memcmp(slot, &key, CACHED_BYTES + 1))
            return put_ids(w, slot->ids, (size_t)slot->n_ids) ? OX_OK : ox_tok_no_memory(w);
    }
    OX_TRY(encode_piece(w, piece));
    if (slot && w->pieces.n <= CACHED_IDS) {
        key.n_ids = (int32_t)w->pieces.n;
        memcpy(key.ids, w->pieces.p, w->pieces.n * sizeof(*key.ids));
        *slot = key;
    }
    return put_ids(w, w->pieces.p, w->pieces.n) ? OX_OK : ox_tok_no_memory(w);
}

/* Where the word that begins at `from` ends. */
static size_t word_end(const ox_tokenizer *tok, ox_str s, size_t from)
{
    const ox_str mark = OX_STR(MARK);
    size_t at = from;
    while (ox_str_starts((ox_str){s.p + at, s.n - at}, mark))
        at += mark.n;
    for (at++; at < s.n; at++) {
        at = ox_str_find(s, mark, at);
        if (at == SIZE_MAX) break;
        if (!tok->joins[(uint8_t)s.p[at - 1]]) return at;
        while (ox_str_starts((ox_str){s.p + at, s.n - at}, mark))
            at += mark.n;
    }
    return s.n;
}

ox_status ox_bpe_run(ox_tok_work *w, ox_str piece)
{
    if (!w->tok->cuts) return encode_word(w, piece);
    for (size_t at = 0, end; at < piece.n; at = end) {
        end = word_end(w->tok, piece, at);
        OX_TRY(encode_word(w, (ox_str){piece.p + at, end - at}));
    }
    return OX_OK;
}

void ox_bpe_find_raw(ox_tokenizer *tok)
{
    const ox_regex *split = NULL;
    const size_t n = tok->pretokenizers.n;
    if (tok->model->run != ox_bpe_run || tok->prefix.n || tok->suffix.n || !n) return;
    if (!ox_tok_is_byte_level(&tok->pretokenizers.p[n - 1], &split)) return;
    for (size_t i = 0; i + 1 < n; i++) {
        if (tok->pretokenizers.p[i].kind->rewrites) return;
    }
    for (unsigned b = 0; b < 256; b++) {
        const ox_byte_char c = tok->raw_chars[b] = ox_byte_to_char((uint8_t)b);
        tok->raw_ids[b] = ox_vocab_find(&tok->vocab, (ox_str){c.utf8, c.n});
        if (tok->raw_ids[b] < 0) return;
    }
    tok->raw = true;
    tok->cuts = false;
    if (n == 1) tok->only_split = split;
    const ox_pretokenizer *first = &tok->pretokenizers.p[0];
    if (n == 2 && !split && first->regex && first->how == OX_SPLIT_ISOLATED)
        tok->only_split = first->regex;
}

ox_status ox_bpe_run_split(ox_tok_work *w, ox_str text)
{
    size_t done = 0, at = 0;
    while (at < text.n) {
        bool hit;
        size_t begin = 0, end = 0;
        OX_TRY(ox_regex_next(w->tok->only_split, &w->run, text, at, &hit, &begin, &end, w->err));
        if (!hit) break;
        if (begin == end) { /* nothing matched: a border here */
            at = end + (end < text.n ? ox_utf8_length(text.p + end, text.n - end) : 1);
            if (begin > done) OX_TRY(encode_word(w, (ox_str){text.p + done, begin - done}));
            done = begin;
            continue;
        }
        if (begin > done) OX_TRY(encode_word(w, (ox_str){text.p + done, begin - done}));
        OX_TRY(encode_word(w, (ox_str){text.p + begin, end - begin}));
        done = at = end;
    }
    return done < text.n ? encode_word(w, (ox_str){text.p + done, text.n - done}) : OX_OK;
}
