/* cpu.h - inside of the CPU backend: what is bound to a call, and the table of call kinds. */
#ifndef OX_BACKEND_CPU_CPU_H
#define OX_BACKEND_CPU_CPU_H
#include "backend/backend.h"
#include "kernel/kernel.h"
#include "kernel/matmul/matmul.h"
#include "kernel/qlinear/qlinear.h"

typedef struct ox_cpu_check ox_cpu_check;

typedef struct ox_cpu_backend {
    ox_backend base;
    ox_team *team; /* borrowed */
    ox_machine machine;
    uint64_t weight_bytes;
    ox_cpu_check *check; /* OXGEN_CHECK=1, else NULL; owned */
} ox_cpu_backend;

typedef struct ox_cpu_bound {
    ox_any_fn *fn[OX_CLASS_COUNT];
    ox_tol tol[OX_CLASS_COUNT];
    ox_any_fn *ref; /* the family's reference row; NULL where a call has no family */
    ox_qpack qpack; /* LINEAR_INT, LINEAR_EXACT; data filled by prepare */
    ox_fpack fpack; /* LINEAR_FLOAT */
    size_t fpack_bytes;
    float *vectors[2]; /* bias / gamma and beta / sinks as float32; page memory */
    size_t vector_n[2];
} ox_cpu_bound;

/* One step as a worker sees it. */
typedef struct ox_cpu_run {
    const ox_cpu_backend *b;
    const ox_buffer *buffers;
    const size_t *offsets;
    char *arena;
    const ox_step *step;
    const ox_kv_pool *kv;
    const ox_call *calls;
    size_t n_calls;
    ox_shape_class all, wanted; /* class of the step's rows and of its wanted rows */
    size_t worker;              /* whose copy of repeated buffers; 0 in steps of several rows */
} ox_cpu_run;

typedef ox_status ox_cpu_bind_fn(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                                 const ox_buffer *buffers, ox_err *err);
typedef void ox_cpu_run_fn(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound,
                           int i_worker, int n_workers);

#define OX_CPU_CALL(kind, bind, run)                                                               \
    ox_cpu_bind_fn bind;                                                                           \
    ox_cpu_run_fn run;
#include "backend/cpu/calls.def"
#undef OX_CPU_CALL

/* Picks a row of a family for each class; args[k] describes class k (may be the same pointer). */
ox_status ox_cpu_pick(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound, const ox_kernel_row *rows,
                      const void *const args[OX_CLASS_COUNT], ox_err *err);
/* Bytes of a buffer of that many rows; 0 on overflow. Multiples of 64 for a repeated one's row. */
size_t ox_cpu_buffer_bytes(const ox_buffer *buffer, size_t rows);
/* Start of this worker's copy of a buffer. */
static inline char *ox_cpu_data(const ox_cpu_run *r, ox_buffer_id i)
{
    const ox_buffer *b = &r->buffers[i.i];
    char *at = r->arena + r->offsets[i.i];
    return r->worker && b->repeated ? at + r->worker * ox_cpu_buffer_bytes(b, 1) : at;
}
/* First row of the operand and floats between rows. */
static inline float *ox_cpu_floats(const ox_cpu_run *r, ox_operand o, size_t *ld)
{
    *ld = (size_t)r->buffers[o.buffer.i].width;
    return (float *)(void *)ox_cpu_data(r, o.buffer) + o.first;
}
static inline ox_any_fn *ox_cpu_fn(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound)
{
    return bound->fn[c->wanted ? r->wanted : r->all];
}
static inline size_t ox_cpu_rows(const ox_cpu_run *r, const ox_call *c)
{
    return (size_t)ox_step_rows(r->step, c->wanted);
}
/* Concatenates vectors (NULL ones as zeros of the length in `lengths`) as float32 into slot i. */
ox_status ox_cpu_vector(ox_cpu_backend *b, ox_cpu_bound *bound, int i,
                        const ox_weight *const *vectors, const int64_t *lengths, int32_t n,
                        ox_err *err);
#endif
