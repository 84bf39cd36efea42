/* rotate_chain.c - rotary positions spelled out, on the last dimension of x:
 *
 *   halves:  y = x * cos + Concat(-x[R/2:], x[:R/2]) * sin
 *   pairs:   y = x * cos + flatten(stack(-x[1::2], x[0::2])) * sin
 *
 * where x is a whole head, or the first R channels of one: Concat(y, head[R:]); there y may also be
 * the rotary operator of the standard domain. */
#include "opt/opt_internal.h"

enum { PAST = 5, ROWS = 7 };

static bool is_last(const ox_opt *o, ox_value_id v, int64_t axis)
{
    const int32_t rank = ox_value_is(v) ? ox_graph_value(o->old, v)->rank : -1;
    return axis == -1 || axis == 3 || (rank > 0 && axis == rank - 1);
}

/* v = of[..., first : end : step] by a Slice. */
static bool slice_of(ox_opt *o, ox_value_id v, ox_opt_part *p, int64_t *step)
{
    const ox_node *n = ox_opt_producer(o, v);
    int64_t axis[1];
    size_t k;
    *step = 1;
    if (!ox_node_is(n, "Slice") || n->n_inputs < 4) return false;
    p->of = ox_opt_bare(o, ox_node_in(n, 0));
    if (!ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, &p->first, 1, &k) || k != 1) return false;
    if (!ox_opt_shape(o, ox_node_in(n, 2), PAST, ROWS, &p->end, 1, &k) || k != 1) return false;
    if (!ox_opt_shape(o, ox_node_in(n, 3), PAST, ROWS, axis, 1, &k) || k != 1) return false;
    if (ox_node_has(n, 4) && !ox_opt_shape(o, ox_node_in(n, 4), PAST, ROWS, step, 1, &k))
        return false;
    return is_last(o, ox_node_in(n, 0), axis[0]) && p->first >= 0 && p->end > p->first;
}

bool ox_opt_part_of(ox_opt *o, ox_value_id v, ox_opt_part *p)
{
    const ox_node *n = ox_opt_producer(o, v);
    int64_t sizes[2], step;
    size_t k;
    if (!ox_node_is(n, "Split")) return slice_of(o, v, p, &step) && step == 1;
    if (n->n_outputs != 2 || !is_last(o, ox_node_in(n, 0), ox_node_int(n, "axis", 0))) return false;
    const ox_attr *a = ox_node_attr(n, "split");
    const bool second = n->outputs[1].i == ox_opt_bare(o, v).i;
    if (!ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, sizes, 2, &k)) {
        if (!a || a->type != OX_ATTR_INTS || a->n != 2) return false;
        sizes[0] = a->ints[0];
        sizes[1] = a->ints[1];
    }
    *p = (ox_opt_part){ox_opt_bare(o, ox_node_in(n, 0)), second ? sizes[0] : 0, sizes[0]};
    if (second) p->end = sizes[0] + sizes[1];
    return true;
}

/* v = Concat(-x[half:], x[:half]): x, absent if not so. */
static ox_value_id half_turned(ox_opt *o, ox_value_id v, int64_t *half)
{
    const ox_node *n = ox_opt_producer(o, v);
    ox_opt_part high, low;
    if (!ox_node_is(n, "Concat") || n->n_inputs != 2 ||
        !is_last(o, n->outputs[0], ox_node_int(n, "axis", 0)))
        return OX_NO_VALUE;
    const ox_node *neg = ox_opt_producer(o, ox_node_in(n, 0));
    if (!ox_node_is(neg, "Neg") || !ox_opt_part_of(o, ox_node_in(neg, 0), &high) ||
        !ox_opt_part_of(o, ox_node_in(n, 1), &low))
        return OX_NO_VALUE;
    if (high.of.i != low.of.i || low.first != 0 || low.end != high.first || high.end < 2 * low.end)
        return OX_NO_VALUE;
    *half = low.end;
    return low.of;
}

/* v = Unsqueeze(u, last): u. */
static ox_value_id stacked(ox_opt *o, ox_value_id v)
{
    const ox_node *n = ox_opt_producer(o, v);
    int64_t axis[1];
    size_t k;
    if (!ox_node_is(n, "Unsqueeze") || !ox_opt_axes(o, n, 1, axis, 1, &k) || k != 1)
        return OX_NO_VALUE;
    return axis[0] == -1 || axis[0] == 4 ? ox_node_in(n, 0) : OX_NO_VALUE;
}

/* v = flatten(stack(-x[1::2], x[0::2])): x, absent if not so. */
static ox_value_id pairs_turned(ox_opt *o, ox_value_id v)
{
    const ox_node *flat = ox_opt_producer(o, v);
    if (!ox_node_is(flat, "Reshape")) return OX_NO_VALUE;
    const ox_node *n = ox_opt_producer(o, ox_node_in(flat, 0));
    ox_opt_part odd, even;
    int64_t step[2];
    if (!ox_node_is(n, "Concat") || n->n_inputs != 2 || ox_node_int(n, "axis", 0) != -1)
        return OX_NO_VALUE;
    const ox_node *neg = ox_opt_producer(o, stacked(o, ox_node_in(n, 0)));
    if (!ox_node_is(neg, "Neg") || !slice_of(o, ox_node_in(neg, 0), &odd, &step[0]) ||
        !slice_of(o, stacked(o, ox_node_in(n, 1)), &even, &step[1]))
        return OX_NO_VALUE;
    if (odd.of.i != even.of.i || odd.first != 1 || even.first != 0 || step[0] != 2 || step[1] != 2)
        return OX_NO_VALUE;
    return even.of;
}

