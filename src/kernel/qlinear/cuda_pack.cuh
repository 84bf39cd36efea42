/* cuda_pack.cuh - how weights lie in device memory: one layout for every CUDA row.
 *
 * Rows keep their order. 8 rows are a tile, 128 columns a unit, and one (tile, unit) is what a warp
 * fetches at once: lane l = 4g + t holds row g of the tile and, of every 32 columns b = 0..3, the
 * eight columns 32b + 8t + e, e = 0..7. That is the A fragment of mma.m16n8k16 and .m16n8k32 when
 * the operand x is read as 16-byte vectors of eight neighbours, so nothing is shuffled, and a
 * kernel picks the tiles of the fragment's upper and lower eight rows freely: neighbours, gate and
 * up, the two halves of a rotary head, or two column ranges of the same rows (K folded into rows).
 *
 *                 unit 0 (k 0..127)          unit 1 ...
 *   tile 0   | 32 lanes x 16 bytes |    | 32 lanes x 16 bytes |      codes [n_tiles][k_units][...]
 *   tile 1     ...
 *
 *   4 bits   512 bytes a unit: [lane] uint4, word b = columns 32b+8t+e, column e in nibble
 *            (e>>1) + 4(e&1), so that (word >> 4i) & 0x000f000f is the pair of columns 2i, 2i+1
 *   8 bits  1024 bytes: [b/2][lane] uint4, words 2(b&1) + ((e>>1)&1), byte (e>>2) + 2(e&1): the
 *            same order of columns as the low and the high nibbles of the 4-bit word have
 *  16 bits  2048 bytes (float16 weights without scales): [b][lane] uint4, half e
 *
 *   scales  [n_tiles][k_units][8 rows][128/block] float16, or float32 when one is no float16
 *   zeros   the same shape: uint8 codes (ZERO_CODE), minima of the scales' type (ZERO_MIN), or none
 *            (ZERO_MIDDLE: 8 or 128);  w = scale * (code - zero), or scale * code + min
 *
 * Blocks of 16, 32, 64, 128 are stored as they are; larger ones repeat their scale. Rows and blocks
 * beyond the matrix have scale and minimum 0; codes beyond it read as the zero point; readers still
 * give zeros for x beyond k, so that no NaN comes from there. */
#ifndef OX_KERNEL_QLINEAR_CUDA_PACK_CUH
#define OX_KERNEL_QLINEAR_CUDA_PACK_CUH
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

#define OX_CUDA_HD static __host__ __device__ __forceinline__

enum { OX_CUDA_TILE = 8, OX_CUDA_UNIT = 128 };
enum { OX_CUDA_ZERO_MIDDLE, OX_CUDA_ZERO_CODE, OX_CUDA_ZERO_MIN }; /* as ox_zero_kind */

typedef struct ox_cuda_weight {
    const uint4 *codes;       /* device memory, 16-byte aligned; the owner's */
    const void *scales;       /* NULL for 16 bits */
    const void *zeros;        /* NULL = middle */
    int32_t n, k;             /* rows and columns of the matrix */
    int32_t n_tiles, k_units; /* rounded up; n_tiles may be larger still */
    int32_t bits, block;
    int32_t zero; /* OX_CUDA_ZERO_ */
    int32_t scale_f32;
} ox_cuda_weight;

OX_CUDA_HD size_t ox_cuda_unit_vectors(int32_t bits) /* uint4 a unit */
{
    return (size_t)bits * 8;
}

OX_CUDA_HD int32_t ox_cuda_block(int32_t block) /* stored block of a source block */
{
    return block < 128 ? block : 128;
}

/* Everything but the pointers. block is the source's. */
OX_CUDA_HD ox_cuda_weight ox_cuda_weight_shape(int32_t n, int32_t k, int32_t bits, int32_t block,
                                               int32_t zero, int32_t scale_f32)
{
    ox_cuda_weight w = {
        0, 0, 0, n, k, 0, 0, bits, bits == 16 ? 128 : ox_cuda_block(block), zero, scale_f32};
    w.n_tiles = (n + OX_CUDA_TILE - 1) / OX_CUDA_TILE;
    w.k_units = (k + OX_CUDA_UNIT - 1) / OX_CUDA_UNIT;
    return w;
}

