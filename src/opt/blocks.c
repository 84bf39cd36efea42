/* blocks.c - block-quantised constants as weights of format NBITS. MatMulNBits operands and tables
 * that already lie so are viewed; everything else (DequantizeLinear of 4 or 8 bit tensors in either
 * orientation, signed codes, packing across rows) is rearranged once into the arena. Nothing is
 * requantised: codes, scales and zero points keep their values. */
#include "opt/opt_internal.h"

enum { WALK_MAX = 16, ROW_BLOCK = 32 };

/* v without casts between float types and reshapes. */
static ox_value_id flat(const ox_opt *o, ox_value_id v)
{
    for (int i = 0; i < WALK_MAX && ox_value_is(v); i++) {
        v = ox_opt_bare(o, v);
        const ox_node *n = ox_opt_producer(o, v);
        if (!ox_node_is(n, "Reshape") && !ox_node_is(n, "Squeeze") && !ox_node_is(n, "Unsqueeze"))
            break;
        v = ox_node_in(n, 0);
    }
    return v;
}

static const ox_tensor *flat_constant(const ox_opt *o, ox_value_id v)
{
    const ox_tensor *t = ox_opt_constant(o, flat(o, v));
    return t && t->data ? t : NULL;
}

static ox_str flat_name(const ox_opt *o, ox_value_id v)
{
    return ox_graph_value(o->old, flat(o, v))->name;
}

static bool is_scale_type(ox_dtype t)
{
    return t == OX_DTYPE_F32 || t == OX_DTYPE_F16 || t == OX_DTYPE_BF16;
}

static bool is_block(int64_t block)
{
    return block >= 16 && block <= 1 << 20 && (block & (block - 1)) == 0;
}

static bool has_bytes(const ox_tensor *t, size_t want)
{
    size_t n;
    return t && ox_tensor_bytes(t, &n) && n == want;
}

/* Sizes of an NBITS weight; false on overflow. */
typedef struct sizes {
    size_t blocks, n_scales, codes, zero_row;
} sizes;

static bool sizes_of(int64_t rows, int64_t cols, int32_t bits, int64_t block, sizes *s)
{
    if (rows <= 0 || cols <= 0 || rows > INT32_MAX || cols > INT32_MAX) return false;
    s->blocks = ((size_t)cols + (size_t)block - 1) / (size_t)block;
    s->zero_row = (s->blocks * (size_t)bits + 7) / 8;
    return ox_size_mul(s->blocks, (size_t)rows, &s->n_scales) &&
           ox_size_mul(s->n_scales, (size_t)block * (size_t)bits / 8, &s->codes);
}

static ox_status share_nbits(ox_opt *o, ox_str name, int64_t rows, int64_t cols, const ox_nbits *b,
                             const sizes *s, const ox_weight **out)
{
    ox_weight w = {
        .name = name, .format = OX_FORMAT_NBITS, .rows = rows, .cols = cols, .nbits = *b};
    w.bytes = s->codes + s->n_scales * (size_t)(ox_dtype_bits(b->scale_dtype) / 8);
    if (b->zeros && b->zeros_dtype == OX_DTYPE_U8)
        w.bytes += s->zero_row * (size_t)rows;
    else if (b->zeros)
        w.bytes += s->n_scales * (size_t)(ox_dtype_bits(b->zeros_dtype) / 8);
    if (b->g_idx) w.bytes += (size_t)cols * sizeof(int32_t);
    return ox_opt_share(o, &w, out);
}

/* Zero points as NBITS has them: bytes of packed codes, or floats. */
static bool view_zeros(const ox_tensor *t, const sizes *s, int64_t rows, ox_nbits *b)
{
    b->zeros = t->data;
    b->zeros_dtype = t->dtype;
    if (t->dtype == OX_DTYPE_U8) return has_bytes(t, s->zero_row * (size_t)rows);
    size_t n;
    return is_scale_type(t->dtype) && ox_tensor_count(t, &n) && n == s->n_scales;
}

/* g_idx [cols], perhaps padded; every entry a block. */
static bool view_g_idx(const ox_tensor *t, const sizes *s, int64_t cols, ox_nbits *b)
{
    size_t n;
    if (t->dtype != OX_DTYPE_I32 || !ox_tensor_count(t, &n) || n < (size_t)cols) return false;
    const int32_t *g = t->data;
    for (int64_t i = 0; i < cols; i++)
        if (g[i] < 0 || (size_t)g[i] >= s->blocks) return false;
    b->g_idx = g;
    return true;
}

