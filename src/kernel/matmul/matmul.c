/* matmul.c - the family's row table. */
#include "kernel/matmul/matmul.h"

const ox_kernel_row ox_matmul_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/matmul/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
