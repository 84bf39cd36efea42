/* cpu.c - the CPU device: binds calls to kernel rows, packs weights on the team, walks the list.
 *
 * Every worker runs every call on its own fixed range; a barrier where the plan asks for one. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/check.h"
#include "base/fs.h"

#include <stdatomic.h>
#include <string.h>

typedef struct cpu_call {
    ox_cpu_bind_fn *bind;
    ox_cpu_run_fn *run;
} cpu_call;

static const cpu_call table[OX_CALL_COUNT] = {
#define OX_CPU_CALL(kind, bind, run) [OX_CALL_##kind] = {bind, run},
#include "backend/cpu/calls.def"
#undef OX_CPU_CALL
};

ox_status ox_cpu_pick(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound, const ox_kernel_row *rows,
                      const void *const args[OX_CLASS_COUNT], ox_err *err)
{
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        const ox_kernel_row *row = ox_kernel_pick(rows, OX_DEVICE_CPU, &b->machine, args[k]);
        if (!row) return OX_FAIL(err, OX_UNSUPPORTED, "node %s: no kernel row accepts it", c->name);
        bound->fn[k] = row->fn;
        bound->tol[k] = row->tol;
        c->rows[k] = row->name;
    }
    const ox_kernel_row *last = rows;
    while (last[1].device)
        last++;
    bound->ref = last->fn;
    return OX_OK;
}

ox_status ox_cpu_vector(ox_cpu_backend *b, ox_cpu_bound *bound, int i,
                        const ox_weight *const *vectors, const int64_t *lengths, int32_t n,
                        ox_err *err)
{
    size_t total = 0;
    for (int32_t k = 0; k < n; k++)
        total += (size_t)lengths[k];
    float *p = ox_pages_alloc(total * sizeof(float));
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a vector of %zu floats", total);
    bound->vectors[i] = p;
    bound->vector_n[i] = total;
    b->weight_bytes += total * sizeof(float);
    for (int32_t k = 0; k < n; k++) {
        if (vectors[k] && vectors[k]->cols != lengths[k])
            return OX_FAIL(err, OX_BAD_FILE, "tensor %.*s: expected %lld values, found %lld",
                           OX_STR_ARGS(vectors[k]->name), (long long)lengths[k],
                           (long long)vectors[k]->cols);
        if (vectors[k]) ox_weight_row_f32(vectors[k], 0, p);
        p += lengths[k];
    }
    return OX_OK;
}

static void cpu_unbind(ox_backend *base, ox_call *c)
{
    (void)base;
    ox_cpu_bound *bound = c->bound;
    if (!bound) return;
    for (int i = 0; i < 2; i++)
        ox_pages_free(bound->vectors[i], bound->vector_n[i] * sizeof(float));
    ox_pages_free(bound->qpack.data, bound->qpack.bytes);
    ox_pages_free(bound->fpack.data, bound->fpack_bytes);
    ox_free(bound);
    c->bound = NULL;
}

static ox_status cpu_bind(ox_backend *base, ox_call *c, const ox_buffer *buffers, ox_err *err)
{
    ox_cpu_backend *b = (ox_cpu_backend *)base;
    ox_cpu_bound *bound = ox_calloc(1, sizeof(*bound));
    if (!bound) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    c->bound = bound;
    return table[c->kind].bind(b, c, bound, buffers, err);
}

typedef struct pack_job {
    const ox_call *call;
    const ox_cpu_bound *bound;
    ox_err err;
    atomic_flag err_taken;
} pack_job;

static void pack_part(void *user, int i, int n)
{
    pack_job *j = user;
    ox_err err = OX_ERR_INIT;
    size_t begin, end;
    const ox_call *c = j->call;
    if (c->kind == OX_CALL_LINEAR_FLOAT) {
        ox_team_split(ox_fpack_tiles(&j->bound->fpack), 1, i, n, &begin, &end);
        ox_fpack_fill(&j->bound->fpack, c->weights, (size_t)c->n_weights, begin, end, &err);
    } else {
        ox_team_split(j->bound->qpack.units, 1, i, n, &begin, &end);
        ox_qpack_fill(&j->bound->qpack, c->weights, (size_t)c->n_weights, begin, end, &err);
    }
    if (err.status && !atomic_flag_test_and_set(&j->err_taken)) j->err = err;
}

static ox_status pack_call(ox_cpu_backend *b, ox_call *c, ox_err *err)
{
    ox_cpu_bound *bound = c->bound;
    const size_t bytes = bound->qpack.bytes ? bound->qpack.bytes : bound->fpack_bytes;
    void *data = ox_pages_alloc(bytes);
    if (!data)
        return OX_FAIL(err, OX_NO_MEMORY,
                       "no memory to pack %s: %.2f GiB are needed; choose a smaller model or int4",
                       c->name, (double)bytes / 0x1p30);
    if (bound->qpack.bytes)
        bound->qpack.data = data;
    else
        bound->fpack.data = data;
    pack_job job = {.call = c, .bound = bound, .err = OX_ERR_INIT, .err_taken = ATOMIC_FLAG_INIT};
    ox_team_run(b->team, pack_part, &job);
    if (job.err.status) {
        if (err && !err->status) *err = job.err;
        return job.err.status;
    }
    b->weight_bytes += bytes;
    return OX_OK;
}

static ox_status cpu_prepare(ox_backend *base, ox_call *calls, size_t n, ox_prepare_fn *progress,
                             void *user, void (*drop)(void *user, const ox_weight *w), ox_err *err)
{
    ox_cpu_backend *b = (ox_cpu_backend *)base;
    uint64_t total = 0, done = 0;

    for (size_t i = 0; i < n; i++)
        if (calls[i].n_weights) {
            const ox_cpu_bound *bound = calls[i].bound;
            total += bound->qpack.bytes + bound->fpack_bytes;
        }
    for (size_t i = 0; i < n; i++) {
        if (!calls[i].n_weights) continue;
        const ox_cpu_bound *bound = calls[i].bound;
        OX_TRY(pack_call(b, &calls[i], err));
        for (int32_t k = 0; drop && k < calls[i].n_weights; k++)
            drop(user, calls[i].weights[k]);
        done += bound->qpack.bytes + bound->fpack_bytes;
        if (progress && !progress(user, done, total))
            return OX_FAIL(err, OX_CANCELLED, "interrupted while loading");
    }
    return OX_OK;
}

size_t ox_cpu_buffer_bytes(const ox_buffer *buffer, size_t rows)
{
    size_t bytes = rows * (size_t)buffer->width * sizeof(float);
    if (buffer->quant_block) {
        const ox_qact q = ox_qact_shape(rows, (size_t)buffer->width, buffer->quant_block,
                                        buffer->quant_bits, buffer->quant_planes);
        if (!ox_qact_bytes(&q, &bytes)) return 0;
    }
    return (bytes + 63) / 64 * 64;
}

static size_t cpu_buffer_bytes(const ox_backend *base, const ox_buffer *buffer, size_t rows)
{
    const size_t bytes = ox_cpu_buffer_bytes(buffer, rows);
    const size_t team = (size_t)ox_team_size(((const ox_cpu_backend *)base)->team);
    return rows == 1 && buffer->repeated ? bytes * team : bytes;
}

static void walk(void *user, int i, int n)
{
    const ox_cpu_run *r = user;
    for (size_t k = 0; k < r->n_calls; k++) {
        const ox_call *c = &r->calls[k];
        if (c->barrier && k) ox_team_barrier(r->b->team);
        table[c->kind].run(r, c, c->bound, i, n);
    }
}

/* A step of one row: see plan/repeat.c. */
static void walk_one(void *user, int i, int n)
{
    ox_cpu_run r = *(const ox_cpu_run *)user;
    r.worker = (size_t)i;
    for (size_t k = 0; k < r.n_calls; k++) {
        const ox_call *c = &r.calls[k];
        if (c->barrier_one) ox_team_barrier(r.b->team);
        table[c->kind].run(&r, c, c->bound, c->repeat ? 0 : i, c->repeat ? 1 : n);
    }
}

