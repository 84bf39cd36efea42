/* scale.h - a factor and a soft cap: t = x[r][i] * scale; y = softcap ? softcap*tanh(t/softcap) :
 * t.
 *
 * Elements are independent; nothing depends on how rows are split. */
#ifndef OX_KERNEL_SCALE_H
#define OX_KERNEL_SCALE_H
#include "kernel/kernel.h"

typedef struct ox_scale_args {
    const float *x; /* [rows, dim], ldx floats between rows */
    float *y;       /* [rows, dim], ldy floats between rows; may equal x */
    size_t rows, dim, ldx, ldy;
    float scale;   /* 1 = none */
    float softcap; /* 0 = none */
} ox_scale_args;

/* Computes rows [begin, end). */
typedef void ox_scale_fn(const ox_scale_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_scale_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_scale_fn fn;
#include "kernel/scale/kernels.def"
#undef OX_CPU_KERNEL
#endif
