/* onnx_write.c - see onnx_write.h. Every piece of a graph is a run of finished GraphProto fields,
 * so putting a model together is concatenation behind length
 * prefixes. Field numbers: onnx.proto. */
#include "file/onnx_write.h"

#include "file/proto.h"

#include <assert.h>

enum { DEFAULT_IR = 10, MAX_MODEL = 0x7fffffff };
enum { GRAPH_NODE = 1, GRAPH_TENSOR = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_VALUE = 13 };
enum { TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14 };

void ox_onnx_graph_writer_deinit(ox_onnx_graph_writer *g)
{
    ox_buf *const all[] = {&g->nodes,  &g->tensors, &g->inputs, &g->outputs,
                           &g->values, &g->node,    &g->part,   &g->inner};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        ox_buf_deinit(all[i]);
    *g = (ox_onnx_graph_writer){0};
}

static void put_dim(ox_buf *shape, ox_onnx_dim d)
{
    ox_buf dim = {0};
    if (d.value >= 0)
        ox_proto_put_int(&dim, 1, d.value);
    else if (d.symbol.n)
        ox_proto_put_len(&dim, 2, d.symbol);
    ox_proto_put_part(shape, 1, &dim);
    ox_buf_deinit(&dim);
}

/* TypeProto of a tensor. */
static void put_type(ox_buf *out, uint32_t field, ox_dtype dtype, int32_t rank,
                     const ox_onnx_dim *dims)
{
    ox_buf shape = {0}, tensor = {0}, type = {0};
    for (int32_t i = 0; i < rank; i++)
        put_dim(&shape, dims[i]);
    ox_proto_put_int(&tensor, 1, dtype);
    if (rank >= 0) ox_proto_put_part(&tensor, 2, &shape);
    ox_proto_put_part(&type, 1, &tensor);
    ox_proto_put_part(out, field, &type);
    ox_buf_deinit(&shape);
    ox_buf_deinit(&tensor);
    ox_buf_deinit(&type);
}

/* ValueInfoProto */
static void put_value(ox_onnx_graph_writer *g, ox_buf *out, uint32_t field, ox_str name,
                      ox_dtype dtype, int32_t rank, const ox_onnx_dim *dims)
{
    ox_proto_put_len(&g->part, 1, name);
    put_type(&g->part, 2, dtype, rank, dims);
    ox_proto_put_part(out, field, &g->part);
}

void ox_onnx_put_input(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                       const ox_onnx_dim *dims)
{
    put_value(g, &g->inputs, GRAPH_INPUT, name, dtype, rank, dims);
}

void ox_onnx_put_output(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                        const ox_onnx_dim *dims)
{
    put_value(g, &g->outputs, GRAPH_OUTPUT, name, dtype, rank, dims);
}

void ox_onnx_put_value(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                       const ox_onnx_dim *dims)
{
    put_value(g, &g->values, GRAPH_VALUE, name, dtype, rank, dims);
}

static void put_dims_and_type(ox_buf *out, ox_dtype dtype, int32_t rank, const int64_t *dims)
{
    for (int32_t i = 0; i < rank; i++)
        ox_proto_put_int(out, 1, dims[i]);
    ox_proto_put_int(out, 2, dtype);
}

/* TensorProto with its values inside, appended to *out. */
static void put_tensor(ox_buf *out, ox_str name, const ox_tensor *t)
{
    size_t n, bytes;
    put_dims_and_type(out, t->dtype, t->rank, t->dims);
    if (name.n) ox_proto_put_len(out, TENSOR_NAME, name);
    if (!ox_tensor_count(t, &n) || !ox_tensor_bytes(t, &bytes)) {
        out->failed = true;
    } else if (t->dtype == OX_DTYPE_STRING) {
        for (size_t i = 0; i < n; i++)
            ox_proto_put_len(out, 6, ((const ox_str *)t->data)[i]);
    } else {
        ox_proto_put_len(out, TENSOR_RAW, (ox_str){t->data, bytes});
    }
}

