/* opt_internal.h - what a rule sees.
 *
 * Every value of the old graph has a *saying* in the new one once a rule has said it: the value
 * [rows, width] that holds the same numbers. A saying remembers two facts of the old spelling: the
 * size of its last dimension, and whether its heads stand before the rows ([batch, heads, rows,
 * head] instead of [batch, rows, heads, head]).
 *
 * A rule gets one node and either says the node's outputs (ox_opt_say) or leaves them unsaid; then
 * the next rule for that operator is asked. It returns a failure only when memory is short. Rules
 * may build terms that a later rule makes superfluous: unread terms are removed at the end. */
#ifndef OX_OPT_INTERNAL_H
#define OX_OPT_INTERNAL_H
#include "opt/opt.h"

/* Past rows stand before a saying's own: the value is past ++ x, perhaps
 * with every head repeated. */
typedef struct ox_appended {
    ox_value_id past, present; /* old graph; absent = no past */
    int32_t repeat;            /* 1 = as they are */
    enum { OX_REPEAT_DONE, OX_REPEAT_AXIS, OX_REPEAT_EXPANDED } stage; /* [b, h, 1, t, d] first */
} ox_appended;

typedef struct ox_saying {
    ox_value_id v;         /* in the new graph; absent = not said */
    int32_t width;         /* channels of a row, all heads together */
    int32_t last;          /* size of the old value's last dimension; divides width */
    bool heads_first;      /* the old value is [batch, width/last, rows, last] */
    bool last_row;         /* only the last row of each sequence is there */
    const ox_appended *kv; /* NULL = the rows of the step alone; only attention reads others */
} ox_saying;

/* Why a node is not said: an operand that is not said either, or a sentence. */
typedef struct ox_unsaid {
    ox_value_id blame; /* in the old graph */
    const char *reason;
} ox_unsaid;

/* What is known about an attention mask of the old graph. */
typedef struct ox_masked {
    ox_value_id v;
    bool known, causal; /* known: visible are j <= i (causal) or all, within the window */
    int32_t window;
} ox_masked;

/* Rotary tables that the old graph computes from positions. */
typedef struct ox_turned {
    ox_value_id cos, sin;
    bool interleaved;
    const ox_rotary *rotary; /* NULL = they do not depend on positions alone */
} ox_turned;

typedef struct ox_opt {
    const ox_graph *old;
    ox_graph *g; /* the new one */
    ox_arena *arena;
    const ox_opt_ports *ports;
    ox_value_id ids, mask, positions; /* the old graph's ports; absent = none found */
    ox_saying *said;                  /* [old->values.n] */
    ox_unsaid *unsaid;                /* [old->nodes.n] */
    OX_VEC(ox_weight *) weights;      /* one object for each weight, however often it is used */
    OX_VEC(ox_rotary *) rotaries;
    OX_VEC(const void *) rotary_keys; /* 4 a rotary: the tables' bytes in the file */
    OX_VEC(ox_masked) masks;
    OX_VEC(ox_turned) turned;
    int probing;   /* examples that wait for other examples */
    ox_unsaid now; /* of the node being asked */
    ox_err *err;
} ox_opt;

typedef ox_status ox_opt_rule_fn(ox_opt *o, const ox_node *n);
#define OX_OPT_RULE(name, op, fn) ox_opt_rule_fn fn;
#include "opt/passes.def"
#undef OX_OPT_RULE

/* ---- reading the old graph (read.c) */

static inline bool ox_node_has(const ox_node *n, uint32_t i)
{
    return n && i < n->n_inputs && ox_value_is(n->inputs[i]);
}
static inline ox_value_id ox_node_in(const ox_node *n, uint32_t i)
{
    return n && i < n->n_inputs ? n->inputs[i] : OX_NO_VALUE; /* NULL has none */
}
static inline bool ox_node_wants(const ox_node *n, uint32_t i)
{
    return i < n->n_outputs && ox_value_is(n->outputs[i]);
}
bool ox_node_is(const ox_node *n, const char *op); /* false for NULL; any domain */
/* The node that makes v, looking through casts between float types and identities; NULL = an
 * input, a constant or absent. */
