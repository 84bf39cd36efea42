/* export_graph.c - terms to operators, in the names and patterns that ORT-GenAI's own model builder
 * uses, so that everything that reads its graphs reads these. Matrices are export_matrix.c,
 * attention is export_attend.c. */
#include "convert/export_internal.h"

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
    if (!t->weight)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "norm %.*s has no weight: ONNX Runtime's "
                       "operator needs one",
                       OX_STR_ARGS(n->name));
    in[n_in++] = ox_emit_vector(e, ox_emit_name(e, "%.*s.weight", OX_STR_ARGS(dotted)), &gamma);
    if (t->bias)
        in[n_in++] = ox_emit_vector(e, ox_emit_name(e, "%.*s.bias", OX_STR_ARGS(dotted)), &beta);
    const char *op =
        skip ? (t->centre ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization")
             : (t->centre ? "LayerNormalization" : "SimplifiedLayerNormalization");
    const ox_str name =
        ox_emit_name(e, "%.*s/%s", OX_STR_ARGS(base), skip ? "SkipLayerNorm" : "LayerNorm");
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
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "norm %.*s of heads: only the root-mean-square form "
                       "with a weight can be written",
                       OX_STR_ARGS(n->name));
    ox_str in[2] = {e->names[n->inputs[0].i], ox_emit_i64s(e, (int64_t[]){0, -1, t->group}, 3)};
    in[0] = ox_emit(e, "Reshape", ox_emit_name(e, "%.*s/Reshape_1", OX_STR_ARGS(base)), in, 2);
    in[1] =
        ox_emit_vector(e, ox_emit_name(e, "%.*s.layernorm.weight", OX_STR_ARGS(dotted)), &gamma);
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
        const ox_str both[2] = {
            x, ox_emit(e, "Sigmoid", ox_emit_name(e, "%.*s/act_fn/Sigmoid", OX_STR_ARGS(base)), in,
                       1)};
        *y = ox_emit(e, "Mul", ox_emit_name(e, "%.*s/act_fn/Mul", OX_STR_ARGS(base)), both, 2);
        return OX_OK;
    }
    if (gelu) {
        const bool tanh_form = act == OX_ACT_GELU_TANH;
        const ox_str name =
            ox_emit_name(e, "%.*s/act_fn/%s", OX_STR_ARGS(base), tanh_form ? "FastGelu" : "Gelu");
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
    OX_TRY(
        emit_act(e, n->term->act, ox_emit_parent(n->name), e->names[n->inputs[0].i], &in[0], err));
    in[1] = e->names[n->inputs[1].i];
    *y = ox_emit(e, "Mul", n->name, in, 2);
    return OX_OK;
}

/* y * scale, then the soft-cap; result names what comes out, "" = by the node. */
static ox_str scale_and_cap(ox_emitter *e, ox_str base, ox_str y, const ox_term *t, ox_str result)
{
    if (t->scale != 1 && t->scale != 0) {
        const ox_str in[2] = {y, ox_emit_float(e, (double)t->scale)};
        y = ox_emit_as(e, "Mul", ox_emit_name(e, "%.*s/Mul", OX_STR_ARGS(base)), in,
                       t->softcap > 0 ? OX_STR("") : result);
    }
    if (!(t->softcap > 0)) return y;
    const ox_str c = ox_emit_float(e, (double)t->softcap);
    ox_str in[2] = {y, c};
    in[0] = ox_emit(e, "Div", ox_emit_name(e, "%.*s/softcap/Div", OX_STR_ARGS(base)), in, 2);
    in[0] = ox_emit(e, "Tanh", ox_emit_name(e, "%.*s/softcap/Tanh", OX_STR_ARGS(base)), in, 1);
    return ox_emit_as(e, "Mul", ox_emit_name(e, "%.*s/softcap/Mul", OX_STR_ARGS(base)), in, result);
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
    const bool widen = e->o->io == OX_DTYPE_BF16,
               after = t->softcap > 0 || (t->scale != 1 && t->scale != 0);
    const ox_str result = widen ? OX_STR("") : OX_STR("logits");
    const ox_onnx_dim dims[3] = {
        {-1, OX_STR("batch_size")}, {-1, OX_STR("sequence_length")}, {t->weight->rows, {0}}};
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
    case OX_TERM_EMBED:
        y = ox_emit_embed(e, t);
        break;
    case OX_TERM_NORM:
        return ox_emit_norm(e, n, err);
    case OX_TERM_ATTEND:
        return ox_emit_attend(e, n, err);
    case OX_TERM_HEAD:
        return emit_head(e, n, err);
    case OX_TERM_LINEAR:
        OX_TRY(emit_linear(e, n, &y, err));
        break;
    case OX_TERM_GLU:
        OX_TRY(emit_glu(e, n, &y, err));
        break;
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
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "term %.*s (%s) cannot be written as ONNX operators here",
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
        ox_onnx_dim dims[4] = {
            batch, {c->n_kv_heads, {0}}, {-1, OX_STR("past_sequence_length")}, {c->head_size, {0}}};
        for (int v = 0; v < 2; v++)
            ox_onnx_put_input(&e->w,
                              ox_emit_name(e, "past_key_values.%zu.%s", i, v ? "value" : "key"),
                              e->o->io, 4, dims);
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
