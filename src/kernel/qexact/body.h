/* body.h - the row of a SIMD tier. An ISA file includes a lanes header, defines
 *   code_table          what code_float() wants beside the codes
 *   code_float(w, i, bits, middle, table)   code i of each lane's word, minus middle, as float
 *   add_floats(a, b), QEXACT_NAME
 * then includes this. Few rows read the packed codes directly; more rows share a panel of codes as
 * floats, 128 k of a tile. Order of sums: qexact.h. */
#include "kernel/qexact/qexact.h"
#include "kernel/qlinear/loops.h"

enum {
    DIRECT_ROWS = 4,               /* rows of the direct loop */
    PANEL_ROWS = QW == 16 ? 6 : 3, /* rows of the panel loop */
    PANEL_REGS = 2,
    PANEL_K = 128, /* 16 KiB of floats */
};

/* x of a block, padded with zeros in `tail` when the row ends inside it. */
OX_INLINE const float *block_x(const float *row, size_t k, size_t at, size_t block, float *tail)
{
    if (k - at >= block) return row + at;
    memset(tail, 0, block * sizeof(float));
    memcpy(tail, row + at, (k - at) * sizeof(float));
    return tail;
}

OX_INLINE float sum_of(const float *x, size_t block)
{
    return vf_sum(block == 32 ? vf_add(vf_load(x), vf_load(x + 16)) : vf_load(x));
}

/* One block's sums of one row and register into its accumulator. */
OX_INLINE qf scale_block(qf even, qf odd, qf scale, qf extra, float sum_x, qf acc, const int zero)
{
    qf s = add_floats(even, odd);
    if (zero == OX_ZERO_CODE) s = qf_fma(extra, qf_set1(-sum_x), s);
    acc = qf_fma(s, scale, acc);
    return zero == OX_ZERO_MIN ? qf_fma(extra, qf_set1(sum_x), acc) : acc;
}

/* Minima, or zeros as floats, of register v; `at` points behind a record's codes. */
OX_INLINE qf load_extra(const uint8_t *at, int v, bool f16, const int zero)
{
    const uint8_t *p = at + COLS * (f16 ? 2 : 4);
    if (zero == OX_ZERO_MIN) return load_floats(p, v, f16);
    return zero == OX_ZERO_CODE ? qf_of_int(qi_load_u8(p + v * QW)) : qf_zero();
}

OX_INLINE int middle_of(int bits, int zero)
{
    return zero == OX_ZERO_MIDDLE ? 1 << (bits - 1) : 0;
}

/* R rows times registers [v0, v0+NV) of a tile, into c[r][32]. */
OX_INLINE void direct_rows(const ox_qexact_args *a, const uint8_t *rec, size_t r0, float *c,
                           const int R, const int v0, const int NV, const int bits, const int zero,
                           const size_t block)
{
    const ox_qpack *p = a->w;
    const bool f16 = p->code.scale_f16;
    const int per = 32 / bits, middle = middle_of(bits, zero);
    const code_table table = code_table_of(middle);
    qf acc[DIRECT_ROWS][REGS];
    float tail[DIRECT_ROWS][32];
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        acc[r][v] = qf_zero();
    for (size_t b = 0; b < p->blocks; b++, rec += p->record) {
        if (!v0) prefetch(rec, p->record);
        const float *x[DIRECT_ROWS];
        float sum[DIRECT_ROWS];
        OX_UNROLL(8)
        for (int r = 0; r < R; r++) {
            x[r] = block_x(a->xf + (r0 + (size_t)r) * a->ldx, p->k, b * block, block, tail[r]);
            sum[r] = zero == OX_ZERO_MIDDLE ? 0.0f : sum_of(x[r], block);
        }
        qf even[DIRECT_ROWS][REGS], odd[DIRECT_ROWS][REGS];
        OX_UNROLL(8)
        for (int r = 0; r < R; r++)
            OX_UNROLL(4)
        for (int v = 0; v < NV; v++)
            even[r][v] = odd[r][v] = qf_zero();
        for (size_t j = 0; j < block / (size_t)per; j++) {
            qi w[REGS];
            OX_UNROLL(4)
            for (int v = 0; v < NV; v++)
                w[v] = qi_load(rec + codes_offset(v0 + v, block * (size_t)bits * 2) + 64 * j);
            OX_UNROLL(8)
            for (int i = 0; i < per; i++)
                OX_UNROLL(4)
            for (int v = 0; v < NV; v++) {
                const qf q = code_float(w[v], i, bits, middle, table);
                OX_UNROLL(8)
                for (int r = 0; r < R; r++) {
                    qf *s = i % 2 ? &odd[r][v] : &even[r][v];
                    *s = qf_fma(q, qf_set1(x[r][j * (size_t)per + (size_t)i]), *s);
                }
            }
        }
        const uint8_t *at = rec + (size_t)COLS * block * (size_t)bits / 8;
        OX_UNROLL(4)
        for (int v = 0; v < NV; v++) {
            const qf scale = load_floats(at, v0 + v, f16),
                     extra = load_extra(at, v0 + v, f16, zero);
            OX_UNROLL(8)
            for (int r = 0; r < R; r++)
                acc[r][v] =
                    scale_block(even[r][v], odd[r][v], scale, extra, sum[r], acc[r][v], zero);
        }
    }
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(4)
    for (int v = 0; v < NV; v++)
        qf_store(c + r * COLS + (v0 + v) * QW, acc[r][v]);
}

