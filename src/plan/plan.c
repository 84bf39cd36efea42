/* plan.c - walks the terms, lets phases plan them, then binds and places. See plan.h. */
#include "plan/plan_internal.h"

#include <string.h>

typedef struct phase_row {
    const char *name;
    ox_phase_fn *fn;
} phase_row;

static const phase_row phases[] = {
#define OX_PHASE(name, fn, what) {name, fn},
#include "plan/phases.def"
#undef OX_PHASE
};

int32_t ox_plan_only_reader(const ox_plan_builder *b, ox_value_id v)
{
    if (b->n_uses[v.i] != 1) return -1;
    for (size_t i = 0; i < b->graph->nodes.n; i++) {
        const ox_node *n = &b->graph->nodes.p[i];
        for (uint32_t k = 0; !n->dead && k < n->n_inputs; k++)
            if (n->inputs[k].i == v.i) return (int32_t)i;
    }
    return -1;
}

ox_status ox_plan_new_buffer(ox_plan_builder *b, int32_t width, bool wanted, ox_operand *out,
                             ox_err *err)
{
    const ox_buffer buffer = {.width = width, .wanted = wanted, .first_call = -1, .last_call = -1};
    if (!ox_vec_push(&b->plan->buffers, buffer))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    *out = (ox_operand){{(int32_t)b->plan->buffers.n - 1}, 0, width};
    return OX_OK;
}

static void touch(ox_plan *p, ox_operand o, int32_t i_call)
{
    if (o.buffer.i < 0) return;
    ox_buffer *b = &p->buffers.p[o.buffer.i];
    if (b->first_call < 0) b->first_call = i_call;
    b->last_call = i_call;
}

ox_status ox_plan_add_call(ox_plan_builder *b, const ox_call *call, int32_t i_node, ox_err *err)
{
    ox_plan *p = b->plan;
    if (!ox_vec_push(&p->calls, *call)) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    ox_call *c = &p->calls.p[p->calls.n - 1];
    const int32_t i_call = (int32_t)p->calls.n - 1;
    c->name = b->graph->nodes.p[i_node].name.p;
    c->phase = b->phase;
    c->barrier = true;
    /* Operands that a kind does not have are zero-initialised by designated initialisers: make
     * them absent. Buffer 0 with width 0 cannot be a real operand. */
    for (int i = 0; i < OX_CALL_INPUTS; i++)
        if (!c->in[i].width) c->in[i] = OX_NO_OPERAND;
    if (!c->out.width) c->out = OX_NO_OPERAND;
    if (!c->add.width) c->add = OX_NO_OPERAND;
    for (int i = 0; i < OX_CALL_INPUTS; i++)
        touch(p, c->in[i], i_call);
    touch(p, c->out, i_call);
    touch(p, c->add, i_call);
    return OX_OK;
}

ox_call_kind ox_plan_linear_kind(const ox_plan_builder *b, const ox_term *t)
{
    if (!ox_weight_code_layout(t->weight).bits) return OX_CALL_LINEAR_FLOAT;
    return b->options->numerics == OX_NUMERICS_EXACT || b->plan->backend->ops->float_activations
               ? OX_CALL_LINEAR_EXACT
               : OX_CALL_LINEAR_INT;
}

/* A file that asks for more than 8-bit activations (accuracy_level below 4) always gets them. */
static int32_t planes_for(const ox_plan_builder *b, const ox_term *t)
{
    return b->options->numerics == OX_NUMERICS_FASTER && t->accuracy_level >= 4 ? 1 : 2;
}

bool ox_plan_same_matrix(const ox_plan_builder *b, const ox_term *a, const ox_term *c)
{
    const ox_code_layout la = ox_weight_code_layout(a->weight);
    const ox_code_layout lc = ox_weight_code_layout(c->weight);
    return ox_plan_linear_kind(b, a) == ox_plan_linear_kind(b, c) &&
           planes_for(b, a) == planes_for(b, c) && la.bits == lc.bits && la.block == lc.block &&
           la.zero == lc.zero && la.scale_f16 == lc.scale_f16 &&
           a->weight->cols == c->weight->cols &&
           (la.bits || a->weight->format == c->weight->format);
}

