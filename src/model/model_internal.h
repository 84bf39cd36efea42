/* model_internal.h - what the parts of opening an ONNX folder share: open.c (finding the files),
 * genai.c (genai_config.json), facts.c (the Hugging Face files) and ports.c
 * (names of graph ports). */
#ifndef OX_MODEL_MODEL_INTERNAL_H
#define OX_MODEL_MODEL_INTERNAL_H
#include "base/json.h"
#include "file/onnx.h"
#include "model/source.h"

enum { OX_MODEL_MAX_CONFIG = 64 << 20 }; /* bytes of any text file of a model */

/* The bytes of dir/name in the source's arena, and its entry in the list of files; *out is empty
 * when there is no such file. name may lie in sub-folders, not outside dir. */
ox_status ox_model_read_text(ox_source *s, const char *dir, const char *name, ox_str *out,
                             ox_err *err);
/* The same, parsed; *root is NULL when there is no such file. */
ox_status ox_model_read_json(ox_source *s, const char *dir, const char *name, const ox_json **root,
                             ox_err *err);
ox_status ox_model_list_file(ox_source *s, const char *path, uint64_t bytes, ox_err *err);

/* genai_config.json: facts, port names (defaults where it names none), the decoder's file name and
 * the folder of the tokenizer (empty = the model's). */
/* Warns where genai_config.json names a port that ox_model_find_ports had to replace. */
ox_status ox_model_check_ports(ox_source *s, const ox_source *before);
ox_status ox_model_read_genai(ox_source *s, const ox_json *root, ox_str *decoder,
                              ox_str *tokenizer_dir, ox_err *err);
/* Adds every id of a number or list of numbers that is not there yet; negative ids mean none. */
ox_status ox_model_add_eos(ox_source *s, const ox_json *ids, ox_err *err);
/* config.json and generation_config.json, for folders without genai_config.json. */
ox_status ox_model_read_hf(ox_source *s, const char *dir, ox_err *err);
/* Tokenizer and chat templates; end-of-text from the tokenizer's files when nothing else said. */
ox_status ox_model_read_tokenizer(ox_source *s, const char *dir, ox_err *err);

/* Checks the port names that a config gave against the graph's own, and derives those that nothing
 * gave from names and shapes. A graph without token ids or logits is refused. */
ox_status ox_model_find_ports(ox_source *s, const ox_onnx_graph *g, ox_err *err);
/* Warns of inputs that no role was found for. */
ox_status ox_model_warn_inputs(ox_source *s, const ox_onnx_graph *g);
#endif
