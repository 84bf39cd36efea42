/* export_attend.c - attention and what leads to it: query, key and value projections (one packed
 * matrix when their forms agree), norms of heads, and rotation, which GroupQueryAttention does
 * itself from cached cosines and sines; and the lengths that it needs, out of the mask. */
#include "convert/export_internal.h"
#include <assert.h>

#define MASK "/model/attn_mask_reformat/attn_mask_subgraph/"

typedef struct branch {
    const ox_node *rotate, *norm, *linear; /* NULL = not there */
    ox_value_id end;                       /* what attention reads */
    ox_value_id start;                     /* where the chain begins */
} branch;

static bool private_to(const ox_emitter *e, const ox_node *n)
{
    return n && ox_graph_uses(e->g, n->outputs[0]) == 1;
}

/* Walks back from an operand of attention over nodes that nothing else reads. */
static branch find_branch(const ox_emitter *e, ox_value_id v)
{
    branch b = {.end = v, .start = v};
    const ox_node *n = ox_emit_producer(e, v);
    if (private_to(e, n) && n->term->kind == OX_TERM_ROTATE) {
        b.rotate = n;
        b.start = n->inputs[0];
        n = ox_emit_producer(e, b.start);
    }
    if (private_to(e, n) && n->term->kind == OX_TERM_NORM && n->term->group) {
        b.norm = n;
        b.start = n->inputs[0];
        n = ox_emit_producer(e, b.start);
    }
    if (private_to(e, n) && n->term->kind == OX_TERM_LINEAR) {
        b.linear = n;
        b.start = n->inputs[0];
    }
    return b;
}

static void absorb(ox_emitter *e, const ox_node *n)
{
    if (n) e->absorbed[n - e->g->nodes.p] = true;
}

void ox_emit_absorb(ox_emitter *e)
{
    for (size_t i = 0; i < e->g->nodes.n; i++) {
        const ox_node *n = &e->g->nodes.p[i];
        if (n->dead || n->term->kind != OX_TERM_ATTEND) continue;
        for (int k = 0; k < 3; k++) {
            const branch b = find_branch(e, n->inputs[k]);
            absorb(e, b.rotate);
            absorb(e, b.norm);
            absorb(e, b.linear);
        }
    }
}

void ox_emit_lengths(ox_emitter *e)
{
    const ox_str mask = OX_STR("attention_mask");
    const int64_t one = 1;
    const ox_str ones = ox_emit_i64s(e, &one, 1);
    ox_emit_begin(e, "ReduceSum", false, OX_STR(MASK "ReduceSum"), (ox_str[]){mask, ones}, 2);
    ox_onnx_attr_int(&e->w, "keepdims", 0);
    const ox_str sum = ox_emit_end(e, OX_STR(MASK "ReduceSum/output_0"));
    const ox_str less = ox_emit(e, "Sub", OX_STR(MASK "Sub"), (ox_str[]){sum, ones}, 2);
    ox_emit_begin(e, "Cast", false, OX_STR(MASK "Sub/Cast"), &less, 1);
    ox_onnx_attr_int(&e->w, "to", OX_DTYPE_I32);
    ox_emit_end(e, OX_STR(MASK "Sub/Cast/output_0"));
    const ox_str shape = ox_emit(e, "Shape", OX_STR(MASK "Shape"), &mask, 1);
    ox_emit_begin(e, "Gather", false, OX_STR(MASK "Gather"), (ox_str[]){shape, ox_emit_i64(e, 1)},
                  2);
    ox_onnx_attr_int(&e->w, "axis", 0);
    const ox_str total = ox_emit_end(e, OX_STR(MASK "Gather/output_0"));
    ox_emit_begin(e, "Cast", false, OX_STR(MASK "Gather/Cast"), &total, 1);
    ox_onnx_attr_int(&e->w, "to", OX_DTYPE_I32);
    ox_emit_end(e, OX_STR(MASK "Gather/Cast/output_0"));
}

/* A branch of an If that hands out two tables of the data file, which the outer graph holds. */
static void put_choice(ox_emitter *e, const char *attr, const char *which, ox_str cos_name,
                       ox_str sin_name)
{
    ox_onnx_graph_writer body = {0};
    const ox_str tables[2] = {cos_name, sin_name};
    for (int i = 0; i < 2; i++) {
        const ox_str out = ox_emit_name(e, "%.*s/%s", OX_STR_ARGS(tables[i]), which);
        const ox_str node =
            ox_emit_name(e, "/%s/%s/Identity", which, i ? "sin_cache" : "cos_cache");
        ox_onnx_begin_node(&body, OX_STR("Identity"), OX_STR(""), node);
        ox_onnx_put_operand(&body, tables[i]);
        ox_onnx_put_result(&body, out);
        ox_onnx_end_node(&body);
        ox_onnx_put_output(&body, out, e->o->io, -1, NULL);
    }
    ox_onnx_attr_graph(&e->w, attr, &body, ox_emit_name(e, "%s_rope_caches_graph", which));
    ox_onnx_graph_writer_deinit(&body);
}

