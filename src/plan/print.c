/* print.c - a plan as text: one line a call. */
#include "plan/plan.h"

static const char *const kind_names[OX_CALL_COUNT] = {
#define OX_CALL(suffix, name) name,
#include "backend/calls.def"
#undef OX_CALL
};

static void print_operand(const ox_plan *p, const char *label, ox_operand o, ox_buf *out)
{
    if (o.buffer.i < 0) return;
    const ox_buffer *b = &p->buffers.p[o.buffer.i];
    ox_buf_printf(out, " %s=b%d", label, o.buffer.i);
    if (o.first || o.width != b->width) ox_buf_printf(out, "[%d:%d]", o.first, o.first + o.width);
    ox_buf_printf(out, "@%zu", p->offsets[OX_CLASS_ONE][o.buffer.i]);
    if (b->quant_block) ox_buf_printf(out, "(int%d/%d)", 8 * b->quant_planes, b->quant_block);
}

static void print_weights(const ox_call *c, ox_buf *out)
{
    for (int32_t i = 0; i < c->n_weights; i++) {
        const ox_weight *w = c->weights[i];
        ox_buf_printf(out, " %.*s[%lld,%lld %s]", OX_STR_ARGS(w->name), (long long)w->rows,
                      (long long)w->cols, ox_format_name(w->format));
    }
}

void ox_plan_print(const ox_plan *p, ox_buf *out)
{
    ox_buf_printf(out, "backend %s, %zu calls, %zu buffers\n", p->backend->ops->name, p->calls.n,
                  p->buffers.n);
    for (int k = 0; k < OX_CLASS_COUNT; k++)
        ox_buf_printf(out, "class %d: up to %d rows, arena %zu bytes\n", k, p->max_rows[k],
                      p->arena_bytes[k]);
    ox_buf_put_z(out,
                 "number, barrier before it (| always, : with more than one row), call, phase, "
                 "kernel rows by class, operands buffer[columns]@offset, weights, node\n");
    for (size_t i = 0; i < p->calls.n; i++) {
        const ox_call *c = &p->calls.p[i];
        ox_buf_printf(out, "%4zu %c %-12s %-16s", i,
                      c->barrier_one ? '|'
                      : c->barrier   ? ':'
                                     : ' ',
                      kind_names[c->kind], c->phase);
        for (int k = 0; k < OX_CLASS_COUNT; k++)
            if (c->rows[k] && (!k || c->rows[k] != c->rows[k - 1]))
                ox_buf_printf(out, " %s", c->rows[k]);
        print_operand(p, "x", c->in[0], out);
        print_operand(p, "y", c->in[1], out);
        print_operand(p, "z", c->in[2], out);
        print_operand(p, "add", c->add, out);
        print_operand(p, "out", c->out, out);
        print_weights(c, out);
        ox_buf_printf(out, "  %s\n", c->name);
    }
}
