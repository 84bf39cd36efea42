/* cuda_launch.cuh - the host side of the tiled products: which tile width, how many blocks share a
 * tile along k, and the launch. */
#ifndef OX_KERNEL_MATMUL_CUDA_LAUNCH_CUH
#define OX_KERNEL_MATMUL_CUDA_LAUNCH_CUH
#include "kernel/matmul/cuda_epilogue.cuh"
#include "kernel/matmul/cuda_wgmma.h"

/* Cycles of meeting and of gathering a column. Clusters don't straddle the chip's groups of
 * multiprocessors: not all of these can be taken. */
enum { MAX_SPLIT = 8, SPLIT_COST = 2500, SPLIT_COLUMN = 10 };

typedef struct tile_width {
    int columns;
    int cost; /* cycles that a step of k takes on a multiprocessor */
} tile_width;

static bool is_aligned(const void *p, int64_t ld)
{
    return (uintptr_t)p % 16 == 0 && ld % 8 == 0;
}

static tile_args tile_args_of(const ox_cuda_matmul_args *a, int n, int k_steps, int n_sm)
{
    const bool aligned = is_aligned(a->y, a->ldy) && (!a->add || is_aligned(a->add, a->ldadd));
    tile_args t = {};
    t.bias = a->bias;
    t.bias_up = a->bias_up;
    t.add = (const __half *)a->add;
    t.y = a->y;
    t.rows = a->rows;
    t.n = n;
    t.k_steps = k_steps;
    t.ldadd = a->ldadd;
    t.ldy = a->ldy;
    t.act = a->act;
    t.aligned = aligned;
    t.blocks = n_sm;
    return t;
}

static int epilogue_of(const ox_cuda_matmul_args *a)
{
    return !a->pairs                 ? (a->y_f32 ? EPI_F32 : EPI_PLAIN)
           : a->act == ACT_SILU      ? EPI_PAIRS_SILU
           : a->act == ACT_GELU_TANH ? EPI_PAIRS_GELU_TANH
                                     : EPI_PAIRS_ANY;
}

/* Fills t's tiling for this width if it beats *least cycles. */
static bool choose_split(tile_args *t, tile_width width, int tile_rows, int n_sm, int64_t *least)
{
    const int tiles_m = (t->rows + tile_rows - 1) / tile_rows;
    const int64_t tiles = (int64_t)tiles_m * ((t->n + width.columns - 1) / width.columns);
    bool better = false;
    for (int split = 1; split <= MAX_SPLIT; split *= 2) {
        if (split > 1 && (tiles * split > n_sm * 7 / 8 || t->k_steps < 2 * split)) break;
        const int64_t waves = (tiles * split + n_sm - 1) / n_sm;
        const int64_t cost = waves * ((t->k_steps + split - 1) / split) * width.cost +
                             (split > 1 ? SPLIT_COST + split * width.columns * SPLIT_COLUMN : 0);
        if (cost >= *least) continue;
        *least = cost;
        t->split = split;
        t->tiles_m = tiles_m;
        t->tiles = (int)tiles;
        t->blocks = (int)(tiles * split < n_sm ? tiles * split : n_sm);
        better = true;
    }
    return better;
}

template <typename KERNEL, typename... OPERANDS>
static int launch_tiles(KERNEL *kernel, int shared, int threads, const tile_args &t,
                        cudaStream_t stream, const OPERANDS &...operands)
{
    cudaError_t e =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess) return e;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)t.split;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3((unsigned)t.blocks);
    c.blockDim = dim3((unsigned)threads);
    c.dynamicSmemBytes = (size_t)shared;
    c.stream = stream;
    c.attrs = &cluster;
    c.numAttrs = t.split > 1;
    e = cudaLaunchKernelEx(&c, kernel, operands..., t);
    return e != cudaSuccess ? e : cudaGetLastError();
}
#endif
