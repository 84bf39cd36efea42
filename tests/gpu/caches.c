/* caches.c - append and attend over paged keys and values in device memory. */
#include "tests/gpu/rows.h"

#include "kernel/attend/cuda_flash.h"

#include "tensor/half.h"

#include <math.h>
#include <stdlib.h>

void t_append(const ox_kernel_row *row), t_attend(const ox_kernel_row *row),
    t_rotate_append(const ox_kernel_row *row);

enum { PAGE = 64, MAX_SEQ = 4, MAX_PAGES = 12 };

/* Sequences with their pages filled, the same values as floats, and a step over some rows. */
typedef struct world {
    ox_dev_cache c;
    int32_t n_seq, length[MAX_SEQ], rows, seq[300], pos[300];
    float *k[MAX_SEQ], *v[MAX_SEQ]; /* [position][kv head][size] */
    char *page[MAX_SEQ][MAX_PAGES];
    size_t page_bytes;
} world;

static size_t at(const world *w, bool is_v, int32_t h, int32_t pos, int32_t d)
{
    const int32_t size = is_v ? w->c.v_head_size : w->c.head_size;
    return ((size_t)h * PAGE + (size_t)(pos % PAGE)) * (size_t)size + (size_t)d;
}

static void put(char *to, int32_t dtype, size_t i, float v)
{
    const uint16_t h = dtype == OX_DEV_F16 ? ox_f32_to_f16(v) : ox_f32_to_bf16(v);
    if (dtype == OX_DEV_F32)
        memcpy(to + 4 * i, &v, 4);
    else
        memcpy(to + 2 * i, &h, 2);
}

static float get(const char *from, int32_t dtype, size_t i)
{
    float f;
    uint16_t h;
    if (dtype == OX_DEV_F32) {
        memcpy(&f, from + 4 * i, 4);
        return f;
    }
    memcpy(&h, from + 2 * i, 2);
    return dtype == OX_DEV_F16 ? ox_f16_to_f32(h) : ox_bf16_to_f32(h);
}

static void fill_sequence(world *w, int32_t s)
{
    const int32_t nk = w->c.n_kv_heads;
    w->k[s] = malloc(sizeof(float) * (size_t)(w->length[s] * nk * w->c.head_size));
    w->v[s] = malloc(sizeof(float) * (size_t)(w->length[s] * nk * w->c.v_head_size));
    for (int32_t p = 0; p * PAGE < w->length[s]; p++) {
        char *host = malloc(w->page_bytes);
        memset(host, 0xff, w->page_bytes); /* NaN where nothing has been appended */
        for (int32_t pos = p * PAGE; pos < (p + 1) * PAGE && pos < w->length[s]; pos++)
            for (int32_t h = 0; h < nk; h++) {
                for (int32_t d = 0; d < w->c.head_size; d++) {
                    const float x = t_round(w->c.dtype, t_uniform(-1, 1));
                    w->k[s][(pos * nk + h) * w->c.head_size + d] = x;
                    put(host + w->c.k_offset, w->c.dtype, at(w, false, h, pos, d), x);
                }
                for (int32_t d = 0; d < w->c.v_head_size; d++) {
                    const float x = t_round(w->c.dtype, t_uniform(-1, 1));
                    w->v[s][(pos * nk + h) * w->c.v_head_size + d] = x;
                    put(host + w->c.v_offset, w->c.dtype, at(w, true, h, pos, d), x);
                }
            }
        w->page[s][p] = t_upload(host, w->page_bytes);
        free(host);
    }
}

