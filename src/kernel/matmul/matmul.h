/* matmul.h - y = x * W^T (+ bias) (+ add) with float weights (see fpack.h).
 *
 *   y[r][c] = ((sum over k ascending of x[r][k] * w[c][k], as one chain of fma) + bias[c]) +
 * add[r][c]
 *
 * The order is fixed: a row's result depends neither on the number of rows nor on the split of the
 * columns, and AVX2 and AVX-512 agree bit for bit. */
#ifndef OX_KERNEL_MATMUL_H
#define OX_KERNEL_MATMUL_H
#include "kernel/kernel.h"
#include "kernel/matmul/fpack.h"

typedef struct ox_matmul_args {
    const float *x;    /* [rows, w->k], ldx floats between rows */
    float *y;          /* [rows, w->n], ldy floats between rows; not x */
    const float *bias; /* [w->n] or NULL */
    const float *add;  /* [rows, w->n], ld_add floats between rows, or NULL; may equal y */
    size_t rows, ldx, ldy, ld_add;
    const ox_fpack *w;
} ox_matmul_args;

/* Computes all rows of column tiles [begin, end) of ox_fpack_tiles(a->w). */
typedef void ox_matmul_fn(const ox_matmul_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_matmul_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_matmul_fn fn;
#include "kernel/matmul/kernels.def"
#undef OX_CPU_KERNEL
#endif
