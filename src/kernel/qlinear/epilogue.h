/* epilogue.h - from 32 accumulated columns to y: bias, activation, gate * up, residual. Written in
 * the simd/ vocabulary; include a simd header first. Shared by qlinear and qexact, all tiers. */
#ifndef OX_KERNEL_QLINEAR_EPILOGUE_H
#define OX_KERNEL_QLINEAR_EPILOGUE_H
#include "kernel/act/lanes.h"
#include "kernel/qlinear/qlinear.h"

#include <assert.h>

static_assert(OX_QLINEAR_SILU == OX_ACT_SILU + 1 && OX_QLINEAR_RELU2 == OX_ACT_RELU2 + 1,
              "the activations behind NONE are those of kernel/act, in order");

static vf activate(ox_qlinear_act act, vf x)
{
    switch (act) {
    case OX_QLINEAR_NONE: break;
    case OX_QLINEAR_SILU: return act_lanes(OX_ACT_SILU, x);
    case OX_QLINEAR_GELU: return act_lanes(OX_ACT_GELU, x);
    case OX_QLINEAR_GELU_TANH: return act_lanes(OX_ACT_GELU_TANH, x);
    case OX_QLINEAR_QUICK_GELU: return act_lanes(OX_ACT_QUICK_GELU, x);
    case OX_QLINEAR_RELU: return act_lanes(OX_ACT_RELU, x);
    case OX_QLINEAR_RELU2: return act_lanes(OX_ACT_RELU2, x);
    }
    return x;
}

/* Row r, columns 32*unit ... of y out of c[32] (and up[32] with pairs). */
static void finish_row(const ox_qlinear_args *a, size_t unit, size_t r, const float *c,
                       const float *up)
{
    const size_t first = unit * OX_QPACK_COLS, n_out = a->w->n_out;
    for (size_t i = 0; i < OX_QPACK_COLS && first + i < n_out; i += VF_N) {
        const size_t col = first + i, n = n_out - col < VF_N ? n_out - col : VF_N;
        vf v = vf_load(c + i);
        if (a->bias) v = vf_add(v, vf_load_n(a->bias + col, n));
        if (a->act) v = activate(a->act, v);
        if (a->w->pairs) {
            vf u = vf_load(up + i);
            if (a->bias) u = vf_add(u, vf_load_n(a->bias + n_out + col, n));
            v = vf_mul(v, u);
        }
        if (a->add) v = vf_add(v, vf_load_n(a->add + r * a->ldadd + col, n));
        vf_store_n(a->y + r * a->ldy + col, v, n);
    }
}
#endif
