/* attend.cu - the kernels of the attention phase: attend.cuh in the shapes of attend.def. */
#include "backend/cuda/chain/rows.cuh"

const attend_row ox_chain_attend_rows[N_ATTEND_ROWS] = {
#define OX_ATTEND_ROW(hd, warps, groups, halves, normed)                                           \
    {hd,                                                                                           \
     warps,                                                                                        \
     groups,                                                                                       \
     halves,                                                                                       \
     normed,                                                                                       \
     {(const void *)attend_phase<hd, warps, groups, halves, normed, 0>,                            \
      (const void *)attend_phase<hd, warps, groups, halves, normed, 1>}},
#include "backend/cuda/chain/attend.def"
#undef OX_ATTEND_ROW
};
const void *const ox_chain_merge = (const void *)merge_phase;