static void open_world(world *w, bool prompt, int32_t type)
{
    static const int32_t sizes[] = {64, 64, 128, 32, 96, 80, 16, 256};
    const size_t head = 256;
    w->c.dtype = type;
    w->c.n_kv_heads = t_range(1, 4);
    w->c.head_size = sizes[t_range(0, 7)];
    w->c.v_head_size = t_range(0, 3) ? w->c.head_size : sizes[t_range(0, 7)];
    const size_t size = w->c.dtype == OX_DEV_F32 ? 4 : 2;
    w->c.k_offset = head;
    w->c.v_offset = head + (size_t)w->c.n_kv_heads * PAGE * (size_t)w->c.head_size * size;
    w->page_bytes =
        w->c.v_offset + (size_t)w->c.n_kv_heads * PAGE * (size_t)w->c.v_head_size * size;
    w->n_seq = prompt ? 1 : t_range(1, MAX_SEQ);
    void *pages[MAX_SEQ * MAX_PAGES];
    int32_t first[MAX_SEQ], n = 0;
    for (int32_t s = 0; s < w->n_seq; s++) {
        w->length[s] = t_range(1, 3) == 1 ? t_range(1, 70) : t_range(1, MAX_PAGES * PAGE);
        fill_sequence(w, s);
        first[s] = n;
        for (int32_t p = 0; p * PAGE < w->length[s]; p++)
            pages[n++] = w->page[s][p];
    }
    w->rows = prompt ? (w->length[0] < 290 ? w->length[0] : t_range(9, 290)) : w->n_seq;
    for (int32_t r = 0; r < w->rows; r++) {
        w->seq[r] = prompt ? 0 : r;
        w->pos[r] = prompt ? w->length[0] - w->rows + r : w->length[r] - 1;
    }
    ox_cuda_flash_tile tiles[8];
    int32_t n_tiles = 0;
    for (int32_t r = 0; prompt && r < w->rows; n_tiles++) {
        const int32_t left = w->rows - r, most = t_range(0, 2) ? OX_FLASH_ROWS : t_range(40, 127);
        tiles[n_tiles] = (ox_cuda_flash_tile){r, left < most ? left : most, 0, w->pos[r]};
        r += tiles[n_tiles].n_rows;
    }
    w->c.step = (ox_dev_step){.tiles = t_upload(tiles, sizeof(tiles)),
                              .n_tiles = n_tiles,
                              .pos = t_upload(w->pos, sizeof(w->pos)),
                              .seq = t_upload(w->seq, sizeof(w->seq)),
                              .first = t_upload(first, sizeof(first)),
                              .pages = t_upload(pages, sizeof(pages))};
}

static void close_world(world *w)
{
    for (int32_t s = 0; s < w->n_seq; s++) {
        free(w->k[s]);
        free(w->v[s]);
    }
}

void t_append(const ox_kernel_row *row)
{
    world w = {0};
    open_world(&w, t_range(0, 1), t_type());
    const int32_t nk = w.c.n_kv_heads, wk = nk * w.c.head_size, wv = nk * w.c.v_head_size;
    mat k = t_mat(w.rows, wk, t_type(), -1, 1), v = t_mat(w.rows, wv, t_type(), -1, 1);
    const ox_dev_append_args a = {.k = k.d, .v = v.d, .rows = w.rows, .cache = w.c};
    t_run(row, &a);
    for (int32_t r = 0; r < w.rows; r++) {
        char *host = malloc(w.page_bytes);
        cudaMemcpy(host, w.page[w.seq[r]][w.pos[r] / PAGE], w.page_bytes, cudaMemcpyDeviceToHost);
        bool ok = true;
        for (int32_t i = 0; i < wk; i++)
            ok &= get(host + w.c.k_offset, w.c.dtype,
                      at(&w, false, i / w.c.head_size, w.pos[r], i % w.c.head_size)) ==
                  t_round(w.c.dtype, k.v[r * k.ld + i]);
        for (int32_t i = 0; i < wv; i++)
            ok &= get(host + w.c.v_offset, w.c.dtype,
                      at(&w, true, i / w.c.v_head_size, w.pos[r], i % w.c.v_head_size)) ==
                  t_round(w.c.dtype, v.v[r * v.ld + i]);
        if (!ok) t_fail("row %d at position %d is not what was appended", r, w.pos[r]);
        free(host);
        if (!ok) break;
    }
    t_mat_free(&k);
    t_mat_free(&v);
    close_world(&w);
}

