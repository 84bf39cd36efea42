/* The vector body; an ISA file includes its simd header and its sizes, defines MATMUL_NAME, then
 * includes this. */
#include "kernel/matmul/matmul.h"

#include "kernel/matmul/micro.h"

void MATMUL_NAME(const ox_matmul_args *a, size_t begin, size_t end)
{
    const ox_fpack *w = a->w;
    const product p = {.x = a->x,
                       .rows = a->rows,
                       .k = w->k,
                       .n = w->n,
                       .ldx = a->ldx,
                       .type = w->dtype == OX_DTYPE_F16    ? KIND_F16
                               : w->dtype == OX_DTYPE_BF16 ? KIND_BF16
                                                           : KIND_F32,
                       .w = w->data,
                       .step = VF_N,
                       .stride = w->k * VF_N,
                       .packed = true,
                       .y = a->y,
                       .bias = a->bias,
                       .add = a->add,
                       .ldy = a->ldy,
                       .ld_add = a->ld_add};
    multiply(&p, begin, end);
}
