/* phases.c - the fusions of phases.def. Each looks at one unplanned term; see plan_internal.h. */
#include "plan/plan_internal.h"

static bool is_planned(const ox_plan_builder *b, ox_value_id v)
{
    return b->where[v.i].buffer.i >= 0;
}

static ox_status new_output(ox_plan_builder *b, int32_t i_node, int32_t width, ox_err *err)
{
    const ox_value_id v = ox_plan_out(b, i_node);
    return ox_plan_new_buffer(b, width, false, &b->where[v.i], err);
}

static int32_t width_of(const ox_plan_builder *b, ox_value_id v)
{
    return (int32_t)b->graph->values.p[v.i].dims[1];
}

/* The linear that makes input `i` of the glu, when it can be fused into it; -1 otherwise. */
static int32_t glu_source(const ox_plan_builder *b, int32_t i_glu, uint32_t i)
{
    const ox_value_id v = ox_plan_in(b, i_glu, i);
    const int32_t producer = b->graph->values.p[v.i].producer.i;
    if (producer < 0 || b->planned[producer] || ox_plan_only_reader(b, v) != i_glu) return -1;
    return ox_plan_term(b, producer)->kind == OX_TERM_LINEAR ? producer : -1;
}

ox_status ox_phase_glu(ox_plan_builder *b, int32_t i_node, bool *took, ox_err *err)
{
    if (ox_plan_term(b, i_node)->kind != OX_TERM_LINEAR) return OX_OK;
    const int32_t i_glu = ox_plan_only_reader(b, ox_plan_out(b, i_node));
    if (i_glu < 0 || ox_plan_term(b, i_glu)->kind != OX_TERM_GLU) return OX_OK;
    const int32_t nodes[2] = {glu_source(b, i_glu, 0), glu_source(b, i_glu, 1)};
    if (nodes[0] < 0 || nodes[1] < 0 || nodes[0] == nodes[1]) return OX_OK;
    const ox_term *gate = ox_plan_term(b, nodes[0]), *up = ox_plan_term(b, nodes[1]);
    const ox_value_id x = ox_plan_in(b, nodes[0], 0);
    if (ox_plan_in(b, nodes[1], 0).i != x.i || up->weight->rows != gate->weight->rows ||
        !ox_plan_same_matrix(b, gate, up) || ox_plan_linear_kind(b, gate) == OX_CALL_LINEAR_FLOAT)
        return OX_OK;
    OX_TRY(new_output(b, i_glu, (int32_t)gate->weight->rows, err));
    OX_TRY(ox_plan_linear(b, nodes, 2, true, ox_plan_term(b, i_glu), b->where[x.i],
                          b->where[ox_plan_out(b, i_glu).i], OX_NO_OPERAND, err));
    b->planned[nodes[0]] = b->planned[nodes[1]] = b->planned[i_glu] = true;
    *took = true;
    return OX_OK;
}

ox_status ox_phase_linear_add(ox_plan_builder *b, int32_t i_node, bool *took, ox_err *err)
{
    if (ox_plan_term(b, i_node)->kind != OX_TERM_LINEAR) return OX_OK;
    const ox_value_id y = ox_plan_out(b, i_node), x = ox_plan_in(b, i_node, 0);
    const int32_t i_add = ox_plan_only_reader(b, y);
    if (i_add < 0 || ox_plan_term(b, i_add)->kind != OX_TERM_ADD) return OX_OK;
    const ox_value_id a = ox_plan_in(b, i_add, 0), c = ox_plan_in(b, i_add, 1);
    const ox_value_id residual = a.i == y.i ? c : a;
    if (a.i == c.i || !is_planned(b, residual)) return OX_OK;
    OX_TRY(new_output(b, i_add, width_of(b, y), err));
    OX_TRY(ox_plan_linear(b, &i_node, 1, false, NULL, b->where[x.i],
                          b->where[ox_plan_out(b, i_add).i], b->where[residual.i], err));
    b->planned[i_node] = b->planned[i_add] = true;
    *took = true;
    return OX_OK;
}

