/* body.h - the loops of all SIMD tiers. An ISA file includes a lanes header and a dot header,
 * defines QLINEAR_NAME, then includes this.
 *
 * Few rows (small): codes are unpacked in registers and each record is read once per group of rows,
 * in one stream with two prefetch distances. More rows (large): 512 k of a tile are unpacked to
 * bytes in the first-level cache ("panel") and meet all rows of a strip; float accumulators live in
 * a strip buffer between panels. Both run the formula of qlinear.h in the same order.
 *
 * Functions that take R, NV, bits, zero are inlined with constants: the loops over them unroll and
 * the accumulators stay in registers. */
#include "kernel/qlinear/epilogue.h"
#include "kernel/qlinear/qlinear.h"

#include "base/compiler.h"

enum {
    COLS = OX_QPACK_COLS,
    REGS = COLS / QW,    /* registers that hold a tile's columns */
    PER_LINE = 16 / QW,  /* registers that a 64-byte line of codes fills */
    CHUNK = 512,         /* k of a panel: 16 KiB of codes */
    CHUNK_BLOCKS = CHUNK / 16,
    STRIP = 256,         /* rows that share an unpacked panel */
    NEAR = 2048,         /* bytes ahead: to the first-level cache, */
    FAR = 16384,         /* and to the second */
};

OX_INLINE void prefetch(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64) {
        _mm_prefetch((const char *)((uintptr_t)p + FAR + i), _MM_HINT_T1);
        _mm_prefetch((const char *)((uintptr_t)p + NEAR + i), _MM_HINT_T0);
    }
}

/* Offset of register v's codes in the first step of a record. */
OX_INLINE size_t codes_offset(int v, size_t group_bytes)
{
    return (size_t)(v / PER_LINE) * group_bytes + (size_t)(v % PER_LINE * QW * 4);
}

OX_INLINE qf load_floats(const uint8_t *p, int v, bool f16)
{
    return f16 ? qf_load_f16(p + v * QW * 2) : qf_load(p + v * QW * 4);
}

OX_INLINE int32_t x_word(const int8_t *x, size_t i)
{
    int32_t w;
    memcpy(&w, x + 4 * i, 4);
    return w;
}

/* What a row's integer sums start from: -zero * sum, as a word that zero_init() understands. */
OX_INLINE int32_t zero_word(int32_t sum, int bits, int zero)
{
    if (zero == OX_ZERO_MIDDLE) return -(sum * (1 << (bits - 1)));
    return zero == OX_ZERO_CODE ? -sum & 0xffff : 0;
}

OX_INLINE qi zero_init(int32_t word, qi zeros, int zero)
{
    if (zero == OX_ZERO_CODE) return qi_mul16(zeros, qi_set1(word));
    return zero == OX_ZERO_MIDDLE ? qi_set1(word) : qi_zero();
}

/* ---- few rows ---- */

/* Dot products of R rows with register v of a record; x + r*ld are the block's codes. */
OX_INLINE void small_dots(qi *acc, const uint8_t *codes, size_t block, const int8_t *x, size_t ld,
                          const int R, const int bits)
{
    for (size_t j = 0; j < block * (size_t)bits / 32; j++) {
        const qi w = qi_load(codes + 64 * j);
        const qi low = bits == 4 ? qi_low4(w) : w, high = qi_high4(w);
        const size_t at = bits == 4 ? 2 * j : j;
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const int8_t *xr = x + (size_t)r * ld;
            acc[r] = dot_step(acc[r], low, qi_set1(x_word(xr, at)), bits);
            if (bits == 4) acc[r] = dot_step(acc[r], high, qi_set1(x_word(xr, at + 1)), bits);
        }
    }
}

/* Rows [r0, r0+R) times registers [v0, v0+NV) of a tile, into c[r][32]. fixed: the block length as
 * a constant, or 0. */
