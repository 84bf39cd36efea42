/* convert_half.h - arrays of float16 or bfloat16 to and from float32, round to nearest even.
 *
 * Every value but NaN is bit-equal on every tier; NaN stays NaN of some payload. */
#ifndef OX_KERNEL_CONVERT_HALF_H
#define OX_KERNEL_CONVERT_HALF_H
#include "kernel/kernel.h"
#include "tensor/tensor.h"

typedef struct ox_convert_half_args {
    const void *src;   /* [n] of type from */
    void *dst;         /* [n] of type to; no overlap with src */
    ox_dtype from, to; /* one is F32, the other F16 or BF16 */
    size_t n;
} ox_convert_half_args;

/* Converts elements [begin, end). */
typedef void ox_convert_half_fn(const ox_convert_half_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_convert_half_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_convert_half_fn fn;
#include "kernel/convert_half/kernels.def"
#undef OX_CPU_KERNEL
#endif
