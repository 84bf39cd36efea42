/* norm.c - normalisations as one operator, with or without the residual sum in front. */
#include "opt/opt_internal.h"

/* A normalisation of x's last dimension by operands gamma and beta (may be absent). */
static ox_status norm_of(ox_opt *o, const ox_node *n, ox_term *t, const ox_saying *x,
                         ox_value_id gamma, ox_value_id beta, ox_saying *y)
{
    *y = (ox_saying){.v = OX_NO_VALUE};
    OX_TRY(ox_opt_vector(o, gamma, &t->weight));
    if (!t->weight) return ox_opt_refuse(o, "its scale is not a constant vector");
    if (ox_value_is(beta)) {
        OX_TRY(ox_opt_vector(o, beta, &t->bias));
        if (!t->bias) return ox_opt_refuse(o, "its bias is not a constant vector");
    }
    if (t->weight->cols != x->last)
        return ox_opt_refuse(o, "its scale has %lld elements for %d channels",
                             (long long)t->weight->cols, (int)x->last);
    t->group = x->last == x->width ? 0 : x->last;
    OX_TRY(ox_opt_term(o, n, "", t, x, 1, y));
    return OX_OK;
}

static bool over_last_axis(const ox_opt *o, const ox_node *n)
{
    const int64_t axis = ox_node_int(n, "axis", -1);
    const ox_value *x = ox_graph_value(o->old, ox_node_in(n, 0));
    return axis == -1 || (x->rank > 0 && axis == x->rank - 1);
}

ox_status ox_opt_norm(ox_opt *o, const ox_node *n)
{
    ox_term t = ox_term_init(OX_TERM_NORM);
    ox_saying x, y;
    if (!ox_opt_in(o, n, 0, &x)) return OX_OK;
    if (!over_last_axis(o, n))
        return ox_opt_refuse(o, "it normalises more than the last dimension");
    if (ox_node_wants(n, 1) && ox_graph_uses(o->old, n->outputs[1]))
        return ox_opt_refuse(o, "its statistics are used");
    t.centre = ox_node_is(n, "LayerNormalization");
    t.epsilon = ox_node_float(n, "epsilon", 1e-5f);
    OX_TRY(norm_of(o, n, &t, &x, ox_node_in(n, 1), t.centre ? ox_node_in(n, 2) : OX_NO_VALUE, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}

ox_status ox_opt_skip_norm(ox_opt *o, const ox_node *n)
{
    ox_term t = ox_term_init(OX_TERM_NORM), add = ox_term_init(OX_TERM_ADD);
    ox_saying x[2], sum, y;
    if (!ox_opt_in_rows(o, n, 0, &x[0]) || !ox_opt_in_rows(o, n, 1, &x[1])) return OX_OK;
    t.centre = ox_node_is(n, "SkipLayerNormalization");
    t.epsilon = ox_node_float(n, "epsilon", 1e-12f);
    const uint32_t at = t.centre ? 4 : 3;
    if (ox_node_has(n, at)) {
        const ox_weight *bias;
        OX_TRY(ox_opt_vector(o, ox_node_in(n, at), &bias));
        if (!bias) return ox_opt_refuse(o, "the added bias is not a constant vector");
        OX_TRY(ox_opt_with_bias(o, n, "/bias", bias, x[0], &y));
        if (ox_value_is(y.v)) {
            x[0] = y;
        } else {
            OX_TRY(ox_opt_with_bias(o, n, "/bias", bias, x[1], &y));
            if (!ox_value_is(y.v)) return ox_opt_refuse(o, "neither operand can take the bias");
            x[1] = y;
        }
    }
    OX_TRY(ox_opt_term(o, n, "/sum", &add, x, 2, &sum));
    if (!ox_value_is(sum.v)) return OX_OK;
    OX_TRY(
        norm_of(o, n, &t, &sum, ox_node_in(n, 2), t.centre ? ox_node_in(n, 3) : OX_NO_VALUE, &y));
    if (!ox_value_is(y.v)) return OX_OK;
    ox_opt_say(o, n, 0, y);
    ox_opt_say(o, n, 3, sum);
    return OX_OK;
}

/* Normalises heads of x by gamma [head]; *x becomes absent when that cannot be said. */
ox_status ox_opt_head_norm(ox_opt *o, const ox_node *n, const char *suffix, ox_value_id gamma,
                           float epsilon, ox_saying *x)
{
    ox_term t = ox_term_init(OX_TERM_NORM);
    const ox_saying in = *x;
    *x = (ox_saying){.v = OX_NO_VALUE};
    OX_TRY(ox_opt_vector(o, gamma, &t.weight));
    if (!t.weight || in.width % t.weight->cols)
        return ox_opt_refuse(o, "the scale of a head's normalisation is not a constant vector");
    t.epsilon = epsilon;
    t.group = t.weight->cols == in.width ? 0 : (int32_t)t.weight->cols;
    return ox_opt_term(o, n, suffix, &t, &in, 1, x);
}
