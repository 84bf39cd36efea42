/* Reference: the sum in double. */
#include "kernel/matmul/matmul.h"

#include "tensor/half.h"

static double weight_at(const ox_fpack *p, size_t c, size_t k)
{
    const size_t i = (c / OX_FPACK_LANES * p->k + k) * OX_FPACK_LANES + c % OX_FPACK_LANES;
    if (p->dtype == OX_DTYPE_F32) return (double)((const float *)p->data)[i];
    const uint16_t h = ((const uint16_t *)p->data)[i];
    return (double)(p->dtype == OX_DTYPE_F16 ? ox_f16_to_f32(h) : ox_bf16_to_f32(h));
}

void ox_matmul_ref(const ox_matmul_args *a, size_t begin, size_t end)
{
    const ox_fpack *w = a->w;
    const size_t last = end * OX_FPACK_LANES < w->n ? end * OX_FPACK_LANES : w->n;
    for (size_t r = 0; r < a->rows; r++)
        for (size_t c = begin * OX_FPACK_LANES; c < last; c++) {
            double sum = 0.0;
            for (size_t k = 0; k < w->k; k++)
                sum += (double)a->x[r * a->ldx + k] * weight_at(w, c, k);
            if (a->bias) sum += (double)a->bias[c];
            if (a->add) sum += (double)a->add[r * a->ld_add + c];
            a->y[r * a->ldy + c] = (float)sum;
        }
}
