/* fpack.h - float weights packed for the matmul family: tiles of 16 output columns, k-major.
 *
 *   data [ceil(n/16)][k][16]     element (tile t, k, lane c) = w[16t + c][k], zero beyond n
 *
 * so that a vector holds 16 outputs at one k: no sums across lanes, and one sequential stream of
 * bytes. float16 and bfloat16 stay narrow and are widened in registers. */
#ifndef OX_KERNEL_FPACK_H
#define OX_KERNEL_FPACK_H
#include "tensor/weight.h"

enum { OX_FPACK_LANES = 16 };

typedef struct ox_fpack {
    size_t n, k;    /* outputs, inputs */
    ox_dtype dtype; /* F32, F16, BF16 */
    void *data;     /* borrowed; aligned to 64 bytes */
} ox_fpack;

/* Shape of the pack of the weights stacked along their rows (all have the same cols), and its
 * bytes. The type is the weights' common float type, else float32. Sets everything but data. Fails
 * with OX_LIMIT on overflow, OX_BAD_ARGUMENT when the cols differ. */
ox_status ox_fpack_plan(ox_fpack *p, const ox_weight *const *weights, size_t n_weights,
                        size_t *bytes, ox_err *err);

static inline size_t ox_fpack_tiles(const ox_fpack *p)
{
    return (p->n + OX_FPACK_LANES - 1) / OX_FPACK_LANES;
}

/* Fills tiles [begin, end) of p->data from the same weights; different ranges may run at the same
 * time. OX_NO_MEMORY is the only failure. */
ox_status ox_fpack_fill(const ox_fpack *p, const ox_weight *const *weights, size_t n_weights,
                        size_t begin, size_t end, ox_err *err);
#endif
