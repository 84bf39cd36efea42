/* exec.h - runs a plan over one step's rows: fills nothing, decides nothing, allocates nothing.
 *
 * Owns the step's arena. One step at a time; one owner. */
#ifndef OX_EXEC_EXEC_H
#define OX_EXEC_EXEC_H
#include "plan/plan.h"

typedef struct ox_exec ox_exec;

/* plan is borrowed. Memory is taken lazily by the system: the largest class's arena. */
ox_status ox_exec_open(ox_exec **out, const ox_plan *plan, ox_err *err);
void ox_exec_close(ox_exec **e);
/* 1 <= step.rows <= the plan's largest class, n_wanted <= min(rows, OX_WANTED_ROWS), ids inside the
 * vocabulary. Returns the logits [n_wanted, vocab], valid until the next run. */
const float *ox_exec_run(ox_exec *e, const ox_step *step, const ox_kv_pool *kv);
/* Where the device has memory of its own: runs the step and brings nothing down; keeps row i of its
 * logits in *slot (made when NULL; ox_exec_drop); brings a slot to the host, valid until the next
 * call. Elsewhere ox_exec_keeps is false and these must not be called. */
bool ox_exec_keeps(const ox_exec *e);
void ox_exec_step(ox_exec *e, const ox_step *step, const ox_kv_pool *kv);
ox_status ox_exec_keep(ox_exec *e, const ox_step *step, int32_t i, void **slot, ox_err *err);
const float *ox_exec_kept(ox_exec *e, const void *slot);
void ox_exec_drop(ox_exec *e, void **slot); /* NULL allowed */
/* Several tokens on the device (backend/decode.h). *n_done 0 with OX_OK: this backend or this
 * request has no such form, and the caller goes token by token. */
ox_status ox_exec_decode(ox_exec *e, const ox_decode_request *request, const ox_kv_pool *kv,
                         ox_decode_token_fn *token, void *user, int64_t *n_done, ox_err *err);
size_t ox_exec_arena_bytes(const ox_exec *e);
#endif
