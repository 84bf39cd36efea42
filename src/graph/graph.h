/* graph.h - the IR: values and nodes in an arena, built from a file's records or by convert/.
 *
 * A node is either an ONNX operator (op_type, domain, attributes) or, after opt/ or straight from
 * convert/, a *term* (graph/terms.h: node.term != NULL). Values are in SSA form: one producer.
 * Ids index the arrays and stay valid while the graph lives; removed nodes are marked dead.
 * A dimension is >= 0 when known, OX_DIM_UNKNOWN, or a symbol made by ox_graph_symbol.
 * Owned by one thread while built, immutable afterwards. */
#ifndef OX_GRAPH_GRAPH_H
#define OX_GRAPH_GRAPH_H
#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "tensor/tensor.h"
#include "tensor/weight.h"

typedef struct ox_graph ox_graph;
typedef struct ox_term ox_term;

typedef struct ox_value_id {
    int32_t i; /* -1 = absent */
} ox_value_id;
typedef struct ox_node_id {
    int32_t i; /* -1 = none */
} ox_node_id;
typedef struct ox_cache_id {
    int32_t i;
} ox_cache_id;

#define OX_NO_VALUE ((ox_value_id){-1})
#define OX_NO_NODE ((ox_node_id){-1})
static inline bool ox_value_is(ox_value_id v)
{
    return v.i >= 0;
}

enum { OX_DIM_UNKNOWN = -1 }; /* symbol s is the dimension -(2+s) */

typedef enum ox_value_kind {
    OX_VALUE_NODE,     /* output of a node */
    OX_VALUE_INPUT,    /* graph input */
    OX_VALUE_CONSTANT, /* initializer or folded: value.constant holds it */
    OX_VALUE_CAPTURE,  /* subgraph only: the outer graph's value of the same name */
} ox_value_kind;

/* What a value is at run time; almost always a tensor. */
typedef enum ox_value_type {
    OX_TYPE_TENSOR,
    OX_TYPE_SEQUENCE, /* of tensors */
    OX_TYPE_OPTIONAL, /* of a tensor or a sequence of tensors */
} ox_value_type;

typedef struct ox_value {
    ox_str name;
    ox_value_kind kind;
    ox_value_type type;
    ox_dtype dtype; /* element type; NONE = unknown */
    int32_t rank;   /* -1 = unknown */
    int64_t dims[OX_RANK_MAX];
    const ox_tensor *constant; /* CONSTANT: data is a view that lives as long as the model */
    ox_node_id producer;       /* NODE */
    ox_value_id outer;         /* CAPTURE: id in graph->parent */
} ox_value;

/* Attribute kinds carry ONNX AttributeProto.AttributeType numbers. */
typedef enum ox_attr_type {
    OX_ATTR_FLOAT = 1,
    OX_ATTR_INT = 2,
    OX_ATTR_STRING = 3,
    OX_ATTR_TENSOR = 4,
    OX_ATTR_GRAPH = 5,
    OX_ATTR_FLOATS = 6,
    OX_ATTR_INTS = 7,
    OX_ATTR_STRINGS = 8,
    OX_ATTR_TENSORS = 9,
    OX_ATTR_GRAPHS = 10,
    OX_ATTR_TYPE = 13, /* i = element type, n = ox_value_type */
} ox_attr_type;

typedef struct ox_attr {
    ox_str name;
    ox_attr_type type;
    float f;
    int64_t i;
    ox_str s;
    const ox_tensor *t;
    ox_graph *g;
    size_t n; /* length of the list kinds */
    const float *floats;
    const int64_t *ints;
    const ox_str *strings;
    const ox_tensor *tensors;
    ox_graph *const *graphs;
} ox_attr;