OX_CUDA_HD size_t ox_cuda_code_bytes(const ox_cuda_weight *w)
{
    return (size_t)w->n_tiles * (size_t)w->k_units * ox_cuda_unit_vectors(w->bits) * 16;
}

OX_CUDA_HD size_t ox_cuda_scale_count(const ox_cuda_weight *w)
{
    return w->bits == 16 ? 0
                         : (size_t)w->n_tiles * (size_t)w->k_units * 8 * (size_t)(128 / w->block);
}

OX_CUDA_HD size_t ox_cuda_scale_bytes(const ox_cuda_weight *w)
{
    return ox_cuda_scale_count(w) * (w->scale_f32 ? 4 : 2);
}

OX_CUDA_HD size_t ox_cuda_zero_bytes(const ox_cuda_weight *w)
{
    return w->zero == OX_CUDA_ZERO_MIDDLE ? 0
           : w->zero == OX_CUDA_ZERO_CODE ? ox_cuda_scale_count(w)
                                          : ox_cuda_scale_bytes(w);
}

/* Number of the scale (and zero) of row n, column k. */
OX_CUDA_HD size_t ox_cuda_scale_at(const ox_cuda_weight *w, int32_t n, int32_t k)
{
    const size_t unit = (size_t)(n >> 3) * (size_t)w->k_units + (size_t)(k >> 7);
    return (unit * 8 + (size_t)(n & 7)) * (size_t)(128 / w->block) + (size_t)((k & 127) / w->block);
}

OX_CUDA_HD float ox_cuda_read_scale(const void *p, size_t i, int32_t f32)
{
    return f32 ? ((const float *)p)[i] : __half2float(((const __half *)p)[i]);
}

/* Code of row n, column k (4 and 8 bits). */
OX_CUDA_HD uint32_t ox_cuda_code_at(const ox_cuda_weight *w, int32_t n, int32_t k)
{
    const size_t unit = (size_t)(n >> 3) * (size_t)w->k_units + (size_t)(k >> 7);
    const int b = k >> 5 & 3, lane = (n & 7) * 4 + (k >> 3 & 3), e = k & 7;
    const uint32_t *words = (const uint32_t *)(w->codes + unit * ox_cuda_unit_vectors(w->bits));
    if (w->bits == 4) return words[lane * 4 + b] >> 4 * ((e >> 1) + 4 * (e & 1)) & 15;
    return words[((b >> 1) * 32 + lane) * 4 + 2 * (b & 1) + (e >> 1 & 1)] >>
               8 * ((e >> 2) + 2 * (e & 1)) &
           255;
}

/* Weight (n, k) as float32: slow, exact, for rows that have no kernel of their own. */
OX_CUDA_HD float ox_cuda_weight_at(const ox_cuda_weight *w, int32_t n, int32_t k)
{
    if (w->bits == 16) {
        const size_t unit = (size_t)(n >> 3) * (size_t)w->k_units + (size_t)(k >> 7);
        const __half *h = (const __half *)(w->codes + unit * 128);
        return __half2float(h[((k >> 5 & 3) * 32 + (n & 7) * 4 + (k >> 3 & 3)) * 8 + (k & 7)]);
    }
    const size_t i = ox_cuda_scale_at(w, n, k);
    const float s = ox_cuda_read_scale(w->scales, i, w->scale_f32);
    const float q = (float)ox_cuda_code_at(w, n, k);
    if (w->zero == OX_CUDA_ZERO_MIN) return s * q + ox_cuda_read_scale(w->zeros, i, w->scale_f32);
    return s * (q - (w->zero == OX_CUDA_ZERO_CODE ? (float)((const uint8_t *)w->zeros)[i]
                                                  : (float)(1 << (w->bits - 1))));
}

/* ---- packing, on the device ---------------------------------------------------------------- */

