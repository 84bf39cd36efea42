/* linear_down.cu - the kernels of the phase of this name: linear.cuh in the shapes of linear.def.
 */
#include "backend/cuda/chain/rows.cuh"

#define Q KIND_Q
#define O KIND_O
#define G KIND_G
#define D KIND_D
const linear_fns ox_chain_down_rows[N_LINEAR_ROWS] = {
#define OX_LINEAR_ROW(...) LINEAR_TABLE_ROW(LINEAR_DOWN, __VA_ARGS__)
#include "backend/cuda/chain/linear.def"
#undef OX_LINEAR_ROW
};
#undef Q
#undef O
#undef G
#undef D