const ox_node *ox_opt_producer(const ox_opt *o, ox_value_id v);
/* v without casts between float types and identities. */
ox_value_id ox_opt_bare(const ox_opt *o, ox_value_id v);
/* The constant behind v (an initializer, a Constant node, through identities); NULL = none. */
const ox_tensor *ox_opt_constant(const ox_opt *o, ox_value_id v);
bool ox_opt_scalar(const ox_opt *o, ox_value_id v, float *out); /* one float or integer element */
bool ox_opt_ints(const ox_opt *o, ox_value_id v, int64_t *out, size_t max, size_t *n);
/* Axes of a node: input i when the operator takes them so, else attribute `axes`. */
bool ox_opt_axes(const ox_opt *o, const ox_node *n, uint32_t i, int64_t *out, size_t max,
                 size_t *n_out);
bool ox_dtype_is_float(ox_dtype t);
float ox_tensor_f32(const ox_tensor *t, size_t i); /* any float or integer type, else NaN */

/* ---- building the new one (build.c) */

/* The saying of operand i; false = unsaid, and the node is marked as waiting for it. */
bool ox_opt_in(ox_opt *o, const ox_node *n, uint32_t i, ox_saying *out);
bool ox_opt_in_rows(ox_opt *o, const ox_node *n, uint32_t i, ox_saying *out); /* heads not first */
/* Keys or values of an attention: past rows may stand before the step's. */
bool ox_opt_in_keys(ox_opt *o, const ox_node *n, uint32_t i, ox_saying *out);
/* The saying of any old value; absent when unsaid, or with past rows (not _keys). */
ox_saying ox_opt_said(const ox_opt *o, ox_value_id old);
ox_saying ox_opt_said_keys(const ox_opt *o, ox_value_id old);
/* Adds a term; its value has `width` channels. suffix tells a node's terms apart. */
ox_status ox_opt_term(ox_opt *o, const ox_node *n, const char *suffix, const ox_term *t,
                      const ox_saying *in, size_t n_in, ox_saying *out);
void ox_opt_say(ox_opt *o, const ox_node *n, uint32_t output, ox_saying s);
/* The term that makes s, NULL when it is the graph's input; *in = its first operand. */
const ox_term *ox_opt_term_of(const ox_opt *o, ox_saying s, ox_saying *in);
/* Leaves a sentence for the report; returns OX_OK so that a rule can end with it. */
ox_status ox_opt_refuse(ox_opt *o, const char *fmt, ...) OX_PRINTF(2, 3);
ox_term ox_term_init(ox_term_kind kind); /* neutral: scale 1, no cache */
/* x + bias where x is a linear map or normalisation without one; else *out stays absent. */
ox_status ox_opt_with_bias(ox_opt *o, const ox_node *n, const char *suffix, const ox_weight *bias,
                           ox_saying x, ox_saying *out);
/* Says output 0 as act(x). */
ox_status ox_opt_act_say(ox_opt *o, const ox_node *n, ox_act act, ox_saying x);
bool ox_opt_sigmoid_act(float alpha, ox_act *act); /* x * sigmoid(alpha x) */

/* ---- weights (weights.c, blocks.c): *out = NULL when v is not a constant of that form */

ox_status ox_opt_vector(ox_opt *o, ox_value_id v, const ox_weight **out);
/* v as MatMul's right operand [K, N]: weight [N, K]. */
ox_status ox_opt_matrix(ox_opt *o, ox_value_id v, const ox_weight **out);
/* v as a table [rows, width] to gather from. */
ox_status ox_opt_table(ox_opt *o, ox_value_id v, const ox_weight **out);
/* Operands of MatMulNBits (zeros, g_idx may be absent). *out = NULL leaves a reason. */
typedef struct ox_opt_blocks {
    ox_value_id codes, scales, zeros, g_idx;
    int64_t rows, cols;
    int32_t bits, block;
} ox_opt_blocks;
ox_status ox_opt_nbits(ox_opt *o, const ox_opt_blocks *b, const ox_weight **out);
/* The table of a GatherBlockQuantized. */
ox_status ox_opt_gathered_blocks(ox_opt *o, const ox_node *n, const ox_weight **out);
/* DequantizeLinear of constants; by_column: the old tensor is [cols, rows]. */
ox_status ox_opt_dequantized(ox_opt *o, const ox_node *n, bool by_column, const ox_weight **out);
/* The shared object equal to *w, or a copy of *w in the arena. */
ox_status ox_opt_share(ox_opt *o, const ox_weight *w, const ox_weight **out);

