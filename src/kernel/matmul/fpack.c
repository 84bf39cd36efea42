/* fpack.c - lays float weights out in tiles of 16 columns. Float formats are moved element by
 * element, stored either way round; everything else goes through float32 rows. */
#include "kernel/matmul/fpack.h"

#include "base/mem.h"

#include <string.h>

enum { LANES = OX_FPACK_LANES };

static ox_dtype float_type(const ox_weight *w)
{
    return w->format == OX_FORMAT_F16    ? OX_DTYPE_F16
           : w->format == OX_FORMAT_BF16 ? OX_DTYPE_BF16
                                         : OX_DTYPE_F32;
}

ox_status ox_fpack_plan(ox_fpack *p, const ox_weight *const *weights, size_t n_weights,
                        size_t *bytes, ox_err *err)
{
    size_t n = 0, tiles, total;
    *p = (ox_fpack){0};
    if (n_weights == 0) return OX_FAIL(err, OX_BAD_ARGUMENT, "a float pack needs a weight");
    for (size_t i = 0; i < n_weights; i++) {
        const ox_weight *w = weights[i];
        if (w->cols != weights[0]->cols)
            return OX_FAIL(
                err, OX_BAD_ARGUMENT, "weight %.*s has %lld columns, others of its stack have %lld",
                (int)w->name.n, w->name.p, (long long)w->cols, (long long)weights[0]->cols);
        if (w->rows < 0 || w->cols < 0 || !ox_size_add(n, (size_t)w->rows, &n))
            return OX_FAIL(err, OX_LIMIT, "weight %.*s is too large", (int)w->name.n, w->name.p);
    }
    p->dtype = float_type(weights[0]);
    for (size_t i = 1; i < n_weights; i++)
        if (float_type(weights[i]) != p->dtype) p->dtype = OX_DTYPE_F32;
    p->n = n;
    p->k = (size_t)weights[0]->cols;
    if (!ox_size_add(n, LANES - 1, &tiles) || !ox_size_mul(tiles / LANES, p->k, &total) ||
        !ox_size_mul(total, LANES * (p->dtype == OX_DTYPE_F32 ? 4 : 2), bytes))
        return OX_FAIL(err, OX_LIMIT, "weight %.*s is too large to pack", (int)weights[0]->name.n,
                       weights[0]->name.p);
    return OX_OK;
}

/* The weight that holds row r of the stack; *r becomes its own row. */
static const ox_weight *find_row(const ox_weight *const *weights, size_t *r)
{
    while (*r >= (size_t)(*weights)->rows) {
        *r -= (size_t)(*weights)->rows;
        weights++;
    }
    return *weights;
}

/* Column c of a tile: k elements of size `size`, `step` elements apart in the source. */
static void spread(char *tile, size_t c, const char *src, size_t k, size_t step, size_t size)
{
    if (size == 4)
        for (size_t i = 0; i < k; i++)
            memcpy(tile + 4 * (i * LANES + c), src + 4 * i * step, 4);
    else
        for (size_t i = 0; i < k; i++)
            memcpy(tile + 2 * (i * LANES + c), src + 2 * i * step, 2);
}

static void fill_column(const ox_fpack *p, const ox_weight *w, size_t r, char *tile, size_t c,
                        float *row)
{
    const size_t size = p->dtype == OX_DTYPE_F32 ? 4 : 2;
    const bool is_float =
        w->format == OX_FORMAT_F32 || w->format == OX_FORMAT_F16 || w->format == OX_FORMAT_BF16;
    if (is_float && float_type(w) == p->dtype) {
        const char *src = (const char *)w->data + size * (w->transposed ? r : r * p->k);
        spread(tile, c, src, p->k, w->transposed ? (size_t)w->rows : 1, size);
        return;
    }
    ox_weight_row_f32(w, (int64_t)r, row);
    spread(tile, c, (const char *)row, p->k, 1, 4);
}

/* A tile whose 16 columns lie side by side in one weight stored [cols, rows]. */
static void copy_tile(const ox_fpack *p, const ox_weight *w, size_t r, char *tile)
{
    const size_t size = p->dtype == OX_DTYPE_F32 ? 4 : 2;
    const char *src = (const char *)w->data + size * r;
    for (size_t k = 0; k < p->k; k++)
        memcpy(tile + size * LANES * k, src + size * (size_t)w->rows * k, size * LANES);
}

ox_status ox_fpack_fill(const ox_fpack *p, const ox_weight *const *weights, size_t n_weights,
                        size_t begin, size_t end, ox_err *err)
{
    const size_t size = p->dtype == OX_DTYPE_F32 ? 4 : 2, tile_bytes = p->k * LANES * size;
    float *row = ox_alloc(p->k * sizeof(float));
    if (!row) return OX_FAIL(err, OX_NO_MEMORY, "no memory to pack a weight");
    (void)n_weights;
    for (size_t t = begin; t < end; t++) {
        char *tile = (char *)p->data + t * tile_bytes;
        size_t r = t * LANES;
        const ox_weight *w = find_row(weights, &r);
        if (w->transposed && float_type(w) == p->dtype && r + LANES <= (size_t)w->rows) {
            copy_tile(p, w, r, tile);
            continue;
        }
        if (t * LANES + LANES > p->n) memset(tile, 0, tile_bytes);
        for (size_t c = 0; c < LANES && t * LANES + c < p->n; c++) {
            r = t * LANES + c;
            w = find_row(weights, &r);
            fill_column(p, w, r, tile, c, row);
        }
    }
    ox_free(row);
    return OX_OK;
}
