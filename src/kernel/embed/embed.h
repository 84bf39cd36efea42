/* embed.h - gathers rows of a weight of any format as float32: y[i] = table[ids[i]] * scale. */
#ifndef OX_KERNEL_EMBED_H
#define OX_KERNEL_EMBED_H
#include "kernel/kernel.h"
#include "tensor/weight.h"

typedef struct ox_embed_args {
    const ox_weight *table; /* [vocab, dim]; dim = table->cols */
    const int32_t *ids;     /* [rows], each 0 <= id < table->rows: the caller has checked */
    float *y;               /* [rows, dim], ldy floats between rows */
    size_t rows, ldy;
    float scale; /* 1 = none */
} ox_embed_args;

/* Computes rows [begin, end). */
typedef void ox_embed_fn(const ox_embed_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_embed_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_embed_fn fn;
#include "kernel/embed/kernels.def"
#undef OX_CPU_KERNEL
#endif
