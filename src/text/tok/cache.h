/* cache.h - a tokenizer as bytes; see cache.c. */
#ifndef OX_TEXT_TOK_CACHE_H
#define OX_TEXT_TOK_CACHE_H
#include "base/fs.h"
#include "text/tok/tok_internal.h"

/* What is still read as text: tokenizer.json without its model, and the config. */
typedef struct ox_tok_parts {
    ox_str rest, config;
} ox_tok_parts;

/* Appends the packed tokenizer to *out (check out->failed). */
void ox_tok_pack(ox_tokenizer *t, ox_tok_parts *parts, const uint64_t key[2], ox_buf *out);
/* Points a fresh tokenizer into `file`, which must outlive it. false: not such a file, or damaged.
 * Without key neither it nor the checksum counts. */
bool ox_tok_unpack(ox_tokenizer *t, ox_tok_parts *parts, ox_str file, const uint64_t *key);
/* Forgets what is borrowed, so that closing does not free it. */
void ox_tok_let_go(ox_tokenizer *t);

/* open.c: from a packed file, whose mapping is taken over in every case. */
ox_status ox_tok_open_packed(ox_tokenizer **out, ox_mapping *map, const uint64_t *key, ox_err *err);
/* From bytes that outlive the tokenizer; for tests: neither key nor checksum counts. */
ox_status ox_tok_open_borrowed(ox_tokenizer **out, ox_str file, ox_err *err);
/* As ox_tokenizer_open; parts point into *rest, which the caller frees. */
ox_status ox_tok_open_keeping(ox_tokenizer **out, ox_str file, ox_str config, ox_buf *rest,
                              ox_tok_parts *parts, ox_err *err);
#endif
