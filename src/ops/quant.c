/* quant.c - QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and the block-quantised
 * operators of decoder graphs (MatMulNBits, GatherBlockQuantized). */
#include "ops/op_internal.h"

#include <math.h>

static double rounded(ox_dtype t, double x)
{
    char cell[16] = {0};
    ox_lane l = {.f = x};
    ox_lane_store(t, cell, 0, 1, &l);
    ox_lane_load(t, cell, NULL, 0, 1, &l);
    return l.f;
}

/* Which scale belongs to which element: one, one per index of an axis, or one per block of it. */
typedef struct grid {
    size_t n, dim, inner, block, blocks; /* n 1 = one for all; block 0 = per axis */
} grid;

static ox_status grid_of(ox_op_ctx *c, const ox_tensor *x, const ox_tensor *scale, grid *g)
{
    const int64_t block = ox_node_int(c->node, "block_size", 0);
    int32_t axis;
    *g = (grid){.n = ox_op_size(scale)};
    if (block < 0) return OP_FAIL(c, "has a negative block size");
    if (g->n == 1 && !block) return OX_OK;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", 1), x->rank, &axis));
    g->dim = (size_t)x->dims[axis];
    g->inner = ox_op_product(x->dims, axis + 1, x->rank);
    if (!block) {
        if (scale->rank != 1 || scale->dims[0] != x->dims[axis])
            return OP_FAIL(c, "scales do not fit dimension %d", axis);
        return OX_OK;
    }
    g->block = (size_t)block;
    g->blocks = (g->dim + g->block - 1) / g->block;
    bool fits = scale->rank == x->rank;
    for (int32_t i = 0; fits && i < x->rank; i++)
        fits = scale->dims[i] == (i == axis ? (int64_t)g->blocks : x->dims[i]);
    return fits ? OX_OK : OP_FAIL(c, "scales do not fit the blocks");
}

static size_t scale_index(const grid *g, size_t i)
{
    if (g->n == 1 && !g->block) return 0;
    if (!g->block) return i / g->inner % g->dim;
    const size_t outer = i / g->inner / g->dim, at = i / g->inner % g->dim;
    return (outer * g->blocks + at / g->block) * g->inner + i % g->inner;
}

static bool int_range(ox_dtype t, double *lo, double *hi)
{
    const int bits = ox_dtype_bits(t);
    const bool is_signed = t == OX_DTYPE_I8 || t == OX_DTYPE_I16 || t == OX_DTYPE_I4 ||
                           t == OX_DTYPE_I2 || t == OX_DTYPE_I32;
    if (ox_lane_class_of(t) != OX_LANE_I) return false;
    *lo = is_signed ? -ldexp(1, bits - 1) : 0;
    *hi = ldexp(1, is_signed ? bits - 1 : bits) - 1;
    return true;
}

ox_status ox_op_eval_quantize(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *scale = ox_op_in(c, 1), *zero = ox_op_in(c, 2);
    const int64_t attr = ox_node_int(c->node, "output_dtype", 0),
                  precision = ox_node_int(c->node, "precision", 0);
    const bool saturate = ox_node_int(c->node, "saturate", 1) != 0;
    double *v, *s, *z = NULL, lo = 0, hi = 0;
    ox_tensor *y;
    grid g;
    const ox_dtype t = zero                                ? zero->dtype
                       : attr > 0 && attr < OX_DTYPE_COUNT ? (ox_dtype)attr
                                                           : OX_DTYPE_U8;
    ox_dtype calc = ox_dtype_is_float(scale->dtype) ? scale->dtype : OX_DTYPE_F32;
    if (precision > 0 && ox_dtype_is_float((ox_dtype)precision)) calc = (ox_dtype)precision;
    OX_TRY(grid_of(c, x, scale, &g));
    if (zero && ox_op_size(zero) != g.n) return OP_FAIL(c, "zero points do not fit the scales");
    if (ox_lane_class_of(t) == OX_LANE_NONE || t == OX_DTYPE_BOOL)
        return OP_FAIL(c, "cannot quantize to %s", ox_dtype_name(t));
    OX_TRY(ox_op_out(c, 0, t, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, scale, &s));
    if (zero) OX_TRY(ox_op_doubles(c, zero, &z));
    const bool ints = int_range(t, &lo, &hi);
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        const size_t k = scale_index(&g, i);
        const double q = rounded(calc, v[i] / s[k]);
        ox_lane l;
        if (ints) {
            const double r = nearbyint(q) + (z ? z[k] : 0);
            l.i = isnan(r) ? 0 : (int64_t)(r < lo ? lo : r > hi ? hi : r);
        } else {
            l.f = q + (z ? z[k] : 0);
        }
        if (ints || ox_dtype_bits(t) != 8)
            ox_lane_store(t, y->data, i, 1, &l);
        else
            ((uint8_t *)y->data)[i] = ox_small_float_encode(t, l.f, saturate);
    }
    return OX_OK;
}

