/* tok_internal.h - the parts of a tokenizer and what one call of encode carries along.
 *
 * A tokenizer is: added tokens, normalizers, pre-tokenizers, a model, ids around the text,
 * decoders. Lists nested in the file ("Sequence") are flattened. Every kind is a row of
 * normalizers.def, pretokenizers.def, models.def, processors.def or decoders.def: a function that
 * reads the options and one that runs. Everything here is built by
 * open.c and constant afterwards. */
#ifndef OX_TEXT_TOK_INTERNAL_H
#define OX_TEXT_TOK_INTERNAL_H
#include "base/arena.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/vec.h"
#include "text/tok/regex.h"
#include "text/tok/trie.h"
#include "text/tok/vocab.h"
#include "text/tokenizer.h"

#include <stdatomic.h>

enum {
    OX_TOK_MAX_STEPS = 64,      /* normalizers, pre-tokenizers or decoders in all */
    OX_TOK_MAX_BYTES = 1 << 30, /* of a text while it is rewritten */
    OX_TOK_MAX_ADDED = 1 << 16, /* added tokens */
    OX_TOK_UNK_MISSING = -2,    /* the model names an unk_token that is no token */
    OX_TOK_MAX_CONTENT = 1024   /* bytes of an added token */
};

typedef struct ox_span {
    uint32_t at, n; /* bytes */
} ox_span;

typedef OX_VEC(ox_span) ox_spans;

/* Where the bytes of a rewritten text come from: one range of the given text for each byte. */
typedef OX_VEC(ox_range) ox_origins;

typedef struct ox_symbol {
    int32_t id, prev, next; /* id -1: merged away */
    uint32_t rank;          /* of the pair with the next one */
} ox_symbol;

typedef struct ox_candidate {
    uint32_t rank;
    int32_t at; /* left symbol */
} ox_candidate;

typedef struct ox_rank_lists ox_rank_lists;
typedef struct ox_word_cache ox_word_cache;

/* What one call leaves to the next: the only part of a tokenizer that changes. */
typedef struct ox_tok_spare {
    _Atomic(ox_word_cache *) cache;
} ox_tok_spare;

/* State of one encode call; owned by it. */
typedef struct ox_tok_work {
    const ox_tokenizer *tok;
    ox_err *err;
    unsigned flags;
    ox_ids *ids;
    ox_buf normal[2]; /* the normalizers write here in turn */
    ox_buf text[2];   /* the pre-tokenizers write here in turn */
    unsigned i_text;
    ox_str now;        /* the text that spans point into */
    ox_str whole;      /* the text as given */
    size_t text_bytes; /* of the whole text */
    bool at_start;     /* it begins at the start of the whole text */
    ox_spans spans, next;
    ox_regex_run run;
    OX_VEC(ox_symbol) symbols; /* of one piece */
    OX_VEC(ox_candidate) heap;
    ox_word_cache *cache;
    ox_rank_lists *lists;
    void *long_words;
    void *paths; /* unigram: one node a byte */
    size_t paths_cap;
    ox_ids pieces;
    /* Offsets (offsets.c): kept when `track` is set. from: of the text that is read, NULL = it lies
     * `base` bytes into the given text. made: of the text that is being written. */
    bool track;
    const ox_range *from;
    size_t base;
    ox_origins made, normal_from[2], text_from[2];
    ox_ranges *ranges; /* one for each id, or NULL */
} ox_tok_work;

/* ---- added tokens (added.c) */
typedef struct ox_added {
    ox_str content; /* in the tokenizer's arena */
    ox_str shown;   /* what decoding starts from: the normal form of normalized tokens */
    int32_t id;
    bool special, normalized, single_word, lstrip, rstrip;
    bool hidden;  /* dropped with the special tokens: what it shows is the content of one */
    bool literal; /* looked for in normalized text, but as it is */
} ox_added;

typedef struct ox_added_hit {
    int32_t id; /* -1: text between tokens */
    ox_span span;
} ox_added_hit;

typedef OX_VEC(ox_added_hit) ox_added_hits;

/* Adds one unless its content is there already; an id comes from the model or is the next free. */
ox_status ox_tok_add(ox_tokenizer *tok, ox_added token, ox_err *err);
ox_status ox_tok_read_added(ox_tokenizer *tok, const ox_json *list, ox_err *err);
/* Builds both automata; the normalizers must be complete. */
ox_status ox_tok_finish_added(ox_tokenizer *tok, ox_err *err);
/* Splits text at added tokens; false = out of memory. */
bool ox_tok_split_added(const ox_tok_work *w, const ox_trie *trie, ox_str text,
                        ox_added_hits *hits);

