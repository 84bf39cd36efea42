/* The vector body. An ISA file defines DRAW_N, DRAW_NAME and
 *   unsigned may_win(r, a, i, slope, at): bit j set when candidate i + j may win, that is when the
 *   lower bound of log2(1 - u) is at most x * slope + at; nothing to compute when that is below -33
 * then includes this. */
#include "kernel/draw/draw.h"

void DRAW_NAME(const ox_draw_args *a)
{
    ox_draw_best best = {-INFINITY, 0};
    rounds r;
    /* outside, the float bound may overflow; the reference knows no bound */
    if (!(a->temperature >= 1e-4 && a->temperature <= 1e4)) {
        ox_draw_ref(a);
        return;
    }
    rounds_start(&r, a->seed, a->position);
    ox_draw_offer(a, a->first, &best);
    const double log2e = 1.4426950408889634;
    const float slope = (float)(log2e / a->temperature);
    size_t i = 0;
    while (i + DRAW_N <= a->n && fabs(best.value) < 1e30) { /* beyond, floats overflow */
        /* what x * slope misses to log2 of the largest 1 - u that wins, and what float loses of it
         */
        const double base = -best.value * log2e;
        const float at = (float)(base + 0.01 + 4e-7 * (fabs(base) + 80.0));
        unsigned hits = 0;
        for (; i + DRAW_N <= a->n && !hits; i += DRAW_N)
            hits = may_win(&r, a, i, slope, at);
        for (; hits; hits &= hits - 1)
            ox_draw_offer(a, i - DRAW_N + (size_t)__builtin_ctz(hits), &best);
    }
    for (; i < a->n; i++)
        ox_draw_offer(a, i, &best);
    *a->chosen = best.i;
}
