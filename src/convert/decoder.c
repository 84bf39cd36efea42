/* decoder.c - see decoder.h. Terms and their values carry the names that written graphs use
 * (roles.def). */
#include "convert/decoder.h"

#include <stdio.h>

enum { NAME_MAX_BYTES = 160 };

typedef struct builder {
    ox_graph *g;
    const ox_hparams *hp;
    const ox_tensors *tensors;
    const ox_quant_choice *q;
    const ox_rotary *rotary[2];
} builder;

static void format_name(char *out, const char *pattern, int32_t layer, const char *suffix)
{
    const char *mark = strstr(pattern, "%d");
    if (!mark)
        snprintf(out, NAME_MAX_BYTES, "%s%s", pattern, suffix);
    else
        snprintf(out, NAME_MAX_BYTES, "%.*s%d%s%s", (int)(mark - pattern), pattern, layer, mark + 2,
                 suffix);
}

/* The tensor of a role, checked to be [rows, cols]; *out NULL when it may be and is absent. */
static ox_status get(const builder *b, ox_role role, int32_t layer, const char *suffix,
                     int64_t rows, int64_t cols, bool optional, const ox_weight **out, ox_err *err)
{
    const char *pattern = ox_role_pattern(b->hp, role);
    char name[NAME_MAX_BYTES];
    ox_weight w;
    bool found = false;
    *out = NULL;
    if (!pattern) return OX_FAIL(err, OX_UNSUPPORTED, "the file has no name for a tensor it needs");
    format_name(name, pattern, layer, suffix);
    OX_TRY(b->tensors->find(b->tensors->user, name, &w, &found, err));
    if (!found && optional) return OX_OK;
    if (!found)
        return OX_FAIL(err, OX_BAD_FILE,
                       "tensor %s [%lld, %lld] is missing: the file is incomplete", name,
                       (long long)rows, (long long)cols);
    if (w.rows != rows || w.cols != cols)
        return OX_FAIL(err, OX_BAD_FILE, "tensor %s: expected [%lld, %lld], found [%lld, %lld]",
                       name, (long long)rows, (long long)cols, (long long)w.rows,
                       (long long)w.cols);
    OX_TRY(ox_weight_check(&w, err));
    ox_weight *copy = ox_arena_take(b->g->arena, sizeof *copy);
    if (!copy) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for tensor %s", name);
    *copy = w;
    *out = copy;
    return OX_OK;
}

/* Rows [first, first+n) of a matrix as a weight of their own; no copy. */
static ox_status view_rows(const builder *b, const ox_weight *w, int64_t first, int64_t n,
                           const ox_weight **out, ox_err *err)
{
    ox_weight *view = ox_arena_take(b->g->arena, sizeof *view);
    if (!view)
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for tensor %.*s", OX_STR_ARGS(w->name));
    const size_t row_bytes = w->bytes / (size_t)w->rows;
    *view = *w;
    view->rows = n;
    view->data = (const char *)w->data + (size_t)first * row_bytes;
    view->bytes = (size_t)n * row_bytes;
    *out = view;
    return OX_OK;
}

/* The same for a bias, whose one row has the outputs as columns. */
static ox_status view_bias(const builder *b, const ox_weight *bias, int64_t first, int64_t n,
                           const ox_weight **out, ox_err *err)
{
    *out = NULL;
    if (!bias) return OX_OK;
    ox_weight *view = ox_arena_take(b->g->arena, sizeof *view);
    if (!view)
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for tensor %.*s", OX_STR_ARGS(bias->name));
    const size_t item = bias->bytes / (size_t)bias->cols;
    *view = *bias;
    view->cols = n;
    view->data = (const char *)bias->data + (size_t)first * item;
    view->bytes = (size_t)n * item;
    *out = view;
    return OX_OK;
}

/* What q makes of a matrix. */
static ox_status remake(const builder *b, const ox_weight **w, bool is_head, ox_err *err)
{
    static const ox_format floats[OX_QUANT_COUNT] = {[OX_QUANT_F16] = OX_FORMAT_F16,
                                                     [OX_QUANT_BF16] = OX_FORMAT_BF16,
                                                     [OX_QUANT_F32] = OX_FORMAT_F32};
    const ox_quant_choice *q = b->q;
    const ox_format have = (*w)->format;
    if (!q || q->kind == OX_QUANT_KEEP) return OX_OK;
    const int32_t bits = ox_quant_bits(q, is_head);
    if (bits) return ox_quantize_weight(w, b->g->arena, *w, q, bits, err);
    if (q->kind == OX_QUANT_INT4 || q->kind == OX_QUANT_INT8) return OX_OK; /* 16-bit head */
    const bool is_float = have == OX_FORMAT_F32 || have == OX_FORMAT_F16 || have == OX_FORMAT_BF16;
    if (have == floats[q->kind] || (is_float && q->kind == OX_QUANT_F32)) return OX_OK;
    return ox_convert_weight(w, b->g->arena, *w, floats[q->kind], err);
}

