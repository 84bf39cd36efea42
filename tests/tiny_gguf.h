/* tiny_gguf.h - writes a GGUF file of a tiny random decoder, for test programs: a sound one, or one
 * with a tensor left out, of another shape or type, or another key. */
#ifndef OX_TESTS_TINY_GGUF_H
#define OX_TESTS_TINY_GGUF_H
#include "base/fs.h"
#include "tensor/half.h"
#include "tensor/weight.h"

#include <stdio.h>

enum {
    TINY_HIDDEN = 32,
    TINY_FF = 64,
    TINY_HEADS = 2,
    TINY_KV = 1,
    TINY_HEAD = 16,
    TINY_VOCAB = 48
};

typedef struct tiny_gguf {
    const char *arch;
    int32_t n_layers;
    ox_format format; /* of matrices; block 32 or 1 */
    bool tied, qkv_bias, fused;
    const char *without;   /* this tensor is left out */
    const char *misshapen; /* this one has a column too many blocks */
    int32_t wrong_type;    /* ggml type that `misshapen` claims instead, 0 = the shape is wrong */
    int32_t n_heads;       /* 0 = TINY_HEADS */
} tiny_gguf;

typedef struct tiny_writer {
    ox_buf keys, infos, data;
    uint64_t n_keys, n_tensors;
    uint32_t seed;
} tiny_writer;

static inline void tiny_u32(ox_buf *b, uint32_t v)
{
    ox_buf_put(b, &v, 4);
}

static inline void tiny_u64(ox_buf *b, uint64_t v)
{
    ox_buf_put(b, &v, 8);
}

static inline void tiny_str(ox_buf *b, const char *s)
{
    tiny_u64(b, strlen(s));
    ox_buf_put_z(b, s);
}

static inline void tiny_key(tiny_writer *w, const char *arch, const char *name, uint32_t type,
                            uint32_t value)
{
    char key[128];
    snprintf(key, sizeof key, "%s%s%s", arch ? arch : "", arch ? "." : "", name);
    tiny_str(&w->keys, key);
    tiny_u32(&w->keys, type);
    tiny_u32(&w->keys, value);
    w->n_keys++;
}

static inline float tiny_random(tiny_writer *w)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (float)(int32_t)w->seed / 2147483648.0f;
}

/* One block of `format` with random codes and a scale that gives values of a usual size. */
static inline void tiny_block(tiny_writer *w, ox_format format)
{
    uint8_t block[64];
    const size_t n = ox_format_block_bytes(format);
    for (size_t i = 0; i < n; i++) {
        (void)tiny_random(w);
        block[i] = (uint8_t)(w->seed >> 24);
    }
    const uint16_t scale = ox_f32_to_f16(format == OX_FORMAT_Q8_0 ? 0.002f : 0.03f);
    const uint16_t least = ox_f32_to_f16(-0.2f);
    memcpy(block, &scale, 2);
    if (format == OX_FORMAT_Q4_1 || format == OX_FORMAT_Q5_1) memcpy(block + 2, &least, 2);
    ox_buf_put(&w->data, block, n);
}

static inline void tiny_tensor(tiny_writer *w, const tiny_gguf *t, const char *name, int64_t rows,
                               int64_t cols)
{
    const bool vector = !rows, odd = t->misshapen && !strcmp(name, t->misshapen);
    const ox_format format = vector ? OX_FORMAT_F32 : t->format;
    static const int32_t codes[] = {
#define OX_FORMAT(suffix, label, code, block, bytes) code,
#include "tensor/formats.def"
#undef OX_FORMAT
    };
    if (t->without && !strcmp(name, t->without)) return;
    if (odd && !t->wrong_type) cols += 32;
    tiny_str(&w->infos, name);
    tiny_u32(&w->infos, vector ? 1 : 2);
    tiny_u64(&w->infos, (uint64_t)cols);
    if (!vector) tiny_u64(&w->infos, (uint64_t)rows);
    tiny_u32(&w->infos, (uint32_t)(odd && t->wrong_type ? t->wrong_type : codes[format]));
    while (w->data.n % 32)
        ox_buf_put_c(&w->data, 0);
    tiny_u64(&w->infos, w->data.n);
    w->n_tensors++;
    const int64_t n = (vector ? 1 : rows) * cols;
    if (format == OX_FORMAT_F32) {
        for (int64_t i = 0; i < n; i++) {
            const float v = vector ? 1 + 0.3f * tiny_random(w) : 0.3f * tiny_random(w);
            ox_buf_put(&w->data, &v, 4);
        }
        return;
    }
    for (int64_t i = 0; i < n / ox_format_block(format); i++)
        tiny_block(w, format);
}

