/* backend.h - the device vtable: what plan/ and exec/ need from a device, and nothing else. */
#ifndef OX_BACKEND_BACKEND_H
#define OX_BACKEND_BACKEND_H
#include "backend/call.h"
#include "backend/decode.h"
#include "base/str.h"
#include "base/team.h"
#include "kv/kv.h"

/* Called while weights are prepared: bytes done so far of total. False cancels. */
typedef bool ox_prepare_fn(void *user, uint64_t done, uint64_t total);

typedef struct ox_backend_ops {
    const char *name; /* "cpu" */
    /* Picks kernel rows for one call and keeps what it needs in call->bound. */
    ox_status (*bind)(ox_backend *b, ox_call *call, const ox_buffer *buffers, ox_err *err);
    /* Packs the weights of all bound calls; drop(user, data, bytes) is told when source bytes are
     * no longer needed. */
    ox_status (*prepare)(ox_backend *b, ox_call *calls, size_t n, ox_prepare_fn *progress,
                         void *user, void (*drop)(void *user, const ox_weight *w), ox_err *err);
    void (*unbind)(ox_backend *b, ox_call *call);
    size_t (*buffer_bytes)(const ox_backend *b, const ox_buffer *buffer, size_t rows);
    /* Runs the calls over arena memory; offsets[i] is where buffer i starts. Cannot fail. */
    void (*run)(ox_backend *b, const ox_call *calls, size_t n, const ox_buffer *buffers,
                const size_t *offsets, char *arena, const ox_step *step, const ox_kv_pool *kv);
    uint64_t (*weight_bytes)(const ox_backend *b); /* memory of prepared weights */
    const char *(*complaint)(const ox_backend *b); /* what OXGEN_CHECK=1 found; NULL = nothing */
    void (*close)(ox_backend *b);
    /* What devices with memory of their own add; NULL or 0 on the CPU. */
    const char *(*device)(const ox_backend *b); /* "cuda:0" */
    /* Where the step's arena lives, and the cache's pages. */
    const ox_kv_memory *(*arena_memory)(ox_backend *b);
    const ox_kv_memory *(*page_memory)(ox_backend *b);
    uint64_t (*free_bytes)(ox_backend *b); /* of the device's memory */
    /* n floats of device memory where the host can read them until the next run. */
    const float *(*fetch)(ox_backend *b, const void *from, size_t n);
    /* What opening with `profile` collected: a table, and the last step as a Chrome trace. */
    ox_status (*end_profile)(ox_backend *b, ox_buf *table, ox_buf *trace, ox_err *err);
    ox_decode_fn *decode;   /* several tokens without the host; see decode.h */
    bool float_activations; /* linears read float rows: plans have no quantise calls */
    int32_t many_rows;      /* rows of the largest class, at most OX_ROWS_MAX; 0 = OX_MANY_ROWS */
} ox_backend_ops;

struct ox_backend {
    const ox_backend_ops *ops;
};

/* The CPU backend runs on `team` (borrowed). */
ox_status ox_backend_cpu_open(ox_backend **out, ox_team *team, ox_err *err);
void ox_backend_close(ox_backend **b);
#endif
