/* pack.h - weights as the quantised kernels read them: layout "P16", the same bytes on every CPU.
 *
 * Rows of one or several weights (q, k, v; or gate and up) become columns. 32 columns are a tile;
 * a tile is a run of records, one per block of k, in ascending order, all 64 bytes aligned except
 * behind integer zero points:
 *
 *   4 bits: for g in 0..1, j in 0..block/8-1: 64 bytes, dword lane c = column 16g+c, its bytes hold
 *           k = 8j..8j+7, low nibble first
 *   8 bits: for g in 0..1, s in 0..block/4-1: 64 bytes, dword lane c = column 16g+c, k = 4s..4s+3
 *   then 32 scales (float16 when code.scale_f16, else float32),
 *   then ZERO_MIN: 32 minima of the same type; ZERO_CODE: 32 bytes of zero codes.
 *
 * A unit is the piece of work handed to a thread: one tile, or with pairs the tile of gate columns
 * and the tile of up columns behind it that yield the same 32 output columns. Columns beyond the
 * last row are zero weights. */
#ifndef OX_KERNEL_QLINEAR_PACK_H
#define OX_KERNEL_QLINEAR_PACK_H
#include "tensor/weight.h"

enum { OX_QPACK_COLS = 32 };

typedef struct ox_qpack {
    uint8_t *data; /* bytes, aligned to 64 (ox_pages_alloc); the caller's */
    size_t bytes;
    size_t n, k;   /* rows of all weights together; columns of each */
    size_t n_out;  /* columns of the product: n, or n/2 with pairs */
    size_t units;  /* ceil(n_out / 32) */
    size_t blocks; /* records a tile: ceil(k / code.block) */
    size_t record; /* bytes of a record */
    size_t tile;   /* bytes of a tile */
    ox_code_layout code;
    bool pairs; /* rows [0, n/2) are gates, [n/2, n) the ups that belong to them */
} ox_qpack;

/* Fills everything but data. OX_UNSUPPORTED when the weights have no codes or not the same width,
 * bits, block and zero kind (then they need packs of their own), or pairs and n is odd. Reads the
 * scales of float32-scaled weights once. */
ox_status ox_qpack_shape(ox_qpack *p, const ox_weight *const *weights, size_t n_weights, bool pairs,
                         ox_err *err);

/* Writes units [begin, end) of p->data. Threads may fill disjoint ranges; the weights must be those
 * given to ox_qpack_shape. OX_NO_MEMORY when the buffer of 32 rows (some 50 k bytes) fails. */
ox_status ox_qpack_fill(const ox_qpack *p, const ox_weight *const *weights, size_t n_weights,
                        size_t begin, size_t end, ox_err *err);

/* Row of the weights (0 <= row < n) that column c of tile t shows, or SIZE_MAX for padding. */
size_t ox_qpack_row(const ox_qpack *p, size_t t, size_t c);
#endif
