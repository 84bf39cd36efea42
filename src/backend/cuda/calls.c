/* calls.c - every kind of call: what it needs bound, and the arguments of its row. */
#include "backend/cuda/cuda.h"

#include <assert.h>

/* Picks a row of the family for each class; args[k] describes class k. */
static ox_status pick(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound, const char *family,
                      const void *const args[OX_CLASS_COUNT], ox_err *err)
{
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        const ox_kernel_row *row = ox_cuda_pick(family, b->sm, args[k]);
        if (!row)
            return OX_FAIL(err, OX_UNSUPPORTED,
                           "node %s: the CUDA backend has no %s kernel for its shape; use "
                           "--device cpu",
                           c->name, family);
        bound->fn[k] = (ox_dev_fn *)row->fn;
        c->rows[k] = row->name;
    }
    return OX_OK;
}

static ox_status pick_any(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound, const char *family,
                          const void *args, ox_err *err)
{
    const void *const all[OX_CLASS_COUNT] = {args, args, args};
    return pick(b, c, bound, family, all, err);
}

static void launch(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound,
                   const void *args)
{
    bound->fn[ox_cuda_class_of(r, c)](args, r->b->stream);
}

/* ---- rows alone ------------------------------------------------------------------------------ */

ox_status ox_cuda_bind_embed(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                             const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_dev_embed_args a = {0};
    bound->n_matrices = 1;
    OX_TRY(ox_cuda_matrix_get(b, &bound->matrix[0], &c->term->weight, 1, err));
    return pick_any(b, c, bound, "embed", &a, err);
}

void ox_cuda_run_embed(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    const ox_cuda_matrix *m = bound->matrix[0];
    const ox_dev_embed_args a = {.pack = m->is_pack ? &m->pack : NULL,
                                 .table = m->floats,
                                 .ids = r->b->step.ids,
                                 .y = ox_cuda_operand(r, c->out),
                                 .rows = r->rows,
                                 .dim = c->out.width,
                                 .scale = c->term->scale};
    launch(r, c, bound, &a);
}

ox_status ox_cuda_bind_norm(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                            const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_term *t = c->term;
    const int64_t dim = t->group ? t->group : c->in[0].width;
    const ox_dev_norm_args a = {.dim = (int32_t)dim};
    OX_TRY(ox_cuda_vector(b, &bound->vectors[0], &t->weight, &dim, 1, err));
    if (t->bias) OX_TRY(ox_cuda_vector(b, &bound->vectors[1], &t->bias, &dim, 1, err));
    return pick_any(b, c, bound, "norm", &a, err);
}

void ox_cuda_run_norm(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    const ox_term *t = c->term;
    const int32_t dim = t->group ? t->group : c->in[0].width;
    const ox_dev_norm_args a = {.x = ox_cuda_operand(r, c->in[0]),
                                .y = ox_cuda_operand(r, c->out),
                                .gamma = bound->vectors[0],
                                .beta = bound->vectors[1],
                                .rows = ox_cuda_rows_of(r, c),
                                .groups = c->in[0].width / dim,
                                .dim = dim,
                                .eps = t->epsilon,
                                .centre = t->centre};
    launch(r, c, bound, &a);
}

ox_status ox_cuda_bind_rotate(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                              const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_rotary *rule = c->term->rotary;
    const ox_dev_rotate_args a = {0};
    const float *const host[] = {rule->cos_table, rule->sin_table, rule->long_cos, rule->long_sin};
    const size_t n = (size_t)rule->n_positions * (size_t)(rule->rotary / 2);
    for (size_t i = 0; i < OX_COUNT(host); i++)
        if (host[i]) OX_TRY(ox_cuda_floats(b, &bound->tables[i], host[i], n, err));
    return pick_any(b, c, bound, "rotate", &a, err);
}

static ox_dev_rotate_args rotate_args(const ox_cuda_run *r, const ox_call *c,
                                      const ox_cuda_bound *bound)
{
    const ox_term *t = c->term;
    const bool is_long = bound->tables[2] && r->is_long;
    return (ox_dev_rotate_args){.x = ox_cuda_operand(r, c->in[0]),
                                .pos = r->b->step.pos,
                                .cos_table = bound->tables[is_long ? 2 : 0],
                                .sin_table = bound->tables[is_long ? 3 : 1],
                                .rows = r->rows,
                                .n_heads = t->n_heads,
                                .head_size = t->head_size,
                                .rotary = t->rotary->rotary,
                                .interleaved = t->rotary->interleaved};
}

