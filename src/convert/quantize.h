/* quantize.h - how matrices are re-made on import and export: the choice that the user makes
 * (--quant, --block, --asym, --head-bits) and the block quantiser behind it.
 *
 * The quantiser rounds to nearest by blocks along a row, exactly as ONNX Runtime's default
 * MatMulNBits quantiser does: symmetric blocks use scale = extreme / -2^(bits-1), the extreme
 * keeping its sign; asymmetric ones span [min(0, least), max(0, largest)]. */
#ifndef OX_CONVERT_QUANTIZE_H
#define OX_CONVERT_QUANTIZE_H
#include "base/arena.h"
#include "base/mem.h"
#include "tensor/weight.h"

typedef enum ox_quant_kind {
    OX_QUANT_KEEP, /* the file's own format */
    OX_QUANT_INT4,
    OX_QUANT_INT8,
    OX_QUANT_F16,
    OX_QUANT_BF16,
    OX_QUANT_F32,
    OX_QUANT_COUNT
} ox_quant_kind;

typedef struct ox_quant_choice {
    ox_quant_kind kind;
    int32_t block;     /* 16, 32, 64, 128 or 256 */
    bool asym;         /* with zero points */
    int32_t head_bits; /* of the output matrix (and a tied embedding): 4, 8, or 16 = float */
} ox_quant_choice;

#define OX_QUANT_CHOICE_INIT                                                                       \
    {                                                                                              \
        OX_QUANT_INT4, 32, false, 8                                                                \
    }

/* "keep", "int4", ...; false: no such name. */
bool ox_quant_kind_of(ox_str name, ox_quant_kind *out);
const char *ox_quant_kind_name(ox_quant_kind k);
/* Block and head bits in range. */
ox_status ox_quant_choice_check(const ox_quant_choice *q, ox_err *err);
/* bits (4, 8) that q gives a matrix, or 0 when it stays float or as it is. */
int32_t ox_quant_bits(const ox_quant_choice *q, bool is_head);

/* One row of n floats: codes[blocks * block * bits / 8], scales[blocks] and, when not NULL,
 * zeros[ceil(blocks * bits / 8)] (asymmetric). bits 4 or 8. Padding codes are the zero code. */
void ox_quantize_row(const float *row, int64_t n, int32_t bits, int32_t block, uint8_t *codes,
                     float *scales, uint8_t *zeros);

/* Arrays of one row of a quantised matrix with `cols` columns. */
typedef struct ox_nbits_sizes {
    size_t blocks; /* scales: as many floats */
    size_t code_bytes, zero_bytes;
} ox_nbits_sizes;
ox_nbits_sizes ox_nbits_row_sizes(int64_t cols, int32_t bits, int32_t block);

/* Rows [begin, end) of src into arrays whose first row is row `begin`; scratch[cols] floats.
 * Callable for disjoint ranges at once. zeros NULL = symmetric. */
typedef struct ox_nbits_rows {
    int32_t bits, block;
    uint8_t *codes;
    float *scales;
    uint8_t *zeros;
} ox_nbits_rows;
void ox_quantize_range(const ox_weight *src, int64_t begin, int64_t end, const ox_nbits_rows *out,
                       float *scratch);

/* A new weight in the arena: src re-made with `bits` (4, 8), or in a float format. */
ox_status ox_quantize_weight(const ox_weight **out, ox_arena *arena, const ox_weight *src,
                             const ox_quant_choice *q, int32_t bits, ox_err *err);
ox_status ox_convert_weight(const ox_weight **out, ox_arena *arena, const ox_weight *src,
                            ox_format format, ox_err *err);
#endif
