/* wrong_sampler.c - the command line with a wrong greedy choice: at every position divisible by 13
 * the second best token. For the test of `oxgen compare`, which has to call it a fault of the
 * choice. Functions called __wrap_x replace x when this program is linked. */
#include "oxgen/oxgen.h"

extern ox_status __real_ox_sampler_pick(ox_sampler *s, const float *logits, size_t n,
                                        uint64_t position, int32_t *id, ox_err *err);
extern ox_status __wrap_ox_sampler_pick(ox_sampler *s, const float *logits, size_t n,
                                        uint64_t position, int32_t *id, ox_err *err);

ox_status __wrap_ox_sampler_pick(ox_sampler *s, const float *logits, size_t n, uint64_t position,
                                 int32_t *id, ox_err *err)
{
    const ox_status st = __real_ox_sampler_pick(s, logits, n, position, id, err);
    if (st || position % 13) return st;
    const int32_t best = *id;
    *id = best ? 0 : 1;
    for (size_t i = 0; i < n; i++)
        if ((int32_t)i != best && logits[i] > logits[*id]) *id = (int32_t)i;
    return OX_OK;
}
