/* Byte tiles for many rows: a tile product is 16 planes of rows times 16 columns times one block of
 * k, exact in int32. The integers go through memory into float sums in vector registers, one block
 * after the other as in every other row of the family.
 *
 * A tile holds 64 k and a block only 32, so half of the unit is idle: what bounds the loop is the
 * way out of the tiles. While tile instructions are in flight one 512-bit float instruction a cycle
 * runs, but two integer ones: two planes are joined as integers. */
#include "simd/amx.h"

#include "kernel/qlinear/lanes_avx512.h"

#include "kernel/qlinear/loops.h"

enum { TILE = 16, RING = 2, FILL = STRIP + TILE };

typedef struct byte_panel {                            /* CHUNK k of a tile of columns */
    OX_ALIGNED(64) uint8_t codes[CHUNK / 4][COLS * 4]; /* step s: dword lanes of four k */
    OX_ALIGNED(64) float scales[CHUNK_BLOCKS][COLS];
    OX_ALIGNED(64) float minima[CHUNK_BLOCKS][COLS];
} byte_panel;

typedef struct row_meta { /* of the rows of a tile, over the blocks of a panel */
    OX_ALIGNED(64) float scales[TILE][CHUNK_BLOCKS];
    float sums[TILE][CHUNK_BLOCKS]; /* scale * sum of the codes, for ZERO_MIN */
} row_meta;

