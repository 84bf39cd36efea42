/* gguf_tokenizer.c - collects the tokenizer.* keys of an open file for gguf_vocab.c. */
#include "base/mem.h"
#include "convert/gguf_vocab.h"

static int flag(const ox_gguf *g, const char *key)
{
    return ox_gguf_find(g, key) ? ox_gguf_bool(g, key, false) : -1;
}

static const ox_str *strings(const ox_gguf *g, const char *key, size_t *n)
{
    const ox_gguf_value *v = ox_gguf_find(g, key);
    *n = v && v->is_array && v->type == OX_GGUF_STRING ? v->n : 0;
    return *n ? v->strings : NULL;
}

/* An array of numbers with one item a token; NULL when the file has none of that length. */
static const ox_gguf_value *numbers(const ox_gguf *g, const char *key, size_t n)
{
    const ox_gguf_value *v = ox_gguf_find(g, key);
    return v && v->is_array && v->n >= n && v->type != OX_GGUF_STRING ? v : NULL;
}

ox_status ox_gguf_tokenizer(const ox_gguf *g, ox_buf *tokenizer_json, ox_buf *tokenizer_config,
                            ox_err *err)
{
    ox_gguf_vocab v = {.kind = ox_gguf_str(g, "tokenizer.ggml.model"),
                       .pre = ox_gguf_str(g, "tokenizer.ggml.pre"),
                       .architecture = ox_gguf_str(g, "general.architecture"),
                       .bos = ox_gguf_i64(g, "tokenizer.ggml.bos_token_id", -1),
                       .eos = ox_gguf_i64(g, "tokenizer.ggml.eos_token_id", -1),
                       .unk = ox_gguf_i64(g, "tokenizer.ggml.unknown_token_id", -1),
                       .pad = ox_gguf_i64(g, "tokenizer.ggml.padding_token_id", -1),
                       .add_bos = flag(g, "tokenizer.ggml.add_bos_token"),
                       .add_eos = flag(g, "tokenizer.ggml.add_eos_token"),
                       .add_space_prefix = flag(g, "tokenizer.ggml.add_space_prefix"),
                       .chat_template = ox_gguf_str(g, "tokenizer.chat_template")};
    v.tokens = strings(g, "tokenizer.ggml.tokens", &v.n);
    v.merges = strings(g, "tokenizer.ggml.merges", &v.n_merges);
    if (!v.n) return OX_OK;
    const ox_gguf_value *scores = numbers(g, "tokenizer.ggml.scores", v.n);
    const ox_gguf_value *types = numbers(g, "tokenizer.ggml.token_type", v.n);
    ox_status st = OX_OK;
    float *f = scores ? ox_calloc(v.n, sizeof(*f)) : NULL;
    int32_t *t = types ? ox_calloc(v.n, sizeof(*t)) : NULL;
    if ((scores && !f) || (types && !t)) {
        st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer of %zu tokens", v.n);
        goto fail;
    }
    for (size_t i = 0; i < v.n; i++) {
        if (f) f[i] = (float)ox_gguf_item_f64(scores, i);
        if (t) t[i] = (int32_t)ox_gguf_item_i64(types, i);
    }
    v.scores = f;
    v.types = t;
    st = ox_gguf_vocab_write(&v, tokenizer_json, tokenizer_config, err);
fail:
    ox_free(f);
    ox_free(t);
    return st;
}
