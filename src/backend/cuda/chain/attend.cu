/* attend.cu - the kernels of the attention phase: attend.cuh in the shapes of attend.def. */
#include "backend/cuda/chain/rows.cuh"

template <int HD, int WARPS, int GROUPS, int HALVES, int NORMED> static attend_row row_of(int from)
{
    attend_row r = {HD, WARPS, GROUPS, HALVES, NORMED, from, {0, 0}};
    r.fn[0] = (const void *)attend_phase<HD, WARPS, GROUPS, HALVES, NORMED, 0>;
    r.fn[1] = (const void *)attend_phase<HD, WARPS, GROUPS, HALVES, NORMED, 1>;
    return r;
}

const attend_row ox_chain_attend_rows[N_ATTEND_ROWS] = {
#define OX_ATTEND_ROW(hd, warps, groups, halves, normed, from)                                     \
    row_of<hd, warps, groups, halves, normed>(from),
#include "backend/cuda/chain/attend.def"
#undef OX_ATTEND_ROW
};
const void *const ox_chain_merge = (const void *)merge_phase;
