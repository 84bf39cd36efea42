/* tokenizer.h - text to token ids and back, as a tokenizer.json describes it.
 *
 * A tokenizer is immutable after open: any number of threads may use one at the same time. Encoding
 * runs: added tokens, normalizers, pre-tokenizers, model, post-processor (src/text/tok has one file
 * per step, one .def row per kind). Streaming output is in text/detok.h. */
#ifndef OX_TEXT_TOKENIZER_H
#define OX_TEXT_TOKENIZER_H
#include "base/status.h"
#include "base/str.h"

typedef struct ox_tokenizer ox_tokenizer;

/* Token ids; zero is empty, the owner calls ox_vec_deinit (base/vec.h). */
typedef struct ox_ids {
    int32_t *p;
    size_t n, cap;
} ox_ids;

/* Bytes [begin, end) of a text. */
typedef struct ox_range {
    uint32_t begin, end;
} ox_range;

typedef struct ox_ranges {
    ox_range *p;
    size_t n, cap;
} ox_ranges;

enum { OX_TOKENIZER_MAX_TEXT = 256 << 20 }; /* bytes of one text */

/* Reads tokenizer.json (or a SentencePiece model or tiktoken file, known by its bytes) and, unless
 * empty, tokenizer_config.json (names of the special tokens, add_bos_token, add_eos_token). Neither
 * text is kept. Truncation and padding in the file are ignored. A kind that is not known is refused
 * by name (OX_UNSUPPORTED). */
ox_status ox_tokenizer_open(ox_tokenizer **out, ox_str tokenizer_json, ox_str config_json,
                            ox_err *err);
/* The same, by way of the user's cache folder for large files: what was built once is mapped from
 * there. Trouble with the cache is never an error. */
ox_status ox_tokenizer_open_cached(ox_tokenizer **out, ox_str file, ox_str config_json,
                                   ox_err *err);
void ox_tokenizer_close(ox_tokenizer **tok); /* NULL allowed */

enum {
    OX_ENCODE_ADD_SPECIAL = 1,  /* begin and end of text as the post-processor says */
    OX_ENCODE_PARSE_SPECIAL = 2 /* special tokens written out in the text become their ids */
};

/* Appends the ids of text to *ids. Text that is not UTF-8 is refused with the byte's offset;
 * patterns that take too long end in OX_LIMIT. On failure *ids has its old length. */
ox_status ox_tokenizer_encode(const ox_tokenizer *tok, ox_str text, unsigned flags, ox_ids *ids,
                              ox_err *err);

/* The same, and which bytes of text each new id stands for, appended to *ranges. A token that holds
 * a part of a character has the whole character's range, one that was added around the text an
 * empty one. White space at the ends counts unless the file says otherwise (trim_offsets). Slower
 * than without. */
ox_status ox_tokenizer_encode_ranges(const ox_tokenizer *tok, ox_str text, unsigned flags,
                                     ox_ids *ids, ox_ranges *ranges, ox_err *err);

/* Appends the text of n ids to *out: always UTF-8, ill-formed bytes become U+FFFD. Ids that name
 * no token are skipped. */
ox_status ox_tokenizer_decode(const ox_tokenizer *tok, const int32_t *ids, size_t n,
                              bool skip_special, ox_buf *out, ox_err *err);

/* Highest id + 1. The logits of a model may be wider: ids from here on are no tokens. */
size_t ox_tokenizer_n_vocab(const ox_tokenizer *tok);

/* Bytes that the token adds in the middle of a text; may be part of a character. Empty for ids
 * that name no token. Borrowed from the tokenizer. */
ox_str ox_tokenizer_piece(const ox_tokenizer *tok, int32_t id);
/* At the start of a text one leading space of the output is dropped. */
bool ox_tokenizer_strips_first_space(const ox_tokenizer *tok);

/* The token as the file spells it; empty p when the id names no token. */
ox_str ox_tokenizer_token(const ox_tokenizer *tok, int32_t id);
int32_t ox_tokenizer_id(const ox_tokenizer *tok, ox_str token); /* as spelled; -1 when unknown */
bool ox_tokenizer_is_special(const ox_tokenizer *tok, int32_t id);

typedef enum ox_special {
    OX_SPECIAL_BOS,
    OX_SPECIAL_EOS,
    OX_SPECIAL_PAD,
    OX_SPECIAL_UNK,
    OX_SPECIAL_COUNT
} ox_special;

/* What tokenizer_config.json names; -1 when it names none (unk: else the model's). */
int32_t ox_tokenizer_special(const ox_tokenizer *tok, ox_special which);
/* Whether OX_ENCODE_ADD_SPECIAL puts the beginning-of-text token in front. */
bool ox_tokenizer_adds_bos(const ox_tokenizer *tok);
#endif
