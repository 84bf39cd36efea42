/* upload.c - weights into device memory: read into pinned memory while the device still works on
 * the piece before, copied, and brought to the device's form there (kernel/qlinear/cuda_pack.cuh).
 *
 * A matrix is what one call multiplies with: one weight, or several one below the other. Matrices
 * of the same weights are shared (tied embeddings). Pieces are whole rows; codes of files in the
 * ONNX form go up as they are, all others as one code a byte. */
#include "backend/cuda/cuda.h"

enum { F32 = OX_DEV_F32, N_STAGES = 2 };

static bool is_raw(const ox_weight *w) /* codes go up as the file has them */
{
    return w->format == OX_FORMAT_NBITS;
}

static int32_t block_of(const ox_weight *w)
{
    return is_raw(w) ? w->nbits.block : ox_weight_code_layout(w).block;
}

static bool same_layout(const ox_weight *a, const ox_weight *b)
{
    const ox_code_layout x = ox_weight_code_layout(a), y = ox_weight_code_layout(b);
    return x.bits == y.bits && x.zero == y.zero && x.scale_f16 == y.scale_f16 &&
           block_of(a) == block_of(b) && a->cols == b->cols;
}

/* Element type of float weights on the device. */
static int32_t float_type(const ox_cuda_backend *b, const ox_weight *const *w, int32_t n)
{
    int32_t type = w[0]->format == OX_FORMAT_F16    ? OX_DEV_F16
                   : w[0]->format == OX_FORMAT_BF16 ? OX_DEV_BF16
                                                    : OX_DEV_F32;
    for (int32_t i = 1; i < n; i++)
        if (w[i]->format != w[0]->format) type = OX_DEV_F32;
    return b->options.exact || b->options.activations == OX_DTYPE_F32
               ? type
               : (int32_t)b->options.activations;
}

/* Rows of each weight but the last must fill tiles; ups may start on a tile of their own. */
static bool can_join(const ox_weight *const *w, int32_t n)
{
    for (int32_t i = 1; i < n; i++)
        if (!same_layout(w[0], w[i]) || (w[i - 1]->rows % 8 && ox_weight_code_layout(w[0]).bits))
            return false;
    return true;
}

static bool is_matrix_of(const ox_cuda_matrix *m, const ox_weight *const *w, int32_t n)
{
    return m->n_weights == n && !memcmp(m->weights, w, (size_t)n * sizeof(*w));
}

ox_status ox_cuda_matrix_get(ox_cuda_backend *b, ox_cuda_matrix **out, const ox_weight *const *w,
                             int32_t n, ox_err *err)
{
    int64_t rows = 0;
    *out = NULL;
    for (size_t i = 0; i < b->matrices.n && !*out; i++)
        if (is_matrix_of(b->matrices.p[i], w, n)) *out = b->matrices.p[i];
    if (*out || (n > 1 && !can_join(w, n))) return OX_OK;
    for (int32_t i = 0; i < n; i++)
        rows += w[i]->rows;
    if (rows > INT32_MAX - 1024 || w[0]->cols > INT32_MAX - 1024)
        return OX_FAIL(err, OX_UNSUPPORTED, "weight %.*s has too many rows or columns for CUDA",
                       OX_STR_ARGS(w[0]->name));
    ox_cuda_matrix *m = ox_calloc(1, sizeof(*m));
    if (!m || !ox_vec_push(&b->matrices, m)) {
        ox_free(m);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    }
    memcpy(m->weights, w, (size_t)n * sizeof(*w));
    m->n_weights = n;
    m->n = (int32_t)rows;
    m->k = (int32_t)w[0]->cols;
    const ox_code_layout layout = ox_weight_code_layout(w[0]);
    m->is_pack = layout.bits != 0;
    if (m->is_pack) {
        m->pack = ox_dev_pack_shape(m->n, m->k, layout.bits, block_of(w[0]), (int32_t)layout.zero,
                                    !layout.scale_f16, m->part_bytes);
    } else {
        m->floats = (ox_dev_fweight){
            .n = m->n, .k = m->k, .dtype = float_type(b, w, n), .ld = (m->k + 7) / 8 * 8};
        m->part_bytes[0] = (size_t)m->n * (size_t)m->floats.ld * (m->floats.dtype == F32 ? 4 : 2);
    }
    m->bytes = m->part_bytes[0] + m->part_bytes[1] + m->part_bytes[2];
    *out = m;
    return OX_OK;
}

