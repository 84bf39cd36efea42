/* softmax.h - softmax of rows: y[r][i] = e^(x[r][i]-m) / sum_j e^(x[r][j]-m), m = max_j x[r][j].
 *
 * Rows are independent. A row with a NaN, +inf, or nothing but -inf gives NaN, as IEEE arithmetic
 * of the formula does. */
#ifndef OX_KERNEL_SOFTMAX_H
#define OX_KERNEL_SOFTMAX_H
#include "kernel/kernel.h"

typedef struct ox_softmax_args {
    const float *x; /* [rows, dim], ldx floats between rows */
    float *y;       /* [rows, dim], ldy floats between rows; may equal x */
    size_t rows, dim, ldx, ldy;
} ox_softmax_args;

/* Computes rows [begin, end). */
typedef void ox_softmax_fn(const ox_softmax_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_softmax_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_softmax_fn fn;
#include "kernel/softmax/kernels.def"
#undef OX_CPU_KERNEL
#endif
