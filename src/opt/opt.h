/* opt.h - brings a decoder graph as written (ONNX operators) to the terms of graph/terms.h.
 *
 * The graph is read once in topological order; for every node the rules of passes.def try to say
 * its outputs in terms, built in a new graph. Rules look only backwards and look through what does
 * not change a row (casts between float types, reshapes, the reordering of heads), so one rule
 * serves every spelling around it. When the logits have been said, the new graph takes the old
 * one's place: one input (token ids), one output (logits), past and present ports become caches.
 * When some node on the way cannot be said, the old graph is left untouched and the report names
 * the node: the graph still runs operator by operator.
 *
 * Read next: opt_internal.h (what a rule sees), then any rule file. */
#ifndef OX_OPT_OPT_H
#define OX_OPT_OPT_H
#include "graph/graph.h"
#include "graph/terms.h"

/* Names of the graph's ports; "%d" stands for the layer; empty = unknown, then the only port that
 * fits by type and shape is taken. */
typedef struct ox_opt_ports {
    ox_str ids, mask, positions, past_k, past_v, logits, present_k, present_v;
    int64_t n_positions; /* positions the model is made for: length of computed rotary tables; 0 =
                          * unknown, 8192 */
} ox_opt_ports;

enum { OX_OPT_PASSES_MAX = 64, OX_OPT_REMAINING_MAX = 8, OX_OPT_REASON = 200 };

/* How often a pass did something. */
typedef struct ox_opt_change {
    const char *pass; /* name in passes.def */
    int32_t n_changes;
    bool off; /* switched off by OXGEN_PASSES */
} ox_opt_change;

/* A node that no rule could say, and why. */
typedef struct ox_opt_remaining {
    ox_str node, op_type; /* views into the graph's arena */
    char reason[OX_OPT_REASON];
} ox_opt_remaining;

typedef struct ox_opt_report {
    bool is_terms;
    size_t n_changes, n_remaining; /* rows of the arrays */
    ox_opt_change changes[OX_OPT_PASSES_MAX];
    ox_opt_remaining remaining[OX_OPT_REMAINING_MAX]; /* first = the one nearest the input */
} ox_opt_report;

/* Rewrites *g in place, or leaves it as it was (report->is_terms false, still OX_OK). Weights,
 * tables and the new graph's strings live in `arena`, which must live as long as g and may be
 * g->arena. A graph that is terms already is left alone. Which passes run: environment OXGEN_PASSES
 * =
 * "-name,-name" switches off. Fails only without memory. */
ox_status ox_opt_run(ox_graph *g, const ox_opt_ports *ports, ox_arena *arena, ox_opt_report *report,
                     ox_err *err);
/* One line a pass that did something, then the remaining nodes. */
bool ox_opt_has_pass(ox_str name); /* a name of passes.def */
void ox_opt_report_print(const ox_opt_report *report, ox_buf *out);
#endif
