/* terms.h - the one vocabulary that exporters' spellings are brought to (opt/) and that imports
 * speak from the start (convert/). plan/ turns terms into calls.
 *
 * Every operand is a float matrix [rows, width], rows = tokens of the step (all sequences of a
 * batch one after the other; positions come from the step record, never from the graph). The graph
 * has one input, the token ids [rows] of the step, and one output, the logits [rows wanted, vocab].
 *
 *   embed(ids)       y = table[id] * scale                                  table = weight
 *   norm(x)          each group of `group` channels (0 = the whole row): root-mean-square or layer
 *                    normalisation, gamma = weight [group], beta = bias      (kernel/norm/norm.h)
 *   linear(x)        y = x * weight^T + bias                                 weight [N, K]
 *   slice(x)         y = x[:, first : first+width]: a view, no copy
 *   rotate(x)        rotary positions on heads of head_size; the first rotary channels of each turn
 *                    by the table's angle; pairs (i, i+rotary/2), or (2i, 2i+1) when interleaved
 *   attend(q, k, v)  appends k and v (k after norm and rotation) to cache `cache` at the rows'
 *                    positions, then softmax(scale * q.K, masked j <= pos, j > pos - window) . V
 *   glu(gate, up)    act(gate) * up
 *   act(x)           act(x)
 *   add(a, b)        a + b
 *   scale(x)         x * scale; soft-cap c > 0: c * tanh(x / c) afterwards
 *   head(x)          logits = softcap((x * weight^T + bias) * scale) for the rows wanted */
#ifndef OX_GRAPH_TERMS_H
#define OX_GRAPH_TERMS_H
#include "graph/graph.h"
#include "kernel/act/act.h" /* ox_act */

typedef enum ox_term_kind {
#define OX_TERM(suffix, name, in_min, in_max, n_out) OX_TERM_##suffix,
#include "graph/terms.def"
#undef OX_TERM
    OX_TERM_COUNT
} ox_term_kind;

/* cos and sin of the angle of position p and pair i: tables [n_positions, rotary/2], row-major f32,
 * scaling rules already applied. The long pair is for rules that switch with the total length: a
 * step uses it when its sequence's total length exceeds switch_length. */
typedef struct ox_rotary {
    int32_t rotary; /* channels turned, even, <= head_size */
    bool interleaved;
    int32_t n_positions; /* rows of the tables */
    const float *cos_table, *sin_table;
    const float *long_cos, *long_sin; /* NULL = one table for every length */
    int32_t switch_length;
} ox_rotary;

struct ox_term {
    ox_term_kind kind;
    const ox_weight *weight; /* embed table, norm gamma, linear and head matrix */
    const ox_weight *bias;   /* [N], or norm beta; NULL = none */
    float scale;             /* embed, scale, head: 1 = none; attend: softmax scale */
    float softcap;           /* attend, scale, head: 0 = none */
    float epsilon;           /* norm */
    bool centre;             /* norm: layer normalisation */
    int32_t group;           /* norm: channels normalised together, 0 = whole row */
    int32_t first, width;    /* slice */
    ox_act act;              /* glu, act */
    int32_t n_heads, n_kv_heads, head_size, v_head_size; /* rotate: n_heads, head_size; attend */
    const ox_rotary *rotary;                             /* rotate */
    ox_cache_id cache;                                   /* attend */
    int32_t window;         /* attend: keys seen including the own position; 0 = all */
    const ox_weight *sinks; /* attend: [n_heads] logits that join the softmax's sum; NULL = none */
    /* linear, head: smallest precision of activations that the file asks for (MatMulNBits
     * accuracy_level): 0 to 3 mean float activations, 4 allows int8. Imports write 4. */
    int32_t accuracy_level;
};

const char *ox_term_name(ox_term_kind k);
/* Adds a term node: inputs as documented; the output's width is worked out from the operands and
 * written to value.dims = {rows symbol, width}. */
ox_status ox_graph_add_term(ox_graph *g, const ox_term *term, ox_str name,
                            const ox_value_id *inputs, size_t n_inputs, ox_value_id *output,
                            ox_err *err);
bool ox_graph_is_terms(const ox_graph *g); /* every live node is a term */
#endif
