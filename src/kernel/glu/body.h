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
    switch (a->act) {
    case OX_ACT_SILU:
        run(a, begin, end, OX_ACT_SILU);
        break;
    case OX_ACT_GELU:
        run(a, begin, end, OX_ACT_GELU);
        break;
    case OX_ACT_GELU_TANH:
        run(a, begin, end, OX_ACT_GELU_TANH);
        break;
    case OX_ACT_QUICK_GELU:
        run(a, begin, end, OX_ACT_QUICK_GELU);
        break;
    case OX_ACT_RELU:
        run(a, begin, end, OX_ACT_RELU);
        break;
    case OX_ACT_RELU2:
        run(a, begin, end, OX_ACT_RELU2);
        break;
    }
}
