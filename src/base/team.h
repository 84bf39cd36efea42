/* team.h - a persistent set of worker threads that run one job together.
 *
 * ox_team_run calls fn(user, i_worker, n_workers) on every worker (the caller is worker 0) and
 * returns when all have finished. Inside a job, ox_team_barrier waits for the whole team. Work is
 * split statically by the job, so results never depend on timing. Workers spin briefly between
 * jobs, then park. One job at a time; ox_team_run is called by one thread only. */
#ifndef OX_BASE_TEAM_H
#define OX_BASE_TEAM_H
#include "base/status.h"

#include <stddef.h>

typedef struct ox_team ox_team;
typedef void ox_team_fn(void *user, int i_worker, int n_workers);

enum { OX_TEAM_MAX = 256 };

ox_status ox_team_open(ox_team **out, int n_workers, ox_err *err);
void ox_team_close(ox_team **team);
int ox_team_size(const ox_team *team); /* NULL team counts as 1 */
/* team NULL: runs fn once in the caller. */
void ox_team_run(ox_team *team, ox_team_fn *fn, void *user);
/* Called by every worker of the running job the same number of times. */
void ox_team_barrier(ox_team *team);

/* Worker i's part [*begin, *end) of n units handed out in multiples of `step`. */
static inline void ox_team_split(size_t n, size_t step, int i, int n_workers, size_t *begin,
                                 size_t *end)
{
    const size_t steps = (n + step - 1) / step, w = (size_t)n_workers, k = (size_t)i;
    const size_t a = steps * k / w * step, b = steps * (k + 1) / w * step;
    *begin = a < n ? a : n;
    *end = b < n ? b : n;
}
#endif
