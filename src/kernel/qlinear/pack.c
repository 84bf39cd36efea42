/* pack.c - from weights of any format to the layout of pack.h, a few rows at a time. */
#include "kernel/qlinear/pack.h"

#include "base/mem.h"
#include "tensor/half.h"

enum { COLS = OX_QPACK_COLS };

static bool same_form(ox_code_layout a, ox_code_layout b)
{
    return a.bits == b.bits && a.block == b.block && a.zero == b.zero;
}

static size_t record_bytes(ox_code_layout l)
{
    const size_t wide = l.scale_f16 ? 2 : 4;
    size_t n = (size_t)(COLS * l.block * l.bits / 8) + COLS * wide;
    if (l.zero == OX_ZERO_MIN) n += COLS * wide;
    if (l.zero == OX_ZERO_CODE) n += COLS;
    return n;
}

ox_status ox_qpack_shape(ox_qpack *p, const ox_weight *const *weights, size_t n_weights, bool pairs,
                         ox_err *err)
{
    *p = (ox_qpack){.pairs = pairs};
    for (size_t i = 0; i < n_weights; i++) {
        const ox_weight *w = weights[i];
        const ox_code_layout l = ox_weight_code_layout(w);
        if (!l.bits)
            return OX_FAIL(err, OX_UNSUPPORTED, "weight %.*s (%s) has no integer codes to pack",
                           OX_STR_ARGS(w->name), ox_format_name(w->format));
        if (!i) {
            p->code = l;
            p->k = (size_t)w->cols;
        }
        if (!same_form(p->code, l) || p->k != (size_t)w->cols)
            return OX_FAIL(err, OX_UNSUPPORTED,
                           "weights %.*s and %.*s differ in width or format: pack them apart",
                           OX_STR_ARGS(weights[0]->name), OX_STR_ARGS(w->name));
        p->code.scale_f16 &= l.scale_f16;
        if (!ox_size_add(p->n, (size_t)w->rows, &p->n))
            return OX_FAIL(err, OX_LIMIT, "weight %.*s: too many rows", OX_STR_ARGS(w->name));
    }
    if (!p->n || !p->k || (pairs && p->n % 2))
        return OX_FAIL(err, OX_UNSUPPORTED, "%zu x %zu weights cannot be packed%s", p->n, p->k,
                       pairs ? " as pairs" : "");
    p->n_out = pairs ? p->n / 2 : p->n;
    p->units = (p->n_out - 1) / COLS + 1;
    p->blocks = (p->k - 1) / (size_t)p->code.block + 1;
    p->record = record_bytes(p->code);
    if (!ox_size_mul(p->blocks, p->record, &p->tile) ||
        !ox_size_mul(p->tile, pairs ? 2 * p->units : p->units, &p->bytes))
        return OX_FAIL(err, OX_LIMIT, "%zu x %zu weights are too large to pack", p->n, p->k);
    return OX_OK;
}

size_t ox_qpack_row(const ox_qpack *p, size_t t, size_t c)
{
    const size_t col = (p->pairs ? t / 2 : t) * COLS + c;
    if (col >= p->n_out) return SIZE_MAX;
    return p->pairs && t % 2 ? p->n_out + col : col;
}

/* Rows of one tile, as read. Padding columns stay zero: code 0 with scale 0. */
typedef struct tile_rows {
    size_t codes_ld, blocks;
    uint8_t *codes; /* [32][codes_ld] */
    float *scales;  /* [32][blocks] */
    float *mins;
    uint8_t *zeros;
} tile_rows;

static void read_row(const ox_weight *const *weights, size_t n_weights, size_t row, size_t c,
                     tile_rows *t)
{
    size_t i = 0;
    while (i + 1 < n_weights && row >= (size_t)weights[i]->rows)
        row -= (size_t)weights[i++]->rows;
    ox_weight_row_codes(weights[i], (int64_t)row, t->codes + c * t->codes_ld,
                        t->scales + c * t->blocks, t->zeros + c * t->blocks,
                        t->mins + c * t->blocks);
}