static inline void tiny_layer(tiny_writer *w, const tiny_gguf *t, int32_t layer)
{
    const int64_t nq = TINY_HEADS * TINY_HEAD, nkv = TINY_KV * TINY_HEAD;
    const struct {
        const char *name;
        int64_t rows, cols;
        bool there;
    } tensors[] = {
        {"attn_norm.weight", 0, TINY_HIDDEN, true},
        {"attn_qkv.weight", nq + 2 * nkv, TINY_HIDDEN, t->fused},
        {"attn_q.weight", nq, TINY_HIDDEN, !t->fused},
        {"attn_k.weight", nkv, TINY_HIDDEN, !t->fused},
        {"attn_v.weight", nkv, TINY_HIDDEN, !t->fused},
        {"attn_q.bias", 0, nq, t->qkv_bias},
        {"attn_k.bias", 0, nkv, t->qkv_bias},
        {"attn_v.bias", 0, nkv, t->qkv_bias},
        {"attn_output.weight", TINY_HIDDEN, nq, true},
        {"ffn_norm.weight", 0, TINY_HIDDEN, true},
        {"ffn_gate.weight", TINY_FF, TINY_HIDDEN, !t->fused},
        {"ffn_up.weight", t->fused ? 2 * TINY_FF : TINY_FF, TINY_HIDDEN, true},
        {"ffn_down.weight", TINY_HIDDEN, TINY_FF, true},
    };
    for (size_t i = 0; i < OX_COUNT(tensors); i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s", layer, tensors[i].name);
        if (tensors[i].there) tiny_tensor(w, t, name, tensors[i].rows, tensors[i].cols);
    }
}

/* The file's bytes; false without memory. */
static inline bool tiny_gguf_bytes(const tiny_gguf *t, ox_buf *out)
{
    enum { U32 = 4, F32 = 6, STRING = 8 };
    tiny_writer w = {.seed = 1};
    const float epsilon = 1e-5f;
    tiny_str(&w.keys, "general.architecture");
    tiny_u32(&w.keys, STRING);
    tiny_str(&w.keys, t->arch);
    w.n_keys++;
    tiny_key(&w, t->arch, "block_count", U32, (uint32_t)t->n_layers);
    tiny_key(&w, t->arch, "embedding_length", U32, TINY_HIDDEN);
    tiny_key(&w, t->arch, "feed_forward_length", U32, TINY_FF);
    tiny_key(&w, t->arch, "attention.head_count", U32,
             (uint32_t)(t->n_heads ? t->n_heads : TINY_HEADS));
    tiny_key(&w, t->arch, "attention.head_count_kv", U32, TINY_KV);
    tiny_key(&w, t->arch, "context_length", U32, 64);
    tiny_key(&w, t->arch, "attention.layer_norm_rms_epsilon", F32, ox_f32_bits(epsilon));
    tiny_key(&w, NULL, "tokenizer.ggml.eos_token_id", U32, 2);
    tiny_tensor(&w, t, "token_embd.weight", TINY_VOCAB, TINY_HIDDEN);
    tiny_tensor(&w, t, "output_norm.weight", 0, TINY_HIDDEN);
    if (!t->tied) tiny_tensor(&w, t, "output.weight", TINY_VOCAB, TINY_HIDDEN);
    for (int32_t i = 0; i < t->n_layers; i++)
        tiny_layer(&w, t, i);
    ox_buf_put_z(out, "GGUF");
    tiny_u32(out, 3);
    tiny_u64(out, w.n_tensors);
    tiny_u64(out, w.n_keys);
    ox_buf_put_str(out, ox_buf_view(&w.keys));
    ox_buf_put_str(out, ox_buf_view(&w.infos));
    while (out->n % 32)
        ox_buf_put_c(out, 0);
    ox_buf_put_str(out, ox_buf_view(&w.data));
    const bool ok = !out->failed && !w.keys.failed && !w.infos.failed && !w.data.failed;
    ox_buf_deinit(&w.keys);
    ox_buf_deinit(&w.infos);
    ox_buf_deinit(&w.data);
    return ok;
}

/* Writes it to path; false on any failure. */
static inline bool tiny_gguf_write(const tiny_gguf *t, const char *path)
{
    ox_buf b = {0};
    const bool ok = tiny_gguf_bytes(t, &b) && !ox_file_write_atomic(path, ox_buf_view(&b), NULL);
    ox_buf_deinit(&b);
    return ok;
}
#endif
