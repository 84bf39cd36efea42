/* session.h - one conversation: token history and key/value cache. One owner at a time; sessions of
 * one model may be used from different threads one call at a time per model. */
#ifndef OXGEN_SESSION_H
#define OXGEN_SESSION_H
#include "oxgen/model.h"
#include "oxgen/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ox_session ox_session;

/* Fills o with what the model's own files ask for: sampling only where they do, else greedy. */
OX_API void ox_model_sampler_options(const ox_model *m, ox_sampler_options *o);

OX_API ox_status ox_session_open(ox_session **out, ox_model *model, ox_err *err);
OX_API void ox_session_close(ox_session **s);
OX_API const ox_model *ox_session_model(const ox_session *s);

/* Runs ids through the model after what the session holds; logits of the last one are kept. Fails
 * with OX_LIMIT when they do not fit the context (nothing is appended), OX_CANCELLED when the
 * progress callback says so (the part that ran is kept). chunk 0: the engine's own chunk size. */
OX_API ox_status ox_session_append(ox_session *s, const int32_t *ids, size_t n, size_t chunk,
                                   ox_progress_fn *progress, void *user, ox_err *err);
/* Logits [vocab] after the last token; owned by the session, valid until its next call. NULL before
 * the first append. */
OX_API const float *ox_session_logits(const ox_session *s);
/* One token for each of n sessions of the same model, computed together; each session then holds
 * its own logits. A session's result does not depend on who shares the step. n <= 64, all
 * different. */
OX_API ox_status ox_sessions_step(ox_session *const *sessions, const int32_t *ids, size_t n,
                                  ox_err *err);
OX_API size_t ox_session_length(const ox_session *s);
OX_API const int32_t *ox_session_ids(const ox_session *s);
/* Keeps the first n tokens. Logits are gone until the next append. */
OX_API ox_status ox_session_rewind(ox_session *s, size_t n, ox_err *err);
/* A second session with the same history; cache pages are shared until written. */
OX_API ox_status ox_session_fork(ox_session **out, const ox_session *s, ox_err *err);
/* Makes the session hold exactly ids[0..n): keeps the longest common prefix, appends the rest. At
 * least the last token is run again so that logits exist. *n_reused may be NULL. */
OX_API ox_status ox_session_sync(ox_session *s, const int32_t *ids, size_t n,
                                 ox_progress_fn *progress, void *user, size_t *n_reused,
                                 ox_err *err);
/* Logits of every position of ids (a fresh run), row by row through the callback. */
typedef ox_status ox_logits_fn(void *user, size_t position, const float *logits, size_t vocab);
OX_API ox_status ox_session_all_logits(ox_session *s, const int32_t *ids, size_t n, size_t chunk,
                                       ox_logits_fn *fn, void *user, ox_err *err);
/* ox_logprobs of the logits the session holds; inside ox_generate's callback those that id was
 * chosen from. */
OX_API ox_status ox_session_logprobs(const ox_session *s, int32_t id, size_t k, float *logprob,
                                     int32_t *ids, float *values, float *margin, ox_err *err);
OX_API uint64_t ox_session_kv_bytes(const ox_session *s);

#ifdef __cplusplus
}
#endif
#endif
