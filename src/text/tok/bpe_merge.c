/* bpe_merge.c - joining symbols, lowest rank first, leftmost on ties. Up to SMALL symbols are
 * scanned for the lowest rank. More go through a heap of candidates; very many through a list for
 * each rank, filled from left to right and so read in order. Both are O(n log n) at most. */
#include "text/tok/bpe.h"

#include <stdlib.h>

enum {
    SMALL = 64,
    LISTS_FROM = 512,          /* symbols */
    LISTS_FROM_TEXT = 1 << 16, /* bytes of the whole text: the lists' heads must pay */
    MAX_RETURNS = 64
};

typedef int32_t lanes __attribute__((vector_size(16)));

/* The analyser cannot follow the rounding of n to `scanned`, which covers all that is read.
 * NOLINTBEGIN(clang-analyzer-core.*) */

/* Position of the smallest of r[n], n a multiple of 4; the first one on ties. */
static size_t lowest(const int32_t *r, size_t n)
{
    lanes best, v;
    memcpy(&best, r, sizeof(best));
    for (size_t i = 4; i < n; i += 4) {
        memcpy(&v, r + i, sizeof(v));
        const lanes less = v < best;
        best = (v & less) | (best & ~less);
    }
    int32_t least = best[0];
    for (int k = 1; k < 4; k++)
        least = best[k] < least ? best[k] : least;
    size_t i = 0;
    while (r[i] != least)
        i++;
    return i;
}

/* A look into the table in two parts, so that two can wait for memory at the same time. */
typedef struct probe {
    uint64_t pair, hash;
    bool may;
} probe;

static inline probe begin_probe(const ox_tokenizer *tok, int32_t left, int32_t right)
{
    probe p = {ox_bpe_pair(left, right), 0, false};
    p.hash = ox_bpe_hash(p.pair);
    p.may = ox_bpe_may_merge(tok, p.hash);
    if (p.may) __builtin_prefetch(&tok->merges[(size_t)p.hash & tok->merge_mask]);
    return p;
}

static inline int32_t end_probe(const ox_tokenizer *tok, probe p)
{
    return p.may ? (int32_t)(ox_bpe_find(tok, p.pair, p.hash) & INT32_MAX) : INT32_MAX;
}

/* Symbols stay where they are; a merged one is passed over. Ranks are signed, none is INT32_MAX. */
static size_t merge_small(const ox_tokenizer *tok, const char *bytes, int32_t *ids, size_t n)
{
    int32_t rank[SMALL + 4];
    uint8_t next[SMALL], before[SMALL];
    const size_t scanned = (n + 3) & ~(size_t)3;
    for (size_t i = 0; i < scanned; i++) {
        const uint32_t r = i + 1 >= n ? OX_BPE_NONE
                           : bytes    ? ox_bpe_raw_rank(tok, bytes + i)
                                      : ox_bpe_rank(tok, ids[i], ids[i + 1]);
        rank[i] = (int32_t)(r & INT32_MAX);
        if (i >= n) continue;
        next[i] = (uint8_t)(i + 1);
        before[i] = (uint8_t)(i - 1);
    }
    for (;;) {
        const size_t at = lowest(rank, scanned);
        if (rank[at] == INT32_MAX) break;
        const size_t gone = next[at], right = next[gone];
        ids[at] = tok->merged[rank[at]];
        next[at] = (uint8_t)right;
        rank[gone] = INT32_MAX;
        rank[at] = INT32_MAX;
        const size_t left = before[at];
        probe to_right = {0, 0, false}, to_left = {0, 0, false};
        if (right < n) {
            before[right] = (uint8_t)at;
            to_right = begin_probe(tok, ids[at], ids[right]);
        }
        if (at > 0) to_left = begin_probe(tok, ids[left], ids[at]);
        rank[at] = end_probe(tok, to_right);
        if (at > 0) rank[left] = end_probe(tok, to_left);
    }
    size_t left = 0;
    for (size_t i = 0; i < n; i = next[i])
        ids[left++] = ids[i];
    return left;
}

/* NOLINTEND(clang-analyzer-core.*) */

/* ---- a heap of candidates */

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

/* ---- symbols as a list */

