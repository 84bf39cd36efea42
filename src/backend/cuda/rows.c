/* rows.c - the list of CUDA rows, from kernel/cuda.def, and the choice among a family's. */
#include "backend/cuda/cuda.h"

const ox_device_row ox_cuda_rows[] = {
#define OX_CUDA_KERNEL(family, fn, sm, tol, accepts)                                               \
    {#family, {#fn, OX_DEVICE_CUDA, sm, tol, accepts, (ox_any_fn *)fn}},
#include "kernel/cuda.def"
#undef OX_CUDA_KERNEL
    {NULL, {NULL, OX_DEVICE_NONE, 0, OX_TOL_EXACT, NULL, NULL}},
};

bool ox_cuda_row_runs(const ox_kernel_row *row, int32_t sm)
{
    return row->needs == OX_SM_90A ? sm == 90 : (int32_t)row->needs <= sm;
}

const ox_kernel_row *ox_cuda_pick(const char *family, int32_t sm, const void *args)
{
    for (const ox_device_row *r = ox_cuda_rows; r->family; r++)
        if (!strcmp(r->family, family) && ox_cuda_row_runs(&r->row, sm) &&
            (!r->row.accepts || r->row.accepts(args)))
            return &r->row;
    return NULL;
}
