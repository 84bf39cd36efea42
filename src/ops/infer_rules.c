/* infer_rules.c - type and shape rules. */
#include "ops/op_internal.h"

ox_status ox_op_infer_none(ox_infer_ctx *c)
{
    (void)c;
    return OX_OK;
}
