/* score_chain.c - attention spelled out, heads first:
 *
 *   MatMul(Softmax(mask(softcap(scale * MatMul(q, k^T)))), v)
 *
 * The scale may stand on the scores, on q, on k or shared between them; masks are added or chosen
 * by Where; a guard against rows without any key (IsNaN, Where) may follow the softmax. */
#include "opt/opt_internal.h"

#include <math.h>

enum { PAST = 5, ROWS = 7, STEPS = 12 };

typedef struct scores {
    ox_value_id q, k_turned, mask; /* k_turned: [.., head, keys] */
    double scale;
    float cap;
} scores;

/* n = x * c or x / c: x and the factor. */
static bool scaled(ox_opt *o, const ox_node *n, ox_value_id *x, float *c)
{
    if (n && n->n_inputs == 2 && ox_node_is(n, "Mul")) {
        for (uint32_t i = 0; i < 2; i++)
            if (ox_opt_number(o, ox_node_in(n, 1 - i), c)) {
                *x = ox_node_in(n, i);
                return true;
            }
    }
    if (!ox_node_is(n, "Div") || !ox_opt_number(o, ox_node_in(n, 1), c) || *c == 0.0f) return false;
    *c = 1.0f / *c;
    *x = ox_node_in(n, 0);
    return true;
}

/* The softmax behind v, without the guard Where(IsNaN(p), 0, p). */
static const ox_node *softmax_of(const ox_opt *o, ox_value_id v)
{
    const ox_node *n = ox_opt_producer(o, v);
    if (ox_node_is(n, "Where") && n->n_inputs == 3) {
        const ox_node *nan = ox_opt_producer(o, ox_node_in(n, 0));
        float zero;
        if (!ox_node_is(nan, "IsNaN") || !ox_opt_scalar(o, ox_node_in(n, 1), &zero) ||
            zero != 0.0f ||
            ox_opt_bare(o, ox_node_in(nan, 0)).i != ox_opt_bare(o, ox_node_in(n, 2)).i)
            return NULL;
        n = ox_opt_producer(o, ox_node_in(n, 2));
    }
    if (!ox_node_is(n, "Softmax")) return NULL;
    const int64_t axis = ox_node_int(n, "axis", -1);
    return axis == -1 || axis == 3 ? n : NULL;
}

/* One step back through a mask; false = n is none. */
static ox_status unmask(ox_opt *o, const ox_node *n, ox_value_id *v, scores *s, bool *ok)
{
    ox_masked m;
    float low;
    *ok = false;
    if (ox_value_is(s->mask) || s->cap != 0.0f || !n) return OX_OK; /* hidden stays hidden */
    if (ox_node_is(n, "Where") && n->n_inputs == 3 && ox_opt_scalar(o, ox_node_in(n, 2), &low) &&
        low <= -1e4f) {
        s->mask = ox_node_in(n, 0);
        *v = ox_node_in(n, 1);
        *ok = true;
        return OX_OK;
    }
    if (!ox_node_is(n, "Add") || n->n_inputs != 2) return OX_OK;
    for (uint32_t i = 0; i < 2 && !*ok; i++) {
        OX_TRY(ox_opt_mask(o, ox_node_in(n, 1 - i), &m));
        if (!m.known) continue;
        s->mask = ox_node_in(n, 1 - i);
        *v = ox_node_in(n, i);
        *ok = true;
    }
    return OX_OK;
}

/* c * tanh(x * f) with c * f = 1 is the soft-cap c of x; else c * tanh(x * f) = cap(c f x). */
static bool uncap(ox_opt *o, const ox_node *n, ox_value_id *v, scores *s)
{
    ox_value_id t, x;
    float c, f = 1.0f;
    if (s->cap != 0.0f || !scaled(o, n, &t, &c)) return false;
    const ox_node *tanh_node = ox_opt_producer(o, t);
    if (!ox_node_is(tanh_node, "Tanh") || c <= 0.0f) return false;
    x = ox_node_in(tanh_node, 0);
    (void)scaled(o, ox_opt_producer(o, x), &x, &f);
    s->cap = c * (float)s->scale;
    s->scale *= (double)c * (double)f;
    *v = x;
    return true;
}

/* From the softmax's operand back to the product of queries and keys. */
static ox_status read_scores(ox_opt *o, ox_value_id v, scores *s, bool *found)
{
    *found = false;
    for (int i = 0; i < STEPS; i++) {
        const ox_node *n = ox_opt_producer(o, v);
        float c;
        bool ok;
        if (ox_node_is(n, "MatMul") && n->n_inputs == 2) {
            s->q = ox_node_in(n, 0);
            s->k_turned = ox_node_in(n, 1);
            *found = true;
            return OX_OK;
        }
        OX_TRY(unmask(o, n, &v, s, &ok));
        if (ok || uncap(o, n, &v, s)) continue;
        if (!scaled(o, n, &v, &c)) return OX_OK;
        s->scale *= (double)c;
    }
    return OX_OK;
}

