/* plan.h - a graph in terms becomes a list of calls with memory offsets, decided before any run.
 *
 * Planning walks the terms in order and lets the rows of phases.def take as many as one call may do
 * at once; then buffers get offsets from their lifetimes (count pass, place pass) for each shape
 * class. Immutable after build. */
#ifndef OX_PLAN_PLAN_H
#define OX_PLAN_PLAN_H
#include "backend/backend.h"

/* How activations meet block-quantised weights, in every phase of work alike. */
typedef enum ox_numerics {
    OX_NUMERICS_FAST, /* 16-bit integers a block: error of a product some 1e-5, bits equal on every
                         tier, for any number of rows and threads */
    OX_NUMERICS_FASTER, /* 8-bit integers a block, as other engines do: some 5e-3 */
    OX_NUMERICS_EXACT,  /* float32 */
} ox_numerics;

typedef struct ox_plan_options {
    ox_numerics numerics;
    const char *switches; /* OXGEN_PASSES: "-name,-name" turns phases off; NULL = all on */
} ox_plan_options;

typedef struct ox_plan {
    ox_arena arena;
    const ox_graph *graph;
    ox_backend *backend; /* borrowed */
    OX_VEC(ox_call) calls;
    OX_VEC(ox_buffer) buffers;
    size_t *offsets[OX_CLASS_COUNT]; /* [buffers] bytes from the arena's start */
    size_t arena_bytes[OX_CLASS_COUNT];
    int32_t max_rows[OX_CLASS_COUNT];
    ox_operand logits; /* wanted rows */
    int32_t vocab;
} ox_plan;

/* The graph must be in terms and outlive the plan. Binds every call; weights are prepared by
 * ox_backend_ops.prepare afterwards. */
ox_status ox_plan_open(ox_plan **out, const ox_graph *terms, ox_backend *backend,
                       const ox_plan_options *o, ox_err *err);
void ox_plan_close(ox_plan **plan);
bool ox_plan_has_phase(ox_str name); /* a name of phases.def */
/* One line a call: phase, kernel rows per class, operands with offsets, weight. */
void ox_plan_print(const ox_plan *plan, ox_buf *out);
#endif
