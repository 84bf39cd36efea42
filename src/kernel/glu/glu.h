/* glu.h - gated activation: y[r][i] = act(gate[r][i]) * up[r][i].
 *
 * Elements are independent; nothing depends on how rows are split. */
#ifndef OX_KERNEL_GLU_H
#define OX_KERNEL_GLU_H
#include "kernel/act/act.h"

typedef struct ox_glu_args {
    const float *gate; /* [rows, dim], ld_gate floats between rows */
    const float *up;   /* [rows, dim], ld_up floats between rows */
    float *y;          /* [rows, dim], ldy floats between rows; may equal gate or up */
    size_t rows, dim, ld_gate, ld_up, ldy;
    ox_act act;
} ox_glu_args;

/* Computes rows [begin, end). */
typedef void ox_glu_fn(const ox_glu_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_glu_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_glu_fn fn;
#include "kernel/glu/kernels.def"
#undef OX_CPU_KERNEL
#endif
