/* run.c - one step: the step record goes up, the calls are launched or replayed, logits come down.
 *
 * A step of few rows is captured once per (rows, rows wanted, rounded length) and replayed; what
 * varies inside is in the step record, whose address stays. */
#include "backend/cuda/cuda.h"
#include "kernel/attend/cuda_flash.h"

#include <stdlib.h>

typedef struct cuda_call {
    ox_cuda_run_fn *run;
} cuda_call;

static const cuda_call table[OX_CALL_COUNT] = {
#define OX_CUDA_CALL(kind, bind, run) [OX_CALL_##kind] = {run},
#include "backend/cuda/calls.def"
#undef OX_CUDA_CALL
};

void ox_cuda_launch(const ox_cuda_run *r, const ox_call *calls, size_t n)
{
    for (size_t i = 0, together; i < n; i += together ? together : 1) {
        if (r->b->profile) ox_cuda_profile_mark(r->b, i);
        together = ox_cuda_run_together(r, &calls[i], n - i);
        for (size_t k = 1; r->b->profile && k < together; k++)
            ox_cuda_profile_mark(r->b, i + k);
        if (!together) table[calls[i].kind].run(r, &calls[i], calls[i].bound);
    }
    if (r->b->profile) ox_cuda_profile_mark(r->b, n);
}

void ox_cuda_graphs_drop(ox_cuda_backend *b)
{
    for (size_t i = 0; i < b->n_graphs; i++)
        cudaGraphExecDestroy(b->graphs[i].exec);
    b->n_graphs = b->next_graph = 0;
}

/* ---- the step record ------------------------------------------------------------------------- */

typedef ox_cuda_flash_tile tile;

typedef struct record { /* where the arrays lie, in bytes from the record's start */
    size_t ids, pos, seq, wanted, first, tiles, pages;
} record;

/* Steps of up to 64 rows have a compact record: few bytes go up. */
static record record_of(int32_t rows)
{
    const size_t n =
        (rows <= OX_CUDA_GRAPH_ROWS ? OX_CUDA_GRAPH_ROWS : OX_ROWS_MAX) * sizeof(int32_t);
    return (record){0, n, 2 * n, 3 * n, 4 * n, 5 * n, 5 * n + OX_ROWS_MAX / 8 * sizeof(tile)};
}

static ox_dev_step step_at(char *base, record at)
{
    return (ox_dev_step){.ids = (const int32_t *)(void *)(base + at.ids),
                         .pos = (const int32_t *)(void *)(base + at.pos),
                         .seq = (const int32_t *)(void *)(base + at.seq),
                         .wanted = (const int32_t *)(void *)(base + at.wanted),
                         .first = (const int32_t *)(void *)(base + at.first),
                         .tiles = base + at.tiles,
                         .pages = (void *const *)(void *)(base + at.pages)};
}

static int by_last_position(const void *pa, const void *pb)
{
    const tile *a = pa, *b = pb;
    const int32_t x = a->pos + a->n_rows, y = b->pos + b->n_rows;
    return x != y ? (x > y) - (x < y) : (a->row > b->row) - (a->row < b->row);
}

/* A prompt's rows as runs of consecutive positions of one sequence; 0 where there are too many
 * short ones: such rows are decodes. */
static int32_t put_tiles(char *host, record at, const ox_step *s)
{
    tile *const t = (tile *)(void *)(host + at.tiles);
    int32_t n = 0;
    if (s->rows <= OX_CUDA_GRAPH_ROWS) return 0;
    for (int32_t r = 0; r < s->rows; r++) {
        const int32_t seq = s->seq ? s->seq[r] : 0;
        tile *last = n ? &t[n - 1] : NULL;
        if (last && last->seq == seq && last->n_rows < OX_FLASH_ROWS &&
            s->pos[r] == last->pos + last->n_rows) {
            last->n_rows++;
            continue;
        }
        if (n == s->rows / 8 || s->pos[r] < 0) return 0;
        t[n++] = (tile){r, 1, seq, s->pos[r]};
    }
    qsort(t, (size_t)n, sizeof(*t), by_last_position);
    return n;
}

