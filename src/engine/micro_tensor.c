/* micro_tensor.c - the tensor rows of the public table: matmul of two run-time operands, gather,
 * add and reduce_mean. Half types run as the engine runs them: widened, computed in float32,
 * rounded. */
#include "engine/micro.h"

#include "base/mem.h"
#include "ops/op.h"

static ox_status convert(ox_micro_case *c, ox_dtype from, const void *src, ox_dtype to, void *dst,
                         size_t n, ox_err *err)
{
    const micro_args a = {.convert_half = {.src = src, .dst = dst, .from = from, .to = to, .n = n}};
    return MICRO_LAUNCH(c, convert_half, &a, n, 64, err);
}

/* a operand of type kind as float32: itself, or the target of a conversion that runs first. */
static ox_status widened(ox_micro_case *c, ox_dtype t, size_t n, float **out, ox_err *err)
{
    void *src = ox_micro_values(c, t, n, err);
    if (!src) return OX_NO_MEMORY;
    *out = src;
    if (t == OX_DTYPE_F32) return OX_OK;
    *out = ox_micro_floats(c, n, err);
    if (!*out) return OX_NO_MEMORY;
    return convert(c, t, src, OX_DTYPE_F32, *out, n, err);
}

static ox_status narrowed(ox_micro_case *c, ox_dtype t, const float *y, size_t n, ox_err *err)
{
    if (t == OX_DTYPE_F32) return OX_OK;
    void *dst = ox_micro_bytes(c, n * 2, err);
    return dst ? convert(c, OX_DTYPE_F32, y, t, dst, n, err) : OX_NO_MEMORY;
}

static size_t size_of(ox_dtype t)
{
    return t == OX_DTYPE_F32 ? 4 : 2;
}

/* [a, b] x [b, c] of type kind */
ox_status ox_micro_matmul(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_dtype t = (ox_dtype)row->kind;
    const size_t m = (size_t)row->a, k = (size_t)row->b, n = (size_t)row->c;
    float *a, *b;
    OX_TRY(widened(c, t, m * k, &a, err));
    OX_TRY(widened(c, t, k * n, &b, err));
    float *y = ox_micro_floats(c, m * n, err);
    if (!y) return OX_NO_MEMORY;
    const micro_args args = {.gemm = {.a = a,
                                      .b = b,
                                      .c = y,
                                      .m = m,
                                      .n = n,
                                      .k = k,
                                      .lda = k,
                                      .ldb = n,
                                      .ldc = n,
                                      .batch = 1}};
    OX_TRY(MICRO_LAUNCH(c, gemm, &args, ox_gemm_units(&args.gemm), 1, err));
    OX_TRY(narrowed(c, t, y, m * n, err));
    const double flop = 2.0 * (double)m * (double)n * (double)k;
    c->cost.unit = "flop";
    c->cost.work = c->cost.float_ops = flop;
    c->cost.bytes = (double)((m * k + k * n + m * n) * size_of(t));
    return OX_OK;
}

/* c rows (i*97 mod a) of a table [a, b] of type kind */
ox_status ox_micro_gather(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_dtype t = (ox_dtype)row->kind;
    const size_t n_rows = (size_t)row->a, dim = (size_t)row->b, n = (size_t)row->c;
    void *data = ox_micro_values(c, t, n_rows * dim, err);
    ox_weight *table = ox_micro_bytes(c, sizeof(*table), err);
    int32_t *ids = ox_micro_bytes(c, n * sizeof(*ids), err);
    float *y = ox_micro_floats(c, n * dim, err);
    if (!data || !table || !ids || !y) return OX_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(i * 97 % n_rows);
    *table = (ox_weight){.name = OX_STR("table"),
                         .format = t == OX_DTYPE_F32   ? OX_FORMAT_F32
                                   : t == OX_DTYPE_F16 ? OX_FORMAT_F16
                                                       : OX_FORMAT_BF16,
                         .rows = row->a,
                         .cols = row->b,
                         .data = data,
                         .bytes = n_rows * dim * size_of(t)};
    const micro_args args = {
        .embed = {.table = table, .ids = ids, .y = y, .rows = n, .ldy = dim, .scale = 1.0f}};
    c->cost.unit = "byte";
    c->cost.work = c->cost.bytes = (double)(n * dim * (size_of(t) + 4));
    return MICRO_LAUNCH(c, embed, &args, n, 1, err);
}

