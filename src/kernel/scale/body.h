/* The vector body; an ISA file includes its simd header, defines SCALE_NAME, then includes this. */
#include "base/compiler.h"
#include "kernel/scale/scale.h"
#include "simd/math.h"

OX_INLINE vf scale_lanes(vf x, vf scale, vf cap, bool capped)
{
    const vf t = vf_mul(x, scale);
    return capped ? vf_mul(vf_tanh(vf_div(t, cap)), cap) : t;
}

OX_INLINE void run(const ox_scale_args *a, size_t begin, size_t end, bool capped)
{
    const vf scale = vf_set1(a->scale), cap = vf_set1(a->softcap);
    const size_t n = a->dim;
    for (size_t r = begin; r < end; r++) {
        const float *x = a->x + r * a->ldx;
        float *y = a->y + r * a->ldy;
        size_t i = 0;
        for (; i + VF_N <= n; i += VF_N)
            vf_store(y + i, scale_lanes(vf_load(x + i), scale, cap, capped));
        if (i < n)
            vf_store_n(y + i, scale_lanes(vf_load_n(x + i, n - i), scale, cap, capped), n - i);
    }
}

void SCALE_NAME(const ox_scale_args *a, size_t begin, size_t end)
{
    if (a->softcap > 0.0f)
        run(a, begin, end, true);
    else
        run(a, begin, end, false);
}