ox_status ox_op_eval_dequantize(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *scale = ox_op_in(c, 1), *zero = ox_op_in(c, 2);
    const int64_t attr = ox_node_int(c->node, "output_dtype", 0);
    const ox_dtype t = attr > 0 && attr < OX_DTYPE_COUNT ? (ox_dtype)attr : scale->dtype;
    double *v, *s, *z = NULL;
    ox_tensor *y;
    grid g;
    if (!ox_dtype_is_float(t)) return OP_FAIL(c, "cannot make %s", ox_dtype_name(t));
    OX_TRY(grid_of(c, x, scale, &g));
    if (zero && ox_op_size(zero) != g.n) return OP_FAIL(c, "zero points do not fit the scales");
    OX_TRY(ox_op_out(c, 0, t, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, scale, &s));
    if (zero) OX_TRY(ox_op_doubles(c, zero, &z));
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        const size_t k = scale_index(&g, i);
        v[i] = (v[i] - (z ? z[k] : 0)) * s[k];
    }
    ox_lane_store(t, y->data, 0, ox_op_size(x), (const ox_lane *)v);
    return OX_OK;
}

ox_status ox_op_eval_dynamic_quantize(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    double *v;
    const size_t n = ox_op_size(x);
    ox_tensor *y, *scale, *zero;
    float lo = 0, hi = 0;
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_U8, x->rank, x->dims, &y));
    OX_TRY(ox_op_out(c, 1, OX_DTYPE_F32, 0, NULL, &scale));
    OX_TRY(ox_op_out(c, 2, OX_DTYPE_U8, 0, NULL, &zero));
    if (x->dtype != OX_DTYPE_F32) return OP_FAIL(c, "needs float32");
    OX_TRY(ox_op_doubles(c, x, &v));
    for (size_t i = 0; i < n; i++) {
        const float e = (float)v[i];
        lo = e < lo ? e : lo;
        hi = e > hi ? e : hi;
    }
    float s = (hi - lo) / 255;
    if (!(s > 0)) s = 1;
    float z = nearbyintf(0 - lo / s);
    z = z < 0 ? 0 : z > 255 ? 255 : z;
    *(float *)scale->data = s;
    *(uint8_t *)zero->data = (uint8_t)z;
    for (size_t i = 0; i < n; i++) {
        const float q = nearbyintf((float)v[i] / s) + z;
        ((uint8_t *)y->data)[i] = !(q > 0) ? 0 : q > 255 ? 255 : (uint8_t)q;
    }
    return OX_OK;
}

/* ---- block-quantised weights ---- */

/* Code i of width bits, low bits first. */
static unsigned code_at(const uint8_t *p, size_t i, size_t bits)
{
    const size_t bit = i * bits;
    return p[bit / 8] >> bit % 8 & ((1u << bits) - 1);
}

typedef struct nbits {
    size_t rows, cols, bits, block, blocks,
        zero_row; /* zero_row: bytes of packed zero points a row */
    const uint8_t *codes;
    double *scale, *zero; /* zero NULL = packed or default */
    const uint8_t *packed;
    const int64_t *group;
} nbits;

static double nbits_weight(const nbits *w, size_t row, size_t col)
{
    size_t b = col / w->block;
    const uint8_t *codes = w->codes + (row * w->blocks + b) * (w->block * w->bits / 8);
    const unsigned q = code_at(codes, col % w->block, w->bits);
    if (w->group) b = (size_t)w->group[col];
    const size_t k = row * w->blocks + b;
    double z = (double)(1u << (w->bits - 1));
    if (w->zero) z = w->zero[k];
    if (w->packed) z = (double)code_at(w->packed + row * w->zero_row, b, w->bits);
    return ((double)q - z) * w->scale[k];
}

