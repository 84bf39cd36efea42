/* state.h - one render in progress: memory, limits, variables, output; and how the parts of the
 * evaluator call each other.
 *
 * Owned by one thread and gone after the render. Limits: `steps` counts evaluated nodes and every
 * item or 16 bytes touched by a builtin, so a template that doesn't end stops; `memory_max` bounds
 * the arena; `depth` bounds the C stack. Frames hold the variables of loops, macros and blocks;
 * the outermost scope is the array `globals`, indexed by name. */
#ifndef OX_TEXT_JINJA_STATE_H
#define OX_TEXT_JINJA_STATE_H
#include "text/jinja/ast.h"

enum {
    OX_JDEPTH_MAX = 1500,     /* nested evaluations (C stack: about 400 bytes each) */
    OX_JNEST_MAX = 150,       /* lists in lists, for printing and comparing */
    OX_JPARSE_DEPTH_MAX = 100 /* brackets and blocks within each other in the source */
};

typedef struct ox_jvar {
    uint32_t name;
    ox_jval value;
} ox_jvar;

typedef struct ox_jframe {
    struct ox_jframe *up; /* NULL: globals come next */
    ox_jvar *vars;        /* [n] */
    uint32_t n, cap;
    bool captured; /* a macro was born in here, so the frame must not be reused */
} ox_jframe;

typedef struct ox_jmacro {
    const ox_jsignature *sig;
    ox_jframe *frame; /* where it was defined */
} ox_jmacro;

typedef struct ox_jloop {
    const ox_jseq *items;
    size_t i;
    int64_t depth0;
    const ox_jnode *node;  /* the for statement, for recursive calls */
    ox_jframe *frame;      /* where it stands */
    const ox_jseq *before; /* last arguments of changed() */
} ox_jloop;

typedef enum ox_jflow { OX_JFLOW_ON, OX_JFLOW_BREAK, OX_JFLOW_CONTINUE } ox_jflow;

struct ox_jstate {
    const ox_jtree *tree;
    ox_arena arena;
    ox_err *err;
    uint32_t line; /* of the node being evaluated, for messages */
    uint64_t steps, steps_max;
    size_t memory_max, output_max;
    unsigned depth, macro_depth, macro_depth_max;
    ox_jval *globals; /* [tree->n_names] */
    ox_jframe *frame;
    ox_jbuf *out;
    const ox_jbuf *final_out; /* the one that output_max counts for */
    ox_jflow flow;
    const ox_jval *block_value; /* what a filter without operand works on */
    uint32_t id_loop, id_caller, id_varargs,
        id_kwargs; /* UINT32_MAX: the template has no such name */
    int64_t now_seconds;
    int32_t utc_offset_seconds;
};

/* Reports "line N: …". */
ox_status ox_jfail(ox_jstate *j, ox_status st, const char *fmt, ...) OX_PRINTF(3, 4) OX_FAILS;
#define OX_JFAIL(j, ...) ox_jfail((j), OX_FAILED, __VA_ARGS__)
ox_status ox_jno_memory(ox_jstate *j) OX_FAILS;
ox_status ox_jundefined_error(ox_jstate *j, ox_jval v) OX_FAILS;
/* "line N: …" without a render; for the parser. */
ox_status ox_jsyntax(ox_err *err, ox_status st, uint32_t line, const char *fmt, ...)
    OX_PRINTF(4, 5) OX_FAILS;

ox_status ox_jtake(ox_jstate *j, size_t n, size_t size, void **out); /* zeroed, in the arena */
ox_status ox_jout_of_steps(ox_jstate *j) OX_FAILS;
static inline ox_status ox_jspend(ox_jstate *j, uint64_t steps)
{
    j->steps += steps;
    return OX_LIKELY(j->steps <= j->steps_max) ? OX_OK : ox_jout_of_steps(j);
}
static inline ox_status ox_jspend_bytes(ox_jstate *j, size_t n)
{
    return ox_jspend(j, 1 + n / 16);
}
/* For work that may compare n bytes with m bytes each. */
static inline ox_status ox_jspend_pairs(ox_jstate *j, size_t n, size_t m)
{
    return ox_jspend(j, 1 + (uint64_t)(n / 16 + 1) * (m / 4 + 1));
}

/* ---- expr.c, arith.c, access.c ---- */
ox_status ox_jeval(ox_jstate *j, const ox_jnode *n, ox_jval *out);
ox_status ox_jarith(ox_jstate *j, ox_jop op, ox_jval a, ox_jval b, ox_jval *out);
/* a.name / a[index]; UNDEFINED (of node) when there is none. */
ox_status ox_jgetattr(ox_jstate *j, ox_jval a, ox_jval name, const ox_jnode *node, ox_jval *out);
ox_status ox_jgetitem(ox_jstate *j, ox_jval a, ox_jval index, const ox_jnode *node, ox_jval *out);
ox_status ox_jslice(ox_jstate *j, ox_jval a, const ox_jval bounds[3], ox_jval *out);

/* ---- call.c ---- */
typedef struct ox_jkwval {
    ox_str name;
    ox_jval value;
} ox_jkwval;

typedef struct ox_jargs {
    ox_jval *pos; /* [n] */
    size_t n;
    ox_jkwval *kw; /* [n_kw] */
    size_t n_kw;
} ox_jargs;

ox_status ox_jargs_eval(ox_jstate *j, const ox_jcallargs *src, ox_jargs *out);
ox_status ox_jcall(ox_jstate *j, ox_jval f, const ox_jargs *args, ox_jval *out);
ox_status ox_jcall_builtin(ox_jstate *j, const ox_jbuiltin *f, ox_jval self, const ox_jargs *args,
                           ox_jval *out);

/* ---- stmt.c ---- */
ox_status ox_jexec(ox_jstate *j, const ox_jnodes *body);
ox_status ox_jframe_new(ox_jstate *j, ox_jframe *up, ox_jframe **out);
ox_status ox_jframe_set(ox_jstate *j, ox_jframe *f, uint32_t name, ox_jval v);
/* Runs a macro's body in a new frame; args as the caller gave them. */
ox_status ox_jmacro_call(ox_jstate *j, const ox_jmacro *m, const ox_jargs *args, ox_jval *out);
/* Runs the body with its output caught as a string. */
ox_status ox_jcapture(ox_jstate *j, const ox_jnodes *body, ox_jval *out);
ox_status ox_jloop_call(ox_jstate *j, const ox_jloop *loop, ox_jval items, ox_jval *out);
#endif
