/* small.h - up to 8 planes of rows: codes are unpacked in registers, each record is read once per
 * group of rows, in several streams with two prefetch distances. */
#ifndef OX_KERNEL_QLINEAR_SMALL_H
#define OX_KERNEL_QLINEAR_SMALL_H
#include "kernel/qlinear/loops.h"

/* Dot products of R rows with registers [v0, v0+NV) of a record; x + r*ld are the block's codes. */
OX_INLINE void small_dots(qi (*dot)[REGS], const uint8_t *rec, const int8_t *x, size_t ld,
                          const int R, const int v0, const int NV, const int bits,
                          const size_t block)
{
    const size_t group = block * (size_t)bits * 2;
    OX_UNROLL(8)
    for (size_t j = 0; j < block * (size_t)bits / 32; j++) {
        qi low[REGS], high[REGS];
        OX_UNROLL(4)
        for (int v = 0; v < NV; v++) {
            const qi w = qi_load(rec + codes_offset(v0 + v, group) + 64 * j);
            low[v] = bits == 4 ? qi_low4(w) : w;
            high[v] = qi_high4(w);
        }
        OX_UNROLL(8)
        for (int r = 0; r < R; r++) {
            const int8_t *xr = x + (size_t)r * ld;
            const qi x0 = qi_set1(x_word(xr, bits == 4 ? 2 * j : j));
            OX_UNROLL(4)
            for (int v = 0; v < NV; v++)
                dot[r][v] = dot_step(dot[r][v], low[v], x0, bits);
            if (bits == 8) continue;
            const qi x1 = qi_set1(x_word(xr, 2 * j + 1));
            OX_UNROLL(4)
            for (int v = 0; v < NV; v++)
                dot[r][v] = dot_step(dot[r][v], high[v], x1, bits);
        }
    }
}

/* What is fetched lies ahead in each tile's own stream, at its end in that of the tile of the next
 * group. The fewer streams, the further. */
typedef struct ahead {
    size_t far, near;         /* bytes */
    size_t far_end, near_end; /* records from which on they lie in the next group, */
    size_t wrap;              /* this much further */
    size_t record;
} ahead;

static ahead ahead_of(const ox_qpack *p, int n_tiles)
{
    const size_t far = (n_tiles == 4 ? 2048 : n_tiles == 2 ? 8192 : 16384) / p->record + 1;
    const size_t near = (n_tiles == 1 ? 2048 : 1024) / p->record + 1;
    return (ahead){.far = far * p->record,
                   .near = near * p->record,
                   .far_end = p->blocks > far ? p->blocks - far : 0,
                   .near_end = p->blocks > near ? p->blocks - near : 0,
                   .wrap = (size_t)(n_tiles - 1) * p->tile,
                   .record = p->record};
}

OX_INLINE void prefetch_ahead(const ahead *h, const uint8_t *rec, size_t b, const size_t codes)
{
    const char *f = (const char *)rec + h->far + (b < h->far_end ? 0 : h->wrap);
    const char *n = (const char *)rec + h->near + (b < h->near_end ? 0 : h->wrap);
    OX_UNROLL(8)
    for (size_t i = 0; i < codes; i += 64) {
        _mm_prefetch(f + i, _MM_HINT_T1);
        _mm_prefetch(n + i, _MM_HINT_T0);
    }
    for (size_t i = codes; i < h->record; i += 64) {
        _mm_prefetch(f + i, _MM_HINT_T1);
        _mm_prefetch(n + i, _MM_HINT_T0);
    }
}

typedef struct small_x { /* rows of x at one block; all but the codes and words are of joined planes
                          */
    const int8_t *codes;
    int32_t word[SMALL_ROWS]; /* of each plane: minus the sum of its codes */
    float scale[SMALL_ROWS], scaled_sum[SMALL_ROWS];
} small_x;

/* Rows [r0, r0+R) of P planes. */
OX_INLINE void small_read_x(small_x *x, const ox_qact *q, size_t r0, size_t b, const int R,
                            const int P, const size_t block)
{
    const uint8_t *scales = (const uint8_t *)(ox_qact_scales(q, r0 * (size_t)P) + b);
    const uint8_t *sums = (const uint8_t *)(ox_qact_sums(q, r0 * (size_t)P) + b);
    x->codes = ox_qact_codes(q, r0 * (size_t)P) + b * block;
    OX_UNROLL(8)
    for (int r = 0; r < R; r++) {
        int32_t sum = 0;
        OX_UNROLL(2)
        for (int i = r * P; i < (r + 1) * P; i++) {
            int32_t one;
            memcpy(&one, sums + (size_t)i * q->ld, 4);
            x->word[i] = -one;
            sum = sum * 256 + one;
        }
        memcpy(&x->scale[r], scales + (size_t)(r * P + P - 1) * q->ld, 4);
        x->scaled_sum[r] = x->scale[r] * (float)sum;
    }
}

