/* export_graph.c - terms to operators, in the names and patterns that ORT-GenAI's own model builder
 * uses, so that everything that reads its graphs reads these. Attention is export_attend.c. */
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
    static const char *const words[] = {[OX_DTYPE_F32] = "FLOAT",
                                        [OX_DTYPE_F16] = "FLOAT16",
                                        [OX_DTYPE_BF16] = "BFLOAT16"};
    float f = (float)v;
    uint16_t half = e->o->io == OX_DTYPE_F16 ? ox_f32_to_f16(f) : ox_f32_to_bf16(f);
    const bool wide = e->o->io == OX_DTYPE_F32;
    const ox_tensor t = {.dtype = e->o->io, .data = wide ? (void *)&f : (void *)&half};
    return put_constant(e, ox_emit_name(e, "%s/%.9g", words[e->o->io], v), &t);
}

/* Places the job's arrays and remembers it. */
static void put_job(ox_emitter *e, const ox_job *job)
{
    if (!ox_vec_push(&e->jobs, *job)) e->failed = true;
}

static void put_external(ox_emitter *e, ox_str name, ox_dtype dtype, int32_t rank,
                         const int64_t *dims, uint64_t at)
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
    put_external(e, name, job->dtype, 1, &n, job->at);
    put_job(e, job);
    return name;
}

ox_str ox_emit_floats(ox_emitter *e, ox_str name, const float *data, int64_t rows, int64_t cols)
{
    const int64_t dims[2] = {rows, cols};
    ox_job job = {.kind = OX_JOB_FLOATS, .dtype = e->o->io, .floats = data};
    if (!is_new(e, &e->tensors, name)) return name;
    if (!ox_dims_count(dims, 2, &job.n_floats) || !ox_job_place(&job, &e->end)) e->failed = true;
    put_external(e, name, job.dtype, 2, dims, job.at);
    put_job(e, &job);
    return name;
}

static void report_matrix(ox_emitter *e, ox_str name, const ox_job *job)
{
    ox_buf_printf(e->report, "%.*s [%lld, %lld]: ", OX_STR_ARGS(name),
                  (long long)ox_job_rows(job), (long long)ox_job_cols(job));
    for (int32_t i = 0; i < job->n_parts; i++)
        if (!i || job->parts[i]->format != job->parts[0]->format)
            ox_buf_printf(e->report, "%s%s", i ? "+" : "", ox_format_name(job->parts[i]->format));
    ox_buf_put_z(e->report, " -> ");
    ox_form_print(&job->form, e->report);
    ox_buf_put_c(e->report, '\n');
    e->n_matrices++;
    e->n_exact += job->form.exact;
}

/* Codes, scales and zero points as tensors "base.qweight", ".scales", ".qzeros". */
static void put_nbits(ox_emitter *e, ox_str base, const ox_job *j, bool flat, ox_str out[3])
{
    const ox_nbits_sizes s = ox_nbits_row_sizes(ox_job_cols(j), j->form.bits, j->form.block);
    const int64_t n = ox_job_rows(j), blocks = (int64_t)s.blocks;
    const bool packed = j->form.zeros == OX_ZEROS_PACKED;
    const int64_t codes3[3] = {n, blocks, (int64_t)j->form.block * j->form.bits / 8};
    const int64_t codes2[2] = {n, (int64_t)s.code_bytes}, scales[2] = {n, blocks};
    const int64_t zeros[2] = {n, packed ? (int64_t)s.zero_bytes : blocks};
    out[0] = ox_emit_name(e, "%.*s.qweight", OX_STR_ARGS(base));
    out[1] = ox_emit_name(e, "%.*s.scales", OX_STR_ARGS(base));
    out[2] = OX_STR("");
    put_external(e, out[0], OX_DTYPE_U8, flat ? 2 : 3, flat ? codes2 : codes3, j->at);
    put_external(e, out[1], j->dtype, 2, scales, j->scales_at);
    if (j->form.zeros == OX_ZEROS_NONE) return;
    out[2] = ox_emit_name(e, "%.*s.qzeros", OX_STR_ARGS(base));
    put_external(e, out[2], packed ? OX_DTYPE_U8 : j->dtype, 2, zeros, j->zeros_at);
}