/* Bytes of the longest literal token that begins s; 0 = none. */
size_t ox_tok_literal_at(const ox_tokenizer *tok, ox_str s);

/* ---- normalizers (normalize.c, compose.c, charsmap.c) */
typedef struct ox_normalizer {
    const struct ox_normalizer_kind *kind;
    ox_regex *regex;
    ox_str text, content;
    bool on[4];
    const uint32_t *units; /* charsmap: double array */
    size_t n_units;
} ox_normalizer;

typedef struct ox_normalizer_kind {
    const char *name;
    ox_status (*read)(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json, ox_err *err);
    /* Appends the result to *out (empty before). NULL run: nothing to do. */
    ox_status (*run)(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out);
    bool skips_ascii; /* leaves ASCII as it is */
} ox_normalizer_kind;

ox_status ox_tok_read_normalizers(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err);
/* *out is text itself or lies in w->normal. */
ox_status ox_tok_normalize(ox_tok_work *w, ox_str text, ox_str *out);
/* compat: NFKC/NFKD; compose: NFC/NFKC. false = out of memory. */
bool ox_tok_normal_form(ox_tok_work *w, ox_str in, bool compat, bool compose, ox_buf *out);
ox_status ox_tok_read_charsmap(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json,
                               ox_err *err);
ox_status ox_tok_run_charsmap(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out);

ox_status ox_tok_read_sp(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json, ox_err *err);
ox_status ox_tok_run_sp(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out);

/* ---- offsets (offsets.c): what a step that rewrites text tells about it */
/* All that was put into *out since the last call stands for in[begin, end). */
void ox_tok_made(ox_tok_work *w, const ox_buf *out, ox_str in, const char *begin, const char *end);
/* The same character by character: begin to end was copied. */
void ox_tok_copied(ox_tok_work *w, const ox_buf *out, ox_str in, const char *begin,
                   const char *end);
/* Ranges of the ids from `first` on, which are those of a piece of w->now. */
bool ox_tok_measure(ox_tok_work *w, ox_str piece, size_t first);
/* The range of the given text that in[at, at + n) comes from. */
ox_range ox_tok_origin(const ox_tok_work *w, ox_str in, size_t at, size_t n);
/* Whether the first byte of the text that is read is the first one of the given text. */
bool ox_tok_begins_text(const ox_tok_work *w);

/* ---- pre-tokenizers (pretokenize.c, split.c, bytelevel.c) */
typedef enum ox_split_how {
    OX_SPLIT_REMOVED,
    OX_SPLIT_ISOLATED,
    OX_SPLIT_WITH_PREVIOUS,
    OX_SPLIT_WITH_NEXT,
    OX_SPLIT_CONTIGUOUS
} ox_split_how;

typedef struct ox_pretokenizer {
    const struct ox_pretokenizer_kind *kind;
    ox_regex *regex; /* or */
    ox_str text;     /* literal pattern, replacement */
    bool (*is)(uint32_t c);
    ox_split_how how;
    bool invert, on[2];
    size_t length;
} ox_pretokenizer;

typedef struct ox_pretokenizer_kind {
    const char *name;
    ox_status (*read)(ox_tokenizer *tok, ox_pretokenizer *p, const ox_json *json, ox_err *err);
    /* Turns w->now and w->spans into new ones. */
    ox_status (*run)(const ox_pretokenizer *p, ox_tok_work *w);
    bool rewrites; /* changes letters, so that spans point into a new text */
} ox_pretokenizer_kind;

/* ByteLevel that only spells bytes, or splits by its pattern and spells: *split is that or NULL. */
bool ox_tok_is_byte_level(const ox_pretokenizer *p, const ox_regex **split);
ox_status ox_tok_read_pretokenizers(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err);
/* From w->now as one span to the pieces for the model. */
ox_status ox_tok_pretokenize(ox_tok_work *w, ox_str text, bool at_start);
/* Splits every span by p's pattern in p's way. */
ox_status ox_tok_split(const ox_pretokenizer *p, ox_tok_work *w);
ox_status ox_tok_split_by(ox_tok_work *w, const ox_regex *regex, ox_split_how how, bool invert);
ox_status ox_tok_split_chars(ox_tok_work *w, bool (*is)(uint32_t), ox_split_how how, bool invert);
ox_status ox_tok_no_memory(ox_tok_work *w);
/* The buffer that rewriting steps fill, cleared. ox_tok_swap_text makes it w->now. */
ox_buf *ox_tok_next_text(ox_tok_work *w);
ox_status ox_tok_swap_text(ox_tok_work *w);

