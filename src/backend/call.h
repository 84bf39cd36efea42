/* call.h - what a plan consists of: calls over buffers, the same for every backend.
 *
 * A buffer is a float matrix [rows, width] of the step (or its quantised twin); an operand is a
 * column range of one. Where a buffer lies in the step's arena is decided by plan/ before the run.
 * A backend binds each call once (picks a kernel row, packs its weights) and then runs the list. */
#ifndef OX_BACKEND_CALL_H
#define OX_BACKEND_CALL_H
#include "graph/terms.h"

typedef enum ox_call_kind {
#define OX_CALL(suffix, name) OX_CALL_##suffix,
#include "backend/calls.def"
#undef OX_CALL
    OX_CALL_COUNT
} ox_call_kind;

typedef struct ox_buffer_id {
    int32_t i; /* -1 = none */
} ox_buffer_id;

typedef struct ox_buffer {
    int32_t width;        /* floats a row */
    int32_t quant_block;  /* 0: float rows; else the int8 form of kernel/quantize with this block */
    int32_t quant_bits;   /* code width its reader has (decides the byte order), quantised only */
    int32_t quant_planes; /* 1: 8-bit activations, 2: 16-bit in two planes; quantised only */
    bool wanted;          /* rows = the rows whose logits are wanted, not all of the step's */
    bool is_logits;       /* what the step is run for: float32 on every device */
    bool repeated; /* in steps of one row every worker makes its own copy: no barrier behind it */
    int32_t first_call, last_call; /* lifetime; -1 = never used */
} ox_buffer;

typedef struct ox_operand {
    ox_buffer_id buffer;
    int32_t first, width; /* columns */
} ox_operand;

#define OX_NO_OPERAND ((ox_operand){{-1}, 0, 0})

enum { OX_CALL_WEIGHTS = 8, OX_CALL_INPUTS = 3, OX_CLASS_COUNT = 3 };

/* Shape classes: what the kernel rows of a call are picked for. All rows of a family agree bit for
 * bit where the numeric policy promises it, so the class never changes a result there. */
typedef enum ox_shape_class { OX_CLASS_ONE, OX_CLASS_FEW, OX_CLASS_MANY } ox_shape_class;
enum { OX_FEW_ROWS = 8, OX_MANY_ROWS = 256, OX_WANTED_ROWS = 64, OX_ROWS_MAX = 2048 };

static inline ox_shape_class ox_class_of_rows(int32_t rows)
{
    return rows == 1 ? OX_CLASS_ONE : rows <= OX_FEW_ROWS ? OX_CLASS_FEW : OX_CLASS_MANY;
}

/* Operands by kind (in[0..2], out, add):
 *   embed     out                          weight table, scale
 *   norm      in[0] -> out                 weight gamma, bias beta
 *   quantize  in[0] -> out (quantised)
 *   linear_*  in[0] (quantised for _int) -> out; weights concatenated along N, or gate and up when
 *             pairs (out = act(gate)*up); add = residual added, may equal out
 *   rotate    in[0] in place
 *   append    in[1] keys, in[2] values -> cache
 *   attend    in[0] queries -> out, reads cache
 *   glu       in[0] gate, in[1] up -> out
 *   act, scale in[0] -> out (may be the same);  add in[0] + in[1] -> out
 *   gather    in[0] (all rows) -> out (wanted rows) */
typedef struct ox_call {
    ox_call_kind kind;
    const ox_term *term; /* parameters; of the first term where several became one call */
    const char *name;    /* first term's node name, for messages */
    ox_operand in[OX_CALL_INPUTS], out, add;
    int32_t n_weights;
    const ox_weight *weights[OX_CALL_WEIGHTS];
    const ox_weight *biases[OX_CALL_WEIGHTS]; /* NULL where a weight has none */
    bool pairs;
    bool wanted;                      /* works on the wanted rows */
    bool barrier;                     /* the team meets before this call */
    bool barrier_one;                 /* the same in steps of one row */
    bool repeat;                      /* in steps of one row: its output is a repeated buffer */
    const char *phase;                /* name of the phase row that made it */
    const char *rows[OX_CLASS_COUNT]; /* kernel row bound per class, for printing */
    void *bound;                      /* the backend's own */
} ox_call;

/* Written by exec/ before each step; kernels only read it. */
typedef struct ox_step {
    int32_t rows;
    const int32_t *ids;         /* [rows], each inside the vocabulary */
    const int32_t *pos;         /* [rows] absolute positions */
    const int32_t *seq;         /* [rows] sequence of each row; NULL = 0 */
    void *const *const *tables; /* [n_seq] page tables */
    int32_t total;              /* longest total length of the step's sequences */
    int32_t n_wanted;
    const int32_t *wanted; /* [n_wanted] rows whose logits are wanted, ascending */
} ox_step;

static inline int32_t ox_step_rows(const ox_step *s, bool wanted)
{
    return wanted ? s->n_wanted : s->rows;
}
#endif