typedef struct ox_node {
    ox_str name; /* never empty: made up from the operator and its index when the file has none */
    ox_str op_type, domain; /* domain "" for ai.onnx */
    int32_t version;        /* opset version of its domain that the model imports */
    bool dead;
    uint32_t n_inputs, n_outputs, n_attrs;
    ox_value_id *inputs;  /* i = -1 where absent */
    ox_value_id *outputs; /* i = -1 where not wanted */
    ox_attr *attrs;
    const ox_term *term; /* non-NULL: this node is a term; op_type is the term's name */
} ox_node;

/* Key/value cache of one attention: owned by sessions, named by id in the graph. */
typedef struct ox_cache {
    int32_t n_kv_heads, head_size, v_head_size;
    ox_dtype dtype; /* type the graph declares (F32, F16, BF16); the engine may store narrower */
    ox_str past_k, past_v, present_k, present_v; /* port names in the file; empty for imports */
} ox_cache;

struct ox_graph {
    ox_arena *arena;  /* where everything lives; owned by the holder of the outermost graph */
    ox_graph *parent; /* NULL for the main graph */
    ox_str name;
    OX_VEC(ox_value) values;
    OX_VEC(ox_node) nodes; /* in topological order */
    OX_VEC(ox_value_id) inputs;
    OX_VEC(ox_value_id) outputs;
    OX_VEC(ox_str) symbols;
    OX_VEC(ox_cache) caches;
    ox_map by_name; /* name -> value id */
};

/* Everything that adds takes strings it copies into the arena. Out of memory is OX_NO_MEMORY. */
ox_status ox_graph_open(ox_graph **out, ox_arena *arena, ox_graph *parent, ox_err *err);
void ox_graph_close(ox_graph **g); /* frees the arrays, not the arena; closes subgraphs */

ox_status ox_graph_add_value(ox_graph *g, ox_str name, ox_value_id *out, ox_err *err);
ox_status ox_graph_add_constant(ox_graph *g, ox_str name, const ox_tensor *t, ox_value_id *out,
                                ox_err *err);
/* Copies `node` with fresh arrays for inputs, outputs and attributes; sets the producers. */
ox_status ox_graph_add_node(ox_graph *g, const ox_node *node, ox_node_id *out, ox_err *err);
ox_status ox_graph_add_cache(ox_graph *g, const ox_cache *c, ox_cache_id *out, ox_err *err);
int64_t ox_graph_symbol(ox_graph *g, ox_str name); /* a dimension; OX_DIM_UNKNOWN without memory */

static inline ox_value *ox_graph_value(const ox_graph *g, ox_value_id v)
{
    return &g->values.p[v.i];
}
static inline ox_node *ox_graph_node(const ox_graph *g, ox_node_id n)
{
    return &g->nodes.p[n.i];
}
ox_value_id ox_graph_find(const ox_graph *g, ox_str name); /* this graph only; absent = i -1 */

/* Attribute look-up with defaults; a wrong type reads as absent. */
const ox_attr *ox_node_attr(const ox_node *n, const char *name);
int64_t ox_node_int(const ox_node *n, const char *name, int64_t otherwise);
float ox_node_float(const ox_node *n, const char *name, float otherwise);
ox_str ox_node_str(const ox_node *n, const char *name, const char *otherwise);

/* Live nodes that read v, counting graph outputs and captures by subgraphs once each. */
size_t ox_graph_uses(const ox_graph *g, ox_value_id v);
/* Every reader of `from` reads `to` instead; graph outputs too. */
void ox_graph_replace_uses(ox_graph *g, ox_value_id from, ox_value_id to);
/* Marks nodes dead whose outputs nobody reads, repeatedly. */
void ox_graph_remove_dead(ox_graph *g);
/* Sorts nodes topologically (stable) and drops dead ones; a cycle is OX_BAD_FILE naming a node. */
ox_status ox_graph_sort(ox_graph *g, ox_err *err);
/* Checks SSA, ids in range, order, terms' operand counts. */
ox_status ox_graph_verify(const ox_graph *g, ox_err *err);
/* One line a node: "%out[dtype dims] = op(inputs) {attributes}". */
void ox_graph_print(const ox_graph *g, ox_buf *out);
#endif