OX_INLINE void small_rows(const ox_qlinear_args *a, const uint8_t *rec, size_t r0, float *c,
                          const int R, const int v0, const int NV, const int bits, const int zero,
                          const size_t fixed)
{
    const ox_qpack *p = a->w;
    const size_t block = fixed ? fixed : (size_t)p->code.block, ld = a->x->ld;
    const size_t group = block * (size_t)bits * 2, meta = 2 * group;
    const bool f16 = p->code.scale_f16;
    const size_t floats = COLS * (f16 ? 2 : 4);
    const int8_t *x = ox_qact_codes(a->x, r0);
    const uint8_t *scales = (const uint8_t *)ox_qact_scales(a->x, r0);
    const uint8_t *sums = (const uint8_t *)ox_qact_sums(a->x, r0);
    qf acc[SMALL_ROWS][REGS];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            acc[r][v] = qf_zero();
    for (size_t b = 0; b < p->blocks; b++, rec += p->record, x += block, scales += 4, sums += 4) {
        if (!v0) prefetch(rec, p->record);
        float sx[SMALL_ROWS], sxq[SMALL_ROWS];
        int32_t word[SMALL_ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            int32_t sum;
            memcpy(&sx[r], scales + (size_t)r * ld, 4);
            memcpy(&sum, sums + (size_t)r * ld, 4);
            word[r] = zero_word(sum, bits, zero);
            sxq[r] = sx[r] * (float)sum;
        }
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++) {
            const uint8_t *at = rec + meta;
            const qi zeros = zero == OX_ZERO_CODE ? qi_load_u8(at + floats + (v0 + v) * QW) : qi_zero();
            qi dot[SMALL_ROWS];
#pragma GCC unroll 8
            for (int r = 0; r < R; r++)
                dot[r] = dot_begin(zero_init(word[r], zeros, zero));
            small_dots(dot, rec + codes_offset(v0 + v, group), block, x, ld, R, bits);
            const qf sw = load_floats(at, v0 + v, f16);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                const qi d = dot_end(dot[r], zero_init(word[r], zeros, zero), bits);
                acc[r][v] = qf_fma(qf_of_int(d), qf_mul(sw, qf_set1(sx[r])), acc[r][v]);
            }
            if (zero != OX_ZERO_MIN) continue;
            const qf mw = load_floats(at + floats, v0 + v, f16);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++)
                acc[r][v] = qf_fma(mw, qf_set1(sxq[r]), acc[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            qf_store(c + r * COLS + (v0 + v) * QW, acc[r][v]);
}

/* One register group after the other: all of a tile for one row, SMALL_REGS at once for more. */
#define SMALL_CASE(R, bits, zero, fixed)                                                           \
    do {                                                                                           \
        if (R == 1)                                                                                \
            small_rows(a, tile, r0, c, R, 0, REGS, bits, zero, fixed);                             \
        else                                                                                       \
            for (int v0 = 0; v0 < REGS; v0 += SMALL_REGS)                                          \
                small_rows(a, tile, r0, c, R, v0, SMALL_REGS, bits, zero, fixed);                  \
    } while (0)
#define SMALL_ZEROS(R, bits, fixed)                                                                \
    do {                                                                                           \
        if (a->w->code.zero == OX_ZERO_MIDDLE)                                                     \
            SMALL_CASE(R, bits, OX_ZERO_MIDDLE, fixed);                                            \
        else if (a->w->code.zero == OX_ZERO_CODE)                                                  \
            SMALL_CASE(R, bits, OX_ZERO_CODE, fixed);                                              \
        else                                                                                       \
            SMALL_CASE(R, bits, OX_ZERO_MIN, fixed);                                               \
    } while (0)
#define SMALL_FUNCTION(name, R, fixed)                                                             \
    static void name(const ox_qlinear_args *a, const uint8_t *tile, size_t r0, float *c)           \
    {                                                                                              \
        if (a->w->code.bits == 4)                                                                  \
            SMALL_ZEROS(R, 4, fixed);                                                              \
        else                                                                                       \
            SMALL_ZEROS(R, 8, fixed);                                                              \
    }
SMALL_FUNCTION(small_1_32, 1, 32)
SMALL_FUNCTION(small_1, 1, 0)
SMALL_FUNCTION(small_2, 2, 0)
SMALL_FUNCTION(small_3, 3, 0)
SMALL_FUNCTION(small_4, 4, 0)
#if SMALL_HAS_8
SMALL_FUNCTION(small_8, 8, 0)
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
    if (n == 3) small_3(a, tile, r0, c);
    if (n == 2) small_2(a, tile, r0, c);
    if (n == 1 && a->w->code.block == 32) small_1_32(a, tile, r0, c);
    if (n == 1 && a->w->code.block != 32) small_1(a, tile, r0, c);
}

/* ---- many rows ---- */

typedef struct code_panel {
    OX_ALIGNED(64) uint8_t codes[CHUNK / 4][COLS * 4]; /* step s: dword lanes of four k */
    OX_ALIGNED(64) float scales[CHUNK_BLOCKS][COLS];
    OX_ALIGNED(64) uint32_t extra[CHUNK_BLOCKS][COLS]; /* minima as floats, zeros as integers */
} code_panel;

typedef struct strip_meta { /* of LARGE_ROWS rows, over the blocks of a panel */
    float scales[LARGE_ROWS][CHUNK_BLOCKS];
    int32_t words[LARGE_ROWS][CHUNK_BLOCKS]; /* zero_word() */
    float sums[LARGE_ROWS][CHUNK_BLOCKS];    /* scale * sum */
} strip_meta;

