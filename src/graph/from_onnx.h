/* from_onnx.h - the records of an ONNX file as IR, names kept.
 *
 * Subgraphs become graphs whose outer values are captures; initializers and Constant nodes become
 * constants (an initializer that is also an input is a constant); calls of model-local functions
 * are replaced by their bodies, whose values and nodes are named "<call>/<inner name>". Every graph
 * is sorted. The records must outlive the graph: tensors view them. */
#ifndef OX_GRAPH_FROM_ONNX_H
#define OX_GRAPH_FROM_ONNX_H
#include "file/onnx.h"
#include "graph/graph.h"

/* True: calls of this function stay nodes, because the caller has an operator of that name. */
typedef bool ox_keep_operator_fn(void *user, ox_str domain, ox_str name, int32_t version);

typedef struct ox_from_onnx_options {
    ox_keep_operator_fn *keep; /* NULL = inline every function */
    void *user;
} ox_from_onnx_options;

/* On success *out is the caller's (ox_graph_close); everything in it lives in arena. */
ox_status ox_graph_from_onnx(ox_graph **out, ox_arena *arena, const ox_onnx *o, ox_err *err);
ox_status ox_graph_from_onnx_with(ox_graph **out, ox_arena *arena, const ox_onnx *o,
                                  const ox_from_onnx_options *options, ox_err *err);
#endif
