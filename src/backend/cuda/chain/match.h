/* match.h - does a list of calls look like a decoder that the chain can run, and which call is
 * what.
 *
 * By structure and data flow only: which operand a call reads and writes, never names. Needs no
 * device. */
#ifndef OX_BACKEND_CUDA_CHAIN_MATCH_H
#define OX_BACKEND_CUDA_CHAIN_MATCH_H
#include "backend/call.h"

#include "base/vec.h"

/* Indices of calls; -1 = absent. */
typedef struct ox_match_layer {
    int32_t norm1, qkv, q_norm, k_norm, q_rotate, k_rotate, append, attend, o, norm2, gate_up, down;
} ox_match_layer;

typedef struct ox_match {
    int32_t embed, norm, head, head_scale;
    OX_VEC(ox_match_layer) layers;
    int32_t hidden, ffn, vocab, n_heads, n_kv_heads, head_size;
} ox_match;

/* True: *out is filled (ox_match_free). False: *why says in one sentence what the chain has no
 * phase for; NULL when memory ran out. */
bool ox_chain_matches(ox_match *out, const ox_call *calls, size_t n, const char **why);
void ox_match_free(ox_match *m);
#endif