static ox_status upload_small(ox_cuda_backend *b, void **out, const void *host, size_t bytes,
                              ox_err *err)
{
    OX_TRY(ox_cuda_small(b, out, bytes, err));
    OX_CUDA_TRY(b, err, cudaMemcpy(*out, host, bytes, cudaMemcpyHostToDevice));
    return OX_OK;
}

ox_status ox_cuda_vector(ox_cuda_backend *b, float **out, const ox_weight *const *vectors,
                         const int64_t *lengths, int32_t n, ox_err *err)
{
    size_t total = 0;
    for (int32_t k = 0; k < n; k++)
        total += (size_t)lengths[k];
    float *host = ox_calloc(total, sizeof(*host)), *at = host;
    if (!host) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a vector of %zu floats", total);
    ox_status st = OX_OK;
    for (int32_t k = 0; k < n && !st; k++) {
        if (vectors[k] && vectors[k]->cols != lengths[k])
            st = OX_FAIL(err, OX_BAD_FILE, "tensor %.*s: expected %lld values, found %lld",
                         OX_STR_ARGS(vectors[k]->name), (long long)lengths[k],
                         (long long)vectors[k]->cols);
        else if (vectors[k])
            ox_weight_row_f32(vectors[k], 0, at);
        at += lengths[k];
    }
    if (!st) st = upload_small(b, (void **)out, host, total * sizeof(*host), err);
    ox_free(host);
    return st;
}