void ox_cuda_run_rotate(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    const ox_dev_rotate_args a = rotate_args(r, c, bound);
    launch(r, c, bound, &a);
}

static ox_dev_map_args map_args(const ox_cuda_run *r, const ox_call *c)
{
    return (ox_dev_map_args){.x = ox_cuda_operand(r, c->in[0]),
                             .x2 = ox_cuda_operand(r, c->in[1]),
                             .y = ox_cuda_operand(r, c->out),
                             .rows = ox_cuda_rows_of(r, c),
                             .dim = c->out.width};
}

static ox_status bind_map(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound, const char *family,
                          ox_err *err)
{
    const ox_dev_map_args a = {.dim = c->out.width};
    return pick_any(b, c, bound, family, &a, err);
}

ox_status ox_cuda_bind_glu(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                           const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    return bind_map(b, c, bound, "glu", err);
}

void ox_cuda_run_glu(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    ox_dev_map_args a = map_args(r, c);
    a.act = (int32_t)c->term->act;
    launch(r, c, bound, &a);
}

ox_status ox_cuda_bind_act(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                           const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    return bind_map(b, c, bound, "act", err);
}

void ox_cuda_run_act(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    ox_dev_map_args a = map_args(r, c);
    a.act = (int32_t)c->term->act;
    launch(r, c, bound, &a);
}

ox_status ox_cuda_bind_add(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                           const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    return bind_map(b, c, bound, "add", err);
}

void ox_cuda_run_add(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    const ox_dev_map_args a = map_args(r, c);
    launch(r, c, bound, &a);
}

ox_status ox_cuda_bind_scale(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                             const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    return bind_map(b, c, bound, "scale", err);
}

void ox_cuda_run_scale(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    ox_dev_map_args a = map_args(r, c);
    a.scale = c->term->scale;
    a.softcap = c->term->softcap;
    launch(r, c, bound, &a);
}

ox_status ox_cuda_bind_gather(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                              const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    return bind_map(b, c, bound, "gather", err);
}

void ox_cuda_run_gather(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    ox_dev_map_args a = map_args(r, c);
    a.index = r->b->step.wanted;
    launch(r, c, bound, &a);
}

/* ---- matrix products ------------------------------------------------------------------------- */

static ox_status bind_bias(ox_cuda_backend *b, const ox_call *c, ox_cuda_bound *bound, ox_err *err)
{
    int64_t lengths[OX_CALL_WEIGHTS];
    bool any = false;
    for (int32_t i = 0; i < c->n_weights; i++) {
        lengths[i] = c->weights[i]->rows;
        any |= c->biases[i] != NULL;
    }
    return any ? ox_cuda_vector(b, &bound->vectors[0], c->biases, lengths, c->n_weights, err)
               : OX_OK;
}

static void put_shape(ox_dev_linear_args *a, const ox_cuda_matrix *m)
{
    assert(m); /* bound before its bias */
    a->pack = m->is_pack ? &m->pack : NULL;
    a->w = m->floats;
    a->n = m->n;
    a->k = m->k;
}

