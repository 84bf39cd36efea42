/* Byte tiles for many rows: a tile product is 16 planes of rows times 16 columns times one block of
 * k, exact in int32; float sums stay in vector registers, 16 rows of one register of columns, and
 * take one block after the other as in every other row of the family.
 *
 * A tile holds 64 k and a block only 32, so half of the unit is idle: what bounds the loop is the
 * way of the integers out of the tiles and into float sums (three vector instructions a row). */
#include "simd/amx.h"

#include "kernel/qlinear/lanes_avx512.h"

#include "kernel/qlinear/loops.h"

enum { TILE = 16, RING = 2 };

typedef struct byte_panel {                            /* CHUNK k of a tile of columns */
    OX_ALIGNED(64) uint8_t codes[CHUNK / 4][COLS * 4]; /* step s: dword lanes of four k */
    OX_ALIGNED(64) float scales[CHUNK_BLOCKS][COLS];
    OX_ALIGNED(64) float minima[CHUNK_BLOCKS][COLS];
} byte_panel;

typedef struct row_meta { /* of TILE planes of rows, over the blocks of a panel */
    OX_ALIGNED(64) float scales[TILE][CHUNK_BLOCKS];
    float sums[TILE][CHUNK_BLOCKS]; /* scale * sum of the codes, for ZERO_MIN */
} row_meta;

typedef struct tile_job {
    const ox_qlinear_args *a;
    const byte_panel *panel;
    const row_meta *meta;
    size_t b0, n_blocks;
    OX_ALIGNED(64) int32_t ring[RING][TILE][QW];
} tile_job;

/* Codes less their zeros: signed bytes. Minima are added apart: codes stay as they are. */
static void unpack_codes(const ox_qpack *p, const uint8_t *rec, const uint8_t *zeros,
                         uint8_t (*out)[COLS * 4])
{
    const size_t bits = (size_t)p->code.bits, lines = (size_t)p->code.block * bits / 32;
    for (int v = 0; v < REGS; v++) {
        __m512i zero = _mm512_setzero_si512();
        if (p->code.zero == OX_ZERO_MIDDLE) zero = _mm512_set1_epi8((char)(1 << (bits - 1)));
        if (p->code.zero == OX_ZERO_CODE)
            zero = _mm512_mullo_epi32(qi_load_u8(zeros + v * QW), _mm512_set1_epi32(0x01010101));
        for (size_t j = 0; j < lines; j++) {
            const qi w = qi_load(rec + codes_offset(v, lines * 64) + 64 * j);
            uint8_t *at = out[bits == 8 ? j : 2 * j] + v * QW * 4;
            qi_store(at, _mm512_sub_epi8(bits == 8 ? w : qi_low4(w), zero));
            if (bits == 4) qi_store(at + COLS * 4, _mm512_sub_epi8(qi_high4(w), zero));
        }
    }
}

static void unpack(const ox_qpack *p, const uint8_t *rec, size_t n_blocks, byte_panel *out)
{
    const bool f16 = p->code.scale_f16;
    const size_t steps = (size_t)p->code.block / 4, floats = COLS * (f16 ? 2 : 4);
    const size_t meta = (size_t)(COLS * p->code.block * p->code.bits / 8);
    for (size_t b = 0; b < n_blocks; b++, rec += p->record) {
        prefetch(rec, p->record);
        const uint8_t *at = rec + meta;
        unpack_codes(p, rec, at + floats, out->codes + b * steps);
        for (int v = 0; v < REGS; v++) {
            qf_store(out->scales[b] + v * QW, load_floats(at, v, f16));
            if (p->code.zero == OX_ZERO_MIN)
                qf_store(out->minima[b] + v * QW, load_floats(at + floats, v, f16));
        }
    }
}

static void read_meta(const ox_qlinear_args *a, size_t r0, size_t n, size_t b0, size_t n_blocks,
                      row_meta *m)
{
    for (size_t r = 0; r < n; r++) {
        const float *scales = ox_qact_scales(a->x, r0 + r) + b0;
        const int32_t *sums = ox_qact_sums(a->x, r0 + r) + b0;
        for (size_t b = 0; b < n_blocks; b += QW) {
            const qi scale = qi_load_n(scales + b, n_blocks - b);
            qi_store(m->scales[r] + b, scale);
            if (a->w->code.zero != OX_ZERO_MIN) continue;
            const qf sum = qf_of_int(qi_load_n(sums + b, n_blocks - b));
            qf_store(m->sums[r] + b, qf_mul(qf_of_bits(scale), sum));
        }
    }
}