static bool perm_is(const ox_node *n, const int64_t *perm, size_t k)
{
    const ox_attr *a = n ? ox_node_attr(n, "perm") : NULL;
    return ox_node_is(n, "Transpose") && a && a->type == OX_ATTR_INTS && a->n == k &&
           !memcmp(a->ints, perm, k * sizeof(*perm));
}

/* v = Reshape(x, shape) where that step's shape is `want`. */
static bool reshape_is(ox_opt *o, const ox_node *n, const int64_t *want, size_t k)
{
    int64_t shape[8];
    size_t got;
    if (!ox_node_is(n, "Reshape")) return false;
    if (!ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, shape, OX_COUNT(shape), &got) || got != k)
        return false;
    for (size_t i = 0; i < k; i++)
        if (shape[i] != want[i] && shape[i] != -1) return false;
    return true;
}

/* The keys behind their transposed form; factors on the way go to *scale. */
static ox_saying keys_of(ox_opt *o, ox_value_id v, double *scale)
{
    static const int64_t perm4[] = {0, 1, 3, 2}, perm3[] = {0, 2, 1};
    const ox_saying none = {.v = OX_NO_VALUE};
    int64_t dims[OX_RANK_MAX];
    float c;
    const ox_node *n = ox_opt_producer(o, v);
    if (scaled(o, n, &v, &c)) {
        *scale *= (double)c;
        n = ox_opt_producer(o, v);
    }
    if (perm_is(n, perm4, 4)) {
        v = ox_node_in(n, 0);
    } else { /* through [heads, keys, head] */
        const ox_node *out = n;
        const ox_node *turn =
            ox_node_is(out, "Reshape") ? ox_opt_producer(o, ox_node_in(out, 0)) : NULL;
        const ox_node *in =
            perm_is(turn, perm3, 3) ? ox_opt_producer(o, ox_node_in(turn, 0)) : NULL;
        if (!ox_node_is(in, "Reshape")) return none;
        v = ox_node_in(in, 0);
        if (ox_opt_dims(o, v, PAST, ROWS, dims) != 4) return none;
        const int64_t flat[3] = {dims[1], dims[2], dims[3]};
        const int64_t turned[4] = {1, dims[1], dims[3], dims[2]};
        if (!reshape_is(o, in, flat, 3) || !reshape_is(o, out, turned, 4)) return none;
    }
    if (scaled(o, ox_opt_producer(o, v), &v, &c)) *scale *= (double)c;
    return ox_opt_said_keys(o, ox_opt_bare(o, v));
}

ox_status ox_opt_score_chain(ox_opt *o, const ox_node *n)
{
    ox_opt_attend a = {.term = ox_term_init(OX_TERM_ATTEND)};
    scores s = {.mask = OX_NO_VALUE, .scale = 1};
    ox_saying inner;
    bool ok;
    const ox_node *softmax = softmax_of(o, ox_node_in(n, 0));
    if (!softmax) return OX_OK;
    OX_TRY(read_scores(o, ox_node_in(softmax, 0), &s, &ok));
    if (!ok) return ox_opt_refuse(o, "the scores before its softmax are not recognised");
    a.past_k = a.past_v = a.present_k = a.present_v = OX_NO_VALUE;
    a.q = ox_opt_said(o, s.q);
    a.k = keys_of(o, s.k_turned, &s.scale);
    if (!ox_opt_in_keys(o, n, 1, &a.v)) return OX_OK;
    if (!ox_value_is(a.q.v) || !ox_value_is(a.k.v)) {
        o->now.blame = ox_value_is(a.q.v) ? s.k_turned : s.q;
        return OX_OK;
    }
    const ox_term *t = ox_opt_term_of(o, a.q, &inner);
    if (t && t->kind == OX_TERM_SCALE && t->softcap == 0.0f) {
        s.scale *= (double)t->scale;
        a.q = inner;
    }
    if (!a.q.heads_first || !a.k.heads_first || !a.v.heads_first)
        return ox_opt_refuse(o, "the heads do not stand first");
    a.term.n_heads = a.q.width / a.q.last;
    a.term.scale = (float)s.scale;
    a.term.softcap = s.cap;
    OX_TRY(ox_opt_attend_mask(o, &a, s.mask, false, &ok));
    if (!ok || !ox_opt_attend_keys(o, &a, a.term.n_heads)) return OX_OK;
    return ox_opt_attend_say(o, n, &a);
}
