/* op.h - the operator catalogue: what every ONNX operator means, slowly and rightly.
 *
 * One table, ops.def: domain, name, first opset version, operand types, number of outputs, and two
 * functions. `infer` works out types and shapes from what is known before anything runs; `eval`
 * computes the outputs of concrete inputs. Floats are accumulated in double. A node resolves to the
 * row of its name with the highest version not above the opset that its model imports.
 *
 * Operand types are letters. A letter is a type variable: inputs with the same letter have the same
 * element type. '?' behind a letter: may be absent; '*': any number, '+': at least one.
 *   f g h  float16, bfloat16, float32, double      n m r  those and all integers of 8 to 64 bits
 *   i j    integers                                 b c    bool
 *   s      string                                   a d e  any tensor
 *   x y z  int32 or int64                           k l    int64
 *   q p o  any type but strings and complex         v w    any value, sequences and nothing too
 *   S      a sequence */
#ifndef OX_OPS_OP_H
#define OX_OPS_OP_H
#include "graph/graph.h"
#include "ops/value.h"

/* ---- evaluating ---- */

typedef struct ox_op_ctx ox_op_ctx;
typedef ox_status ox_op_run_fn(ox_op_ctx *c, const ox_graph *g, ox_rt_value *const *in, size_t n_in,
                               ox_rt_value **out, size_t n_out);

struct ox_op_ctx {
    const ox_node *node;
    size_t n_in, n_out;
    ox_rt_value *const *in; /* [n_in]; NULL = absent */
    ox_rt_value **out;      /* [n_out] results, owned by the caller of eval; NULL at first */
    ox_rt_memory *mem;
    ox_err *err;
    const bool *cancel;  /* NULL, or becomes true when the work is to stop */
    ox_op_run_fn *run;   /* runs a subgraph; NULL where control flow is not allowed (folding) */
    void *runner;        /* run's own */
    uint64_t work_limit; /* multiplications that one node may cost; 0 = any number */
    uint64_t seed;       /* of the random operators, together with the node's own */
    ox_arena temp;       /* scratch of eval; freed by ox_op_eval */
};

typedef ox_status ox_op_eval_fn(ox_op_ctx *c);

/* ---- inferring ---- */

/* An element of a small integer tensor: a number, or a dimension of the graph (maybe a symbol). */
typedef struct ox_op_elem {
    int64_t v;
    enum { OX_ELEM_UNKNOWN, OX_ELEM_VALUE, OX_ELEM_DIM } kind;
} ox_op_elem;

enum { OX_OP_ELEMS = 16 };

typedef struct ox_op_info {
    bool present;
    ox_value_type type;
    ox_dtype dtype; /* NONE = unknown */
    int32_t rank;   /* -1 = unknown */
    int64_t dims[OX_RANK_MAX];
    const ox_tensor *constant; /* the whole value, when known */
    int32_t n_elems; /* integers of rank 0 or 1: elements known so far; -1 = nothing known */
    ox_op_elem elems[OX_OP_ELEMS];
} ox_op_info;

typedef struct ox_infer_ctx {
    const ox_node *node;
    ox_graph *g; /* for symbols */
    size_t n_in, n_out;
    const ox_op_info *in;
    ox_op_info *out; /* [n_out] unknown at first */
    ox_err *err;
} ox_infer_ctx;

typedef ox_status ox_op_infer_fn(ox_infer_ctx *c);

/* ---- the catalogue ---- */

enum {
    OX_OP_RANDOM = 1,  /* never folded */
    OX_OP_CONTROL = 2, /* runs subgraphs */
};

typedef struct ox_op {
    const char *domain, *name;
    int32_t since;
    const char *types;
    int32_t n_out;         /* at most; -1 = any number */
    ox_op_infer_fn *infer; /* NULL: nothing is known about the outputs */
    ox_op_eval_fn *eval;
    unsigned flags;
} ox_op;

size_t ox_op_count(void);
const ox_op *ox_op_at(size_t i);
/* NULL: no such operator. */
const ox_op *ox_op_find(ox_str domain, ox_str name, int32_t version);
/* For ox_from_onnx_options.keep: operators of custom domains that the catalogue has. */
bool ox_op_keep(void *user, ox_str domain, ox_str name, int32_t version);
/* OX_UNSUPPORTED with one message that lists every operator of g and its subgraphs that the
 * catalogue lacks: domain, name, first node, how often. Terms are not looked up. */
ox_status ox_op_check_graph(const ox_graph *g, ox_err *err);
/* OX_BAD_FILE when an attribute has a value outside what attrs.def allows. */
ox_status ox_op_check_attrs(const ox_graph *g, ox_err *err);

/* Checks the operands' number and types, evaluates, frees the scratch. On failure the message names
 * node and operator and no output is left. c->run, mem, err, cancel, seed are the caller's. */
ox_status ox_op_eval(const ox_op *op, ox_op_ctx *c);
/* The same for infer; outputs of unknown operators stay unknown. */
ox_status ox_op_infer(const ox_op *op, ox_infer_ctx *c);
#endif
