/* qexact.h - products of float32 activations with the packed weights of qlinear ("exact class").
 *
 * Same arguments as qlinear.h with xf in place of x. Order of every sum, over blocks in ascending
 * order, whatever the shape, split or SIMD tier:
 *
 *   s0 = fma chain over even k of x[k]*q[k], s1 over odd k;  s = s0 + s1
 *        (q the code; ZERO_MIDDLE: the code minus 2^(bits-1))
 *   ZERO_CODE: s = fma(-zero, sum_x, s)     sum_x: lanes k mod 16 added, then folded 8, 4, 2, 1
 *   acc = fma(s, s_w, acc);   ZERO_MIN: acc = fma(m_w, sum_x, acc)
 *
 * The reference sums w[k]*x[k] in double. Rows are independent. */
#ifndef OX_KERNEL_QEXACT_H
#define OX_KERNEL_QEXACT_H
#include "kernel/qlinear/qlinear.h"

typedef ox_qlinear_args ox_qexact_args;
typedef ox_qlinear_fn ox_qexact_fn;

extern const ox_kernel_row ox_qexact_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_qexact_fn fn;
#include "kernel/qexact/kernels.def"
#undef OX_CPU_KERNEL
#endif
