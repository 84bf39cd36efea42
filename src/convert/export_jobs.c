/* export_jobs.c - the bytes of model.onnx.data: where each array goes, and streaming matrices into
 * it stripe by stripe, so that memory stays at STRIPE bytes whatever the matrix. */
#include "convert/export_internal.h"

#include "tensor/half.h"
#include <assert.h>

enum { STRIPE = 32 << 20, TILE = 16 };

int64_t ox_job_rows(const ox_job *j)
{
    int64_t n = 0;
    for (int32_t i = 0; i < j->n_parts; i++)
        n += j->kind == OX_JOB_VECTOR ? j->parts[i]->cols : j->parts[i]->rows;
    return n;
}

int64_t ox_job_cols(const ox_job *j)
{
    return j->kind == OX_JOB_VECTOR ? 1 : j->parts[0]->cols;
}

static size_t item_bytes(ox_dtype t)
{
    return (size_t)ox_dtype_bits(t) / 8;
}

static bool place_array(uint64_t *at, uint64_t *end, size_t rows, size_t row_bytes, uint64_t *sum)
{
    size_t bytes;
    if (!ox_size_mul(rows, row_bytes, &bytes) || bytes > (uint64_t)INT64_MAX / 4) return false;
    if (*end > (uint64_t)INT64_MAX / 4) return false;
    *at = (*end + OX_DATA_ALIGN - 1) / OX_DATA_ALIGN * OX_DATA_ALIGN;
    *end = *at + bytes;
    *sum += bytes;
    return true;
}

bool ox_job_place(ox_job *j, uint64_t *end)
{
    j->bytes = 0;
    if (j->kind == OX_JOB_FLOATS)
        return place_array(&j->at, end, j->n_floats, item_bytes(j->dtype), &j->bytes);
    const size_t rows = (size_t)ox_job_rows(j);
    if (j->kind != OX_JOB_NBITS) {
        size_t row_bytes;
        return ox_size_mul((size_t)ox_job_cols(j), item_bytes(j->dtype), &row_bytes) &&
               place_array(&j->at, end, rows, row_bytes, &j->bytes);
    }
    const ox_nbits_sizes s = ox_nbits_row_sizes(ox_job_cols(j), j->form.bits, j->form.block);
    const size_t scale_bytes = s.blocks * item_bytes(j->dtype);
    if (!place_array(&j->at, end, rows, s.code_bytes, &j->bytes)) return false;
    if (!place_array(&j->scales_at, end, rows, scale_bytes, &j->bytes)) return false;
    if (j->form.zeros == OX_ZEROS_NONE) return true;
    const size_t zero_bytes = j->form.zeros == OX_ZEROS_PACKED ? s.zero_bytes : scale_bytes;
    return place_array(&j->zeros_at, end, rows, zero_bytes, &j->bytes);
}

static void store(void *to, const float *x, size_t n, ox_dtype t)
{
    if (t == OX_DTYPE_F32) {
        memcpy(to, x, n * sizeof *x);
        return;
    }
    uint16_t *half = to;
    for (size_t i = 0; i < n; i++)
        half[i] = t == OX_DTYPE_F16 ? ox_f32_to_f16(x[i]) : ox_f32_to_bf16(x[i]);
}

/* The row of the source that row r of the written part is. */
static int64_t source_row(const ox_pairs *p, int64_t r)
{
    if (!p->rotary) return r;
    const int64_t first = r / p->head_size * p->head_size, i = r % p->head_size;
    const int64_t half = p->rotary / 2;
    if (i < half) return first + 2 * i;
    return i < p->rotary ? first + 2 * (i - half) + 1 : r;
}

static ox_status progress(ox_stream *s, uint64_t bytes, ox_err *err)
{
    s->done += bytes;
    if (s->o->progress) s->o->progress(s->o->user, s->done, s->total);
    if (s->o->cancel && *s->o->cancel)
        return OX_FAIL(err, OX_CANCELLED, "interrupted before the folder was complete");
    return OX_OK;
}

