/* infer.h - types and shapes of every value of a graph, with symbols. */
#ifndef OX_OPS_INFER_H
#define OX_OPS_INFER_H
#include "ops/op.h"

/* Fills dtype, rank and dims of node outputs, in subgraphs too. Dimensions known before stay when a
 * rule knows less; a contradiction between a rule and the file is OX_BAD_FILE naming the node.
 * Operators that the catalogue lacks leave their outputs as they are. */
ox_status ox_graph_infer(ox_graph *g, ox_err *err);
#endif
