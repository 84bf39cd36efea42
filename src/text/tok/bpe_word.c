/* bpe_word.c - text as words for bpe.c, and what is remembered of them. Short words lie in a table
 * with their ids; the tokenizer keeps that table from call to call. Longer ones are remembered by
 * where they stood in this text, with their ids where those stand in the result. */
#include "text/tok/bpe.h"
#include "text/tok/dfa.h"
#include "text/unicode.h"

enum {
    SHORT_BITS = 14,
    SHORT_BYTES = 15,
    SHORT_IDS = 3,
    LONG_BITS = 13,
    LONG_BYTES = 400,
    CACHE_FROM = 1 << 12 /* bytes of text that pay for a new table */
};

typedef struct short_word {
    uint64_t bytes[2]; /* the last byte is the length; 0 = free */
    int32_t ids[SHORT_IDS];
    int32_t n_ids;
} short_word;

typedef struct long_word {
    const char *p; /* NULL = free */
    uint32_t ids_at;
    uint16_t n, n_ids;
} long_word;

struct ox_word_cache {
    short_word words[1 << SHORT_BITS];
};

static uint64_t mix(uint64_t h)
{
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* The bytes of a short word and its length; n_readable bytes may be read. */
static inline void key_of(const char *p, size_t n, size_t n_readable, uint64_t key[2])
{
    key[0] = key[1] = 0;
    if (n_readable >= 16) {
        memcpy(key, p, 16);
        if (n < 8) {
            key[0] &= (1ull << 8 * n) - 1;
            key[1] = 0;
        } else {
            key[1] &= (1ull << 8 * (n - 8)) - 1;
        }
    } else {
        memcpy(key, p, n);
    }
    key[1] |= (uint64_t)n << 56;
}

static inline bool put_ids(ox_tok_work *w, const int32_t *ids, size_t n)
{
    if (!ox_vec_reserve(w->ids, w->ids->n + n)) return false;
    if (n) memcpy(w->ids->p + w->ids->n, ids, n * sizeof(*ids));
    w->ids->n += n;
    return true;
}

static ox_status encode_short(ox_tok_work *w, ox_str piece, const uint64_t key[2], short_word *slot)
{
    OX_TRY(ox_bpe_encode(w, piece));
    if (w->pieces.n <= SHORT_IDS) {
        slot[1] = slot[0];
        slot->bytes[0] = key[0];
        slot->bytes[1] = key[1];
        slot->n_ids = (int32_t)w->pieces.n;
        if (w->pieces.n) memcpy(slot->ids, w->pieces.p, w->pieces.n * sizeof(*slot->ids));
    }
    return put_ids(w, w->pieces.p, w->pieces.n) ? OX_OK : ox_tok_no_memory(w);
}

static uint64_t hash_of(ox_str s)
{
    uint64_t h = s.n, v;
    size_t i = 0;
    for (; i + 8 <= s.n; i += 8) {
        memcpy(&v, s.p + i, 8);
        h = mix(h ^ v);
    }
    memcpy(&v, s.p + s.n - 8, 8);
    return mix(h ^ v) >> (64 - LONG_BITS);
}

static ox_status encode_long(ox_tok_work *w, ox_str piece)
{
    long_word *slot = NULL;
    if (piece.n <= LONG_BYTES && w->cache) {
        if (!w->long_words) w->long_words = ox_calloc((size_t)1 << LONG_BITS, sizeof(long_word));
        if (w->long_words) slot = &((long_word *)w->long_words)[hash_of(piece)];
        if (slot && slot->n == piece.n && !memcmp(slot->p, piece.p, piece.n)) {
            if (!ox_vec_reserve(w->ids, w->ids->n + slot->n_ids)) return ox_tok_no_memory(w);
            return put_ids(w, w->ids->p + slot->ids_at, slot->n_ids) ? OX_OK : ox_tok_no_memory(w);
        }
    }
    OX_TRY(ox_bpe_encode(w, piece));
    if (slot && w->ids->n <= UINT32_MAX)
        *slot = (long_word){piece.p, (uint32_t)w->ids->n, (uint16_t)piece.n, (uint16_t)w->pieces.n};
    return put_ids(w, w->pieces.p, w->pieces.n) ? OX_OK : ox_tok_no_memory(w);
}

static inline ox_status encode_word(ox_tok_work *w, ox_str piece, const char *end)
{
    if (piece.n > SHORT_BYTES) return encode_long(w, piece);
    if (!w->cache) {
        OX_TRY(ox_bpe_encode(w, piece));
        return put_ids(w, w->pieces.p, w->pieces.n) ? OX_OK : ox_tok_no_memory(w);
    }
    uint64_t key[2];
    key_of(piece.p, piece.n, (size_t)(end - piece.p), key);
    const uint64_t h = mix(key[0] ^ mix(key[1]));
    short_word *slot = &w->cache->words[h >> (64 - SHORT_BITS) & ~(uint64_t)1];
    for (int way = 0; way < 2; way++) {
        const short_word *s = slot + way;
        if (s->bytes[0] != key[0] || s->bytes[1] != key[1]) continue;
        if (!ox_vec_reserve(w->ids, w->ids->n + SHORT_IDS)) return ox_tok_no_memory(w);
        memcpy(w->ids->p + w->ids->n, s->ids, sizeof(s->ids));
        w->ids->n += (size_t)s->n_ids;
        return OX_OK;
    }
    return encode_short(w, piece, key, slot);
}

void ox_bpe_begin_text(ox_tok_work *w, bool moves)
{
    if (!w->cache) w->cache = atomic_exchange(&w->tok->spare->cache, NULL);
    if (!w->cache && w->text_bytes >= CACHE_FROM) w->cache = ox_calloc(1, sizeof(*w->cache));
    if (moves && w->long_words) {
        ox_free(w->long_words);
        w->long_words = NULL;
    }
}

void ox_bpe_end_text(ox_tok_work *w)
{
    if (w->cache) w->cache = atomic_exchange(&w->tok->spare->cache, w->cache);
    ox_free(w->cache);
    ox_free(w->long_words);
    ox_bpe_lists_close(&w->lists);
}

/* Where the word that begins at `from` ends. */
static size_t word_end(const ox_tokenizer *tok, ox_str s, size_t from)
{
    const ox_str mark = OX_STR(OX_BPE_MARK);
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
    const char *text_end = w->now.p + w->now.n;
    if (!w->tok->cuts) return encode_word(w, piece, text_end);
    for (size_t at = 0, end; at < piece.n; at = end) {
        end = word_end(w->tok, piece, at);
        OX_TRY(encode_word(w, (ox_str){piece.p + at, end - at}, text_end));
    }
    return OX_OK;
}

/* Whatever lies between two matches is a piece, too. */
static ox_status split_by_regex(ox_tok_work *w, ox_str text)
{
    const char *text_end = text.p + text.n;
    size_t done = 0, at = 0;
    while (at < text.n) {
        bool hit;
        size_t begin = 0, end = 0;
        OX_TRY(ox_regex_next(w->tok->only_split, &w->run, text, at, &hit, &begin, &end, w->err));
        if (!hit) break;
        if (begin > done) OX_TRY(encode_word(w, (ox_str){text.p + done, begin - done}, text_end));
        if (end > begin) OX_TRY(encode_word(w, (ox_str){text.p + begin, end - begin}, text_end));
        done = at = end;
        if (end == begin) at += end < text.n ? ox_utf8_length(text.p + end, text.n - end) : 1;
    }
    return done < text.n ? encode_word(w, (ox_str){text.p + done, text.n - done}, text_end) : OX_OK;
}

ox_status ox_bpe_run_split(ox_tok_work *w, ox_str text)
{
    const ox_dfa *d = ox_regex_table(w->tok->only_split);
    const char *text_end = text.p + text.n;
    size_t steps = 0, done = 0, at = 0;
    const size_t most = 200 * text.n + (1 << 14);
    if (!d) return split_by_regex(w, text);
    while (at < text.n) {
        const size_t end = ox_dfa_match(d, text, at, &steps);
        if (steps > most)
            return OX_FAIL(w->err, OX_LIMIT,
                           "a pattern of the tokenizer takes too long on this text");
        const size_t begin = at;
        if (end == SIZE_MAX || end == at) at += ox_utf8_length(text.p + at, text.n - at);
        if (end == SIZE_MAX) continue;
        if (begin > done) OX_TRY(encode_word(w, (ox_str){text.p + done, begin - done}, text_end));
        done = begin;
        if (end == begin) continue;
        OX_TRY(encode_word(w, (ox_str){text.p + begin, end - begin}, text_end));
        done = at = end;
    }
    return done < text.n ? encode_word(w, (ox_str){text.p + done, text.n - done}, text_end) : OX_OK;
}