/* Row r's integer out of its planes' finished dot products. */
OX_INLINE qi small_join(const small_x *x, qi (*dot)[REGS], qi zeros, int r, int v, const int P,
                        const int bits)
{
    const int i = r * P;
    const qi d = dot_end(dot[i][v], zero_init(x->word[i], zeros, ANY_ZERO), bits);
    if (P == 1) return d;
    return qi_join(d, dot_end(dot[i + 1][v], zero_init(x->word[i + 1], zeros, ANY_ZERO), bits));
}

/* One record times R rows of P planes, added to acc. */
OX_INLINE void small_block(const ox_qpack *p, const uint8_t *rec, const small_x *x, size_t ld,
                           qf (*acc)[REGS], const int R, const int P, const int v0, const int NV,
                           const int bits, const size_t block)
{
    const bool minima = p->code.zero == OX_ZERO_MIN, f16 = p->code.scale_f16;
    const uint8_t *at = rec + COLS * block * (size_t)bits / 8;
    const size_t floats = COLS * (f16 ? 2 : 4);
    qi dot[SMALL_ROWS][REGS], zeros[REGS];
    OX_UNROLL(4)
    for (int v = 0; v < NV; v++) {
        zeros[v] = load_zeros(&p->code, at + floats, v0 + v);
        OX_UNROLL(8)
        for (int i = 0; i < R * P; i++)
            dot[i][v] = dot_begin(zero_init(x->word[i], zeros[v], ANY_ZERO));
    }
    small_dots(dot, rec, x->codes, ld, R * P, v0, NV, bits, block);
    OX_UNROLL(4)
    for (int v = 0; v < NV; v++) {
        const qf sw = load_floats(at, v0 + v, f16);
        OX_UNROLL(8)
        for (int r = 0; r < R; r++) {
            const qi d = small_join(x, dot, zeros[v], r, v, P, bits);
            acc[r][v] = qf_fma(qf_of_int(d), qf_mul(sw, qf_set1(x->scale[r])), acc[r][v]);
        }
        if (!minima) continue;
        const qf mw = load_floats(at + floats, v0 + v, f16);
        OX_UNROLL(8)
        for (int r = 0; r < R; r++)
            acc[r][v] = qf_fma(mw, qf_set1(x->scaled_sum[r]), acc[r][v]);
    }
}

/* Rows [r0, r0+R) times registers [v0, v0+NV) of T tiles, into c[tile][r][32]. Tiles take turns
 * block by block: a core has more reads under way in several streams than in one. */
OX_INLINE void small_rows(const ox_qlinear_args *a, const uint8_t *tile, size_t r0, float *c,
                          const int R, const int P, const int T, const int v0, const int NV,
                          const int bits, const size_t block)
{
    const ox_qpack copy = *a->w, *const p = &copy; /* nothing to load again in the loop */
    const ox_qact x_copy = *a->x;
    const ahead h = ahead_of(p, T);
    qf acc[SMALL_TILES][SMALL_ROWS][REGS];
    OX_UNROLL(4)
    for (int t = 0; t < T; t++)
        OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        acc[t][r][v] = qf_zero();
    for (size_t b = 0; b < p->blocks; b++, tile += p->record) {
        small_x x;
        small_read_x(&x, &x_copy, r0, b, R, P, block);
        OX_UNROLL(4)
        for (int t = 0; t < T; t++) {
            const uint8_t *rec = tile + (size_t)t * p->tile;
            if (!v0) prefetch_ahead(&h, rec, b, COLS * block * (size_t)bits / 8);
            OX_KEEP_ORDER(); /* else the compiler mixes tiles and runs out of registers */
            small_block(p, rec, &x, x_copy.ld, acc[t], R, P, v0, NV, bits, block);
        }
    }
    OX_UNROLL(4)
    for (int t = 0; t < T; t++)
        OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        qf_store(c + (t * 8 + r) * COLS + (v0 + v) * QW, acc[t][r][v]);
}

/* One group of registers after the other: all of a tile for one plane, SMALL_REGS for more. */
#define SMALL_NV(R, P) ((R) * (P) == 1 ? REGS : SMALL_REGS)
#define SMALL_CASE(R, P, T, bits, block)                                                           \
    for (int v0 = 0; v0 < REGS; v0 += SMALL_NV(R, P))                                              \
    small_rows(a, tile, r0, c, R, P, T, v0, SMALL_NV(R, P), bits, block)
