/* fold.h - values that never change become constants. */
#ifndef OX_OPS_FOLD_H
#define OX_OPS_FOLD_H
#include "ops/op.h"

/* Infers types and shapes (ops/infer.h), then evaluates every node of known operators without
 * subgraphs whose inputs are constants, and whatever follows from known dimensions, unless an
 * output is larger than max_bytes. Results live in the graph's arena; folded nodes are marked dead
 * (ox_graph_sort drops them). A node that fails to evaluate stays. Subgraphs are folded too. */
ox_status ox_graph_fold(ox_graph *g, size_t max_bytes, ox_err *err);
#endif
