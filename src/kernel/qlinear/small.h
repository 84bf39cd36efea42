/* small.h - up to 8 planes of rows: codes are unpacked in registers, each record is read once per
 * group of rows, in one stream with two prefetch distances. */
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

/* Rows [r0, r0+R) times registers [v0, v0+NV) of a tile, into c[r][32]. */
OX_INLINE void small_rows(const ox_qlinear_args *a, const uint8_t *rec, size_t r0, float *c,
                          const int R, const int v0, const int NV, const int bits,
                          const size_t block)
{
    const ox_qpack *p = a->w;
    const bool minima = p->code.zero == OX_ZERO_MIN;
    const size_t ld = a->x->ld;
    const size_t meta = COLS * block * (size_t)bits / 8;
    const bool f16 = p->code.scale_f16;
    const size_t floats = COLS * (f16 ? 2 : 4);
    const int8_t *x = ox_qact_codes(a->x, r0);
    const uint8_t *scales = (const uint8_t *)ox_qact_scales(a->x, r0);
    const uint8_t *sums = (const uint8_t *)ox_qact_sums(a->x, r0);
    qf acc[SMALL_ROWS][REGS];
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        acc[r][v] = qf_zero();
    for (size_t b = 0; b < p->blocks; b++, rec += p->record, x += block, scales += 4, sums += 4) {
        if (!v0) prefetch(rec, p->record);
        float sx[SMALL_ROWS], sxq[SMALL_ROWS];
        int32_t word[SMALL_ROWS];
        OX_UNROLL(8)
        for (int r = 0; r < R; r++) {
            int32_t sum;
            memcpy(&sx[r], scales + (size_t)r * ld, 4);
            memcpy(&sum, sums + (size_t)r * ld, 4);
            word[r] = -sum;
            sxq[r] = sx[r] * (float)sum;
        }
        const uint8_t *at = rec + meta;
        qi dot[SMALL_ROWS][REGS], zeros[REGS];
        OX_UNROLL(4)
        for (int v = 0; v < NV; v++) {
            zeros[v] = load_zeros(&p->code, at + floats, v0 + v);
            OX_UNROLL(8)
            for (int r = 0; r < R; r++)
                dot[r][v] = dot_begin(zero_init(word[r], zeros[v], ANY_ZERO));
        }
        small_dots(dot, rec, x, ld, R, v0, NV, bits, block);
        OX_UNROLL(4)
        for (int v = 0; v < NV; v++) {
            const qf sw = load_floats(at, v0 + v, f16);
            OX_UNROLL(8)
            for (int r = 0; r < R; r++) {
                const qi d = dot_end(dot[r][v], zero_init(word[r], zeros[v], ANY_ZERO), bits);
                acc[r][v] = qf_fma(qf_of_int(d), qf_mul(sw, qf_set1(sx[r])), acc[r][v]);
            }
            if (!minima) continue;
            const qf mw = load_floats(at + floats, v0 + v, f16);
            OX_UNROLL(8)
            for (int r = 0; r < R; r++)
                acc[r][v] = qf_fma(mw, qf_set1(sxq[r]), acc[r][v]);
        }
    }
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        qf_store(c + r * COLS + (v0 + v) * QW, acc[r][v]);
}

/* One group of registers after the other: all of a tile for one row, SMALL_REGS for more. */
#define SMALL_CASE(R, bits, block)                                                                 \
    for (int v0 = 0; v0 < REGS; v0 += R == 1 ? REGS : SMALL_REGS)                                  \
    small_rows(a, tile, r0, c, R, v0, R == 1 ? REGS : SMALL_REGS, bits, block)
#define SMALL_FUNCTION(R)                                                                          \
    static void small_##R(const ox_qlinear_args *a, const uint8_t *tile, size_t r0, float *c)      \
    {                                                                                              \
        const ox_code_layout *l = &a->w->code;                                                     \
        if (l->bits == 4 && l->block == 32)                                                        \
            SMALL_CASE(R, 4, 32);                                                                  \
        else if (l->bits == 4)                                                                     \
            SMALL_CASE(R, 4, 16);                                                                  \
        else if (l->block == 32)                                                                   \
            SMALL_CASE(R, 8, 32);                                                                  \
        else                                                                                       \
            SMALL_CASE(R, 8, 16);                                                                  \
    }
SMALL_FUNCTION(1)
SMALL_FUNCTION(2)
SMALL_FUNCTION(4)
#if SMALL_HAS_8
SMALL_FUNCTION(8)
#endif

/* Rows [r0, r0+n), n <= 8, of a tile: in as few passes as there are functions. */
static void small_tile(const ox_qlinear_args *a, const uint8_t *tile, size_t r0, size_t n, float *c)
{
#if SMALL_HAS_8
    if (n == 8) {
        small_8(a, tile, r0, c);
        return;
    }
#endif
    for (; n >= 4; n -= 4, r0 += 4, c += 4 * COLS)
        small_4(a, tile, r0, c);
    if (n >= 2) small_2(a, tile, r0, c);
    if (n % 2) small_1(a, tile, r0 + n - 1, c + (n - 1) * COLS);
}

static void run_small(const ox_qlinear_args *a, size_t begin, size_t end)
{
    const size_t per_unit = a->w->pairs ? 2 : 1;
    const size_t planes = (size_t)a->x->planes;
    OX_ALIGNED(64) float c[2][8 * COLS];
    for (size_t u = begin; u < end; u++) {
        for (size_t i = 0; i < per_unit; i++)
            small_tile(a, a->w->data + (u * per_unit + i) * a->w->tile, 0, a->rows * planes, c[i]);
        for (size_t r = 0; r < a->rows; r++)
            finish_row(a, u, r, c[0] + r * planes * COLS, c[1] + r * planes * COLS);
    }
}
#endif
