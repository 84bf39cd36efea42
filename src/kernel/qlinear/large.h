/* large.h - more rows: 512 k of a tile are unpacked to bytes in the first-level cache ("panel") and
 * meet all rows of a strip; float accumulators live in a strip buffer between panels. */
#ifndef OX_KERNEL_QLINEAR_LARGE_H
#define OX_KERNEL_QLINEAR_LARGE_H
#include "kernel/qlinear/loops.h"

typedef struct code_panel {
    OX_ALIGNED(64) uint8_t codes[CHUNK / 4][COLS * 4]; /* step s: dword lanes of four k */
    OX_ALIGNED(64) float scales[CHUNK_BLOCKS][COLS];
    OX_ALIGNED(64) uint32_t extra[CHUNK_BLOCKS][COLS]; /* minima as floats, zeros as integers */
} code_panel;

enum { LARGE_PLANES = LARGE_ROWS > 2 * LARGE_PAIRS ? LARGE_ROWS : 2 * LARGE_PAIRS };
typedef struct strip_meta { /* of the rows at work, over the blocks of a panel */
    float scales[LARGE_PLANES][CHUNK_BLOCKS];
    int32_t words[LARGE_PLANES][CHUNK_BLOCKS]; /* of each plane: zero_factor * sum */
    float sums[LARGE_PLANES][CHUNK_BLOCKS];    /* scale * sum, for ZERO_MIN */
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
            else
                qi_store(out->extra[b] + v * QW, load_zeros(&p->code, at + floats, v));
        }
    }
}

OX_INLINE void read_meta(const ox_qlinear_args *a, size_t r0, const int n, const int P, size_t b0,
                         size_t n_blocks, strip_meta *m, const int zero)
{
    const bool minima = a->w->code.zero == OX_ZERO_MIN;
    const qi factor = qi_set1(word_factor(a->w->code.bits, zero) & 0xffff);
    for (int r = 0; r < n; r++) {
        const size_t first = (r0 + (size_t)r) * (size_t)P, last = first + (size_t)P - 1;
        const float *scales = ox_qact_scales(a->x, last) + b0;
        for (size_t b = 0; b < n_blocks; b += QW) {
            const qi scale = qi_load_n(scales + b, n_blocks - b);
            qi_store(m->scales[r] + b, scale);
            qi sum = qi_zero();
            for (int i = 0; i < P; i++) {
                const qi one =
                    qi_load_n(ox_qact_sums(a->x, first + (size_t)i) + b0 + b, n_blocks - b);
                sum = qi_join(sum, one);
                if (!minima) qi_store(m->words[r * P + i] + b, qi_mul16(one, factor));
            }
            if (minima) qf_store(m->sums[r] + b, qf_mul(qf_of_bits(scale), qf_of_int(sum)));
        }
    }
}

typedef struct large_job {
    const ox_qlinear_args *a;
    const code_panel *panel;
    size_t b0, n_blocks;
} large_job;

typedef struct block_view { /* of a panel's block, and of the rows that meet it */
    const code_panel *p;
    const strip_meta *m;
    size_t b;
    bool minima;
    qi zeros[LARGE_REGS];
} block_view;

/* Row r's integer in register v out of its planes' finished products. */
OX_INLINE qi large_join(const block_view *k, qi (*dot)[LARGE_REGS], const int r, const int P,
                        const int v, const int bits, const int zero)
{
    qi d = qi_zero();
    OX_UNROLL(2)
    for (int i = r * P; i < (r + 1) * P; i++) {
        const qi one = dot_end(dot[i][v], zero_init(k->m->words[i][k->b], k->zeros[v], zero), bits);
        d = i == r * P ? one : qi_join(d, one);
    }
    return d;
}

/* Row r's finished integer sums to its float sums. */
OX_INLINE void large_scale(const block_view *k, qi (*dot)[LARGE_REGS], qf *acc, const int r,
                           const int P, const int v0, const int NV, const int bits, const int zero)
{
    const qf sx = qf_set1(k->m->scales[r][k->b]);
    OX_UNROLL(4)
    for (int v = 0; v < NV; v++) {
        const qi d = large_join(k, dot, r, P, v, bits, zero);
        const qf s = qf_mul(qf_load(k->p->scales[k->b] + (v0 + v) * QW), sx);
        acc[v] = qf_fma(qf_of_int(d), s, acc[v]);
        if (zero == ANY_ZERO ? !k->minima : zero != OX_ZERO_MIN) continue;
        const qf mw = qf_load(k->p->extra[k->b] + (v0 + v) * QW);
        acc[v] = qf_fma(mw, qf_set1(k->m->sums[r][k->b]), acc[v]);
    }
}