ox_status ox_cuda_floats(ox_cuda_backend *b, const float **out, const float *host, size_t n,
                         ox_err *err)
{
    void *p;
    for (size_t i = 0; i < b->tables.n; i++)
        if (b->tables.p[i].host == host) {
            *out = b->tables.p[i].device;
            return OX_OK;
        }
    OX_TRY(upload_small(b, &p, host, n * sizeof(*host), err));
    const struct ox_cuda_table t = {host, p};
    if (!ox_vec_push(&b->tables, t)) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    *out = p;
    return OX_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct loader {
    ox_cuda_backend *b;
    char *pinned[N_STAGES], *device[N_STAGES];
    cudaEvent_t done[N_STAGES];
    int next;
    ox_prepare_fn *progress;
    void *user;
    uint64_t n_done, n_total;
} loader;

/* One piece: rows [first, first + rows) of a weight, and where its arrays lie in the stage. */
typedef struct piece {
    const ox_weight *w;
    int64_t first, rows;
    size_t scales_at, zeros_at, bytes;
    size_t code_row, scale_row, zero_row; /* bytes a row */
    ox_code_layout layout;
    char *to;
} piece;

static void copy_rows(char *to, const void *from, size_t row, const piece *p, size_t begin,
                      size_t end)
{
    memcpy(to + begin * row, (const char *)from + ((size_t)p->first + begin) * row,
           (end - begin) * row);
}

/* A worker's rows of a piece, into pinned memory. */
static void stage_rows(void *user, int i, int n)
{
    const piece *p = user;
    const ox_weight *w = p->w;
    size_t begin, end;
    ox_team_split((size_t)p->rows, 1, i, n, &begin, &end);
    if (begin == end) return;
    if (!p->layout.bits) {
        if (!p->scale_row && w->format != OX_FORMAT_NBITS && !w->transposed) {
            copy_rows(p->to, w->data, p->code_row, p, begin, end);
            return;
        }
        for (size_t r = begin; r < end; r++)
            ox_weight_row_f32(w, p->first + (int64_t)r, (float *)(void *)(p->to + r * p->code_row));
        return;
    }
    if (is_raw(w)) {
        const ox_nbits *q = &w->nbits;
        copy_rows(p->to, q->codes, p->code_row, p, begin, end);
        copy_rows(p->to + p->scales_at, q->scales, p->scale_row, p, begin, end);
        if (q->zeros) copy_rows(p->to + p->zeros_at, q->zeros, p->zero_row, p, begin, end);
        return;
    }
    for (size_t r = begin; r < end; r++) {
        char *zeros = p->to + p->zeros_at + r * p->zero_row;
        const bool minima = p->layout.zero == OX_ZERO_MIN;
        ox_weight_row_codes(w, p->first + (int64_t)r, (uint8_t *)p->to + r * p->code_row,
                            (float *)(void *)(p->to + p->scales_at + r * p->scale_row),
                            p->layout.zero == OX_ZERO_CODE ? (uint8_t *)zeros : NULL,
                            minima ? (float *)(void *)zeros : NULL);
    }
}

static size_t scalar_bytes(ox_dtype t)
{
    return t == OX_DTYPE_F32 ? 4 : t == OX_DTYPE_U8 ? 1 : 2;
}

/* Bytes a row of each array, for the form that goes up. */
static void row_bytes(piece *p)
{
    const ox_weight *w = p->w;
    const size_t cols = (size_t)w->cols;
    if (!p->layout.bits) {
        const bool plain = w->format == OX_FORMAT_F16 || w->format == OX_FORMAT_BF16;
        p->code_row = cols * (plain && !w->transposed ? 2 : 4);
        return;
    }
    const size_t block = (size_t)block_of(w), blocks = (cols + block - 1) / block;
    if (is_raw(w)) {
        const ox_nbits *q = &w->nbits;
        p->code_row = blocks * (block / 8 * (size_t)q->bits);
        p->scale_row = blocks * scalar_bytes(q->scale_dtype);
        if (q->zeros)
            p->zero_row = q->zeros_dtype == OX_DTYPE_U8 ? (blocks * (size_t)q->bits + 7) / 8
                                                        : blocks * scalar_bytes(q->zeros_dtype);
        return;
    }
    p->code_row = blocks * block;
    p->scale_row = blocks * 4;
    p->zero_row = p->layout.zero == OX_ZERO_CODE  ? blocks
                  : p->layout.zero == OX_ZERO_MIN ? blocks * 4
                                                  : 0;
}

static size_t up16(size_t n)
{
    return (n + 255) & ~(size_t)255;
}

static void piece_bytes(piece *p)
{
    const size_t rows = (size_t)p->rows;
    p->scales_at = up16(rows * p->code_row);
    p->zeros_at = p->scales_at + up16(rows * p->scale_row);
    p->bytes = p->zeros_at + up16(rows * p->zero_row);
}

static int32_t source_type(ox_dtype t)
{
    return t == OX_DTYPE_F32 ? 0 : t == OX_DTYPE_F16 ? 1 : t == OX_DTYPE_BF16 ? 2 : 3;
}

static void fill_pack(const ox_cuda_matrix *m, const piece *p, const char *device, int64_t n0,
                      void *stream)
{
    const ox_weight *w = p->w;
    ox_dev_source s = {.codes = device,
                       .scales = device + p->scales_at,
                       .zeros = p->zero_row ? device + p->zeros_at : NULL,
                       .rows = (int32_t)p->rows,
                       .k = m->k,
                       .bits = p->layout.bits,
                       .block = block_of(w),
                       .zeros_type = p->layout.zero == OX_ZERO_CODE ? 3 : 0,
                       .spread = 1,
                       .n0 = (int32_t)(n0 + p->first)};
    if (is_raw(w)) {
        s.bits = w->nbits.bits;
        s.spread = 0;
        s.scale_type = source_type(w->nbits.scale_dtype);
        s.zeros_type = source_type(w->nbits.zeros_dtype);
    }
    ox_dev_pack_fill(&m->pack, &s, stream);
}

static void fill_floats(const ox_cuda_matrix *m, const piece *p, const char *device, int64_t n0,
                        void *stream)
{
    const ox_weight *w = p->w;
    const bool plain = !w->transposed;
    const int32_t from = plain && w->format == OX_FORMAT_F16    ? OX_DEV_F16
                         : plain && w->format == OX_FORMAT_BF16 ? OX_DEV_BF16
                                                                : OX_DEV_F32;
    const size_t element = m->floats.dtype == F32 ? 4 : 2;
    char *to =
        (char *)(uintptr_t)m->floats.p + (size_t)(n0 + p->first) * (size_t)m->floats.ld * element;
    ox_dev_convert(device, from, 0, to, m->floats.dtype, m->floats.ld, p->rows, m->k, stream);
}

static ox_status next_stage(loader *l, int *i, ox_err *err)
{
    *i = l->next;
    l->next = (l->next + 1) % N_STAGES;
    OX_CUDA_TRY(l->b, err, cudaEventSynchronize(l->done[*i]));
    return OX_OK;
}

static ox_status send(loader *l, int i, size_t bytes, ox_err *err)
{
    OX_CUDA_TRY(
        l->b, err,
        cudaMemcpyAsync(l->device[i], l->pinned[i], bytes, cudaMemcpyHostToDevice, l->b->stream));
    return OX_OK;
}

/* A matrix that is stored [k, n]: pieces are ranges of k, turned on the device. */
static ox_status load_transposed(loader *l, const ox_cuda_matrix *m, const ox_weight *w, int64_t n0,
                                 ox_err *err)
{
    const size_t size = w->format == OX_FORMAT_F32 ? 4 : 2, row = (size_t)w->rows * size;
    const size_t element = m->floats.dtype == F32 ? 4 : 2;
    const int32_t from = w->format == OX_FORMAT_F16    ? OX_DEV_F16
                         : w->format == OX_FORMAT_BF16 ? OX_DEV_BF16
                                                       : OX_DEV_F32;
    const int64_t most = (int64_t)(OX_CUDA_STAGE_BYTES / row);
    if (!most)
        return OX_FAIL(err, OX_UNSUPPORTED, "weight %.*s has too many rows", OX_STR_ARGS(w->name));
    for (int64_t k = 0; k < w->cols; k += most) {
        const int64_t n = w->cols - k < most ? w->cols - k : most;
        int i;
        OX_TRY(next_stage(l, &i, err));
        memcpy(l->pinned[i], (const char *)w->data + (size_t)k * row, (size_t)n * row);
        OX_TRY(send(l, i, (size_t)n * row, err));
        char *to = (char *)(uintptr_t)m->floats.p +
                   ((size_t)n0 * (size_t)m->floats.ld + (size_t)k) * element;
        ox_dev_convert(l->device[i], from, 1, to, m->floats.dtype, m->floats.ld, w->rows, n,
                       l->b->stream);
        OX_CUDA_TRY(l->b, err, cudaEventRecord(l->done[i], l->b->stream));
    }
    return OX_OK;
}

static ox_status load_weight(loader *l, const ox_cuda_matrix *m, const ox_weight *w, int64_t n0,
                             ox_err *err)
{
    piece p = {.w = w, .layout = ox_weight_code_layout(w)};
    const bool floats =
        w->format == OX_FORMAT_F32 || w->format == OX_FORMAT_F16 || w->format == OX_FORMAT_BF16;
    if (floats && w->transposed) return load_transposed(l, m, w, n0, err);
    row_bytes(&p);
    const size_t row = p.code_row + p.scale_row + p.zero_row;
    const int64_t most = (int64_t)((OX_CUDA_STAGE_BYTES - 1024) / row) / 8 * 8;
    if (!most)
        return OX_FAIL(err, OX_UNSUPPORTED, "weight %.*s has too many columns",
                       OX_STR_ARGS(w->name));
    for (; p.first < w->rows; p.first += p.rows) {
        int i;
        p.rows = w->rows - p.first < most ? w->rows - p.first : most;
        piece_bytes(&p);
        OX_TRY(next_stage(l, &i, err));
        p.to = l->pinned[i];
        ox_team_run(l->b->team, stage_rows, &p);
        OX_TRY(send(l, i, p.bytes, err));
        if (m->is_pack)
            fill_pack(m, &p, l->device[i], n0, l->b->stream);
        else
            fill_floats(m, &p, l->device[i], n0, l->b->stream);
        OX_CUDA_TRY(l->b, err, cudaEventRecord(l->done[i], l->b->stream));
    }
    return OX_OK;
}

static ox_status place_matrix(ox_cuda_backend *b, ox_cuda_matrix *m, ox_err *err)
{
    void *part[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++)
        if (m->part_bytes[i]) OX_TRY(ox_cuda_alloc(b, &part[i], m->part_bytes[i], "weights", err));
    m->pack.codes = part[0];
    m->pack.scales = part[1];
    m->pack.zeros = part[2];
    m->floats.p = m->is_pack ? NULL : part[0];
    b->weight_bytes += m->bytes;
    if (!m->is_pack && m->floats.ld != m->k)
        OX_CUDA_TRY(b, err, cudaMemsetAsync(part[0], 0, m->part_bytes[0], b->stream));
    return OX_OK;
}

static ox_status load_matrix(loader *l, ox_cuda_matrix *m, void (*drop)(void *, const ox_weight *),
                             ox_err *err)
{
    int64_t n0 = 0;
    OX_TRY(place_matrix(l->b, m, err));
    for (int32_t i = 0; i < m->n_weights; i++) {
        OX_TRY(load_weight(l, m, m->weights[i], n0, err));
        n0 += m->weights[i]->rows;
        if (drop) drop(l->user, m->weights[i]);
    }
    OX_CUDA_TRY(l->b, err, cudaGetLastError());
    m->ready = true;
    l->n_done += m->bytes;
    if (l->progress && !l->progress(l->user, l->n_done, l->n_total))
        return OX_FAIL(err, OX_CANCELLED, "interrupted while loading");
    return OX_OK;
}

static ox_status open_loader(loader *l, ox_err *err)
{
    ox_cuda_backend *b = l->b;
    for (int i = 0; i < N_STAGES; i++) {
        OX_CUDA_TRY(b, err, cudaMallocHost((void **)&l->pinned[i], OX_CUDA_STAGE_BYTES));
        OX_CUDA_TRY(b, err, cudaMalloc((void **)&l->device[i], OX_CUDA_STAGE_BYTES));
        OX_CUDA_TRY(b, err, cudaEventCreateWithFlags(&l->done[i], cudaEventDisableTiming));
    }
    return OX_OK;
}

static void close_loader(loader *l)
{
    cudaStreamSynchronize(l->b->stream);
    for (int i = 0; i < N_STAGES; i++) {
        if (l->pinned[i]) cudaFreeHost(l->pinned[i]);
        if (l->device[i]) cudaFree(l->device[i]);
        if (l->done[i]) cudaEventDestroy(l->done[i]);
    }
}

ox_status ox_cuda_prepare(ox_backend *base, ox_call *calls, size_t n, ox_prepare_fn *progress,
                          void *user, void (*drop)(void *user, const ox_weight *w), ox_err *err)
{
    ox_cuda_backend *b = (ox_cuda_backend *)base;
    loader l = {.b = b, .progress = progress, .user = user};
    ox_status st = OX_OK;
    (void)calls, (void)n;

    for (size_t i = 0; i < b->matrices.n; i++)
        if (!b->matrices.p[i]->ready) l.n_total += b->matrices.p[i]->bytes;
    OX_TRY_GOTO(open_loader(&l, err));
    for (size_t i = 0; i < b->matrices.n; i++)
        if (!b->matrices.p[i]->ready) OX_TRY_GOTO(load_matrix(&l, b->matrices.p[i], drop, err));
    st = ox_cuda_check(b, cudaStreamSynchronize(b->stream), "cudaStreamSynchronize", err);
fail:
    close_loader(&l);
    return st ? st : ox_cuda_scratch(b, err);
}
