/* window.c - see window.h. */
#include "ops/window.h"

static ox_status list_of(ox_op_ctx *c, const char *name, int want, int64_t otherwise, int64_t least,
                         int64_t *list)
{
    int64_t given[OX_OP_LIST];
    int n;
    OX_TRY(ox_op_attr_list(c, name, given, &n));
    if (n >= 0 && n != want) return OP_FAIL(c, "%s has %d entries, not %d", name, n, want);
    for (int i = 0; i < want; i++) {
        list[i] = n < 0 ? otherwise : given[i];
        if (list[i] < least || list[i] > INT32_MAX)
            return OP_FAIL(c, "%s has the entry %lld", name, (long long)list[i]);
    }
    return OX_OK;
}

ox_status ox_window_open(ox_op_ctx *c, const ox_tensor *x, const int64_t *size, ox_window *w)
{
    int64_t pads[2 * OX_SPACE_MAX] = {0};
    *w = (ox_window){.n = x->rank - 2};
    if (w->n < 1 || w->n > OX_SPACE_MAX)
        return OP_FAIL(c, "needs an input [N, C, ...], not %d dimensions", x->rank);
    if (!size && !ox_node_attr(c->node, "kernel_shape")) return OP_FAIL(c, "has no kernel_shape");
    OX_TRY(list_of(c, "kernel_shape", w->n, 1, 1, w->size));
    if (!ox_node_attr(c->node, "kernel_shape") && size)
        memcpy(w->size, size, sizeof(int64_t) * (size_t)w->n);
    OX_TRY(list_of(c, "strides", w->n, 1, 1, w->stride));
    OX_TRY(list_of(c, "dilations", w->n, 1, 1, w->dilation));
    OX_TRY(list_of(c, "pads", 2 * w->n, 0, 0, pads));
    for (int32_t i = 0; i < w->n; i++) {
        w->in[i] = x->dims[2 + i];
        w->begin[i] = pads[i];
        w->end[i] = pads[w->n + i];
        if (w->in[i] > INT32_MAX || w->size[i] < 1 || w->size[i] > INT32_MAX)
            return OP_FAIL(c, "has an empty window or too large an input");
    }
    return OX_OK;
}

ox_status ox_window_forward(ox_op_ctx *c, ox_window *w)
{
    const ox_str pad = ox_node_str(c->node, "auto_pad", "NOTSET");
    const bool upper = ox_str_is(pad, "SAME_UPPER"), same = upper || ox_str_is(pad, "SAME_LOWER");
    const bool up = ox_node_int(c->node, "ceil_mode", 0) != 0;
    for (int32_t i = 0; i < w->n; i++) {
        const int64_t extent = (w->size[i] - 1) * w->dilation[i] + 1;
        if (ox_str_is(pad, "VALID")) w->begin[i] = w->end[i] = 0;
        if (same) {
            w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
            int64_t all = (w->out[i] - 1) * w->stride[i] + extent - w->in[i];
            if (all < 0) all = 0;
            w->begin[i] = upper ? all / 2 : all - all / 2;
            w->end[i] = all - w->begin[i];
            continue;
        }
        const int64_t room = w->in[i] + w->begin[i] + w->end[i] - extent;
        if (room < 0)
            return OP_FAIL(c, "its window of %lld does not fit axis %d", (long long)extent, i);
        w->out[i] = (up ? room + w->stride[i] - 1 : room) / w->stride[i] + 1;
        /* A window that would start behind the input and its left padding is no window. */
        if (up && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->begin[i]) w->out[i]--;
    }
    return OX_OK;
}
