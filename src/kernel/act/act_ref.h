/* act_ref.h - what the activations are, in double. Used by the references of act and glu. */
#ifndef OX_KERNEL_ACT_REF_H
#define OX_KERNEL_ACT_REF_H
#include "kernel/act/act.h"

#include <math.h>

static inline double act_in_double(ox_act act, double x)
{
    switch (act) {
    case OX_ACT_SILU:
        return x / (1.0 + exp(-x));
    case OX_ACT_GELU:
        return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case OX_ACT_GELU_TANH:
        return x / (1.0 + exp(-2.0 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case OX_ACT_QUICK_GELU:
        return x / (1.0 + exp(-1.702 * x));
    case OX_ACT_RELU:
        return x < 0.0 ? 0.0 : x;
    case OX_ACT_RELU2:
        return x < 0.0 ? 0.0 : x * x;
    }
    return x;
}
#endif
