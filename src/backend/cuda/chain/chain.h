/* chain.h - the fused decode chain: what a decoder looks like to it, and how tokens come out.
 *
 * A chain is the list of phases of one token, captured several tokens at a time into a CUDA graph
 * with programmatic edges (docs/cuda.md draws it):
 *
 *   qkv    [embedding row] norm, linear, bias, rotation, append      one linear phase
 *   attend splits of the cache                                        one attention phase
 *   o      merge of the splits, linear, bias, + residual
 *   gate   norm, two linears, activation * up
 *   down   linear, bias, + residual
 *   head   norm, linear, soft-cap, noise, arg-max
 *
 * Device memory of weights, vectors, tables and pages belongs to the caller and outlives the chain.
 * One thread owns a chain. Nothing is allocated after ox_chain_open but graphs. */
#ifndef OX_BACKEND_CUDA_CHAIN_H
#define OX_BACKEND_CUDA_CHAIN_H
#include "kernel/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ox_chain ox_chain;

/* Where one cache lies inside a page: ox_cuda_kv of kernel/attend/cuda_kv.cuh. */
typedef struct ox_chain_kv {
    int64_t k_offset, v_offset; /* bytes */
    int32_t n_kv_heads, head_size, v_head_size;
} ox_chain_kv;

/* One linear phase's matrix: weights concatenated along rows, float32 bias [n] or NULL. */
typedef struct ox_chain_linear {
    ox_dev_pack w;
    const float *bias;
} ox_chain_linear;

typedef struct ox_chain_layer {
    ox_chain_linear qkv, o, gate_up, down;
    const void *norm1, *norm2;   /* gammas [hidden], float16 */
    const void *q_norm, *k_norm; /* gammas [head_size], or NULL */
    const float *rotary;         /* (cos, sin) [n_positions][rotary/2] */
    const float *sinks;          /* [n_heads] or NULL */
    ox_chain_kv kv;
    int32_t window; /* keys seen including the own one; 0 = all */
} ox_chain_layer;

typedef struct ox_chain_model {
    int32_t n_layers, hidden, ffn, vocab;
    int32_t n_heads, n_kv_heads, head_size;
    int32_t rotary; /* channels turned, even */
    int32_t interleaved;
    int32_t act; /* ox_act */
    float epsilon, scale, attend_softcap, logit_softcap;
    const void *embedding; /* [vocab][hidden] float16, embedding scale applied */
    const void *norm;      /* gamma before the head */
    ox_chain_linear head;
    const ox_chain_layer *layers; /* [n_layers], host; copied */
    int32_t max_positions;        /* of any sequence: sizes the page table */
    /* For measuring; ox_chain_defaults sets them. */
    int32_t force_rows[4]; /* row of linear.def for qkv, o, gate, down; -1 = the rule */
    int32_t force_attend;  /* row of attend.def; -1 = the rule */
    int32_t copies;        /* of the activations; 0 = the rule */
    int32_t plain;         /* 1: no programmatic edges */
    int32_t carve;         /* per cent of L1 that is shared memory, the same for all phases */
    int32_t merge_from;    /* splits from which they are merged by a phase of their own */
    int32_t skip;          /* bits of phases left out: qkv, attend, o, gate, down, head */
} ox_chain_model;

static inline void ox_chain_defaults(ox_chain_model *m)
{
    for (int i = 0; i < 4; i++)
        m->force_rows[i] = -1;
    m->force_attend = -1;
    m->copies = m->plain = m->skip = 0;
    m->merge_from = 8;
    m->carve = 28;
}

/* How tokens are chosen: the highest of logit / temperature + Gumbel(Philox(seed, position, id)),
 * or of the logit when temperature is 0; ties to the lower id. */
typedef struct ox_chain_sampling {
    float temperature;
    uint64_t seed;
} ox_chain_sampling;

enum {
    OX_CHAIN_RING = 256,  /* tokens remembered on the device and in the host's ring */
    OX_CHAIN_TOKENS = 8,  /* tokens a graph at most */
    OX_CHAIN_SPLITS = 64, /* attention splits at most */
};

/* 0, or -1 with a sentence in why[why_bytes]. memory: ox_chain_bytes of zeros, the caller's, until
 * the chain is closed; on failure it is free again. */
size_t ox_chain_bytes(int32_t n_layers);
int ox_chain_open(ox_chain **out, void *memory, const ox_chain_model *m, void *stream, char *why,
                  size_t why_bytes);
void ox_chain_close(ox_chain **chain);
/* Starts a sequence: the next step embeds `token` at position pos; table: device array of pages. */
int ox_chain_start(ox_chain *c, int32_t pos, int32_t token, char *const *table, int32_t n_pages,
                   const ox_chain_sampling *s);
/* Enqueues `tokens` (1..8) more steps, for a context of at most `capacity` positions. */
int ox_chain_enqueue(ox_chain *c, int32_t tokens, int32_t capacity);
/* Token chosen at position pos (so it will sit at pos + 1), or -1 while it isn't there yet. */
int32_t ox_chain_token(const ox_chain *c, int32_t pos);
/* Device memory [vocab] float16: logits of the last step, when stored. */
const void *ox_chain_logits(const ox_chain *c);
void ox_chain_store_logits(ox_chain *c, int on);
void ox_chain_describe(const ox_chain *c, char *out, size_t n); /* rows taken, one a line */
/* Helpers for whoever builds a model, on the chain's stream: float32 to float16; separate tables to
 * pairs; float rows to a float16 head; a packed or float table [rows][cols] times scale to float16
 * rows. */
int ox_chain_halves(void *to, const float *from, int64_t n, void *stream);
int ox_chain_pairs(float *to, const float *cos_table, const float *sin_table, int64_t n,
                   void *stream);
size_t ox_chain_head_bytes(int32_t rows, int32_t cols); /* of a float16 head in tiles */
int ox_chain_head(ox_dev_pack *pack, void *to, const ox_dev_fweight *floats, void *stream);
int ox_chain_table(void *to, const ox_dev_pack *pack, const ox_dev_fweight *floats, int32_t rows,
                   int32_t cols, float scale, void *stream);

#ifdef __cplusplus
}
#endif
#endif
