/* pool.h - the candidates of one choice: first the logits as the caller gave them, then a copy once
 * a step changes one, then a list once a step drops some.
 *
 * A list is in ascending order of ids or, when `sorted`, in descending order of logits with ties to
 * the lower id. -inf is no candidate. Temperature is kept apart and divides when probabilities are
 * wanted: the order of candidates is that of the logits. Functions that need memory return false
 * without it. */
#ifndef OX_SAMPLE_POOL_H
#define OX_SAMPLE_POOL_H
#include "base/vec.h"
#include "kernel/cut/cut.h"
#include "kernel/draw/draw.h"
#include "kernel/mass/mass.h"
#include "kernel/select/select.h"

/* The rows of this machine. */
typedef struct ox_pool_kernels {
    ox_select_fn *select;
    ox_cut_fn *cut;
    ox_mass_fn *mass;
    ox_draw_fn *draw;
} ox_pool_kernels;

typedef struct ox_pool {
    ox_pool_kernels k;
    const float *x;     /* [n] */
    const int32_t *ids; /* [n]; NULL: 0, 1, 2 … */
    size_t n;
    double temperature; /* divides x */
    bool sorted;        /* a list in descending order */
    bool borrowed;      /* x is the caller's */
    bool has_nan;       /* one was seen: the choice fails */
    bool has_top, has_mass;
    size_t i_top; /* place of the best candidate, valid with has_top */
    double mass;  /* sum of e^((x - best) / temperature), valid with has_mass */
    int turn;     /* list buffer in use */
    OX_VEC(float) dense;
    OX_VEC(float) values[2];
    OX_VEC(int32_t) kept[2];
    OX_VEC(float) keys; /* scratch */
    OX_VEC(uint64_t) pairs[2];
} ox_pool;

ox_status ox_pool_kernels_pick(ox_pool_kernels *k, ox_err *err);
void ox_pool_deinit(ox_pool *p);
/* Starts a choice among logits [n], borrowed until the next start. */
bool ox_pool_start(ox_pool *p, const float *logits, size_t n);
/* All of x, writable, temperature applied; what was known about order and sums is forgotten. */
float *ox_pool_edit(ox_pool *p);
/* Place of an id behind ox_pool_edit, or SIZE_MAX. */
size_t ox_pool_find(const ox_pool *p, int32_t id);
/* Best logit; -inf: there are no candidates (or NaN was seen). A best of +inf leaves only those
 * that have it. */
float ox_pool_top(ox_pool *p);
double ox_pool_mass(ox_pool *p);
/* Entropy in nats of the candidates' distribution. */
double ox_pool_entropy(ox_pool *p);
/* Keeps the k best, sorted; k of n or more sorts all. */
bool ox_pool_best(ox_pool *p, size_t k);
/* The k best and what equals the k-th; 1 <= k < n. */
bool ox_pool_best_and_ties(ox_pool *p, size_t k);
/* Keeps the candidates whose logit reaches floor, at least min_keep of the best. */
bool ox_pool_floor(ox_pool *p, double floor, size_t min_keep);
/* The smallest set of best candidates that has the share of the mass, at least min_keep. */
bool ox_pool_share(ox_pool *p, double share, size_t min_keep);
/* Keeps the count candidates with the lowest key (pool.keys, by place), where count is the least
 * whose mass reaches the share, at least min_keep; ties to the lower id. */
bool ox_pool_share_by_key(ox_pool *p, double share, size_t min_keep);
/* Drops the first n of a sorted list. */
void ox_pool_drop(ox_pool *p, size_t n);
static inline int32_t ox_pool_id(const ox_pool *p, size_t i)
{
    return p->ids ? p->ids[i] : (int32_t)i;
}
/* e^((x[i] - best) / temperature) */
double ox_pool_weight(ox_pool *p, size_t i);
#endif