static void clear_row(size_t c, tile_rows *t)
{
    memset(t->codes + c * t->codes_ld, 0, t->codes_ld);
    memset(t->scales + c * t->blocks, 0, t->blocks * sizeof(float));
    memset(t->mins + c * t->blocks, 0, t->blocks * sizeof(float));
    memset(t->zeros + c * t->blocks, 0, t->blocks);
}

/* 8 codes below 16 to 4 bytes, first code lowest. */
static uint32_t nibbles(const uint8_t *codes)
{
    uint64_t x;
    memcpy(&x, codes, 8);
    x = (x | x >> 4) & 0x00ff00ff00ff00ffu;
    x = (x | x >> 8) & 0x0000ffff0000ffffu;
    return (uint32_t)(x | x >> 16);
}

static uint8_t *write_floats(uint8_t *out, const float *v, size_t stride, bool f16)
{
    for (size_t c = 0; c < COLS; c++) {
        const float f = v[c * stride];
        const uint16_t h = ox_f32_to_f16(f);
        if (f16)
            memcpy(out + 2 * c, &h, 2);
        else
            memcpy(out + 4 * c, &f, 4);
    }
    return out + COLS * (f16 ? 2 : 4);
}

static void write_record(const ox_qpack *p, const tile_rows *t, size_t b, uint8_t *out)
{
    const size_t block = (size_t)p->code.block, per = p->code.bits == 4 ? 8 : 4;
    for (size_t g = 0; g < COLS; g += 16)
        for (size_t k = 0; k < block; k += per)
            for (size_t c = 0; c < 16; c++, out += 4) {
                const uint8_t *codes = t->codes + (g + c) * t->codes_ld + b * block + k;
                const uint32_t word = p->code.bits == 4 ? nibbles(codes) : 0;
                memcpy(out, p->code.bits == 4 ? (const void *)&word : codes, 4);
            }
    out = write_floats(out, t->scales + b, t->blocks, p->code.scale_f16);
    if (p->code.zero == OX_ZERO_MIN) write_floats(out, t->mins + b, t->blocks, p->code.scale_f16);
    if (p->code.zero == OX_ZERO_CODE)
        for (size_t c = 0; c < COLS; c++)
            out[c] = t->zeros[c * t->blocks + b];
}

static ox_status open_rows(const ox_qpack *p, tile_rows *t, void **memory, ox_err *err)
{
    const size_t kpad = p->blocks * (size_t)p->code.block;
    size_t bytes; /* a row: codes, scales, mins, zeros */
    *t = (tile_rows){.codes_ld = kpad, .blocks = p->blocks};
    if (!ox_size_mul(COLS, kpad + p->blocks * 9, &bytes) || !(*memory = ox_alloc(bytes)))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for 32 rows of %zu weights", p->k);
    t->scales = *memory;
    t->mins = t->scales + COLS * p->blocks;
    t->codes = (uint8_t *)(t->mins + COLS * p->blocks);
    t->zeros = t->codes + COLS * kpad;
    return OX_OK;
}

ox_status ox_qpack_fill(const ox_qpack *p, const ox_weight *const *weights, size_t n_weights,
                        size_t begin, size_t end, ox_err *err)
{
    void *memory = NULL;
    tile_rows t;
    OX_TRY(open_rows(p, &t, &memory, err));
    const size_t per_unit = p->pairs ? 2 : 1;
    for (size_t tile = begin * per_unit; tile < end * per_unit; tile++) {
        for (size_t c = 0; c < COLS; c++) {
            const size_t row = ox_qpack_row(p, tile, c);
            if (row == SIZE_MAX)
                clear_row(c, &t);
            else
                read_row(weights, n_weights, row, c, &t);
        }
        for (size_t b = 0; b < p->blocks; b++)
            write_record(p, &t, b, p->data + tile * p->tile + b * p->record);
    }
    ox_free(memory);
    return OX_OK;
}
