/* row_calls.c - calls that treat every row alone: the team splits the rows. */
#include "backend/cpu/cpu.h"
#include "kernel/act/act.h"
#include "kernel/add/add.h"
#include "kernel/embed/embed.h"
#include "kernel/glu/glu.h"
#include "kernel/norm/norm.h"
#include "kernel/quantize/quantize.h"
#include "kernel/rotate/rotate.h"
#include "kernel/scale/scale.h"

#include <string.h>

/* This worker's rows of the call; false when there are none. */
static bool my_rows(const ox_cpu_run *r, const ox_call *c, int i, int n, size_t *begin, size_t *end)
{
    ox_team_split(ox_cpu_rows(r, c), 1, i, n, begin, end);
    return *begin < *end;
}

static ox_status pick_any(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                          const ox_kernel_row *rows, const void *args, ox_err *err)
{
    const void *const all[OX_CLASS_COUNT] = {args, args, args};
    return ox_cpu_pick(b, c, bound, rows, all, err);
}

ox_status ox_cpu_bind_embed(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                            const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_embed_args a = {.table = c->term->weight};
    return pick_any(b, c, bound, ox_embed_rows, &a, err);
}

void ox_cpu_run_embed(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                      int n)
{
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    ox_embed_args a = {.table = c->term->weight,
                       .ids = r->step->ids,
                       .scale = c->term->scale,
                       .rows = (size_t)r->step->rows};
    a.y = ox_cpu_floats(r, c->out, &a.ldy);
    ((ox_embed_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_norm(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                           const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_term *t = c->term;
    const int64_t dim = t->group ? t->group : c->in[0].width;
    OX_TRY(ox_cpu_vector(b, bound, 0, &t->weight, &dim, 1, err));
    if (t->bias) OX_TRY(ox_cpu_vector(b, bound, 1, &t->bias, &dim, 1, err));
    const ox_norm_args a = {.dim = (size_t)dim, .centre = t->centre};
    return pick_any(b, c, bound, ox_norm_rows, &a, err);
}

void ox_cpu_run_norm(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i, int n)
{
    const ox_term *t = c->term;
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    const size_t dim = t->group ? (size_t)t->group : (size_t)c->in[0].width;
    const size_t groups = (size_t)c->in[0].width / dim;
    ox_norm_args a = {.gamma = bound->vectors[0],
                      .beta = bound->vectors[1],
                      .eps = t->epsilon,
                      .centre = t->centre,
                      .dim = dim};
    const float *x = ox_cpu_floats(r, c->in[0], &a.ldx);
    float *y = ox_cpu_floats(r, c->out, &a.ldy);
    if (groups == 1) {
        a.x = x;
        a.y = y;
        a.rows = ox_cpu_rows(r, c);
        ((ox_norm_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
        return;
    }
    const size_t ldx = a.ldx, ldy = a.ldy;
    a.rows = groups;
    a.ldx = a.ldy = dim;
    for (size_t row = begin; row < end; row++) {
        a.x = x + row * ldx;
        a.y = y + row * ldy;
        ((ox_norm_fn *)ox_cpu_fn(r, c, bound))(&a, 0, groups);
    }
}

ox_status ox_cpu_bind_quantize(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                               const ox_buffer *buffers, ox_err *err)
{
    const ox_buffer *out = &buffers[c->out.buffer.i];
    const ox_qact q =
        ox_qact_shape(1, (size_t)out->width, out->quant_block, out->quant_bits, out->quant_planes);
    const ox_quantize_args a = {.y = &q};
    return pick_any(b, c, bound, ox_quantize_rows, &a, err);
}

void ox_cpu_run_quantize(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                         int n)
{
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    const ox_buffer *out = &r->buffers[c->out.buffer.i];
    ox_qact q = ox_qact_shape(ox_cpu_rows(r, c), (size_t)out->width, out->quant_block,
                              out->quant_bits, out->quant_planes);
    q.data = (uint8_t *)ox_cpu_data(r, c->out.buffer);
    ox_quantize_args a = {.y = &q};
    a.x = ox_cpu_floats(r, c->in[0], &a.ldx);
    ((ox_quantize_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_rotate(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                             const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_term *t = c->term;
    const ox_rotate_args a = {.n_heads = (size_t)t->n_heads,
                              .head_size = (size_t)t->head_size,
                              .rotary = (size_t)t->rotary->rotary,
                              .interleaved = t->rotary->interleaved};
    return pick_any(b, c, bound, ox_rotate_rows, &a, err);
}

void ox_cpu_run_rotate(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                       int n)
{
    const ox_term *t = c->term;
    const ox_rotary *rule = t->rotary;
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    const bool is_long = rule->long_cos && r->step->total > rule->switch_length;
    ox_rotate_args a = {.rows = (size_t)r->step->rows,
                        .n_heads = (size_t)t->n_heads,
                        .head_size = (size_t)t->head_size,
                        .rotary = (size_t)rule->rotary,
                        .interleaved = rule->interleaved,
                        .cos_table = is_long ? rule->long_cos : rule->cos_table,
                        .sin_table = is_long ? rule->long_sin : rule->sin_table,
                        .pos = r->step->pos};
    a.x = ox_cpu_floats(r, c->in[0], &a.ldx);
    ((ox_rotate_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_glu(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                          const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_glu_args a = {.act = c->term->act, .dim = (size_t)c->out.width};
    return pick_any(b, c, bound, ox_glu_rows, &a, err);
}

void ox_cpu_run_glu(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i, int n)
{
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    ox_glu_args a = {.act = c->term->act, .dim = (size_t)c->out.width, .rows = ox_cpu_rows(r, c)};
    a.gate = ox_cpu_floats(r, c->in[0], &a.ld_gate);
    a.up = ox_cpu_floats(r, c->in[1], &a.ld_up);
    a.y = ox_cpu_floats(r, c->out, &a.ldy);
    ((ox_glu_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_act(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                          const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_act_args a = {.act = c->term->act, .dim = (size_t)c->out.width};
    return pick_any(b, c, bound, ox_act_rows, &a, err);
}

void ox_cpu_run_act(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i, int n)
{
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    ox_act_args a = {.act = c->term->act, .dim = (size_t)c->out.width, .rows = ox_cpu_rows(r, c)};
    a.x = ox_cpu_floats(r, c->in[0], &a.ldx);
    a.y = ox_cpu_floats(r, c->out, &a.ldy);
    ((ox_act_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_add(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                          const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_add_args a = {.dim = (size_t)c->out.width};
    return pick_any(b, c, bound, ox_add_rows, &a, err);
}

void ox_cpu_run_add(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i, int n)
{
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    ox_add_args a = {.dim = (size_t)c->out.width, .rows = ox_cpu_rows(r, c)};
    a.a = ox_cpu_floats(r, c->in[0], &a.lda);
    a.b = ox_cpu_floats(r, c->in[1], &a.ldb);
    a.y = ox_cpu_floats(r, c->out, &a.ldy);
    ((ox_add_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_scale(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                            const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_scale_args a = {.dim = (size_t)c->out.width};
    return pick_any(b, c, bound, ox_scale_rows, &a, err);
}

void ox_cpu_run_scale(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                      int n)
{
    size_t begin, end;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    ox_scale_args a = {.dim = (size_t)c->out.width,
                       .rows = ox_cpu_rows(r, c),
                       .scale = c->term->scale,
                       .softcap = c->term->softcap};
    a.x = ox_cpu_floats(r, c->in[0], &a.ldx);
    a.y = ox_cpu_floats(r, c->out, &a.ldy);
    ((ox_scale_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_gather(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                             const ox_buffer *buffers, ox_err *err)
{
    (void)b, (void)bound, (void)buffers, (void)err;
    c->rows[0] = c->rows[1] = c->rows[2] = "copy";
    return OX_OK;
}

void ox_cpu_run_gather(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                       int n)
{
    size_t begin, end, ldx, ldy;
    (void)bound;
    if (!my_rows(r, c, i, n, &begin, &end)) return;
    const float *x = ox_cpu_floats(r, c->in[0], &ldx);
    float *y = ox_cpu_floats(r, c->out, &ldy);
    for (size_t row = begin; row < end; row++)
        memcpy(y + row * ldy, x + (size_t)r->step->wanted[row] * ldx,
               (size_t)c->out.width * sizeof(float));
}
