/* act.h - an elementwise activation: y[r][i] = act(x[r][i]).
 *
 * Elements are independent; nothing depends on how rows are split. NaN stays NaN. */
#ifndef OX_KERNEL_ACT_H
#define OX_KERNEL_ACT_H
#include "kernel/kernel.h"

typedef enum ox_act {
    OX_ACT_SILU,       /* x * sigmoid(x) */
    OX_ACT_GELU,       /* exact: x * (1 + erf(x/sqrt(2)))/2 */
    OX_ACT_GELU_TANH,  /* x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))/2 */
    OX_ACT_QUICK_GELU, /* x * sigmoid(1.702 x) */
    OX_ACT_RELU,
    OX_ACT_RELU2, /* relu(x)^2 */
} ox_act;

typedef struct ox_act_args {
    const float *x; /* [rows, dim], ldx floats between rows */
    float *y;       /* [rows, dim], ldy floats between rows; may equal x */
    size_t rows, dim, ldx, ldy;
    ox_act act;
} ox_act_args;

/* Computes rows [begin, end). */
typedef void ox_act_fn(const ox_act_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_act_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_act_fn fn;
#include "kernel/act/kernels.def"
#undef OX_CPU_KERNEL
#endif
