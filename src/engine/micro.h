/* micro.h - what a micro-benchmark is made of: a row of micro.def, the case that it opens, and the
 * helpers that its makers share. The public side is in ox_experimental.h.
 *
 * A case runs either a list of kernel launches (micro_kernel.c, micro_tensor.c) or a function of
 * its own (micro_text.c, micro_sample.c). It owns its memory; one thread drives it. */
#ifndef OX_ENGINE_MICRO_H
#define OX_ENGINE_MICRO_H
#include "base/team.h"
#include "kernel/act/act.h"
#include "kernel/add/add.h"
#include "kernel/attend/attend.h"
#include "kernel/convert_half/convert_half.h"
#include "kernel/cut/cut.h"
#include "kernel/draw/draw.h"
#include "kernel/embed/embed.h"
#include "kernel/gemm/gemm.h"
#include "kernel/glu/glu.h"
#include "kernel/kv_append/kv_append.h"
#include "kernel/mass/mass.h"
#include "kernel/matmul/matmul.h"
#include "kernel/norm/norm.h"
#include "kernel/qexact/qexact.h"
#include "kernel/quantize/quantize.h"
#include "kernel/rotate/rotate.h"
#include "kernel/scale/scale.h"
#include "kernel/select/select.h"
#include "kernel/softmax/softmax.h"
#include "oxgen/ox_experimental.h"

typedef struct micro_row micro_row;
typedef ox_status micro_make_fn(ox_micro_case *c, const micro_row *row, ox_err *err);

/* kind and a, b, c mean what the maker says. */
struct micro_row {
    const char *name;
    micro_make_fn *make;
    int32_t kind, a, b, c;
    int32_t n_threads; /* at most; 0 = every CPU */
    const char *text;  /* which code runs, or with make NULL why it is absent */
};

typedef union micro_args {
    ox_act_args act;
    ox_add_args add;
    ox_attend_args attend;
    ox_convert_half_args convert_half;
    ox_cut_args cut;
    ox_draw_args draw;
    ox_embed_args embed;
    ox_gemm_args gemm;
    ox_glu_args glu;
    ox_kv_append_args kv_append;
    ox_mass_args mass;
    ox_matmul_args matmul;
    ox_norm_args norm;
    ox_qlinear_args qlinear;
    ox_quantize_args quantize;
    ox_rotate_args rotate;
    ox_scale_args scale;
    ox_select_args select;
    ox_softmax_args softmax;
} micro_args;

typedef void micro_call_fn(ox_any_fn *fn, const void *args, size_t begin, size_t end);

typedef struct micro_launch {
    ox_any_fn *fn;
    micro_call_fn *call;
    micro_args args;
    size_t units, step; /* ranges handed to threads are multiples of step */
} micro_launch;

enum { MICRO_LAUNCHES = 4, MICRO_BLOCKS = 24 };

typedef struct micro_block {
    void *p;
    size_t n;
} micro_block;

struct ox_micro_case {
    ox_micro_cost cost;
    ox_team *team;               /* NULL: one thread */
    const ox_kernel_row *forced; /* this row instead of the picked one; NULL = none */
    const ox_kernel_row *rows;   /* of the family that `forced` belongs to */
    micro_launch launches[MICRO_LAUNCHES];
    size_t n_launches;
    ox_status (*run)(ox_micro_case *c, ox_err *err); /* instead of launches */
    void (*close)(void *state);
    void *state;
    uint32_t layout; /* see ox_micro_open */
    micro_block blocks[MICRO_BLOCKS];
    size_t n_blocks;
};

/* micro.c: memory that lives as long as the case; NULL without memory (then err is filled). */
void *ox_micro_bytes(ox_micro_case *c, size_t n, ox_err *err);
float *ox_micro_floats(ox_micro_case *c, size_t n, ox_err *err); /* ((i mod 251) - 125) / 64 */
/* The same values as F32, F16 or BF16. */
void *ox_micro_values(ox_micro_case *c, ox_dtype t, size_t n, ox_err *err);
/* Adds a launch of the row that a plan would pick (or of the forced one) for these arguments. */
ox_status ox_micro_launch(ox_micro_case *c, const ox_kernel_row *rows, micro_call_fn *call,
                          const micro_args *args, size_t units, size_t step, ox_err *err);

/* One function per family: restores the type of the function pointer. */
#define MICRO_FAMILY(f)                                                                            \
    static inline void micro_call_##f(ox_any_fn *fn, const void *args, size_t begin, size_t end)   \
    {                                                                                              \
        ((ox_##f##_fn *)fn)(args, begin, end);                                                     \
    }
MICRO_FAMILY(act)
MICRO_FAMILY(add)
MICRO_FAMILY(attend)
MICRO_FAMILY(convert_half)
MICRO_FAMILY(embed)
MICRO_FAMILY(gemm)
MICRO_FAMILY(glu)
MICRO_FAMILY(kv_append)
MICRO_FAMILY(matmul)
MICRO_FAMILY(norm)
MICRO_FAMILY(qexact)
MICRO_FAMILY(qlinear)
MICRO_FAMILY(quantize)
MICRO_FAMILY(rotate)
MICRO_FAMILY(scale)
MICRO_FAMILY(select)
MICRO_FAMILY(softmax)
#undef MICRO_FAMILY
/* Families whose rows work on one list. */
#define MICRO_FAMILY(f)                                                                            \
    static inline void micro_call_##f(ox_any_fn *fn, const void *args, size_t begin, size_t end)   \
    {                                                                                              \
        (void)begin, (void)end;                                                                    \
        ((ox_##f##_fn *)fn)(args);                                                                 \
    }
MICRO_FAMILY(cut)
MICRO_FAMILY(draw)
MICRO_FAMILY(mass)
#undef MICRO_FAMILY
#define MICRO_LAUNCH(c, f, args, units, step, err)                                                 \
    ox_micro_launch(c, ox_##f##_rows, micro_call_##f, args, units, step, err)

/* micro_peer.c: makes the case of a row as ONNX Runtime runs it; OX_UNSUPPORTED when it cannot,
 * OX_NO_DEVICE without ONNX Runtime. */
micro_make_fn ox_micro_peer_make;

/* The makers that micro.def names. */
#define OX_MICRO(name, make, kind, a, b, c, n_threads, runs) micro_make_fn ox_micro_##make;
#define OX_MICRO_ABSENT(name, why)
#include "engine/micro.def"
#undef OX_MICRO
#undef OX_MICRO_ABSENT
#endif
