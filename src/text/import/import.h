/* import.h - other files of tokenizers than tokenizer.json, written as one, so that a single reader
 * knows all. Some keys go beyond that format: "SentencePiece" among the normalizers, "ranks" and
 * "hidden" in models, "literal" in added tokens (docs/text.md). */
#ifndef OX_TEXT_IMPORT_IMPORT_H
#define OX_TEXT_IMPORT_IMPORT_H
#include "base/json.h"
#include "base/status.h"
#include "base/str.h"

enum { OX_IMPORT_MAX_TOKENS = 1 << 21 };

/* Looks at the file: SentencePiece (protobuf) and tiktoken (lines of base64 and rank) are written
 * to *json, and what tokenizer_config.json would say, when there is none, to *config_out. Anything
 * else leaves both empty. */
ox_status ox_tok_import(ox_str file, ox_str config, ox_buf *json, ox_buf *config_out, ox_err *err);

bool ox_tok_is_sentencepiece(ox_str file);
ox_status ox_tok_import_sentencepiece(ox_str file, ox_str config, ox_buf *json, ox_buf *config_out,
                                      ox_err *err);
bool ox_tok_is_tiktoken(ox_str file);
ox_status ox_tok_import_tiktoken(ox_str file, ox_str config, ox_buf *json, ox_err *err);

/* Standard base64, padded; decoding stops at '=' and fails on anything else that is no digit. */
void ox_base64_put(ox_buf *out, ox_str bytes);
bool ox_base64_read(ox_str text, ox_buf *out);

/* Small parts of tokenizer.json. */
void ox_tokj_flag(ox_json_writer *w, const char *key, bool on);
void ox_tokj_pair(ox_json_writer *w, const char *key, const char *text);
void ox_tokj_begin(ox_json_writer *w, const char *type); /* {"type": type */
void ox_tokj_added(ox_json_writer *w, ox_str content, size_t id, bool special);
#endif
