/* The vector body; an ISA file includes its simd header, defines ADD_NAME, then includes this. */
#include "kernel/add/add.h"

void ADD_NAME(const ox_add_args *a, size_t begin, size_t end)
{
    const size_t n = a->dim;
    for (size_t r = begin; r < end; r++) {
        const float *p = a->a + r * a->lda, *q = a->b + r * a->ldb;
        float *y = a->y + r * a->ldy;
        size_t i = 0;
        for (; i + VF_N <= n; i += VF_N)
            vf_store(y + i, vf_add(vf_load(p + i), vf_load(q + i)));
        if (i < n)
            vf_store_n(y + i, vf_add(vf_load_n(p + i, n - i), vf_load_n(q + i, n - i)), n - i);
    }
}
