/* linear_calls.c - matrix products: the team splits the output columns, never the sum. */
#include "backend/cpu/cpu.h"
#include "kernel/qexact/qexact.h"

/* Biases of the concatenated weights as one vector, when any weight has one. */
static ox_status bind_bias(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound, ox_err *err)
{
    int64_t lengths[OX_CALL_WEIGHTS];
    bool any = false;
    for (int32_t i = 0; i < c->n_weights; i++) {
        lengths[i] = c->weights[i]->rows;
        any |= c->biases[i] != NULL;
    }
    return any ? ox_cpu_vector(b, bound, 0, c->biases, lengths, c->n_weights, err) : OX_OK;
}

ox_status ox_cpu_bind_quant_linear(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                                   const ox_buffer *buffers, ox_err *err)
{
    static const size_t rows[OX_CLASS_COUNT] = {1, OX_FEW_ROWS, OX_MANY_ROWS};
    ox_qlinear_args a[OX_CLASS_COUNT];
    const void *args[OX_CLASS_COUNT];
    (void)buffers;
    OX_TRY(ox_qpack_shape(&bound->qpack, c->weights, (size_t)c->n_weights, c->pairs, err));
    OX_TRY(bind_bias(b, c, bound, err));
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        a[k] = (ox_qlinear_args){.w = &bound->qpack, .rows = rows[k]};
        args[k] = &a[k];
    }
    return ox_cpu_pick(b, c, bound,
                       c->kind == OX_CALL_LINEAR_INT ? ox_qlinear_rows : ox_qexact_rows, args, err);
}

static ox_qlinear_args quant_args(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound)
{
    ox_qlinear_args a = {.w = &bound->qpack, .rows = ox_cpu_rows(r, c), .bias = bound->vectors[0]};
    a.y = ox_cpu_floats(r, c->out, &a.ldy);
    if (c->add.buffer.i >= 0) a.add = ox_cpu_floats(r, c->add, &a.ldadd);
    if (c->pairs) a.act = (ox_qlinear_act)(OX_QLINEAR_SILU + (int)c->term->act);
    return a;
}

void ox_cpu_run_linear_int(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound, int i,
                           int n)
{
    size_t begin, end;
    ox_qlinear_args a = quant_args(r, c, bound);
    ox_team_split(bound->qpack.units, 1, i, n, &begin, &end);
    const ox_buffer *in = &r->buffers[c->in[0].buffer.i];
    ox_qact q =
        ox_qact_shape(a.rows, (size_t)in->width, in->quant_block, in->quant_bits, in->quant_planes);
    q.data = (uint8_t *)ox_cpu_data(r, c->in[0].buffer);
    a.x = &q;
    if (begin < end) ((ox_qlinear_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

void ox_cpu_run_linear_exact(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound,
                             int i, int n)
{
    size_t begin, end;
    ox_qlinear_args a = quant_args(r, c, bound);
    ox_team_split(bound->qpack.units, 1, i, n, &begin, &end);
    a.xf = ox_cpu_floats(r, c->in[0], &a.ldx);
    if (begin < end) ((ox_qexact_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}

ox_status ox_cpu_bind_float_linear(ox_cpu_backend *b, ox_call *c, ox_cpu_bound *bound,
                                   const ox_buffer *buffers, ox_err *err)
{
    static const size_t rows[OX_CLASS_COUNT] = {1, OX_FEW_ROWS, OX_MANY_ROWS};
    ox_matmul_args a[OX_CLASS_COUNT];
    const void *args[OX_CLASS_COUNT];
    (void)buffers;
    OX_TRY(
        ox_fpack_plan(&bound->fpack, c->weights, (size_t)c->n_weights, &bound->fpack_bytes, err));
    OX_TRY(bind_bias(b, c, bound, err));
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        a[k] = (ox_matmul_args){.w = &bound->fpack, .rows = rows[k]};
        args[k] = &a[k];
    }
    return ox_cpu_pick(b, c, bound, ox_matmul_rows, args, err);
}

void ox_cpu_run_float_linear(const ox_cpu_run *r, const ox_call *c, const ox_cpu_bound *bound,
                             int i, int n)
{
    size_t begin, end;
    ox_matmul_args a = {.w = &bound->fpack, .rows = ox_cpu_rows(r, c), .bias = bound->vectors[0]};
    a.x = ox_cpu_floats(r, c->in[0], &a.ldx);
    a.y = ox_cpu_floats(r, c->out, &a.ldy);
    if (c->add.buffer.i >= 0) a.add = ox_cpu_floats(r, c->add, &a.ld_add);
    ox_team_split(ox_fpack_tiles(&bound->fpack), 1, i, n, &begin, &end);
    if (begin < end) ((ox_matmul_fn *)ox_cpu_fn(r, c, bound))(&a, begin, end);
}
