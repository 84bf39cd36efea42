/* gemm.h - batched matrix product of two run-time float32 operands: c = a * b.
 *
 *   c[i][m][n] = sum over k ascending of a[i][m][k] * b[i][k][n], as one chain of fma
 *
 * Batch i of an operand starts at i * its batch stride (0 = shared). A result depends neither on
 * the number of rows nor on the split. */
#ifndef OX_KERNEL_GEMM_H
#define OX_KERNEL_GEMM_H
#include "kernel/kernel.h"

typedef struct ox_gemm_args {
    const float *a; /* [m, k], lda floats between rows */
    const float *b; /* [k, n], ldb floats between rows */
    float *c;       /* [m, n], ldc floats between rows; not a or b */
    size_t m, n, k, lda, ldb, ldc;
    size_t batch, stride_a, stride_b, stride_c;
} ox_gemm_args;

/* A unit is one batch and 48 columns of it. */
enum { OX_GEMM_COLUMNS = 48 };

static inline size_t ox_gemm_units(const ox_gemm_args *a)
{
    return a->batch * ((a->n + OX_GEMM_COLUMNS - 1) / OX_GEMM_COLUMNS);
}

/* Computes units [begin, end) of ox_gemm_units. */
typedef void ox_gemm_fn(const ox_gemm_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_gemm_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_gemm_fn fn;
#include "kernel/gemm/kernels.def"
#undef OX_CPU_KERNEL
#endif
