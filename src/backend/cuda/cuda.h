/* cuda.h - inside of the CUDA backend: the device, what is bound to a call, one step's view. */
#ifndef OX_BACKEND_CUDA_CUDA_H
#define OX_BACKEND_CUDA_CUDA_H
#include "backend/plugin.h"
#include "base/mem.h"
#include "base/vec.h"
#include "kernel/device.h"

#include <cuda_runtime_api.h>
#include <string.h>

/* Records the first CUDA failure of the backend; every call goes through this. */
#define OX_CUDA_TRY(b, err, call) OX_TRY(ox_cuda_check((b), (call), #call, (err)))

enum {
    OX_CUDA_GRAPHS = 64,      /* captured steps kept at most */
    OX_CUDA_GRAPH_ROWS = 64,  /* steps of more rows are launched call by call */
    OX_CUDA_MANY_ROWS = 2048, /* rows of a prompt chunk */
    OX_CUDA_STEP_BYTES = 4 << 20,
    OX_CUDA_SCRATCH_BYTES = 128 << 20,
    OX_CUDA_STAGE_BYTES = 32 << 20, /* of each of two pinned buffers while loading */
};

typedef struct ox_cuda_slab { /* device memory that pages of the cache are cut from */
    char *p;
    size_t bytes, used;
} ox_cuda_slab;

typedef struct ox_cuda_graph { /* one captured step */
    const ox_call *calls;
    size_t n_calls;
    const char *arena;
    int32_t rows, n_wanted, total; /* total: rounded up */
    bool is_long, one_sequence;
    cudaGraphExec_t exec;
} ox_cuda_graph;

/* A matrix in device memory, shared by the calls that read the same weights. */
typedef struct ox_cuda_matrix {
    const ox_weight *weights[OX_CALL_WEIGHTS];
    int32_t n_weights;
    int32_t n, k;
    bool is_pack;
    ox_dev_pack pack;
    ox_dev_fweight floats;
    size_t part_bytes[3], bytes; /* codes or floats, scales, zeros; together */
    bool ready;
} ox_cuda_matrix;

typedef struct ox_cuda_backend {
    ox_backend base;
    ox_team *team; /* borrowed */
    ox_device_options options;
    char name[16]; /* "cuda:0" */
    int32_t sm, n_sm;
    cudaStream_t stream, copy_stream;
    OX_VEC(ox_cuda_matrix *) matrices;
    OX_VEC(void *) blocks; /* device memory of weights, vectors and tables */
    OX_VEC(struct ox_cuda_table {
        const float *host;
        float *device;
    })
    tables; /* rotary */
    OX_VEC(ox_cuda_slab) slabs;
    OX_VEC(void *) free_pages;
    ox_kv_memory arena_memory, page_memory;
    uint64_t weight_bytes;
    char *step_host, *step_device; /* pinned, device: the step record */
    ox_dev_step step;              /* where its arrays lie */
    float *logits;                 /* pinned */
    size_t logits_bytes;
    char *small; /* block that small vectors are cut from */
    size_t small_left;
    void *scratch; /* device: the linears' and attention's */
    ox_cuda_graph graphs[OX_CUDA_GRAPHS];
    size_t n_graphs, next_graph;
    bool use_graphs;
    ox_err failure;                  /* the first one; complaint() tells */
    struct ox_cuda_profile *profile; /* NULL = off */
    void *chain; /* state of chain/: decode without the host; NULL = not opened */
} ox_cuda_backend;

typedef struct ox_cuda_bound {
    ox_dev_fn *fn[OX_CLASS_COUNT];
    ox_cuda_matrix *matrix[OX_CALL_WEIGHTS]; /* one for all weights, or one a weight */
    int32_t n_matrices;
    float *vectors[2];      /* device: bias; gamma, beta; sinks */
    const float *tables[4]; /* device: cos, sin, long cos, long sin */
} ox_cuda_bound;

/* One step as calls see it. */
typedef struct ox_cuda_run {
    ox_cuda_backend *b;
    const ox_buffer *buffers;
    const size_t *offsets;
    char *arena;
    const ox_kv_pool *kv;
    int32_t rows, n_wanted;
    int32_t total;     /* at least the step's; rounded up so that graphs last */
    bool is_long;      /* the long rotary tables */
    bool one_sequence; /* all rows belong to one */
    ox_shape_class all, wanted;
} ox_cuda_run;

/* Device memory for vectors and tables, kept until close; counted as weights. */
ox_status ox_cuda_small(ox_cuda_backend *b, void **out, size_t bytes, ox_err *err);
ox_status ox_cuda_check(ox_cuda_backend *b, cudaError_t e, const char *what, ox_err *err);