typedef struct turn {
    ox_value_id x, cos, sin;
    int64_t half; /* pairs, when the spelling says so; else 0 */
    bool doubled, interleaved;
} turn;

/* n = Add(Mul(x, cos), Mul(turned(x), sin)), operands in any order. */
static bool match_chain(ox_opt *o, const ox_node *n, turn *t)
{
    if (!ox_node_is(n, "Add") || n->n_inputs != 2) return false;
    for (uint32_t i = 0; i < 2; i++) {
        const ox_node *a = ox_opt_producer(o, ox_node_in(n, i));
        const ox_node *b = ox_opt_producer(o, ox_node_in(n, 1 - i));
        if (!ox_node_is(a, "Mul") || !ox_node_is(b, "Mul")) return false;
        for (uint32_t k = 0; k < 2; k++) {
            *t = (turn){.doubled = true};
            t->x = half_turned(o, ox_node_in(b, k), &t->half);
            if (!ox_value_is(t->x)) {
                t->x = pairs_turned(o, ox_node_in(b, k));
                t->interleaved = true;
            }
            if (!ox_value_is(t->x)) continue;
            t->sin = ox_node_in(b, 1 - k);
            if (ox_opt_bare(o, ox_node_in(a, 0)).i == t->x.i)
                t->cos = ox_node_in(a, 1);
            else if (ox_opt_bare(o, ox_node_in(a, 1)).i == t->x.i)
                t->cos = ox_node_in(a, 0);
            else
                continue;
            return true;
        }
    }
    return false;
}

/* n = RotaryEmbedding(x, cos, sin) without positions: the rows' own angles. */
static bool match_operator(ox_opt *o, const ox_node *n, turn *t)
{
    if (!ox_node_is(n, "RotaryEmbedding") || n->domain.n || n->n_inputs != 3) return false;
    *t = (turn){
        .x = ox_opt_bare(o, ox_node_in(n, 0)), .cos = ox_node_in(n, 1), .sin = ox_node_in(n, 2)};
    t->interleaved = ox_node_int(n, "interleaved", 0) != 0;
    t->half = ox_node_int(n, "rotary_embedding_dim", 0) / 2;
    return true;
}

static ox_status say_turned(ox_opt *o, const ox_node *n, const turn *t, int64_t rotary, ox_saying x)
{
    const ox_rotary *r;
    ox_saying y;
    OX_TRY(ox_opt_rotary_computed(o, t->cos, t->sin, t->doubled, t->interleaved, &r));
    if (!r) return ox_opt_refuse(o, "its cosines and sines do not follow from positions");
    if (r->rotary != rotary || r->rotary > x.last)
        return ox_opt_refuse(o, "it turns %lld channels by %d angles", (long long)rotary,
                             (int)r->rotary / 2);
    OX_TRY(ox_opt_rotate(o, n, "", r, x.width / x.last, x, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}

ox_status ox_opt_rotate_chain(ox_opt *o, const ox_node *n)
{
    turn t;
    if (!match_chain(o, n, &t)) return OX_OK;
    const ox_saying x = ox_opt_said(o, t.x);
    if (!ox_value_is(x.v)) {
        o->now.blame = t.x;
        return OX_OK;
    }
    if (t.half && x.last != 2 * t.half) return ox_opt_refuse(o, "it turns a part of a head");
    return say_turned(o, n, &t, x.last, x);
}

ox_status ox_opt_rotate_part(ox_opt *o, const ox_node *n)
{
    turn t;
    ox_opt_part low, rest;
    if (n->n_inputs != 2 || !ox_node_wants(n, 0) ||
        !is_last(o, n->outputs[0], ox_node_int(n, "axis", 0)))
        return OX_OK;
    const ox_node *turned = ox_opt_producer(o, ox_node_in(n, 0));
    if (!match_chain(o, turned, &t) && !match_operator(o, turned, &t)) return OX_OK;
    if (!ox_opt_part_of(o, t.x, &low) || !ox_opt_part_of(o, ox_node_in(n, 1), &rest)) return OX_OK;
    const ox_saying x = ox_opt_said(o, low.of);
    if (low.of.i != rest.of.i || low.first != 0 || rest.first != low.end ||
        (t.half && low.end != 2 * t.half))
        return OX_OK;
    if (!ox_value_is(x.v)) {
        o->now.blame = low.of;
        return OX_OK;
    }
    if (rest.end < x.last) return ox_opt_refuse(o, "it drops channels");
    return say_turned(o, n, &t, low.end, x);
}
