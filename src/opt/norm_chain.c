/* norm_chain.c - normalisations spelled out:
 *
 *   rms:    gamma * (x / sqrt(mean(x^2) + eps)),  1/sqrt also as Reciprocal or Pow(-0.5)
 *   layer:  the same with x - mean(x) for x; beta joins through the rule for biases. */
#include "opt/opt_internal.h"

/* Reduces over the last axis only and keeps it. */
static bool is_row_mean(const ox_opt *o, const ox_node *n)
{
    int64_t axes[2];
    size_t k;
    if (!ox_node_is(n, "ReduceMean") || !ox_node_int(n, "keepdims", 1)) return false;
    if (!ox_opt_axes(o, n, 1, axes, 2, &k) || k != 1) return false;
    if (!ox_node_has(n, 0)) return false;
    const ox_value *x = ox_graph_value(o->old, n->inputs[0]);
    return axes[0] == -1 || (x->rank > 0 && axes[0] == x->rank - 1);
}

/* v = x * x: the value x. */
static ox_value_id squared(const ox_opt *o, ox_value_id v)
{
    const ox_node *n = ox_opt_producer(o, v);
    float two;
    if (ox_node_is(n, "Pow") && ox_opt_scalar(o, ox_node_in(n, 1), &two) && two == 2.0f)
        return ox_opt_bare(o, ox_node_in(n, 0));
    if (ox_node_is(n, "Mul") && n->n_inputs == 2 &&
        ox_opt_bare(o, ox_node_in(n, 0)).i == ox_opt_bare(o, ox_node_in(n, 1)).i)
        return ox_opt_bare(o, ox_node_in(n, 0));
    return OX_NO_VALUE;
}

/* v = mean(x^2) + eps: the value x. */
static ox_value_id mean_square(const ox_opt *o, ox_value_id v, float *eps)
{
    const ox_node *n = ox_opt_producer(o, v);
    if (!ox_node_is(n, "Add") || n->n_inputs != 2) return OX_NO_VALUE;
    for (uint32_t i = 0; i < 2; i++) {
        const ox_node *mean = ox_opt_producer(o, ox_node_in(n, i));
        if (ox_opt_scalar(o, ox_node_in(n, 1 - i), eps) && is_row_mean(o, mean))
            return squared(o, ox_node_in(mean, 0));
    }
    return OX_NO_VALUE;
}

/* v = sqrt(mean(x^2) + eps): the value x. */
static ox_value_id root(const ox_opt *o, ox_value_id v, float *eps)
{
    const ox_node *n = ox_opt_producer(o, v);
    float half;
    if (ox_node_is(n, "Sqrt")) return mean_square(o, ox_node_in(n, 0), eps);
    if (ox_node_is(n, "Pow") && ox_opt_scalar(o, ox_node_in(n, 1), &half) && half == 0.5f)
        return mean_square(o, ox_node_in(n, 0), eps);
    return OX_NO_VALUE;
}

/* v = 1 / sqrt(mean(x^2) + eps): the value x. */
static ox_value_id inverse_root(const ox_opt *o, ox_value_id v, float *eps)
{
    const ox_node *n = ox_opt_producer(o, v);
    float c;
    if (ox_node_is(n, "Reciprocal")) return root(o, ox_node_in(n, 0), eps);
    if (ox_node_is(n, "Div") && ox_opt_scalar(o, ox_node_in(n, 0), &c) && c == 1.0f)
        return root(o, ox_node_in(n, 1), eps);
    if (ox_node_is(n, "Pow") && ox_opt_scalar(o, ox_node_in(n, 1), &c) && c == -0.5f)
        return mean_square(o, ox_node_in(n, 0), eps);
    return OX_NO_VALUE;
}

/* v = x normalised: the value x, before its mean was taken off if *centre. */
static ox_value_id normalised(const ox_opt *o, ox_value_id v, float *eps, bool *centre)
{
    const ox_node *n = ox_opt_producer(o, v);
    ox_value_id x = OX_NO_VALUE;
    if (ox_node_is(n, "Div")) {
        x = root(o, ox_node_in(n, 1), eps);
        if (ox_value_is(x) && x.i != ox_opt_bare(o, ox_node_in(n, 0)).i) return OX_NO_VALUE;
    } else if (ox_node_is(n, "Mul")) {
        for (uint32_t i = 0; i < 2 && !ox_value_is(x); i++) {
            x = inverse_root(o, ox_node_in(n, i), eps);
            if (ox_value_is(x) && x.i != ox_opt_bare(o, ox_node_in(n, 1 - i)).i) x = OX_NO_VALUE;
        }
    }
    if (!ox_value_is(x)) return x;
    const ox_node *sub = ox_opt_producer(o, x);
    *centre = false;
    if (!ox_node_is(sub, "Sub")) return x;
    const ox_node *mean = ox_opt_producer(o, ox_node_in(sub, 1));
    if (!is_row_mean(o, mean)) return x;
    const ox_value_id from = ox_opt_bare(o, ox_node_in(sub, 0));
    if (ox_opt_bare(o, ox_node_in(mean, 0)).i != from.i) return x;
    *centre = true;
    return from;
}

ox_status ox_opt_norm_chain(ox_opt *o, const ox_node *n)
{
    for (uint32_t i = 0; i < 2; i++) {
        ox_term t = ox_term_init(OX_TERM_NORM);
        ox_saying y;
        const ox_value_id v = normalised(o, ox_node_in(n, i), &t.epsilon, &t.centre);
        if (!ox_value_is(v)) continue;
        const ox_saying x = ox_opt_said(o, v);
        if (!ox_value_is(x.v)) {
            o->now.blame = v;
            return OX_OK;
        }
        OX_TRY(ox_opt_vector(o, ox_node_in(n, 1 - i), &t.weight));
        if (!t.weight || t.weight->cols != x.last)
            return ox_opt_refuse(o, "a normalisation's scale is not a constant vector");
        t.group = x.last == x.width ? 0 : x.last;
        OX_TRY(ox_opt_term(o, n, "", &t, &x, 1, &y));
        ox_opt_say(o, n, 0, y);
        return OX_OK;
    }
    return OX_OK;
}