static void unpack_codes(const ox_qpack *p, const uint8_t *rec, uint8_t (*out)[COLS * 4])
{
    const size_t bits = (size_t)p->code.bits, block = (size_t)p->code.block;
    const size_t lines = block * bits / 32;
    for (size_t j = 0; j < lines; j++)
        for (int v = 0; v < REGS; v++) {
            const qi w = qi_load(rec + codes_offset(v, lines * 64) + 64 * j);
            if (bits == 8) {
                qi_store(out[j] + v * QW * 4, w);
                continue;
            }
            qi_store(out[2 * j] + v * QW * 4, qi_low4(w));
            qi_store(out[2 * j + 1] + v * QW * 4, qi_high4(w));
        }
}

static void unpack(const ox_qpack *p, const uint8_t *rec, size_t n_blocks, code_panel *out)
{
    const bool f16 = p->code.scale_f16;
    const size_t steps = (size_t)p->code.block / 4, floats = COLS * (f16 ? 2 : 4);
    const size_t meta = (size_t)(COLS * p->code.block * p->code.bits / 8);
    for (size_t b = 0; b < n_blocks; b++, rec += p->record) {
        prefetch(rec, p->record);
        unpack_codes(p, rec, out->codes + b * steps);
        const uint8_t *at = rec + meta;
        for (int v = 0; v < REGS; v++) {
            qf_store(out->scales[b] + v * QW, load_floats(at, v, f16));
            if (p->code.zero == OX_ZERO_MIN)
                qf_store((float *)(void *)out->extra[b] + v * QW, load_floats(at + floats, v, f16));
            if (p->code.zero == OX_ZERO_CODE)
                qi_store(out->extra[b] + v * QW, qi_load_u8(at + floats + v * QW));
        }
    }
}

static void read_meta(const ox_qlinear_args *a, size_t r0, size_t n, size_t b0, size_t n_blocks,
                      strip_meta *m)
{
    const int bits = a->w->code.bits;
    const ox_zero_kind zero = a->w->code.zero;
    for (size_t r = 0; r < n; r++) {
        const float *scales = ox_qact_scales(a->x, r0 + r) + b0;
        const int32_t *sums = ox_qact_sums(a->x, r0 + r) + b0;
        memcpy(m->scales[r], scales, n_blocks * sizeof(float));
        if (zero == OX_ZERO_MIN)
            for (size_t b = 0; b < n_blocks; b++)
                m->sums[r][b] = scales[b] * (float)sums[b];
        else
            for (size_t b = 0; b < n_blocks; b++)
                m->words[r][b] = zero_word(sums[b], bits, (int)zero);
    }
}

/* R rows times registers [v0, v0+NV) of a panel, added to c[r][32]. */
OX_INLINE void large_rows(const code_panel *p, const strip_meta *m, const int8_t *x, size_t ld,
                          size_t n_blocks, size_t steps, bool first, float *c, const int R,
                          const int v0, const int NV, const int bits, const int zero)
{
    qf acc[LARGE_ROWS][LARGE_REGS];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            acc[r][v] = first ? qf_zero() : qf_load(c + r * COLS + (v0 + v) * QW);
    const uint8_t(*codes)[COLS * 4] = p->codes;
    for (size_t b = 0; b < n_blocks; b++, codes += steps, x += 4 * steps) {
        qi dot[LARGE_ROWS][LARGE_REGS], zeros[LARGE_REGS];
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            zeros[v] = zero == OX_ZERO_CODE ? qi_load(p->extra[b] + (v0 + v) * QW) : qi_zero();
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int v = 0; v < NV; v++)
                dot[r][v] = dot_begin(zero_init(m->words[r][b], zeros[v], zero));
        for (size_t s = 0; s < steps; s++) {
            qi w[LARGE_REGS];
#pragma GCC unroll 4
            for (int v = 0; v < NV; v++)
                w[v] = qi_load(codes[s] + (v0 + v) * QW * 4);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                const qi xr = qi_set1(x_word(x + (size_t)r * ld, s));
#pragma GCC unroll 4
                for (int v = 0; v < NV; v++)
                    dot[r][v] = dot_step(dot[r][v], w[v], xr, bits);
            }
        }
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++) {
            const qf sw = qf_load(p->scales[b] + (v0 + v) * QW);
            const qf mw = qf_load(p->extra[b] + (v0 + v) * QW);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                const qi d = dot_end(dot[r][v], zero_init(m->words[r][b], zeros[v], zero), bits);
                const qf s = qf_mul(sw, qf_set1(m->scales[r][b]));
                acc[r][v] = qf_fma(qf_of_int(d), s, acc[r][v]);
                if (zero == OX_ZERO_MIN)
                    acc[r][v] = qf_fma(mw, qf_set1(m->sums[r][b]), acc[r][v]);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < NV; v++)
            qf_store(c + r * COLS + (v0 + v) * QW, acc[r][v]);
}

