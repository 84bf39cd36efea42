/* onnx_write.h - writes an ONNX model: nodes, values and tensors are appended one by one, encoded
 * at once into the pieces of a graph, and put together at the end.
 *
 *     ox_onnx_graph_writer g = {0};
 *     ox_onnx_put_input(&g, OX_STR("input_ids"), OX_DTYPE_I64, 2, dims);
 *     ox_onnx_put_external(&g, name, OX_DTYPE_F16, 2, sizes, OX_STR("model.onnx.data"), at, bytes);
 *     ox_onnx_begin_node(&g, OX_STR("MatMul"), OX_STR(""), OX_STR("/lm_head/MatMul"));
 *     ox_onnx_put_operand(&g, a); ox_onnx_put_operand(&g, b);  (inputs; empty string = absent)
 *     ox_onnx_put_result(&g, y);
 *     ox_onnx_attr_int(&g, "K", 896);
 *     ox_onnx_end_node(&g);
 *     ox_onnx_put_output(&g, ...);
 *     ox_onnx_model_write(&bytes, &g, &info, err);
 *
 * Memory failures are sticky and reported by ox_onnx_model_write. Strings are copied. Bytes of
 * external data are the caller's business. One owner; not thread safe. */
#ifndef OX_FILE_ONNX_WRITE_H
#define OX_FILE_ONNX_WRITE_H
#include "file/onnx.h"

typedef struct ox_onnx_graph_writer {
    ox_buf nodes, tensors, inputs, outputs, values; /* encoded fields of GraphProto */
    ox_buf node, part, inner;                       /* the node under way, scratch */
    size_t n_nodes, n_tensors;
    bool in_node;
} ox_onnx_graph_writer;

void ox_onnx_graph_writer_deinit(ox_onnx_graph_writer *g);

/* Values. dims[rank]; a dimension is a value >= 0, a symbol, or -1 without one. rank -1 = no shape.
 * ox_onnx_put_value is value_info of an inner value. */
void ox_onnx_put_input(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                       const ox_onnx_dim *dims);
void ox_onnx_put_output(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                        const ox_onnx_dim *dims);
void ox_onnx_put_value(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                       const ox_onnx_dim *dims);

/* Initializers: bytes inside the file (raw_data, or string_data for OX_DTYPE_STRING), or a
 * reference to [offset, offset+length) of the file `location` beside the model. */
void ox_onnx_put_tensor(ox_onnx_graph_writer *g, ox_str name, const ox_tensor *t);
void ox_onnx_put_external(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                          const int64_t *dims, ox_str location, uint64_t offset, uint64_t length);

/* Nodes: begin, any number of operands, results and attributes in any order, end. */
void ox_onnx_begin_node(ox_onnx_graph_writer *g, ox_str op_type, ox_str domain, ox_str name);
void ox_onnx_put_operand(ox_onnx_graph_writer *g, ox_str name);
void ox_onnx_put_result(ox_onnx_graph_writer *g, ox_str name);
void ox_onnx_attr_int(ox_onnx_graph_writer *g, const char *name, int64_t v);
void ox_onnx_attr_float(ox_onnx_graph_writer *g, const char *name, float v);
void ox_onnx_attr_str(ox_onnx_graph_writer *g, const char *name, ox_str v);
void ox_onnx_attr_ints(ox_onnx_graph_writer *g, const char *name, const int64_t *v, size_t n);
void ox_onnx_attr_floats(ox_onnx_graph_writer *g, const char *name, const float *v, size_t n);
void ox_onnx_attr_strs(ox_onnx_graph_writer *g, const char *name, const ox_str *v, size_t n);
void ox_onnx_attr_tensor(ox_onnx_graph_writer *g, const char *name, const ox_tensor *t);
void ox_onnx_attr_graph(ox_onnx_graph_writer *g, const char *name, ox_onnx_graph_writer *body,
                        ox_str body_name);
void ox_onnx_end_node(ox_onnx_graph_writer *g);

typedef struct ox_onnx_model_info {
    int64_t ir_version; /* 0 = 10 */
    ox_str producer, producer_version, graph_name;
    const ox_onnx_opset *opsets; /* [n_opsets] */
    size_t n_opsets;
    const ox_str *metadata; /* [2*n_metadata] key, value pairs */
    size_t n_metadata;
} ox_onnx_model_info;

/* Appends the serialized ModelProto to *out. Fails with OX_NO_MEMORY, and with OX_LIMIT at 2 GiB
 * (put tensors outside then). The graph writer stays valid. */
ox_status ox_onnx_model_write(ox_buf *out, ox_onnx_graph_writer *g, const ox_onnx_model_info *info,
                              ox_err *err);
#endif