/* Byte b in the 256-character alphabet, UTF-8 of two bytes at most. */
typedef struct ox_byte_char {
    char utf8[3];
    uint8_t n;
} ox_byte_char;
ox_byte_char ox_byte_to_char(uint8_t b);
void ox_bytes_to_chars(ox_str in, ox_buf *out);
/* Back again; false when a character is not of the alphabet (then *out is unchanged). */
bool ox_chars_to_bytes(ox_str in, ox_buf *out);

/* ---- models (bpe.c, wordpiece.c, unigram.c) */
typedef struct ox_model_kind {
    const char *name;
    ox_status (*read)(ox_tokenizer *tok, const ox_json *json, ox_err *err);
    ox_status (*run)(ox_tok_work *w, ox_str piece); /* appends ids; piece is not empty */
} ox_model_kind;

ox_status ox_tok_read_model(ox_tokenizer *tok, const ox_json *json, ox_err *err);
/* Encodes all pieces of w. */
ox_status ox_tok_run_model(ox_tok_work *w);
/* Finds out whether pieces can stay bytes (bpe.c). */
ox_status ox_bpe_find_raw(ox_tokenizer *tok, ox_err *err);
/* Around the pieces of one text; moves: later text will lie where this one lies (bpe_word.c). */
void ox_bpe_begin_text(ox_tok_work *w, bool moves);
void ox_bpe_end_text(ox_tok_work *w);
void ox_bpe_lists_close(ox_rank_lists **lists);
/* Pieces by tok->only_split, each encoded as it is found. */
ox_status ox_bpe_run_split(ox_tok_work *w, ox_str text);
ox_status ox_tok_read_vocab_object(ox_tokenizer *tok, const ox_json *json, ox_err *err);
/* Ids of <0x00>..<0xFF>, -1 where missing. */
void ox_tok_find_byte_tokens(ox_tokenizer *tok);
/* Appends one id a byte; false when a byte has none (nothing appended) or memory is short. */
bool ox_tok_put_bytes(const ox_tokenizer *tok, ox_str s, ox_ids *ids);
bool ox_ids_push(ox_ids *ids, int32_t id);

/* ---- post-processors (process.c) */
typedef struct ox_processor_kind {
    const char *name;
    ox_status (*read)(ox_tokenizer *tok, const ox_json *json, ox_err *err);
} ox_processor_kind;

/* Appends to the ids around the text. */
ox_status ox_tok_read_processors(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err);
/* tokenizer_config.json: special tokens, add_bos_token, add_eos_token (config.c). */
ox_status ox_tok_read_config(ox_tokenizer *tok, ox_str text, ox_err *err);

/* ---- decoders (decode.c, decoders.c) */
typedef struct ox_token_list {
    ox_buf text;
    ox_spans spans;
} ox_token_list;

enum { OX_DECODER_KEEPS_FIRST = 1, OX_DECODER_CLEANS_UP = 0 }; /* places in on[] */

typedef struct ox_decoder {
    const struct ox_decoder_kind *kind;
    ox_regex *regex;
    ox_str text, content;
    bool on[2];
    uint32_t n_start, n_stop;
} ox_decoder;

typedef struct ox_decoder_kind {
    const char *name;
    ox_status (*read)(ox_tokenizer *tok, ox_decoder *d, const ox_json *json, ox_err *err);
    /* One token, the i-th of n. NULL: the token is kept. */
    void (*one)(const ox_decoder *d, ox_str token, size_t i, size_t n, ox_buf *out);
    /* All tokens at once, instead of one by one. */
    void (*all)(const ox_decoder *d, const ox_token_list *in, ox_token_list *out);
    /* Bytes of one token inside a stream, where it differs from `one`. */
    void (*piece)(const ox_decoder *d, ox_str token, ox_buf *out);
} ox_decoder_kind;

ox_status ox_tok_read_decoders(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err);
/* The string that decoding starts from; p NULL for ids that name no token (open.c). */
ox_str ox_tok_shown(const ox_tokenizer *tok, int32_t id);
/* Whether decoding without special tokens drops it. */
bool ox_tok_is_hidden(const ox_tokenizer *tok, int32_t id);
/* The byte of a token <0xHH>, or -1. */
int ox_tok_byte_token(ox_str t);
/* decoders[from..] on the list *a; *b is room. false = out of memory. */
bool ox_tok_run_decoders(const ox_tokenizer *tok, size_t from, ox_token_list *a, ox_token_list *b);
/* Decoding by pieces, for decode_how other than OX_DECODE_SLOWLY (pieces.c). */
ox_status ox_tok_decode_pieces(const ox_tokenizer *tok, const int32_t *ids, size_t n,
                               bool skip_special, ox_buf *out, ox_err *err);