#define SMALL_FUNCTION(R, P, T)                                                                    \
    static void small_##R##_##P##_##T(const ox_qlinear_args *a, const uint8_t *tile, size_t r0,    \
                                      float *c)                                                    \
    {                                                                                              \
        const ox_code_layout *l = &a->w->code;                                                     \
        if (l->bits == 4 && l->block == 32)                                                        \
            SMALL_CASE(R, P, T, 4, 32);                                                            \
        else if (l->bits == 4)                                                                     \
            SMALL_CASE(R, P, T, 4, 16);                                                            \
        else if (l->block == 32)                                                                   \
            SMALL_CASE(R, P, T, 8, 32);                                                            \
        else                                                                                       \
            SMALL_CASE(R, P, T, 8, 16);                                                            \
    }
typedef void small_fn(const ox_qlinear_args *a, const uint8_t *tile, size_t r0, float *c);
/* By planes - 1, by 1, 2, 4, 8 rows: tiles side by side, as registers for their sums allow. */
enum { SIZES = 4 };
typedef struct small_size {
    small_fn *fn;
    size_t tiles;
    small_fn *one; /* for a tile that is left */
} small_size;
SMALL_FUNCTION(1, 1, 1)
SMALL_FUNCTION(2, 1, 1)
SMALL_FUNCTION(4, 1, 1)
SMALL_FUNCTION(1, 2, 1)
SMALL_FUNCTION(2, 2, 1)
#if SMALL_HAS_8
SMALL_FUNCTION(1, 1, 4)
SMALL_FUNCTION(2, 1, 4)
SMALL_FUNCTION(4, 1, 2)
SMALL_FUNCTION(8, 1, 1)
SMALL_FUNCTION(1, 2, 4)
SMALL_FUNCTION(2, 2, 2)
SMALL_FUNCTION(4, 2, 1)
static const small_size small_sizes[2][SIZES] = {
    {{small_1_1_4, 4, small_1_1_1},
     {small_2_1_4, 4, small_2_1_1},
     {small_4_1_2, 2, small_4_1_1},
     {small_8_1_1, 1, small_8_1_1}},
    {{small_1_2_4, 4, small_1_2_1}, {small_2_2_2, 2, small_2_2_1}, {small_4_2_1, 1, small_4_2_1}}};
#else
static const small_size small_sizes[2][SIZES] = {
    {{small_1_1_1, 1, small_1_1_1}, {small_2_1_1, 1, small_2_1_1}, {small_4_1_1, 1, small_4_1_1}},
    {{small_1_2_1, 1, small_1_2_1}, {small_2_2_1, 1, small_2_2_1}}};
#endif

/* Rows [0, n) of up to SMALL_TILES tiles: in as few passes as there are functions. */
static void small_tiles(const ox_qlinear_args *a, const uint8_t *tile, size_t n_tiles, size_t n,
                        float *c)
{
    const small_size *sizes = small_sizes[a->x->planes - 1];
    for (size_t r0 = 0, rows; r0 < n; r0 += rows) {
        size_t i = SIZES - 1;
        while (!sizes[i].fn || (size_t)1 << i > n - r0)
            i--;
        rows = (size_t)1 << i;
        size_t t = 0;
        for (; t + sizes[i].tiles <= n_tiles; t += sizes[i].tiles)
            sizes[i].fn(a, tile + t * a->w->tile, r0, c + (t * 8 + r0) * COLS);
        for (; t < n_tiles; t++)
            sizes[i].one(a, tile + t * a->w->tile, r0, c + (t * 8 + r0) * COLS);
    }
}

static void run_small(const ox_qlinear_args *a, size_t begin, size_t end)
{
    const size_t per_unit = a->w->pairs ? 2 : 1, step = SMALL_TILES / per_unit;
    OX_ALIGNED(64) float c[SMALL_TILES][8 * COLS];
    for (size_t u = begin, units; u < end; u += units) {
        units = end - u < step ? end - u : step;
        small_tiles(a, a->w->data + u * per_unit * a->w->tile, units * per_unit, a->rows, c[0]);
        for (size_t i = 0; i < units; i++)
            for (size_t r = 0; r < a->rows; r++)
                finish_row(a, u + i, r, c[i * per_unit] + r * COLS,
                           c[(i + 1) * per_unit - 1] + r * COLS);
    }
}
#endif
