/* math.h - elementary functions in the vector vocabulary. Include after avx2.h or avx512.h.
 *
 * Same coefficients and same order of operations on every tier, so AVX2 and AVX-512 agree bit for
 * bit. Coefficients are our own minimax fits (tools/fit-math.py prints them with their errors). */
#ifndef OX_SIMD_MATH_H
#define OX_SIMD_MATH_H

/* a + b*x; Horner steps read from the highest coefficient down */
static inline vf vf_step(vf acc, vf x, float a)
{
    return vf_fma(acc, x, vf_set1(a));
}

/* e^x within 1.1 ulp; NaN stays NaN, overflow gives +inf, the far left gives 0. */
static inline vf vf_exp(vf x)
{
    const vf c = vf_min(vf_set1(89.0f), vf_max(vf_set1(-104.0f), x));
    const vf n = vf_round(vf_mul(c, vf_set1(0x1.715476p+0f)));
    vf r = vf_fnma(n, vf_set1(0x1.62e430p-1f), c);
    r = vf_fnma(n, vf_set1(-0x1.05c610p-29f), r);
    vf p = vf_set1(0x1.6dbc4cp-10f);
    p = vf_step(p, r, 0x1.124136p-7f);
    p = vf_step(p, r, 0x1.555454p-5f);
    p = vf_step(p, r, 0x1.555488p-3f);
    p = vf_step(p, r, 0.5f);
    p = vf_fma(p, vf_mul(r, r), r);
    return vf_ldexp(vf_add(p, vf_set1(1.0f)), n);
}

/* tanh within 1.4 ulp */
static inline vf vf_tanh(vf x)
{
    const vf one = vf_set1(1.0f), two = vf_set1(2.0f), ax = vf_abs(x), s = vf_mul(x, x);
    vf p = vf_set1(-0x1.76abf4p-8f);
    p = vf_step(p, s, 0x1.5256cep-6f);
    p = vf_step(p, s, -0x1.b84448p-5f);
    p = vf_step(p, s, 0x1.110768p-3f);
    p = vf_step(p, s, -0x1.555534p-2f);
    const vf small = vf_fma(vf_mul(p, s), x, x);
    const vf e = vf_exp(vf_mul(two, ax));
    const vf large = vf_sub(one, vf_div(two, vf_add(e, one)));
    return vf_if_less(ax, vf_set1(0.625f), small, vf_copysign(large, x));
}

static inline vf vf_gate(vf x, vf t) /* x * sigmoid(t) = x / (1 + e^-t) */
{
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(vf_sub(vf_zero(), t))));
}

/* x * P(N(0,1) < x): with a = |x|, P(N < -a) = e^(-a*h(a)) / 2; h fitted on [0, 7], and a steeper
 * line behind. Error: a few ulp of x * P; 1e-11 * |x| beyond 7. */
static inline vf vf_gelu(vf x)
{
    const vf ax = vf_abs(x), a = vf_min(vf_set1(7.0f), ax);
    vf h = vf_set1(-0x1.0788b6p-30f);
    h = vf_step(h, a, 0x1.587daap-25f);
    h = vf_step(h, a, -0x1.8b74dcp-21f);
    h = vf_step(h, a, 0x1.036a54p-17f);
    h = vf_step(h, a, -0x1.9ef050p-15f);
    h = vf_step(h, a, 0x1.68c72cp-13f);
    h = vf_step(h, a, 0x1.f978aep-15f);
    h = vf_step(h, a, -0x1.4163a2p-8f);
    h = vf_step(h, a, 0x1.2a5702p-5f);
    h = vf_step(h, a, 0x1.45ebe2p-2f);
    h = vf_step(h, a, 0x1.9884bap-1f);
    const vf beyond = vf_mul(vf_sub(ax, a), vf_set1(8.0f));
    const vf tail = vf_exp(vf_fnma(a, h, vf_sub(vf_zero(), beyond)));
    const vf part = vf_mul(vf_mul(x, vf_set1(0.5f)), tail); /* x * P(N < -|x|) */
    return vf_if_less(x, vf_zero(), part, vf_sub(x, part));
}
#endif
