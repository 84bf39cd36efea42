/* act.c - activations as one operator, and gates: act(gate) * up. */
#include "opt/opt_internal.h"

#include <math.h>

static bool near(float a, float b)
{
    return fabsf(a - b) <= 1e-3f * fabsf(b); /* constants pass through half precision */
}

ox_status ox_opt_act_say(ox_opt *o, const ox_node *n, ox_act act, ox_saying x)
{
    ox_term t = ox_term_init(OX_TERM_ACT);
    ox_saying y;
    t.act = act;
    OX_TRY(ox_opt_term(o, n, "", &t, &x, 1, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}

bool ox_opt_sigmoid_act(float alpha, ox_act *act)
{
    *act = near(alpha, 1.702f) ? OX_ACT_QUICK_GELU : OX_ACT_SILU;
    return near(alpha, 1.702f) || alpha == 1.0f;
}

static const struct {
    const char *op;
    ox_act act;
} plain[] = {
    {"Relu", OX_ACT_RELU},
    {"FastGelu", OX_ACT_GELU_TANH},
    {"BiasGelu", OX_ACT_GELU},
};

/* Which activation an operator is by itself. */
static bool act_of(const ox_node *n, ox_act *act)
{
    for (size_t i = 0; i < OX_COUNT(plain); i++) {
        if (!ox_node_is(n, plain[i].op)) continue;
        *act = plain[i].act;
        return true;
    }
    if (ox_node_is(n, "QuickGelu"))
        return ox_opt_sigmoid_act(ox_node_float(n, "alpha", 1.702f), act);
    if (ox_node_is(n, "Swish")) return ox_opt_sigmoid_act(ox_node_float(n, "alpha", 1.0f), act);
    const bool tanh_form = ox_str_is(ox_node_str(n, "approximate", "none"), "tanh");
    *act = tanh_form ? OX_ACT_GELU_TANH : OX_ACT_GELU;
    return true;
}

ox_status ox_opt_act_one(ox_opt *o, const ox_node *n)
{
    ox_saying x, biased;
    ox_act act;
    if (!ox_opt_in(o, n, 0, &x)) return OX_OK;
    if (!act_of(n, &act)) return ox_opt_refuse(o, "an activation with this factor is not known");
    if (ox_node_has(n, 1)) {
        const ox_weight *bias;
        OX_TRY(ox_opt_vector(o, ox_node_in(n, 1), &bias));
        if (!bias) return ox_opt_refuse(o, "its bias is not a constant vector");
        OX_TRY(ox_opt_with_bias(o, n, "/bias", bias, x, &biased));
        if (!ox_value_is(biased.v)) return ox_opt_refuse(o, "its operand cannot take the bias");
        x = biased;
    }
    return ox_opt_act_say(o, n, act, x);
}

static ox_status say_glu(ox_opt *o, const ox_node *n, ox_act act, ox_saying gate, ox_saying up)
{
    ox_term t = ox_term_init(OX_TERM_GLU);
    const ox_saying in[2] = {gate, up};
    ox_saying y;
    t.act = act;
    OX_TRY(ox_opt_term(o, n, "", &t, in, 2, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}

ox_status ox_opt_glu(ox_opt *o, const ox_node *n)
{
    ox_saying x[2], gate;
    if (!ox_opt_in(o, n, 0, &x[0]) || !ox_opt_in(o, n, 1, &x[1])) return OX_OK;
    for (int i = 0; i < 2; i++) {
        const ox_term *t = ox_opt_term_of(o, x[i], &gate);
        if (t && t->kind == OX_TERM_ACT) return say_glu(o, n, t->act, gate, x[1 - i]);
    }
    return ox_opt_refuse(o, "a product of two values, neither of them an activation");
}

ox_status ox_opt_glu_one(ox_opt *o, const ox_node *n)
{
    ox_saying gate, up;
    ox_act act;
    if (!ox_opt_in(o, n, 0, &gate) || !ox_opt_in(o, n, 1, &up)) return OX_OK;
    if (!ox_opt_sigmoid_act(ox_node_float(n, "alpha", 1.0f), &act))
        return ox_opt_refuse(o, "an activation with this factor is not known");
    return say_glu(o, n, act, gate, up);
}