ox_status ox_opt_nbits(ox_opt *o, const ox_opt_blocks *q, const ox_weight **out)
{
    const ox_tensor *codes = flat_constant(o, q->codes), *scales = flat_constant(o, q->scales);
    ox_nbits b = {.bits = q->bits, .block = q->block};
    sizes s;
    size_t n;
    *out = NULL;
    if (q->bits != 2 && q->bits != 4 && q->bits != 8)
        return ox_opt_refuse(o, "weights of %d bits are not known", (int)q->bits);
    if (!is_block(q->block) || !sizes_of(q->rows, q->cols, q->bits, q->block, &s))
        return ox_opt_refuse(o, "K, N or block_size is out of range");
    if (!codes || !scales) return ox_opt_refuse(o, "the weight is not constant");
    if (codes->dtype != OX_DTYPE_U8 || !has_bytes(codes, s.codes))
        return ox_opt_refuse(o,
                             "the weight has not the size that K, N, bits and block_size ask for");
    if (!is_scale_type(scales->dtype) || !ox_tensor_count(scales, &n) || n != s.n_scales)
        return ox_opt_refuse(o, "the scales have not the size that K, N and block_size ask for");
    b.codes = codes->data;
    b.scales = scales->data;
    b.scale_dtype = scales->dtype;
    if (ox_value_is(q->zeros)) {
        const ox_tensor *t = flat_constant(o, q->zeros);
        if (!t || !view_zeros(t, &s, q->rows, &b))
            return ox_opt_refuse(o, "the zero points are not constant or of another size");
    }
    if (ox_value_is(q->g_idx)) {
        const ox_tensor *t = flat_constant(o, q->g_idx);
        if (!t || !view_g_idx(t, &s, q->cols, &b))
            return ox_opt_refuse(o, "g_idx is not a constant list of blocks");
    }
    const ox_str name = flat_name(o, q->codes);
    return share_nbits(o, name, q->rows, q->cols, &b, &s, out);
}

/* ---- rearranging */

/* A quantised matrix in any of the layouts that ONNX writes. Element (r, c) of the weight is
 * element c * rows + r (by_column) or r * cols + c of the codes; its scale and zero point are
 * element r * scale_row + c / group * scale_col of theirs. */
typedef struct quantised {
    ox_str name;
    int64_t rows, cols, group;
    bool by_column, is_signed;
    int32_t bits;
    const uint8_t *codes;
    const ox_tensor *scales, *zeros; /* zeros NULL = none; packed like the codes */
    size_t scale_row, scale_col;
    bool zeros_by_row; /* packed zero points, each row of the weight from a fresh byte */
    bool middle;       /* no zeros means the middle code, not 0 */
} quantised;

static uint32_t code_at(const uint8_t *p, size_t i, int32_t bits)
{
    if (bits == 8) return p[i];
    const size_t per = 8u / (size_t)bits;
    return (uint32_t)(p[i / per] >> (i % per * (size_t)bits)) & ((1u << bits) - 1u);
}

static void set_code(uint8_t *p, size_t i, int32_t bits, uint32_t code)
{
    if (bits == 8) {
        p[i] = (uint8_t)code;
        return;
    }
    const size_t per = 8u / (size_t)bits;
    p[i / per] = (uint8_t)(p[i / per] | code << (i % per * (size_t)bits));
}