/* Integer products of block b, register v: into tile 0 or 1. The last rows of x may be fewer than a
 * tile: tiles 6 and 7 have their number. */
OX_INLINE void start_block(const tile_job *j, const int8_t *x, size_t b, const int v, const bool su,
                           const bool tail)
{
    const size_t block = (size_t)j->a->w->code.block, ld = j->a->x->ld;
    const uint8_t *codes = j->panel->codes[b * block / 4] + v * QW * 4;
    const int8_t *rows = x + b * block;
#define START(c, a, w)                                                                             \
    TILE_ZERO(c);                                                                                  \
    TILE_LOAD(a, rows, ld);                                                                        \
    TILE_LOAD(w, codes, COLS * 4);                                                                 \
    if (su)                                                                                        \
        TILE_DOT_SU(c, a, w);                                                                      \
    else                                                                                           \
        TILE_DOT_SS(c, a, w)
    if (tail) {
        START(6, 7, 4);
    } else if (b % 2) {
        START(0, 2, 4);
    } else {
        START(1, 3, 5);
    }
#undef START
}

OX_INLINE void store_block(tile_job *j, size_t b, const bool tail)
{
    int32_t *out = j->ring[b % RING][0];
    if (tail)
        TILE_STORE(6, out, QW * 4);
    else if (b % 2)
        TILE_STORE(0, out, QW * 4);
    else
        TILE_STORE(1, out, QW * 4);
}

/* Rows [r0, r1) of a stored block to float sums. */
OX_INLINE void finish_rows(const tile_job *j, size_t b, qf *acc, const int v, const bool minima,
                           const int r0, const int r1)
{
    const qf sw = qf_load(j->panel->scales[b] + v * QW);
    const qf mw = minima ? qf_load(j->panel->minima[b] + v * QW) : sw;
    OX_UNROLL(16)
    for (int r = r0; r < r1; r++) {
        const qf dot = qf_of_int(qi_load(j->ring[b % RING][r]));
        acc[r] = qf_fma(dot, qf_mul(sw, qf_set1(j->meta->scales[r][b])), acc[r]);
        if (minima) acc[r] = qf_fma(mw, qf_set1(j->meta->sums[r][b]), acc[r]);
    }
}

/* Asks for a quarter of a block of the next tile's rows. */
OX_INLINE void prefetch_x(const int8_t *x, size_t ld, size_t b, const int v)
{
    const char *at = (const char *)x + (TILE + (b % 2 * 2 + (size_t)v) * 4) * ld + b / 2 * 64;
    for (size_t r = 0; r < 4; r++)
        _mm_prefetch(at + r * ld, _MM_HINT_T0);
}

/* In flight at once: a product, one on its way to memory (asked for between two halves of the
 * sums, when it is complete), and the sums of a third. */
OX_INLINE void tile_product(tile_job *j, const int8_t *x, float *c, const int v, const bool su,
                            const bool minima, const bool tail)
{
    const size_t n = j->n_blocks;
    qf acc[TILE];
    OX_UNROLL(16)
    for (int r = 0; r < TILE; r++)
        acc[r] = j->b0 ? qf_load(c + r * COLS + v * QW) : qf_zero();
    start_block(j, x, 0, v, su, tail);
    store_block(j, 0, tail);
    if (n > 1) start_block(j, x, 1, v, su, tail);
    for (size_t b = 0; b < n; b++) {
        if (tail && b + 1 < n) store_block(j, b + 1, tail);
        if (b + 2 < n) start_block(j, x, b + 2, v, su, tail);
        finish_rows(j, b, acc, v, minima, 0, TILE / 2);
        if (!tail && b + 1 < n) store_block(j, b + 1, tail);
        prefetch_x(x, j->a->x->ld, b, v);
        finish_rows(j, b, acc, v, minima, TILE / 2, TILE);
    }
    OX_UNROLL(16)
    for (int r = 0; r < TILE; r++)
        qf_store(c + r * COLS + v * QW, acc[r]);
}