/* Names of the tables of a rule; the first time, their tensors and, when one of two sets is chosen
 * by the total length, the choice. */
static void rotary_tables(ox_emitter *e, const ox_rotary *r, ox_str out[2])
{
    const int64_t half = r->rotary / 2, n = r->n_positions;
    int i = 0;
    while (i < 2 && e->rotary[i] && e->rotary[i] != r)
        i++;
    const char *which = i ? "_local" : "";
    const bool is_new = i < 2 && !e->rotary[i];
    if (is_new) e->rotary[i] = r;
    if (i == 2) e->failed = true; /* refused before: see check_rotary */
    out[0] = ox_emit_name(e, "cos_cache%s", which);
    out[1] = ox_emit_name(e, "sin_cache%s", which);
    if (!r->long_cos) {
        ox_emit_floats(e, out[0], r->cos_table, n, half);
        ox_emit_floats(e, out[1], r->sin_table, n, half);
        return;
    }
    if (!is_new) return;
    const int64_t n_short = r->switch_length < n ? r->switch_length : n;
    const ox_str sets[4] = {
        ox_emit_name(e, "cos_cache%s_small", which), ox_emit_name(e, "sin_cache%s_small", which),
        ox_emit_name(e, "cos_cache%s_large", which), ox_emit_name(e, "sin_cache%s_large", which)};
    ox_emit_floats(e, sets[0], r->cos_table, n_short, half);
    ox_emit_floats(e, sets[1], r->sin_table, n_short, half);
    ox_emit_floats(e, sets[2], r->long_cos, n, half);
    ox_emit_floats(e, sets[3], r->long_sin, n, half);
    const ox_str in[2] = {OX_STR(MASK "Gather/output_0"), ox_emit_i64(e, r->switch_length)};
    const ox_str base = OX_STR("/model/rope_caches_subgraph");
    const ox_str more =
        ox_emit(e, "Greater", ox_emit_name(e, "%s%s/Greater", base.p, which), in, 2);
    ox_emit_begin(e, "If", false, ox_emit_name(e, "%s%s/If", base.p, which), &more, 1);
    put_choice(e, "then_branch", "large", sets[2], sets[3]);
    put_choice(e, "else_branch", "small", sets[0], sets[1]);
    ox_onnx_put_result(&e->w, out[0]);
    ox_emit_end(e, out[1]);
}

static ox_status refuse(const ox_node *n, const char *why, ox_err *err)
{
    return OX_FAIL(err, OX_UNSUPPORTED,
                   "%.*s cannot be written as ONNX Runtime's GroupQueryAttention: %s",
                   OX_STR_ARGS(n->name), why);
}

/* What GroupQueryAttention of ONNX Runtime takes. */
static ox_status check(const ox_emitter *e, const ox_node *n, const branch b[3], ox_err *err)
{
    const ox_term *t = n->term;
    const ox_rotary *q = b[0].rotate ? b[0].rotate->term->rotary : NULL;
    const ox_rotary *k = b[1].rotate ? b[1].rotate->term->rotary : NULL;
    if (b[2].rotate || b[2].norm || q != k) return refuse(n, "q and k turn differently", err);
    if (t->head_size != t->v_head_size) return refuse(n, "keys and values differ in size", err);
    if (t->head_size % 8) return refuse(n, "the head size must be a multiple of 8", err);
    if (!q) return OX_OK;
    if (t->head_size % 16 || q->rotary % 16)
        return refuse(n,
                      "with rotation the head size and the rotary channels must be multiples "
                      "of 16",
                      err);
    if (e->rotary[0] && e->rotary[1] && q != e->rotary[0] && q != e->rotary[1])
        return refuse(n, "the graph has more than two rotary rules", err);
    return OX_OK;
}

/* True when q, k and v are one matrix in the file: same operand, same form, biases all or none. */
static bool can_pack(const ox_emitter *e, const branch b[3])
{
    ox_form first;
    if (!b[0].linear) return false;
    for (int i = 0; i < 3; i++) {
        if (!b[i].linear || b[i].norm || b[i].start.i != b[0].start.i) return false;
        const ox_form f = ox_form_matrix(b[i].linear->term->weight, e->o, false);
        if (!i) first = f;
        if (!ox_form_same(&f, &first)) return false;
        if (!b[i].linear->term->bias != !b[0].linear->term->bias) return false;
    }
    return true;
}

