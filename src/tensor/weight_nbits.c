/* weight_nbits.c - the ONNX MatMulNBits form: codes, scales and zero points in arrays of their own.
 * Codes of 2 bits become 4; blocks of 64 and more repeat their scale over pieces of 32. */
#include "tensor/weight_internal.h"

#include "base/mem.h"

static int64_t blocks_of(const ox_weight *w)
{
    return (w->cols + w->nbits.block - 1) / w->nbits.block;
}

static float read_float(const void *p, ox_dtype t, int64_t i)
{
    uint16_t h;
    float f;
    if (t == OX_DTYPE_F32) {
        memcpy(&f, (const char *)p + 4 * i, 4);
        return f;
    }
    memcpy(&h, (const char *)p + 2 * i, 2);
    return t == OX_DTYPE_F16 ? ox_f16_to_f32(h) : ox_bf16_to_f32(h);
}

/* Element i of packed codes that start at p, lowest bits first. */
static unsigned read_code(const uint8_t *p, int bits, int64_t i)
{
    const int64_t at = i * bits;
    return (unsigned)p[at / 8] >> at % 8 & ((1u << bits) - 1);
}

static bool float_zeros(const ox_nbits *q)
{
    return q->zeros && q->zeros_dtype != OX_DTYPE_U8;
}

static unsigned zero_code(const ox_weight *w, int64_t r, int64_t b)
{
    const ox_nbits *q = &w->nbits;
    if (!q->zeros) return 1u << (q->bits - 1);
    const int64_t row_bytes = (blocks_of(w) * q->bits + 7) / 8;
    return read_code((const uint8_t *)q->zeros + r * row_bytes, q->bits, b);
}

static const uint8_t *row_of(const ox_weight *w, int64_t r)
{
    return w->nbits.codes + r * blocks_of(w) * (w->nbits.block / 8 * w->nbits.bits);
}

void ox_nbits_row_f32(const ox_weight *w, int64_t r, float *out)
{
    const ox_nbits *q = &w->nbits;
    const int64_t n_blocks = blocks_of(w);
    const uint8_t *row = row_of(w, r);
    int64_t last = -1;
    float scale = 0.0f, zero = 0.0f;
    for (int64_t k = 0; k < w->cols; k++) {
        const int64_t b = q->g_idx ? q->g_idx[k] : k / q->block;
        if (b != last) {
            scale = read_float(q->scales, q->scale_dtype, r * n_blocks + b);
            zero = float_zeros(q) ? read_float(q->zeros, q->zeros_dtype, r * n_blocks + b)
                                  : (float)zero_code(w, r, b);
            last = b;
        }
        out[k] = scale * ((float)read_code(row, q->bits, k) - zero);
    }
}

static bool is_f16(float f)
{
    return ox_f32_bits(ox_f16_to_f32(ox_f32_to_f16(f))) == ox_f32_bits(f);
}

static float min_of(const ox_nbits *q, int64_t i, float scale)
{
    return -(read_float(q->zeros, q->zeros_dtype, i) * scale);
}

static bool all_f16(const ox_weight *w)
{
    const ox_nbits *q = &w->nbits;
    const bool minima = float_zeros(q);
    if (q->scale_dtype == OX_DTYPE_F16 && !minima) return true;
    const int64_t n = w->rows * blocks_of(w);
    for (int64_t i = 0; i < n; i++) {
        const float scale = read_float(q->scales, q->scale_dtype, i);
        if (!is_f16(scale) || (minima && !is_f16(min_of(q, i, scale)))) return false;
    }
    return true;
}

ox_code_layout ox_nbits_code_layout(const ox_weight *w)
{
    const ox_nbits *q = &w->nbits;
    if (q->g_idx) return (ox_code_layout){0};
    return (ox_code_layout){
        .bits = q->bits == 8 ? 8 : 4,
        .block = q->block >= 32 ? 32 : 16,
        .zero = !q->zeros        ? OX_ZERO_MIDDLE
                : float_zeros(q) ? OX_ZERO_MIN
                                 : OX_ZERO_CODE,
        .scale_f16 = all_f16(w),
    };
}

/* n codes that start at element k, plus `shift`. Whole bytes: k is a multiple of 16. */
static void widen(const uint8_t *row, int bits, int64_t k, int64_t n, unsigned shift, uint8_t *out)
{
    const uint8_t *p = row + k / 8 * bits;
    if (bits == 8) {
        memcpy(out, p, (size_t)n);
        return;
    }
    const int per = 8 / bits;
    const unsigned mask = (1u << bits) - 1;
    for (int64_t i = 0; i < n; i++)
        out[i] = (uint8_t)(((unsigned)p[i / per] >> i % per * bits & mask) + shift);
}