void ox_onnx_put_tensor(ox_onnx_graph_writer *g, ox_str name, const ox_tensor *t)
{
    put_tensor(&g->part, name, t);
    ox_proto_put_part(&g->tensors, GRAPH_TENSOR, &g->part);
    g->n_tensors++;
}

static void put_entry(ox_buf *out, ox_buf *scratch, uint32_t field, ox_str key, ox_str value)
{
    ox_proto_put_len(scratch, 1, key);
    ox_proto_put_len(scratch, 2, value);
    ox_proto_put_part(out, field, scratch);
}

void ox_onnx_put_external(ox_onnx_graph_writer *g, ox_str name, ox_dtype dtype, int32_t rank,
                          const int64_t *dims, ox_str location, uint64_t offset, uint64_t length)
{
    ox_buf number = {0};
    put_dims_and_type(&g->part, dtype, rank, dims);
    ox_proto_put_len(&g->part, TENSOR_NAME, name);
    put_entry(&g->part, &g->inner, TENSOR_EXTERNAL, OX_STR("location"), location);
    ox_buf_printf(&number, "%llu", (unsigned long long)offset);
    put_entry(&g->part, &g->inner, TENSOR_EXTERNAL, OX_STR("offset"), ox_buf_view(&number));
    if (number.failed) g->part.failed = true;
    ox_buf_clear(&number);
    ox_buf_printf(&number, "%llu", (unsigned long long)length);
    put_entry(&g->part, &g->inner, TENSOR_EXTERNAL, OX_STR("length"), ox_buf_view(&number));
    if (number.failed) g->part.failed = true;
    ox_proto_put_int(&g->part, TENSOR_LOCATION, 1);
    ox_proto_put_part(&g->tensors, GRAPH_TENSOR, &g->part);
    g->n_tensors++;
    ox_buf_deinit(&number);
}

void ox_onnx_begin_node(ox_onnx_graph_writer *g, ox_str op_type, ox_str domain, ox_str name)
{
    assert(!g->in_node);
    g->in_node = true;
    ox_proto_put_len(&g->node, 4, op_type);
    if (name.n) ox_proto_put_len(&g->node, 3, name);
    if (domain.n) ox_proto_put_len(&g->node, 7, domain);
}

void ox_onnx_put_operand(ox_onnx_graph_writer *g, ox_str name)
{
    ox_proto_put_len(&g->node, 1, name);
}

void ox_onnx_put_result(ox_onnx_graph_writer *g, ox_str name)
{
    ox_proto_put_len(&g->node, 2, name);
}

/* AttributeProto: name first, then whatever the caller adds to the returned buffer, then end. */
static ox_buf *attr_begin(ox_onnx_graph_writer *g, const char *name, ox_onnx_attr_type type)
{
    assert(g->in_node);
    ox_proto_put_len(&g->part, 1, ox_str_of(name));
    ox_proto_put_int(&g->part, 20, type);
    return &g->part;
}

static void attr_end(ox_onnx_graph_writer *g)
{
    ox_proto_put_part(&g->node, 5, &g->part);
}

void ox_onnx_attr_int(ox_onnx_graph_writer *g, const char *name, int64_t v)
{
    ox_proto_put_int(attr_begin(g, name, OX_ONNX_ATTR_INT), 3, v);
    attr_end(g);
}

void ox_onnx_attr_float(ox_onnx_graph_writer *g, const char *name, float v)
{
    ox_proto_put_f32(attr_begin(g, name, OX_ONNX_ATTR_FLOAT), 2, v);
    attr_end(g);
}

void ox_onnx_attr_str(ox_onnx_graph_writer *g, const char *name, ox_str v)
{
    ox_proto_put_len(attr_begin(g, name, OX_ONNX_ATTR_STRING), 4, v);
    attr_end(g);
}

void ox_onnx_attr_ints(ox_onnx_graph_writer *g, const char *name, const int64_t *v, size_t n)
{
    ox_buf *a = attr_begin(g, name, OX_ONNX_ATTR_INTS);
    for (size_t i = 0; i < n; i++)
        ox_proto_put_int(a, 8, v[i]);
    attr_end(g);
}

