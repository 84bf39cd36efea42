/* convert_half.c - the family's row table. */
#include "kernel/convert_half/convert_half.h"

const ox_kernel_row ox_convert_half_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/convert_half/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
