/* select.h - the k best of each row, best first.
 *
 * Order: larger value first; equal values (-0 equals +0): lower index first; NaN after everything,
 * -inf included. So k = 1 is the arg-max in which NaN wins only when all are NaN (then index 0).
 * Exactly k entries come out. Rows are exact on every tier. */
#ifndef OX_KERNEL_SELECT_H
#define OX_KERNEL_SELECT_H
#include "kernel/kernel.h"

#include <stdint.h>

typedef struct ox_select_args {
    const float *x;           /* [rows, dim], ldx floats between rows */
    int32_t *ids;             /* [rows, k]: indices of the best, best first */
    float *values;            /* [rows, k]: their values, bit for bit */
    size_t rows, dim, k, ldx; /* 1 <= k <= dim < 2^31 */
    bool *has_nan;            /* [rows]: whether a value of the row is NaN; NULL = not wanted */
} ox_select_args;

/* Computes rows [begin, end). */
typedef void ox_select_fn(const ox_select_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_select_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_select_fn fn;
#include "kernel/select/kernels.def"
#undef OX_CPU_KERNEL
#endif
