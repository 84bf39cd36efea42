/* cuda_row.h - from a call's arguments (kernel/device.h) to those of cuda_wgmma.h. */
#ifndef OX_KERNEL_MATMUL_CUDA_ROW_H
#define OX_KERNEL_MATMUL_CUDA_ROW_H
#include "kernel/device.h"
#include "kernel/matmul/cuda_wgmma.h"

/* From here on a step is a prompt; below, steps of any number of rows share one order of sums. */
enum { OX_CUDA_PROMPT_ROWS = 65 };

static inline bool ox_cuda_matmul_takes(const ox_dev_linear_args *a)
{
    const bool f32 = a->y.dtype == OX_DEV_F32;
    return a->rows >= OX_CUDA_PROMPT_ROWS && a->x.dtype == OX_DEV_F16 && a->x.ld % 8 == 0 &&
           (a->y.dtype == OX_DEV_F16 || (f32 && !a->pairs)) && (a->pairs || a->act < 0) &&
           (!a->pairs || a->n % 16 == 0);
}

/* w, ldw are the caller's. False: the operands of this step don't fit. */
static inline bool ox_cuda_matmul_fill(ox_cuda_matmul_args *m, const ox_dev_linear_args *a)
{
    const ox_cuda_matmul_args none = {};
    *m = none;
    if (!ox_cuda_matmul_takes(a) || (uintptr_t)a->x.p % 16 ||
        (a->add.p && a->add.dtype != OX_DEV_F16))
        return false;
    m->x = a->x.p;
    m->bias = a->bias;
    m->bias_up = a->bias && a->pairs ? a->bias + a->n / 2 : 0;
    m->add = a->add.p;
    m->y = a->y.p;
    m->rows = a->rows;
    m->n = a->n;
    m->k = a->k;
    m->ldx = a->x.ld;
    m->ldadd = a->add.ld;
    m->ldy = a->y.ld;
    m->pairs = a->pairs;
    m->act = a->act;
    m->y_f32 = a->y.dtype == OX_DEV_F32;
    return true;
}
#endif
