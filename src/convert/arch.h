/* arch.h - the architectures that can be imported (arch.def), the names of their tensors
 * (roles.def), and what a file says about one model of them: ox_hparams, filled from GGUF metadata
 * (hparams_gguf.c) or from config.json (hparams_hf.c) and read by decoder.c. */
#ifndef OX_CONVERT_ARCH_H
#define OX_CONVERT_ARCH_H
#include "base/json.h"
#include "convert/rope.h"
#include "file/gguf.h"
#include "graph/terms.h"

/* What an architecture does that the plain decoder doesn't. */
enum {
    OX_TRAIT_GGUF_PAIRS = 1 << 0,     /* GGUF orders the rows of Q and K for pairs (2i, 2i+1) */
    OX_TRAIT_QKV_BIAS = 1 << 1,       /* biases on q, k and v */
    OX_TRAIT_QK_NORM = 1 << 2,        /* every head of q and k is normalised */
    OX_TRAIT_FUSED = 1 << 3,          /* q, k, v may be one tensor; gate and up are one tensor */
    OX_TRAIT_POST_NORMS = 1 << 4,     /* norms after attention and MLP, before the residual add */
    OX_TRAIT_ONE_PLUS_NORM = 1 << 5,  /* safetensors store gamma - 1 */
    OX_TRAIT_ROOT_EMBED = 1 << 6,     /* embeddings times sqrt(hidden) */
    OX_TRAIT_GELU = 1 << 7,           /* the MLP's activation is the tanh form of GELU */
    OX_TRAIT_TIED = 1 << 8,           /* tied embeddings unless the file says otherwise */
    OX_TRAIT_WINDOW = 1 << 9,         /* sliding_window counts */
    OX_TRAIT_WINDOW_OPTION = 1 << 10, /* it counts when use_sliding_window says so */
    OX_TRAIT_CAPS = 1 << 11,          /* soft-caps on scores and logits */
    OX_TRAIT_QUERY_SCALAR = 1 << 12,  /* softmax scale = query_pre_attn_scalar^-0.5 */
    OX_TRAIT_LOCAL_ROPE = 1 << 13,    /* windowed layers have their own rotary base */
    OX_TRAIT_PAIRS = 1 << 14,         /* pairs (2i, 2i+1) turn, in every kind of file */
};

typedef struct ox_arch {
    const char *gguf, *hf, *word;
    uint32_t traits;
} ox_arch;

typedef enum ox_arch_id {
#define OX_ARCH(suffix, gguf, hf, word, traits) OX_ARCH_##suffix,
#include "convert/arch.def"
#undef OX_ARCH
    OX_ARCH_COUNT
} ox_arch_id;

typedef enum ox_role {
#define OX_ROLE(suffix, gguf, hf, hf_post, node) OX_ROLE_##suffix,
#include "convert/roles.def"
#undef OX_ROLE
    OX_ROLE_COUNT
} ox_role;

enum { OX_LAYERS_MAX = 1024 };

typedef struct ox_hparams {
    const ox_arch *arch;
    bool is_gguf;
    int32_t n_layers, hidden, n_ff, n_heads, n_kv_heads, head_size;
    int64_t vocab, context;
    float epsilon;
    ox_act act;
    float embed_scale; /* 1 = none */
    float attend_scale;
    float attend_softcap, logit_softcap; /* 0 = none */
    bool qkv_bias, o_bias, mlp_bias, qk_norm, post_norms, one_plus_norm, fused;
    bool tied;      /* the head is the embedding when the file has no matrix of its own */
    int32_t window; /* 0 = none */
    bool windowed[OX_LAYERS_MAX];
    bool local_rope; /* windowed layers turn by rope[1] */
    ox_rope_rule rope[2];
} ox_hparams;

const ox_arch *ox_arch_find_gguf(ox_str name); /* NULL = not listed */
const ox_arch *ox_arch_find_hf(ox_str name);
/* "llama, qwen2, …": what a refusal lists; gguf picks the column. */
void ox_arch_list(ox_buf *out, bool gguf);

/* Sizes in range and consistent; every message names the key's meaning. */
ox_status ox_hparams_check(const ox_hparams *hp, ox_err *err);
/* h is about 1 KiB; zero it first. Strings and tables of factors are borrowed from the file. */
ox_status ox_hparams_from_gguf(ox_hparams *hp, const ox_gguf *g, ox_err *err);
ox_status ox_hparams_from_config(ox_hparams *hp, const ox_json *config, ox_arena *arena,
                                 ox_err *err);

/* The tensor's name in the file for a role, without ".weight"; NULL =
 * this architecture has none. */
const char *ox_role_pattern(const ox_hparams *hp, ox_role role);
const char *ox_role_node(const ox_hparams *hp, ox_role role); /* name pattern of the term */
#endif