static ox_status no_memory(const ox_job *j, ox_err *err)
{
    const ox_str name = j->n_parts ? j->parts[0]->name : OX_STR("a table");
    return OX_FAIL(err, OX_NO_MEMORY, "tensor %.*s: out of memory while writing it",
                   OX_STR_ARGS(name));
}

/* Buffers of one stripe of codes. */
typedef struct stripe {
    ox_nbits_sizes s;
    size_t n_rows, zero_bytes;
    uint8_t *codes, *wide, *zeros_wide, *zeros;
    float *row, *scales, *mins;
    void *scales_out, *zeros_out;
} stripe;

static bool stripe_init(stripe *t, const ox_job *j)
{
    const size_t cols = (size_t)ox_job_cols(j), block = (size_t)j->form.block;
    t->s = ox_nbits_row_sizes((int64_t)cols, j->form.bits, j->form.block);
    t->n_rows = STRIPE / (t->s.code_bytes + 1) + 1;
    const size_t rows = t->n_rows, blocks = t->s.blocks;
    t->codes = ox_alloc(rows * t->s.code_bytes);
    t->wide = ox_alloc(blocks * block + 256);
    t->row = ox_alloc(cols * sizeof(float));
    t->scales = ox_alloc(rows * blocks * sizeof(float));
    t->mins = ox_alloc(rows * blocks * sizeof(float));
    t->zeros_wide = ox_alloc(blocks);
    t->zeros = ox_calloc(rows, t->s.zero_bytes);
    t->scales_out = ox_alloc(rows * blocks * sizeof(float));
    return t->codes && t->wide && t->row && t->scales && t->mins && t->zeros_wide && t->zeros &&
           t->scales_out;
}

static void stripe_deinit(stripe *t)
{
    void *const all[] = {t->codes, t->wide,       t->row,   t->scales,
                         t->mins,  t->zeros_wide, t->zeros, t->scales_out};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        ox_free(all[i]);
}

/* Row i of the stripe from the source's own codes. */
static void copy_codes(stripe *t, const ox_job *j, const ox_weight *w, int64_t row, size_t i)
{
    const bool packed = j->form.zeros == OX_ZEROS_PACKED, floats = j->form.zeros == OX_ZEROS_FLOAT;
    const size_t blocks = t->s.blocks, block = (size_t)j->form.block;
    float *scales = t->scales + i * blocks, *mins = t->mins + i * blocks;
    uint8_t *out = t->codes + i * t->s.code_bytes, *zeros = t->zeros + i * t->s.zero_bytes;
    ox_weight_row_codes(w, row, t->wide, scales, packed ? t->zeros_wide : NULL,
                        floats ? mins : NULL);
    for (size_t b = 0; floats && b < blocks; b++) {
        if (scales[b] != 0) {
            mins[b] = -mins[b] / scales[b];
        } else if (mins[b] != 0) { /* a constant block: (0 - 1) * -min */
            scales[b] = -mins[b];
            memset(t->wide + b * block, 0, block);
            mins[b] = 1;
        }
    }
    if (j->form.bits == 8) {
        memcpy(out, t->wide, t->s.code_bytes);
        if (packed) memcpy(zeros, t->zeros_wide, blocks);
        return;
    }
    for (size_t k = 0; k < t->s.code_bytes; k++)
        out[k] = (uint8_t)(t->wide[2 * k] | t->wide[2 * k + 1] << 4);
    for (size_t b = 0; packed && b < blocks; b++)
        zeros[b / 2] = (uint8_t)(b % 2 ? zeros[b / 2] | t->zeros_wide[b] << 4 : t->zeros_wide[b]);
}