static ox_status bind_linear(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                             const ox_buffer *buffers, const char *family, ox_err *err)
{
    const int32_t rows[OX_CLASS_COUNT] = {1, OX_FEW_ROWS, OX_CUDA_MANY_ROWS};
    ox_dev_linear_args a[OX_CLASS_COUNT];
    const void *args[OX_CLASS_COUNT];
    OX_TRY(ox_cuda_matrix_get(b, &bound->matrix[0], c->weights, c->n_weights, err));
    bound->n_matrices = 1;
    if (!bound->matrix[0]) { /* not of one kind: a matrix a weight */
        bound->n_matrices = c->n_weights;
        for (int32_t i = 0; i < c->n_weights; i++)
            OX_TRY(ox_cuda_matrix_get(b, &bound->matrix[i], &c->weights[i], 1, err));
    }
    if (c->pairs && bound->n_matrices > 1)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "node %s: gate and up have different formats; OXGEN_PASSES=-linear*2+glu "
                       "runs them apart",
                       c->name);
    OX_TRY(bind_bias(b, c, bound, err));
    const ox_buffer *in = &buffers[c->in[0].buffer.i], *out = &buffers[c->out.buffer.i];
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        a[k] = (ox_dev_linear_args){.rows = rows[k], .pairs = c->pairs, .act = -1, .n_sm = b->n_sm};
        put_shape(&a[k], bound->matrix[0]);
        a[k].x.dtype = ox_cuda_dtype(b, in);
        a[k].x.ld = in->width;
        a[k].y.dtype = ox_cuda_dtype(b, out);
        a[k].y.ld = out->width;
        a[k].scratch_bytes = OX_CUDA_SCRATCH_BYTES;
        args[k] = &a[k];
    }
    return pick(b, c, bound, family, args, err);
}

ox_status ox_cuda_bind_quant_linear(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                                    const ox_buffer *buffers, ox_err *err)
{
    return bind_linear(b, c, bound, buffers, "qexact", err);
}

ox_status ox_cuda_bind_float_linear(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                                    const ox_buffer *buffers, ox_err *err)
{
    return bind_linear(b, c, bound, buffers, "matmul", err);
}

/* Columns [first, first + n) of an operand. */
static ox_operand columns(ox_operand o, int32_t first, int32_t n)
{
    if (o.buffer.i >= 0) {
        o.first += first;
        o.width = n;
    }
    return o;
}

static void run_linear(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    int32_t at = 0;
    for (int32_t i = 0; i < bound->n_matrices; i++) {
        const ox_cuda_matrix *m = bound->matrix[i];
        ox_dev_linear_args a = {.x = ox_cuda_operand(r, c->in[0]),
                                .y = ox_cuda_operand(r, columns(c->out, at, m->n)),
                                .add = ox_cuda_operand(r, columns(c->add, at, m->n)),
                                .bias = bound->vectors[0] ? bound->vectors[0] + at : NULL,
                                .rows = ox_cuda_rows_of(r, c),
                                .pairs = c->pairs,
                                .act = c->pairs ? (int32_t)c->term->act : -1,
                                .n_sm = r->b->n_sm,
                                .scratch = r->b->scratch,
                                .scratch_bytes = OX_CUDA_SCRATCH_BYTES};
        put_shape(&a, m);
        /* a batch of sequences is few rows as well: tiles of the same kernel */
        const bool few = a.rows > 1 && a.rows <= OX_CUDA_GRAPH_ROWS;
        bound->fn[few ? OX_CLASS_FEW : ox_cuda_class_of(r, c)](&a, r->b->stream);
        at += m->n;
    }
}

void ox_cuda_run_quant_linear(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    run_linear(r, c, bound);
}