/* ---- rotary tables (tables.c): *out = NULL when they are not constants */

ox_status ox_opt_rotary(ox_opt *o, ox_value_id cos_value, ox_value_id sin_value, bool interleaved,
                        const ox_rotary **out);
ox_status ox_opt_rotate(ox_opt *o, const ox_node *n, const char *suffix, const ox_rotary *r,
                        int32_t n_heads, ox_saying x, ox_saying *out);
/* Tables computed in the graph: cos and sin hold, for each row of the step, the angle of its
 * position for every pair, once or (doubled: for both channels) twice. */
ox_status ox_opt_rotary_computed(ox_opt *o, ox_value_id cos_value, ox_value_id sin_value,
                                 bool doubled, bool interleaved, const ox_rotary **out);
/* v numbers the rows of the step by their positions, whatever computes it. */
bool ox_opt_plain_positions(ox_opt *o, ox_value_id v);

/* ---- asking the old graph by example (probe.c)
 *
 * What depends on nothing but positions and lengths (masks, position ids, angles, shapes) is
 * recognised by what it computes, not by how: the few nodes behind a value run in the interpreter
 * for a step of n_rows rows after n_past rows, without padding. */

/* The value's tensor for that step, in `arena`; *out = NULL when it depends on anything else, when
 * it fails or is too large. */
ox_status ox_opt_probe(ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, ox_arena *arena,
                       const ox_tensor **out);
/* A constant number, or one computed from dimensions that every step has alike. */
bool ox_opt_number(ox_opt *o, ox_value_id v, float *out);
/* A constant list, or one computed from shapes for that step. */
bool ox_opt_shape(ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, int64_t *out,
                  size_t max, size_t *n);
/* Dimensions of a said value in that step; 0 = not known. */
int32_t ox_opt_dims(const ox_opt *o, ox_value_id v, int64_t n_past, int64_t n_rows, int64_t *dims);
/* v = of[..., first : end] on the last dimension, a Slice or half of a Split; false = something
 * else. end may lie beyond the dimension. */
typedef struct ox_opt_part {
    ox_value_id of;
    int64_t first, end;
} ox_opt_part;
bool ox_opt_part_of(ox_opt *o, ox_value_id v, ox_opt_part *p);
/* What an additive or boolean mask lets through, remembered. */
ox_status ox_opt_mask(ox_opt *o, ox_value_id v, ox_masked *out);

/* ---- caches and scores shared by the attention operators (attend.c) */

typedef struct ox_opt_attend {
    ox_saying q, k, v;
    ox_value_id past_k, past_v, present_k, present_v; /* old graph; absent = none */
    ox_term term;                                     /* scale, softcap, window, sinks, heads */
} ox_opt_attend;
ox_status ox_opt_attend_say(ox_opt *o, const ox_node *n, ox_opt_attend *a);
/* Takes past, present and head counts from keys and values whose heads stand first; n_heads: as the
 * operator counts them. false leaves a reason. */
bool ox_opt_attend_keys(ox_opt *o, ox_opt_attend *a, int64_t n_heads);
/* Applies a mask (absent = none) that must make the attention causal if it is not; *ok = false
 * leaves a reason. */
ox_status ox_opt_attend_mask(ox_opt *o, ox_opt_attend *a, ox_value_id mask, bool is_causal,
                             bool *ok);
ox_status ox_opt_head_norm(ox_opt *o, const ox_node *n, const char *suffix, ox_value_id gamma,
                           float epsilon, ox_saying *x);
ox_status ox_opt_slice(ox_opt *o, const ox_node *n, const char *suffix, int32_t first,
                       int32_t width, ox_saying x, ox_saying *out);

/* ---- last steps on the new graph */

ox_status ox_opt_make_head(ox_opt *o, ox_saying logits, ox_value_id *out);
#endif
