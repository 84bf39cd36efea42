/* The vector body; an ISA file includes its simd header, defines
 * CONVERT_NAME, then includes this. */
#include "kernel/convert_half/convert_half.h"

#define CONVERT(name, from, to, load, load_n, store, store_n)                                      \
    static void name(const from *src, to *dst, size_t n)                                           \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + VF_N <= n; i += VF_N)                                                           \
            store(dst + i, load(src + i));                                                         \
        if (i < n) store_n(dst + i, load_n(src + i, n - i), n - i);                                \
    }
CONVERT(from_f16, uint16_t, float, vf_load_f16, vf_load_f16_n, vf_store, vf_store_n)
CONVERT(from_bf16, uint16_t, float, vf_load_bf16, vf_load_bf16_n, vf_store, vf_store_n)
CONVERT(to_f16, float, uint16_t, vf_load, vf_load_n, vf_store_f16, vf_store_f16_n)
CONVERT(to_bf16, float, uint16_t, vf_load, vf_load_n, vf_store_bf16, vf_store_bf16_n)
#undef CONVERT

void CONVERT_NAME(const ox_convert_half_args *a, size_t begin, size_t end)
{
    const float *f = a->src;
    const uint16_t *h = a->src;
    float *to_f = a->dst;
    uint16_t *to_h = a->dst;
    const size_t n = end - begin;
    if (a->from == OX_DTYPE_F16)
        from_f16(h + begin, to_f + begin, n);
    else if (a->from == OX_DTYPE_BF16)
        from_bf16(h + begin, to_f + begin, n);
    else if (a->to == OX_DTYPE_F16)
        to_f16(f + begin, to_h + begin, n);
    else
        to_bf16(f + begin, to_h + begin, n);
}
