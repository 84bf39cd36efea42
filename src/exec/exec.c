/* exec.c - picks the shape class of a step and hands the plan's calls to its backend. */
#include "exec/exec.h"

struct ox_exec {
    const ox_plan *plan;
    const ox_kv_memory *memory; /* NULL = the host's */
    char *arena;
    size_t arena_bytes;
};

ox_status ox_exec_open(ox_exec **out, const ox_plan *plan, ox_err *err)
{
    *out = NULL;
    ox_exec *e = ox_calloc(1, sizeof(*e));
    if (!e) return OX_FAIL(err, OX_NO_MEMORY, "no memory to run a plan");
    e->plan = plan;
    for (int k = 0; k < OX_CLASS_COUNT; k++)
        if (plan->arena_bytes[k] > e->arena_bytes) e->arena_bytes = plan->arena_bytes[k];
    const ox_backend_ops *ops = plan->backend->ops;
    if (ops->arena_memory) e->memory = ops->arena_memory(plan->backend);
    e->arena = e->memory ? e->memory->take(e->memory->user, e->arena_bytes)
                         : ox_pages_alloc(e->arena_bytes);
    if (!e->arena) {
        ox_exec_close(&e);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu bytes of activations",
                       plan->arena_bytes[OX_CLASS_MANY]);
    }
    *out = e;
    return OX_OK;
}

void ox_exec_close(ox_exec **e)
{
    if (!*e) return;
    const ox_kv_memory *memory = (*e)->memory;
    if (!memory)
        ox_pages_free((*e)->arena, (*e)->arena_bytes);
    else if ((*e)->arena)
        memory->give(memory->user, (*e)->arena, (*e)->arena_bytes);
    ox_free(*e);
    *e = NULL;
}

/* Calls behind the last one that does not work on wanted rows are skipped
 * when nothing is wanted. */
static size_t n_calls_for(const ox_plan *p, const ox_step *step)
{
    size_t n = p->calls.n;
    if (step->n_wanted) return n;
    while (n && p->calls.p[n - 1].wanted)
        n--;
    return n;
}

static const float *logits_at(const ox_exec *e, const ox_step *step)
{
    const ox_plan *p = e->plan;
    const size_t at = p->offsets[ox_class_of_rows(step->rows)][p->logits.buffer.i];
    return (const float *)(void *)(e->arena + at) + p->logits.first;
}

void ox_exec_step(ox_exec *e, const ox_step *step, const ox_kv_pool *kv)
{
    const ox_plan *p = e->plan;
    p->backend->ops->run(p->backend, p->calls.p, n_calls_for(p, step), p->buffers.p,
                         p->offsets[ox_class_of_rows(step->rows)], e->arena, step, kv);
}

const float *ox_exec_run(ox_exec *e, const ox_step *step, const ox_kv_pool *kv)
{
    const ox_plan *p = e->plan;
    ox_exec_step(e, step, kv);
    const float *logits = logits_at(e, step);
    if (!p->backend->ops->fetch) return logits;
    return p->backend->ops->fetch(p->backend, logits, (size_t)step->n_wanted * (size_t)p->vocab);
}

bool ox_exec_keeps(const ox_exec *e)
{
    return e->memory && e->plan->backend->ops->fetch;
}

ox_status ox_exec_keep(ox_exec *e, const ox_step *step, int32_t i, void **slot, ox_err *err)
{
    const size_t vocab = (size_t)e->plan->vocab, bytes = vocab * sizeof(float);
    if (!*slot) *slot = e->memory->take(e->memory->user, bytes);
    if (!*slot) return OX_FAIL(err, OX_NO_MEMORY, "no device memory for logits");
    e->memory->copy(e->memory->user, *slot, logits_at(e, step) + (size_t)i * vocab, bytes);
    return OX_OK;
}

const float *ox_exec_kept(ox_exec *e, const void *slot)
{
    return e->plan->backend->ops->fetch(e->plan->backend, slot, (size_t)e->plan->vocab);
}

void ox_exec_drop(ox_exec *e, void **slot)
{
    if (*slot) e->memory->give(e->memory->user, *slot, (size_t)e->plan->vocab * sizeof(float));
    *slot = NULL;
}

ox_status ox_exec_decode(ox_exec *e, const ox_decode_request *request, const ox_kv_pool *kv,
                         ox_decode_token_fn *token, void *user, int64_t *n_done, ox_err *err)
{
    const ox_plan *p = e->plan;
    const ox_decode_plan plan = {.calls = p->calls.p,
                                 .n_calls = p->calls.n,
                                 .buffers = p->buffers.p,
                                 .n_buffers = p->buffers.n,
                                 .offsets = p->offsets[OX_CLASS_ONE],
                                 .arena = e->arena,
                                 .logits = p->logits,
                                 .vocab = p->vocab};
    *n_done = 0;
    if (!p->backend->ops->decode) return OX_OK; /* one step a token */
    return p->backend->ops->decode(p->backend, &plan, request, kv, token, user, n_done, err);
}

size_t ox_exec_arena_bytes(const ox_exec *e)
{
    return e->arena_bytes;
}
