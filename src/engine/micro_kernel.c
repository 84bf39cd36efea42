/* micro_kernel.c - kernels on the shapes of a model of half a thousand million weights: width 896,
 * inner width 4864, 14 query heads and 2 key heads of size 64. Data is made up: no kernel's speed
 * depends on its values. */
#include "engine/micro.h"

#include "tensor/half.h"

#include <assert.h>
#include <string.h>

enum { HEADS = 14, KV_HEADS = 2, HEAD_SIZE = 64 };

static void bytes_cost(ox_micro_case *c, size_t bytes)
{
    c->cost.unit = "byte";
    c->cost.work = c->cost.bytes = (double)bytes;
}

/* Row-wise families. kind: 0 norm, 1 softmax, 2 act, 3 glu, 4 scale, 5 add; [a, b] */
ox_status ox_micro_rows(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t n = (size_t)row->a, dim = (size_t)row->b, all = n * dim;
    float *x = ox_micro_floats(c, all, err), *x2 = ox_micro_floats(c, all, err);
    float *y = ox_micro_floats(c, all, err), *gamma = ox_micro_floats(c, dim, err);
    micro_args a = {0};
    if (!x || !x2 || !y || !gamma) return OX_NO_MEMORY;
    bytes_cost(c, all * 4 * (row->kind == 3 || row->kind == 5 ? 3 : 2));
    switch (row->kind) {
    case 0:
        a.norm = (ox_norm_args){.x = x,
                                .gamma = gamma,
                                .y = y,
                                .rows = n,
                                .dim = dim,
                                .ldx = dim,
                                .ldy = dim,
                                .eps = 1e-6f};
        return MICRO_LAUNCH(c, norm, &a, n, 1, err);
    case 1:
        a.softmax =
            (ox_softmax_args){.x = x, .y = y, .rows = n, .dim = dim, .ldx = dim, .ldy = dim};
        return MICRO_LAUNCH(c, softmax, &a, n, 1, err);
    case 2:
        a.act = (ox_act_args){
            .x = x, .y = y, .rows = n, .dim = dim, .ldx = dim, .ldy = dim, .act = OX_ACT_SILU};
        return MICRO_LAUNCH(c, act, &a, n, 1, err);
    case 3:
        a.glu = (ox_glu_args){.gate = x,
                              .up = x2,
                              .y = y,
                              .rows = n,
                              .dim = dim,
                              .ld_gate = dim,
                              .ld_up = dim,
                              .ldy = dim,
                              .act = OX_ACT_SILU};
        return MICRO_LAUNCH(c, glu, &a, n, 1, err);
    case 4:
        a.scale = (ox_scale_args){.x = x,
                                  .y = y,
                                  .rows = n,
                                  .dim = dim,
                                  .ldx = dim,
                                  .ldy = dim,
                                  .scale = 0.5f,
                                  .softcap = 30.0f};
        return MICRO_LAUNCH(c, scale, &a, n, 1, err);
    default:
        a.add = (ox_add_args){
            .a = x, .b = x2, .y = y, .rows = n, .dim = dim, .lda = dim, .ldb = dim, .ldy = dim};
        return MICRO_LAUNCH(c, add, &a, n, 1, err);
    }
}

/* a elements of type kind to float32 */
ox_status ox_micro_half(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t n = (size_t)row->a;
    void *src = ox_micro_values(c, (ox_dtype)row->kind, n, err);
    float *dst = ox_micro_floats(c, n, err);
    if (!src || !dst) return OX_NO_MEMORY;
    const micro_args a = {
        .convert_half = {
            .src = src, .dst = dst, .from = (ox_dtype)row->kind, .to = OX_DTYPE_F32, .n = n}};
    bytes_cost(c, n * 6);
    return MICRO_LAUNCH(c, convert_half, &a, n, 64, err);
}