#define DIRECT_CASE(zero, R, bits, block)                                                          \
    for (int v0 = 0; v0 < REGS; v0 += 2)                                                           \
    direct_rows(a, tile, r0, c, R, v0, 2, bits, zero, block)
#define DIRECT_FUNCTION(R)                                                                         \
    static void direct_##R(const ox_qexact_args *a, const uint8_t *tile, size_t r0, float *c)      \
    {                                                                                              \
        const ox_code_layout *l = &a->w->code;                                                     \
        if (l->bits == 4 && l->block == 32)                                                        \
            FOR_ZERO(l->zero, DIRECT_CASE, R, 4, 32);                                              \
        else if (l->bits == 4)                                                                     \
            FOR_ZERO(l->zero, DIRECT_CASE, R, 4, 16);                                              \
        else if (l->block == 32)                                                                   \
            FOR_ZERO(l->zero, DIRECT_CASE, R, 8, 32);                                              \
        else                                                                                       \
            FOR_ZERO(l->zero, DIRECT_CASE, R, 8, 16);                                              \
    }
DIRECT_FUNCTION(1)
DIRECT_FUNCTION(2)
DIRECT_FUNCTION(4)

typedef struct float_panel {
    OX_ALIGNED(64) float q[PANEL_K][COLS];
    OX_ALIGNED(64) float scales[PANEL_K / 16][COLS];
    OX_ALIGNED(64) float extra[PANEL_K / 16][COLS];
} float_panel;

OX_INLINE void unpack_floats(const ox_qpack *p, const uint8_t *rec, size_t n_blocks,
                             float_panel *out, const int bits, const int zero)
{
    const size_t block = (size_t)p->code.block;
    const int per = 32 / bits, middle = middle_of(bits, zero);
    const code_table table = code_table_of(middle);
    for (size_t b = 0; b < n_blocks; b++, rec += p->record) {
        const uint8_t *at = rec + (size_t)COLS * block * (size_t)bits / 8;
        prefetch(rec, p->record);
        for (int v = 0; v < REGS; v++) {
            qf_store(out->scales[b] + v * QW, load_floats(at, v, p->code.scale_f16));
            qf_store(out->extra[b] + v * QW, load_extra(at, v, p->code.scale_f16, zero));
            for (size_t j = 0; j < block / (size_t)per; j++) {
                const qi w = qi_load(rec + codes_offset(v, block * (size_t)bits * 2) + 64 * j);
                OX_UNROLL(8)
                for (int i = 0; i < per; i++)
                    qf_store(out->q[b * block + j * (size_t)per + (size_t)i] + v * QW,
                             code_float(w, i, bits, middle, table));
            }
        }
    }
}

/* R rows times registers [v0, v0+2) of a panel that begins at block b0, added to c[r][32]. */
OX_INLINE void panel_rows(const ox_qexact_args *a, const float_panel *p, size_t r0, size_t b0,
                          size_t n_blocks, float *c, const int R, const int v0, const int zero)
{
    const size_t block = (size_t)a->w->code.block;
    float tail[PANEL_ROWS][32];
    qf acc[PANEL_ROWS][PANEL_REGS];
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(2)
    for (int v = 0; v < PANEL_REGS; v++)
        acc[r][v] = b0 ? qf_load(c + r * COLS + (v0 + v) * QW) : qf_zero();
    for (size_t b = 0; b < n_blocks; b++) {
        const float *x[PANEL_ROWS];
        qf s[2][PANEL_ROWS][PANEL_REGS];
        OX_UNROLL(8)
        for (int r = 0; r < R; r++) {
            x[r] = block_x(a->xf + (r0 + (size_t)r) * a->ldx, a->w->k, (b0 + b) * block, block,
                           tail[r]);
            OX_UNROLL(2)
            for (int v = 0; v < PANEL_REGS; v++)
                s[0][r][v] = s[1][r][v] = qf_zero();
        }
        const float(*q)[COLS] = p->q + b * block;
        for (size_t k = 0; k < block; k += 2)
            OX_UNROLL(2)
        for (size_t i = 0; i < 2; i++)
            OX_UNROLL(8)
        for (int r = 0; r < R; r++)
            OX_UNROLL(2)
        for (int v = 0; v < PANEL_REGS; v++)
            s[i][r][v] =
                qf_fma(qf_load(q[k + i] + (v0 + v) * QW), qf_set1(x[r][k + i]), s[i][r][v]);
        OX_UNROLL(8)
        for (int r = 0; r < R; r++) {
            const float sum = zero == OX_ZERO_MIDDLE ? 0.0f : sum_of(x[r], block);
            OX_UNROLL(2)
            for (int v = 0; v < PANEL_REGS; v++)
                acc[r][v] =
                    scale_block(s[0][r][v], s[1][r][v], qf_load(p->scales[b] + (v0 + v) * QW),
                                qf_load(p->extra[b] + (v0 + v) * QW), sum, acc[r][v], zero);
        }
    }
    OX_UNROLL(8)
    for (int r = 0; r < R; r++)
        OX_UNROLL(2)
    for (int v = 0; v < PANEL_REGS; v++)
        qf_store(c + r * COLS + (v0 + v) * QW, acc[r][v]);
}