static void walk_checked(const ox_cpu_run *r)
{
    for (size_t k = 0; k < r->n_calls; k++)
        ox_cpu_check_call(r->b->check, r, &r->calls[k], table[r->calls[k].kind].run);
}

static void cpu_run(ox_backend *base, const ox_call *calls, size_t n, const ox_buffer *buffers,
                    const size_t *offsets, char *arena, const ox_step *step, const ox_kv_pool *kv)
{
    const ox_cpu_backend *b = (const ox_cpu_backend *)base;
    ox_cpu_run run = {.b = b,
                      .buffers = buffers,
                      .offsets = offsets,
                      .arena = arena,
                      .step = step,
                      .kv = kv,
                      .calls = calls,
                      .n_calls = n};
    run.all = ox_class_of_rows(step->rows);
    run.wanted = ox_class_of_rows(step->n_wanted);
    if (b->check)
        walk_checked(&run);
    else
        ox_team_run(b->team, step->rows == 1 ? walk_one : walk, &run);
}

static const char *cpu_complaint(const ox_backend *base)
{
    const ox_cpu_check *check = ((const ox_cpu_backend *)base)->check;
    return check && check->found ? check->message : NULL;
}

static uint64_t cpu_weight_bytes(const ox_backend *base)
{
    return ((const ox_cpu_backend *)base)->weight_bytes;
}

static void cpu_close(ox_backend *base)
{
    ox_free(((ox_cpu_backend *)base)->check);
    ox_free(base);
}

static const ox_backend_ops ops = {
    .name = "cpu",
    .bind = cpu_bind,
    .prepare = cpu_prepare,
    .unbind = cpu_unbind,
    .buffer_bytes = cpu_buffer_bytes,
    .run = cpu_run,
    .weight_bytes = cpu_weight_bytes,
    .complaint = cpu_complaint,
    .close = cpu_close,
};

ox_status ox_backend_cpu_open(ox_backend **out, ox_team *team, ox_err *err)
{
    *out = NULL;
    ox_cpu_backend *b = ox_calloc(1, sizeof(*b));
    if (!b) return OX_FAIL(err, OX_NO_MEMORY, "no memory for the CPU backend");
    b->base.ops = &ops;
    b->team = team;
    const char *check = ox_env("OXGEN_CHECK");
    if (check && !strcmp(check, "1")) b->check = ox_calloc(1, sizeof(*b->check));
    const ox_status st = ox_cpu_features(&b->machine.cpu_features, err);
    if (st) {
        cpu_close(&b->base);
        return st;
    }
    *out = &b->base;
    return OX_OK;
}

void ox_backend_close(ox_backend **b)
{
    if (!*b) return;
    (*b)->ops->close(*b);
    *b = NULL;
}
