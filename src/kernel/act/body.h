/* The vector body; an ISA file includes its simd header, defines ACT_NAME, then includes this. */
#include "kernel/act/lanes.h"

OX_INLINE void run(const ox_act_args *a, size_t begin, size_t end, ox_act act)
{
    const size_t n = a->dim;
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        float *y = a->y + r * a->ldy;
        size_t i = 0;
        for (; i + VF_N <= n; i += VF_N)
            vf_store(y + i, act_lanes(act, vf_load(x + i)));
        if (i < n) vf_store_n(y + i, act_lanes(act, vf_load_n(x + i, n - i)), n - i);
    }
}

void ACT_NAME(const ox_act_args *a, size_t begin, size_t end)
{
    ACT_RUN(a, begin, end)
}
