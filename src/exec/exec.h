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
/* 1 <= step.rows <= OX_MANY_ROWS, n_wanted <= min(rows, OX_WANTED_ROWS), ids inside the vocabulary.
 * Returns the logits [n_wanted, vocab], valid until the next run. */
const float *ox_exec_run(ox_exec *e, const ox_step *step, const ox_kv_pool *kv);
size_t ox_exec_arena_bytes(const ox_exec *e);
#endif
