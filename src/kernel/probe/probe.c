/* probe.c - the family's row table. */
#include "kernel/probe/probe.h"

const ox_kernel_row ox_probe_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/probe/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
