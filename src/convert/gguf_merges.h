/* gguf_merges.h - the merges of a GGUF vocabulary as the member "merges" of tokenizer.json. Inside
 * convert/ only; see gguf_vocab.h. */
#ifndef OX_CONVERT_GGUF_MERGES_H
#define OX_CONVERT_GGUF_MERGES_H
#include "base/json.h"
#include "convert/gguf_vocab.h"

/* The token as the vocabulary spells it; empty tokens get a name of their own. respell: tokens that
 * are nothing but spaces are written with U+2581. */
void ox_gguf_spell(ox_str token, size_t id, bool respell, ox_buf *out);

/* From the file's list. Merges of tokens that are not there are left out. */
ox_status ox_gguf_put_merges(ox_json_writer *w, const ox_gguf_vocab *v, ox_err *err);

/* From the tokens: every way to cut one into two others is a merge. Best score first (by_position:
 * first token first), longer parts first on ties. */
ox_status ox_gguf_put_merges_by_score(ox_json_writer *w, const ox_gguf_vocab *v, bool by_position,
                                      ox_err *err);
#endif
