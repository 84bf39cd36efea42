/* cuda_wgmma.cu - the many-row product on sm_90: see cuda_wgmma.h.
 *
 * One block a multiprocessor walks tiles of 128 rows x BN columns. A producer thread keeps a ring
 * of stages (64 values of k each) filled by the bulk tensor copy engine; two warpgroups of
 * consumers, 64 rows each, multiply straight from shared memory and write their own rows. The tile
 * width comes from a table: the one whose last wave wastes least. Where there are fewer tiles than
 * multiprocessors, a cluster of blocks shares a tile along k and adds its parts in a fixed order.
 */
#include "kernel/matmul/cuda_wgmma.h"
#include "kernel/matmul/cuda_launch.cuh"
#include "kernel/matmul/cuda_row.h"
#include "kernel/matmul/cuda_wgmma.cuh"

#include <cuda_runtime.h>

enum { BM = 128, BK = 64, THREADS = 384 };

/* --- the loop -------------------------------------------------------------------------------- */

template <int BN> struct stage_of {
    static constexpr int a_bytes = BM * BK * 2, b_bytes = BN * BK * 2, bytes = a_bytes + b_bytes;
    static constexpr int n = BN >= 192 ? 4 : BN == 128 ? 6 : 8;
    static constexpr int shared = n * bytes + 1024 + 2 * n * 8;
};

template <int BN>
static __device__ __forceinline__ void produce(const CUtensorMap *mx, const CUtensorMap *mw,
                                               const tile_args &t, uint32_t ring, uint32_t full,
                                               uint32_t empty)
{
    using S = stage_of<BN>;
    int stage = 0, phase = 0;
    const int rank = blockIdx.x % t.split, first = first_step(t, rank);
    const int end = first_step(t, rank + 1);
    for (int tile = blockIdx.x / t.split; tile < t.tiles; tile += gridDim.x / t.split) {
        const int row = tile % t.tiles_m * BM, col = tile / t.tiles_m * BN;
        for (int k = first; k < end; k++) {
            barrier_wait(empty + stage * 8, phase ^ 1);
            barrier_expect(full + stage * 8, S::bytes);
            const uint32_t at = ring + stage * S::bytes;
            copy_tile(at, mx, k * BK, row, full + stage * 8);
            copy_tile(at + S::a_bytes, mw, k * BK, col, full + stage * 8);
            if (++stage == S::n) {
                stage = 0;
                phase ^= 1;
            }
        }
    }
}

template <int BN, int EPI>
static __device__ __forceinline__ void consume(const tile_args &t, uint32_t ring, uint32_t full,
                                               uint32_t empty, int group)
{
    using S = stage_of<BN>;
    const int thread = threadIdx.x % 128, lane = threadIdx.x % 32;
    const int rank = blockIdx.x % t.split, first = first_step(t, rank);
    const int end = first_step(t, rank + 1);
    int stage = 0, phase = 0;
    for (int tile = blockIdx.x / t.split; tile < t.tiles; tile += gridDim.x / t.split) {
        const int row = tile % t.tiles_m * BM + group * 64, col = tile / t.tiles_m * BN;
        float d[BN / 8][4];
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                d[j][i] = 0.0f;
        int before = -1;
        for (int k = first; k < end; k++) {
            barrier_wait(full + stage * 8, phase);
            const uint32_t at = ring + stage * S::bytes;
            const uint64_t a = wgmma_descriptor(at + group * 64 * BK * 2);
            const uint64_t b = wgmma_descriptor(at + S::a_bytes);
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < BK / 16; i++)
                wgmma<BN>::run(d, a + i * 2, b + i * 2, 1);
            wgmma_commit();
            wgmma_wait<1>(); /* the step before has been read */
            if (before >= 0 && lane == 0) barrier_arrive(empty + before * 8);
            before = stage;
            if (++stage == S::n) {
                stage = 0;
                phase ^= 1;
            }
        }
        wgmma_wait<0>();
        wgmma_hold<BN>(d);
        if (lane == 0) barrier_arrive(empty + before * 8);
        if (t.split > 1) gather_parts<BN>(t, ring, rank, d);
        if (rank > 0) continue;
        finish_tile<BN, EPI>(t, row + thread / 32 * 16 + lane / 4, col, d);
    }
}