void ox_nbits_row_codes(const ox_weight *w, int64_t r, uint8_t *codes, float *scales,
                        uint8_t *zeros, float *mins)
{
    const ox_nbits *q = &w->nbits;
    const int64_t step = q->block >= 32 ? 32 : 16, n = (w->cols + step - 1) / step;
    const int64_t n_blocks = blocks_of(w);
    const unsigned shift = q->bits == 2 && !q->zeros ? 8 - 2 : 0; /* zero code 2 becomes 8 */
    const uint8_t *row = row_of(w, r);
    widen(row, q->bits, 0, w->cols, shift, codes);
    for (int64_t b = 0; b < n; b++) {
        const int64_t fb = b * step / q->block, i = r * n_blocks + fb;
        scales[b] = read_float(q->scales, q->scale_dtype, i);
        const bool minima = float_zeros(q);
        if (minima && mins) mins[b] = min_of(q, i, scales[b]);
        const unsigned zero = minima ? 0 : zero_code(w, r, fb) + shift;
        if (q->zeros && !minima && zeros) zeros[b] = (uint8_t)zero;
        if (b == n - 1) memset(codes + w->cols, (int)zero, (size_t)(n * step - w->cols));
    }
}

static bool add_bytes(size_t *total, int64_t rows, size_t per_row)
{
    size_t more;
    return ox_size_mul((size_t)rows, per_row, &more) && ox_size_add(*total, more, total);
}

static bool is_scale_type(ox_dtype t)
{
    return t == OX_DTYPE_F32 || t == OX_DTYPE_F16 || t == OX_DTYPE_BF16;
}

ox_status ox_nbits_check(const ox_weight *w, ox_err *err)
{
    const ox_nbits *q = &w->nbits;
    if (q->bits != 2 && q->bits != 4 && q->bits != 8)
        return OX_FAIL(err, OX_UNSUPPORTED, "weight %.*s: %d bits; 2, 4 or 8 are supported",
                       OX_STR_ARGS(w->name), q->bits);
    if (q->block < 16 || (q->block & (q->block - 1)))
        return OX_FAIL(err, OX_BAD_FILE,
                       "weight %.*s: block size %d, expected a power of two of at least 16",
                       OX_STR_ARGS(w->name), q->block);
    if (!q->codes || !q->scales || !is_scale_type(q->scale_dtype))
        return OX_FAIL(err, OX_BAD_FILE, "weight %.*s: codes or float scales are missing",
                       OX_STR_ARGS(w->name));
    if (q->zeros && q->zeros_dtype != OX_DTYPE_U8 && !is_scale_type(q->zeros_dtype))
        return OX_FAIL(err, OX_UNSUPPORTED, "weight %.*s: zero points of type %s",
                       OX_STR_ARGS(w->name), ox_dtype_name(q->zeros_dtype));
    if (w->cols > INT64_MAX / 64 - q->block)
        return OX_FAIL(err, OX_BAD_FILE, "weight %.*s: too many columns", OX_STR_ARGS(w->name));
    const int64_t n = blocks_of(w);
    size_t need = 0, code_bytes;
    bool ok = ox_size_mul((size_t)n, (size_t)q->block / 8 * (size_t)q->bits, &code_bytes) &&
              add_bytes(&need, w->rows, code_bytes) &&
              add_bytes(&need, w->rows, (size_t)(n * ox_dtype_bits(q->scale_dtype) / 8));
    if (ok && q->zeros)
        ok = add_bytes(&need, w->rows,
                       (size_t)(q->zeros_dtype == OX_DTYPE_U8
                                    ? (n * q->bits + 7) / 8
                                    : n * ox_dtype_bits(q->zeros_dtype) / 8));
    if (!ok || w->bytes < need)
        return OX_FAIL(err, OX_BAD_FILE,
                       "weight %.*s: %zu bytes, but %lld x %lld at %d bits and block %d need %zu",
                       OX_STR_ARGS(w->name), w->bytes, (long long)w->rows, (long long)w->cols,
                       q->bits, q->block, need);
    for (int64_t k = 0; q->g_idx && k < w->cols; k++)
        if (q->g_idx[k] < 0 || q->g_idx[k] >= n)
            return OX_FAIL(err, OX_BAD_FILE,
                           "weight %.*s: group index %d of column %lld, expected "
                           "0 to %lld",
                           OX_STR_ARGS(w->name), q->g_idx[k], (long long)k, (long long)n - 1);
    return OX_OK;
}