static void rank_symbol(ox_tok_work *w, int32_t at)
{
    ox_symbol *s = &w->symbols.p[at];
    s->rank = s->next < 0 ? OX_BPE_NONE : ox_bpe_rank(w->tok, s->id, w->symbols.p[s->next].id);
}

/* Joins the symbol at `at` with its right neighbour. */
static void join(ox_tok_work *w, int32_t at)
{
    ox_symbol *s = w->symbols.p;
    const int32_t gone = s[at].next;
    s[at].id = w->tok->merged[s[at].rank];
    s[at].next = s[gone].next;
    if (s[gone].next >= 0) s[s[gone].next].prev = at;
    s[gone].id = -1;
    s[gone].rank = OX_BPE_NONE;
    rank_symbol(w, at);
    if (s[at].prev >= 0) rank_symbol(w, s[at].prev);
}

static bool offer(ox_tok_work *w, int32_t at)
{
    const uint32_t rank = at < 0 ? OX_BPE_NONE : w->symbols.p[at].rank;
    return rank == OX_BPE_NONE || heap_push(w, (ox_candidate){rank, at});
}

static bool merge_by_heap(ox_tok_work *w)
{
    w->heap.n = 0;
    for (int32_t i = 0; i >= 0; i = w->symbols.p[i].next) {
        if (!offer(w, i)) return false;
    }
    while (w->heap.n) {
        const ox_candidate c = heap_pop(w);
        if (w->symbols.p[c.at].rank != c.rank) continue; /* its symbols have changed */
        join(w, c.at);
        if (!offer(w, c.at) || !offer(w, w->symbols.p[c.at].prev)) return false;
    }
    return true;
}

/* ---- a list for each rank */

typedef struct entry {
    int32_t at;
    uint32_t next; /* entry + 1 */
} entry;

struct ox_rank_lists {
    uint32_t *heads; /* by rank: the entry put last + 1; 0 = empty. All empty between two uses */
    uint64_t *some;  /* a bit for each rank with entries */
    uint64_t *words; /* a bit for each word of `some` that is not 0 */
    size_t n_words;
    OX_VEC(entry) entries;
    OX_VEC(int32_t) now; /* of the rank that is worked on, from left to right */
};

void ox_bpe_lists_close(ox_rank_lists **lists)
{
    if (!*lists) return;
    ox_free((*lists)->heads);
    ox_free((*lists)->some);
    ox_free((*lists)->words);
    ox_vec_deinit(&(*lists)->entries);
    ox_vec_deinit(&(*lists)->now);
    ox_free(*lists);
    *lists = NULL;
}

static bool lists_open(ox_rank_lists **out, size_t n_ranks)
{
    ox_rank_lists *q = ox_calloc(1, sizeof(*q));
    if (!q) return false;
    q->n_words = n_ranks / 64 + 1;
    q->heads = ox_calloc(n_ranks + 1, sizeof(*q->heads));
    q->some = ox_calloc(q->n_words, sizeof(*q->some));
    q->words = ox_calloc(q->n_words / 64 + 1, sizeof(*q->words));
    if (!q->heads || !q->some || !q->words) ox_bpe_lists_close(&q);
    *out = q;
    return q != NULL;
}

static bool put(ox_rank_lists *q, uint32_t rank, int32_t at)
{
    if (!ox_vec_push(&q->entries, (entry){at, q->heads[rank]})) return false;
    q->heads[rank] = (uint32_t)q->entries.n;
    q->some[rank / 64] |= 1ull << rank % 64;
    q->words[rank / 4096] |= 1ull << (rank / 64) % 64;
    return true;
}

