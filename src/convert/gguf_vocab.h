/* gguf_vocab.h - the tokenizer that a GGUF file carries, written as tokenizer.json and
 * tokenizer_config.json, so that one tokenizer reads all models. */
#ifndef OX_CONVERT_GGUF_VOCAB_H
#define OX_CONVERT_GGUF_VOCAB_H
#include "base/status.h"
#include "base/str.h"
#include "file/gguf.h"

/* What the tokenizer.* keys of a file say. Views; the caller owns what they point to. */
typedef struct ox_gguf_vocab {
    ox_str kind;         /* tokenizer.ggml.model: gpt2, llama, ... */
    ox_str pre;          /* tokenizer.ggml.pre, may be empty */
    ox_str architecture; /* general.architecture, may be empty */
    size_t n;
    const ox_str *tokens; /* [n] */
    const float *scores;  /* [n] or NULL */
    const int32_t
        *types; /* [n] or NULL: 1 normal, 2 unknown, 3 control, 4 user, 5 unused, 6 byte */
    const ox_str *merges; /* [n_merges], "left right" */
    size_t n_merges;
    int64_t bos, eos, unk, pad;             /* ids, -1 = none */
    int add_bos, add_eos, add_space_prefix; /* 0, 1, or -1 where the file says nothing */
    ox_str chat_template;                   /* empty: none goes into tokenizer_config.json */
} ox_gguf_vocab;

/* Appends both texts. Kinds that are not known are OX_UNSUPPORTED, by name. Thread safe. */
ox_status ox_gguf_vocab_write(const ox_gguf_vocab *v, ox_buf *tokenizer_json,
                              ox_buf *tokenizer_config, ox_err *err);

/* The same from an open file; nothing is appended when it carries no tokenizer. */
ox_status ox_gguf_tokenizer(const ox_gguf *g, ox_buf *tokenizer_json, ox_buf *tokenizer_config,
                            ox_err *err);
/* Patterns of a row of gguf_pre.def, ended by NULL; NULL when there is no such row. */
const char *const *ox_gguf_split(const char *name);
#endif