static ox_status nbits_open(ox_op_ctx *c, nbits *w)
{
    int64_t *group;
    const ox_tensor *b = ox_op_in(c, 1), *scale = ox_op_in(c, 2), *zero = ox_op_in(c, 3),
                    *g = ox_op_in(c, 4);
    const int64_t k = ox_node_int(c->node, "K", 0), n = ox_node_int(c->node, "N", 0);
    const int64_t bits = ox_node_int(c->node, "bits", 4),
                  block = ox_node_int(c->node, "block_size", 0);
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || (bits != 2 && bits != 4 && bits != 8) ||
        block < 16 || block > 1 << 20 || (block & (block - 1)))
        return OP_FAIL(c, "has K %lld, N %lld, bits %lld, block_size %lld", (long long)k,
                       (long long)n, (long long)bits, (long long)block);
    if (ox_node_int(c->node, "weight_prepacked", 0))
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "its weights are prepacked for one device");
    *w =
        (nbits){.rows = (size_t)n, .cols = (size_t)k, .bits = (size_t)bits, .block = (size_t)block};
    w->blocks = (w->cols + w->block - 1) / w->block;
    w->zero_row = (w->blocks * w->bits + 7) / 8;
    if (b->dtype != OX_DTYPE_U8 ||
        ox_op_size(b) != w->rows * w->blocks * (w->block * w->bits / 8) ||
        ox_op_size(scale) != w->rows * w->blocks)
        return OP_FAIL(c, "weights and scales do not fit K %zu, N %zu", w->cols, w->rows);
    w->codes = b->data;
    OX_TRY(ox_op_doubles(c, scale, &w->scale));
    if (zero && zero->dtype == OX_DTYPE_U8) {
        if (ox_op_size(zero) != w->rows * w->zero_row)
            return OP_FAIL(c, "packed zero points do not fit");
        w->packed = zero->data;
    } else if (zero) {
        if (!ox_dtype_is_float(zero->dtype) || ox_op_size(zero) != w->rows * w->blocks)
            return OP_FAIL(c, "zero points do not fit");
        OX_TRY(ox_op_doubles(c, zero, &w->zero));
    }
    if (!g) return OX_OK;
    if (g->dtype != OX_DTYPE_I32 || ox_op_size(g) < w->cols)
        return OP_FAIL(c, "g_idx does not fit");
    OX_TRY(ox_op_ints(c, g, &group));
    w->group = group;
    for (size_t i = 0; i < w->cols; i++)
        if (w->group[i] < 0 || w->group[i] >= (int64_t)w->blocks)
            return OP_FAIL(c, "g_idx names block %lld", (long long)w->group[i]);
    return OX_OK;
}

