/* quantize.h - float32 rows to int8 codes with one scale per block of 16 or 32, in one plane or
 * two.
 *
 *   m = max |x| over the block
 *   one plane:   s = m / 127;    q[k] = round-to-even(x[k] * (127 / m))
 *   two planes:  s = m / 32512;  v[k] = round-to-even(x[k] * (32512 / m)) = 256 hi[k] + lo[k]
 *                plane 0 holds hi with scale 256 s, plane 1 holds lo with scale s;
 *                |hi| <= 127, -128 <= lo <= 127
 *
 * m < 2^-100: the block is zero (s = 0, q = 0). A block that holds a NaN or an infinity gets s
 * = NaN and q = 0, so that everything computed from it is NaN.
 *
 * Two planes make 16-bit activations out of two int8 rows: products run on both, and the integers
 * meet as 256 times the first plus the second.
 * Relative error of an element: half a step, m/254 against m/65024.
 *
 * Bit-identical on every tier. One buffer holds everything of a row, so that a planner reserves
 * ox_qact_bytes() of step scratch and nothing else:
 *
 *   plane p of row r at data + (r*planes + p)*ld:  int8 codes [blocks*block] (padding 0) | float
 * scales [blocks] | int32 sums of the codes [blocks]
 *
 * The codes lie as the weights they will meet want them: 4-bit weights: within each 8, evens
 * k = 0 2 4 6 then odds 1 3 5 7; 8-bit weights: in order. */
#ifndef OX_KERNEL_QUANTIZE_H
#define OX_KERNEL_QUANTIZE_H
#include "kernel/kernel.h"

#include <stdint.h>

typedef struct ox_qact {
    uint8_t *data; /* ox_qact_bytes() bytes aligned to 64; the caller's */
    size_t rows, k;
    size_t blocks, ld; /* blocks a row; bytes from row to row, a multiple of 64 */
    int32_t block;     /* 16 or 32 */
    int32_t bits;      /* 4 or 8: the order of the codes */
    int32_t planes;    /* 1 or 2 */
} ox_qact;

/* Describes rows x k activations for weights of that block and width; data is the caller's to set.
 * bits 4 or 8, block 16 or 32 (ox_qpack.code has both). */
ox_qact ox_qact_shape(size_t rows, size_t k, int32_t block, int32_t bits, int32_t planes);
/* Bytes behind data; false on overflow. */
bool ox_qact_bytes(const ox_qact *q, size_t *bytes);

/* i counts planes: row r, plane p is i = r*planes + p. */
static inline int8_t *ox_qact_codes(const ox_qact *q, size_t i)
{
    return (int8_t *)(q->data + i * q->ld);
}
static inline float *ox_qact_scales(const ox_qact *q, size_t i)
{
    return (float *)(void *)(q->data + i * q->ld + q->blocks * (size_t)q->block);
}
static inline int32_t *ox_qact_sums(const ox_qact *q, size_t i)
{
    return (int32_t *)(void *)ox_qact_scales(q, i) + q->blocks;
}

typedef struct ox_quantize_args {
    const float *x; /* [rows, k], ldx floats between rows */
    size_t ldx;
    const ox_qact *y;
} ox_quantize_args;

/* Quantises rows [begin, end). */
typedef void ox_quantize_fn(const ox_quantize_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_quantize_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_quantize_fn fn;
#include "kernel/quantize/kernels.def"
#undef OX_CPU_KERNEL
#endif
