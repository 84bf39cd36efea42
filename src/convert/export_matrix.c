/* export_matrix.c - matrices in a written graph: MatMul or MatMulNBits, and the embedding, which
 * may be the head's matrix read another way. */
#include "convert/export_internal.h"

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
    ox_emit_external(e, out[0], OX_DTYPE_U8, flat ? 2 : 3, flat ? codes2 : codes3, j->at);
    ox_emit_external(e, out[1], j->dtype, 2, scales, j->scales_at);
    if (j->form.zeros == OX_ZEROS_NONE) return;
    out[2] = ox_emit_name(e, "%.*s.qzeros", OX_STR_ARGS(base));
    ox_emit_external(e, out[2], packed ? OX_DTYPE_U8 : j->dtype, 2, zeros, j->zeros_at);
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
        ox_emit_external(e, operands[0], job.dtype, 2, dims, job.at);
    }
    remember_tied(e, &job, operands);
    ox_emit_count(e, base, &job);
    ox_emit_job(e, &job);
}

static ox_str cast_to_io(ox_emitter *e, ox_str base, ox_str x, ox_dtype from)
{
    if (from == e->o->io) return x;
    const ox_str name = ox_emit_name(e, "%.*s/weight/Cast", OX_STR_ARGS(base));
    ox_emit_begin(e, "Cast", false, name, &x, 1);
    ox_onnx_attr_int(&e->w, "to", e->o->io);
    return ox_emit_end(e, ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
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
    return ox_emit_as(e, "Add", name, in, m->result);
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
        *y = ox_emit_as(e, "MatMul", matmul, in, result);
    } else {
        const ox_str name = ox_emit_name(e, "%.*s/MatMulNBits", OX_STR_ARGS(m->base));
        ox_emit_begin(e, "MatMulNBits", true, name, in, in[3].n ? 4 : 3);
        ox_onnx_attr_int(&e->w, "K", m->terms[0]->weight->cols);
        ox_onnx_attr_int(&e->w, "N", n);
        ox_onnx_attr_int(&e->w, "bits", f->bits);
        ox_onnx_attr_int(&e->w, "block_size", f->block);
        ox_onnx_attr_int(&e->w, "accuracy_level", e->o->accuracy_level);
        *y =
            ox_emit_end(e, result.n ? result : ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(name)));
    }
    if (m->terms[0]->bias) *y = put_bias(e, m, *y);
    if (n > INT32_MAX) return OX_FAIL(err, OX_UNSUPPORTED, "a matrix of %lld rows", (long long)n);
    return OX_OK;
}

/* Rows of codes gathered and made floats at once; when the head shares them, by its 3-D tensor. */
static ox_str gather_codes(ox_emitter *e, const ox_term *t, const ox_form *f, bool shared)
{
    const ox_nbits_sizes s = ox_nbits_row_sizes(t->weight->cols, f->bits, f->block);
    ox_str arrays[3];
    ox_job job = {
        .kind = OX_JOB_NBITS, .form = *f, .dtype = e->o->io, .n_parts = 1, .parts = {t->weight}};
    const ox_str base = shared ? OX_STR("lm_head.MatMul") : OX_STR("model.embed_tokens");
    if (!ox_job_place(&job, &e->end)) e->failed = true;
    put_nbits(e, base, &job, !shared, arrays);
    if (shared) remember_tied(e, &job, arrays);
    ox_emit_count(e, base, &job);
    ox_emit_job(e, &job);
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
    ox_job job = {
        .kind = OX_JOB_ROWS, .form = *f, .dtype = f->stored, .n_parts = 1, .parts = {t->weight}};
    const ox_str tensor = OX_STR("model.embed_tokens.weight");
    if (!ox_job_place(&job, &e->end)) e->failed = true;
    ox_emit_external(e, tensor, job.dtype, 2, dims, job.at);
    ox_emit_count(e, OX_STR("model.embed_tokens"), &job);
    ox_emit_job(e, &job);
    const ox_str in[2] = {tensor, OX_STR("input_ids")};
    ox_str y = ox_emit(e, "Gather", OX_STR("/model/embed_tokens/Gather"), in, 2);
    return cast_to_io(e, OX_STR("/model/embed_tokens"), y, f->stored);
}

ox_str ox_emit_embed(ox_emitter *e, const ox_term *t)
{
    const ox_form head = e->tied ? ox_form_matrix(e->tied, e->o, true) : (ox_form){0};
    const bool tied = e->tied == t->weight;
    /* Gathering takes integer zero points only, and whole blocks. */
    const bool shared =
        tied && head.nbits && head.zeros != OX_ZEROS_FLOAT && t->weight->cols % head.block == 0;
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