/* The int8 form of operand x for codes of this layout, made once per input. */
static ox_status quantized(ox_plan_builder *b, ox_operand x, ox_code_layout layout, int32_t planes,
                           int32_t i_node, ox_operand *out, ox_err *err)
{
    for (size_t i = 0; i < b->quantized.n; i++) {
        const struct ox_quantized *q = &b->quantized.p[i];
        if (q->from.buffer.i == x.buffer.i && q->from.first == x.first &&
            q->block == layout.block && q->bits == layout.bits && q->from.width == x.width &&
            q->planes == planes) {
            *out = q->to;
            return OX_OK;
        }
    }
    const bool wanted = b->plan->buffers.p[x.buffer.i].wanted;
    OX_TRY(ox_plan_new_buffer(b, x.width, wanted, out, err));
    ox_buffer *buffer = &b->plan->buffers.p[out->buffer.i];
    buffer->quant_block = layout.block;
    buffer->quant_bits = layout.bits;
    buffer->quant_planes = planes;
    const ox_call call = {.kind = OX_CALL_QUANTIZE, .in[0] = x, .out = *out, .wanted = wanted};
    OX_TRY(ox_plan_add_call(b, &call, i_node, err));
    const struct ox_quantized q = {x, *out, layout.block, layout.bits, planes};
    if (!ox_vec_push(&b->quantized, q)) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    return OX_OK;
}

/* A buffer that is written again no longer matches its int8 form. */
static void forget_quantized(ox_plan_builder *b, ox_operand written)
{
    for (size_t i = 0; i < b->quantized.n; i++)
        if (b->quantized.p[i].from.buffer.i == written.buffer.i)
            b->quantized.p[i--] = b->quantized.p[--b->quantized.n];
}

ox_status ox_plan_linear(ox_plan_builder *b, const int32_t *nodes, int32_t n_nodes, bool pairs,
                         const ox_term *glu, ox_operand x, ox_operand out, ox_operand add,
                         ox_err *err)
{
    const ox_term *t = ox_plan_term(b, nodes[0]);
    ox_call call = {.kind = ox_plan_linear_kind(b, t),
                    .term = glu ? glu : t,
                    .out = out,
                    .add = add,
                    .pairs = pairs,
                    .n_weights = n_nodes};
    call.wanted = b->plan->buffers.p[out.buffer.i].wanted;
    for (int32_t i = 0; i < n_nodes; i++) {
        call.weights[i] = ox_plan_term(b, nodes[i])->weight;
        call.biases[i] = ox_plan_term(b, nodes[i])->bias;
    }
    if (call.kind == OX_CALL_LINEAR_INT)
        OX_TRY(quantized(b, x, ox_weight_code_layout(t->weight), planes_for(b, t), nodes[0],
                         &call.in[0], err));
    else
        call.in[0] = x;
    forget_quantized(b, out);
    return ox_plan_add_call(b, &call, nodes[0], err);
}

bool ox_plan_has_phase(ox_str name)
{
    for (size_t i = 0; i < OX_COUNT(phases); i++)
        if (ox_str_is(name, phases[i].name)) return true;
    return false;
}

static bool is_off(const char *switches, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = switches; at && *at;) {
        const char *comma = strchr(at, ',');
        const size_t len = comma ? (size_t)(comma - at) : strlen(at);
        if (len == n + 1 && at[0] == '-' && !memcmp(at + 1, name, n)) return true;
        at = comma ? comma + 1 : NULL;
    }
    return false;
}

static ox_status plan_terms(ox_plan_builder *b, ox_err *err)
{
    for (size_t i = 0; i < b->graph->nodes.n; i++) {
        bool took = b->graph->nodes.p[i].dead || b->planned[i];
        for (size_t k = 0; k < OX_COUNT(phases) && !took; k++) {
            const bool last = k + 1 == OX_COUNT(phases);
            if (!last && is_off(b->options->switches, phases[k].name)) continue;
            b->phase = phases[k].name;
            OX_TRY(phases[k].fn(b, (int32_t)i, &took, err));
        }
    }
    return OX_OK;
}

static void count_uses(ox_plan_builder *b)
{
    const ox_graph *g = b->graph;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        for (uint32_t k = 0; !n->dead && k < n->n_inputs; k++)
            if (ox_value_is(n->inputs[k])) b->n_uses[n->inputs[k].i]++;
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        b->n_uses[g->outputs.p[i].i] += 2; /* never "the only reader" */
}

