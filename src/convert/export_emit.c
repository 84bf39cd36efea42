/* export_emit.c - the small steps of writing a graph: names, nodes with one result, constants by
 * value, and tensors that live in the data file. */
#include "convert/export_internal.h"

#include "tensor/half.h"

ox_str ox_emit_name(ox_emitter *e, const char *fmt, ...)
{
    ox_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    ox_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    const size_t n = b.n;
    char *p = b.failed ? NULL : ox_arena_copy(&e->arena, b.p ? b.p : "", n);
    ox_buf_deinit(&b);
    if (p) return (ox_str){p, n};
    e->failed = true;
    return OX_STR("");
}

ox_str ox_emit_parent(ox_str path)
{
    size_t n = path.n;
    while (n && path.p[n - 1] != '/')
        n--;
    return (ox_str){path.p, n ? n - 1 : path.n};
}

ox_str ox_emit_dotted(ox_emitter *e, ox_str path)
{
    ox_str s = ox_emit_name(e, "%.*s", OX_STR_ARGS(path));
    if (!s.n) return s;
    char *p = ox_arena_copy(&e->arena, s.p, s.n);
    if (!p) {
        e->failed = true;
        return OX_STR("");
    }
    for (size_t i = 0; i < s.n; i++)
        if (p[i] == '/') p[i] = '.';
    return p[0] == '.' ? (ox_str){p + 1, s.n - 1} : (ox_str){p, s.n};
}

void ox_emit_begin(ox_emitter *e, const char *op, bool microsoft, ox_str name, const ox_str *in,
                   size_t n_in)
{
    ox_onnx_begin_node(&e->w, ox_str_of(op), microsoft ? OX_STR("com.microsoft") : OX_STR(""),
                       name);
    for (size_t i = 0; i < n_in; i++)
        ox_onnx_put_operand(&e->w, in[i]);
}

ox_str ox_emit_end(ox_emitter *e, ox_str result)
{
    ox_onnx_put_result(&e->w, result);
    ox_onnx_end_node(&e->w);
    return result;
}

ox_str ox_emit(ox_emitter *e, const char *op, ox_str name, const ox_str *in, size_t n_in)
{
    ox_emit_begin(e, op, false, name, in, n_in);
    return ox_emit_end(e, ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
}

/* True the first time a name comes. */
static bool is_new(ox_emitter *e, ox_map *m, ox_str name)
{
    uint64_t had;
    if (ox_map_get(m, name, &had)) return false;
    if (!ox_map_put(m, name, 1)) e->failed = true;
    return true;
}

static ox_str put_constant(ox_emitter *e, ox_str value, const ox_tensor *t)
{
    const ox_str name = ox_emit_name(e, "/model/constants/%.*s", OX_STR_ARGS(value));
    if (!is_new(e, &e->constants, name)) return name;
    const ox_str node = ox_emit_name(e, "/model/constant_nodes/%.*s", OX_STR_ARGS(value));
    ox_emit_begin(e, "Constant", false, node, NULL, 0);
    ox_onnx_attr_tensor(&e->w, "value", t);
    return ox_emit_end(e, name);
}

ox_str ox_emit_i64(ox_emitter *e, int64_t v)
{
    const ox_tensor t = {.dtype = OX_DTYPE_I64, .data = &v};
    return put_constant(e, ox_emit_name(e, "INT64/%lld", (long long)v), &t);
}

ox_str ox_emit_i64s(ox_emitter *e, const int64_t *v, size_t n)
{
    int64_t copy[4];
    ox_buf b = {0};
    ox_buf_put_z(&b, "INT64/[");
    for (size_t i = 0; i < n; i++) {
        copy[i] = v[i];
        ox_buf_printf(&b, "%s%lld", i ? ", " : "", (long long)v[i]);
    }
    ox_buf_put_c(&b, ']');
    const ox_tensor t = {.dtype = OX_DTYPE_I64, .rank = 1, .dims = {(int64_t)n}, .data = copy};
    const ox_str name = ox_emit_name(e, "%s", b.p ? b.p : "");
    e->failed = e->failed || b.failed;
    ox_buf_deinit(&b);
    return put_constant(e, name, &t);
}

ox_str ox_emit_float(ox_emitter *e, double v)
{
    static const char *const words[] = {
        [OX_DTYPE_F32] = "FLOAT", [OX_DTYPE_F16] = "FLOAT16", [OX_DTYPE_BF16] = "BFLOAT16"};
    float f = (float)v;
    uint16_t half = e->o->io == OX_DTYPE_F16 ? ox_f32_to_f16(f) : ox_f32_to_bf16(f);
    const bool wide = e->o->io == OX_DTYPE_F32;
    const ox_tensor t = {.dtype = e->o->io, .data = wide ? (void *)&f : (void *)&half};
    return put_constant(e, ox_emit_name(e, "%s/%.9g", words[e->o->io], v), &t);
}

/* Places the job's arrays and remembers it. */
void ox_emit_job(ox_emitter *e, const ox_job *job)
{
    if (!ox_vec_push(&e->jobs, *job)) e->failed = true;
}

void ox_emit_external(ox_emitter *e, ox_str name, ox_dtype dtype, int32_t rank, const int64_t *dims,
                      uint64_t at)
{
    size_t n, bytes;
    if (!ox_dims_count(dims, rank, &n) || !ox_dtype_bytes(dtype, n, &bytes)) {
        e->failed = true;
        return;
    }
    ox_onnx_put_external(&e->w, name, dtype, rank, dims, OX_STR(OX_EXPORT_DATA), at, bytes);
}

ox_str ox_emit_vector(ox_emitter *e, ox_str name, ox_job *job)
{
    if (!is_new(e, &e->tensors, name)) return name;
    job->kind = OX_JOB_VECTOR;
    job->dtype = e->o->io;
    if (!ox_job_place(job, &e->end)) e->failed = true;
    const int64_t n = ox_job_rows(job);
    ox_emit_external(e, name, job->dtype, 1, &n, job->at);
    ox_emit_job(e, job);
    return name;
}

ox_str ox_emit_floats(ox_emitter *e, ox_str name, const float *data, int64_t rows, int64_t cols)
{
    const int64_t dims[2] = {rows, cols};
    ox_job job = {.kind = OX_JOB_FLOATS, .dtype = e->o->io, .floats = data};
    if (!is_new(e, &e->tensors, name)) return name;
    if (!ox_dims_count(dims, 2, &job.n_floats) || !ox_job_place(&job, &e->end)) e->failed = true;
    ox_emit_external(e, name, job.dtype, 2, dims, job.at);
    ox_emit_job(e, &job);
    return name;
}

ox_str ox_emit_as(ox_emitter *e, const char *op, ox_str name, const ox_str in[2], ox_str result)
{
    ox_emit_begin(e, op, false, name, in, 2);
    return ox_emit_end(e, result.n ? result : ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
}

const ox_node *ox_emit_producer(const ox_emitter *e, ox_value_id v)
{
    const ox_node_id n = ox_graph_value(e->g, v)->producer;
    return n.i >= 0 ? ox_graph_node(e->g, n) : NULL;
}
