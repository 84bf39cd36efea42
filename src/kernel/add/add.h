/* add.h - the sum of two matrices: y[r][i] = a[r][i] + b[r][i], one float32 addition an element. */
#ifndef OX_KERNEL_ADD_H
#define OX_KERNEL_ADD_H
#include "kernel/kernel.h"

typedef struct ox_add_args {
    const float *a; /* [rows, dim], lda floats between rows */
    const float *b; /* [rows, dim], ldb floats between rows; ldb 0 = one row for all */
    float *y;       /* [rows, dim], ldy floats between rows; may equal a or b */
    size_t rows, dim, lda, ldb, ldy;
} ox_add_args;

/* Computes rows [begin, end). */
typedef void ox_add_fn(const ox_add_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_add_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_add_fn fn;
#include "kernel/add/kernels.def"
#undef OX_CPU_KERNEL
#endif