static ox_status add(const builder *b, const ox_term *t, const char *pattern, int32_t layer,
                     ox_value_id x, ox_value_id *y, ox_err *err)
{
    char name[NAME_MAX_BYTES];
    format_name(name, pattern, layer, "");
    return ox_graph_add_term(b->g, t, ox_str_of(name), &x, 1, y, err);
}

static ox_status add2(const builder *b, const ox_term *t, const char *pattern, int32_t layer,
                      const ox_value_id x[2], ox_value_id *y, ox_err *err)
{
    char name[NAME_MAX_BYTES];
    format_name(name, pattern, layer, "");
    return ox_graph_add_term(b->g, t, ox_str_of(name), x, 2, y, err);
}

/* gamma as the norm multiplies by it: some files store gamma - 1. */
static ox_status get_gamma(const builder *b, ox_role role, int32_t layer, int32_t n,
                           const ox_weight **out, ox_err *err)
{
    OX_TRY(get(b, role, layer, ".weight", 1, n, false, out, err));
    if (!b->hp->one_plus_norm) return OX_OK;
    ox_weight *w = ox_arena_take(b->g->arena, sizeof *w);
    float *gamma = ox_arena_take_n(b->g->arena, (size_t)n, sizeof *gamma);
    if (!w || !gamma) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a norm's weight");
    ox_weight_row_f32(*out, 0, gamma);
    for (int32_t i = 0; i < n; i++)
        gamma[i] += 1.0f;
    *w = (ox_weight){.name = (*out)->name,
                     .format = OX_FORMAT_F32,
                     .rows = 1,
                     .cols = n,
                     .data = gamma,
                     .bytes = (size_t)n * sizeof *gamma};
    *out = w;
    return OX_OK;
}

/* x <- norm(x); group 0 = whole rows. */
static ox_status norm(const builder *b, ox_role role, int32_t layer, int32_t group, ox_value_id *x,
                      ox_err *err)
{
    ox_term t = {.kind = OX_TERM_NORM, .epsilon = b->hp->epsilon, .group = group};
    OX_TRY(get_gamma(b, role, layer, group ? group : b->hp->hidden, &t.weight, err));
    return add(b, &t, ox_role_node(b->hp, role), layer, *x, x, err);
}

static ox_status linear(const builder *b, ox_role role, int32_t layer, const ox_weight *w,
                        const ox_weight *bias, ox_value_id x, ox_value_id *y, ox_err *err)
{
    ox_term t = {.kind = OX_TERM_LINEAR, .weight = w, .bias = bias, .accuracy_level = 4};
    OX_TRY(remake(b, &t.weight, false, err));
    return add(b, &t, ox_role_node(b->hp, role), layer, x, y, err);
}

/* A matrix and its bias straight from the file. */
static ox_status project(const builder *b, ox_role role, int32_t layer, const int64_t shape[2],
                         bool has_bias, ox_value_id x, ox_value_id *y, ox_err *err)
{
    const ox_weight *w, *bias = NULL;
    OX_TRY(get(b, role, layer, ".weight", shape[0], shape[1], false, &w, err));
    if (has_bias || b->hp->is_gguf) /* GGUF states biases by having them */
        OX_TRY(get(b, role, layer, ".bias", 1, shape[0], !has_bias, &bias, err));
    return linear(b, role, layer, w, bias, x, y, err);
}

static ox_status project_qkv(const builder *b, int32_t layer, ox_value_id x, ox_value_id qkv[3],
                             ox_err *err)
{
    static const ox_role roles[3] = {OX_ROLE_Q, OX_ROLE_K, OX_ROLE_V};
    const ox_hparams *hp = b->hp;
    const int64_t nq = (int64_t)hp->n_heads * hp->head_size;
    const int64_t nkv = (int64_t)hp->n_kv_heads * hp->head_size, n[3] = {nq, nkv, nkv};
    const ox_weight *packed = NULL, *packed_bias = NULL;
    if (hp->fused) {
        OX_TRY(get(b, OX_ROLE_QKV, layer, ".weight", nq + 2 * nkv, hp->hidden, true, &packed, err));
        OX_TRY(get(b, OX_ROLE_QKV, layer, ".bias", 1, nq + 2 * nkv, !hp->qkv_bias || !packed,
                   &packed_bias, err));
    }
    for (int i = 0, first = 0; i < 3; first += (int)n[i++]) {
        const int64_t shape[2] = {n[i], hp->hidden};
        if (!packed) {
            OX_TRY(project(b, roles[i], layer, shape, hp->qkv_bias, x, &qkv[i], err));
            continue;
        }
        const ox_weight *w, *bias;
        OX_TRY(view_rows(b, packed, first, n[i], &w, err));
        OX_TRY(view_bias(b, packed_bias, first, n[i], &bias, err));
        OX_TRY(linear(b, roles[i], layer, w, bias, x, &qkv[i], err));
    }
    return OX_OK;
}

