/* The vector body; an ISA file includes its simd header and its sizes, defines GEMM_NAME, then
 * includes this. */
#include "kernel/gemm/gemm.h"

#include "kernel/matmul/micro.h"

void GEMM_NAME(const ox_gemm_args *a, size_t begin, size_t end)
{
    const size_t strips = (a->n + OX_GEMM_COLUMNS - 1) / OX_GEMM_COLUMNS;
    const size_t tiles = (a->n + VF_N - 1) / VF_N, per_strip = OX_GEMM_COLUMNS / VF_N;
    for (size_t u = begin; u < end;) {
        const size_t i = u / strips, s0 = u % strips;
        const size_t s1 = s0 + (end - u) < strips ? s0 + (end - u) : strips;
        const product p = {.x = a->a + i * a->stride_a,
                           .rows = a->m,
                           .k = a->k,
                           .n = a->n,
                           .ldx = a->lda,
                           .type = KIND_F32,
                           .w = (const char *)(a->b + i * a->stride_b),
                           .step = a->ldb,
                           .stride = VF_N,
                           .y = a->c + i * a->stride_c,
                           .ldy = a->ldc};
        multiply(&p, s0 * per_strip, s1 * per_strip < tiles ? s1 * per_strip : tiles);
        u += s1 - s0;
    }
}