void ox_cuda_run_float_linear(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    run_linear(r, c, bound);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static ox_dev_cache shape_of(const ox_call *c)
{
    return (ox_dev_cache){.n_kv_heads = c->term->n_kv_heads,
                          .head_size = c->term->head_size,
                          .v_head_size = c->term->v_head_size,
                          .dtype = OX_DEV_F16};
}

static ox_dev_cache cache_of(const ox_cuda_run *r, const ox_call *c)
{
    const ox_kv_place *p = &ox_kv_pool_places(r->kv)[c->term->cache.i];
    return (ox_dev_cache){.step = r->b->step,
                          .k_offset = p->k_offset,
                          .v_offset = p->v_offset,
                          .n_kv_heads = p->n_kv_heads,
                          .head_size = p->head_size,
                          .v_head_size = p->v_head_size,
                          .dtype = (int32_t)ox_kv_pool_dtype(r->kv)};
}

ox_status ox_cuda_bind_append(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                              const ox_buffer *buffers, ox_err *err)
{
    (void)buffers;
    const ox_dev_append_args a = {.cache = shape_of(c)};
    return pick_any(b, c, bound, "kv_append", &a, err);
}

static ox_dev_append_args append_args(const ox_cuda_run *r, const ox_call *c)
{
    return (ox_dev_append_args){.k = ox_cuda_operand(r, c->in[1]),
                                .v = ox_cuda_operand(r, c->in[2]),
                                .rows = r->rows,
                                .cache = cache_of(r, c)};
}

void ox_cuda_run_append(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    const ox_dev_append_args a = append_args(r, c);
    launch(r, c, bound, &a);
}

static bool same_columns(ox_operand a, ox_operand b)
{
    return a.buffer.i == b.buffer.i && a.first == b.first && a.width == b.width;
}

size_t ox_cuda_run_together(const ox_cuda_run *r, const ox_call *c, size_t n)
{
    if (n < 3 || c[0].kind != OX_CALL_ROTATE || c[1].kind != OX_CALL_ROTATE ||
        c[2].kind != OX_CALL_APPEND)
        return 0;
    const int q = same_columns(c[1].in[0], c[2].in[1]) ? 0 : 1, k = 1 - q;
    const ox_term *tk = c[k].term, *ta = c[2].term;
    if (!same_columns(c[k].in[0], c[2].in[1]) || same_columns(c[q].in[0], c[k].in[0]) ||
        tk->n_heads != ta->n_kv_heads || tk->head_size != ta->head_size || ta->head_size > 512 ||
        ta->v_head_size > 512 || c[q].term->head_size > 512)
        return 0;
    const ox_dev_rotate_append_args a = {.q = rotate_args(r, &c[q], c[q].bound),
                                         .k = rotate_args(r, &c[k], c[k].bound),
                                         .append = append_args(r, &c[2])};
    ox_rotate_append_cuda(&a, r->b->stream);
    return 3;
}

ox_status ox_cuda_bind_attend(ox_cuda_backend *b, ox_call *c, ox_cuda_bound *bound,
                              const ox_buffer *buffers, ox_err *err)
{
    const int32_t rows[OX_CLASS_COUNT] = {1, OX_FEW_ROWS, OX_CUDA_MANY_ROWS};
    const ox_term *t = c->term;
    const int64_t n_heads = t->n_heads;
    ox_dev_attend_args a[OX_CLASS_COUNT];
    const void *args[OX_CLASS_COUNT];
    if (t->sinks) OX_TRY(ox_cuda_vector(b, &bound->vectors[0], &t->sinks, &n_heads, 1, err));
    for (int k = 0; k < OX_CLASS_COUNT; k++) {
        a[k] = (ox_dev_attend_args){.rows = rows[k],
                                    .n_heads = t->n_heads,
                                    .scale = t->scale,
                                    .softcap = t->softcap,
                                    .window = t->window,
                                    .sinks = bound->vectors[0],
                                    .cache = shape_of(c),
                                    .one_sequence = 1};
        a[k].cache.dtype = (int32_t)b->options.kv_dtype;
        a[k].q.dtype = ox_cuda_dtype(b, &buffers[c->in[0].buffer.i]);
        a[k].y.dtype = ox_cuda_dtype(b, &buffers[c->out.buffer.i]);
        args[k] = &a[k];
    }
    return pick(b, c, bound, "attend", args, err);
}

void ox_cuda_run_attend(const ox_cuda_run *r, const ox_call *c, const ox_cuda_bound *bound)
{
    const ox_term *t = c->term;
    /* Rows of many sequences without runs are many decodes, not one prompt. */
    const bool apart = !r->one_sequence && r->all == OX_CLASS_MANY && !r->b->step.n_tiles;
    const ox_dev_attend_args a = {.q = ox_cuda_operand(r, c->in[0]),
                                  .y = ox_cuda_operand(r, c->out),
                                  .rows = r->rows,
                                  .n_heads = t->n_heads,
                                  .scale = t->scale,
                                  .softcap = t->softcap,
                                  .window = t->window,
                                  .sinks = bound->vectors[0],
                                  .cache = cache_of(r, c),
                                  .one_sequence = r->one_sequence,
                                  .total = r->total,
                                  .n_sm = r->b->n_sm,
                                  .scratch = r->b->scratch,
                                  .scratch_bytes = OX_CUDA_SCRATCH_BYTES};
    bound->fn[apart ? OX_CLASS_FEW : r->all](&a, r->b->stream);
}
