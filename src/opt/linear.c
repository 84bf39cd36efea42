/* linear.c - x * W^T (+ b) in its spellings: MatMul, FusedMatMul, Gemm, MatMulNBits, and an Add of
 * a vector to one of them. */
#include "opt/opt_internal.h"

static ox_status say_linear(ox_opt *o, const ox_node *n, ox_saying x, const ox_term *t, float alpha)
{
    ox_term scale = ox_term_init(OX_TERM_SCALE);
    ox_saying y;
    OX_TRY(ox_opt_term(o, n, "", t, &x, 1, &y));
    y.last = y.width;
    scale.scale = alpha;
    if (alpha != 1.0f) OX_TRY(ox_opt_term(o, n, "/alpha", &scale, &y, 1, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}

ox_status ox_opt_linear_matmul(ox_opt *o, const ox_node *n)
{
    ox_term t = ox_term_init(OX_TERM_LINEAR);
    ox_saying x;
    if (!ox_opt_in_rows(o, n, 0, &x)) return OX_OK;
    if (ox_node_int(n, "transA", 0) || ox_node_int(n, "transBatchA", 0) ||
        ox_node_int(n, "transBatchB", 0))
        return ox_opt_refuse(o, "the left operand is transposed");
    if (ox_node_int(n, "transB", 0))
        OX_TRY(ox_opt_table(o, ox_node_in(n, 1), &t.weight));
    else
        OX_TRY(ox_opt_matrix(o, ox_node_in(n, 1), &t.weight));
    if (!t.weight) return ox_opt_refuse(o, "the right operand is not a constant matrix");
    return say_linear(o, n, x, &t, ox_node_float(n, "alpha", 1.0f));
}

ox_status ox_opt_linear_gemm(ox_opt *o, const ox_node *n)
{
    ox_term t = ox_term_init(OX_TERM_LINEAR);
    ox_saying x;
    if (!ox_opt_in_rows(o, n, 0, &x)) return OX_OK;
    if (ox_node_int(n, "transA", 0) || ox_node_float(n, "alpha", 1.0f) != 1.0f ||
        (ox_node_has(n, 2) && ox_node_float(n, "beta", 1.0f) != 1.0f))
        return ox_opt_refuse(o, "transA, alpha or beta is set");
    if (ox_node_int(n, "transB", 0))
        OX_TRY(ox_opt_table(o, ox_node_in(n, 1), &t.weight));
    else
        OX_TRY(ox_opt_matrix(o, ox_node_in(n, 1), &t.weight));
    if (!t.weight) return ox_opt_refuse(o, "the right operand is not a constant matrix");
    if (ox_node_has(n, 2)) {
        OX_TRY(ox_opt_vector(o, ox_node_in(n, 2), &t.bias));
        if (!t.bias) return ox_opt_refuse(o, "the bias is not a constant vector");
    }
    return say_linear(o, n, x, &t, 1.0f);
}

ox_status ox_opt_linear_nbits(ox_opt *o, const ox_node *n)
{
    ox_term t = ox_term_init(OX_TERM_LINEAR);
    ox_saying x;
    const ox_opt_blocks b = {
        .codes = ox_node_in(n, 1),
        .scales = ox_node_in(n, 2),
        .zeros = ox_node_in(n, 3),
        .g_idx = ox_node_in(n, 4),
        .rows = ox_node_int(n, "N", 0),
        .cols = ox_node_int(n, "K", 0),
        .bits = (int32_t)ox_node_int(n, "bits", 4),
        .block = (int32_t)ox_node_int(n, "block_size", 0),
    };
    if (!ox_opt_in_rows(o, n, 0, &x)) return OX_OK;
    if (ox_node_int(n, "weight_prepacked", 0))
        return ox_opt_refuse(o, "its weight is rearranged for one kind of GPU (weight_prepacked)");
    OX_TRY(ox_opt_nbits(o, &b, &t.weight));
    if (!t.weight) return OX_OK; /* says why itself */
    t.accuracy_level = (int32_t)ox_node_int(n, "accuracy_level", 0);
    if (ox_node_has(n, 5)) {
        OX_TRY(ox_opt_vector(o, ox_node_in(n, 5), &t.bias));
        if (!t.bias) return ox_opt_refuse(o, "the bias is not a constant vector");
    }
    return say_linear(o, n, x, &t, 1.0f);
}

ox_status ox_opt_with_bias(ox_opt *o, const ox_node *n, const char *suffix, const ox_weight *bias,
                           ox_saying x, ox_saying *out)
{
    ox_saying in;
    const ox_term *t = ox_opt_term_of(o, x, &in);
    *out = (ox_saying){.v = OX_NO_VALUE};
    if (!t || t->bias || x.heads_first) return OX_OK;
    if (t->kind != OX_TERM_LINEAR && t->kind != OX_TERM_NORM) return OX_OK;
    if (bias->cols != (t->kind == OX_TERM_NORM && t->group ? t->group : x.width)) return OX_OK;
    ox_term with = *t;
    with.bias = bias;
    OX_TRY(ox_opt_term(o, n, suffix, &with, &in, 1, out));
    out->last = x.last;
    return OX_OK;
}

/* Add(x, vector) in either order, x a linear or a norm without bias. */
ox_status ox_opt_bias(ox_opt *o, const ox_node *n)
{
    for (uint32_t i = 0; i < 2; i++) {
        const ox_weight *bias;
        ox_saying x = ox_opt_said(o, ox_node_in(n, i)), y;
        if (!ox_value_is(x.v)) continue;
        OX_TRY(ox_opt_vector(o, ox_node_in(n, 1 - i), &bias));
        if (!bias) continue;
        OX_TRY(ox_opt_with_bias(o, n, "", bias, x, &y));
        if (!ox_value_is(y.v))
            return ox_opt_refuse(o, "a vector is added to something that is not a linear map");
        ox_opt_say(o, n, 0, y);
        return OX_OK;
    }
    return OX_OK;
}
