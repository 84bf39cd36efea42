/* split.c - parts of a row: Split and Slice along the channels. */
#include "opt/opt_internal.h"

enum { PARTS_MAX = 16, PAST = 5, ROWS = 7 };

ox_status ox_opt_slice(ox_opt *o, const ox_node *n, const char *suffix, int32_t first,
                       int32_t width, ox_saying x, ox_saying *out)
{
    ox_term t = ox_term_init(OX_TERM_SLICE);
    if (first == 0 && width == x.width) {
        *out = x;
        return OX_OK;
    }
    t.first = first;
    t.width = width;
    OX_TRY(ox_opt_term(o, n, suffix, &t, &x, 1, out));
    out->last = out->width;
    return OX_OK;
}

static bool is_last_axis(const ox_opt *o, const ox_node *n, int64_t axis)
{
    const ox_value *x = ox_graph_value(o->old, ox_node_in(n, 0));
    return axis == -1 || (x->rank > 0 && axis == x->rank - 1) || (x->rank <= 0 && axis == 2);
}

/* Widths of a Split's outputs; false = not known. */
static bool split_sizes(ox_opt *o, const ox_node *n, int32_t width, int64_t *sizes)
{
    const ox_attr *a = ox_node_attr(n, "split");
    size_t k;
    if (n->n_outputs == 0 || n->n_outputs > PARTS_MAX) return false;
    if (ox_node_has(n, 1))
        return ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, sizes, PARTS_MAX, &k) &&
               k == n->n_outputs;
    if (a && a->type == OX_ATTR_INTS) {
        for (uint32_t i = 0; i < n->n_outputs && a->n == n->n_outputs; i++)
            sizes[i] = a->ints[i];
        return a->n == n->n_outputs;
    }
    const int64_t parts = ox_node_int(n, "num_outputs", n->n_outputs);
    if (parts != (int64_t)n->n_outputs) return false;
    const int64_t each = (width + parts - 1) / parts;
    for (int64_t i = 0; i < parts; i++)
        sizes[i] = i + 1 < parts ? each : width - each * (parts - 1);
    return true;
}

ox_status ox_opt_split(ox_opt *o, const ox_node *n)
{
    int64_t sizes[PARTS_MAX] = {0}, first = 0;
    ox_saying x, y;
    if (!ox_opt_in_rows(o, n, 0, &x)) return OX_OK;
    if (!is_last_axis(o, n, ox_node_int(n, "axis", 0)) || x.last != x.width)
        return ox_opt_refuse(o, "it splits something else than the channels of a row");
    if (!split_sizes(o, n, x.width, sizes)) return ox_opt_refuse(o, "the parts are not constant");
    for (uint32_t i = 0; i < n->n_outputs; i++) {
        char suffix[16] = {'/', (char)('a' + i)};
        if (sizes[i] <= 0 || sizes[i] > x.width - first)
            return ox_opt_refuse(o, "the parts do not fit the row");
        OX_TRY(ox_opt_slice(o, n, suffix, (int32_t)first, (int32_t)sizes[i], x, &y));
        ox_opt_say(o, n, i, y);
        first += sizes[i];
    }
    return OX_OK;
}

ox_status ox_opt_slice_channels(ox_opt *o, const ox_node *n)
{
    int64_t from[1], to[1], axis[1], step[1] = {1};
    size_t k[4] = {0};
    ox_saying x, y;
    if (!ox_opt_in_rows(o, n, 0, &x)) return OX_OK;
    if (!ox_opt_shape(o, ox_node_in(n, 1), PAST, ROWS, from, 1, &k[0]) || k[0] != 1 ||
        !ox_opt_shape(o, ox_node_in(n, 2), PAST, ROWS, to, 1, &k[1]) || k[1] != 1 ||
        !ox_opt_shape(o, ox_node_in(n, 3), PAST, ROWS, axis, 1, &k[2]) || k[2] != 1)
        return ox_opt_refuse(o, "its bounds are not constant");
    if (ox_node_has(n, 4) &&
        (!ox_opt_shape(o, ox_node_in(n, 4), PAST, ROWS, step, 1, &k[3]) || step[0] != 1))
        return ox_opt_refuse(o, "it takes every other channel");
    if (!is_last_axis(o, n, axis[0]) || x.last != x.width)
        return ox_opt_refuse(o, "it cuts something else than the channels of a row");
    if (from[0] < 0) from[0] += x.width;
    if (to[0] < 0) to[0] += x.width;
    if (to[0] > x.width) to[0] = x.width;
    if (from[0] < 0 || to[0] <= from[0]) return ox_opt_refuse(o, "its bounds do not fit the row");
    OX_TRY(ox_opt_slice(o, n, "", (int32_t)from[0], (int32_t)(to[0] - from[0]), x, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}