static void rearrange_row(const quantised *q, int64_t r, const sizes *s, const ox_nbits *b,
                          uint8_t *codes, uint8_t *scales, uint8_t *zeros)
{
    const uint32_t flip = q->is_signed ? 1u << (q->bits - 1) : 0; /* two's complement to unsigned */
    const size_t item = (size_t)(ox_dtype_bits(b->scale_dtype) / 8);
    uint8_t *row = codes + (size_t)r * s->blocks * ((size_t)b->block * (size_t)q->bits / 8);
    for (int64_t c = 0; c < q->cols; c++) {
        const size_t i = q->by_column ? (size_t)(c * q->rows + r) : (size_t)(r * q->cols + c);
        set_code(row, (size_t)c, q->bits, code_at(q->codes, i, q->bits) ^ flip);
    }
    for (size_t k = 0; k < s->blocks; k++) {
        const size_t g = k * (size_t)b->block / (size_t)q->group;
        const size_t i = (size_t)r * q->scale_row + g * q->scale_col;
        memcpy(scales + ((size_t)r * s->blocks + k) * item,
               (const uint8_t *)q->scales->data + i * item, item);
        if (!zeros || !q->zeros) continue;
        const size_t per_row = (size_t)(q->cols + q->group - 1) / (size_t)q->group;
        const uint8_t *z = q->zeros->data;
        if (q->zeros_by_row) z += (size_t)r * ((per_row * (size_t)q->bits + 7) / 8);
        set_code(zeros + (size_t)r * s->zero_row, k, q->bits,
                 code_at(z, q->zeros_by_row ? g : i, q->bits) ^ flip);
    }
}

static ox_status rearrange(ox_opt *o, const quantised *q, const ox_weight **out)
{
    ox_nbits b = {.bits = q->bits, .scale_dtype = q->scales->dtype, .zeros_dtype = OX_DTYPE_U8};
    sizes s;
    uint8_t *codes, *scales, *zeros = NULL;
    b.block = q->group >= q->cols ? ROW_BLOCK : (int32_t)(q->group & -q->group);
    if (!is_block(b.block) || !sizes_of(q->rows, q->cols, q->bits, b.block, &s))
        return ox_opt_refuse(o, "its block size is not a multiple of 16");
    codes = ox_arena_take(o->arena, s.codes);
    scales = ox_arena_take_n(o->arena, s.n_scales, (size_t)(ox_dtype_bits(b.scale_dtype) / 8));
    if (q->zeros || (!q->is_signed && !q->middle))
        zeros = ox_arena_take_n(o->arena, (size_t)q->rows, s.zero_row);
    if (!codes || !scales || (!zeros && (q->zeros || (!q->is_signed && !q->middle))))
        return OX_FAIL(o->err, OX_NO_MEMORY, "no memory to rearrange weight \"%.*s\"",
                       OX_STR_ARGS(q->name));
    for (int64_t r = 0; r < q->rows; r++)
        rearrange_row(q, r, &s, &b, codes, scales, zeros);
    b.codes = codes;
    b.scales = scales;
    b.zeros = zeros;
    return share_nbits(o, q->name, q->rows, q->cols, &b, &s, out);
}

/* Layout of scales and zero points of a DequantizeLinear over a matrix [d0, d1]. */
static bool dequantize_layout(const ox_node *n, const ox_tensor *x, quantised *q)
{
    int64_t axis = ox_node_int(n, "axis", 1);
    const int64_t block = ox_node_int(n, "block_size", 0);
    const int64_t k_axis = q->by_column ? 0 : 1;
    size_t n_scales;
    if (axis < 0) axis += 2;
    if (axis < 0 || axis > 1 || block < 0 || !ox_tensor_count(q->scales, &n_scales)) return false;
    q->group = q->cols;
    if (block > 0) {
        const ox_tensor *t = q->scales;
        if (axis != k_axis || t->rank != 2 || t->dims[1 - axis] != x->dims[1 - axis] ||
            t->dims[axis] != (x->dims[axis] + block - 1) / block)
            return false;
        q->group = block;
        q->scale_row = q->by_column ? 1 : (size_t)t->dims[1];
        q->scale_col = q->by_column ? (size_t)t->dims[1] : 1;
        return true;
    }
    if (n_scales == 1) return true;
    q->scale_row = 1;
    return axis != k_axis && n_scales == (size_t)q->rows;
}

