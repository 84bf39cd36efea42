/* standard_attention.c - Attention of the standard domain (version 23 on), in either layout,
 * causal by itself or by its mask. */
#include "opt/opt_internal.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS };

static int64_t heads_of(const ox_node *n, const char *attribute, const ox_saying *x)
{
    return ox_node_int(n, attribute, x->heads_first ? x->width / x->last : 0);
}

ox_status ox_opt_standard_attention(ox_opt *o, const ox_node *n)
{
    ox_opt_attend a = {.term = ox_term_init(OX_TERM_ATTEND)};
    if (!ox_str_is(n->domain, "")) return ox_opt_refuse(o, "it packs its projections");
    if (!ox_opt_in(o, n, Q, &a.q) || !ox_opt_in_keys(o, n, K, &a.k) ||
        !ox_opt_in_keys(o, n, V, &a.v))
        return OX_OK;
    const int64_t heads = heads_of(n, "q_num_heads", &a.q);
    int64_t kv = heads_of(n, "kv_num_heads", &a.k);
    bool ok;
    const int64_t left = ox_node_int(n, "left_window_size", -1);
    if (a.q.heads_first != a.k.heads_first || a.q.heads_first != a.v.heads_first)
        return ox_opt_refuse(o, "its operands have different layouts");
    if (ox_node_has(n, LENGTHS)) return ox_opt_refuse(o, "its keys are whole caches");
    if (ox_node_wants(n, 3) && ox_graph_uses(o->old, n->outputs[3]))
        return ox_opt_refuse(o, "its scores are used");
    if (heads <= 0 || kv <= 0 || heads > 1 << 16 || kv > 1 << 16)
        return ox_opt_refuse(o, "the head counts are not known");
    a.term.n_heads = (int32_t)heads;
    a.term.n_kv_heads = (int32_t)kv;
    a.term.scale = ox_node_float(n, "scale", 0.0f);
    a.term.softcap = ox_node_float(n, "softcap", 0.0f);
    a.term.window = left >= 0 && left < INT32_MAX - 1 ? (int32_t)left + 1 : 0;
    OX_TRY(
        ox_opt_attend_mask(o, &a, ox_node_in(n, MASK), ox_node_int(n, "is_causal", 0) != 0, &ok));
    if (!ok) return OX_OK;
    a.past_k = ox_node_in(n, PAST_K);
    a.past_v = ox_node_in(n, PAST_V);
    a.present_k = n->n_outputs > 1 ? n->outputs[1] : OX_NO_VALUE;
    a.present_v = n->n_outputs > 2 ? n->outputs[2] : OX_NO_VALUE;
    if (a.k.heads_first) {
        kv *= a.k.kv ? a.k.kv->repeat : 1;
        if (!ox_opt_attend_keys(o, &a, kv)) return OX_OK;
    }
    if (a.k.kv || a.v.kv) return ox_opt_refuse(o, "its keys have a past in another layout");
    return ox_opt_attend_say(o, n, &a);
}
