/* act_chain.c - activations spelled out in elementary operators:
 *
 *   silu        x * Sigmoid(x);  quick gelu  x * Sigmoid(1.702 x)
 *   relu2       Relu(x)^2
 *   gelu        1/2 * x * (1 + Erf(x / sqrt 2)), factors in any order
 *   tanh gelu   1/2 * x * (1 + Tanh(0.79788 * (x + 0.044715 x^3))), factors in any order */
#include "opt/opt_internal.h"

#include <math.h>

enum { FACTORS_MAX = 4 };

static bool near(float a, float b)
{
    return fabsf(a - b) <= 2e-3f * fabsf(b); /* constants pass through half precision */
}

ox_status ox_opt_act_square(ox_opt *o, const ox_node *n)
{
    ox_saying x = ox_opt_said(o, ox_node_in(n, 0)), in;
    const ox_saying y = ox_opt_said(o, ox_node_in(n, 1));
    const ox_term *t = ox_opt_term_of(o, x, &in);
    float two;
    if (!t || t->kind != OX_TERM_ACT || t->act != OX_ACT_RELU) return OX_OK;
    if (ox_node_is(n, "Pow")) {
        if (!ox_opt_scalar(o, ox_node_in(n, 1), &two) || two != 2.0f) return OX_OK;
    } else if (y.v.i != x.v.i) {
        return OX_OK;
    }
    return ox_opt_act_say(o, n, OX_ACT_RELU2, in);
}

/* Is `s` x, or x times *factor? */
static bool is_multiple(const ox_opt *o, ox_saying s, ox_saying x, float *factor)
{
    ox_saying in;
    *factor = 1.0f;
    if (!ox_value_is(s.v)) return false;
    if (s.v.i == x.v.i) return true;
    const ox_term *t = ox_opt_term_of(o, s, &in);
    if (!t || t->kind != OX_TERM_SCALE || t->softcap != 0.0f || in.v.i != x.v.i) return false;
    *factor = t->scale;
    return true;
}

ox_status ox_opt_act_sigmoid(ox_opt *o, const ox_node *n)
{
    for (uint32_t i = 0; i < 2; i++) {
        const ox_node *s = ox_opt_producer(o, ox_node_in(n, i));
        const ox_saying x = ox_opt_said(o, ox_node_in(n, 1 - i));
        float alpha;
        ox_act act;
        if (!ox_node_is(s, "Sigmoid") || !ox_value_is(x.v)) continue;
        if (!is_multiple(o, ox_opt_said(o, ox_node_in(s, 0)), x, &alpha)) continue;
        if (ox_opt_sigmoid_act(alpha, &act)) return ox_opt_act_say(o, n, act, x);
    }
    return OX_OK;
}

typedef struct factors {
    ox_value_id v[FACTORS_MAX];
    size_t n;
    float constant;
} factors;

/* Multiplies out nested products; a value that is not a product is one factor. Divisions by
 * constants count. */
static void gather_factors(const ox_opt *o, ox_value_id v, int depth, factors *f)
{
    float c;
    if (ox_opt_scalar(o, v, &c)) {
        f->constant *= c;
        return;
    }
    const ox_node *n = ox_opt_producer(o, v);
    if (depth < 3 && ox_node_is(n, "Mul") && n->n_inputs == 2) {
        gather_factors(o, ox_node_in(n, 0), depth + 1, f);
        gather_factors(o, ox_node_in(n, 1), depth + 1, f);
    } else if (depth < 3 && ox_node_is(n, "Div") && ox_opt_scalar(o, ox_node_in(n, 1), &c)) {
        f->constant /= c;
        gather_factors(o, ox_node_in(n, 0), depth + 1, f);
    } else if (f->n < FACTORS_MAX) {
        f->v[f->n++] = ox_opt_bare(o, v);
    } else {
        f->constant = NAN;
    }
}

/* v = 1 + f(u), f one of Erf, Tanh: the node of f. */
static const ox_node *one_plus(const ox_opt *o, ox_value_id v)
{
    const ox_node *n = ox_opt_producer(o, v);
    float one;
    if (!ox_node_is(n, "Add") || n->n_inputs != 2) return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const ox_node *f = ox_opt_producer(o, ox_node_in(n, i));
        if ((ox_node_is(f, "Erf") || ox_node_is(f, "Tanh")) &&
            ox_opt_scalar(o, ox_node_in(n, 1 - i), &one) && one == 1.0f)
            return f;
    }
    return NULL;
}

/* v = 0.044715 x^3. */
static bool is_cube(const ox_opt *o, ox_value_id v, ox_value_id x)
{
    factors f = {.constant = 1.0f};
    float three;
    gather_factors(o, v, 0, &f);
    if (!near(f.constant, 0.044715f)) return false;
    if (f.n == 3) return f.v[0].i == x.i && f.v[1].i == x.i && f.v[2].i == x.i;
    if (f.n != 1) return false;
    const ox_node *p = ox_opt_producer(o, f.v[0]);
    return ox_node_is(p, "Pow") && ox_opt_scalar(o, ox_node_in(p, 1), &three) && three == 3.0f &&
           ox_opt_bare(o, ox_node_in(p, 0)).i == x.i;
}

/* v = 0.79788 * (x + 0.044715 x^3). */
static bool is_tanh_operand(const ox_opt *o, ox_value_id v, ox_value_id x)
{
    factors f = {.constant = 1.0f};
    gather_factors(o, v, 0, &f);
    if (f.n != 1 || !near(f.constant, 0.7978845608f)) return false;
    const ox_node *n = ox_opt_producer(o, f.v[0]);
    if (!ox_node_is(n, "Add") || n->n_inputs != 2) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (ox_opt_bare(o, ox_node_in(n, i)).i == x.i && is_cube(o, ox_node_in(n, 1 - i), x))
            return true;
    return false;
}

ox_status ox_opt_act_gelu(ox_opt *o, const ox_node *n)
{
    factors f = {.constant = 1.0f};
    if (!ox_node_wants(n, 0)) return OX_OK;
    gather_factors(o, n->outputs[0], 0, &f);
    if (f.n != 2 || !near(f.constant, 0.5f)) return OX_OK;
    for (int i = 0; i < 2; i++) {
        const ox_node *curve = one_plus(o, f.v[i]);
        const ox_saying x = ox_opt_said(o, f.v[1 - i]);
        if (!curve || !ox_value_is(x.v)) continue;
        if (ox_node_is(curve, "Erf")) {
            factors u = {.constant = 1.0f};
            gather_factors(o, ox_node_in(curve, 0), 0, &u);
            if (u.n == 1 && u.v[0].i == f.v[1 - i].i && near(u.constant, 0.70710678f))
                return ox_opt_act_say(o, n, OX_ACT_GELU, x);
        } else if (is_tanh_operand(o, ox_node_in(curve, 0), f.v[1 - i])) {
            return ox_opt_act_say(o, n, OX_ACT_GELU_TANH, x);
        }
    }
    return OX_OK;
}
