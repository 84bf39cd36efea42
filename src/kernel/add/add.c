/* add.c - the family's row table. */
#include "kernel/add/add.h"

const ox_kernel_row ox_add_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/add/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
