/* weight.h - one weight object: logical shape, format, and where its bytes are.
 *
 * A weight never owns bytes: they are views into mapped files or the model's arena and live as long
 * as the model. Every format can be read two ways, both exact:
 *   - as float32 rows (embedding lookup, norms, references, export), and
 *   - as *codes*: w[r][k] = scale[b]*(q[k] - zero) + min[b], b = k/block, q unsigned, which is what
 *     the packed kernels of kernel/qlinear are made from, whatever file the weight came from. */
#ifndef OX_TENSOR_WEIGHT_H
#define OX_TENSOR_WEIGHT_H
#include "tensor/tensor.h"

typedef enum ox_format {
#define OX_FORMAT(suffix, name, code, block, bytes) OX_FORMAT_##suffix,
#include "tensor/formats.def"
#undef OX_FORMAT
    OX_FORMAT_COUNT
} ox_format;

const char *ox_format_name(ox_format f);
int32_t ox_format_block(ox_format f);                 /* elements a block */
size_t ox_format_block_bytes(ox_format f);            /* bytes a block */
bool ox_format_of_ggml(int32_t code, ox_format *out); /* false: a type we do not know */

typedef enum ox_zero_kind {
    OX_ZERO_MIDDLE, /* zero = 2^(bits-1), min = 0 */
    OX_ZERO_CODE,   /* zero = an integer code per block, min = 0 */
    OX_ZERO_MIN,    /* zero = 0, min per block (GGUF minima; float zero points as -zp*scale) */
} ox_zero_kind;

/* ONNX MatMulNBits / GatherBlockQuantized operand arrays (format NBITS). */
typedef struct ox_nbits {
    int32_t bits;         /* 2, 4, 8 */
    int32_t block;        /* power of two >= 16 */
    const uint8_t *codes; /* [rows, ceil(cols/block), block*bits/8], low bits first */
    const void *scales;   /* [rows, ceil(cols/block)] of scale_dtype; any sign */
    ox_dtype scale_dtype; /* F32, F16, BF16 */
    const void *zeros;    /* NULL = 2^(bits-1); else see zeros_dtype */
    ox_dtype zeros_dtype; /* U8: packed codes, each row from a fresh byte; else float, code units */
    const int32_t *g_idx; /* [cols] block of each column, or NULL = k/block */
} ox_nbits;

typedef struct ox_weight {
    ox_str name; /* for messages; borrowed from the model */
    ox_format format;
    int64_t rows, cols; /* rows = outputs; a vector has rows 1 */
    const void *data;   /* [rows] rows of the format's blocks; NULL for NBITS */
    size_t bytes;       /* of data, or of all NBITS arrays together */
    bool transposed;    /* float formats only: stored [cols, rows] (ONNX MatMul's B) */
    ox_nbits nbits;
} ox_weight;

/* Row r as float32 [cols]; exact for every format (float32 arithmetic of the format's own rule). */
void ox_weight_row_f32(const ox_weight *w, int64_t r, float *out);

/* What the codes of a weight look like; float formats have none (bits = 0). */
typedef struct ox_code_layout {
    int32_t bits;  /* 4 or 8 (narrower and odd widths are widened exactly), 0 = float format */
    int32_t block; /* 16 or 32 (larger blocks repeat their scale) */
    ox_zero_kind zero;
    bool scale_f16; /* every scale and min is exactly a float16; else float32 */
} ox_code_layout;

ox_code_layout ox_weight_code_layout(const ox_weight *w);

/* Row r: codes[cols rounded up to block] one code a byte (padding codes read as zero weight),
 * scales[blocks], and zeros[blocks] (ZERO_CODE) or mins[blocks] (ZERO_MIN); others may be NULL.
 * g_idx weights are not readable as codes (layout.bits = 0): they run as dequantised rows. */
void ox_weight_row_codes(const ox_weight *w, int64_t r, uint8_t *codes, float *scales,
                         uint8_t *zeros, float *mins);

/* Checks that data and bytes agree with shape and format; the message names the weight. */
ox_status ox_weight_check(const ox_weight *w, ox_err *err);
#endif
