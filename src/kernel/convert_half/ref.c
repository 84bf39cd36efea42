/* Reference: the scalar conversions of tensor/half.h. */
#include "kernel/convert_half/convert_half.h"

#include "tensor/half.h"

void ox_convert_half_ref(const ox_convert_half_args *a, size_t begin, size_t end)
{
    const float *f = a->src;
    const uint16_t *h = a->src;
    float *to_f = a->dst;
    uint16_t *to_h = a->dst;
    for (size_t i = begin; i < end; i++)
        if (a->to == OX_DTYPE_F32)
            to_f[i] = a->from == OX_DTYPE_F16 ? ox_f16_to_f32(h[i]) : ox_bf16_to_f32(h[i]);
        else
            to_h[i] = a->to == OX_DTYPE_F16 ? ox_f32_to_f16(f[i]) : ox_f32_to_bf16(f[i]);
}
