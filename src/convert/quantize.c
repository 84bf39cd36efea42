/* quantize.c - see quantize.h. */
#include "convert/quantize.h"

#include "tensor/half.h"

#include <math.h>
#include <string.h>

enum { BLOCK_MAX = 256 };

static const char *const KIND_NAMES[OX_QUANT_COUNT] = {"keep", "int4", "int8",
                                                       "f16",  "bf16", "f32"};

bool ox_quant_kind_of(ox_str name, ox_quant_kind *out)
{
    for (int k = 0; k < OX_QUANT_COUNT; k++)
        if (ox_str_is(name, KIND_NAMES[k])) {
            *out = (ox_quant_kind)k;
            return true;
        }
    return false;
}

const char *ox_quant_kind_name(ox_quant_kind k)
{
    return (unsigned)k < OX_QUANT_COUNT ? KIND_NAMES[k] : "invalid";
}

ox_status ox_quant_choice_check(const ox_quant_choice *q, ox_err *err)
{
    if ((unsigned)q->kind >= OX_QUANT_COUNT)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "no such kind of weights (%d)", (int)q->kind);
    if (q->block < 16 || q->block > 256 || (q->block & (q->block - 1)))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "block %d: use 16, 32, 64, 128 or 256", q->block);
    if (q->head_bits != 4 && q->head_bits != 8 && q->head_bits != 16)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "head bits %d: use 4, 8 or 16", q->head_bits);
    return OX_OK;
}

int32_t ox_quant_bits(const ox_quant_choice *q, bool is_head)
{
    if (q->kind != OX_QUANT_INT4 && q->kind != OX_QUANT_INT8) return 0;
    if (is_head) return q->head_bits == 16 ? 0 : q->head_bits;
    return q->kind == OX_QUANT_INT4 ? 4 : 8;
}

ox_nbits_sizes ox_nbits_row_sizes(int64_t cols, int32_t bits, int32_t block)
{
    const size_t blocks = (size_t)((cols + block - 1) / block);
    return (ox_nbits_sizes){blocks, blocks * (size_t)block * (size_t)bits / 8,
                            (blocks * (size_t)bits + 7) / 8};
}

/* Not a number becomes 0. */
static float clamp_code(float v, float most)
{
    return v > 0 ? (v < most ? v : most) : 0;
}

/* Scale and zero code of one block of n <= block values. */
static void measure(const float *x, int64_t n, int32_t bits, bool asym, float *scale, float *zero)
{
    const float most = (float)((1 << bits) - 1), middle = (float)(1 << (bits - 1));
    float least = x[0], largest = x[0];
    for (int64_t i = 1; i < n; i++) {
        if (x[i] < least) least = x[i];
        if (x[i] > largest) largest = x[i];
    }
    if (!asym) {
        *scale = (fabsf(largest) > fabsf(least) ? largest : least) / -middle;
        *zero = middle;
        return;
    }
    if (least > 0) least = 0;
    if (largest < 0) largest = 0;
    *scale = (largest - least) / most;
    const float fit = *scale != 0 ? -least / *scale : 0;
    *zero = roundf(clamp_code(fit, most));
}

/* Clamping first makes rounding half away from zero a matter of the fraction, without a call. */
static void round_codes(const float *x, int64_t n, float inverse, float zero, float most,
                        uint8_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = clamp_code(x[i] * inverse + zero, most);
        const int32_t whole = (int32_t)v;
        out[i] = (uint8_t)(whole + (v - (float)whole >= 0.5f));
    }
}

void ox_quantize_row(const float *row, int64_t n, int32_t bits, int32_t block, uint8_t *codes,
                     float *scales, uint8_t *zeros)
{
    const float most = (float)((1 << bits) - 1);
    const ox_nbits_sizes sizes = ox_nbits_row_sizes(n, bits, block);
    uint8_t wide[BLOCK_MAX] = {0};
    if (zeros) memset(zeros, 0, sizes.zero_bytes);
    for (size_t b = 0; b < sizes.blocks; b++) {
        const float *x = row + b * (size_t)block;
        const int64_t left = n - (int64_t)b * block, m = left < block ? left : block;
        float scale, zero;
        measure(x, m, bits, zeros != NULL, &scale, &zero);
        const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
        scales[b] = scale;
        const unsigned zero_code = (unsigned)zero;
        if (zeros && bits == 4)
            zeros[b / 2] = (uint8_t)(zeros[b / 2] | zero_code << (b % 2 * 4));
        else if (zeros)
            zeros[b] = (uint8_t)zero_code;
        uint8_t *out = codes + b * (size_t)block * (size_t)bits / 8;
        round_codes(x, m, inverse, zero, most, wide);
        memset(wide + m, (int)zero_code, (size_t)(block - m));
        if (bits == 8) memcpy(out, wide, (size_t)block);
        for (int32_t i = 0; bits == 4 && i < block / 2; i++)
            out[i] = (uint8_t)(wide[2 * i] | wide[2 * i + 1] << 4);
    }
}