/* chain/decode.c */
ox_decode_fn ox_cuda_decode;
void ox_cuda_chain_close(ox_cuda_backend *b);

/* cuda.c */
ox_status ox_cuda_scratch(ox_cuda_backend *b, ox_err *err);

/* memory.c */
ox_status ox_cuda_alloc(ox_cuda_backend *b, void **out, size_t bytes, const char *what,
                        ox_err *err); /* kept until close */
void ox_cuda_memory_open(ox_cuda_backend *b);
void ox_cuda_memory_close(ox_cuda_backend *b);

/* upload.c: a NULL matrix with OX_OK when the weights cannot be one */
ox_status ox_cuda_matrix_get(ox_cuda_backend *b, ox_cuda_matrix **out, const ox_weight *const *w,
                             int32_t n, ox_err *err);
ox_status ox_cuda_vector(ox_cuda_backend *b, float **out, const ox_weight *const *vectors,
                         const int64_t *lengths, int32_t n, ox_err *err);
ox_status ox_cuda_floats(ox_cuda_backend *b, const float **out, const float *host, size_t n,
                         ox_err *err); /* host floats, once each */
ox_status ox_cuda_prepare(ox_backend *base, ox_call *calls, size_t n, ox_prepare_fn *progress,
                          void *user, void (*drop)(void *user, const ox_weight *w), ox_err *err);

/* calls.c: binds and runs each kind of call */
typedef ox_status ox_cuda_bind_fn(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                                  const ox_buffer *buffers, ox_err *err);
typedef void ox_cuda_run_fn(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound);
#define OX_CUDA_CALL(kind, bind, run)                                                              \
    ox_cuda_bind_fn bind;                                                                          \
    ox_cuda_run_fn run;
#include "backend/cuda/calls.def"
#undef OX_CUDA_CALL

/* Runs the first calls of the list at once where a row does them together; how many, 0 = none. */
size_t ox_cuda_run_together(const ox_cuda_run *r, const ox_call *c, size_t n);

/* run.c */
void ox_cuda_run_step(ox_backend *base, const ox_call *calls, size_t n, const ox_buffer *buffers,
                      const size_t *offsets, char *arena, const ox_step *step,
                      const ox_kv_pool *kv);
void ox_cuda_launch(const ox_cuda_run *r, const ox_call *calls, size_t n);
const float *ox_cuda_fetch(ox_backend *base, const void *from, size_t n);
void ox_cuda_graphs_drop(ox_cuda_backend *b);

/* profile.c */
ox_status ox_cuda_profile_open(ox_cuda_backend *b, ox_err *err);
void ox_cuda_profile_close(ox_cuda_backend *b);
void ox_cuda_profile_mark(ox_cuda_backend *b, size_t i); /* before call i; behind the last */
void ox_cuda_profile_step(ox_cuda_backend *b, const ox_cuda_run *r, const ox_call *calls, size_t n);
ox_status ox_cuda_end_profile(ox_backend *base, ox_buf *table, ox_buf *trace, ox_err *err);

/* rows.c */
extern const ox_device_row ox_cuda_rows[];
bool ox_cuda_row_runs(const ox_kernel_row *row, int32_t sm);
/* First row of the family that the device has and that accepts the arguments; NULL if none. */
const ox_kernel_row *ox_cuda_pick(const char *family, int32_t sm, const void *args);

static inline int32_t ox_cuda_dtype(const ox_cuda_backend *b, const ox_buffer *buffer)
{
    return buffer->is_logits ? OX_DEV_F32 : (int32_t)b->options.activations;
}
static inline ox_dev_matrix ox_cuda_operand(const ox_cuda_run *r, ox_operand o)
{
    ox_dev_matrix m = {0};
    if (o.buffer.i < 0) return m;
    const ox_buffer *buffer = &r->buffers[o.buffer.i];
    m.dtype = ox_cuda_dtype(r->b, buffer);
    m.ld = buffer->width;
    m.p = r->arena + r->offsets[o.buffer.i] + (size_t)o.first * (m.dtype == OX_DEV_F32 ? 4 : 2);
    return m;
}
static inline int32_t ox_cuda_rows_of(const ox_cuda_run *r, const ox_call *c)
{
    return c->wanted ? r->n_wanted : r->rows;
}
static inline ox_shape_class ox_cuda_class_of(const ox_cuda_run *r, const ox_call *c)
{
    return c->wanted ? r->wanted : r->all;
}
#endif