typedef struct panel_job {
    const ox_qexact_args *a;
    const float_panel *panel;
    size_t b0, n_blocks;
} panel_job;

#define PANEL_CASE(zero, R)                                                                        \
    for (int v0 = 0; v0 < REGS; v0 += PANEL_REGS)                                                  \
    panel_rows(j->a, j->panel, r0, j->b0, j->n_blocks, c, R, v0, zero)
#define PANEL_FUNCTION(name, R)                                                                    \
    static void name(const panel_job *j, size_t r0, float *c)                                      \
    {                                                                                              \
        FOR_ZERO(j->a->w->code.zero, PANEL_CASE, R);                                               \
    }
PANEL_FUNCTION(panel_full, PANEL_ROWS)
PANEL_FUNCTION(panel_1, 1)

#define UNPACK_CASE(zero, bits) unpack_floats(p, rec, n_blocks, out, bits, zero)
static void unpack_panel(const ox_qpack *p, const uint8_t *rec, size_t n_blocks, float_panel *out)
{
    if (p->code.bits == 4)
        FOR_ZERO(p->code.zero, UNPACK_CASE, 4);
    else
        FOR_ZERO(p->code.zero, UNPACK_CASE, 8);
}

/* Rows [r0, r0+n) of a tile, n <= DIRECT_ROWS. */
static void direct_tile(const ox_qexact_args *a, const uint8_t *tile, size_t r0, size_t n, float *c)
{
    if (n == 4) {
        direct_4(a, tile, r0, c);
        return;
    }
    if (n >= 2) direct_2(a, tile, r0, c);
    if (n % 2) direct_1(a, tile, r0 + n - 1, c + (n - 1) * COLS);
}

static void panel_tile(const ox_qexact_args *a, const uint8_t *tile, size_t r0, size_t n,
                       float_panel *panel, float *c)
{
    const ox_qpack *p = a->w;
    const size_t per = PANEL_K / (size_t)p->code.block;
    for (size_t b0 = 0; b0 < p->blocks; b0 += per) {
        const size_t left = p->blocks - b0;
        const panel_job job = {a, panel, b0, left < per ? left : per};
        unpack_panel(p, tile + b0 * p->record, job.n_blocks, panel);
        size_t r = 0;
        for (; r + PANEL_ROWS <= n; r += PANEL_ROWS)
            panel_full(&job, r0 + r, c + r * COLS);
        for (; r < n; r++)
            panel_1(&job, r0 + r, c + r * COLS);
    }
}

void QEXACT_NAME(const ox_qexact_args *a, size_t begin, size_t end)
{
    const size_t per_unit = a->w->pairs ? 2 : 1;
    const bool direct = a->rows <= DIRECT_ROWS;
    OX_ALIGNED(64) float c[2][STRIP * COLS];
    float_panel panel;
    for (size_t r0 = 0; r0 < a->rows; r0 += STRIP) {
        const size_t n = a->rows - r0 < STRIP ? a->rows - r0 : STRIP;
        for (size_t u = begin; u < end; u++) {
            for (size_t i = 0; i < per_unit; i++) {
                const uint8_t *tile = a->w->data + (u * per_unit + i) * a->w->tile;
                if (direct)
                    direct_tile(a, tile, r0, n, c[i]);
                else
                    panel_tile(a, tile, r0, n, &panel, c[i]);
            }
            for (size_t r = 0; r < n; r++)
                finish_row(a, u, r0 + r, c[0] + r * COLS, c[1] + r * COLS);
        }
    }
}
