/* rotate.c - rotary positions as their own operator: the com.microsoft form (x, positions, cos,
 * sin) and the standard one (x, cos, sin, positions). */
#include "opt/opt_internal.h"

/* v numbers the rows of that step: n_past, n_past + 1, ..., or gives n_past as a start. */
static bool numbers_rows(ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows)
{
    int64_t p[8];
    size_t n;
    if (!ox_opt_shape(o, v, n_past, n_rows, p, OX_COUNT(p), &n)) return false;
    if (n != 1 && n != (size_t)n_rows) return false;
    for (size_t i = 0; i < n; i++)
        if (p[i] != n_past + (int64_t)i) return false;
    return true;
}

bool ox_opt_plain_positions(ox_opt *o, ox_value_id v)
{
    if (!ox_value_is(v)) return false;
    if (v.i == o->positions.i) return true;
    return numbers_rows(o, v, 0, 5) && numbers_rows(o, v, 7, 3);
}

ox_status ox_opt_rotate(ox_opt *o, const ox_node *n, const char *suffix, const ox_rotary *r,
                        int32_t n_heads, ox_saying x, ox_saying *out)
{
    ox_term t = ox_term_init(OX_TERM_ROTATE);
    *out = (ox_saying){.v = OX_NO_VALUE};
    if (!ox_value_is(x.v)) return OX_OK;
    if (n_heads <= 0 || x.width % n_heads)
        return ox_opt_refuse(o, "%d channels do not make %d heads", (int)x.width, (int)n_heads);
    t.rotary = r;
    t.n_heads = n_heads;
    t.head_size = x.width / n_heads;
    return ox_opt_term(o, n, suffix, &t, &x, 1, out);
}

ox_status ox_opt_rotary_embedding(ox_opt *o, const ox_node *n)
{
    const bool standard = !ox_str_is(n->domain, "com.microsoft");
    const ox_value_id cos = ox_node_in(n, standard ? 1 : 2), sin = ox_node_in(n, standard ? 2 : 3);
    const ox_value_id positions = ox_node_in(n, standard ? 3 : 1);
    const int64_t width = ox_node_int(n, "rotary_embedding_dim", 0);
    const bool interleaved = ox_node_int(n, "interleaved", 0) != 0;
    int64_t heads = ox_node_int(n, "num_heads", 0);
    const ox_rotary *r;
    ox_saying x, y;
    if (!ox_opt_in(o, n, 0, &x)) return OX_OK;
    if (ox_node_float(n, "scale", 1.0f) != 1.0f || ox_node_int(n, "is_packed_batching", 0))
        return ox_opt_refuse(o, "scale or is_packed_batching is set");
    if (ox_value_is(positions) && !ox_opt_plain_positions(o, positions))
        return ox_opt_refuse(o, "its positions are not the graph's position ids");
    if (ox_value_is(positions))
        OX_TRY(ox_opt_rotary(o, cos, sin, interleaved, &r));
    else
        OX_TRY(ox_opt_rotary_computed(o, cos, sin, false, interleaved, &r));
    if (!r) return ox_opt_refuse(o, "its cosines and sines do not follow from positions");
    if (width != 0 && width != r->rotary)
        return ox_opt_refuse(o, "rotary_embedding_dim is not the width of the tables");
    if (x.heads_first || x.last != x.width)
        heads = x.width / x.last;
    else if (heads == 0)
        heads = x.width / r->rotary; /* the whole head turns */
    OX_TRY(ox_opt_rotate(o, n, "", r, heads > INT32_MAX ? 0 : (int32_t)heads, x, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}
