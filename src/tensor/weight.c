/* weight.c - the two readings of a weight (weight.h), driven by one rule a format. Block formats
 * live in weight_blocks.c and weight_k.c, the ONNX form in weight_nbits.c. */
#include "tensor/weight_internal.h"

#include "base/mem.h"

typedef struct format_row {
    const char *name;
    int32_t ggml, block;
    size_t bytes;
} format_row;

static const format_row formats[OX_FORMAT_COUNT] = {
#define OX_FORMAT(suffix, name, code, block, bytes)                                                \
    [OX_FORMAT_##suffix] = {name, code, block, bytes},
#include "tensor/formats.def"
#undef OX_FORMAT
};

typedef struct code_rule {
    ox_code_layout layout;
    ox_block_fn *read;
} code_rule;

static const code_rule rules[OX_FORMAT_COUNT] = {
    [OX_FORMAT_Q4_0] = {{4, 32, OX_ZERO_MIDDLE, true}, ox_block_q4_0},
    [OX_FORMAT_Q4_1] = {{4, 32, OX_ZERO_MIN, true}, ox_block_q4_1},
    [OX_FORMAT_Q5_0] = {{8, 32, OX_ZERO_MIDDLE, true}, ox_block_q5_0},
    [OX_FORMAT_Q5_1] = {{8, 32, OX_ZERO_MIN, true}, ox_block_q5_1},
    [OX_FORMAT_Q8_0] = {{8, 32, OX_ZERO_MIDDLE, true}, ox_block_q8_0},
    [OX_FORMAT_Q2_K] = {{4, 16, OX_ZERO_MIN, false}, ox_block_q2_k},
    [OX_FORMAT_Q3_K] = {{4, 16, OX_ZERO_MIDDLE, false}, ox_block_q3_k},
    [OX_FORMAT_Q4_K] = {{4, 32, OX_ZERO_MIN, false}, ox_block_q4_k},
    [OX_FORMAT_Q5_K] = {{8, 32, OX_ZERO_MIN, false}, ox_block_q5_k},
    [OX_FORMAT_Q6_K] = {{8, 16, OX_ZERO_MIDDLE, false}, ox_block_q6_k},
    [OX_FORMAT_IQ4_NL] = {{8, 32, OX_ZERO_MIDDLE, true}, ox_block_iq4_nl},
};

const char *ox_format_name(ox_format f)
{
    return (unsigned)f < OX_FORMAT_COUNT ? formats[f].name : "invalid";
}

int32_t ox_format_block(ox_format f)
{
    return (unsigned)f < OX_FORMAT_COUNT ? formats[f].block : 0;
}

size_t ox_format_block_bytes(ox_format f)
{
    return (unsigned)f < OX_FORMAT_COUNT ? formats[f].bytes : 0;
}

bool ox_format_of_ggml(int32_t code, ox_format *out)
{
    for (int f = 0; f < OX_FORMAT_COUNT; f++) {
        if (formats[f].ggml < 0 || formats[f].ggml != code) continue;
        *out = (ox_format)f;
        return true;
    }
    return false;
}

static const uint8_t *row_of(const ox_weight *w, int64_t r)
{
    const format_row *f = &formats[w->format];
    return (const uint8_t *)w->data + (size_t)r * (size_t)(w->cols / f->block) * f->bytes;
}

static float read_element(ox_format f, const uint8_t *p)
{
    uint32_t u;
    if (f == OX_FORMAT_F16) return ox_read_f16(p);
    if (f == OX_FORMAT_BF16) return ox_bf16_to_f32((uint16_t)(p[0] | p[1] << 8));
    memcpy(&u, p, 4);
    return ox_f32_from_bits(u);
}

static void float_row(const ox_weight *w, int64_t r, float *out)
{
    const size_t size = formats[w->format].bytes, cols = (size_t)w->cols;
    if (w->transposed) {
        const uint8_t *p = (const uint8_t *)w->data + (size_t)r * size;
        for (size_t k = 0; k < cols; k++)
            out[k] = read_element(w->format, p + k * (size_t)w->rows * size);
        return;
    }
    const uint8_t *p = row_of(w, r);
    if (w->format == OX_FORMAT_F32) memcpy(out, p, cols * sizeof(float));
    if (w->format == OX_FORMAT_F16)
        for (size_t k = 0; k < cols; k++)
            out[k] = ox_read_f16(p + 2 * k);
    if (w->format == OX_FORMAT_BF16)
        for (size_t k = 0; k < cols; k++)
            out[k] = ox_bf16_to_f32((uint16_t)(p[2 * k] | p[2 * k + 1] << 8));
}

static void block_row(const ox_weight *w, int64_t r, float *out)
{
    const code_rule *rule = &rules[w->format];
    const format_row *f = &formats[w->format];
    const int part = rule->layout.block;
    const bool minima = rule->layout.zero == OX_ZERO_MIN;
    const int zero = minima ? 0 : 1 << (rule->layout.bits - 1);
    uint8_t codes[OX_BLOCK_MAX];
    float scales[OX_BLOCK_PARTS], mins[OX_BLOCK_PARTS];
    const uint8_t *p = row_of(w, r);
    for (int64_t k = 0; k < w->cols; k += f->block, p += f->bytes) {
        rule->read(p, codes, scales, mins);
        for (int i = 0; i < f->block; i++) {
            const float v = scales[i / part] * (float)(codes[i] - zero);
            out[k + i] = minima ? v + mins[i / part] : v;
        }
    }
}

void ox_weight_row_f32(const ox_weight *w, int64_t r, float *out)
{
    if (w->format == OX_FORMAT_NBITS)
        ox_nbits_row_f32(w, r, out);
    else if (rules[w->format].read)
        block_row(w, r, out);
    else
        float_row(w, r, out);
}

ox_code_layout ox_weight_code_layout(const ox_weight *w)
{
    return w->format == OX_FORMAT_NBITS ? ox_nbits_code_layout(w) : rules[w->format].layout;
}

void ox_weight_row_codes(const ox_weight *w, int64_t r, uint8_t *codes, float *scales,
                         uint8_t *zeros, float *mins)
{
    if (w->format == OX_FORMAT_NBITS) {
        ox_nbits_row_codes(w, r, codes, scales, zeros, mins);
        return;
    }
    const code_rule *rule = &rules[w->format];
    if (!rule->read) return;
    const format_row *f = &formats[w->format];
    const int64_t parts = f->block / rule->layout.block;
    const bool keep = rule->layout.zero == OX_ZERO_MIN && mins;
    float unused[OX_BLOCK_PARTS];
    const uint8_t *p = row_of(w, r);
    for (int64_t b = 0; b < w->cols / f->block; b++, p += f->bytes)
        rule->read(p, codes + b * f->block, scales + b * parts, keep ? mins + b * parts : unused);
}

ox_status ox_weight_check(const ox_weight *w, ox_err *err)
{
    if ((unsigned)w->format >= OX_FORMAT_COUNT || w->rows <= 0 || w->cols <= 0)
        return OX_FAIL(err, OX_BAD_FILE, "weight %.*s: format %s and shape %lld x %lld",
                       OX_STR_ARGS(w->name), ox_format_name(w->format), (long long)w->rows,
                       (long long)w->cols);
    const format_row *f = &formats[w->format];
    if (w->transposed && f->block != 1)
        return OX_FAIL(err, OX_UNSUPPORTED, "weight %.*s: a transposed matrix in blocks of %s",
                       OX_STR_ARGS(w->name), f->name);
    if (w->format == OX_FORMAT_NBITS) return ox_nbits_check(w, err);
    if (w->cols % f->block)
        return OX_FAIL(err, OX_BAD_FILE,
                       "weight %.*s: %lld columns are no multiple of the %d of %s",
                       OX_STR_ARGS(w->name), (long long)w->cols, f->block, f->name);
    size_t need;
    if (!w->data || !ox_size_mul((size_t)(w->cols / f->block), f->bytes, &need) ||
        !ox_size_mul(need, (size_t)w->rows, &need) || w->bytes < need)
        return OX_FAIL(err, OX_BAD_FILE, "weight %.*s: %zu bytes are too few for %lld x %lld of %s",
                       OX_STR_ARGS(w->name), w->data ? w->bytes : 0, (long long)w->rows,
                       (long long)w->cols, f->name);
    return OX_OK;
}