/* Where codes come from, rows [0, rows) of one weight; they become rows n0 + r of the packed one.
 * NBITS arrays as the file has them: codes [rows][blocks][block*bits/8] low bits first, scales
 * [rows][blocks] (type 0 float32, 1 float16, 2 bfloat16), zeros NULL, packed uint8 codes a row from
 * a fresh byte (zeros_type 3), or floats in code units. Or rows as ox_weight_row_codes gives them:
 * bits 8 codes a byte of `spread` values, float32 scales, zeros uint8, minima float32. */
typedef struct ox_cuda_source {
    const uint8_t *codes;
    const void *scales, *zeros;
    int32_t rows, k, bits, block;
    int32_t scale_type, zeros_type; /* 0 f32, 1 f16, 2 bf16, 3 u8 */
    int32_t spread;                 /* 1: one code and one zero code a byte, zeros are minima if
                                       float */
    int32_t n0;                     /* first row of the packed weight; a multiple of 8 */
} ox_cuda_source;

OX_CUDA_HD float ox_cuda_source_float(const void *p, int32_t type, size_t i)
{
    if (type == 0) return ((const float *)p)[i];
    const uint16_t h = ((const uint16_t *)p)[i];
    if (type == 1) {
        __half v;
        memcpy(&v, &h, 2);
        return __half2float(v);
    }
    const uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

OX_CUDA_HD uint32_t ox_cuda_source_zero(const ox_cuda_source *s, int32_t r, int32_t b,
                                        int32_t blocks)
{
    if (!s->zeros || s->zeros_type != 3) return 1u << (s->bits - 1);
    const uint8_t *z = (const uint8_t *)s->zeros;
    if (s->spread) return z[(size_t)r * (size_t)blocks + (size_t)b];
    const size_t row = ((size_t)blocks * (size_t)s->bits + 7) / 8;
    const int at = b * s->bits;
    return (uint32_t)z[(size_t)r * row + (size_t)(at / 8)] >> at % 8 & ((1u << s->bits) - 1);
}

OX_CUDA_HD uint32_t ox_cuda_source_code(const ox_cuda_source *s, int32_t r, int32_t k,
                                        int32_t blocks)
{
    if (s->spread) return s->codes[(size_t)r * (size_t)(blocks * s->block) + (size_t)k];
    const size_t row = (size_t)blocks * (size_t)(s->block / 8 * s->bits);
    const uint32_t byte = s->codes[(size_t)r * row + (size_t)k * (size_t)s->bits / 8];
    return byte >> (uint32_t)k * (uint32_t)s->bits % 8 & ((1u << s->bits) - 1);
}

/* One thread a (row, 32 columns): grid-stride over n_tiles*8 rows from n0 on, k_units*4 pieces. */
static __global__ void ox_cuda_pack_codes(ox_cuda_weight w, ox_cuda_source s)
{
    const int32_t pieces = w.k_units * 4, blocks = (s.k + s.block - 1) / s.block;
    const int32_t rows = (s.rows + 7) / 8 * 8;
    const size_t total = (size_t)rows * (size_t)pieces;
    /* 2-bit codes around the middle move to the middle of 4 bits */
    const uint32_t shift = s.bits == 2 && !s.zeros ? 8 - 2 : 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < total;
         i += (size_t)gridDim.x * blockDim.x) {
        const int32_t r = (int32_t)(i / (size_t)pieces), p = (int32_t)(i % (size_t)pieces);
        const int32_t n = s.n0 + r, k0 = p * 32;
        const size_t unit = (size_t)(n >> 3) * (size_t)w.k_units + (size_t)(p >> 2);
        uint32_t *out = (uint32_t *)(w.codes + unit * ox_cuda_unit_vectors(w.bits));
        for (int t = 0; t < 4; t++) {
            uint32_t word[2] = {0, 0};
            for (int e = 0; e < 8; e++) {
                const int32_t k = k0 + 8 * t + e;
                uint32_t q = 1u << (w.bits - 1);
                if (r < s.rows && k < s.k)
                    q = ox_cuda_source_code(&s, r, k, blocks) + shift;
                else if (r < s.rows && s.zeros && s.zeros_type == 3 && k / s.block < blocks)
                    q = ox_cuda_source_zero(&s, r, k / s.block, blocks);
                if (w.bits == 4)
                    word[0] |= q << 4 * ((e >> 1) + 4 * (e & 1));
                else
                    word[e >> 1 & 1] |= q << 8 * ((e >> 2) + 2 * (e & 1));
            }
            const int b = p & 3, lane = (n & 7) * 4 + t;
            if (w.bits == 4) {
                out[lane * 4 + b] = word[0];
            } else {
                out[((b >> 1) * 32 + lane) * 4 + 2 * (b & 1)] = word[0];
                out[((b >> 1) * 32 + lane) * 4 + 2 * (b & 1) + 1] = word[1];
            }
        }
    }
}

