/* softmax.c - the family's row table. */
#include "kernel/softmax/softmax.h"

const ox_kernel_row ox_softmax_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/softmax/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