/* The page tables that the step's rows use, one behind the other. */
static bool put_tables(char *host, record at, const ox_step *s, int32_t n_seq, size_t *bytes)
{
    size_t n = 0;
    for (int32_t q = 0; q < n_seq; q++) {
        int32_t last = -1;
        for (int32_t i = 0; i < s->rows; i++)
            if ((s->seq ? s->seq[i] : 0) == q && s->pos[i] > last) last = s->pos[i];
        const size_t pages = last < 0 ? 0 : (size_t)(last / 64 + 1);
        if (at.pages + (n + pages) * sizeof(void *) > OX_CUDA_STEP_BYTES) return false;
        const int32_t first = (int32_t)n;
        memcpy(host + at.first + (size_t)q * sizeof(int32_t), &first, sizeof(first));
        if (pages)
            memcpy(host + at.pages + n * sizeof(void *), (const void *)s->tables[q],
                   pages * sizeof(void *));
        n += pages;
    }
    *bytes = at.pages + n * sizeof(void *);
    return true;
}

static ox_status put_record(ox_cuda_backend *b, const ox_step *s, int32_t n_seq)
{
    const record at = record_of(s->rows);
    const size_t n = (size_t)s->rows * sizeof(int32_t);
    size_t bytes = 0;
    char *host = b->step_host;
    OX_CUDA_TRY(b, NULL, cudaSetDevice(b->options.index));  /* the caller may be another thread */
    OX_CUDA_TRY(b, NULL, cudaStreamSynchronize(b->stream)); /* the record may still be on its way */
    memcpy(host + at.ids, s->ids, n);
    memcpy(host + at.pos, s->pos, n);
    if (s->seq)
        memcpy(host + at.seq, s->seq, n);
    else
        memset(host + at.seq, 0, n);
    if (s->n_wanted) memcpy(host + at.wanted, s->wanted, (size_t)s->n_wanted * sizeof(int32_t));
    if (!put_tables(host, at, s, n_seq, &bytes))
        return OX_FAIL(&b->failure, OX_LIMIT, "the page tables of a step are too large");
    b->step = step_at(b->step_device, at);
    b->step.n_tiles = put_tiles(host, at, s);
    OX_CUDA_TRY(b, NULL,
                cudaMemcpyAsync(b->step_device, host, bytes, cudaMemcpyHostToDevice, b->stream));
    return OX_OK;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Lengths that share a captured step: powers of two from 256 on. */
static int32_t rounded(int32_t total)
{
    int32_t n = 256;
    while (n < total && n < 1 << 30)
        n *= 2;
    return n;
}

static ox_cuda_graph *find_graph(ox_cuda_backend *b, const ox_cuda_graph *key)
{
    for (size_t i = 0; i < b->n_graphs; i++) {
        ox_cuda_graph *g = &b->graphs[i];
        if (g->calls == key->calls && g->n_calls == key->n_calls && g->arena == key->arena &&
            g->rows == key->rows && g->n_wanted == key->n_wanted && g->total == key->total &&
            g->is_long == key->is_long && g->one_sequence == key->one_sequence)
            return g;
    }
    return NULL;
}

static ox_status capture(ox_cuda_backend *b, const ox_cuda_run *r, const ox_cuda_graph *key,
                         ox_cuda_graph **out)
{
    cudaGraph_t graph = NULL;
    ox_cuda_graph g = *key;
    OX_CUDA_TRY(b, NULL, cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal));
    ox_cuda_launch(r, key->calls, key->n_calls);
    OX_CUDA_TRY(b, NULL, cudaStreamEndCapture(b->stream, &graph));
    const cudaError_t e = cudaGraphInstantiate(&g.exec, graph, 0);
    cudaGraphDestroy(graph);
    OX_TRY(ox_cuda_check(b, e, "cudaGraphInstantiate", NULL));
    size_t i = b->n_graphs;
    if (i < OX_CUDA_GRAPHS) {
        b->n_graphs++;
    } else {
        i = b->next_graph++ % OX_CUDA_GRAPHS;
        cudaGraphExecDestroy(b->graphs[i].exec);
    }
    b->graphs[i] = g;
    *out = &b->graphs[i];
    return OX_OK;
}