static ox_status builder_open(ox_plan_builder *b, ox_err *err)
{
    const size_t n_values = b->graph->values.n, n_nodes = b->graph->nodes.n;
    b->where = ox_alloc(n_values * sizeof(*b->where));
    b->planned = ox_calloc(n_nodes, sizeof(*b->planned));
    b->n_uses = ox_calloc(n_values, sizeof(*b->n_uses));
    if (!b->where || !b->planned || !b->n_uses)
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    for (size_t i = 0; i < n_values; i++)
        b->where[i] = OX_NO_OPERAND;
    count_uses(b);
    return OX_OK;
}

static void builder_close(ox_plan_builder *b)
{
    ox_free(b->where);
    ox_free(b->planned);
    ox_free(b->n_uses);
    ox_vec_deinit(&b->quantized);
}

/* Calls that split the step's rows over the team in the same way: what one wrote, the same worker
 * reads in the next. */
static bool is_row_call(const ox_call *c)
{
    static const bool row[OX_CALL_COUNT] = {
        [OX_CALL_EMBED] = true,  [OX_CALL_NORM] = true,   [OX_CALL_QUANTIZE] = true,
        [OX_CALL_ROTATE] = true, [OX_CALL_APPEND] = true, [OX_CALL_GLU] = true,
        [OX_CALL_ACT] = true,    [OX_CALL_ADD] = true,    [OX_CALL_SCALE] = true,
    };
    return row[c->kind];
}

/* In steps of several rows. */
static void place_barriers(ox_plan *p)
{
    for (size_t i = 0; i < p->calls.n; i++) {
        ox_call *c = &p->calls.p[i], *before = i ? c - 1 : NULL;
        c->barrier =
            before && !(is_row_call(c) && (is_row_call(before) || before->kind == OX_CALL_GATHER) &&
                        c->wanted == before->wanted);
    }
}

static ox_status bind_all(ox_plan *p, ox_err *err)
{
    for (size_t i = 0; i < p->calls.n; i++)
        OX_TRY(p->backend->ops->bind(p->backend, &p->calls.p[i], p->buffers.p, err));
    return OX_OK;
}

ox_status ox_plan_open(ox_plan **out, const ox_graph *terms, ox_backend *backend,
                       const ox_plan_options *o, ox_err *err)
{
    ox_status st = OX_OK;
    ox_plan_builder b = {.graph = terms, .options = o};

    *out = NULL;
    ox_plan *p = ox_calloc(1, sizeof(*p));
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    p->graph = terms;
    p->backend = backend;
    b.plan = p;
    if (!ox_graph_is_terms(terms) || terms->outputs.n != 1) {
        st = OX_FAIL(err, OX_UNSUPPORTED, "the graph is not a decoder in terms with one output");
        goto fail;
    }
    OX_TRY_GOTO(builder_open(&b, err));
    OX_TRY_GOTO(plan_terms(&b, err));
    p->logits = b.where[terms->outputs.p[0].i];
    if (p->logits.buffer.i < 0 || !p->buffers.p[p->logits.buffer.i].wanted) {
        st = OX_FAIL(err, OX_UNSUPPORTED, "the graph's output is not the result of a head");
        goto fail;
    }
    p->vocab = p->logits.width;
    p->buffers.p[p->logits.buffer.i].is_logits = true;
    place_barriers(p);
    OX_TRY_GOTO(ox_plan_repeat(p, err));
    OX_TRY_GOTO(bind_all(p, err));
    OX_TRY_GOTO(ox_plan_place(p, err));
    *out = p;
    p = NULL;
fail:
    builder_close(&b);
    ox_plan_close(&p);
    return st;
}

void ox_plan_close(ox_plan **plan)
{
    ox_plan *p = *plan;
    if (!p) return;
    for (size_t i = 0; i < p->calls.n; i++)
        p->backend->ops->unbind(p->backend, &p->calls.p[i]);
    ox_vec_deinit(&p->calls);
    ox_vec_deinit(&p->buffers);
    ox_arena_deinit(&p->arena);
    ox_free(p);
    *plan = NULL;
}
