/* qlinear.h - products of int8 activations with packed 4- and 8-bit weights ("int8 class").
 *
 * For every row r and column c, over blocks b in ascending order:
 *
 *   dot  = sum_k q_x[r][k] * (q_w[c][k] - zero)          exact int32; zero = 0 for ZERO_MIN
 *   acc  = fmaf((float)dot, s_w * s_x, acc)
 *   acc  = fmaf(m_w, s_x * (float)sum_x, acc)            ZERO_MIN only
 *
 * With two planes of x, dot and sum_x are 256 times plane 0's plus plane 1's (int32 still: at most
 * 32 * 255 * 32640), and s_x is plane 1's scale. Then  y = act(acc + bias) + add,  with pairs
 * y = act(acc_gate + bias_gate) * (acc_up + bias_up) + add. One formula for every shape: a row's
 * bits depend neither on the number of rows, nor on the split into units, nor on the tier. */
#ifndef OX_KERNEL_QLINEAR_H
#define OX_KERNEL_QLINEAR_H
#include "kernel/kernel.h"
#include "kernel/qlinear/pack.h"
#include "kernel/quantize/quantize.h"

typedef enum ox_qlinear_act { /* same order as the term's activations, behind NONE */
                              OX_QLINEAR_NONE,
                              OX_QLINEAR_SILU,
                              OX_QLINEAR_GELU,
                              OX_QLINEAR_GELU_TANH,
                              OX_QLINEAR_QUICK_GELU,
                              OX_QLINEAR_RELU,
                              OX_QLINEAR_RELU2,
} ox_qlinear_act;

typedef struct ox_qlinear_args {
    const ox_qpack *w;
    const ox_qact *x; /* k, block and bits of w; NULL in family qexact */
    const float *xf;  /* qexact: [rows, k], ldx floats between rows; NULL here */
    size_t ldx;
    size_t rows;       /* computes the first rows of x */
    float *y;          /* [rows, w->n_out], ldy floats between rows */
    const float *bias; /* [w->n] or NULL */
    const float *add;  /* [rows, w->n_out], ldadd floats between rows; may equal y; or NULL */
    size_t ldy, ldadd;
    ox_qlinear_act act; /* of the gate with pairs, else of the whole */
} ox_qlinear_args;

/* Computes units [begin, end): output columns [32*begin, min(32*end, n_out)) of every row. */
typedef void ox_qlinear_fn(const ox_qlinear_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_qlinear_rows[];
bool ox_qlinear_amx_accepts(const void *args);

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_qlinear_fn fn;
#include "kernel/qlinear/kernels.def"
#undef OX_CPU_KERNEL
#endif
