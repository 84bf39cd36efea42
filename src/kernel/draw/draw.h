/* draw.h - one random choice: the index i with the highest
 *
 *     (double)x[i] / temperature + gumbel(seed, position, ids[i])      (philox.h)
 *
 * ties to the lower i. So the choice is i with probability softmax(x / temperature)[i] (Gumbel,
 * "Statistical theory of extreme values", 1954), and depends on nothing but its arguments: rows are
 * exact on every tier.
 *
 * Vector rows compute the random words of 16 ids at once and leave out what cannot win: i beats the
 * best value B so far only if 1 - u <= e^(x[i]/temperature - B), since -log u >= 1 - u. The left
 * side's logarithm is bounded from below by the float's exponent and mantissa bits read as a number
 * (Mitchell 1962). What passes, a handful, is computed as the reference does. */
#ifndef OX_KERNEL_DRAW_H
#define OX_KERNEL_DRAW_H
#include "kernel/draw/philox.h"
#include "kernel/kernel.h"

typedef struct ox_draw_args {
    const float *x;     /* [n], none NaN; +inf only if the caller wants the first of them */
    const int32_t *ids; /* [n]; NULL: 0, 1, 2 … */
    double temperature; /* > 0 */
    uint64_t seed, position;
    size_t first;   /* an index with a high value, looked at first; any is right */
    size_t *chosen; /* index; 0 when all are -inf */
    size_t n;       /* >= 1 */
} ox_draw_args;

typedef void ox_draw_fn(const ox_draw_args *a);

extern const ox_kernel_row ox_draw_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_draw_fn fn;
#include "kernel/draw/kernels.def"
#undef OX_CPU_KERNEL

/* The best so far. */
typedef struct ox_draw_best {
    double value;
    size_t i;
} ox_draw_best;

static inline void ox_draw_offer(const ox_draw_args *a, size_t i, ox_draw_best *best)
{
    const int32_t id = a->ids ? a->ids[i] : (int32_t)i;
    const double v =
        (double)a->x[i] / a->temperature + ox_gumbel(a->seed, a->position, (uint32_t)id);
    if (!(v > best->value || (v == best->value && i < best->i))) return;
    best->value = v;
    best->i = i;
}
#endif
