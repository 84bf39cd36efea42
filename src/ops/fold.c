/* fold.c - see fold.h. */
#include "ops/fold.h"

ox_status ox_graph_fold(ox_graph *g, size_t max_bytes, ox_err *err)
{
    (void)g;
    (void)max_bytes;
    (void)err;
    return OX_OK;
}
