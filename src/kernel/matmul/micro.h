/* micro.h - float matrix products in the vector vocabulary, shared by matmul and gemm.
 *
 * Include after a simd header with MM_ROWS (rows of the register tile), MM_TILES (its column tiles
 * of 16; 1 or 3) and MM_WIDE(m) (column tiles for a call with only m rows) defined.
 *
 * Weights are read as [tile][k][16]: a packed weight lies so (step 16), a row-major [k, n] operand
 * is the same thing with step ldb and tiles 16 apart. One output is one chain of fma over ascending
 * k, whatever the tiling: partial sums wait in float32, so blocks of k do not change a bit.
 *
 * Few rows: straight from the weights, MM_WIDE(m) tiles at once. Many rows: blocks of ROWS rows and
 * DEPTH k, weights that are narrow or strided first brought into a panel. */
#ifndef OX_KERNEL_MATMUL_MICRO_H
#define OX_KERNEL_MATMUL_MICRO_H
#include "base/compiler.h"

#include <stdbool.h>

enum { ROWS = 16 * MM_ROWS, DEPTH = 256, WIDE_MAX = 8 };

typedef enum kind { KIND_F32, KIND_F16, KIND_BF16, KINDS } kind;

typedef struct product {
    const float *x; /* [rows, k] */
    size_t rows, k, n, ldx;
    kind type;
    const char *w;
    size_t step, stride; /* elements from one k, one tile to the next */
    bool packed;         /* step is 16 and the last tile is padded with zeros */
    float *y;            /* [rows, n] */
    const float *bias, *add;
    size_t ldy, ld_add;
} product;

typedef struct call {
    const float *x;
    size_t ldx, k;
    const char *w;
    size_t step, stride;
    float *c; /* partial sums */
    size_t ldc;
    bool first;       /* start from zero */
    const char *next; /* many: what will be needed soon, a line a k */
    size_t line;
} call;

OX_INLINE vf load_weight(kind t, const char *p, size_t i)
{
    if (t == KIND_F16) return vf_load_f16((const uint16_t *)(const void *)p + i);
    if (t == KIND_BF16) return vf_load_bf16((const uint16_t *)(const void *)p + i);
    return vf_load((const float *)(const void *)p + i);
}

static inline size_t weight_size(kind t)
{
    return t == KIND_F32 ? 4 : 2;
}

