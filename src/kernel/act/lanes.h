/* lanes.h - the activations on vectors; include after a simd header. act is a constant wherever
 * this is called, so the switch folds away. */
#ifndef OX_KERNEL_ACT_LANES_H
#define OX_KERNEL_ACT_LANES_H
#include "base/compiler.h"
#include "kernel/act/act.h"
#include "simd/math.h"

OX_INLINE vf act_lanes(ox_act act, vf x)
{
    const vf relu = vf_max(vf_zero(), x); /* this order keeps NaN */
    switch (act) {
    case OX_ACT_SILU:
        return vf_gate(x, x);
    case OX_ACT_GELU:
        return vf_gelu(x);
    case OX_ACT_GELU_TANH: /* (1 + tanh(u))/2 = sigmoid(2u) */
        return vf_gate(
            x, vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(0x1.2444f2p-4f), vf_set1(0x1.988454p+0f))));
    case OX_ACT_QUICK_GELU:
        return vf_gate(x, vf_mul(x, vf_set1(1.702f)));
    case OX_ACT_RELU:
        return relu;
    case OX_ACT_RELU2:
        return vf_mul(relu, relu);
    }
    return x;
}

/* run(a, begin, end, act) with the activation as a constant: one specialised loop each. */
#define ACT_RUN_CASE(ACT)                                                                          \
    case ACT:                                                                                      \
        run(a, begin, end, ACT);                                                                   \
        break
#define ACT_RUN(a, begin, end)                                                                     \
    switch ((a)->act) {                                                                            \
        ACT_RUN_CASE(OX_ACT_SILU);                                                                 \
        ACT_RUN_CASE(OX_ACT_GELU);                                                                 \
        ACT_RUN_CASE(OX_ACT_GELU_TANH);                                                            \
        ACT_RUN_CASE(OX_ACT_QUICK_GELU);                                                           \
        ACT_RUN_CASE(OX_ACT_RELU);                                                                 \
        ACT_RUN_CASE(OX_ACT_RELU2);                                                                \
    }
#endif
