/* add.c - sums of two rows: residual connections. */
#include "opt/opt_internal.h"

ox_status ox_opt_add(ox_opt *o, const ox_node *n)
{
    const ox_term t = ox_term_init(OX_TERM_ADD);
    ox_saying x[2], y;
    if (!ox_opt_in(o, n, 0, &x[0]) || !ox_opt_in(o, n, 1, &x[1])) return OX_OK;
    if (x[0].heads_first != x[1].heads_first || x[0].last != x[1].last)
        return ox_opt_refuse(o, "a sum of two values of different shapes");
    OX_TRY(ox_opt_term(o, n, "", &t, x, 2, &y));
    ox_opt_say(o, n, 0, y);
    return OX_OK;
}
