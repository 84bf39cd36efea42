/* beam.h - beam search: several continuations at once, the likeliest kept. Hugging Face's rules for
 * scores, length penalty and early stopping (docs/samplers.md). */
#ifndef OXGEN_BEAM_H
#define OXGEN_BEAM_H
#include "oxgen/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ox_beams ox_beams;

typedef enum ox_early_stopping {
    OX_EARLY_NO, /* stop when a running beam, scored at its present length, beats no finished one */
    OX_EARLY_YES,  /* stop as soon as n_beams are finished */
    OX_EARLY_NEVER /* as NO, but with a positive penalty scored at the greatest length */
} ox_early_stopping;

typedef struct ox_beam_options {
    uint32_t struct_size;
    int32_t n_beams;      /* 1 to 32 */
    int32_t n_return;     /* 1 to n_beams */
    int64_t max_new;      /* -1: at most 2,048; never beyond the context */
    float length_penalty; /* 1; the score is the sum of log-probabilities / length^penalty */
    ox_early_stopping early_stopping;
    const ox_sampler_options *sampler; /* its rules and penalties act on log-probabilities; NULL:
                                          the model's own. Temperature and what cuts is ignored. */
    int32_t ignore_eos;
    ox_progress_fn *progress; /* "search": tokens of max_new */
    void *user;
} ox_beam_options;

typedef struct ox_beam {
    const int32_t *ids; /* [n_ids] new tokens, without the end-of-text token; owned by ox_beams */
    size_t n_ids;
    float score;
    int32_t ended; /* 1: by an end-of-text token, 0: by length */
} ox_beam;

OX_API void ox_beam_options_init(ox_beam_options *o);
/* What the model's own files ask for: num_beams 1 where they are silent or sample. */
OX_API void ox_model_beam_options(const ox_model *m, ox_beam_options *o);
/* Continues a session that holds a prompt; the session itself stays as it is. Fails with
 * OX_UNSUPPORTED where sessions cannot fork (graphs that run operator by operator). */
OX_API ox_status ox_beam_search(ox_beams **out, const ox_session *s, const ox_beam_options *o,
                                ox_err *err);
OX_API size_t ox_beams_n(const ox_beams *b);
OX_API void ox_beams_get(const ox_beams *b, size_t i, ox_beam *beam); /* best first */
OX_API void ox_beams_close(ox_beams **b);

#ifdef __cplusplus
}
#endif
#endif