/* One thread a scale. */
static __global__ void ox_cuda_pack_scales(ox_cuda_weight w, ox_cuda_source s)
{
    const int32_t per_row = w.k_units * (128 / w.block), blocks = (s.k + s.block - 1) / s.block;
    const int32_t rows = (s.rows + 7) / 8 * 8;
    const size_t total = (size_t)rows * (size_t)per_row;
    const uint32_t shift = s.bits == 2 && !s.zeros ? 8 - 2 : 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < total;
         i += (size_t)gridDim.x * blockDim.x) {
        const int32_t r = (int32_t)(i / (size_t)per_row), p = (int32_t)(i % (size_t)per_row);
        const int32_t k = p * w.block, b = k / s.block;
        const bool inside = r < s.rows && k < s.k;
        const size_t from = (size_t)r * (size_t)blocks + (size_t)b;
        const float scale = inside ? ox_cuda_source_float(s.scales, s.scale_type, from) : 0.0f;
        const size_t to = ox_cuda_scale_at(&w, s.n0 + r, k);
        if (w.scale_f32)
            ((float *)w.scales)[to] = scale;
        else
            ((__half *)w.scales)[to] = __float2half_rn(scale);
        if (w.zero == OX_CUDA_ZERO_CODE)
            ((uint8_t *)w.zeros)[to] =
                (uint8_t)(inside ? ox_cuda_source_zero(&s, r, b, blocks) + shift : 0);
        if (w.zero == OX_CUDA_ZERO_MIN) {
            float m = inside ? ox_cuda_source_float(s.zeros, s.zeros_type, from) : 0.0f;
            if (!s.spread) m = -(m * scale);
            if (w.scale_f32)
                ((float *)w.zeros)[to] = m;
            else
                ((__half *)w.zeros)[to] = __float2half_rn(m);
        }
    }
}

/* Dense rows [rows][k] of type 0 f32, 1 f16, 2 bf16 (s->codes) to 16 bits; transposed: [k][ld]. */
static __global__ void ox_cuda_pack_dense(ox_cuda_weight w, ox_cuda_source s, int transposed)
{
    const int32_t cols = w.k_units * 128, rows = (s.rows + 7) / 8 * 8;
    const size_t total = (size_t)rows * (size_t)cols;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < total;
         i += (size_t)gridDim.x * blockDim.x) {
        const int32_t r = (int32_t)(i / (size_t)cols), k = (int32_t)(i % (size_t)cols);
        const int32_t n = s.n0 + r;
        const size_t unit = (size_t)(n >> 3) * (size_t)w.k_units + (size_t)(k >> 7);
        __half *out = (__half *)(w.codes + unit * 128);
        const size_t from = transposed ? (size_t)k * (size_t)s.rows + (size_t)r
                                       : (size_t)r * (size_t)s.k + (size_t)k;
        const float v =
            r < s.rows && k < s.k ? ox_cuda_source_float(s.codes, s.scale_type, from) : 0.0f;
        out[((k >> 5 & 3) * 32 + (n & 7) * 4 + (k >> 3 & 3)) * 8 + (k & 7)] = __float2half_rn(v);
    }
}
#endif