ox_status ox_op_eval_matmul_nbits(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *bias = ox_op_in(c, 5);
    int64_t dims[OX_RANK_MAX];
    double *v, *add = NULL, *row;
    ox_tensor *y;
    nbits w;
    void *q, *p;
    OX_TRY(nbits_open(c, &w));
    if (x->rank < 1 || (size_t)x->dims[x->rank - 1] != w.cols)
        return OP_FAIL(c, "its input has no %zu columns", w.cols);
    if (bias && ox_op_size(bias) != w.rows) return OP_FAIL(c, "the bias does not fit");
    memcpy(dims, x->dims, sizeof(dims));
    dims[x->rank - 1] = (int64_t)w.rows;
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &add));
    OX_TRY(ox_op_temp(c, w.cols, sizeof(double), &q));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    row = q;
    double *out = p;
    const size_t m = ox_op_size(x) / w.cols;
    for (size_t r = 0; r < w.rows; r++) {
        for (size_t k = 0; k < w.cols; k++)
            row[k] = nbits_weight(&w, r, k);
        for (size_t i = 0; i < m; i++) {
            double sum = add ? add[r] : 0;
            for (size_t k = 0; k < w.cols; k++)
                sum += v[i * w.cols + k] * row[k];
            out[i * w.rows + r] = sum;
        }
        if (!(r & 255)) OX_TRY(ox_op_cancelled(c));
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

/* Gather of rows of a quantised table. Packed uint8 data holds 8/bits codes a byte along the last
 * axis; every other type one element each. */
ox_status ox_op_eval_gather_block_quantized(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *ix = ox_op_in(c, 1), *scale = ox_op_in(c, 2),
                    *zero = ox_op_in(c, 3);
    const int64_t bits =
        x->dtype == OX_DTYPE_U8 ? ox_node_int(c->node, "bits", 4) : ox_dtype_bits(x->dtype);
    const int64_t block = ox_node_int(c->node, "block_size", 128);
    int64_t dims[2 * OX_RANK_MAX], *index, whole[OX_RANK_MAX];
    int32_t ga, qa, rank = 0;
    double *s, *z = NULL, *v = NULL;
    ox_tensor *y;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "gather_axis", 0), x->rank, &ga));
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "quantize_axis", 1), x->rank, &qa));
    if (bits != 2 && bits != 4 && bits != 8) return OP_FAIL(c, "has %lld bits", (long long)bits);
    if (block < 0 || block > 1 << 24 || (block == 0 && ox_lane_class_of(x->dtype) != OX_LANE_F))
        return OP_FAIL(c, "has block size %lld", (long long)block);
    const bool packed = x->dtype == OX_DTYPE_U8 && bits < 8;
    const int64_t per = packed ? 8 / bits : 1;
    if (packed && (ga != 0 || qa != x->rank - 1 || ga == qa))
        return OP_FAIL(c, "packed data needs gather_axis 0 and the last quantize_axis");
    memcpy(whole, x->dims, sizeof(whole));
    whole[x->rank - 1] *= per;
    const int64_t size = block       ? block
                         : whole[qa] ? whole[qa]
                                     : 1,
                  blocks = (whole[qa] + size - 1) / size;
    int64_t sdims[OX_RANK_MAX] = {0};
    size_t s_count = 1;
    for (int32_t i = 0; i < x->rank; i++) {
        sdims[i] = i == qa ? blocks : whole[i];
        s_count *= (size_t)sdims[i];
    }
    if (ox_op_size(scale) != s_count) return OP_FAIL(c, "scales do not fit the data");
    const size_t z_row = (size_t)(blocks * bits + 7) / 8;
    if (zero &&
        ox_op_size(zero) != (packed ? s_count / (size_t)(blocks ? blocks : 1) * z_row : s_count))
        return OP_FAIL(c, "zero points do not fit the scales");
    for (int32_t i = 0; i < ga; i++)
        dims[rank++] = whole[i];
    for (int32_t i = 0; i < ix->rank; i++)
        dims[rank++] = ix->dims[i];
    for (int32_t i = ga + 1; i < x->rank; i++)
        dims[rank++] = whole[i];
    OX_TRY(ox_op_out(c, 0, scale->dtype, rank, dims, &y));
    OX_TRY(ox_op_ints(c, ix, &index));
    OX_TRY(ox_op_doubles(c, scale, &s));
    if (!packed) OX_TRY(ox_op_doubles(c, x, &v));
    if (zero && !packed) OX_TRY(ox_op_doubles(c, zero, &z));
    const double middle = x->dtype == OX_DTYPE_U8 ? ldexp(1, (int)bits - 1) : 0;
    const size_t inner = ox_op_product(whole, ga + 1, x->rank), n_ix = ox_op_size(ix);
    size_t strides[OX_RANK_MAX], s_strides[OX_RANK_MAX];
    ox_op_strides_of(whole, x->rank, strides);
    ox_op_strides_of(sdims, x->rank, s_strides);
    for (size_t o = 0, n = ox_op_size(y); o < n; o++) {
        const size_t which = o / inner % n_ix, outer = o / inner / n_ix;
        const int64_t pick = index[which] < 0 ? index[which] + whole[ga] : index[which];
        ox_lane out = {.f = 0};
        if (pick >= 0 && pick < whole[ga]) {
            const size_t i = (outer * (size_t)whole[ga] + (size_t)pick) * inner + o % inner;
            size_t k = 0, block_at = 0;
            for (int32_t d = 0; d < x->rank; d++) {
                size_t at = i / strides[d] % (size_t)whole[d];
                if (d == qa) at = block_at = at / (size_t)size;
                k += at * s_strides[d];
            }
            double q = v ? v[i] : (double)code_at(x->data, i, (size_t)bits), zp = zero ? 0 : middle;
            if (z) zp = z[k];
            if (zero && packed)
                zp = (double)code_at((const uint8_t *)zero->data + k / (size_t)blocks * z_row,
                                     block_at, (size_t)bits);
            out.f = (q - zp) * s[k];
        }
        ox_lane_store(y->dtype, y->data, o, 1, &out);
    }
    return OX_OK;
}