static void make_row(stripe *t, const ox_job *j, const ox_weight *w, int64_t row, size_t i)
{
    if (!j->form.remade) {
        copy_codes(t, j, w, row, i);
        return;
    }
    ox_weight_row_f32(w, row, t->row);
    ox_quantize_row(t->row, w->cols, j->form.bits, j->form.block, t->codes + i * t->s.code_bytes,
                    t->scales + i * t->s.blocks,
                    j->form.zeros == OX_ZEROS_PACKED ? t->zeros + i * t->s.zero_bytes : NULL);
}

/* Writes rows [first, first+n) of the job; they are rows 0.. of the stripe. */
static ox_status flush(stripe *t, const ox_job *j, const ox_stream *s, size_t first, size_t n,
                       ox_err *err)
{
    const size_t scale_bytes = t->s.blocks * item_bytes(j->dtype);
    OX_TRY(ox_outfile_write_at(s->file, j->at + first * t->s.code_bytes, t->codes,
                               n * t->s.code_bytes, err));
    store(t->scales_out, t->scales, n * t->s.blocks, j->dtype);
    OX_TRY(ox_outfile_write_at(s->file, j->scales_at + first * scale_bytes, t->scales_out,
                               n * scale_bytes, err));
    if (j->form.zeros == OX_ZEROS_PACKED)
        return ox_outfile_write_at(s->file, j->zeros_at + first * t->s.zero_bytes, t->zeros,
                                   n * t->s.zero_bytes, err);
    if (j->form.zeros == OX_ZEROS_NONE) return OX_OK;
    store(t->scales_out, t->mins, n * t->s.blocks, j->dtype);
    return ox_outfile_write_at(s->file, j->zeros_at + first * scale_bytes, t->scales_out,
                               n * scale_bytes, err);
}

static ox_status run_nbits(const ox_job *j, ox_stream *s, ox_err *err)
{
    stripe t = {0};
    ox_status st = stripe_init(&t, j) ? OX_OK : no_memory(j, err);
    size_t first = 0, n = 0;
    for (int32_t p = 0; p < j->n_parts && !st; p++) {
        for (int64_t r = 0; r < j->parts[p]->rows && !st; r++) {
            make_row(&t, j, j->parts[p], source_row(&j->pairs[p], r), n++);
            const bool last = p == j->n_parts - 1 && r == j->parts[p]->rows - 1;
            if (n < t.n_rows && !last) continue;
            st = flush(&t, j, s, first, n, err);
            if (!st) st = progress(s, j->bytes * n / (size_t)ox_job_rows(j), err);
            first += n;
            n = 0;
        }
    }
    stripe_deinit(&t);
    return st;
}

/* One part's contribution to rows [k0, k0+n_k) of the [K, N] matrix in `out` (n_total columns,
 * this part's from column `first`). TILE source rows at a time, so that writes are runs. */
static void transpose_part(const ox_job *j, int32_t p, int64_t k0, int64_t n_k, float *tile,
                           char *out, size_t first, size_t n_total)
{
    const ox_weight *w = j->parts[p];
    const size_t item = item_bytes(j->dtype), cols = (size_t)w->cols;
    for (int64_t r = 0; r < w->rows; r += TILE) {
        const size_t m = (size_t)(w->rows - r < TILE ? w->rows - r : TILE);
        for (size_t i = 0; i < m; i++)
            ox_weight_row_f32(w, source_row(&j->pairs[p], r + (int64_t)i), tile + i * cols);
        for (int64_t k = 0; k < n_k; k++) {
            float run[TILE];
            for (size_t i = 0; i < m; i++)
                run[i] = tile[i * cols + (size_t)(k0 + k)];
            store(out + ((size_t)k * n_total + first + (size_t)r) * item, run, m, j->dtype);
        }
    }
}

