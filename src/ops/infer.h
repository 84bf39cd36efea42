/* infer.h - types and shapes of every value of a graph, with symbols. */
#ifndef OX_OPS_INFER_H
#define OX_OPS_INFER_H
#include "ops/op.h"

/* Fills dtype, rank and dims of node outputs, in subgraphs too. A number that a rule is sure of
 * replaces what the file says; where a rule knows less, the file's word stays. An element type that
 * contradicts the file is OX_BAD_FILE naming the node. Operators that the catalogue lacks leave
 * their outputs as they are. */
ox_status ox_graph_infer(ox_graph *g, ox_err *err);

/* The same; visit is called for each node output whose value is a list of known integers. */
typedef ox_status ox_infer_visit_fn(void *user, ox_graph *g, ox_value_id v, const ox_op_elem *e,
                                    int n);
ox_status ox_graph_infer_with(ox_graph *g, ox_infer_visit_fn *visit, void *user, ox_err *err);
#endif
