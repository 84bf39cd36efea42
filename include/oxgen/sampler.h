/* sampler.h - from logits to a token. Greedy is temperature 0: the highest logit, ties to the
 * lowest id. A sampled token = arg-max over the kept set of logit/temperature + Gumbel(Philox(seed,
 * position, id)). One owner; give it every token of the sequence so that penalties can count. */
#ifndef OXGEN_SAMPLER_H
#define OXGEN_SAMPLER_H
#include "oxgen/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ox_sampler ox_sampler;

typedef struct ox_logit_bias {
    int32_t id;
    float bias;
} ox_logit_bias;

typedef struct ox_sampler_options {
    uint32_t struct_size;
    float temperature;        /* 0: greedy */
    int32_t top_k;            /* 0: off; keeps exactly k, ties to the lower id */
    float top_p;              /* 1 or 0: off */
    float min_p;              /* 0: off */
    float repetition_penalty; /* 1: off; Hugging Face's rule over the whole sequence */
    float frequency_penalty;  /* 0: off; times the count among new tokens */
    float presence_penalty;   /* 0: off */
    uint64_t seed;
    const ox_logit_bias *bias; /* [n_bias] */
    size_t n_bias;
    const char
        *order; /* comma-separated names; NULL: "penalties,bias,top_k,top_p,min_p,temperature" */
    const int32_t
        *suppress; /* [n_suppress] ids never chosen (for instance to ignore end of text) */
    size_t n_suppress;
} ox_sampler_options;

OX_API void ox_sampler_options_init(ox_sampler_options *o);
OX_API ox_status ox_sampler_open(ox_sampler **out, const ox_sampler_options *o, ox_err *err);
OX_API void ox_sampler_close(ox_sampler **s);
/* Counts a token of the sequence; is_new = 0 for the prompt's. */
OX_API ox_status ox_sampler_accept(ox_sampler *s, int32_t id, int32_t is_new, ox_err *err);
OX_API void ox_sampler_rewind(ox_sampler *s, size_t n_tokens); /* keeps the first n accepted */
/* logits [n] are not changed. position = index the new token will have in its sequence. */
OX_API ox_status ox_sampler_pick(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                                 int32_t *id, ox_err *err);
/* log-softmax of the raw logits: the chosen id's value and the k best (descending, ties to the
 * lower id); margin = first minus second logit. ids, values: [k]. */
OX_API ox_status ox_logprobs(const float *logits, size_t n, int32_t chosen, size_t k,
                             float *chosen_lp, int32_t *ids, float *values, float *margin,
                             ox_err *err);

#ifdef __cplusplus
}
#endif
#endif
