/* norm.h - root-mean-square and layer normalisation of rows.
 *
 *   rms:   y[r][i] = x[r][i] * s(r) * gamma[i] (+ beta[i]),  s = 1/sqrt(mean(x[r]^2) + eps)
 *   layer: y[r][i] = (x[r][i] - mean) * s(r) * gamma[i] (+ beta[i]),  s = 1/sqrt(var + eps)
 *
 * (ONNX RMSNormalization-23, LayerNormalization-17; biased variance.) Rows are independent: the
 * result of one never depends on how many there are or on who computes them. */
#ifndef OX_KERNEL_NORM_H
#define OX_KERNEL_NORM_H
#include "kernel/kernel.h"

typedef struct ox_norm_args {
    const float *x;     /* [rows, dim], ldx floats between rows */
    const float *gamma; /* [dim] */
    const float *beta;  /* [dim] or NULL */
    float *y;           /* [rows, dim], ldy floats between rows; may equal x */
    size_t rows, dim, ldx, ldy;
    float eps;
    bool centre; /* layer normalisation: subtract the mean first */
} ox_norm_args;

/* Computes rows [begin, end). */
typedef void ox_norm_fn(const ox_norm_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_norm_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_norm_fn fn;
#include "kernel/norm/kernels.def"
#undef OX_CPU_KERNEL
#endif