static ox_status replay(ox_cuda_backend *b, const ox_cuda_run *r, const ox_call *calls, size_t n)
{
    const ox_cuda_graph key = {.calls = calls,
                               .n_calls = n,
                               .arena = r->arena,
                               .rows = r->rows,
                               .n_wanted = r->n_wanted,
                               .total = r->total,
                               .is_long = r->is_long,
                               .one_sequence = r->one_sequence};
    ox_cuda_graph *g = find_graph(b, &key);
    if (!g) OX_TRY(capture(b, r, &key, &g));
    OX_CUDA_TRY(b, NULL, cudaGraphLaunch(g->exec, b->stream));
    return OX_OK;
}

static bool wants_long_tables(const ox_call *calls, size_t n, int32_t total)
{
    for (size_t i = 0; i < n; i++) {
        const ox_rotary *rule = calls[i].kind == OX_CALL_ROTATE ? calls[i].term->rotary : NULL;
        if (rule && rule->long_cos) return total > rule->switch_length;
    }
    return false;
}

static int32_t count_sequences(const ox_step *s)
{
    int32_t n = 1;
    for (int32_t i = 0; s->seq && i < s->rows; i++)
        if (s->seq[i] >= n) n = s->seq[i] + 1;
    return n;
}

void ox_cuda_run_step(ox_backend *base, const ox_call *calls, size_t n, const ox_buffer *buffers,
                      const size_t *offsets, char *arena, const ox_step *step, const ox_kv_pool *kv)
{
    ox_cuda_backend *b = (ox_cuda_backend *)base;
    const int32_t n_seq = count_sequences(step);
    if (b->failure.status) return; /* the device is not to be trusted any more */
    ox_cuda_run r = {.b = b,
                     .buffers = buffers,
                     .offsets = offsets,
                     .arena = arena,
                     .kv = kv,
                     .rows = step->rows,
                     .n_wanted = step->n_wanted,
                     .total = rounded(step->total),
                     .one_sequence = n_seq == 1,
                     .is_long = wants_long_tables(calls, n, step->total)};
    r.all = ox_class_of_rows(step->rows);
    r.wanted = ox_class_of_rows(step->n_wanted);
    if (put_record(b, step, n_seq)) return;
    if (b->use_graphs && !b->profile && step->rows <= OX_CUDA_GRAPH_ROWS) {
        if (replay(b, &r, calls, n)) return;
    } else {
        ox_cuda_launch(&r, calls, n);
        if (b->profile) ox_cuda_profile_step(b, &r, calls, n);
    }
    ox_cuda_check(b, cudaGetLastError(), "a kernel launch", NULL);
}

const float *ox_cuda_fetch(ox_backend *base, const void *from, size_t n)
{
    ox_cuda_backend *b = (ox_cuda_backend *)base;
    const size_t bytes = n * sizeof(float);
    if (!n || b->failure.status) return NULL;
    if (bytes > b->logits_bytes) {
        float *p = NULL;
        if (ox_cuda_check(b, cudaMallocHost((void **)&p, bytes), "cudaMallocHost", NULL))
            return NULL;
        if (b->logits) cudaFreeHost(b->logits);
        b->logits = p;
        b->logits_bytes = bytes;
    }
    if (!ox_cuda_check(b,
                       cudaMemcpyAsync(b->logits, from, bytes, cudaMemcpyDeviceToHost, b->stream),
                       "cudaMemcpyAsync", NULL))
        ox_cuda_check(b, cudaStreamSynchronize(b->stream), "the step", NULL);
    return b->failure.status ? NULL : b->logits;
}
