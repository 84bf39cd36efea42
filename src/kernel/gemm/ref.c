/* Reference: the sum in double. */
#include "kernel/gemm/gemm.h"

void ox_gemm_ref(const ox_gemm_args *a, size_t begin, size_t end)
{
    const size_t strips = (a->n + OX_GEMM_COLUMNS - 1) / OX_GEMM_COLUMNS;
    for (size_t u = begin; u < end; u++) {
        const size_t i = u / strips, first = u % strips * OX_GEMM_COLUMNS;
        const size_t last = first + OX_GEMM_COLUMNS < a->n ? first + OX_GEMM_COLUMNS : a->n;
        const float *x = a->a + i * a->stride_a, *w = a->b + i * a->stride_b;
        for (size_t m = 0; m < a->m; m++)
            for (size_t n = first; n < last; n++) {
                double sum = 0.0;
                for (size_t k = 0; k < a->k; k++)
                    sum += (double)x[m * a->lda + k] * (double)w[k * a->ldb + n];
                a->c[i * a->stride_c + m * a->ldc + n] = (float)sum;
            }
    }
}