static void attend_one(const world *w, const ox_dev_attend_args *a, const float *sinks,
                       const float *q, int32_t r, int32_t head, float *out)
{
    const int32_t s = w->seq[r], pos = w->pos[r], nk = w->c.n_kv_heads;
    const int32_t h = head / (a->n_heads / nk), d = w->c.head_size, dv = w->c.v_head_size;
    const int32_t first = a->window > 0 && pos >= a->window ? pos - a->window + 1 : 0;
    static double t[MAX_PAGES * PAGE];
    double max = sinks ? (double)sinks[head] : -HUGE_VAL, sum = 0;
    for (int32_t j = first; j <= pos; j++) {
        double dot = 0;
        for (int32_t i = 0; i < d; i++)
            dot += (double)q[i] * (double)w->k[s][(j * nk + h) * d + i];
        dot *= (double)a->scale;
        t[j] = a->softcap > 0 ? (double)a->softcap * tanh(dot / (double)a->softcap) : dot;
        if (t[j] > max) max = t[j];
    }
    if (sinks) sum = exp((double)sinks[head] - max);
    for (int32_t j = first; j <= pos; j++)
        sum += exp(t[j] - max);
    for (int32_t i = 0; i < dv; i++) {
        double acc = 0;
        for (int32_t j = first; j <= pos; j++)
            acc += exp(t[j] - max) * (double)w->v[s][(j * nk + h) * dv + i];
        out[i] = (float)(acc / sum);
    }
}

void t_attend(const ox_kernel_row *row)
{
    world w = {0};
    const bool half = row->needs == OX_SM_90A && t_range(0, 7), prompt = half || t_range(0, 1);
    open_world(&w, prompt, half ? OX_DEV_F16 : t_type());
    const int32_t heads = w.c.n_kv_heads * t_range(1, 9), d = w.c.head_size, dv = w.c.v_head_size;
    mat q = t_mat(w.rows, heads * d, half ? OX_DEV_F16 : t_type(), -1, 1);
    mat y = t_out(w.rows, heads * dv, half ? OX_DEV_F16 : t_type());
    float sinks[64];
    for (int32_t i = 0; i < 64; i++)
        sinks[i] = t_uniform(-1, 3);
    ox_dev_attend_args a = {.q = q.d,
                            .y = y.d,
                            .rows = w.rows,
                            .n_heads = heads,
                            .scale = 2.0f / sqrtf((float)d),
                            .softcap = t_range(0, 2) ? 0.0f : 2.0f,
                            .window = t_range(0, 2) ? 0 : t_range(1, 200),
                            .sinks = t_range(0, 2) ? NULL : t_upload(sinks, sizeof(sinks)),
                            .cache = w.c,
                            .one_sequence = prompt || w.n_seq == 1,
                            .total = t_range(0, 1) ? MAX_PAGES * PAGE : 1024,
                            .n_sm = 132,
                            .scratch_bytes = 32 << 20};
    a.scratch = t_upload(NULL, a.scratch_bytes);
    if (!row->accepts || row->accepts(&a)) {
        float *want = malloc(sizeof(float) * (size_t)(w.rows * heads * dv));
        for (int32_t r = 0; r < w.rows; r++)
            for (int32_t h = 0; h < heads; h++)
                attend_one(&w, &a, a.sinks ? sinks : NULL, q.v + r * q.ld + h * d, r, h,
                           want + (r * heads + h) * dv);
        t_run(row, &a);
        t_fetch(&y);
        const double slack =
            row->tol == OX_TOL_HALF ? 0x1p-11 + 1e-5 : 1e-5; /* values in [-1, 1] */
        t_same(&y, want, heads * dv, slack, slack, "attend");
        free(want);
    }
    t_mat_free(&q);
    t_mat_free(&y);
    close_world(&w);
}

