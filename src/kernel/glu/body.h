/* The vector body; an ISA file includes its simd header, defines GLU_NAME, then includes this. */
#include "kernel/act/lanes.h"
#include "kernel/glu/glu.h"

OX_INLINE void run(const ox_glu_args *a, size_t begin, size_t end, ox_act act)
{
    const size_t n = a->dim;
    for (size_t r = begin; r < end; r++) {
        const float *g = a->gate + r * a->ld_gate, *u = a->up + r * a->ld_up;
        float *y = a->y + r * a->ldy;
        size_t i = 0;
        for (; i + VF_N <= n; i += VF_N)
            vf_store(y + i, vf_mul(act_lanes(act, vf_load(g + i)), vf_load(u + i)));
        const size_t rest = n - i;
        if (rest)
            vf_store_n(y + i,
                       vf_mul(act_lanes(act, vf_load_n(g + i, rest)), vf_load_n(u + i, rest)),
                       rest);
    }
}

void GLU_NAME(const ox_glu_args *a, size_t begin, size_t end)
{
    ACT_RUN(a, begin, end)
}