ox_status ox_phase_linears(ox_plan_builder *b, int32_t i_node, bool *took, ox_err *err)
{
    const ox_term *first = ox_plan_term(b, i_node);
    if (first->kind != OX_TERM_LINEAR) return OX_OK;
    int32_t nodes[OX_CALL_WEIGHTS] = {i_node}, n = 1, width = (int32_t)first->weight->rows;
    const ox_value_id x = ox_plan_in(b, i_node, 0);
    for (size_t i = (size_t)i_node + 1; i < b->graph->nodes.n && n < OX_CALL_WEIGHTS; i++) {
        const ox_node *node = &b->graph->nodes.p[i];
        if (node->dead || b->planned[i] || node->term->kind != OX_TERM_LINEAR ||
            node->inputs[0].i != x.i || !ox_plan_same_matrix(b, first, node->term))
            continue;
        /* A linear that would take a residual or a gate along is left to those phases. */
        const int32_t reader = ox_plan_only_reader(b, node->outputs[0]);
        const ox_term_kind then = reader < 0 ? OX_TERM_COUNT : ox_plan_term(b, reader)->kind;
        if (then == OX_TERM_ADD || then == OX_TERM_GLU) continue;
        nodes[n++] = (int32_t)i;
        width += (int32_t)node->term->weight->rows;
    }
    if (n == 1) return OX_OK;
    ox_operand all;
    OX_TRY(ox_plan_new_buffer(b, width, false, &all, err));
    OX_TRY(ox_plan_linear(b, nodes, n, false, NULL, b->where[x.i], all, OX_NO_OPERAND, err));
    int32_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t w = (int32_t)ox_plan_term(b, nodes[i])->weight->rows;
        b->where[ox_plan_out(b, nodes[i]).i] = (ox_operand){all.buffer, at, w};
        b->planned[nodes[i]] = true;
        at += w;
    }
    *took = true;
    return OX_OK;
}

ox_status ox_phase_rotate(ox_plan_builder *b, int32_t i_node, bool *took, ox_err *err)
{
    const ox_term *t = ox_plan_term(b, i_node);
    const ox_value_id x = ox_plan_in(b, i_node, 0);
    if (t->kind != OX_TERM_ROTATE || ox_plan_only_reader(b, x) != i_node) return OX_OK;
    const ox_call call = {
        .kind = OX_CALL_ROTATE, .term = t, .in[0] = b->where[x.i], .out = b->where[x.i]};
    OX_TRY(ox_plan_add_call(b, &call, i_node, err));
    b->where[ox_plan_out(b, i_node).i] = b->where[x.i];
    b->planned[i_node] = true;
    *took = true;
    return OX_OK;
}

ox_status ox_phase_head(ox_plan_builder *b, int32_t i_node, bool *took, ox_err *err)
{
    const ox_term *t = ox_plan_term(b, i_node);
    if (t->kind != OX_TERM_HEAD) return OX_OK;
    const ox_value_id x = ox_plan_in(b, i_node, 0);
    ox_operand rows, logits;
    OX_TRY(ox_plan_new_buffer(b, width_of(b, x), true, &rows, err));
    const ox_call gather = {
        .kind = OX_CALL_GATHER, .term = t, .in[0] = b->where[x.i], .out = rows, .wanted = true};
    OX_TRY(ox_plan_add_call(b, &gather, i_node, err));
    OX_TRY(ox_plan_new_buffer(b, (int32_t)t->weight->rows, true, &logits, err));
    OX_TRY(ox_plan_linear(b, &i_node, 1, false, NULL, rows, logits, OX_NO_OPERAND, err));
    if (t->scale != 1.0f || t->softcap > 0.0f) {
        const ox_call scale = {
            .kind = OX_CALL_SCALE, .term = t, .in[0] = logits, .out = logits, .wanted = true};
        OX_TRY(ox_plan_add_call(b, &scale, i_node, err));
    }
    b->where[ox_plan_out(b, i_node).i] = logits;
    b->planned[i_node] = true;
    *took = true;
    return OX_OK;
}