/* Expected turned rows of m, [rows, ld]. */
static float *turn(const world *w, const mat *m, const ox_dev_rotate_args *a,
                   const float *cos_table, const float *sin_table)
{
    const size_t n = (size_t)m->rows * (size_t)m->ld;
    float *want = malloc(sizeof(float) * n);
    const int32_t half = a->rotary / 2;
    memcpy(want, m->v, sizeof(float) * n);
    for (int32_t i = 0; i < w->rows * a->n_heads * half; i++) {
        const int32_t r = i / half / a->n_heads, h = i / half % a->n_heads, j = i % half;
        const int32_t c0 = r * m->ld + h * a->head_size + (a->interleaved ? 2 * j : j);
        const int32_t c1 = c0 + (a->interleaved ? 1 : half);
        const double c = (double)cos_table[w->pos[r] * half + j],
                     s = (double)sin_table[w->pos[r] * half + j];
        want[c0] = (float)((double)m->v[c0] * c - (double)m->v[c1] * s);
        want[c1] = (float)((double)m->v[c1] * c + (double)m->v[c0] * s);
    }
    return want;
}

void t_rotate_append(const ox_kernel_row *row)
{
    enum { POSITIONS = MAX_PAGES * PAGE };
    world w = {0};
    open_world(&w, t_range(0, 1), t_type());
    const int32_t nk = w.c.n_kv_heads, d = w.c.head_size, dv = w.c.v_head_size,
                  heads = nk * t_range(1, 4);
    const int32_t rotary = t_range(0, 1) ? d : 2 * t_range(1, d / 2), half = rotary / 2,
                  type = t_type();
    mat q = t_mat(w.rows, heads * d, type, -1, 1), k = t_mat(w.rows, nk * d, type, -1, 1);
    mat v = t_mat(w.rows, nk * dv, type, -1, 1);
    float *table = malloc(sizeof(float) * 2 * POSITIONS * (size_t)half);
    for (int32_t i = 0; i < 2 * POSITIONS * half; i++)
        table[i] = t_uniform(-1, 1);
    const float *cos_table = table, *sin_table = table + POSITIONS * half;
    const ox_dev_rotate_args base = {
        .pos = w.c.step.pos,
        .cos_table = t_upload(cos_table, sizeof(float) * POSITIONS * (size_t)half),
        .sin_table = t_upload(sin_table, sizeof(float) * POSITIONS * (size_t)half),
        .rows = w.rows,
        .head_size = d,
        .rotary = rotary,
        .interleaved = t_range(0, 1)};
    ox_dev_rotate_append_args a = {base, base, {k.d, v.d, w.rows, w.c}};
    a.q.x = q.d;
    a.q.n_heads = heads;
    a.k.x = k.d;
    a.k.n_heads = nk;
    float *want_q = turn(&w, &q, &a.q, cos_table, sin_table),
          *want_k = turn(&w, &k, &a.k, cos_table, sin_table);
    t_run(row, &a);
    t_fetch(&q);
    t_fetch(&k);
    t_same(&q, want_q, q.ld, 1e-6, 1e-6, "turned queries");
    t_same(&k, want_k, k.ld, 1e-6, 1e-6, "turned keys");
    bool ok = true;
    for (int32_t r = 0; r < w.rows && ok; r++) {
        char *host = malloc(w.page_bytes);
        cudaMemcpy(host, w.page[w.seq[r]][w.pos[r] / PAGE], w.page_bytes, cudaMemcpyDeviceToHost);
        for (int32_t i = 0; i < nk * d; i++)
            ok &= get(host + w.c.k_offset, w.c.dtype, at(&w, false, i / d, w.pos[r], i % d)) ==
                  t_round(w.c.dtype, k.v[r * k.ld + i]);
        for (int32_t i = 0; i < nk * dv; i++)
            ok &= get(host + w.c.v_offset, w.c.dtype, at(&w, true, i / dv, w.pos[r], i % dv)) ==
                  t_round(w.c.dtype, v.v[r * v.ld + i]);
        free(host);
    }
    if (!ok) t_fail("the pages do not hold what was appended");
    free(want_q);
    free(want_k);
    free(table);
    t_mat_free(&q);
    t_mat_free(&k);
    t_mat_free(&v);
    close_world(&w);
}
