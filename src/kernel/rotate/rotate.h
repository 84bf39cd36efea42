/* rotate.h - rotary positions, in place.
 *
 * In every head, the first `rotary` channels are turned pairwise by the angle of the row's
 * position: y0 = x0*cos - x1*sin      as fma(-x1, sin, x0*cos) y1 = x1*cos + x0*sin      as fma(
 * x0, sin, x1*cos) where pair i is channels (i, i + rotary/2), or (2i, 2i+1) when interleaved. The
 * order of rounding is part of the contract: tiers agree bit for bit. */
#ifndef OX_KERNEL_ROTATE_H
#define OX_KERNEL_ROTATE_H
#include "kernel/kernel.h"

#include <stdint.h>

typedef struct ox_rotate_args {
    float *x; /* [rows, n_heads, head_size], ldx floats between rows */
    size_t rows, ldx, n_heads, head_size;
    size_t rotary; /* even, <= head_size */
    bool interleaved;
    const float *cos_table, *sin_table; /* [n_positions, rotary/2] */
    const int32_t *pos;                 /* [rows]: row of the tables */
} ox_rotate_args;

/* Turns rows [begin, end). */
typedef void ox_rotate_fn(const ox_rotate_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_rotate_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_rotate_fn fn;
#include "kernel/rotate/kernels.def"
#undef OX_CPU_KERNEL
#endif
