/* kv_append.c - the family's row table. */
#include "kernel/kv_append/kv_append.h"

const ox_kernel_row ox_kv_append_rows[] = {
#define OX_CPU_KERNEL(fn, needs, tol, accepts)                                                     \
    {#fn, OX_DEVICE_CPU, needs, tol, accepts, (ox_any_fn *)fn},
#include "kernel/kv_append/kernels.def"
#undef OX_CPU_KERNEL
    {0},
};