static ox_status run_columns(const ox_job *j, ox_stream *s, ox_err *err)
{
    const size_t n = (size_t)ox_job_rows(j), row_bytes = n * item_bytes(j->dtype);
    const int64_t cols = ox_job_cols(j);
    assert(row_bytes); /* ox_weight_check */
    int64_t most = (int64_t)(2 * STRIPE / row_bytes + 1);
    if (most > cols) most = cols;
    float *tile = ox_alloc(TILE * (size_t)cols * sizeof *tile);
    char *out = ox_alloc((size_t)most * row_bytes);
    ox_status st = tile && out ? OX_OK : no_memory(j, err);
    for (int64_t k = 0; k < cols && !st; k += most) {
        const int64_t n_k = cols - k < most ? cols - k : most;
        size_t first = 0;
        for (int32_t p = 0; p < j->n_parts; first += (size_t)j->parts[p++]->rows)
            transpose_part(j, p, k, n_k, tile, out, first, n);
        st = ox_outfile_write_at(s->file, j->at + (uint64_t)k * row_bytes, out,
                                 (size_t)n_k * row_bytes, err);
        if (!st) st = progress(s, (uint64_t)n_k * row_bytes, err);
    }
    ox_free(tile);
    ox_free(out);
    return st;
}

/* Rows one after the other; a vector's parts are rows of one column each, in the part's one row. */
static ox_status run_rows(const ox_job *j, ox_stream *s, ox_err *err)
{
    const size_t item = item_bytes(j->dtype);
    uint64_t at = j->at;
    ox_status st = OX_OK;
    for (int32_t p = 0; p < j->n_parts && !st; p++) {
        const ox_weight *w = j->parts[p];
        const size_t cols = (size_t)w->cols, row_bytes = cols * item;
        const bool vector = j->kind == OX_JOB_VECTOR;
        const size_t most = STRIPE / row_bytes + 1;
        float *row = ox_alloc(2 * cols * sizeof *row);
        char *out = ox_alloc((most < (size_t)w->rows ? most : (size_t)w->rows) * row_bytes);
        if (!row || !out) st = no_memory(j, err);
        for (int64_t r = 0; r < w->rows && !st;) {
            size_t n = 0;
            for (; r < w->rows && n < most; r++, n++) {
                float *x = row;
                ox_weight_row_f32(w, vector ? r : source_row(&j->pairs[p], r), row);
                for (size_t i = 0; vector && i < cols; i++)
                    row[cols + i] = row[source_row(&j->pairs[p], (int64_t)i)];
                if (vector) x = row + cols;
                store(out + n * row_bytes, x, cols, j->dtype);
            }
            st = ox_outfile_write_at(s->file, at, out, n * row_bytes, err);
            at += n * row_bytes;
            if (!st) st = progress(s, n * row_bytes, err);
        }
        ox_free(row);
        ox_free(out);
    }
    return st;
}

static ox_status run_floats(const ox_job *j, ox_stream *s, ox_err *err)
{
    const size_t item = item_bytes(j->dtype), most = STRIPE / item;
    const size_t room = most < j->n_floats ? most : j->n_floats;
    char *out = ox_alloc(room * item);
    ox_status st = out ? OX_OK : no_memory(j, err);
    for (size_t i = 0; i < j->n_floats && !st; i += most) {
        const size_t n = j->n_floats - i < most ? j->n_floats - i : most;
        store(out, j->floats + i, n, j->dtype);
        st = ox_outfile_write_at(s->file, j->at + i * item, out, n * item, err);
        if (!st) st = progress(s, n * item, err);
    }
    ox_free(out);
    return st;
}

ox_status ox_job_run(const ox_job *j, ox_stream *s, ox_err *err)
{
    switch (j->kind) {
    case OX_JOB_NBITS:
        return run_nbits(j, s, err);
    case OX_JOB_COLUMNS:
        return run_columns(j, s, err);
    case OX_JOB_ROWS:
    case OX_JOB_VECTOR:
        return run_rows(j, s, err);
    case OX_JOB_FLOATS:
        break;
    }
    return run_floats(j, s, err);
}
