/* onnx.h - an ONNX file as checked records: views into the mapped file wherever possible.
 *
 * What is guaranteed after ox_onnx_open: every string and array lies inside the mapping or the
 * arena; every tensor's dims are >= 0, its type is known and its data has exactly the bytes that
 * shape and type ask for, in row-major raw form (typed fields are converted; external data is
 * mapped from inside the model's folder). Nesting, counts and sizes are bounded. Names are as
 * written. Field numbers and rules: onnx.proto (public, Apache-2.0). */
#ifndef OX_FILE_ONNX_H
#define OX_FILE_ONNX_H
#include "base/arena.h"
#include "base/fs.h"
#include "base/vec.h"
#include "tensor/tensor.h"

enum {
    OX_ONNX_MAX_RECORDS = 1 << 21, /* nodes, values, tensors and attributes of a model together */
    OX_ONNX_MAX_DEPTH = 32,        /* graphs inside attributes inside graphs */
    OX_ONNX_MAX_TYPE_DEPTH = 8,    /* sequences of optionals of ... */
    OX_ONNX_MAX_FILES = 4096,      /* external data files */
};

typedef struct ox_onnx_graph ox_onnx_graph;

typedef struct ox_onnx_tensor {
    ox_str name;
    ox_tensor t;   /* t.data: raw bytes, or ox_str[count] for strings; NULL when empty */
    bool external; /* lives in a separate file */
} ox_onnx_tensor;

/* A dimension is >= 0, or -1 with an optional symbol. */
typedef struct ox_onnx_dim {
    int64_t value;
    ox_str symbol;
} ox_onnx_dim;

typedef enum ox_onnx_kind {
    OX_ONNX_TENSOR,
    OX_ONNX_SEQUENCE,
    OX_ONNX_OPTIONAL,
    OX_ONNX_OTHER
} ox_onnx_kind;

typedef struct ox_onnx_value {
    ox_str name;
    ox_onnx_kind kind;
    ox_dtype dtype; /* element type of the (innermost) tensor */
    int32_t rank;   /* -1 = no shape given */
    ox_onnx_dim dims[OX_RANK_MAX];
} ox_onnx_value;

typedef struct ox_onnx_sparse ox_onnx_sparse;

/* AttributeProto.AttributeType */
typedef enum ox_onnx_attr_type {
    OX_ONNX_ATTR_UNDEFINED = 0,
    OX_ONNX_ATTR_FLOAT = 1,
    OX_ONNX_ATTR_INT = 2,
    OX_ONNX_ATTR_STRING = 3,
    OX_ONNX_ATTR_TENSOR = 4,
    OX_ONNX_ATTR_GRAPH = 5,
    OX_ONNX_ATTR_FLOATS = 6,
    OX_ONNX_ATTR_INTS = 7,
    OX_ONNX_ATTR_STRINGS = 8,
    OX_ONNX_ATTR_TENSORS = 9,
    OX_ONNX_ATTR_GRAPHS = 10,
    OX_ONNX_ATTR_SPARSE = 11,
    OX_ONNX_ATTR_SPARSES = 12,
    OX_ONNX_ATTR_TYPE = 13,
    OX_ONNX_ATTR_TYPES = 14,
} ox_onnx_attr_type;

typedef struct ox_onnx_attr {
    ox_str name, ref_name; /* ref_name: function bodies only */
    int32_t type;          /* ox_onnx_attr_type, inferred when the file leaves it out */
    float f;
    int64_t i;
    ox_str s;
    ox_onnx_tensor *t;
    ox_onnx_graph *g;
    size_t n;
    float *floats;
    int64_t *ints;
    ox_str *strings;
    ox_onnx_tensor *tensors;
    ox_onnx_graph **graphs;
    ox_onnx_value *type_value; /* type_proto attributes */
    ox_onnx_sparse *sparse;    /* sparse_tensor attributes */
} ox_onnx_attr;

typedef struct ox_onnx_node {
    ox_str name, op_type, domain, overload;
    size_t n_inputs, n_outputs, n_attrs;
    ox_str *inputs, *outputs; /* empty string = absent */
    ox_onnx_attr *attrs;
} ox_onnx_node;

/* values [n] (its name is the initializer's name), indices int64 [n] into the flattened tensor or
 * [n, rank]; all inside dims. */
struct ox_onnx_sparse {
    ox_onnx_tensor values, indices;
    int32_t rank;
    int64_t dims[OX_RANK_MAX];
};

struct ox_onnx_graph {
    ox_str name;
    size_t n_nodes, n_initializers, n_sparse, n_inputs, n_outputs, n_values;
    ox_onnx_node *nodes;
    ox_onnx_tensor *initializers;
    ox_onnx_sparse *sparse;
    ox_onnx_value *inputs, *outputs, *values; /* values = value_info */
};

typedef struct ox_onnx_opset {
    ox_str domain; /* "" = ai.onnx */
    int64_t version;
} ox_onnx_opset;

typedef struct ox_onnx_function {
    ox_str name, domain, overload;
    size_t n_inputs, n_outputs, n_attr_names, n_attr_defaults, n_nodes, n_opsets;
    ox_str *inputs, *outputs, *attr_names;
    ox_onnx_attr *attr_defaults;
    ox_onnx_node *nodes;
    ox_onnx_opset *opsets;
} ox_onnx_function;

typedef struct ox_onnx {
    int64_t ir_version;
    ox_str producer, producer_version;
    size_t n_opsets, n_functions;
    ox_onnx_opset *opsets;
    ox_onnx_function *functions;
    ox_onnx_graph *graph;
    /* internal: */
    ox_arena arena;
    ox_mapping file;
    OX_VEC(ox_mapping) external;
    OX_VEC(ox_str) locations; /* [external.n] the names that the file used */
} ox_onnx;

/* Maps path and its external data files. Owned by the caller; close frees everything. */
ox_status ox_onnx_open(ox_onnx **out, const char *path, ox_err *err);
/* The same from memory that outlives the result; dir is where external data is looked for, NULL
 * refuses external data. */
ox_status ox_onnx_parse(ox_onnx **out, ox_str bytes, const char *dir, ox_err *err);
void ox_onnx_close(ox_onnx **o);
/* One serialized TensorProto (.pb test data); t views bytes or arena. SequenceProto and
 * OptionalProto likewise give a list. */
ox_status ox_onnx_tensor_parse(ox_onnx_tensor *out, ox_arena *arena, ox_str bytes, ox_err *err);
ox_status ox_onnx_sequence_parse(ox_onnx_tensor **items, size_t *n, ox_arena *arena, ox_str bytes,
                                 ox_err *err);
#endif