static int by_place(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Takes the list of the lowest rank into q->now; false when all are empty or memory is short. */
static bool take_lowest(ox_rank_lists *q, uint32_t *rank, bool *ok)
{
    size_t word = 0;
    while (word <= q->n_words / 64 && !q->words[word])
        word++;
    if (word > q->n_words / 64) return false;
    const size_t some = word * 64 + (size_t)__builtin_ctzll(q->words[word]);
    *rank = (uint32_t)(some * 64 + (size_t)__builtin_ctzll(q->some[some]));
    q->some[some] &= q->some[some] - 1;
    if (!q->some[some]) q->words[word] &= q->words[word] - 1;
    q->now.n = 0;
    bool sorted = true;
    for (uint32_t e = q->heads[*rank]; e; e = q->entries.p[e - 1].next) {
        const int32_t at = q->entries.p[e - 1].at;
        sorted = sorted && (!q->now.n || at <= q->now.p[q->now.n - 1]);
        if (!ox_vec_push(&q->now, at)) return *ok = false;
    }
    q->heads[*rank] = 0;
    for (size_t i = 0; i < q->now.n / 2; i++) { /* put last comes first */
        const int32_t swap = q->now.p[i];
        q->now.p[i] = q->now.p[q->now.n - 1 - i];
        q->now.p[q->now.n - 1 - i] = swap;
    }
    if (!sorted) qsort(q->now.p, q->now.n, sizeof(*q->now.p), by_place);
    return true;
}

/* Puts the pair that begins at `at`; *lower: it must come before `rank`. */
static bool put_symbol(ox_tok_work *w, int32_t at, uint32_t rank, bool *lower)
{
    const uint32_t r = at < 0 ? OX_BPE_NONE : w->symbols.p[at].rank;
    if (r == OX_BPE_NONE) return true;
    *lower = *lower || r < rank;
    return put(w->lists, r, at);
}

static bool merge_rank(ox_tok_work *w, uint32_t rank, size_t *n_returns)
{
    ox_rank_lists *q = w->lists;
    for (size_t i = 0; i < q->now.n; i++) {
        const int32_t at = q->now.p[i];
        bool lower = false;
        if (w->symbols.p[at].rank != rank) continue; /* its symbols have changed */
        join(w, at);
        if (!put_symbol(w, w->symbols.p[at].prev, rank, &lower) || !put_symbol(w, at, rank, &lower))
            return false;
        if (!lower) continue;
        ++*n_returns;
        for (i++; i < q->now.n; i++) {
            if (w->symbols.p[q->now.p[i]].rank == rank && !put(q, rank, q->now.p[i])) return false;
        }
    }
    return true;
}

static bool merge_by_lists(ox_tok_work *w)
{
    size_t n_returns = 0;
    uint32_t rank = 0;
    bool ok = w->lists || lists_open(&w->lists, w->tok->n_merges), lower = false;
    if (!ok) return false;
    w->lists->entries.n = 0;
    for (int32_t i = 0; ok && i >= 0; i = w->symbols.p[i].next)
        ok = put_symbol(w, i, 0, &lower);
    while (ok && n_returns < MAX_RETURNS && take_lowest(w->lists, &rank, &ok))
        ok = merge_rank(w, rank, &n_returns);
    if (ok && n_returns < MAX_RETURNS) return true;
    ox_bpe_lists_close(&w->lists); /* not empty */
    return ok && merge_by_heap(w);
}

bool ox_bpe_merge(ox_tok_work *w, const char *bytes)
{
    const size_t n = w->pieces.n;
    size_t left = 0;
    if (n <= SMALL) {
        w->pieces.n = n ? merge_small(w->tok, bytes, w->pieces.p, n) : 0;
        return true;
    }
    if (!ox_vec_reserve(&w->symbols, n)) return false;
    ox_symbol *s = w->symbols.p;
    for (size_t i = 0; i < n; i++) {
        const int32_t id = w->pieces.p[i];
        s[i] = (ox_symbol){id, (int32_t)i - 1, i + 1 < n ? (int32_t)i + 1 : -1, OX_BPE_NONE};
        if (i + 1 < n)
            s[i].rank = bytes ? ox_bpe_raw_rank(w->tok, bytes + i)
                              : ox_bpe_rank(w->tok, id, w->pieces.p[i + 1]);
    }
    const bool lists = n >= LISTS_FROM && w->text_bytes >= LISTS_FROM_TEXT;
    if (!(lists ? merge_by_lists(w) : merge_by_heap(w))) return false;
    for (int32_t i = 0; i >= 0; i = s[i].next)
        w->pieces.p[left++] = s[i].id;
    w->pieces.n = left;
    return true;
}
