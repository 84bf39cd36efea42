/* cut.c - the family's row table. */
#include "kernel/cut/cut.h"

const ox_kernel_row ox_cut_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/cut/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
