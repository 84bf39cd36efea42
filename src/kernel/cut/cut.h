/* cut.h - the values between a floor and a ceiling, with their ids, in the order they had.
 *
 * values[j], kept_ids[j] = x[i], ids[i] for the i with x[i] >= floor and not x[i] >= ceiling,
 * ascending i. So a value that is NaN is left out, and a ceiling of NaN is none. Rows are exact on
 * every tier. */
#ifndef OX_KERNEL_CUT_H
#define OX_KERNEL_CUT_H
#include "kernel/kernel.h"

#include <stdint.h>

enum { OX_CUT_ROOM = 16 }; /* places behind the output's n that a row may write */

typedef struct ox_cut_args {
    const float *x;     /* [n] */
    const int32_t *ids; /* [n]; NULL: 0, 1, 2 … */
    float floor, ceiling;
    float *values;     /* [n + OX_CUT_ROOM]; may be x itself */
    int32_t *kept_ids; /* [n + OX_CUT_ROOM]; may be ids itself; NULL: not wanted */
    size_t *n_kept;
    size_t n;
} ox_cut_args;

typedef void ox_cut_fn(const ox_cut_args *a);

extern const ox_kernel_row ox_cut_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_cut_fn fn;
#include "kernel/cut/kernels.def"
#undef OX_CPU_KERNEL
#endif
