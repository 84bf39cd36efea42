/* cuda_wgmma.h - y = act(x * W^T + bias) (* up) (+ add) on tensor cores of sm_90, many rows.
 *
 * All operands are float16 with float32 accumulation: k ascends in steps of 16, one accumulator an
 * element. Few rows (few tiles) may split k into 2, 4 or 8 ranges whose sums are added in order:
 * the same call gives the same bits, another number of rows may round differently. Rows of W may
 * come in pairs (2i: gate, 2i+1: up); then y[r][i] = act(gate) * up. */
#ifndef OX_KERNEL_MATMUL_CUDA_WGMMA_H
#define OX_KERNEL_MATMUL_CUDA_WGMMA_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ox_cuda_matmul_args {
    const void *x; /* device, float16 [rows, k], ldx elements between rows (a multiple of 8) */
    const void *w; /* device, float16 [n, k], ldw elements between rows (a multiple of 8) */
    const float
        *bias; /* device, [n_out] or NULL; with pairs: of the gates, bias_up of the others */
    const float *bias_up;
    const void *add;    /* device, float16 [rows, n_out], ldadd between rows, or NULL; may be y */
    void *y;            /* device, float16 (float32 if y_f32) [rows, n_out], ldy between rows */
    int32_t rows, n, k; /* n_out = n, or n / 2 with pairs */
    int64_t ldx, ldw, ldadd, ldy; /* elements; multiples of 8: fast stores */
    int32_t pairs;                /* 1: gate and up */
    int32_t act;                  /* pairs: an ox_act (kernel/act/act.h) */
    int32_t y_f32;                /* 1: y is float32; excludes pairs */
} ox_cuda_matmul_args;

/* Enqueues on the stream (a cudaStream_t). 0, or a cudaError_t. n_sm = multiprocessors. */
int ox_cuda_matmul_wgmma(const ox_cuda_matmul_args *a, int n_sm, void *stream);

#ifdef __cplusplus
}
#endif
#endif
