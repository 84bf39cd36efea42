/* attend_calls.c - the key/value cache: append by rows, attend by units of (rows, kv head). */
#include "backend/cpu/cpu.h"
#include "kernel/attend/attend.h"
#include "kernel/kv_append/kv_append.h"

static ox_kv_view view_of(const ox_cpu_run *r, const ox_call *c)
{
    const ox_kv_place *p = &ox_kv_pool_places(r->kv)[c->term->cache.i];
    return (ox_kv_view){.tables = r->step->tables,
                        .seq = r->step->seq,
                        .pos = r->step->pos,
                        .dtype = ox_kv_pool_dtype(r->kv),
                        .k_offset = p->k_offset,
                        .v_offset = p->v_offset,
                        .n_kv_heads = p->n_kv_heads,
                        .head_size = p->head_size,
                        .v_head_size = p->v_head_size};
}

/* What rows of these families may look at when picked; the cache's type is the session's. */
static ox_kv_view shape_of(const ox_call *c)
{
    return (ox_kv_view){.n_kv_heads = c->term->n_kv_heads,
                        .head_size = c->term->head_size,
                        .v_head_size = c->term->v_head_size,
                        .dtype = OX_DTYPE_F16};
}

ox_status ox_cpu_bind_append(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                             const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_kv_append_args a = {.view = shape_of(c)};
    const void *const all[OX_CLASS_COUNT] = {&a, &a, &a};
    return ox_cpu_pick(b, c, bound, ox_kv_append_rows, all, err);
}

void ox_cpu_run_append(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                       int n)
{
    size_t begin, end;
    ox_kv_append_args a = {.rows = (size_t)r->step->rows, .view = view_of(r, c)};
    ox_team_split(a.rows, 1, i, n, &begin, &end);
    a.k = ox_cpu_floats(r, c->in[1], &a.ldk);
    a.v = ox_cpu_floats(r, c->in[2], &a.ldv);
    if (begin < end) ((ox_kv_append_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_attend(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                             const ox_buffer *buffers, ox_err *err)
{
    static const size_t rows[OX_CLASS_COUNT] = {1, OX_FEW_ROWS, OX_MANY_ROWS};
    const ox_term *t = c->term;
    ox_attend_args a[OX_CLASS_COUNT];
    const void *args[OX_CLASS_COUNT];
    (void)buffers;
    const int64_t n_heads = t->n_heads;
    if (t->sinks) OX_TRY(ox_cpu_vector(b, bound, 0, &t->sinks, &n_heads, 1, err));
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        a[k] = (ox_attend_args){.rows = rows[k], .n_heads = t->n_heads, .view = shape_of(c)};
        args[k] = &a[k];
    }
    return ox_cpu_pick(b, c, bound, ox_attend_rows, args, err);
}

void ox_cpu_run_attend(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                       int n)
{
    const ox_term *t = c->term;
    size_t begin, end;
    ox_attend_args a = {.rows = (size_t)r->step->rows,
                        .n_heads = t->n_heads,
                        .scale = t->scale,
                        .softcap = t->softcap,
                        .window = t->window,
                        .sinks = bound->vectors[0],
                        .view = view_of(r, c)};
    a.q = ox_cpu_floats(r, c->in[0], &a.ldq);
    a.out = ox_cpu_floats(r, c->out, &a.ldo);
    ox_team_split(ox_attend_units(&a), 1, i, n, &begin, &end);
    if (begin < end) ((ox_attend_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}
