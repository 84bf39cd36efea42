/* mass.h - sum of e^((x[i] - max) * scale): what a softmax divides by.
 *
 * Defined to the bit, so that a set which is cut at a share of it is the same on every tier: value
 * i belongs to lane i mod 16; each lane adds its float terms over blocks of 16 (even ones and odd
 * ones apart, then both together), the blocks' sums are added in double, then the lanes in order.
 * Sixteen neighbours that all lie more than 40 / scale below max count as 0. -inf is 0. */
#ifndef OX_KERNEL_MASS_H
#define OX_KERNEL_MASS_H
#include "kernel/kernel.h"

#include <stdint.h>

typedef struct ox_mass_args {
    const float *x; /* [n], none NaN, none above max */
    float max;      /* finite */
    float scale;    /* > 0 */
    double *sum;
    size_t n;
} ox_mass_args;

typedef void ox_mass_fn(const ox_mass_args *a);

extern const ox_kernel_row ox_mass_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_mass_fn fn;
#include "kernel/mass/kernels.def"
#undef OX_CPU_KERNEL
#endif
