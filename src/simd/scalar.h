/* scalar.h - the vector vocabulary in plain C: 16 lanes in an array, the same operations in the
 * same order, so that a reference row can be bit-equal to the SIMD rows.
 * Slow; for references only. */
#ifndef OX_SIMD_SCALAR_H
#define OX_SIMD_SCALAR_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VF_N = 16 };
typedef struct vf {
    float f[VF_N];
} vf;

#define VF_LANES(expr)                                                                             \
    do {                                                                                           \
        vf r_;                                                                                     \
        for (int i = 0; i < VF_N; i++)                                                             \
            r_.f[i] = (expr);                                                                      \
        return r_;                                                                                 \
    } while (0)

static inline vf vf_set1(float s)
{
    VF_LANES(s);
}
static inline vf vf_zero(void)
{
    VF_LANES(0.0f);
}
static inline vf vf_load(const float *p)
{
    VF_LANES(p[i]);
}
static inline vf vf_load_n(const float *p, size_t n)
{
    VF_LANES((size_t)i < n ? p[i] : 0.0f);
}
static inline void vf_store(float *p, vf v)
{
    memcpy(p, v.f, sizeof(v.f));
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    memcpy(p, v.f, n * sizeof(v.f[0]));
}
static inline vf vf_add(vf x, vf y)
{
    VF_LANES(x.f[i] + y.f[i]);
}
static inline vf vf_sub(vf x, vf y)
{
    VF_LANES(x.f[i] - y.f[i]);
}
static inline vf vf_mul(vf x, vf y)
{
    VF_LANES(x.f[i] * y.f[i]);
}
static inline vf vf_div(vf x, vf y)
{
    VF_LANES(x.f[i] / y.f[i]);
}
static inline vf vf_max(vf x, vf y) /* the second operand when one is NaN, as the instruction */
{
    VF_LANES(x.f[i] > y.f[i] ? x.f[i] : y.f[i]);
}
static inline vf vf_min(vf x, vf y)
{
    VF_LANES(x.f[i] < y.f[i] ? x.f[i] : y.f[i]);
}
static inline vf vf_fma(vf x, vf y, vf z)
{
    VF_LANES(fmaf(x.f[i], y.f[i], z.f[i]));
}
static inline vf vf_fnma(vf x, vf y, vf z) /* z - x*y */
{
    VF_LANES(fmaf(-x.f[i], y.f[i], z.f[i]));
}
static inline vf vf_round(vf x)
{
    VF_LANES(rintf(x.f[i]));
}
static inline vf vf_abs(vf x)
{
    VF_LANES(fabsf(x.f[i]));
}
static inline vf vf_copysign(vf x, vf s)
{
    VF_LANES(copysignf(x.f[i], s.f[i]));
}
static inline vf vf_if_less(vf x, vf y, vf then, vf other)
{
    VF_LANES(x.f[i] < y.f[i] ? then.f[i] : other.f[i]);
}
static inline vf vf_range(vf x, vf y, int lo, int hi)
{
    VF_LANES(i >= lo && i < hi ? x.f[i] : y.f[i]);
}
static inline unsigned vf_not_le(vf x, vf y)
{
    unsigned hits = 0;
    for (int i = 0; i < VF_N; i++)
        hits |= (unsigned)!(x.f[i] <= y.f[i]) << i;
    return hits;
}
static inline vf vf_ldexp(vf x, vf n) /* rounded once, n integral in [-250, 250] */
{
    VF_LANES(ldexpf(x.f[i], n.f[i] == n.f[i] ? (int)n.f[i] : 0));
}
#undef VF_LANES
#endif