/* R rows of P planes times registers [v0, v0+NV) of a panel, added to c[r][32]. The last step of a
 * block is interleaved with the scaling of rows that are done: a core that shares its scheduler
 * with a sibling thread does not look far enough ahead to do so itself. */
OX_INLINE void large_rows(const large_job *j, const strip_meta *m, const int8_t *x, float *c,
                          const int R, const int P, const int v0, const int NV, const int bits,
                          const int zero, const size_t steps)
{
    const code_panel *p = j->panel;
    const size_t ld = j->a->x->ld, n_blocks = j->n_blocks;
    const bool minima = j->a->w->code.zero == OX_ZERO_MIN;
    const int lag = LAG < R ? LAG : R;
    qf acc[LARGE_ROWS][LARGE_REGS];
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        acc[r][v] = j->b0 ? qf_load(c + r * COLS + (v0 + v) * QW) : qf_zero();
    const uint8_t(*codes)[COLS * 4] = p->codes;
    for (size_t b = 0; b < n_blocks; b++, codes += steps, x += 4 * steps) {
        qi dot[LARGE_PLANES][LARGE_REGS];
        block_view k = {.p = p, .m = m, .b = b, .minima = minima};
        OX_UNROLL(8)
        for (int i = 0; i < R * P; i++)
            _mm_prefetch((const char *)((uintptr_t)x + (size_t)(R * P + i) * ld), _MM_HINT_T0);
        OX_UNROLL(4)
        for (int v = 0; v < NV; v++)
            k.zeros[v] = minima ? qi_zero() : qi_load(p->extra[b] + (v0 + v) * QW);
        OX_UNROLL(8)
        for (int i = 0; i < R * P; i++)
            OX_UNROLL(4)
        for (int v = 0; v < NV; v++)
            dot[i][v] = dot_begin(zero_init(m->words[i][b], k.zeros[v], zero));
        OX_UNROLL(8)
        for (size_t s = 0; s < steps; s++) {
            qi w[LARGE_REGS];
            OX_UNROLL(4)
            for (int v = 0; v < NV; v++)
                w[v] = qi_load(codes[s] + (v0 + v) * QW * 4);
            OX_UNROLL(8)
            for (int i = 0; i < R * P; i++) {
                const qi xi = qi_set1(x_word(x + (size_t)i * ld, s));
                const int done = (i + 1) / P - 1 - lag; /* row to be scaled now */
                OX_UNROLL(4)
                for (int v = 0; v < NV; v++)
                    dot[i][v] = dot_step(dot[i][v], w[v], xi, bits);
                if (s + 1 == steps && (i + 1) % P == 0 && done >= 0)
                    large_scale(&k, dot, acc[done], done, P, v0, NV, bits, zero);
            }
        }
        OX_UNROLL(8)
        for (int r = R - lag; r < R; r++)
            large_scale(&k, dot, acc[r], r, P, v0, NV, bits, zero);
    }
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        qf_store(c + r * COLS + (v0 + v) * QW, acc[r][v]);
}

#define LARGE_CASE(zero, R, P, bits, steps)                                                        \
    do {                                                                                           \
        read_meta(j->a, r0, R, P, j->b0, j->n_blocks, &m, zero);                                   \
        for (int v0 = 0; v0 < REGS; v0 += LARGE_REGS)                                              \
            large_rows(j, &m, x, c, R, P, v0, LARGE_REGS, bits, zero, steps);                      \
    } while (0)