/* Tables are made when the first layer needs them: by then its matrices have proved that sizes in
 * the metadata are those of the data. */
static ox_status rotate(builder *b, int32_t layer, int32_t n_heads, const char *pattern,
                        ox_value_id *x, ox_err *err)
{
    const bool local = b->hp->local_rope && b->hp->windowed[layer];
    if (!b->rotary[local])
        OX_TRY(ox_rope_build(&b->rotary[local], b->g->arena, &b->hp->rope[local], b->hp->context,
                             err));
    const ox_term t = {.kind = OX_TERM_ROTATE,
                       .n_heads = n_heads,
                       .head_size = b->hp->head_size,
                       .rotary = b->rotary[local]};
    return add(b, &t, pattern, layer, *x, x, err);
}

/* x <- output projection of attention over x */
static ox_status attention(builder *b, int32_t layer, ox_value_id *x, ox_err *err)
{
    const ox_hparams *hp = b->hp;
    const ox_cache cache = {.n_kv_heads = hp->n_kv_heads,
                            .head_size = hp->head_size,
                            .v_head_size = hp->head_size,
                            .dtype = OX_DTYPE_F32};
    ox_value_id qkv[3], y;
    char name[NAME_MAX_BYTES];
    OX_TRY(project_qkv(b, layer, *x, qkv, err));
    if (hp->qk_norm) {
        OX_TRY(norm(b, OX_ROLE_Q_NORM, layer, hp->head_size, &qkv[0], err));
        OX_TRY(norm(b, OX_ROLE_K_NORM, layer, hp->head_size, &qkv[1], err));
    }
    OX_TRY(rotate(b, layer, hp->n_heads, "/model/layers.%d/attn/q_rotary/RotaryEmbedding", &qkv[0],
                  err));
    OX_TRY(rotate(b, layer, hp->n_kv_heads, "/model/layers.%d/attn/k_rotary/RotaryEmbedding",
                  &qkv[1], err));
    ox_term t = {.kind = OX_TERM_ATTEND,
                 .scale = hp->attend_scale,
                 .softcap = hp->attend_softcap,
                 .n_heads = hp->n_heads,
                 .n_kv_heads = hp->n_kv_heads,
                 .head_size = hp->head_size,
                 .v_head_size = hp->head_size,
                 .window = hp->windowed[layer] ? hp->window : 0};
    OX_TRY(ox_graph_add_cache(b->g, &cache, &t.cache, err));
    format_name(name, "/model/layers.%d/attn/GroupQueryAttention", layer, "");
    OX_TRY(ox_graph_add_term(b->g, &t, ox_str_of(name), qkv, 3, &y, err));
    const int64_t shape[2] = {hp->hidden, (int64_t)hp->n_heads * hp->head_size};
    return project(b, OX_ROLE_O, layer, shape, hp->o_bias, y, x, err);
}

/* x <- down(act(gate(x)) * up(x)) */
static ox_status mlp(const builder *b, int32_t layer, ox_value_id *x, ox_err *err)
{
    const ox_hparams *hp = b->hp;
    const int64_t in[2] = {hp->n_ff, hp->hidden}, out[2] = {hp->hidden, hp->n_ff};
    const ox_term glu = {.kind = OX_TERM_GLU, .act = hp->act};
    ox_value_id halves[2], y;
    if (hp->fused) {
        const ox_weight *both, *w;
        OX_TRY(get(b, OX_ROLE_GATE_UP, layer, ".weight", 2 * in[0], in[1], false, &both, err));
        OX_TRY(view_rows(b, both, 0, in[0], &w, err));
        OX_TRY(linear(b, OX_ROLE_GATE, layer, w, NULL, *x, &halves[0], err));
        OX_TRY(view_rows(b, both, in[0], in[0], &w, err));
        OX_TRY(linear(b, OX_ROLE_UP, layer, w, NULL, *x, &halves[1], err));
    } else {
        OX_TRY(project(b, OX_ROLE_GATE, layer, in, hp->mlp_bias, *x, &halves[0], err));
        OX_TRY(project(b, OX_ROLE_UP, layer, in, hp->mlp_bias, *x, &halves[1], err));
    }
    OX_TRY(add2(b, &glu, "/model/layers.%d/mlp/Mul", layer, halves, &y, err));
    return project(b, OX_ROLE_DOWN, layer, out, hp->mlp_bias, y, x, err);
}

