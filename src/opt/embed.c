/* embed.c - rows of a table by token id: Gather of a float table (also tied through a Transpose),
 * GatherBlockQuantized of a block-quantised one (also tied through a Reshape). */
#include "opt/opt_internal.h"

/* v is the graph's token ids, perhaps through casts and reshapes. */
static bool is_ids(const ox_opt *o, ox_value_id v)
{
    for (int i = 0; i < 16 && ox_value_is(v); i++) {
        if (ox_value_is(o->ids) && v.i == o->ids.i) return true;
        const ox_node *n = ox_opt_producer(o, v);
        if (!n || !ox_node_has(n, 0)) return false;
        if (!ox_node_is(n, "Cast") && !ox_node_is(n, "Identity") && !ox_node_is(n, "Reshape"))
            return false;
        v = ox_node_in(n, 0);
    }
    return false;
}

static ox_status say_rows_of(ox_opt *o, const ox_node *n, const ox_weight *table)
{
    ox_term t = ox_term_init(OX_TERM_EMBED);
    ox_saying y;
    const ox_saying ids = {.v = o->g->inputs.p[0], .width = 1, .last = 1};
    t.weight = table;
    OX_TRY(ox_opt_term(o, n, "", &t, &ids, 1, &y));
    y.last = y.width;
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}

ox_status ox_opt_embed_gather(ox_opt *o, const ox_node *n)
{
    const ox_weight *table;
    if (!is_ids(o, ox_node_in(n, 1))) return OX_OK;
    if (ox_node_int(n, "axis", 0) != 0) return ox_opt_refuse(o, "it gathers columns by token id");
    OX_TRY(ox_opt_table(o, ox_node_in(n, 0), &table));
    if (!table) return ox_opt_refuse(o, "the table is not a constant float matrix");
    return say_rows_of(o, n, table);
}

ox_status ox_opt_embed_blocks(ox_opt *o, const ox_node *n)
{
    const ox_weight *table;
    if (!is_ids(o, ox_node_in(n, 1))) return ox_opt_refuse(o, "the indices are not the token ids");
    OX_TRY(ox_opt_gathered_blocks(o, n, &table));
    if (!table) return o->now.reason ? OX_OK : ox_opt_refuse(o, "the table is not constant");
    return say_rows_of(o, n, table);
}