typedef struct large_job {
    const ox_qlinear_args *a;
    const code_panel *panel;
    size_t b0, n_blocks;
} large_job;

#define LARGE_CASE(R, bits, zero)                                                                  \
    for (int v0 = 0; v0 < REGS; v0 += LARGE_REGS)                                                  \
    large_rows(j->panel, &m, x, ld, j->n_blocks, steps, !j->b0, c, R, v0, LARGE_REGS, bits, zero)
#define LARGE_ZEROS(R, bits)                                                                       \
    do {                                                                                           \
        if (code->zero == OX_ZERO_MIDDLE)                                                          \
            LARGE_CASE(R, bits, OX_ZERO_MIDDLE);                                                   \
        else if (code->zero == OX_ZERO_CODE)                                                       \
            LARGE_CASE(R, bits, OX_ZERO_CODE);                                                     \
        else                                                                                       \
            LARGE_CASE(R, bits, OX_ZERO_MIN);                                                      \
    } while (0)
/* Rows [r0, r0+R) of a strip times the panel. */
#define LARGE_FUNCTION(name, R)                                                                    \
    static void name(const large_job *j, size_t r0, float *c)                                      \
    {                                                                                              \
        const ox_code_layout *code = &j->a->w->code;                                               \
        const size_t ld = j->a->x->ld, steps = (size_t)code->block / 4;                            \
        const int8_t *x = ox_qact_codes(j->a->x, r0) + j->b0 * (size_t)code->block;                \
        strip_meta m;                                                                              \
        read_meta(j->a, r0, R, j->b0, j->n_blocks, &m);                                            \
        if (!DOT_NEEDS_BITS || code->bits == 4)                                                    \
            LARGE_ZEROS(R, 4);                                                                     \
        else                                                                                       \
            LARGE_ZEROS(R, 8);                                                                     \
    }
LARGE_FUNCTION(large_full, LARGE_ROWS)
LARGE_FUNCTION(large_2, 2)
LARGE_FUNCTION(large_1, 1)

static void large_tile(const ox_qlinear_args *a, const uint8_t *tile, size_t r0, size_t n,
                       code_panel *panel, float *c)
{
    const size_t per = CHUNK / (size_t)a->w->code.block;
    for (size_t b0 = 0; b0 < a->w->blocks; b0 += per) {
        const size_t left = a->w->blocks - b0, n_blocks = left < per ? left : per;
        const large_job job = {a, panel, b0, n_blocks};
        unpack(a->w, tile + b0 * a->w->record, n_blocks, panel);
        size_t r = 0;
        for (; r + LARGE_ROWS <= n; r += LARGE_ROWS)
            large_full(&job, r0 + r, c + r * COLS);
        for (; r + 2 <= n; r += 2)
            large_2(&job, r0 + r, c + r * COLS);
        if (r < n) large_1(&job, r0 + r, c + r * COLS);
    }
}

static void run_small(const ox_qlinear_args *a, size_t begin, size_t end)
{
    const size_t per_unit = a->w->pairs ? 2 : 1;
    OX_ALIGNED(64) float c[2][8 * COLS];
    for (size_t u = begin; u < end; u++) {
        for (size_t i = 0; i < per_unit; i++)
            small_tile(a, a->w->data + (u * per_unit + i) * a->w->tile, 0, a->rows, c[i]);
        for (size_t r = 0; r < a->rows; r++)
            finish_row(a, u, r, c[0] + r * COLS, c[1] + r * COLS);
    }
}

static void run_large(const ox_qlinear_args *a, size_t begin, size_t end)
{
    const size_t per_unit = a->w->pairs ? 2 : 1;
    OX_ALIGNED(64) float c[2][STRIP * COLS];
    code_panel panel;
    for (size_t r0 = 0; r0 < a->rows; r0 += STRIP) {
        const size_t n = a->rows - r0 < STRIP ? a->rows - r0 : STRIP;
        for (size_t u = begin; u < end; u++) {
            for (size_t i = 0; i < per_unit; i++)
                large_tile(a, a->w->data + (u * per_unit + i) * a->w->tile, r0, n, &panel, c[i]);
            for (size_t r = 0; r < n; r++)
                finish_row(a, u, r0 + r, c[0] + r * COLS, c[1] + r * COLS);
        }
    }
}

void QLINEAR_NAME(const ox_qlinear_args *a, size_t begin, size_t end)
{
    if (a->rows <= 8)
        run_small(a, begin, end);
    else
        run_large(a, begin, end);
}
