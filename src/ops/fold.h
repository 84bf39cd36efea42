/* fold.h - nodes whose inputs are all constant become constants. */
#ifndef OX_OPS_FOLD_H
#define OX_OPS_FOLD_H
#include "ops/op.h"

/* Evaluates every node of known operators without subgraphs whose inputs are constants, and Shape
 * and Size of values of known shape, unless an output is larger than max_bytes. Results live in the
 * graph's arena; folded nodes are marked dead (ox_graph_sort drops them). A node that fails to
 * evaluate stays. Subgraphs are folded too. */
ox_status ox_graph_fold(ox_graph *g, size_t max_bytes, ox_err *err);
#endif
