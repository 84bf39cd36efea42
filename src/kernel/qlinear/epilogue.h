/* epilogue.h - from 32 accumulated columns to y: bias, activation, gate * up, residual. Written in
 * the simd/ vocabulary; include a simd header first. Shared by qlinear and qexact, all tiers. */
#ifndef OX_KERNEL_QLINEAR_EPILOGUE_H
#define OX_KERNEL_QLINEAR_EPILOGUE_H
#include "base/compiler.h"
#include "kernel/act/lanes.h"
#include "kernel/qlinear/qlinear.h"

#include <assert.h>

static_assert(OX_QLINEAR_SILU == OX_ACT_SILU + 1 && OX_QLINEAR_RELU2 == OX_ACT_RELU2 + 1,
              "the activations behind NONE are those of kernel/act, in order");

static vf activate(ox_qlinear_act act, vf x)
{
    switch (act) {
    case OX_QLINEAR_NONE:
        break;
    case OX_QLINEAR_SILU:
        return act_lanes(OX_ACT_SILU, x);
    case OX_QLINEAR_GELU:
        return act_lanes(OX_ACT_GELU, x);
    case OX_QLINEAR_GELU_TANH:
        return act_lanes(OX_ACT_GELU_TANH, x);
    case OX_QLINEAR_QUICK_GELU:
        return act_lanes(OX_ACT_QUICK_GELU, x);
    case OX_QLINEAR_RELU:
        return act_lanes(OX_ACT_RELU, x);
    case OX_QLINEAR_RELU2:
        return act_lanes(OX_ACT_RELU2, x);
    }
    return x;
}

/* 16 columns from `col` on, n of them real (a constant 16 but at the edge). */
OX_INLINE void finish_lanes(const ox_qlinear_args *a, size_t col, size_t n, size_t r, vf v, vf u)
{
    if (a->bias) v = vf_add(v, n == VF_N ? vf_load(a->bias + col) : vf_load_n(a->bias + col, n));
    if (a->act) v = activate(a->act, v);
    if (a->w->pairs) {
        const float *bias = a->bias ? a->bias + a->w->n_out + col : NULL;
        if (bias) u = vf_add(u, n == VF_N ? vf_load(bias) : vf_load_n(bias, n));
        v = vf_mul(v, u);
    }
    if (a->add) {
        const float *add = a->add + r * a->ldadd + col;
        v = vf_add(v, n == VF_N ? vf_load(add) : vf_load_n(add, n));
    }
    float *y = a->y + r * a->ldy + col;
    if (n == VF_N)
        vf_store(y, v);
    else
        vf_store_n(y, v, n);
}

/* Row r, columns 32*unit ... of y out of c[32] (and up[32] with pairs). */
static void finish_row(const ox_qlinear_args *a, size_t unit, size_t r, const float *c,
                       const float *up)
{
    const size_t first = unit * OX_QPACK_COLS, n_out = a->w->n_out;
    for (size_t i = 0; i < OX_QPACK_COLS && first + i < n_out; i += VF_N) {
        const size_t col = first + i;
        const vf v = vf_load(c + i), u = a->w->pairs ? vf_load(up + i) : v;
        if (n_out - col >= VF_N)
            finish_lanes(a, col, VF_N, r, v, u);
        else
            finish_lanes(a, col, n_out - col, r, v, u);
    }
}
#endif
