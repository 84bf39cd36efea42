/* head.cu - the kernels of the head phase: head.cuh in the shapes of head.def. */
#include "backend/cuda/chain/rows.cuh"

template <int RING, int NW, int BITS, bool ALL> struct head_fns {
    static const void *fn(int f)
    {
        if (f == 1) return (const void *)head_phase<RING, NW, BITS, 1>;
        if (f == 2) return (const void *)head_phase<RING, NW, BITS, 2>;
        return (const void *)head_phase<RING, NW, BITS, 3>;
    }
};
template <int RING, int NW, int BITS> struct head_fns<RING, NW, BITS, false> {
    static const void *fn(int)
    {
        return 0;
    }
};
const head_row ox_chain_head_rows[N_HEAD_ROWS] = {
#define OX_HEAD_ROW(ring, warps, bits)                                                             \
    {ring,                                                                                         \
     warps,                                                                                        \
     bits,                                                                                         \
     {(const void *)head_phase<ring, warps, bits, 0>, head_fns < ring, warps, bits,                \
      bits != 16 && (CHAIN_FORMATS > 1) > ::fn(1), head_fns < ring, warps, bits,                   \
      bits != 16 && (CHAIN_FORMATS > 1) > ::fn(2), head_fns < ring, warps, bits,                   \
      bits != 16 && (CHAIN_FORMATS > 1) > ::fn(3)}},
#include "backend/cuda/chain/head.def"
#undef OX_HEAD_ROW
};