/* [a, b] + [b] of type kind */
ox_status ox_micro_add(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_dtype t = (ox_dtype)row->kind;
    const size_t rows = (size_t)row->a, dim = (size_t)row->b;
    float *a, *b;
    OX_TRY(widened(c, t, rows * dim, &a, err));
    OX_TRY(widened(c, t, dim, &b, err));
    float *y = ox_micro_floats(c, rows * dim, err);
    if (!y) return OX_NO_MEMORY;
    const micro_args args = {
        .add = {.a = a, .b = b, .y = y, .rows = rows, .dim = dim, .lda = dim, .ldy = dim}};
    OX_TRY(MICRO_LAUNCH(c, add, &args, rows, 1, err));
    c->cost.unit = "byte";
    c->cost.work = c->cost.bytes = (double)((2 * rows + 1) * dim * size_of(t));
    return narrowed(c, t, y, rows * dim, err);
}

/* ---- a reference operator ---- */

typedef struct mean_case {
    ox_rt_memory mem;
    ox_rt_value *x, *axes, *y;
    ox_node node;
    ox_value_id ids[3];
    const ox_op *op;
} mean_case;

static void mean_close(void *state)
{
    mean_case *s = state;
    ox_rt_unref(&s->x);
    ox_rt_unref(&s->axes);
    ox_rt_memory_close(&s->mem);
    ox_free(s);
}

static ox_status mean_run(ox_micro_case *c, ox_err *err)
{
    mean_case *s = c->state;
    ox_rt_value *in[2] = {s->x, s->axes};
    ox_op_ctx ctx = {.node = &s->node,
                     .n_in = 2,
                     .n_out = 1,
                     .in = in,
                     .out = &s->y,
                     .mem = &s->mem,
                     .err = err};
    s->y = NULL;
    OX_TRY(ox_op_eval(s->op, &ctx));
    ox_rt_unref(&s->y);
    return OX_OK;
}

/* [a, b] over axis 1, dimensions kept */
ox_status ox_micro_reduce_mean(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t n = (size_t)row->a * (size_t)row->b;
    mean_case *s = c->state = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    c->close = mean_close;
    c->run = mean_run;
    const float *values = ox_micro_floats(c, n, err);
    s->x = ox_rt_tensor_new(&s->mem, OX_DTYPE_F32, 2, (const int64_t[]){row->a, row->b});
    s->axes = ox_rt_tensor_new(&s->mem, OX_DTYPE_I64, 1, (const int64_t[]){1});
    if (!values || !s->x || !s->axes)
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    memcpy(s->x->t.data, values, n * sizeof(float));
    *(int64_t *)s->axes->t.data = 1;
    s->node = (ox_node){.name = OX_STR("mean"),
                        .op_type = OX_STR("ReduceMean"),
                        .version = 18,
                        .n_inputs = 2,
                        .n_outputs = 1,
                        .inputs = s->ids,
                        .outputs = s->ids + 2};
    s->ids[1].i = 1;
    s->ids[2].i = 2;
    s->op = ox_op_find(OX_STR(""), s->node.op_type, s->node.version);
    if (!s->op) return OX_FAIL(err, OX_FAILED, "there is no ReduceMean");
    c->cost.unit = "byte";
    c->cost.work = c->cost.bytes = (double)((n + (size_t)row->a) * 4);
    return mean_run(c, err);
}