/* How the rows of a projection are written, see ox_pairs. */
static ox_pairs pairs_of(const branch *b, bool unpair)
{
    const ox_rotary *r = b->rotate ? b->rotate->term->rotary : NULL;
    if (!r || !r->interleaved || !unpair) return (ox_pairs){0, 0};
    return (ox_pairs){b->rotate->term->head_size, r->rotary};
}

static ox_status project(ox_emitter *e, const branch *b, bool unpair, ox_err *err)
{
    if (b->linear) {
        ox_matmul m = {.base = ox_emit_parent(b->linear->name),
                       .x = e->names[b->linear->inputs[0].i],
                       .n_parts = 1,
                       .terms = {b->linear->term},
                       .pairs = {pairs_of(b, unpair)}};
        m.form = ox_form_matrix(m.terms[0]->weight, e->o, false);
        OX_TRY(ox_emit_matmul(e, &m, &e->names[b->linear->outputs[0].i], err));
    }
    if (b->norm) OX_TRY(ox_emit_norm(e, b->norm, err));
    if (b->rotate) e->names[b->end.i] = e->names[b->rotate->inputs[0].i];
    return OX_OK;
}

static ox_status project_packed(ox_emitter *e, const ox_node *n, const branch b[3], bool unpair,
                                ox_str *y, ox_err *err)
{
    ox_matmul m = {.base = ox_emit_name(e, "%.*s/qkv_proj", OX_STR_ARGS(ox_emit_parent(n->name))),
                   .x = e->names[b[0].start.i],
                   .n_parts = 3};
    for (int i = 0; i < 3; i++) {
        assert(b[i].linear); /* can_pack */
        m.terms[i] = b[i].linear->term;
        m.pairs[i] = pairs_of(&b[i], unpair);
    }
    m.form = ox_form_matrix(m.terms[0]->weight, e->o, false);
    return ox_emit_matmul(e, &m, y, err);
}

static void put_attrs(ox_emitter *e, const ox_term *t, bool rotary, bool interleaved)
{
    ox_onnx_attr_int(&e->w, "num_heads", t->n_heads);
    ox_onnx_attr_int(&e->w, "kv_num_heads", t->n_kv_heads);
    ox_onnx_attr_float(&e->w, "scale", t->scale);
    ox_onnx_attr_int(&e->w, "local_window_size", t->window > 0 ? t->window : -1);
    ox_onnx_attr_float(&e->w, "softcap", t->softcap);
    ox_onnx_attr_int(&e->w, "do_rotary", rotary);
    ox_onnx_attr_int(&e->w, "rotary_interleaved", interleaved);
}

ox_status ox_emit_attend(ox_emitter *e, const ox_node *n, ox_err *err)
{
    const ox_term *t = n->term;
    ox_str in[12] = {{0}}, tables[2] = {{0}};
    branch b[3];
    for (int i = 0; i < 3; i++)
        b[i] = find_branch(e, n->inputs[i]);
    OX_TRY(check(e, n, b, err));
    const ox_rotary *rotary = b[0].rotate ? b[0].rotate->term->rotary : NULL;
    const bool unpair = b[0].linear && b[1].linear && !b[0].norm && !b[1].norm;
    if (can_pack(e, b)) {
        OX_TRY(project_packed(e, n, b, unpair, &in[0], err));
    } else {
        for (int i = 0; i < 3; i++) {
            OX_TRY(project(e, &b[i], unpair, err));
            in[i] = e->names[n->inputs[i].i];
        }
    }
    if (rotary) rotary_tables(e, rotary, tables);
    in[3] = ox_emit_name(e, "past_key_values.%d.key", t->cache.i);
    in[4] = ox_emit_name(e, "past_key_values.%d.value", t->cache.i);
    in[5] = OX_STR(MASK "Sub/Cast/output_0");
    in[6] = OX_STR(MASK "Gather/Cast/output_0");
    in[7] = tables[0];
    in[8] = tables[1];
    if (t->sinks) {
        ox_job sinks = {.n_parts = 1, .parts = {t->sinks}};
        const ox_str base = ox_emit_dotted(e, ox_emit_parent(n->name));
        in[11] = ox_emit_vector(e, ox_emit_name(e, "%.*s.sinks", OX_STR_ARGS(base)), &sinks);
    }
    ox_emit_begin(e, "GroupQueryAttention", true, n->name, in, t->sinks ? 12 : 9);
    put_attrs(e, t, rotary != NULL, rotary && rotary->interleaved && !unpair);
    const ox_str y = ox_emit_name(e, "%.*s/output_0", OX_STR_ARGS(n->name));
    ox_onnx_put_result(&e->w, y);
    ox_onnx_put_result(&e->w, ox_emit_name(e, "present.%d.key", t->cache.i));
    ox_emit_end(e, ox_emit_name(e, "present.%d.value", t->cache.i));
    e->names[n->outputs[0].i] = y;
    return OX_OK;
}
