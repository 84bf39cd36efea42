/* group_attention.c - GroupQueryAttention: packed or separate operands, its own normalisation and
 * rotation of heads, window, soft-cap, sinks. Lengths (operands 5 and 6) follow from the step. */
#include "opt/opt_internal.h"

enum { Q, K, V, PAST_K, PAST_V, COS = 7, SIN, POSITIONS, BIAS, SINK, Q_NORM = 14, K_NORM };

/* Query, key and value as three sayings; false = an operand is missing or a reason is left. */
static ox_status operands(ox_opt *o, const ox_node *n, ox_opt_attend *a, bool *ok)
{
    ox_saying x;
    const int32_t heads = a->term.n_heads, kv = a->term.n_kv_heads;
    *ok = false;
    if (!ox_opt_in_rows(o, n, Q, &x)) return OX_OK;
    if (ox_node_has(n, K)) {
        a->q = x;
        *ok = ox_opt_in_rows(o, n, K, &a->k) && ox_opt_in_rows(o, n, V, &a->v);
        return OX_OK;
    }
    const int64_t all = (int64_t)heads + 2 * (int64_t)kv;
    if (x.width % all) return ox_opt_refuse(o, "the packed row does not divide into its heads");
    const int32_t head = (int32_t)(x.width / all);
    OX_TRY(ox_opt_slice(o, n, "/q", 0, heads * head, x, &a->q));
    OX_TRY(ox_opt_slice(o, n, "/k", heads * head, kv * head, x, &a->k));
    OX_TRY(ox_opt_slice(o, n, "/v", (heads + kv) * head, kv * head, x, &a->v));
    *ok = true;
    return OX_OK;
}

static ox_status normalise(ox_opt *o, const ox_node *n, ox_opt_attend *a)
{
    const float epsilon = ox_node_float(n, "qk_norm_epsilon", 1e-6f);
    if (ox_node_has(n, Q_NORM))
        OX_TRY(ox_opt_head_norm(o, n, "/q_norm", ox_node_in(n, Q_NORM), epsilon, &a->q));
    if (ox_node_has(n, K_NORM))
        OX_TRY(ox_opt_head_norm(o, n, "/k_norm", ox_node_in(n, K_NORM), epsilon, &a->k));
    return OX_OK;
}

static ox_status turn(ox_opt *o, const ox_node *n, ox_opt_attend *a, bool *ok)
{
    const ox_rotary *r;
    *ok = !ox_node_int(n, "do_rotary", 0) || !ox_node_has(n, COS);
    if (*ok) return OX_OK;
    if (ox_node_has(n, POSITIONS) && !ox_opt_plain_positions(o, ox_node_in(n, POSITIONS)))
        return ox_opt_refuse(o, "its positions are not the graph's position ids");
    const bool interleaved = ox_node_int(n, "rotary_interleaved", 0) != 0;
    OX_TRY(ox_opt_rotary(o, ox_node_in(n, COS), ox_node_in(n, SIN), interleaved, &r));
    if (!r) return ox_opt_refuse(o, "its cosines and sines are not constant tables");
    OX_TRY(ox_opt_rotate(o, n, "/q_rotate", r, a->term.n_heads, a->q, &a->q));
    OX_TRY(ox_opt_rotate(o, n, "/k_rotate", r, a->term.n_kv_heads, a->k, &a->k));
    *ok = true;
    return OX_OK;
}

/* smooth_softmax = 1 adds a score of 0 to every head's sum. */
static ox_status sinks_of(ox_opt *o, const ox_node *n, ox_term *t, bool *ok)
{
    *ok = true;
    if (ox_node_has(n, SINK)) {
        OX_TRY(ox_opt_vector(o, ox_node_in(n, SINK), &t->sinks));
        *ok = t->sinks && t->sinks->cols == t->n_heads;
        return *ok ? OX_OK : ox_opt_refuse(o, "the sinks are not a constant for each head");
    }
    if (ox_node_int(n, "smooth_softmax", -1) != 1) return OX_OK;
    const float *zero = ox_arena_take_n(o->arena, (size_t)t->n_heads, sizeof(*zero));
    if (!zero) return OX_FAIL(o->err, OX_NO_MEMORY, "no memory for sinks");
    const ox_weight w = {.name = OX_STR("smooth softmax"),
                         .format = OX_FORMAT_F32,
                         .rows = 1,
                         .cols = t->n_heads,
                         .data = zero,
                         .bytes = (size_t)t->n_heads * sizeof(*zero)};
    return ox_opt_share(o, &w, &t->sinks);
}

ox_status ox_opt_group_attention(ox_opt *o, const ox_node *n)
{
    ox_opt_attend a = {.term = ox_term_init(OX_TERM_ATTEND)};
    const int64_t heads = ox_node_int(n, "num_heads", 0), kv = ox_node_int(n, "kv_num_heads", 0);
    const int64_t window = ox_node_int(n, "local_window_size", -1);
    bool ok;
    if (heads <= 0 || kv <= 0 || heads > 1 << 16 || kv > heads || heads % kv)
        return ox_opt_refuse(o, "num_heads and kv_num_heads do not fit");
    if (!ox_node_int(n, "causal", 1)) return ox_opt_refuse(o, "it is not causal");
    if (ox_node_wants(n, 3) && ox_graph_uses(o->old, n->outputs[3]))
        return ox_opt_refuse(o, "its scores are used");
    a.term.n_heads = (int32_t)heads;
    a.term.n_kv_heads = (int32_t)kv;
    a.term.scale = ox_node_float(n, "scale", 0.0f);
    a.term.softcap = ox_node_float(n, "softcap", 0.0f);
    a.term.window = window > 0 && window < INT32_MAX ? (int32_t)window : 0;
    OX_TRY(ox_opt_attend_mask(o, &a, ox_node_in(n, BIAS), true, &ok));
    if (!ok) return OX_OK;
    OX_TRY(operands(o, n, &a, &ok));
    if (!ok) return OX_OK;
    OX_TRY(sinks_of(o, n, &a.term, &ok));
    if (!ok) return OX_OK;
    OX_TRY(normalise(o, n, &a));
    OX_TRY(turn(o, n, &a, &ok));
    if (!ok) return OX_OK;
    a.past_k = ox_node_in(n, PAST_K);
    a.past_v = ox_node_in(n, PAST_V);
    a.present_k = n->n_outputs > 1 ? n->outputs[1] : OX_NO_VALUE;
    a.present_v = n->n_outputs > 2 ? n->outputs[2] : OX_NO_VALUE;
    return ox_opt_attend_say(o, n, &a);
}