static void remember_tied(ox_emitter *e, const ox_job *job, const ox_str names[3])
{
    if (job->n_parts != 1 || job->parts[0] != e->tied) return;
    e->tied_codes = names[0];
    e->tied_scales = names[1];
    e->tied_zeros = names[2];
    e->tied_form = job->form;
}

/* The matrix's tensors into `operands` behind the activations. */
static void put_matrix(ox_emitter *e, const ox_matmul *m, ox_str base, ox_str operands[3])
{
    ox_job job = {.form = m->form, .n_parts = m->n_parts};
    for (int32_t i = 0; i < m->n_parts; i++) {
        job.parts[i] = m->terms[i]->weight;
        job.pairs[i] = m->pairs[i];
    }
    const bool shared = e->tied && m->n_parts == 1 && job.parts[0] == e->tied && e->tied_codes.n;
    if (shared) {
        operands[0] = e->tied_codes;
        operands[1] = e->tied_scales;
        operands[2] = e->tied_zeros;
        return;
    }
    job.kind = m->form.nbits ? OX_JOB_NBITS : OX_JOB_COLUMNS;
    job.dtype = m->form.nbits ? e->o->io : m->form.stored;
    if (!ox_job_place(&job, &e->end)) e->failed = true;
    if (m->form.nbits) {
        put_nbits(e, base, &job, false, operands);
    } else {
        const int64_t dims[2] = {ox_job_cols(&job), ox_job_rows(&job)};
        operands[0] = ox_emit_name(e, "%.*s.weight", OX_STR_ARGS(base));
        put_external(e, operands[0], job.dtype, 2, dims, job.at);
    }
    remember_tied(e, &job, operands);
    report_matrix(e, base, &job);
    put_job(e, &job);
}