/* [a, b] by packed weights [c, b] of type kind */
ox_status ox_micro_dense(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t m = (size_t)row->a, k = (size_t)row->b, n = (size_t)row->c;
    const ox_dtype t = (ox_dtype)row->kind;
    void *raw = ox_micro_values(c, t, n * k, err);
    ox_fpack *pack = ox_micro_bytes(c, sizeof(*pack), err);
    float *x = ox_micro_floats(c, m * k, err), *y = ox_micro_floats(c, m * n, err);
    size_t bytes;
    if (!raw || !pack || !x || !y) return OX_NO_MEMORY;
    const ox_weight w = {.name = OX_STR("weight"),
                         .format = t == OX_DTYPE_F32 ? OX_FORMAT_F32 : OX_FORMAT_F16,
                         .rows = row->c,
                         .cols = row->b,
                         .data = raw,
                         .bytes = n * k * (t == OX_DTYPE_F32 ? 4 : 2)};
    const ox_weight *list = &w;
    OX_TRY(ox_fpack_plan(pack, &list, 1, &bytes, err));
    pack->data = ox_micro_bytes(c, bytes, err);
    if (!pack->data) return OX_NO_MEMORY;
    OX_TRY(ox_fpack_fill(pack, &list, 1, 0, ox_fpack_tiles(pack), err));
    const micro_args a = {.matmul = {.x = x, .y = y, .rows = m, .ldx = k, .ldy = n, .w = pack}};
    c->cost.unit = "flop";
    c->cost.work = c->cost.float_ops = 2.0 * (double)m * (double)n * (double)k;
    c->cost.bytes = (double)(bytes + (m * k + m * n) * 4);
    return MICRO_LAUNCH(c, matmul, &a, ox_fpack_tiles(pack), 1, err);
}

/* n rows of k in GGUF's 4- or 8-bit blocks of 32 codes behind one float16 scale */
static ox_status block_weight(ox_micro_case *c, ox_weight *w, int32_t bits, int32_t n, int32_t k,
                              ox_err *err)
{
    const ox_format format = bits == 4 ? OX_FORMAT_Q4_0 : OX_FORMAT_Q8_0;
    const size_t block = ox_format_block_bytes(format);
    assert(block);
    const size_t bytes = (size_t)n * (size_t)(k / ox_format_block(format)) * block;
    uint8_t *raw = ox_micro_bytes(c, bytes, err);
    if (!raw) return OX_NO_MEMORY;
    for (size_t i = 0; i < bytes; i++)
        raw[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t i = 0; i < bytes; i += block) {
        const uint16_t scale = ox_f32_to_f16(0.005f + (float)(i / block % 61) * 1e-4f);
        memcpy(raw + i, &scale, 2);
    }
    *w = (ox_weight){.name = OX_STR("weight"),
                     .format = format,
                     .rows = n,
                     .cols = k,
                     .data = raw,
                     .bytes = bytes};
    return OX_OK;
}

/* [rows, k] quantised for weights of that width; runs now, not with the case */
static ox_status quantised(ox_micro_case *c, ox_qact **out, const float *x, size_t rows, size_t k,
                           int32_t bits, int32_t planes, ox_err *err)
{
    size_t bytes;
    ox_qact *q = *out = ox_micro_bytes(c, sizeof(*q), err);
    if (!q) return OX_NO_MEMORY;
    *q = ox_qact_shape(rows, k, 32, bits, planes);
    if (!ox_qact_bytes(q, &bytes)) return OX_FAIL(err, OX_LIMIT, "%zu activations", rows);
    q->data = ox_micro_bytes(c, bytes, err);
    if (!q->data) return OX_NO_MEMORY;
    const ox_quantize_args a = {.x = x, .ldx = k, .y = q};
    ox_quantize_ref(&a, 0, rows);
    return OX_OK;
}