#define LARGE_ANY(kind, CASE, ...) CASE(ANY_ZERO, __VA_ARGS__)
/* Rows [r0, r0+R) of P planes times the panel. KINDS: FOR_ZERO or LARGE_ANY. */
#define LARGE_FUNCTION(name, R, P, KINDS)                                                          \
    static void name(const large_job *j, size_t r0, float *c)                                      \
    {                                                                                              \
        const ox_code_layout *l = &j->a->w->code;                                                  \
        const int8_t *x = ox_qact_codes(j->a->x, r0 * P) + j->b0 * (size_t)l->block;               \
        const bool narrow = !DOT_NEEDS_BITS || l->bits == 4;                                       \
        strip_meta m;                                                                              \
        if (narrow && l->block == 32)                                                              \
            KINDS(l->zero, LARGE_CASE, R, P, 4, 8);                                                \
        else if (narrow)                                                                           \
            KINDS(l->zero, LARGE_CASE, R, P, 4, 4);                                                \
        else if (l->block == 32)                                                                   \
            KINDS(l->zero, LARGE_CASE, R, P, 8, 8);                                                \
        else                                                                                       \
            KINDS(l->zero, LARGE_CASE, R, P, 8, 4);                                                \
    }
LARGE_FUNCTION(large_full_1, LARGE_ROWS, 1, LARGE_KINDS)
LARGE_FUNCTION(large_two_1, 2, 1, LARGE_ANY)
LARGE_FUNCTION(large_one_1, 1, 1, LARGE_ANY)
LARGE_FUNCTION(large_full_2, LARGE_PAIRS, 2, LARGE_KINDS)
LARGE_FUNCTION(large_two_2, 2, 2, LARGE_ANY)
LARGE_FUNCTION(large_one_2, 1, 2, LARGE_ANY)

typedef void large_fn(const large_job *j, size_t r0, float *c);
typedef struct large_size { /* by planes - 1 */
    large_fn *full, *two, *one;
    size_t rows; /* of full */
} large_size;
static const large_size large_sizes[2] = {{large_full_1, large_two_1, large_one_1, LARGE_ROWS},
                                          {large_full_2, large_two_2, large_one_2, LARGE_PAIRS}};

typedef struct strip { /* rows [r0, r0+n) and their float sums: of a tile, or of gate and up */
    size_t r0, n;
    OX_ALIGNED(64) float c[2][STRIP * COLS];
} strip;

static void prefetch_rows(const ox_qlinear_args *a, size_t unit, size_t r0, size_t n)
{
    for (size_t r = r0; r < r0 + n; r++) {
        const uintptr_t y = (uintptr_t)(a->y + r * a->ldy + unit * COLS);
        _mm_prefetch((const char *)y, _MM_HINT_T0);
        _mm_prefetch((const char *)(y + 64), _MM_HINT_T0);
    }
}

/* Tile `half` (0, or 1 for the ups) of a unit times a strip. The pass that completes the sums also
 * writes y, a few rows at a time, whose lines it has asked for before it began. */
static void large_tile(const ox_qlinear_args *a, size_t unit, size_t half, code_panel *panel,
                       strip *s)
{
    const ox_qpack *p = a->w;
    const size_t per = CHUNK / (size_t)p->code.block, per_unit = p->pairs ? 2 : 1;
    const uint8_t *tile = p->data + (unit * per_unit + half) * p->tile;
    const large_size *size = &large_sizes[a->x->planes - 1];
    for (size_t b0 = 0; b0 < p->blocks; b0 += per) {
        const size_t left = p->blocks - b0, n_blocks = left < per ? left : per;
        const bool last = half + 1 == per_unit && left <= per;
        const large_job job = {a, panel, b0, n_blocks};
        unpack(p, tile + b0 * p->record, n_blocks, panel);
        for (size_t r = 0, step; r < s->n; r += step) {
            const size_t rows = s->n - r;
            step = rows >= size->rows ? size->rows : rows >= 2 ? 2 : 1;
            large_fn *fn = step == size->rows ? size->full : step == 2 ? size->two : size->one;
            if (last) prefetch_rows(a, unit, s->r0 + r, step);
            fn(&job, s->r0 + r, s->c[half] + r * COLS);
            for (size_t i = r; last && i < r + step; i++)
                finish_row(a, unit, s->r0 + i, s->c[0] + i * COLS, s->c[1] + i * COLS);
        }
    }
}

static void run_large(const ox_qlinear_args *a, size_t begin, size_t end)
{
    strip s;
    code_panel panel;
    for (s.r0 = 0; s.r0 < a->rows; s.r0 += STRIP) {
        s.n = a->rows - s.r0 < STRIP ? a->rows - s.r0 : STRIP;
        for (size_t u = begin; u < end; u++) {
            large_tile(a, u, 0, &panel, &s);
            if (a->w->pairs) large_tile(a, u, 1, &panel, &s);
        }
    }
}
#endif