/* m rows by nt tiles; all but the last argument are constants. */
OX_INLINE void tile(size_t m, size_t nt, kind t, bool panel, const call *a)
{
    const size_t step = panel ? (size_t)VF_N : a->step; /* fewer registers: 5 % at 8 rows */
    const char *next = a->next;
    vf acc[MM_ROWS][WIDE_MAX];
#pragma GCC unroll 8
    for (size_t i = 0; i < m; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < nt; j++)
            acc[i][j] = a->first ? vf_zero() : vf_load(a->c + i * a->ldc + j * VF_N);
    for (size_t k = 0; k < a->k; k++) {
        vf w[WIDE_MAX];
#pragma GCC unroll 8
        for (size_t j = 0; j < nt; j++)
            w[j] = load_weight(t, a->w, j * a->stride + k * step);
        if (panel) __builtin_prefetch(next + k * a->line, 0, 2);
#pragma GCC unroll 8
        for (size_t i = 0; i < m; i++) {
            const vf x = vf_set1(a->x[i * a->ldx + k]);
#pragma GCC unroll 8
            for (size_t j = 0; j < nt; j++)
                acc[i][j] = vf_fma(x, w[j], acc[i][j]);
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < m; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < nt; j++)
            vf_store(a->c + i * a->ldc + j * VF_N, acc[i][j]);
}

typedef void tile_fn(const call *a);

#define MM_ONE(m, name, nt, t)                                                                     \
    static void tile_##m##_##name##_##t(const call *a)                                             \
    {                                                                                              \
        tile(m, nt, t, false, a);                                                                  \
    }
#define MM_PANEL(m, nt)                                                                            \
    static void panel_##m##_##nt(const call *a)                                                    \
    {                                                                                              \
        tile(m, nt, KIND_F32, true, a);                                                            \
    }
#if MM_TILES > 1
#define MM_MORE(m) MM_PANEL(m, 1) MM_PANEL(m, 2) MM_PANEL(m, 3)
#define MM_ROW(m) {panel_##m##_1, panel_##m##_2, panel_##m##_3},
#else
#define MM_MORE(m) MM_PANEL(m, 1)
#define MM_ROW(m) {panel_##m##_1},
#endif
#define MM_ALL(m)                                                                                  \
    MM_ONE(m, 1, 1, KIND_F32)                                                                      \
    MM_ONE(m, wide, MM_WIDE(m), KIND_F32)                                                          \
    MM_ONE(m, 1, 1, KIND_F16)                                                                      \
    MM_ONE(m, wide, MM_WIDE(m), KIND_F16)                                                          \
    MM_ONE(m, 1, 1, KIND_BF16) MM_ONE(m, wide, MM_WIDE(m), KIND_BF16) MM_MORE(m)
#define MM_FEW(m)                                                                                  \
    {{tile_##m##_1_KIND_F32, tile_##m##_wide_KIND_F32},                                            \
     {tile_##m##_1_KIND_F16, tile_##m##_wide_KIND_F16},                                            \
     {tile_##m##_1_KIND_BF16, tile_##m##_wide_KIND_BF16}},
#define MM_WIDTH(m) MM_WIDE(m),
MM_EACH(MM_ALL)
static tile_fn *const many_of[MM_ROWS][MM_TILES] = {MM_EACH(MM_ROW)};
static tile_fn *const few_of[MM_ROWS][KINDS][2] = {MM_EACH(MM_FEW)};
static const size_t wide_of[MM_ROWS] = {MM_EACH(MM_WIDTH)};

/* Sums c of rows [r0, r1) and tiles [t, t + nt) go out with bias and add. */
static void finish(const product *p, const float *c, size_t ldc, size_t r0, size_t r1, size_t t,
                   size_t nt)
{
    for (size_t r = r0; r < r1; r++, c += ldc)
        for (size_t j = 0; j < nt; j++) {
            const size_t at = (t + j) * VF_N, n = p->n - at < VF_N ? p->n - at : VF_N;
            vf y = vf_load(c + j * VF_N);
            if (p->bias) y = vf_add(y, vf_load_n(p->bias + at, n));
            if (p->add) y = vf_add(y, vf_load_n(p->add + r * p->ld_add + at, n));
            vf_store_n(p->y + r * p->ldy + at, y, n);
        }
}

OX_INLINE void widen_block(const product *p, kind t, float *panel, size_t at, size_t nt,
                           size_t depth)
{
    for (size_t k = 0; k < depth; k++)
        for (size_t j = 0; j < nt; j++)
            vf_store(panel + (j * depth + k) * VF_N,
                     load_weight(t, p->w, at + j * p->stride + k * p->step));
}

/* Tiles [t, t + nt), k in [k0, k0 + depth) as float32 panel [nt][depth][16], zero beyond n. */
static void fill_panel(const product *p, float *panel, size_t t, size_t nt, size_t k0, size_t depth)
{
    const size_t at = t * p->stride + k0 * p->step, last = (t + nt - 1) * VF_N;
    const size_t whole = p->packed || last + VF_N <= p->n ? nt : nt - 1;
    if (p->type == KIND_F16)
        widen_block(p, KIND_F16, panel, at, whole, depth);
    else if (p->type == KIND_BF16)
        widen_block(p, KIND_BF16, panel, at, whole, depth);
    else
        widen_block(p, KIND_F32, panel, at, whole, depth);
    if (whole == nt) return;
    const float *from = (const float *)(const void *)p->w + at + whole * p->stride;
    for (size_t k = 0; k < depth; k++) /* a cut row-major tile */
        vf_store(panel + (whole * depth + k) * VF_N, vf_load_n(from + k * p->step, p->n - last));
}

/* Where the block of k behind [k0, k0 + DEPTH) starts: in this group of tiles or the next. */
static const char *block_after(const product *p, size_t t, size_t nt, size_t k0)
{
    const bool last = k0 + DEPTH >= p->k;
    const size_t at = last ? (t + nt) * p->stride : t * p->stride + (k0 + DEPTH) * p->step;
    return p->w + at * weight_size(p->type);
}

/* Rows [r0, r1), at most ROWS, of tiles [t0, t1). */
static void many(const product *p, size_t r0, size_t r1, size_t t0, size_t t1)
{
    float OX_ALIGNED(64) panel[MM_TILES * VF_N * DEPTH];
    float OX_ALIGNED(64) c[ROWS * MM_TILES * VF_N];
    const size_t ldc = MM_TILES * VF_N, size = weight_size(p->type);
    const bool direct = p->type == KIND_F32 && p->packed;
    for (size_t t = t0; t < t1;) {
        const size_t nt = t1 - t < MM_TILES ? t1 - t : MM_TILES;
        for (size_t k0 = 0; k0 == 0 || k0 < p->k; k0 += DEPTH) {
            const size_t depth = p->k - k0 < DEPTH ? p->k - k0 : DEPTH;
            const char *after = block_after(p, t, nt, k0);
            call a = {.ldx = p->ldx, .k = depth, .ldc = ldc, .first = k0 == 0};
            a.stride = direct ? p->stride : depth * VF_N;
            a.w = direct ? p->w + 4 * (t * p->stride + k0 * VF_N) : (const char *)panel;
            a.line = p->step * size;
            if (!direct) fill_panel(p, panel, t, nt, k0, depth);
            for (size_t r = r0, i = 0; r < r1; r += MM_ROWS, i++) {
                const size_t m = r1 - r < MM_ROWS ? r1 - r : MM_ROWS;
                a.x = p->x + r * p->ldx + k0;
                a.c = c + (r - r0) * ldc;
                a.next = after + i % nt * p->stride * size;
                many_of[m - 1][nt - 1](&a);
            }
        }
        finish(p, c, ldc, r0, r1, t, nt);
        t += nt;
    }
}

/* At most MM_ROWS rows, all of them, of tiles [t0, t1). */
static void few(const product *p, size_t t0, size_t t1)
{
    float OX_ALIGNED(64) c[MM_ROWS * WIDE_MAX * VF_N];
    const size_t wide = wide_of[p->rows - 1];
    for (size_t t = t0; t < t1;) {
        const bool whole = p->packed || (t + wide) * VF_N <= p->n;
        const size_t nt = t + wide <= t1 && whole ? wide : 1;
        if (nt == 1 && !p->packed && p->n - t * VF_N < VF_N) { /* a cut row-major tile */
            many(p, 0, p->rows, t, t + 1);
            return;
        }
        const call a = {.x = p->x,
                        .ldx = p->ldx,
                        .k = p->k,
                        .w = p->w + t * p->stride * weight_size(p->type),
                        .step = p->step,
                        .stride = p->stride,
                        .c = c,
                        .ldc = WIDE_MAX * VF_N,
                        .first = true};
        few_of[p->rows - 1][p->type][nt > 1](&a);
        finish(p, c, WIDE_MAX * VF_N, 0, p->rows, t, nt);
        t += nt;
    }
}

static void multiply(const product *p, size_t t0, size_t t1)
{
    if (p->rows == 0) return;
    if (p->rows <= MM_ROWS) {
        few(p, t0, t1);
        return;
    }
    for (size_t r = 0; r < p->rows; r += ROWS)
        many(p, r, r + ROWS < p->rows ? r + ROWS : p->rows, t0, t1);
}
#endif
