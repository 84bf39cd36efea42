/* window.h - windows sliding over the spatial axes of [N, C, d1, d2, ...]: what convolutions and
 * pools share. */
#ifndef OX_OPS_WINDOW_H
#define OX_OPS_WINDOW_H
#include "ops/op_internal.h"

enum { OX_SPACE_MAX = OX_RANK_MAX - 2 };

typedef struct ox_window {
    int32_t n; /* spatial axes */
    int64_t in[OX_SPACE_MAX], out[OX_SPACE_MAX];
    int64_t size[OX_SPACE_MAX], stride[OX_SPACE_MAX], dilation[OX_SPACE_MAX];
    int64_t begin[OX_SPACE_MAX], end[OX_SPACE_MAX]; /* padding */
} ox_window;

/* Reads kernel_shape (or `size` when the attribute is absent, NULL = none), strides, dilations,
 * pads, auto_pad; checks them against x [N, C, ...]. out is not worked out yet. */
ox_status ox_window_open(ox_op_ctx *c, const ox_tensor *x, const int64_t *size, ox_window *w);
/* Output lengths of a forward pass, auto_pad and ceil_mode included. */
ox_status ox_window_forward(ox_op_ctx *c, ox_window *w);

/* Input index of element k of the window at `at`; -1 = in the padding. */
static inline int64_t ox_window_index(const ox_window *w, const int64_t *at, const int64_t *k)
{
    int64_t i = 0;
    for (int32_t a = 0; a < w->n; a++) {
        const int64_t p = at[a] * w->stride[a] - w->begin[a] + k[a] * w->dilation[a];
        if (p < 0 || p >= w->in[a]) return -1;
        i = i * w->in[a] + p;
    }
    return i;
}
#endif