static ox_str cast_to_io(ox_emitter *e, ox_str base, ox_str x, ox_dtype from)
{
    if (from == e->o->io) return x;
    const ox_str name = ox_emit_name(e, "%.*s/weight/Cast", OX_STR_ARGS(base));
    ox_emit_begin(e, "Cast", false, name, &x, 1);
    ox_onnx_attr_int(&e->w, "to", e->o->io);
    return ox_emit_end(e, ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
}

static ox_str emit_as(ox_emitter *e, const char *op, ox_str name, const ox_str in[2], ox_str result)
{
    ox_emit_begin(e, op, false, name, in, 2);
    return ox_emit_end(e, result.n ? result : ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
}

static ox_str put_bias(ox_emitter *e, const ox_matmul *m, ox_str y)
{
    ox_job job = {.n_parts = m->n_parts};
    for (int32_t i = 0; i < m->n_parts; i++) {
        job.parts[i] = m->terms[i]->bias;
        job.pairs[i] = m->pairs[i];
    }
    const ox_str name = ox_emit_name(e, "%.*s/Add", OX_STR_ARGS(m->base));
    const ox_str tensor = ox_emit_name(e, "%.*s.bias", OX_STR_ARGS(ox_emit_dotted(e, name)));
    const ox_str in[2] = {y, ox_emit_vector(e, tensor, &job)};
    return emit_as(e, "Add", name, in, m->result);
}

ox_status ox_emit_matmul(ox_emitter *e, const ox_matmul *m, ox_str *y, ox_err *err)
{
    const ox_form *f = &m->form;
    const ox_str matmul = ox_emit_name(e, "%.*s/MatMul", OX_STR_ARGS(m->base));
    const ox_str result = m->terms[0]->bias ? OX_STR("") : m->result;
    ox_str in[4] = {m->x};
    int64_t n = 0;
    for (int32_t i = 0; i < m->n_parts; i++)
        n += m->terms[i]->weight->rows;
    put_matrix(e, m, ox_emit_dotted(e, matmul), in + 1);
    if (!f->nbits) {
        in[1] = cast_to_io(e, m->base, in[1], f->stored);
        *y = emit_as(e, "MatMul", matmul, in, result);
    } else {
        const ox_str name = ox_emit_name(e, "%.*s/MatMulNBits", OX_STR_ARGS(m->base));
        ox_emit_begin(e, "MatMulNBits", true, name, in, in[3].n ? 4 : 3);
        ox_onnx_attr_int(&e->w, "K", m->terms[0]->weight->cols);
        ox_onnx_attr_int(&e->w, "N", n);
        ox_onnx_attr_int(&e->w, "bits", f->bits);
        ox_onnx_attr_int(&e->w, "block_size", f->block);
        ox_onnx_attr_int(&e->w, "accuracy_level", e->o->accuracy_level);
        *y = ox_emit_end(e, result.n ? result
                                     : ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
    }
    if (m->terms[0]->bias) *y = put_bias(e, m, *y);
    if (n > INT32_MAX) return OX_FAIL(err, OX_UNSUPPORTED, "a matrix of %lld rows", (long long)n);
    return OX_OK;
}

const ox_node *ox_emit_producer(const ox_emitter *e, ox_value_id v)
{
    const ox_node_id n = ox_graph_value(e->g, v)->producer;
    return n.i >= 0 ? ox_graph_node(e->g, n) : NULL;
}

/* Rows of codes gathered and made floats at once; when the head shares them, by its 3-D tensor. */
static ox_str gather_codes(ox_emitter *e, const ox_term *t, const ox_form *f, bool shared)
{
    const ox_nbits_sizes s = ox_nbits_row_sizes(t->weight->cols, f->bits, f->block);
    ox_str arrays[3];
    ox_job job = {.kind = OX_JOB_NBITS, .form = *f, .dtype = e->o->io, .n_parts = 1,
                  .parts = {t->weight}};
    const ox_str base = shared ? OX_STR("lm_head.MatMul") : OX_STR("model.embed_tokens");
    if (!ox_job_place(&job, &e->end)) e->failed = true;
    put_nbits(e, base, &job, !shared, arrays);
    if (shared) remember_tied(e, &job, arrays);
    report_matrix(e, base, &job);
    put_job(e, &job);
    ox_str table = arrays[0];
    if (shared) {
        const int64_t shape[2] = {t->weight->rows, (int64_t)s.code_bytes};
        const ox_str in[2] = {table, ox_emit_i64s(e, shape, 2)};
        table = ox_emit(e, "Reshape", OX_STR("/model/embed_tokens/Reshape"), in, 2);
    }
    const ox_str in[4] = {table, OX_STR("input_ids"), arrays[1], arrays[2]};
    const ox_str name = OX_STR("/model/embed_tokens/GatherBlockQuantized");
    ox_emit_begin(e, "GatherBlockQuantized", true, name, in, arrays[2].n ? 4 : 3);
    ox_onnx_attr_int(&e->w, "bits", f->bits);
    ox_onnx_attr_int(&e->w, "block_size", f->block);
    ox_onnx_attr_int(&e->w, "gather_axis", 0);
    ox_onnx_attr_int(&e->w, "quantize_axis", 1);
    return ox_emit_end(e, ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
}

static ox_str gather_floats(ox_emitter *e, const ox_term *t, const ox_form *f)
{
    const int64_t dims[2] = {t->weight->rows, t->weight->cols};
    ox_job job = {.kind = OX_JOB_ROWS, .form = *f, .dtype = f->stored, .n_parts = 1,
                  .parts = {t->weight}};
    const ox_str tensor = OX_STR("model.embed_tokens.weight");
    if (!ox_job_place(&job, &e->end)) e->failed = true;
    put_external(e, tensor, job.dtype, 2, dims, job.at);
    report_matrix(e, OX_STR("model.embed_tokens"), &job);
    put_job(e, &job);
    const ox_str in[2] = {tensor, OX_STR("input_ids")};
    ox_str y = ox_emit(e, "Gather", OX_STR("/model/embed_tokens/Gather"), in, 2);
    return cast_to_io(e, OX_STR("/model/embed_tokens"), y, f->stored);
}

static ox_str emit_embed(ox_emitter *e, const ox_term *t)
{
    const ox_form head = e->tied ? ox_form_matrix(e->tied, e->o, true) : (ox_form){0};
    const bool tied = e->tied == t->weight;
    /* Gathering takes integer zero points only, and whole blocks. */
    const bool shared = tied && head.nbits && head.zeros != OX_ZEROS_FLOAT &&
                        t->weight->cols % head.block == 0;
    ox_str y;
    if (shared) {
        y = gather_codes(e, t, &head, true);
    } else if (tied && !head.nbits) { /* the head's matrix stands the other way round */
        const ox_matmul m = {.base = OX_STR("/lm_head"), .n_parts = 1, .terms = {t}, .form = head};
        ox_str matrix[3];
        put_matrix(e, &m, OX_STR("lm_head.MatMul"), matrix);
        const int64_t perm[2] = {1, 0};
        const ox_str name = OX_STR("/model/embed_tokens/Transpose");
        ox_emit_begin(e, "Transpose", false, name, matrix, 1);
        ox_onnx_attr_ints(&e->w, "perm", perm, 2);
        const ox_str in[2] = {ox_emit_end(e, OX_STR("/model/embed_tokens/Transpose/output_0")),
                              OX_STR("input_ids")};
        y = ox_emit(e, "Gather", OX_STR("/model/embed_tokens/Gather"), in, 2);
        y = cast_to_io(e, OX_STR("/model/embed_tokens"), y, head.stored);
    } else {
        const ox_form f = ox_form_table(t->weight, e->o);
        y = f.nbits ? gather_codes(e, t, &f, false) : gather_floats(e, t, &f);
    }
    if (t->scale == 1) return y;
    const ox_str in[2] = {y, ox_emit_float(e, (double)t->scale)};
    return ox_emit(e, "Mul", OX_STR("/model/embed_tokens/Mul"), in, 2);
}

/* Names of a norm: the term is ".../input_layernorm/LayerNorm", its values
 * ".../input_layernorm/output_0" and, of the sum, "output_3". */
static ox_status emit_row_norm(ox_emitter *e, const ox_node *n, ox_err *err)
{
    const ox_term *t = n->term;
    const ox_str base = ox_emit_parent(n->name), dotted = ox_emit_dotted(e, base);
    const ox_node *sum = ox_emit_producer(e, n->inputs[0]);
    ox_job gamma = {.n_parts = 1, .parts = {t->weight}}, beta = {.n_parts = 1, .parts = {t->bias}};
    ox_str in[4];
    size_t n_in = 0;
    const bool skip = sum && sum->term->kind == OX_TERM_ADD && !e->names[n->inputs[0].i].n;
    in[n_in++] = skip ? e->names[sum->inputs[0].i] : e->names[n->inputs[0].i];
    if (skip) in[n_in++] = e->names[sum->inputs[1].i];
    if (!t->weight) return OX_FAIL(err, OX_UNSUPPORTED, "norm %.*s has no weight: ONNX Runtime's "
                                   "operator needs one", OX_STR_ARGS(n->name));
    in[n_in++] = ox_emit_vector(e, ox_emit_name(e, "%.*s.weight", OX_STR_ARGS(dotted)), &gamma);
    if (t->bias)
        in[n_in++] = ox_emit_vector(e, ox_emit_name(e, "%.*s.bias", OX_STR_ARGS(dotted)), &beta);
    const char *op = skip ? (t->centre ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization")
                          : (t->centre ? "LayerNormalization" : "SimplifiedLayerNormalization");
    const ox_str name = ox_emit_name(e, "%.*s/%s", OX_STR_ARGS(base),
                                     skip ? "SkipLayerNorm" : "LayerNorm");
    ox_emit_begin(e, op, skip, name, in, n_in);
    ox_onnx_attr_float(&e->w, "epsilon", t->epsilon);
    if (!skip) {
        ox_onnx_attr_int(&e->w, "axis", -1);
        ox_onnx_attr_int(&e->w, "stash_type", 1);
    }
    const ox_str y = ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(base));
    ox_onnx_put_result(&e->w, y);
    if (skip && ox_graph_uses(e->g, n->inputs[0]) > 1) {
        const ox_str s = ox_emit_name(e, "%.*s/output_3", OX_STR_ARGS(base));
        ox_onnx_put_result(&e->w, OX_STR(""));
        ox_onnx_put_result(&e->w, OX_STR(""));
        ox_onnx_put_result(&e->w, s);
        e->names[n->inputs[0].i] = s;
    }
    ox_onnx_end_node(&e->w);
    e->names[n->outputs[0].i] = y;
    return OX_OK;
}

/* Heads one by one: through [batch, tokens * heads, head size]. */
static ox_status emit_group_norm(ox_emitter *e, const ox_node *n, ox_err *err)
{
    const ox_term *t = n->term;
    const ox_str base = ox_emit_parent(n->name), dotted = ox_emit_dotted(e, base);
    const int64_t width = ox_graph_value(e->g, n->outputs[0])->dims[1];
    ox_job gamma = {.n_parts = 1, .parts = {t->weight}};
    if (!t->weight || t->centre)
        return OX_FAIL(err, OX_UNSUPPORTED, "norm %.*s of heads: only the root-mean-square form "
                       "with a weight can be written", OX_STR_ARGS(n->name));
    ox_str in[2] = {e->names[n->inputs[0].i], ox_emit_i64s(e, (int64_t[]){0, -1, t->group}, 3)};
    in[0] = ox_emit(e, "Reshape", ox_emit_name(e, "%.*s/Reshape_1", OX_STR_ARGS(base)), in, 2);
    in[1] = ox_emit_vector(e, ox_emit_name(e, "%.*s.layernorm.weight", OX_STR_ARGS(dotted)), &gamma);
    ox_emit_begin(e, "SimplifiedLayerNormalization", false, n->name, in, 2);
    ox_onnx_attr_float(&e->w, "epsilon", t->epsilon);
    ox_onnx_attr_int(&e->w, "axis", -1);
    ox_onnx_attr_int(&e->w, "stash_type", 1);
    in[0] = ox_emit_end(e, ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(n->name)));
    in[1] = ox_emit_i64s(e, (int64_t[]){0, -1, width}, 3);
    e->names[n->outputs[0].i] =
        ox_emit(e, "Reshape", ox_emit_name(e, "%.*s/Reshape_2", OX_STR_ARGS(base)), in, 2);
    return OX_OK;
}

ox_status ox_emit_norm(ox_emitter *e, const ox_node *n, ox_err *err)
{
    return n->term->group ? emit_group_norm(e, n, err) : emit_row_norm(e, n, err);
}

static ox_status emit_act(ox_emitter *e, ox_act act, ox_str base, ox_str x, ox_str *y, ox_err *err)
{
    const ox_str in[1] = {x};
    const bool gelu = act == OX_ACT_GELU || act == OX_ACT_GELU_TANH;
    if (act == OX_ACT_SILU) {
        const ox_str both[2] = {x, ox_emit(e, "Sigmoid", ox_emit_name(e, "%.*s/act_fn/Sigmoid",
                                                                     OX_STR_ARGS(base)), in, 1)};
        *y = ox_emit(e, "Mul", ox_emit_name(e, "%.*s/act_fn/Mul", OX_STR_ARGS(base)), both, 2);
        return OX_OK;
    }
    if (gelu) {
        const bool tanh_form = act == OX_ACT_GELU_TANH;
        const ox_str name = ox_emit_name(e, "%.*s/act_fn/%s", OX_STR_ARGS(base),
                                         tanh_form ? "FastGelu" : "Gelu");
        ox_emit_begin(e, "Gelu", false, name, in, 1);
        ox_onnx_attr_str(&e->w, "approximate", tanh_form ? OX_STR("tanh") : OX_STR("none"));
        *y = ox_emit_end(e, ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
        return OX_OK;
    }
    if (act == OX_ACT_QUICK_GELU) {
        const ox_str name = ox_emit_name(e, "%.*s/act_fn/QuickGelu", OX_STR_ARGS(base));
        ox_emit_begin(e, "QuickGelu", true, name, in, 1);
        ox_onnx_attr_float(&e->w, "alpha", 1.702f);
        *y = ox_emit_end(e, ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
        return OX_OK;
    }
    if (act != OX_ACT_RELU && act != OX_ACT_RELU2)
        return OX_FAIL(err, OX_UNSUPPORTED, "%.*s: an activation that cannot be written",
                       OX_STR_ARGS(base));
    *y = ox_emit(e, "Relu", ox_emit_name(e, "%.*s/act_fn/Relu", OX_STR_ARGS(base)), in, 1);
    if (act == OX_ACT_RELU) return OX_OK;
    const ox_str both[2] = {*y, *y};
    *y = ox_emit(e, "Mul", ox_emit_name(e, "%.*s/act_fn/Mul", OX_STR_ARGS(base)), both, 2);
    return OX_OK;
}

static ox_status emit_glu(ox_emitter *e, const ox_node *n, ox_str *y, ox_err *err)
{
    ox_str in[2];
    OX_TRY(emit_act(e, n->term->act, ox_emit_parent(n->name), e->names[n->inputs[0].i], &in[0],
                    err));
    in[1] = e->names[n->inputs[1].i];
    *y = ox_emit(e, "Mul", n->name, in, 2);
    return OX_OK;
}

/* y * scale, then the soft-cap; result names what comes out, "" = by the node. */
static ox_str scale_and_cap(ox_emitter *e, ox_str base, ox_str y, const ox_term *t, ox_str result)
{
    if (t->scale != 1 && t->scale != 0) {
        const ox_str in[2] = {y, ox_emit_float(e, (double)t->scale)};
        y = emit_as(e, "Mul", ox_emit_name(e, "%.*s/Mul", OX_STR_ARGS(base)), in,
                    t->softcap > 0 ? OX_STR("") : result);
    }
    if (!(t->softcap > 0)) return y;
    const ox_str c = ox_emit_float(e, (double)t->softcap);
    ox_str in[2] = {y, c};
    in[0] = ox_emit(e, "Div", ox_emit_name(e, "%.*s/softcap/Div", OX_STR_ARGS(base)), in, 2);
    in[0] = ox_emit(e, "Tanh", ox_emit_name(e, "%.*s/softcap/Tanh", OX_STR_ARGS(base)), in, 1);
    return emit_as(e, "Mul", ox_emit_name(e, "%.*s/softcap/Mul", OX_STR_ARGS(base)), in, result);
}

static ox_status emit_linear(ox_emitter *e, const ox_node *n, ox_str *y, ox_err *err)
{
    const ox_matmul m = {.base = ox_emit_parent(n->name),
                         .x = e->names[n->inputs[0].i],
                         .n_parts = 1,
                         .terms = {n->term},
                         .form = ox_form_matrix(n->term->weight, e->o, false)};
    return ox_emit_matmul(e, &m, y, err);
}

/* Logits of bfloat16 graphs are widened, as the model builder does. */
static ox_status emit_head(ox_emitter *e, const ox_node *n, ox_err *err)
{
    const ox_term *t = n->term;
    const bool widen = e->o->io == OX_DTYPE_BF16, after = t->softcap > 0 || (t->scale != 1 && t->scale != 0);
    const ox_str result = widen ? OX_STR("") : OX_STR("logits");
    const ox_onnx_dim dims[3] = {{-1, OX_STR("batch_size")},
                                 {-1, OX_STR("sequence_length")},
                                 {t->weight->rows, {0}}};
    const ox_matmul m = {.base = ox_emit_parent(n->name),
                         .x = e->names[n->inputs[0].i],
                         .n_parts = 1,
                         .terms = {t},
                         .form = ox_form_matrix(t->weight, e->o, true),
                         .result = after ? OX_STR("") : result};
    ox_str y;
    OX_TRY(ox_emit_matmul(e, &m, &y, err));
    y = scale_and_cap(e, m.base, y, t, result);
    if (widen) {
        ox_emit_begin(e, "Cast", false, OX_STR("/lm_head/Cast"), &y, 1);
        ox_onnx_attr_int(&e->w, "to", OX_DTYPE_F32);
        ox_emit_end(e, OX_STR("logits"));
    }
    ox_onnx_put_output(&e->w, OX_STR("logits"), widen ? OX_DTYPE_F32 : e->o->io, 3, dims);
    return OX_OK;
}

/* A sum whose first reader is a norm becomes that norm's skip input. */
static bool is_deferred(const ox_emitter *e, size_t i)
{
    const ox_node *sum = &e->g->nodes.p[i];
    for (size_t k = i + 1; k < e->g->nodes.n; k++) {
        const ox_node *n = &e->g->nodes.p[k];
        for (uint32_t j = 0; !n->dead && j < n->n_inputs; j++)
            if (n->inputs[j].i == sum->outputs[0].i)
                return n->term->kind == OX_TERM_NORM && !n->term->group;
    }
    return false;
}

static ox_status emit_node(ox_emitter *e, size_t i, ox_err *err)
{
    const ox_node *n = &e->g->nodes.p[i];
    const ox_term *t = n->term;
    ox_str y = {0};
    switch (t->kind) {
    case OX_TERM_EMBED: y = emit_embed(e, t); break;
    case OX_TERM_NORM: return ox_emit_norm(e, n, err);
    case OX_TERM_ATTEND: return ox_emit_attend(e, n, err);
    case OX_TERM_HEAD: return emit_head(e, n, err);
    case OX_TERM_LINEAR: OX_TRY(emit_linear(e, n, &y, err)); break;
    case OX_TERM_GLU: OX_TRY(emit_glu(e, n, &y, err)); break;
    case OX_TERM_ACT:
        OX_TRY(emit_act(e, t->act, n->name, e->names[n->inputs[0].i], &y, err));
        break;
    case OX_TERM_SCALE:
        y = scale_and_cap(e, n->name, e->names[n->inputs[0].i], t, OX_STR(""));
        break;
    case OX_TERM_ADD: {
        if (is_deferred(e, i)) return OX_OK;
        const ox_str in[2] = {e->names[n->inputs[0].i], e->names[n->inputs[1].i]};
        y = ox_emit(e, "Add", n->name, in, 2);
        break;
    }
    default:
        return OX_FAIL(err, OX_UNSUPPORTED, "term %.*s (%s) cannot be written as ONNX operators here",
                       OX_STR_ARGS(n->name), ox_term_name(t->kind));
    }
    e->names[n->outputs[0].i] = y;
    return OX_OK;
}

static void put_ports(ox_emitter *e)
{
    const ox_onnx_dim batch = {-1, OX_STR("batch_size")};
    const ox_onnx_dim ids[2] = {batch, {-1, OX_STR("sequence_length")}};
    const ox_onnx_dim mask[2] = {batch, {-1, OX_STR("total_sequence_length")}};
    ox_onnx_put_input(&e->w, OX_STR("input_ids"), OX_DTYPE_I64, 2, ids);
    ox_onnx_put_input(&e->w, OX_STR("attention_mask"), OX_DTYPE_I64, 2, mask);
    for (size_t i = 0; i < e->g->caches.n; i++) {
        const ox_cache *c = &e->g->caches.p[i];
        ox_onnx_dim dims[4] = {batch,
                               {c->n_kv_heads, {0}},
                               {-1, OX_STR("past_sequence_length")},
                               {c->head_size, {0}}};
        for (int v = 0; v < 2; v++)
            ox_onnx_put_input(&e->w, ox_emit_name(e, "past_key_values.%zu.%s", i,
                                                  v ? "value" : "key"), e->o->io, 4, dims);
    }
}

static void put_presents(ox_emitter *e)
{
    for (size_t i = 0; i < e->g->caches.n; i++) {
        const ox_cache *c = &e->g->caches.p[i];
        ox_onnx_dim dims[4] = {{-1, OX_STR("batch_size")},
                               {c->n_kv_heads, {0}},
                               {-1, OX_STR("total_sequence_length")},
                               {c->head_size, {0}}};
        for (int v = 0; v < 2; v++)
            ox_onnx_put_output(&e->w, ox_emit_name(e, "present.%zu.%s", i, v ? "value" : "key"),
                               e->o->io, 4, dims);
    }
}

ox_status ox_emit_graph(ox_emitter *e, ox_err *err)
{
    const ox_graph *g = e->g;
    const ox_node *head = g->outputs.n == 1 ? ox_emit_producer(e, g->outputs.p[0]) : NULL;
    const ox_term *embed = NULL;
    e->names = ox_arena_take_n(&e->arena, g->values.n + 1, sizeof *e->names);
    e->absorbed = ox_arena_take_n(&e->arena, g->nodes.n + 1, sizeof *e->absorbed);
    if (!e->names || !e->absorbed) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.p[i].dead && g->nodes.p[i].term->kind == OX_TERM_EMBED)
            embed = g->nodes.p[i].term;
    if (!head || head->term->kind != OX_TERM_HEAD || !embed)
        return OX_FAIL(err, OX_UNSUPPORTED, "the graph does not go from token ids to logits");
    if (embed->weight == head->term->weight) e->tied = embed->weight;
    put_ports(e);
    ox_emit_lengths(e);
    ox_emit_absorb(e);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.p[i].dead && !e->absorbed[i]) OX_TRY(emit_node(e, i, err));
    put_presents(e);
    if (e->failed) return OX_FAIL(err, OX_NO_MEMORY, "out of memory, or a size overflows");
    return OX_OK;
}
