/* mass.c - the family's row table. */
#include "kernel/mass/mass.h"

const ox_kernel_row ox_mass_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/mass/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