/* [a, b] by packed weights [c, b]; kind = 10 * bits + planes, planes 0 = float activations */
ox_status ox_micro_qlinear(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const int32_t bits = row->kind / 10, planes = row->kind % 10;
    const size_t m = (size_t)row->a, k = (size_t)row->b, n = (size_t)row->c;
    ox_weight *w = ox_micro_bytes(c, sizeof(*w), err);
    ox_qpack *pack = ox_micro_bytes(c, sizeof(*pack), err);
    float *x = ox_micro_floats(c, m * k, err), *y = ox_micro_floats(c, m * n, err);
    ox_qact *q = NULL;
    if (!w || !pack || !x || !y) return OX_NO_MEMORY;
    OX_TRY(block_weight(c, w, bits, row->c, row->b, err));
    const ox_weight *list = w;
    OX_TRY(ox_qpack_shape(pack, &list, 1, false, err));
    pack->data = ox_micro_bytes(c, pack->bytes, err);
    if (!pack->data) return OX_NO_MEMORY;
    OX_TRY(ox_qpack_fill(pack, &list, 1, 0, pack->units, err));
    if (planes) OX_TRY(quantised(c, &q, x, m, k, bits, planes, err));
    const micro_args a = {
        .qlinear = {
            .w = pack, .x = q, .xf = planes ? NULL : x, .ldx = k, .rows = m, .y = y, .ldy = n}};
    const double ops = 2.0 * (double)m * (double)n * (double)k;
    c->cost.unit = "flop";
    c->cost.work = ops;
    c->cost.bytes = (double)(pack->bytes + m * n * 4) + (double)(m * k) * (planes ? planes : 4);
    *(planes ? &c->cost.int8_ops : &c->cost.float_ops) = ops * (planes ? planes : 1);
    return planes ? MICRO_LAUNCH(c, qlinear, &a, pack->units, 1, err)
                  : MICRO_LAUNCH(c, qexact, &a, pack->units, 1, err);
}

/* kind = 10 * bits + planes; [a, b] */
ox_status ox_micro_quantize(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t m = (size_t)row->a, k = (size_t)row->b;
    const int32_t planes = row->kind % 10;
    const float *x = ox_micro_floats(c, m * k, err);
    ox_qact *q;
    if (!x) return OX_NO_MEMORY;
    OX_TRY(quantised(c, &q, x, m, k, row->kind / 10, planes, err));
    const micro_args a = {.quantize = {.x = x, .ldx = k, .y = q}};
    bytes_cost(c, m * k * (4 + (size_t)planes));
    return MICRO_LAUNCH(c, quantize, &a, m, 1, err);
}

/* a rows at the end of b positions of cache of type kind */
static ox_status cache_view(ox_micro_case *c, ox_kv_view *v, const micro_row *row, ox_err *err)
{
    const size_t rows = (size_t)row->a;
    const int32_t positions = row->b > row->a ? row->b : row->a;
    const size_t pages = ((size_t)positions + OX_KV_PAGE - 1) / OX_KV_PAGE;
    const ox_dtype t = (ox_dtype)row->kind;
    const size_t part = ox_kv_bytes(KV_HEADS, HEAD_SIZE, t);
    int32_t *pos = ox_micro_bytes(c, rows * sizeof(*pos), err);
    void **table = ox_micro_bytes(c, (pages + 1) * sizeof(*table), err);
    char *data = ox_micro_values(c, t, pages * 2 * part / ox_kv_element(t), err);
    if (!pos || !table || !data) return OX_NO_MEMORY;
    for (size_t i = 0; i < rows; i++)
        pos[i] = positions - (int32_t)(rows - i);
    for (size_t i = 0; i < pages; i++)
        table[i] = data + i * 2 * part;
    table[pages] = table; /* the one sequence's list of pages */
    *v = (ox_kv_view){.tables = (void *const *const *)&table[pages],
                      .pos = pos,
                      .dtype = t,
                      .v_offset = part,
                      .n_kv_heads = KV_HEADS,
                      .head_size = HEAD_SIZE,
                      .v_head_size = HEAD_SIZE};
    return OX_OK;
}

/* a rows that attend b positions */
ox_status ox_micro_attend(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t rows = (size_t)row->a, dim = HEADS * HEAD_SIZE;
    micro_args a = {
        .attend = {.rows = rows, .ldq = dim, .ldo = dim, .n_heads = HEADS, .scale = 0.125f}};
    const float *q = ox_micro_floats(c, rows * dim, err);
    float *out = ox_micro_floats(c, rows * dim, err);
    if (!q || !out) return OX_NO_MEMORY;
    a.attend.q = q;
    a.attend.out = out;
    OX_TRY(cache_view(c, &a.attend.view, row, err));
    double keys = 0;
    for (size_t i = 0; i < rows; i++)
        keys += (double)a.attend.view.pos[i] + 1;
    c->cost.unit = "flop";
    c->cost.work = c->cost.float_ops = keys * HEADS * HEAD_SIZE * 4;
    c->cost.bytes =
        (double)row->b * KV_HEADS * HEAD_SIZE * 2 * (double)ox_kv_element(a.attend.view.dtype);
    return MICRO_LAUNCH(c, attend, &a, ox_attend_units(&a.attend), 1, err);
}

