/* decode.h - several tokens of one sequence without the host between them.
 *
 * The engine has picked the sequence's newest token (`last`), which is not in the cache yet. The
 * device appends it at `position`, picks the next one, hands it over, appends that one, and so on,
 * until n_tokens have been handed over, a stop id has been, or the callback says no. Pages for
 * n_tokens positions from `position` on are reserved before. What the device computed beyond the
 * last token that was handed over is forgotten: the caller knows how far the sequence goes. */
#ifndef OX_BACKEND_DECODE_H
#define OX_BACKEND_DECODE_H
#include "backend/call.h"
#include "kv/kv.h"
#include "oxgen/sampler.h"

typedef struct ox_backend ox_backend;

typedef struct ox_decode_request {
    void *const *table; /* [n_pages] the sequence's pages, in device memory */
    size_t n_pages;
    int32_t position; /* of `last`: tokens already in the cache */
    int32_t last;
    int32_t total;    /* length that decides about rotary tables (ox_step.total) at the start */
    int64_t n_tokens; /* most tokens to hand over, >= 1 */
    /* How the next token is picked, with the settings' own meaning; bias, suppress and order belong
     * to the caller. history[0..n_history) are the tokens so far, `last` included, for penalties
     * that count them; the first n_prompt are the prompt's. */
    const ox_sampler_options *sampler;
    const int32_t *history;
    size_t n_history, n_prompt;
    const int32_t *stops; /* [n_stops] ids that end the loop; the stop id is handed over as well */
    size_t n_stops;
} ox_decode_request;

/* One more token. False ends the loop. Called on the caller's thread, in order. */
typedef bool ox_decode_token_fn(void *user, int32_t id);

/* The plan that the tokens run through, in its one-row class. */
typedef struct ox_decode_plan {
    const ox_call *calls;
    size_t n_calls;
    const ox_buffer *buffers;
    size_t n_buffers;
    const size_t *offsets;
    char *arena;
    ox_operand logits;
    int32_t vocab;
} ox_decode_plan;

/* *n_done = tokens handed over; 0 with OX_OK: no device form for this plan or these settings, and
 * nothing has been touched. */
typedef ox_status ox_decode_fn(ox_backend *b, const ox_decode_plan *plan,
                               const ox_decode_request *request, const ox_kv_pool *kv,
                               ox_decode_token_fn *token, void *user, int64_t *n_done, ox_err *err);
#endif
