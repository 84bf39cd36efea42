/* cuda_widen.h - y = act(x * W^T + bias) (* up) (+ add) for block-quantised W and many rows, on the
 * tensor cores of sm_90. Weights are widened to float16 (scale * (code - zero) or scale * code +
 * min, rounded once), then as kernel/matmul/cuda_wgmma.h.
 *
 * Two rows of the same bits where neither splits k: _mixed widens inside the product, once for
 * every 128 rows; _widen widens a slice of the matrix into scratch memory that stays in the L2
 * cache, once for all rows, and multiplies with wider tiles. Neither keeps a second copy of the
 * model. */
#ifndef OX_KERNEL_QLINEAR_CUDA_WIDEN_H
#define OX_KERNEL_QLINEAR_CUDA_WIDEN_H
#include "kernel/matmul/cuda_wgmma.h"

#include <stddef.h>

struct ox_cuda_weight; /* cuda_pack.cuh */

#ifdef __cplusplus
extern "C" {
#endif

enum { OX_CUDA_WIDEN_BYTES = 24 << 20 }; /* of scratch: fast; any multiple of 32 rows works */

/* product->w, ldw and n are filled here from w (with pairs: the first half of w's rows are gates,
 * the second half up, each a multiple of 8 rows). scratch: device memory, 256-byte aligned, at
 * least 32 rows of w in float16. 0, or a cudaError_t. */
int ox_cuda_linear_widen(const struct ox_cuda_weight *w, const ox_cuda_matmul_args *product,
                         void *scratch, size_t scratch_bytes, int n_sm, void *stream);

/* The same without scratch; bits of w: 4 or 8. */
int ox_cuda_linear_mixed(const struct ox_cuda_weight *w, const ox_cuda_matmul_args *product,
                         int n_sm, void *stream);

/* Whichever of the two is faster for that many rows. */
int ox_cuda_linear_many(const struct ox_cuda_weight *w, const ox_cuda_matmul_args *product,
                        void *scratch, size_t scratch_bytes, int n_sm, void *stream);

/* Rows [row, row + rows) of w to float16 [rows, k_units * 128]; row a multiple of 8. */
int ox_cuda_widen(const struct ox_cuda_weight *w, int32_t row, int32_t rows, void *out,
                  int32_t out_row, int32_t out_step, void *stream);

#ifdef __cplusplus
}
#endif
#endif
