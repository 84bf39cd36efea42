/* scale.c - products with a number and soft-caps, merged into what they scale where that has room:
 * an embedding's scale, another scale. Soft-caps arise as tanh = "scale 1, soft-cap 1" and grow by
 * the numbers around it: c * tanh(x/c) = scale 1, soft-cap c. */
#include "opt/opt_internal.h"

#include <math.h>

/* s * x, then soft-cap c (0 = none). */
static ox_status say_scaled(ox_opt *o, const ox_node *n, ox_saying x, double s, float c)
{
    ox_saying in, y;
    const ox_saying whole = x;
    ox_term t = ox_term_init(OX_TERM_SCALE);
    const ox_term *inner = ox_opt_term_of(o, x, &in);
    double cap = (double)c;
    if (inner && inner->kind == OX_TERM_EMBED && c == 0.0f) {
        t = *inner;
        s *= (double)inner->scale;
        x = in;
    } else if (inner && inner->kind == OX_TERM_SCALE && inner->softcap == 0.0f) {
        s *= (double)inner->scale;
        x = in;
    } else if (inner && inner->kind == OX_TERM_SCALE && c == 0.0f && s > 0) {
        cap = (double)inner->softcap * s;
        s *= (double)inner->scale;
        x = in;
    }
    t.scale = fabs(s - 1) < 3e-7 ? 1.0f : (float)s; /* (1/c) * c in float32 */
    if (t.kind == OX_TERM_SCALE) t.softcap = (float)cap;
    OX_TRY(ox_opt_term(o, n, "", &t, &x, 1, &y));
    y.last = whole.last;
    y.heads_first = whole.heads_first;
    y.last_row = whole.last_row;
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}

ox_status ox_opt_scale(ox_opt *o, const ox_node *n)
{
    const bool divides = ox_node_is(n, "Div");
    for (uint32_t i = 0; i < (divides ? 1u : 2u); i++) {
        const ox_saying x = ox_opt_said(o, ox_node_in(n, i));
        float c;
        if (!ox_value_is(x.v) || !ox_opt_number(o, ox_node_in(n, 1 - i), &c)) continue;
        if (divides && c == 0.0f) return ox_opt_refuse(o, "a division by zero");
        return say_scaled(o, n, x, divides ? 1.0 / (double)c : (double)c, 0.0f);
    }
    return OX_OK;
}

ox_status ox_opt_softcap(ox_opt *o, const ox_node *n)
{
    ox_saying x;
    if (!ox_opt_in(o, n, 0, &x)) return OX_OK;
    return say_scaled(o, n, x, 1.0, 1.0f);
}

/* The whole graph's last term: a linear map, perhaps scaled and soft-capped, becomes the head. */
ox_status ox_opt_make_head(ox_opt *o, ox_saying logits, ox_value_id *out)
{
    ox_saying in, x;
    ox_err err = {0};
    const ox_term *last = ox_opt_term_of(o, logits, &in);
    ox_term t = ox_term_init(OX_TERM_HEAD);
    *out = OX_NO_VALUE;
    if (last && last->kind == OX_TERM_SCALE) {
        t.scale = last->scale;
        t.softcap = last->softcap;
        last = ox_opt_term_of(o, in, &x);
    } else {
        x = in;
    }
    if (!last || last->kind != OX_TERM_LINEAR) return OX_OK;
    t.weight = last->weight;
    t.bias = last->bias;
    t.accuracy_level = last->accuracy_level;
    const ox_status st = ox_graph_add_term(o->g, &t, OX_STR("logits"), &x.v, 1, out, &err);
    if (st == OX_NO_MEMORY) return OX_FAIL(o->err, st, "%s", err.msg);
    return OX_OK;
}