void ox_onnx_attr_floats(ox_onnx_graph_writer *g, const char *name, const float *v, size_t n)
{
    ox_buf *a = attr_begin(g, name, OX_ONNX_ATTR_FLOATS);
    for (size_t i = 0; i < n; i++)
        ox_proto_put_f32(a, 7, v[i]);
    attr_end(g);
}

void ox_onnx_attr_strs(ox_onnx_graph_writer *g, const char *name, const ox_str *v, size_t n)
{
    ox_buf *a = attr_begin(g, name, OX_ONNX_ATTR_STRINGS);
    for (size_t i = 0; i < n; i++)
        ox_proto_put_len(a, 9, v[i]);
    attr_end(g);
}

void ox_onnx_attr_tensor(ox_onnx_graph_writer *g, const char *name, const ox_tensor *t)
{
    ox_buf *a = attr_begin(g, name, OX_ONNX_ATTR_TENSOR);
    put_tensor(&g->inner, OX_STR(""), t);
    ox_proto_put_part(a, 5, &g->inner);
    attr_end(g);
}

/* GraphProto as field `number` of *out. */
static void put_graph(ox_buf *out, uint32_t number, ox_onnx_graph_writer *g, ox_str name)
{
    const ox_buf *const pieces[] = {&g->nodes, &g->tensors, &g->inputs, &g->outputs, &g->values};
    size_t total = 0;
    assert(!g->in_node);
    ox_proto_put_len(&g->inner, 2, name);
    if (g->inner.failed || !ox_size_add(total, g->inner.n, &total)) out->failed = true;
    for (size_t i = 0; i < OX_COUNT(pieces); i++)
        if (pieces[i]->failed || !ox_size_add(total, pieces[i]->n, &total)) out->failed = true;
    ox_proto_put_head(out, number, total);
    ox_buf_put_str(out, ox_buf_view(&g->inner));
    for (size_t i = 0; i < OX_COUNT(pieces); i++)
        ox_buf_put_str(out, ox_buf_view(pieces[i]));
    ox_buf_clear(&g->inner);
}

void ox_onnx_attr_graph(ox_onnx_graph_writer *g, const char *name, ox_onnx_graph_writer *body,
                        ox_str body_name)
{
    assert(g != body);
    put_graph(attr_begin(g, name, OX_ONNX_ATTR_GRAPH), 6, body, body_name);
    attr_end(g);
}

void ox_onnx_end_node(ox_onnx_graph_writer *g)
{
    assert(g->in_node);
    ox_proto_put_part(&g->nodes, GRAPH_NODE, &g->node);
    g->in_node = false;
    g->n_nodes++;
}

ox_status ox_onnx_model_write(ox_buf *out, ox_onnx_graph_writer *g, const ox_onnx_model_info *info,
                              ox_err *err)
{
    ox_buf entry = {0};
    const size_t before = out->n;
    ox_proto_put_int(out, 1, info->ir_version ? info->ir_version : DEFAULT_IR);
    if (info->producer.n) ox_proto_put_len(out, 2, info->producer);
    if (info->producer_version.n) ox_proto_put_len(out, 3, info->producer_version);
    put_graph(out, 7, g, info->graph_name);
    for (size_t i = 0; i < info->n_opsets; i++) {
        ox_proto_put_len(&entry, 1, info->opsets[i].domain);
        ox_proto_put_int(&entry, 2, info->opsets[i].version);
        ox_proto_put_part(out, 8, &entry);
    }
    for (size_t i = 0; i < info->n_metadata; i++)
        put_entry(out, &entry, 14, info->metadata[2 * i], info->metadata[2 * i + 1]);
    ox_buf_deinit(&entry);
    if (out->failed) return OX_FAIL(err, OX_NO_MEMORY, "no memory to write the ONNX model");
    if (out->n - before > MAX_MODEL)
        return OX_FAIL(err, OX_LIMIT,
                       "the ONNX model has %zu bytes, the format allows 2147483647; expected its "
                       "tensors in an external data file",
                       out->n - before);
    return OX_OK;
}