void ox_quantize_range(const ox_weight *src, int64_t begin, int64_t end, const ox_nbits_rows *out,
                       float *scratch)
{
    const ox_nbits_sizes s = ox_nbits_row_sizes(src->cols, out->bits, out->block);
    for (int64_t r = begin; r < end; r++) {
        const size_t i = (size_t)(r - begin);
        ox_weight_row_f32(src, r, scratch);
        ox_quantize_row(scratch, src->cols, out->bits, out->block, out->codes + i * s.code_bytes,
                        out->scales + i * s.blocks,
                        out->zeros ? out->zeros + i * s.zero_bytes : NULL);
    }
}

static ox_status out_of_memory(const ox_weight *src, ox_err *err)
{
    return OX_FAIL(err, OX_NO_MEMORY, "tensor %.*s [%lld, %lld]: out of memory while re-making it",
                   OX_STR_ARGS(src->name), (long long)src->rows, (long long)src->cols);
}

ox_status ox_quantize_weight(const ox_weight **out, ox_arena *arena, const ox_weight *src,
                             const ox_quant_choice *q, int32_t bits, ox_err *err)
{
    const ox_nbits_sizes s = ox_nbits_row_sizes(src->cols, bits, q->block);
    const size_t rows = (size_t)src->rows;
    ox_weight *w = ox_arena_take(arena, sizeof *w);
    ox_nbits_rows to = {.bits = bits, .block = q->block};
    to.codes = ox_arena_take_n(arena, rows, s.code_bytes);
    to.scales = ox_arena_take_n(arena, rows, s.blocks * sizeof(float));
    to.zeros = q->asym ? ox_arena_take_n(arena, rows, s.zero_bytes) : NULL;
    float *scratch = ox_alloc((size_t)src->cols * sizeof(float));
    if (!w || !to.codes || !to.scales || (q->asym && !to.zeros) || !scratch) {
        ox_free(scratch);
        return out_of_memory(src, err);
    }
    ox_quantize_range(src, 0, src->rows, &to, scratch);
    ox_free(scratch);
    *w = (ox_weight){
        .name = src->name,
        .format = OX_FORMAT_NBITS,
        .rows = src->rows,
        .cols = src->cols,
        .bytes = rows * (s.code_bytes + s.blocks * sizeof(float) + (q->asym ? s.zero_bytes : 0)),
        .nbits = {.bits = bits,
                  .block = q->block,
                  .codes = to.codes,
                  .scales = to.scales,
                  .scale_dtype = OX_DTYPE_F32,
                  .zeros = to.zeros,
                  .zeros_dtype = q->asym ? OX_DTYPE_U8 : OX_DTYPE_NONE}};
    *out = w;
    return OX_OK;
}

static void store_row(void *to, const float *row, int64_t n, ox_format format)
{
    if (format == OX_FORMAT_F32) {
        memcpy(to, row, (size_t)n * sizeof(float));
        return;
    }
    uint16_t *half = to;
    for (int64_t i = 0; i < n; i++)
        half[i] = format == OX_FORMAT_F16 ? ox_f32_to_f16(row[i]) : ox_f32_to_bf16(row[i]);
}

ox_status ox_convert_weight(const ox_weight **out, ox_arena *arena, const ox_weight *src,
                            ox_format format, ox_err *err)
{
    const size_t row_bytes = (size_t)src->cols * (format == OX_FORMAT_F32 ? 4 : 2);
    ox_weight *w = ox_arena_take(arena, sizeof *w);
    char *bytes = ox_arena_take_n(arena, (size_t)src->rows, row_bytes);
    float *scratch = ox_alloc((size_t)src->cols * sizeof(float));
    if (!w || !bytes || !scratch) {
        ox_free(scratch);
        return out_of_memory(src, err);
    }
    for (int64_t r = 0; r < src->rows; r++) {
        ox_weight_row_f32(src, r, scratch);
        store_row(bytes + (size_t)r * row_bytes, scratch, src->cols, format);
    }
    ox_free(scratch);
    *w = (ox_weight){.name = src->name,
                     .format = format,
                     .rows = src->rows,
                     .cols = src->cols,
                     .data = bytes,
                     .bytes = (size_t)src->rows * row_bytes};
    *out = w;
    return OX_OK;
}
