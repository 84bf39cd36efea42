/* rows.cuh - the rows of the phases: shapes from the .def lists, kernels from one file a phase
 * (linear_qkv.cu, ...), so that they build side by side. */
#ifndef OX_CHAIN_ROWS_CUH
#define OX_CHAIN_ROWS_CUH
#include "backend/cuda/chain/attend.cuh"
#include "backend/cuda/chain/head.cuh"
#include "backend/cuda/chain/linear.cuh"

#ifndef CHAIN_FORMATS
#define CHAIN_FORMATS 4 /* 1: 4 bits around the middle with SiLU only (quick builds); 4: all */
#endif

typedef struct linear_row {
    int kinds, fold, pairs, window, ri, mode, warps, ctas;
} linear_row;

/* Kernels of one row and phase: [4 or 8 bits][format][flag], NULL where there is none. */
typedef struct linear_fns {
    const void *fn[2][FORMATS][2];
} linear_fns;

enum {
    KIND_Q = 1 << LINEAR_QKV,
    KIND_O = 1 << LINEAR_O,
    KIND_G = 1 << LINEAR_GATE,
    KIND_D = 1 << LINEAR_DOWN
};
enum {
    N_LINEAR_ROWS = 0
#define OX_LINEAR_ROW(...) +1
#include "backend/cuda/chain/linear.def"
#undef OX_LINEAR_ROW
};
extern const linear_fns ox_chain_qkv_rows[N_LINEAR_ROWS], ox_chain_o_rows[N_LINEAR_ROWS],
    ox_chain_gate_rows[N_LINEAR_ROWS], ox_chain_down_rows[N_LINEAR_ROWS];

typedef struct attend_row {
    int head_size, warps, groups, halves, normed, from;
    const void *fn[2]; /* the plain form; any (GENERAL) */
} attend_row;
typedef struct head_row {
    int ring, warps, bits;
    const void *fn[FORMATS];
} head_row;
enum {
    N_ATTEND_ROWS = 0
#define OX_ATTEND_ROW(...) +1
#include "backend/cuda/chain/attend.def"
#undef OX_ATTEND_ROW
};
enum {
    N_HEAD_ROWS = 0
#define OX_HEAD_ROW(...) +1
#include "backend/cuda/chain/head.def"
#undef OX_HEAD_ROW
};
extern const attend_row ox_chain_attend_rows[N_ATTEND_ROWS];
extern const head_row ox_chain_head_rows[N_HEAD_ROWS];
extern const void *const ox_chain_merge;

template <bool TAKEN, int KIND, int BITS, int FORMAT, int FLAG, int FOLD, int P, int WIN, int RI,
          int MODE, int WARPS, int BLOCKS>
struct pick {
    static constexpr const void *fn()
    {
        return 0;
    }
};
template <int KIND, int BITS, int FORMAT, int FLAG, int FOLD, int P, int WIN, int RI, int MODE,
          int WARPS, int BLOCKS>
struct pick<true, KIND, BITS, FORMAT, FLAG, FOLD, P, WIN, RI, MODE, WARPS, BLOCKS> {
    static const void *fn()
    {
        return (const void *)
            linear_phase<KIND, FOLD, P, WIN, RI, MODE, WARPS, BLOCKS, BITS, FORMAT, FLAG>;
    }
};
/* Flag 0 exists for qkv, o and gate; 8 bits have few rows: those that stream, and small windows. */
#define PICK(on, kind, bits, format, ...)                                                          \
    {                                                                                              \
        pick<(on) && kind != LINEAR_DOWN && (kind != LINEAR_GATE || CHAIN_FORMATS > 1), kind,      \
             bits, format, 0, __VA_ARGS__>::fn(),                                                  \
            pick<(on), kind, bits, format, 1, __VA_ARGS__>::fn()                                   \
    }
#define PICK_FORMATS(on, kind, bits, ...)                                                          \
    {                                                                                              \
        PICK(on, kind, bits, 0, __VA_ARGS__),                                                      \
            PICK((on) && CHAIN_FORMATS > 1, kind, bits, 1, __VA_ARGS__),                           \
            PICK((on) && CHAIN_FORMATS > 1, kind, bits, 2, __VA_ARGS__),                           \
            PICK((on) && CHAIN_FORMATS > 1, kind, bits, 3, __VA_ARGS__)                            \
    }
#define LINEAR_TABLE_ROW(kind, kinds, fold, pairs, window, ri, mode, warps, blocks, ctas)          \
    {{PICK_FORMATS(((kinds) >> kind & 1), kind, 4, fold, pairs, window, ri, MODE_##mode, warps,    \
                   blocks),                                                                        \
      PICK_FORMATS(((kinds) >> kind & 1) && CHAIN_FORMATS > 1 && MODE_##mode == MODE_STREAM, kind, \
                   8, fold, pairs, window, ri, MODE_##mode, warps, blocks)}},
#endif