static ox_status plan_attend(ox_plan_builder *b, int32_t i_node, ox_err *err)
{
    const ox_term *t = ox_plan_term(b, i_node);
    ox_call call = {.kind = OX_CALL_APPEND, .term = t, .out = OX_NO_OPERAND};
    for (uint32_t i = 0; i < 3; i++)
        call.in[i] = b->where[ox_plan_in(b, i_node, i).i];
    OX_TRY(ox_plan_add_call(b, &call, i_node, err));
    OX_TRY(new_output(b, i_node, t->n_heads * t->v_head_size, err));
    call.kind = OX_CALL_ATTEND;
    call.out = b->where[ox_plan_out(b, i_node).i];
    return ox_plan_add_call(b, &call, i_node, err);
}

/* A rotation whose input others read too works on a copy: act-free scale by one. */
static ox_status plan_rotate_copy(ox_plan_builder *b, int32_t i_node, ox_err *err)
{
    static const ox_term copy = {.kind = OX_TERM_SCALE, .scale = 1.0f};
    const ox_value_id x = ox_plan_in(b, i_node, 0);
    OX_TRY(new_output(b, i_node, width_of(b, x), err));
    const ox_operand out = b->where[ox_plan_out(b, i_node).i];
    const ox_call c = {.kind = OX_CALL_SCALE, .term = &copy, .in[0] = b->where[x.i], .out = out};
    OX_TRY(ox_plan_add_call(b, &c, i_node, err));
    const ox_call r = {
        .kind = OX_CALL_ROTATE, .term = ox_plan_term(b, i_node), .in[0] = out, .out = out};
    return ox_plan_add_call(b, &r, i_node, err);
}

static ox_call_kind simple_kind(ox_term_kind k)
{
    static const ox_call_kind map[OX_TERM_COUNT] = {
        [OX_TERM_EMBED] = OX_CALL_EMBED, [OX_TERM_NORM] = OX_CALL_NORM,
        [OX_TERM_GLU] = OX_CALL_GLU,     [OX_TERM_ACT] = OX_CALL_ACT,
        [OX_TERM_ADD] = OX_CALL_ADD,     [OX_TERM_SCALE] = OX_CALL_SCALE,
    };
    return map[k];
}

ox_status ox_phase_single(ox_plan_builder *b, int32_t i_node, bool *took, ox_err *err)
{
    const ox_term *t = ox_plan_term(b, i_node);
    const ox_node *node = &b->graph->nodes.p[i_node];
    const ox_value_id out = ox_plan_out(b, i_node);

    if (t->kind == OX_TERM_HEAD) return ox_phase_head(b, i_node, took, err);
    *took = true;
    b->planned[i_node] = true;
    if (t->kind == OX_TERM_SLICE) {
        const ox_operand x = b->where[node->inputs[0].i];
        b->where[out.i] = (ox_operand){x.buffer, x.first + t->first, t->width};
        return OX_OK;
    }
    if (t->kind == OX_TERM_ATTEND) return plan_attend(b, i_node, err);
    if (t->kind == OX_TERM_ROTATE) return plan_rotate_copy(b, i_node, err);
    OX_TRY(new_output(b, i_node, width_of(b, out), err));
    if (t->kind == OX_TERM_LINEAR)
        return ox_plan_linear(b, &i_node, 1, false, NULL, b->where[node->inputs[0].i],
                              b->where[out.i], OX_NO_OPERAND, err);
    ox_call call = {.kind = simple_kind(t->kind), .term = t, .out = b->where[out.i]};
    for (uint32_t i = 0; i < node->n_inputs && t->kind != OX_TERM_EMBED; i++)
        call.in[i] = b->where[node->inputs[i].i];
    return ox_plan_add_call(b, &call, i_node, err);
}
