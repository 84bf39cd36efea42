/* head_attention.c - MultiHeadAttention (com.microsoft), causal by itself or by its mask. Keys and
 * values come as rows, or with heads first and their past already in front. */
#include "opt/opt_internal.h"

enum { Q, K, V, BIAS, PADDING, SCORES_BIAS, PAST_K, PAST_V, PAST_LENGTH, INDIRECTION };

ox_status ox_opt_head_attention(ox_opt *o, const ox_node *n)
{
    ox_opt_attend a = {.term = ox_term_init(OX_TERM_ATTEND)};
    const int64_t heads = ox_node_int(n, "num_heads", 0);
    bool ok;
    if (!ox_opt_in_rows(o, n, Q, &a.q)) return OX_OK;
    if (!ox_node_has(n, K) || !ox_node_has(n, V))
        return ox_opt_refuse(o, "its queries, keys and values are packed");
    if (!ox_opt_in_keys(o, n, K, &a.k) || !ox_opt_in_keys(o, n, V, &a.v)) return OX_OK;
    if (heads <= 0 || heads > 1 << 16) return ox_opt_refuse(o, "num_heads is missing");
    if (ox_node_has(n, BIAS) || ox_node_has(n, PADDING) || ox_node_has(n, PAST_LENGTH) ||
        ox_node_has(n, INDIRECTION))
        return ox_opt_refuse(o, "it has a bias, a padding mask or a shared buffer");
    if (a.k.heads_first != a.v.heads_first) return ox_opt_refuse(o, "its keys and values differ");
    OX_TRY(ox_opt_attend_mask(o, &a, ox_node_in(n, SCORES_BIAS),
                              ox_node_int(n, "unidirectional", 0) != 0, &ok));
    if (!ok) return OX_OK;
    a.term.n_heads = a.term.n_kv_heads = (int32_t)heads;
    a.term.scale = ox_node_float(n, "scale", 0.0f);
    a.past_k = ox_node_in(n, PAST_K);
    a.past_v = ox_node_in(n, PAST_V);
    a.present_k = n->n_outputs > 1 ? n->outputs[1] : OX_NO_VALUE;
    a.present_v = n->n_outputs > 2 ? n->outputs[2] : OX_NO_VALUE;
    if (a.k.heads_first && !ox_opt_attend_keys(o, &a, heads)) return OX_OK;
    if (a.k.kv || a.v.kv) return ox_opt_refuse(o, "its keys have a past in another layout");
    return ox_opt_attend_say(o, n, &a);
}