/* Bytes of every token in mid-text; also finds strips_first_space. */
ox_status ox_tok_build_pieces(ox_tokenizer *tok, ox_err *err);

/* ---- the whole */
typedef enum ox_decode_how {
    OX_DECODE_SLOWLY,      /* by the list of decoders */
    OX_DECODE_PIECES,      /* pieces one after the other, then decoders[decode_rest..] */
    OX_DECODE_FALLBACK,    /* the same, with runs of byte tokens checked */
    OX_DECODE_BYTES,       /* pieces, then U+FFFD for what is ill-formed */
    OX_DECODE_FIRST_APART, /* pieces behind the first token */
} ox_decode_how;

struct ox_tokenizer {
    ox_arena arena;
    ox_mapping file; /* a packed tokenizer that is borrowed from (cache.c) */
    bool borrowed;
    ox_tok_spare *spare;
    ox_vocab vocab; /* of the model */

    OX_VEC(ox_added) added;
    ox_map added_by_content; /* -> position in added */
    int32_t max_added;       /* highest id of an added token, -1 */
    ox_trie added_raw, added_normal;
    int32_t *added_of_id; /* [n_vocab] position in added, -1 */

    OX_VEC(ox_normalizer) normalizers;
    OX_VEC(ox_pretokenizer) pretokenizers;
    OX_VEC(ox_decoder) decoders;
    bool has_decoder, has_processor;
    bool needs_origin; /* a step asks whether it stands at the start of the given text */
    bool trims;        /* offsets leave out the white space at the ends of tokens */

    const ox_model_kind *model;
    int32_t unk;
    bool fuse_unk, byte_fallback, ignore_merges;
    ox_str prefix, suffix; /* of continuing pieces, of the last piece */
    int32_t byte_ids[256];
    int32_t *char_ids; /* bpe: id of a character that is a token, -1; up to U+FFFF */
    /* bpe behind ByteLevel, all bytes known: pieces stay bytes and are not spelled in its alphabet
     */
    bool raw;
    int32_t raw_ids[256];
    ox_byte_char raw_chars[256];
    const ox_regex *only_split; /* raw: this one pattern, isolated, makes all the pieces; or NULL */
    uint64_t *merges;           /* bpe: [merge_mask + 1], see bpe.h; all ones = free */
    size_t merge_mask, n_merges;
    uint64_t *merge_bits; /* [(merge_bits_mask + 1) / 64] */
    size_t merge_bits_mask;
    int32_t *merged;     /* [n_merges] by rank: the token that two become */
    uint32_t *raw_ranks; /* [256][256] raw: of pairs of bytes */
    bool cuts;           /* bpe: words can be encoded apart, cut before U+2581 ... */
    bool joins[256];     /* ... unless this byte stands before it */
    size_t max_chars;    /* wordpiece */
    ox_trie trie;        /* unigram: position in scores */
    double *scores;      /* unigram, by id */
    double unk_score;
    bool single_precision; /* unigram: sums are rounded to float */

    ox_ids before, after; /* ids that OX_ENCODE_ADD_SPECIAL puts around the text */
    int32_t special[OX_SPECIAL_COUNT];

    size_t n_vocab;
    char *piece_bytes;
    size_t n_piece_bytes;
    uint32_t *piece_at; /* [n_vocab + 1], with marks (pieces.c) */
    ox_decode_how decode_how;
    size_t decode_rest;
    bool strips_first_space;
};

const ox_model_kind *ox_tok_model_at(size_t number); /* NULL: there is none such */
size_t ox_tok_model_number(const ox_model_kind *kind);
bool ox_tok_model_needs_merges(size_t number);
bool ox_tok_model_needs_scores(size_t number);
size_t ox_tok_piece_bytes(const ox_tokenizer *tok);
bool ox_tok_pieces_are_sound(const ox_tokenizer *tok);

/* A copy in the tokenizer's arena. */
ox_status ox_tok_copy(ox_tokenizer *tok, ox_str s, ox_str *out, ox_err *err);
ox_status ox_tok_read_pattern(ox_tokenizer *tok, const ox_json *json, const char *owner,
                              ox_regex **regex, ox_str *text, ox_err *err);
#endif
