/* plan_internal.h - the builder that phases write through. */
#ifndef OX_PLAN_INTERNAL_H
#define OX_PLAN_INTERNAL_H
#include "plan/plan.h"

typedef struct ox_plan_builder {
    ox_plan *plan;
    const ox_graph *graph;
    const ox_plan_options *options;
    ox_operand *where; /* [values] operand that holds a value; buffer -1 = not planned yet */
    bool *planned;     /* [nodes] */
    uint32_t *n_uses;  /* [values] live readers, graph outputs included */
    OX_VEC(struct ox_quantized) quantized; /* inputs already in int8 form */
    const char *phase;                     /* name of the phase row at work */
} ox_plan_builder;

struct ox_quantized {
    ox_operand from, to;
    int32_t block, bits, planes;
};

/* A phase looks at the unplanned term i_node and either plans it (and others) or leaves *took
 * false. */
typedef ox_status ox_phase_fn(ox_plan_builder *b, int32_t i_node, bool *took, ox_err *err);
#define OX_PHASE(name, fn, what) ox_phase_fn fn;
#include "plan/phases.def"
#undef OX_PHASE

static inline const ox_term *ox_plan_term(const ox_plan_builder *b, int32_t i_node)
{
    return b->graph->nodes.p[i_node].term;
}
static inline ox_value_id ox_plan_in(const ox_plan_builder *b, int32_t i_node, uint32_t i)
{
    return b->graph->nodes.p[i_node].inputs[i];
}
static inline ox_value_id ox_plan_out(const ox_plan_builder *b, int32_t i_node)
{
    return b->graph->nodes.p[i_node].outputs[0];
}
/* The only live reader of v, or -1 when there are none, several, or it is a graph output. */
int32_t ox_plan_only_reader(const ox_plan_builder *b, ox_value_id v);

ox_status ox_plan_new_buffer(ox_plan_builder *b, int32_t width, bool wanted, ox_operand *out,
                             ox_err *err);
/* Appends; fills name, phase and, when term is set, nothing else. */
ox_status ox_plan_add_call(ox_plan_builder *b, const ox_call *call, int32_t i_node, ox_err *err);
/* Plans linears (their weights concatenated; gate and up when pairs) from operand x into out:
 * chooses int8, exact or float form and quantises x once. */
ox_status ox_plan_linear(ox_plan_builder *b, const int32_t *nodes, int32_t n_nodes, bool pairs,
                         const ox_term *glu, ox_operand x, ox_operand out, ox_operand add,
                         ox_err *err);
/* True when two linear-like terms can be one matrix: same class and code layout. */
bool ox_plan_same_matrix(const ox_plan_builder *b, const ox_term *a, const ox_term *c);
ox_call_kind ox_plan_linear_kind(const ox_plan_builder *b, const ox_term *t);

/* repeat.c: which calls every worker does for itself in steps of one row, and the barriers left. */
ox_status ox_plan_repeat(ox_plan *plan, ox_err *err);

/* offsets.c */
ox_status ox_plan_place(ox_plan *plan, ox_err *err);
#endif