typedef void product_fn(tile_job *j, const int8_t *x, float *c);
#define PRODUCT(name, su, minima, tail)                                                            \
    static void name(tile_job *j, const int8_t *x, float *c)                                       \
    {                                                                                              \
        tile_product(j, x, c, 0, su, minima, tail);                                                \
        tile_product(j, x, c, 1, su, minima, tail);                                                \
    }
PRODUCT(product_plain, false, false, false)
PRODUCT(product_plain_tail, false, false, true)
PRODUCT(product_minima, true, true, false)
PRODUCT(product_minima_tail, true, true, true)

typedef struct strip { /* planes [r0, r0+n) of rows and their float sums: of a tile, or of gate and
                          up; sums of a last tile of few rows are stored whole */
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

static void strip_tile(const ox_qlinear_args *a, size_t unit, size_t half, byte_panel *panel,
                       row_meta *meta, strip *s)
{
    const ox_qpack *p = a->w;
    const bool minima = p->code.zero == OX_ZERO_MIN;
    const size_t block = (size_t)p->code.block, planes = (size_t)a->x->planes;
    const size_t per = CHUNK / block, per_unit = p->pairs ? 2 : 1;
    const uint8_t *tile = p->data + (unit * per_unit + half) * p->tile;
    tile_job job = {.a = a, .panel = panel, .meta = meta};
    for (size_t b0 = 0; b0 < p->blocks; b0 += per) {
        const size_t left = p->blocks - b0;
        const bool last = half + 1 == per_unit && left <= per;
        job.b0 = b0;
        job.n_blocks = left < per ? left : per;
        unpack(p, tile + b0 * p->record, job.n_blocks, panel);
        for (size_t r = 0, n; r < s->n; r += n) {
            n = s->n - r < TILE ? s->n - r : TILE;
            const size_t row = (s->r0 + r) / planes;
            float *c = s->c[half] + r * COLS;
            const int8_t *x = ox_qact_codes(a->x, s->r0 + r) + b0 * block;
            if (last) prefetch_rows(a, unit, row, n / planes);
            read_meta(a, s->r0 + r, n, b0, job.n_blocks, meta);
            product_fn *full = minima ? product_minima : product_plain;
            product_fn *few = minima ? product_minima_tail : product_plain_tail;
            (n == TILE ? full : few)(&job, x, c);
            for (size_t i = 0; last && i < n; i += planes)
                finish_row(a, unit, row + i / planes, s->c[0] + (r + i) * COLS,
                           s->c[1] + (r + i) * COLS);
        }
    }
}

static tile_config config_for(const ox_qlinear_args *a, size_t tail)
{
    const size_t block = (size_t)a->w->code.block;
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        const bool weights = i == 4 || i == 5, rows = i == 2 || i == 3 || i == 7;
        c.rows[i] = (uint8_t)(weights ? block / 4 : i > 5 && tail ? tail : TILE);
        c.row_bytes[i] = (uint16_t)(rows ? block : 64);
    }
    return c;
}

/* Codes of 8 bits with zeros of their own would need 9 bits without them. */
bool ox_qlinear_amx_accepts(const void *args)
{
    const ox_qlinear_args *a = args;
    return a->rows >= TILE && !(a->w->code.bits == 8 && a->w->code.zero == OX_ZERO_CODE);
}

void ox_qlinear_amx(const ox_qlinear_args *a, size_t begin, size_t end)
{
    const size_t n = a->rows * (size_t)a->x->planes;
    if (n < TILE) {
        ox_qlinear_avx512vnni(a, begin, end);
        return;
    }
    strip s;
    byte_panel panel;
    row_meta meta = {0};
    const tile_config c = config_for(a, n % TILE);
    tile_begin(&c);
    for (s.r0 = 0; s.r0 < n; s.r0 += STRIP) {
        s.n = n - s.r0 < STRIP ? n - s.r0 : STRIP;
        for (size_t u = begin; u < end; u++) {
            strip_tile(a, u, 0, &panel, &meta, &s);
            if (a->w->pairs) strip_tile(a, u, 1, &panel, &meta, &s);
        }
    }
    tile_end();
}
