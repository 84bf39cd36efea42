/* infer_nn.c - rules of the normalising, quantising, attending and convolving operators. */
#include "ops/infer_internal.h"

/* Output 0 like the input in the type of the scale; statistics with ones from the axis on. */
ox_status ox_op_infer_layer_norm(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *scale = ox_infer_in(c, 1);
    const bool rms = ox_str_is(c->node->op_type, "RMSNormalization");
    int64_t dims[OX_RANK_MAX];
    int32_t axis;
    if (!x) return OX_OK;
    ox_infer_like(c, 0, x, rms && scale && scale->dtype ? scale->dtype : x->dtype);
    if (x->rank < 0 || !ox_infer_axis(ox_node_int(c->node, "axis", -1), x->rank, &axis))
        return OX_OK;
    const int64_t stat = ox_node_int(c->node, "stash_type", OX_DTYPE_F32);
    if (stat <= 0 || stat >= OX_DTYPE_COUNT) return OX_OK;
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : 1;
    ox_infer_set(c, 1, (ox_dtype)stat, x->rank, dims);
    ox_infer_set(c, 2, (ox_dtype)stat, x->rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_skip_layer_norm(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    int64_t dims[OX_RANK_MAX];
    if (!x) return OX_OK;
    ox_infer_like(c, 0, x, x->dtype);
    ox_infer_like(c, 3, x, x->dtype);
    if (x->rank < 1) return OX_OK;
    memcpy(dims, x->dims, sizeof(dims));
    dims[x->rank - 1] = 1;
    ox_infer_set(c, 1, OX_DTYPE_F32, x->rank, dims);
    ox_infer_set(c, 2, OX_DTYPE_F32, x->rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_quantize(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *zero = ox_infer_in(c, 2);
    const int64_t t = ox_node_int(c->node, "output_dtype", 0);
    if (!x) return OX_OK;
    const ox_dtype out = zero && zero->dtype           ? zero->dtype
                         : t > 0 && t < OX_DTYPE_COUNT ? (ox_dtype)t
                                                       : OX_DTYPE_U8;
    ox_infer_like(c, 0, x, out);
    return OX_OK;
}

ox_status ox_op_infer_dequantize(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *scale = ox_infer_in(c, 1);
    const int64_t t = ox_node_int(c->node, "output_dtype", 0);
    if (x)
        ox_infer_like(c, 0, x,
                      t > 0 && t < OX_DTYPE_COUNT ? (ox_dtype)t
                      : scale                     ? scale->dtype
                                                  : OX_DTYPE_NONE);
    return OX_OK;
}

ox_status ox_op_infer_dynamic_quantize(ox_infer_ctx *c)
{
    ox_infer_like(c, 0, ox_infer_in(c, 0), OX_DTYPE_U8);
    ox_infer_set(c, 1, OX_DTYPE_F32, 0, NULL);
    ox_infer_set(c, 2, OX_DTYPE_U8, 0, NULL);
    return OX_OK;
}

/* A [.., K] with N outputs for each row. */
ox_status ox_op_infer_matmul_nbits(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    int64_t dims[OX_RANK_MAX];
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 1) return OX_OK;
    memcpy(dims, x->dims, sizeof(dims));
    dims[x->rank - 1] = ox_node_int(c->node, "N", OX_DIM_UNKNOWN);
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_gather_block_quantized(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *ix = ox_infer_in(c, 1), *scale = ox_infer_in(c, 2);
    const int64_t bits = ox_node_int(c->node, "bits", 4);
    int64_t dims[2 * OX_RANK_MAX];
    int32_t rank = 0, axis;
    if (!x || !ix || !scale) return OX_OK;
    ox_infer_set(c, 0, scale->dtype, -1, NULL);
    if (x->rank < 1 || ix->rank < 0 ||
        !ox_infer_axis(ox_node_int(c->node, "gather_axis", 0), x->rank, &axis))
        return OX_OK;
    for (int32_t i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int32_t i = 0; i < ix->rank; i++)
        dims[rank++] = ix->dims[i];
    for (int32_t i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    if (x->dtype == OX_DTYPE_U8 && bits > 0 && bits < 8 && rank)
        dims[rank - 1] = ox_infer_dim(c->g, dims[rank - 1], 8 / bits, '*');
    ox_infer_set(c, 0, scale->dtype, rank, dims);
    return OX_OK;
}

/* ---- attention ---- */

static void set4(ox_infer_ctx *c, size_t i, ox_dtype t, const int64_t *dims)
{
    ox_infer_set(c, i, t, 4, dims);
}

static int64_t at(const ox_op_info *x, int32_t k)
{
    return x && k < x->rank ? x->dims[k] : OX_DIM_UNKNOWN;
}

/* Attention of the standard domain: 3-D [B, S, N*H] or 4-D [B, N, S, H]. */
ox_status ox_op_infer_attention(ox_infer_ctx *c)
{
    const ox_op_info *q = ox_infer_in(c, 0), *k = ox_infer_in(c, 1), *v = ox_infer_in(c, 2);
    const ox_op_info *past = ox_infer_in(c, 4);
    if (!q || !k || !v) return OX_OK;
    ox_infer_set(c, 0, q->dtype, -1, NULL);
    if (q->rank < 3 || k->rank != q->rank || v->rank != q->rank) return OX_OK;
    const bool flat = q->rank == 3;
    const int64_t nq = flat ? ox_node_int(c->node, "q_num_heads", OX_DIM_UNKNOWN) : at(q, 1);
    const int64_t nkv = flat ? ox_node_int(c->node, "kv_num_heads", OX_DIM_UNKNOWN) : at(k, 1);
    const int64_t hk = flat ? ox_infer_dim(c->g, at(k, 2), nkv, '/') : at(k, 3);
    const int64_t hv = flat ? ox_infer_dim(c->g, at(v, 2), nkv, '/') : at(v, 3);
    const int64_t sq = flat ? at(q, 1) : at(q, 2), sk = flat ? at(k, 1) : at(k, 2);
    const int64_t total = past ? ox_infer_dim(c->g, at(past, 2), sk, '+') : sk;
    const int64_t y3[3] = {at(q, 0), sq, ox_infer_dim(c->g, nq, hv, '*')};
    const int64_t y4[4] = {at(q, 0), nq, sq, hv};
    ox_infer_set(c, 0, q->dtype, q->rank, flat ? y3 : y4);
    const int64_t pk[4] = {at(q, 0), nkv, total, hk}, pv[4] = {at(q, 0), nkv, total, hv};
    const int64_t qk[4] = {at(q, 0), nq, sq, total};
    set4(c, 1, k->dtype, pk);
    set4(c, 2, v->dtype, pv);
    set4(c, 3, q->dtype, qk);
    return OX_OK;
}

/* GroupQueryAttention: [B, S, Nq*H], or packed q, k, v. */
ox_status ox_op_infer_group_query_attention(ox_infer_ctx *c)
{
    const ox_op_info *q = ox_infer_in(c, 0), *k = ox_infer_in(c, 1), *past = ox_infer_in(c, 3);
    const ox_op_info *total = ox_infer_in(c, 6);
    const int64_t nq = ox_node_int(c->node, "num_heads", 0),
                  nkv = ox_node_int(c->node, "kv_num_heads", 0);
    ox_op_elem e[OX_OP_ELEMS];
    if (!q || nq <= 0 || nkv <= 0) return OX_OK;
    ox_infer_set(c, 0, q->dtype, -1, NULL);
    if (q->rank != 3) return OX_OK;
    const int64_t h = ox_infer_dim(c->g, at(q, 2), k ? nq : nq + 2 * nkv, '/');
    const int64_t y[3] = {at(q, 0), at(q, 1), ox_infer_dim(c->g, h, nq, '*')};
    ox_infer_set(c, 0, q->dtype, 3, y);
    int64_t len = OX_DIM_UNKNOWN;
    if (ox_infer_elems(total, e) == 1 && (!past || at(past, 2) == 0)) len = ox_dim_of_elem(e[0]);
    const int64_t present[4] = {at(q, 0), nkv, len, past ? at(past, 3) : h};
    set4(c, 1, past ? past->dtype : q->dtype, present);
    set4(c, 2, past ? past->dtype : q->dtype, present);
    return OX_OK;
}

ox_status ox_op_infer_multi_head_attention(ox_infer_ctx *c)
{
    const ox_op_info *q = ox_infer_in(c, 0), *v = ox_infer_in(c, 2), *past = ox_infer_in(c, 6);
    const int64_t n = ox_node_int(c->node, "num_heads", 0);
    if (!q || n <= 0) return OX_OK;
    ox_infer_set(c, 0, q->dtype, -1, NULL);
    if (q->rank != 3 || !v || v->rank != 3) return OX_OK;
    const int64_t y[3] = {at(q, 0), at(q, 1), at(v, 2)};
    ox_infer_set(c, 0, q->dtype, 3, y);
    const int64_t total = past ? ox_infer_dim(c->g, at(past, 2), at(v, 1), '+') : at(v, 1);
    const int64_t pk[4] = {at(q, 0), n, total, ox_infer_dim(c->g, at(q, 2), n, '/')};
    const int64_t pv[4] = {at(q, 0), n, total, ox_infer_dim(c->g, at(v, 2), n, '/')};
    set4(c, 1, q->dtype, pk);
    set4(c, 2, q->dtype, pv);
    return OX_OK;
}

/* ---- recurrent states ---- */

ox_status ox_op_infer_linear_attention(ox_infer_ctx *c)
{
    const ox_op_info *q = ox_infer_in(c, 0), *v = ox_infer_in(c, 2), *past = ox_infer_in(c, 3);
    const int64_t hq = ox_node_int(c->node, "q_num_heads", 0);
    const int64_t hv = ox_node_int(c->node, "kv_num_heads", 0);
    if (!q || !v || q->rank != 3 || v->rank != 3 || hq < 1 || hv < 1) return OX_OK;
    const int64_t dk = ox_infer_dim(c->g, at(q, 2), hq, '/');
    const int64_t dv = ox_infer_dim(c->g, at(v, 2), hv, '/');
    const int64_t y[3] = {at(q, 0), at(q, 1), ox_infer_dim(c->g, dv, hq > hv ? hq : hv, '*')};
    const int64_t s[4] = {at(q, 0), hv, dk, dv};
    if (ox_node_int(c->node, "state_window", 0)) return OX_OK;
    ox_infer_set(c, 0, q->dtype, 3, y);
    set4(c, 1, past ? past->dtype : q->dtype, s);
    return OX_OK;
}

ox_status ox_op_infer_causal_conv(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *w = ox_infer_in(c, 1), *past = ox_infer_in(c, 3);
    const bool last = ox_node_int(c->node, "channels_last", 0) != 0;
    if (!x || !w || x->rank != 3 || w->rank != 3 || ox_node_int(c->node, "state_window", 0))
        return OX_OK;
    const int64_t dilation = ox_node_int(c->node, "dilation", 1), taps = at(w, 2);
    const int64_t keep = taps >= 1 && taps < INT32_MAX && dilation >= 1 && dilation < INT32_MAX
                             ? (taps - 1) * dilation
                             : OX_DIM_UNKNOWN;
    const int64_t s[3] = {at(x, 0), at(x, last ? 2 : 1), keep};
    ox_infer_like(c, 0, x, x->dtype);
    ox_infer_set(c, 1, past ? past->dtype : x->dtype, 3, s);
    return OX_OK;
}

ox_status ox_op_infer_linear_attention_gate(ox_infer_ctx *c)
{
    const ox_op_info *a = ox_infer_in(c, 0), *b = ox_infer_in(c, 3);
    if (a) ox_infer_like(c, 0, a, a->dtype);
    if (b) ox_infer_like(c, 1, b, b->dtype);
    return OX_OK;
}

/* ---- windows over space ---- */

static int64_t attr_at(const ox_infer_ctx *c, const char *name, int32_t i, int64_t otherwise)
{
    const ox_attr *a = ox_node_attr(c->node, name);
    return a && a->type == OX_ATTR_INTS && (size_t)i < a->n ? a->ints[i] : otherwise;
}

/* Output length of axis k of a window of `size`; unknown input lengths stay unknown. */
static int64_t window_length(const ox_infer_ctx *c, int64_t d, int64_t size, int32_t k,
                             int32_t space)
{
    const ox_str pad = ox_node_str(c->node, "auto_pad", "NOTSET");
    const int64_t stride = attr_at(c, "strides", k, 1), dilation = attr_at(c, "dilations", k, 1);
    if (d < 0 || size < 1 || stride < 1 || dilation < 1 || d > INT32_MAX || size > INT32_MAX ||
        dilation > INT32_MAX)
        return OX_DIM_UNKNOWN;
    const int64_t extent = (size - 1) * dilation + 1;
    if (ox_str_starts(pad, OX_STR("SAME"))) return (d + stride - 1) / stride;
    int64_t all = d;
    if (!ox_str_is(pad, "VALID"))
        all += attr_at(c, "pads", k, 0) + attr_at(c, "pads", k + space, 0);
    if (all < extent || ox_node_int(c->node, "ceil_mode", 0)) return OX_DIM_UNKNOWN;
    return (all - extent) / stride + 1;
}

ox_status ox_op_infer_conv(ox_infer_ctx *c)
{
    const bool quantised = ox_str_is(c->node->op_type, "QLinearConv");
    const bool integer = ox_str_is(c->node->op_type, "ConvInteger");
    const ox_op_info *x = ox_infer_in(c, 0), *w = ox_infer_in(c, quantised ? 3 : 1),
                     *z = ox_infer_in(c, 7);
    int64_t dims[OX_RANK_MAX];
    if (!x || !w) return OX_OK;
    const ox_dtype t = integer     ? OX_DTYPE_I32
                       : quantised ? (z ? z->dtype : OX_DTYPE_NONE)
                                   : x->dtype;
    ox_infer_set(c, 0, t, -1, NULL);
    if (x->rank < 3 || w->rank != x->rank) return OX_OK;
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    for (int32_t i = 2; i < x->rank; i++) {
        const int64_t size = attr_at(c, "kernel_shape", i - 2, w->dims[i]);
        dims[i] = window_length(c, x->dims[i], size, i - 2, x->rank - 2);
    }
    ox_infer_set(c, 0, t, x->rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_pool(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    const bool global = ox_str_starts(c->node->op_type, OX_STR("Global"));
    int64_t dims[OX_RANK_MAX];
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    ox_infer_set(c, 1, OX_DTYPE_I64, -1, NULL);
    if (x->rank < 3) return OX_OK;
    for (int32_t i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i];
        if (i >= 2 && global) dims[i] = 1;
        if (i >= 2 && !global)
            dims[i] = window_length(c, x->dims[i], attr_at(c, "kernel_shape", i - 2, -1), i - 2,
                                    x->rank - 2);
    }
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    ox_infer_set(c, 1, OX_DTYPE_I64, x->rank, dims);
    return OX_OK;
}