static ox_status layer_terms(builder *b, int32_t layer, ox_value_id *x, ox_err *err)
{
    const ox_term sum = {.kind = OX_TERM_ADD};
    ox_value_id y = *x;
    OX_TRY(norm(b, OX_ROLE_ATTN_NORM, layer, 0, &y, err));
    OX_TRY(attention(b, layer, &y, err));
    if (b->hp->post_norms) OX_TRY(norm(b, OX_ROLE_POST_ATTN_NORM, layer, 0, &y, err));
    OX_TRY(add2(b, &sum, "/model/layers.%d/attn/residual_add/Add", layer, (ox_value_id[]){*x, y}, x,
                err));
    y = *x;
    OX_TRY(norm(b, OX_ROLE_FFN_NORM, layer, 0, &y, err));
    OX_TRY(mlp(b, layer, &y, err));
    if (b->hp->post_norms) OX_TRY(norm(b, OX_ROLE_POST_FFN_NORM, layer, 0, &y, err));
    return add2(b, &sum, "/model/layers.%d/mlp/residual_add/Add", layer, (ox_value_id[]){*x, y}, x,
                err);
}

static ox_status add_head(const builder *b, const ox_weight *w, const ox_weight *bias,
                          ox_value_id x, ox_err *err)
{
    const ox_term t = {.kind = OX_TERM_HEAD,
                       .weight = w,
                       .bias = bias,
                       .scale = 1,
                       .softcap = b->hp->logit_softcap,
                       .accuracy_level = 4};
    ox_value_id logits;
    OX_TRY(add(b, &t, ox_role_node(b->hp, OX_ROLE_HEAD), 0, x, &logits, err));
    if (!ox_vec_push(&b->g->outputs, logits))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for the graph");
    return OX_OK;
}

/* The embedding and the head's matrix; one object for both when they are tied. */
static ox_status tables(builder *b, const ox_weight **table, const ox_weight **matrix,
                        const ox_weight **bias, ox_err *err)
{
    const ox_hparams *hp = b->hp;
    const bool floats = b->q && b->q->kind >= OX_QUANT_F16;
    OX_TRY(get(b, OX_ROLE_EMBED, 0, ".weight", hp->vocab, hp->hidden, false, table, err));
    OX_TRY(get(b, OX_ROLE_HEAD, 0, ".weight", hp->vocab, hp->hidden, hp->tied, matrix, err));
    OX_TRY(get(b, OX_ROLE_HEAD, 0, ".bias", 1, hp->vocab, true, bias, err));
    const bool shared = !*matrix || (hp->tied && !hp->is_gguf);
    if (shared) *matrix = *table;
    OX_TRY(remake(b, matrix, true, err));
    if (shared)
        *table = *matrix;
    else if (floats)
        OX_TRY(remake(b, table, false, err));
    return OX_OK;
}

static ox_status add_ids(ox_graph *g, ox_value_id *ids, ox_err *err)
{
    OX_TRY(ox_graph_add_value(g, OX_STR("input_ids"), ids, err));
    const int64_t rows = ox_graph_symbol(g, OX_STR("rows"));
    ox_value *v = ox_graph_value(g, *ids);
    v->kind = OX_VALUE_INPUT;
    v->dtype = OX_DTYPE_I32;
    v->rank = 1;
    v->dims[0] = rows;
    if (!ox_vec_push(&g->inputs, *ids))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for the graph");
    return OX_OK;
}

ox_status ox_decoder_build(ox_graph *g, const ox_hparams *hp, const ox_tensors *tensors,
                           const ox_quant_choice *q, ox_err *err)
{
    builder b = {.g = g, .hp = hp, .tensors = tensors, .q = q};
    const ox_weight *table, *matrix, *bias;
    ox_value_id x;
    OX_TRY(add_ids(g, &x, err));
    OX_TRY(tables(&b, &table, &matrix, &bias, err));
    const ox_term embed = {.kind = OX_TERM_EMBED, .weight = table, .scale = hp->embed_scale};
    OX_TRY(add(&b, &embed, ox_role_node(hp, OX_ROLE_EMBED), 0, x, &x, err));
    for (int32_t layer = 0; layer < hp->n_layers; layer++)
        OX_TRY(layer_terms(&b, layer, &x, err));
    OX_TRY(norm(&b, OX_ROLE_FINAL_NORM, hp->n_layers, 0, &x, err));
    return add_head(&b, matrix, bias, x, err);
}