ox_status ox_micro_kv_append(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t rows = (size_t)row->a, dim = KV_HEADS * HEAD_SIZE;
    micro_args a = {.kv_append = {.rows = rows, .ldk = dim, .ldv = dim}};
    a.kv_append.k = ox_micro_floats(c, rows * dim, err);
    a.kv_append.v = ox_micro_floats(c, rows * dim, err);
    if (!a.kv_append.k || !a.kv_append.v) return OX_NO_MEMORY;
    OX_TRY(cache_view(c, &a.kv_append.view, row, err));
    bytes_cost(c, rows * dim * 2 * (4 + ox_kv_element(a.kv_append.view.dtype)));
    return MICRO_LAUNCH(c, kv_append, &a, rows, 1, err);
}

/* a rows of b heads of size c */
ox_status ox_micro_rotate(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t rows = (size_t)row->a, heads = (size_t)row->b, size = (size_t)row->c;
    const size_t dim = heads * size, half = size / 2;
    float *x = ox_micro_floats(c, rows * dim, err);
    float *table = ox_micro_floats(c, rows * half, err);
    int32_t *pos = ox_micro_bytes(c, rows * sizeof(*pos), err);
    if (!x || !table || !pos) return OX_NO_MEMORY;
    for (size_t i = 0; i < rows * half; i++)
        table[i] = 0.70710677f; /* turned in place again and again: lengths must stay */
    for (size_t i = 0; i < rows; i++)
        pos[i] = (int32_t)i;
    const micro_args a = {.rotate = {.x = x,
                                     .rows = rows,
                                     .ldx = dim,
                                     .n_heads = heads,
                                     .head_size = size,
                                     .rotary = size,
                                     .cos_table = table,
                                     .sin_table = table,
                                     .pos = pos}};
    bytes_cost(c, rows * dim * 8);
    return MICRO_LAUNCH(c, rotate, &a, rows, 1, err);
}

/* a rows of an 8-bit table [c, b] */
ox_status ox_micro_embed(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t n = (size_t)row->a, dim = (size_t)row->b;
    ox_weight *table = ox_micro_bytes(c, sizeof(*table), err);
    int32_t *ids = ox_micro_bytes(c, n * sizeof(*ids), err);
    float *y = ox_micro_floats(c, n * dim, err);
    if (!table || !ids || !y) return OX_NO_MEMORY;
    OX_TRY(block_weight(c, table, 8, row->c, row->b, err));
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(i * 97 % (size_t)row->c);
    const micro_args a = {
        .embed = {.table = table, .ids = ids, .y = y, .rows = n, .ldy = dim, .scale = 1.0f}};
    bytes_cost(c, n * (dim * 4 + dim / 32 * 34));
    return MICRO_LAUNCH(c, embed, &a, n, 1, err);
}

/* the b best of a */
ox_status ox_micro_select(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const size_t dim = (size_t)row->a, k = (size_t)row->b;
    float *x = ox_micro_floats(c, dim, err), *values = ox_micro_floats(c, k, err);
    int32_t *ids = ox_micro_bytes(c, k * sizeof(*ids), err);
    if (!x || !values || !ids) return OX_NO_MEMORY;
    for (size_t i = 0; i < dim; i++)
        x[i] = (float)((i * 1103515245u + 12345u) % 1048573u) / 65536.0f - 8.0f;
    const micro_args a = {
        .select = {
            .x = x, .ids = ids, .values = values, .rows = 1, .dim = dim, .k = k, .ldx = dim}};
    bytes_cost(c, dim * 4);
    return MICRO_LAUNCH(c, select, &a, 1, 1, err);
}