template <int BN, int EPI>
static __global__ void __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ CUtensorMap mx, const __grid_constant__ CUtensorMap mw,
             const tile_args t)
{
#if OX_HAS_WGMMA
    using S = stage_of<BN>;
    extern __shared__ char memory[];
    const uint32_t ring = (shared_address(memory) + 1023) & ~1023u;
    const uint32_t full = ring + S::n * S::bytes, empty = full + S::n * 8;
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::n; i++) {
            barrier_init(full + i * 8, 1);
            barrier_init(empty + i * 8, 8); /* every consumer warp */
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int group = threadIdx.x / 128;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) produce<BN>(&mx, &mw, t, ring, full, empty);
        __syncwarp();
        if (t.split > 1) { /* every thread of the cluster has to come */
            cluster_meet();
            cluster_meet();
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume<BN, EPI>(t, ring, full, empty, group - 1);
    }
#endif
}

/* --- host ------------------------------------------------------------------------------------ */

template <int BN, int EPI>
static int launch(const ox_cuda_matmul_args *a, tile_args t, cudaStream_t stream)
{
    CUtensorMap mx, mw;
    if (!map_matrix(&mx, a->x, a->rows, a->k, a->ldx, BM) ||
        !map_matrix(&mw, a->w, a->n, a->k, a->ldw, BN))
        return cudaErrorNotSupported;
    return launch_tiles(multiply<BN, EPI>, stage_of<BN>::shared, THREADS, t, stream, mx, mw);
}

typedef int launch_fn(const ox_cuda_matmul_args *, tile_args, cudaStream_t);

#define WIDTH(bn, cost)                                                                            \
    {                                                                                              \
        {bn, cost},                                                                                \
        {                                                                                          \
            launch<bn, EPI_PLAIN>, launch<bn, EPI_F32>, launch<bn, EPI_PAIRS_SILU>,                \
                launch<bn, EPI_PAIRS_GELU_TANH>, launch<bn, EPI_PAIRS_ANY>                         \
        }                                                                                          \
    }
static const struct {
    tile_width width;
    launch_fn *run[EPI_COUNT];
} widths[] = {WIDTH(256, 1024), WIDTH(192, 790), WIDTH(128, 560), WIDTH(64, 340)};

int ox_cuda_matmul_wgmma(const ox_cuda_matmul_args *a, int n_sm, void *stream)
{
    tile_args t = tile_args_of(a, a->n, (a->k + BK - 1) / BK, n_sm);
    int best = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < (int)(sizeof widths / sizeof *widths); i++)
        if (choose_split(&t, widths[i].width, BM, n_sm, &least)) best = i;
    return widths[best].run[epilogue_of(a)](a, t, (cudaStream_t)stream);
}

/* --- the row of kernel/cuda.def --------------------------------------------------------------- */

bool ox_matmul_cuda_wgmma_accepts(const void *args)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    return ox_cuda_matmul_takes(a) && a->w.dtype == OX_DEV_F16 && a->w.ld % 8 == 0 && !a->pairs;
}

void ox_matmul_cuda_wgmma(const void *args, void *stream)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    ox_cuda_matmul_args m;
    if (!ox_cuda_matmul_fill(&m, a) || (uintptr_t)a->w.p % 16) {
        ox_matmul_cuda(args, stream); /* few rows, or columns that start anywhere */
        return;
    }
    m.w = a->w.p;
    m.ldw = a->w.ld;
    ox_cuda_matmul_wgmma(&m, a->n_sm, stream);
}