typedef struct tile_job {
    const ox_qlinear_args *a;
    const int8_t *x; /* TILE planes of rows at the panel's first k, ld bytes apart */
    size_t ld, b0, n_blocks;
    byte_panel panel;
    row_meta meta;
    OX_ALIGNED(64) int32_t ring[RING][REGS][TILE][QW];
    OX_ALIGNED(64) int8_t last_rows[TILE][CHUNK]; /* copy of x where fewer rows are left */
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

/* n rows from r0 on; their codes, too, when they are fewer than a tile's. */
static void read_rows(tile_job *j, size_t r0, size_t n)
{
    const ox_qact *q = j->a->x;
    const size_t planes = (size_t)q->planes, block = (size_t)q->block;
    const bool minima = j->a->w->code.zero == OX_ZERO_MIN;
    j->x = ox_qact_codes(q, r0 * planes) + j->b0 * block;
    j->ld = q->ld;
    for (size_t r = 0; r < n; r++) {
        const size_t first = (r0 + r) * planes, last = first + planes - 1;
        const float *scales = ox_qact_scales(q, last) + j->b0;
        for (size_t b = 0; b < j->n_blocks; b += QW) {
            const size_t left = j->n_blocks - b;
            const qi scale = qi_load_n(scales + b, left);
            qi_store(j->meta.scales[r] + b, scale);
            if (!minima) continue;
            qi sum = qi_load_n(ox_qact_sums(q, first) + j->b0 + b, left);
            if (planes == 2) sum = qi_join(sum, qi_load_n(ox_qact_sums(q, last) + j->b0 + b, left));
            qf_store(j->meta.sums[r] + b, qf_mul(qf_of_bits(scale), qf_of_int(sum)));
        }
    }
    if (n * planes == TILE) return;
    for (size_t i = 0; i < n * planes; i++)
        memcpy(j->last_rows[i], j->x + i * q->ld, j->n_blocks * block);
    j->x = j->last_rows[0];
    j->ld = CHUNK;
}

/* Integer products of block b with V registers of columns from v0 on: into tiles 0 and 1 of even
 * blocks, 2 and 3 of odd ones. */
OX_INLINE void start_block(const tile_job *j, size_t b, const int v0, const int V, const bool su)
{
    const size_t block = (size_t)j->a->w->code.block;
    const uint8_t *codes = j->panel.codes[b * block / 4] + v0 * QW * 4;
    const int8_t *rows = j->x + b * block;
#define PRODUCT(c, a, w, at)                                                                       \
    TILE_ZERO(c);                                                                                  \
    TILE_LOAD(w, at, COLS * 4);                                                                    \
    if (su)                                                                                        \
        TILE_DOT_SU(c, a, w);                                                                      \
    else                                                                                           \
        TILE_DOT_SS(c, a, w)
    if (b % 2) {
        TILE_LOAD(4, rows, j->ld);
        PRODUCT(2, 4, 6, codes);
        if (V == 2) {
            PRODUCT(3, 4, 7, codes + QW * 4);
        }
    } else {
        TILE_LOAD(5, rows, j->ld);
        PRODUCT(0, 5, 6, codes);
        if (V == 2) {
            PRODUCT(1, 5, 7, codes + QW * 4);
        }
    }
#undef PRODUCT
}

/* Register i (0 or 1) of a finished block to memory. */
OX_INLINE void store_block(tile_job *j, size_t b, const int i)
{
    int32_t *out = j->ring[b % RING][i][0];
    if (b % 2 && i)
        TILE_STORE(3, out, QW * 4);
    else if (b % 2)
        TILE_STORE(2, out, QW * 4);
    else if (i)
        TILE_STORE(1, out, QW * 4);
    else
        TILE_STORE(0, out, QW * 4);
}

/* Rows [r0, r1) of P planes, register i of a stored block, to float sums. */
OX_INLINE void finish_rows(const tile_job *j, size_t b, qf *acc, const int v0, const int i,
                           const int P, const bool minima, const int r0, const int r1)
{
    const int32_t(*from)[QW] = j->ring[b % RING][i];
    const qf sw = qf_load(j->panel.scales[b] + (v0 + i) * QW);
    const qf mw = minima ? qf_load(j->panel.minima[b] + (v0 + i) * QW) : sw;
    OX_UNROLL(16)
    for (int r = r0; r < r1; r++) {
        qi dot = qi_load(from[r * P]);
        if (P == 2) dot = qi_join(dot, qi_load(from[r * P + 1]));
        acc[r] = qf_fma(qf_of_int(dot), qf_mul(sw, qf_set1(j->meta.scales[r][b])), acc[r]);
        if (minima) acc[r] = qf_fma(mw, qf_set1(j->meta.sums[r][b]), acc[r]);
    }
}

/* Asks for a part of a block of the next tile's rows. */
OX_INLINE void prefetch_x(const tile_job *j, size_t b, const int first, const int n)
{
    const char *at = (const char *)j->x + (size_t)(TILE + first) * j->ld + b / 2 * 64;
    for (int r = 0; r < n; r++)
        _mm_prefetch(at + (size_t)r * j->ld, _MM_HINT_T0);
}

/* In flight at once: a product, one on its way to memory (asked for between parts of the sums, when
 * it is complete), and the sums of a third. V * TILE / P sums. */
OX_INLINE void tile_product(tile_job *j, float *c, const int v0, const int V, const int P,
                            const bool su, const bool minima)
{
    const size_t n = j->n_blocks;
    const int rows = TILE / P;
    qf acc[REGS][TILE];
    OX_UNROLL(2)
    for (int i = 0; i < V; i++)
        OX_UNROLL(16)
    for (int r = 0; r < rows; r++)
        acc[i][r] = j->b0 ? qf_load(c + r * COLS + (v0 + i) * QW) : qf_zero();
    start_block(j, 0, v0, V, su);
    for (int i = 0; i < V; i++)
        store_block(j, 0, i);
    if (n > 1) start_block(j, 1, v0, V, su);
    for (size_t b = 0; b < n; b++) {
        if (b + 2 < n) start_block(j, b + 2, v0, V, su);
        OX_UNROLL(2)
        for (int i = 0; i < V; i++) {
            finish_rows(j, b, acc[i], v0, i, P, minima, 0, rows / 2);
            if (b + 1 < n) store_block(j, b + 1, i);
            prefetch_x(j, b, (int)(b % 2) * 8 + (V == 2 ? i : v0) * 4, 4);
            finish_rows(j, b, acc[i], v0, i, P, minima, rows / 2, rows);
        }
    }
    OX_UNROLL(2)
    for (int i = 0; i < V; i++)
        OX_UNROLL(16)
    for (int r = 0; r < rows; r++)
        qf_store(c + r * COLS + (v0 + i) * QW, acc[i][r]);
}

typedef void product_fn(tile_job *j, float *c);
#define ONE_PLANE(name, su, minima)                                                                \
    static void name(tile_job *j, float *c)                                                        \
    {                                                                                              \
        tile_product(j, c, 0, 1, 1, su, minima);                                                   \
        tile_product(j, c, 1, 1, 1, su, minima);                                                   \
    }
#define TWO_PLANES(name, su, minima)                                                               \
    static void name(tile_job *j, float *c)                                                        \
    {                                                                                              \
        tile_product(j, c, 0, 2, 2, su, minima);                                                   \
    }
ONE_PLANE(plain_1, false, false)
ONE_PLANE(minima_1, true, true)
TWO_PLANES(plain_2, false, false)
TWO_PLANES(minima_2, true, true)

typedef struct strip { /* rows [r0, r0+n) and their float sums: of a tile, or of gate and up; those
                          of a last tile of few rows are stored whole */
    size_t r0, n;
    OX_ALIGNED(64) float c[2][FILL * COLS];
} strip;

static void prefetch_rows(const ox_qlinear_args *a, size_t unit, size_t r0, size_t n)
{
    for (size_t r = r0; r < r0 + n; r++) {
        const uintptr_t y = (uintptr_t)(a->y + r * a->ldy + unit * COLS);
        _mm_prefetch((const char *)y, _MM_HINT_T0);
        _mm_prefetch((const char *)(y + 64), _MM_HINT_T0);
    }
}

static void strip_tile(tile_job *j, size_t unit, size_t half, strip *s)
{
    static product_fn *const products[2][2] = {{plain_1, minima_1}, {plain_2, minima_2}};
    const ox_qlinear_args *a = j->a;
    const ox_qpack *p = a->w;
    const size_t block = (size_t)p->code.block, planes = (size_t)a->x->planes;
    const size_t per = CHUNK / block, per_unit = p->pairs ? 2 : 1, rows = TILE / planes;
    const uint8_t *tile = p->data + (unit * per_unit + half) * p->tile;
    product_fn *product = products[planes - 1][p->code.zero == OX_ZERO_MIN];
    for (j->b0 = 0; j->b0 < p->blocks; j->b0 += per) {
        const size_t left = p->blocks - j->b0;
        const bool last = half + 1 == per_unit && left <= per;
        j->n_blocks = left < per ? left : per;
        unpack(p, tile + j->b0 * p->record, j->n_blocks, &j->panel);
        for (size_t r = 0, n; r < s->n; r += n) {
            n = s->n - r < rows ? s->n - r : rows;
            if (last) prefetch_rows(a, unit, s->r0 + r, n);
            read_rows(j, s->r0 + r, n);
            product(j, s->c[half] + r * COLS);
            for (size_t i = r; last && i < r + n; i++)
                finish_row(a, unit, s->r0 + i, s->c[0] + i * COLS, s->c[1] + i * COLS);
        }
    }
}

/* Tiles 0 to 3 hold products, 4 and 5 rows of x, 6 and 7 codes. */
static tile_config config_for(const ox_qlinear_args *a)
{
    const size_t block = (size_t)a->w->code.block;
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)(i < 6 ? TILE : block / 4);
        c.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? block : 64);
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
    if (a->rows * (size_t)a->x->planes < TILE) {
        ox_qlinear_avx512vnni(a, begin, end);
        return;
    }
    strip s;
    tile_job j;
    j.a = a;
    memset(&j.meta, 0, sizeof(j.meta)); /* rows that are not there add nothing */
    memset(j.last_rows, 0, sizeof(j.last_rows));
    const tile_config c = config_for(a);
    tile_begin(&c);
    for (s.r0 = 0; s.r0 < a->rows; s.r0 += STRIP) {
        s.n = a->rows - s.r0 < STRIP ? a->rows - s.r0 : STRIP;
        for (size_t u = begin; u < end; u++) {
            strip_tile(&j, u, 0, &s);
            if (a->w->pairs) strip_tile(&j, u, 1, &s);
        }
    }
    tile_end();
}
