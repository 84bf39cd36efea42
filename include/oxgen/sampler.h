/* sampler.h - from logits to a token. Greedy is temperature 0: the highest logit, ties to the
 * lowest id. A sampled token = arg-max over the kept set of logit/temperature + Gumbel(Philox(seed,
 * position, id)). One owner; give it every token of the sequence so that penalties can count.
 * Steps, formulas, sources and default order: docs/samplers.md. */
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

typedef struct ox_token_list {
    const int32_t *ids; /* [n] */
    size_t n;
} ox_token_list;

typedef struct ox_forced_token {
    uint64_t position; /* index in the sequence, the prompt's tokens counted */
    int32_t id;
} ox_forced_token;

/* Filled by ox_sampler_options_init. Arrays are copied by ox_sampler_open. */
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
    const char *order; /* comma-separated names of steps; NULL: all, in their default order */
    const int32_t
        *suppress; /* [n_suppress] ids never chosen (for instance to ignore end of text) */
    size_t n_suppress;
    int32_t penalty_last_n; /* 0: penalties look at the whole sequence, else at its last n tokens */
    int32_t min_keep;       /* truncating steps keep at least so many (default 1) */
    float dynatemp_range;   /* 0: off; temperature - range to temperature + range, by entropy */
    float dynatemp_exponent;    /* 1 */
    float typical_p;            /* 1 or 0: off */
    float top_n_sigma;          /* 0: off */
    float epsilon_cutoff;       /* 0: off */
    float eta_cutoff;           /* 0: off */
    float tail_free;            /* 1 or 0: off */
    float top_a;                /* 0: off */
    float xtc_probability;      /* 0: off */
    float xtc_threshold;        /* 0.1; above 0.5 nothing is excluded */
    float dry_multiplier;       /* 0: off */
    float dry_base;             /* 1.75 */
    int32_t dry_allowed_length; /* 2 */
    int32_t dry_last_n;         /* -1: the whole sequence */
    int32_t mirostat;           /* 0: off, 1 or 2: the version */
    float mirostat_tau;         /* 5: wanted surprise in bits */
    float mirostat_eta;         /* 0.1: learning rate */
    int32_t no_repeat_ngram;    /* 0: off; no n-gram of the sequence comes twice */
    int32_t min_length;         /* tokens of prompt and answer before an end id may come */
    int32_t min_new;            /* tokens of the answer before an end id may come */
    float guidance_scale;       /* 1: off; see ox_sampler_guide */
    int32_t top_k_ties;         /* 1: what equals the k-th stays too, as Hugging Face has it */
    const int32_t *end_ids;     /* [n_end_ids] what min_length and min_new hold back */
    size_t n_end_ids;
    const ox_token_list *bad_words; /* [n_bad_words] sequences that never come */
    size_t n_bad_words;
    const ox_forced_token *forced; /* [n_forced] the only choice at their positions */
    size_t n_forced;
    const int32_t *begin_suppress; /* [n_begin_suppress] ids that the answer never begins with */
    size_t n_begin_suppress;
    const int32_t *dry_breakers; /* [n_dry_breakers] ids at which a repetition ends */
    size_t n_dry_breakers;
} ox_sampler_options;

OX_API void ox_sampler_options_init(ox_sampler_options *o);
/* Sets a numeric member by its name ("top_k", "min_p"; '-' stands for '_'). OX_BAD_ARGUMENT: no
 * such name, or a value outside its range. */
OX_API ox_status ox_sampler_options_set(ox_sampler_options *o, const char *name, double value,
                                        ox_err *err);
/* Names of all steps in their default order; NULL behind the last. */
OX_API const char *ox_sampler_step(size_t i);

OX_API ox_status ox_sampler_open(ox_sampler **out, const ox_sampler_options *o, ox_err *err);
OX_API void ox_sampler_close(ox_sampler **s);
/* A second sampler in the same state: history, mirostat's running value. */
OX_API ox_status ox_sampler_fork(ox_sampler **out, const ox_sampler *s, ox_err *err);
/* Counts a token of the sequence; is_new = 0 for the prompt's. */
OX_API ox_status ox_sampler_accept(ox_sampler *s, int32_t id, int32_t is_new, ox_err *err);
OX_API void ox_sampler_rewind(ox_sampler *s, size_t n_tokens); /* keeps the first n accepted */
/* logits [n] are not changed. position = index the new token will have in its sequence. */
OX_API ox_status ox_sampler_pick(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                                 int32_t *id, ox_err *err);
/* What ox_sampler_pick would choose from: *n_kept candidates, of which the first `room` go to ids
 * and probs, likeliest first, ties to the lower id. Probabilities of the whole kept set sum to 1.
 * With temperature 0 the probabilities are those of temperature 1. */
OX_API ox_status ox_sampler_kept(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                                 int32_t *ids, float *probs, size_t room, size_t *n_kept,
                                 ox_err *err);
/* The logits behind the steps that change or forbid them (all but those which drop by likelihood,
 * and temperature), in out [n]; -inf: forbidden. */
OX_API ox_status ox_sampler_change(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                                   float *out, ox_err *err);
/* Classifier-free guidance: logits [n] of the same position without the condition (another session
 * that sees the negative prompt). Borrowed until the next pick, which uses them once; a pick with
 * guidance_scale other than 1 and none given fails. */
OX_API void ox_sampler_guide(ox_sampler *s, const float *logits, size_t n);
/* log-softmax of the raw logits: the chosen id's value and the k best (descending, ties to the
 * lower id); margin = first minus second logit. ids, values: [k]. */
OX_API ox_status ox_logprobs(const float *logits, size_t n, int32_t chosen, size_t k,
                             float *chosen_lp, int32_t *ids, float *values, float *margin,
                             ox_err *err);

#ifdef __cplusplus
}
#endif
#endif