ox_status ox_opt_dequantized(ox_opt *o, const ox_node *n, bool by_column, const ox_weight **out)
{
    const ox_tensor *x = flat_constant(o, ox_node_in(n, 0));
    quantised q = {.by_column = by_column, .scales = flat_constant(o, ox_node_in(n, 1))};
    size_t n_scales, n_zeros;
    *out = NULL;
    if (!x || !q.scales || x->rank != 2) return OX_OK;
    q.bits = ox_dtype_bits(x->dtype);
    q.is_signed = x->dtype == OX_DTYPE_I8 || x->dtype == OX_DTYPE_I4 || x->dtype == OX_DTYPE_I2;
    if (!q.is_signed && x->dtype != OX_DTYPE_U8 && x->dtype != OX_DTYPE_U4 &&
        x->dtype != OX_DTYPE_U2)
        return OX_OK;
    q.name = flat_name(o, ox_node_in(n, 0));
    q.codes = x->data;
    q.rows = x->dims[by_column ? 1 : 0];
    q.cols = x->dims[by_column ? 0 : 1];
    if (!is_scale_type(q.scales->dtype) || !dequantize_layout(n, x, &q)) return OX_OK;
    if (ox_node_has(n, 2)) {
        q.zeros = flat_constant(o, ox_node_in(n, 2));
        if (!q.zeros || q.zeros->dtype != x->dtype || !ox_tensor_count(q.zeros, &n_zeros) ||
            !ox_tensor_count(q.scales, &n_scales) || n_zeros != n_scales)
            return OX_OK;
    }
    return rearrange(o, &q, out);
}

ox_status ox_opt_gathered_blocks(ox_opt *o, const ox_node *n, const ox_weight **out)
{
    const ox_tensor *x = flat_constant(o, ox_node_in(n, 0));
    const int64_t block = ox_node_int(n, "block_size", 128);
    quantised q = {.scales = flat_constant(o, ox_node_in(n, 2)), .group = block};
    int64_t width;
    size_t count, n_scales;
    sizes s;
    *out = NULL;
    if (!x || !q.scales) return ox_opt_refuse(o, "the table is not constant");
    q.bits = x->dtype == OX_DTYPE_U8 ? (int32_t)ox_node_int(n, "bits", 4) : ox_dtype_bits(x->dtype);
    q.is_signed = x->dtype == OX_DTYPE_I4;
    q.middle = x->dtype == OX_DTYPE_U8;
    if ((x->dtype != OX_DTYPE_U8 && x->dtype != OX_DTYPE_U4 && x->dtype != OX_DTYPE_I4) ||
        (q.bits != 2 && q.bits != 4 && q.bits != 8) || !is_block(block) ||
        !is_scale_type(q.scales->dtype) || !ox_tensor_count(q.scales, &n_scales) ||
        !ox_tensor_bytes(x, &count))
        return ox_opt_refuse(o, "the types or the block size of the table are not known");
    width = ox_node_int(n, "quantize_axis", 1);
    if (ox_node_int(n, "gather_axis", 0) != 0 || (width != 1 && width != -1))
        return ox_opt_refuse(o, "it gathers or quantises along another axis");
    q.rows = q.scales->rank == 2 ? q.scales->dims[0] : x->dims[0];
    if (q.rows <= 0 || count % (size_t)q.rows) return ox_opt_refuse(o, "the table is not a matrix");
    width = (int64_t)(count / (size_t)q.rows) * (8 / q.bits);
    q.cols = x->dtype != OX_DTYPE_U8 && x->rank == 2 ? x->dims[1] : width;
    if (!sizes_of(q.rows, q.cols, q.bits, block, &s) || s.n_scales != n_scales)
        return ox_opt_refuse(o, "the scales of the table have another size");
    if (x->dtype == OX_DTYPE_U8 && q.cols % block == 0) { /* lies as MatMulNBits has it */
        const ox_opt_blocks b = {.codes = ox_node_in(n, 0),
                                 .scales = ox_node_in(n, 2),
                                 .zeros = ox_node_in(n, 3),
                                 .g_idx = OX_NO_VALUE,
                                 .rows = q.rows,
                                 .cols = q.cols,
                                 .bits = q.bits,
                                 .block = (int32_t)block};
        return ox_opt_nbits(o, &b, out);
    }
    q.name = flat_name(o, ox_node_in(n, 0));
    q.codes = x->data;
    q.scale_row = s.blocks;
    q.scale_col = 1;
    q.zeros_by_row = q.middle;
    if (ox_node_has(n, 3)) {
        q.zeros = flat_constant(o, ox_node_in(n, 3));
        if (!q.zeros || q.zeros->dtype != x->dtype ||
            (q.middle ? !has_bytes(q.zeros, s.zero_row * (size_t)q.rows)
                      : !ox_tensor_count(q.zeros, &count) || count != n_scales))
            return ox_opt_refuse(o, "the zero points of the table have another size");
    }
    return rearrange(o, &q, out);
}
