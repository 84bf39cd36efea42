/* bpe.h - what the three files of byte-pair encoding share. */
#ifndef OX_TEXT_TOK_BPE_H
#define OX_TEXT_TOK_BPE_H
#include "text/tok/tok_internal.h"

enum {
    OX_BPE_ID_BITS = 21,
    OX_BPE_RANK_BITS = 22,
    OX_BPE_CHARS = 1 << 16 /* characters with a place of their own in char_ids */
};

#define OX_BPE_NONE UINT32_MAX
#define OX_BPE_MARK "\xe2\x96\x81" /* U+2581 stands for a space */

/* A merge is one word: left id, right id, rank. */
static inline uint64_t ox_bpe_pair(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << (OX_BPE_RANK_BITS + OX_BPE_ID_BITS) |
           (uint64_t)(uint32_t)right << OX_BPE_RANK_BITS;
}

static inline uint64_t ox_bpe_hash(uint64_t pair)
{
    const uint64_t h = (pair >> OX_BPE_RANK_BITS) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* A bit says whether any pair of this hash merges: most do not, and the bits stay in the cache. */
static inline bool ox_bpe_may_merge(const ox_tokenizer *tok, uint64_t hash)
{
    const size_t bit = (size_t)(hash >> 32) & tok->merge_bits_mask;
    return tok->merge_bits[bit / 64] >> bit % 64 & 1;
}

/* OX_BPE_NONE: the two do not merge. hash is ox_bpe_hash(pair). */
static inline uint32_t ox_bpe_find(const ox_tokenizer *tok, uint64_t pair, uint64_t hash)
{
    for (size_t at = (size_t)hash & tok->merge_mask;; at = (at + 1) & tok->merge_mask) {
        const uint64_t there = tok->merges[at];
        if (!((there ^ pair) >> OX_BPE_RANK_BITS))
            return (uint32_t)(there & ((1u << OX_BPE_RANK_BITS) - 1));
        if (there == UINT64_MAX) return OX_BPE_NONE;
    }
}

static inline uint32_t ox_bpe_rank(const ox_tokenizer *tok, int32_t left, int32_t right)
{
    const uint64_t pair = ox_bpe_pair(left, right), hash = ox_bpe_hash(pair);
    return ox_bpe_may_merge(tok, hash) ? ox_bpe_find(tok, pair, hash) : OX_BPE_NONE;
}

/* The same of two bytes, for raw pieces. */
static inline uint32_t ox_bpe_raw_rank(const ox_tokenizer *tok, const char *bytes)
{
    return tok->raw_ranks[(uint8_t)bytes[0] << 8 | (uint8_t)bytes[1]];
}

ox_status ox_bpe_run(ox_tok_work *w, ox_str piece);
/* Ids of one piece into w->pieces. */
ox_status ox_bpe_encode(ox_tok_work *w, ox_str piece);
/* Merges the symbols in w->pieces; bytes: they stand for these, or NULL. false = out of memory. */
bool ox_bpe_merge(ox_tok_work *w, const char *bytes);
#endif
