/* cuda_mixed.cu - block-quantised weights against some hundred rows on sm_90: see cuda_widen.h.
 *
 * As kernel/matmul/cuda_wgmma.cu, but the producer warpgroup reads the packed codes itself, widens
 * them to float16 in registers (the same bits as cuda_widen.cu makes) and stores them in shared
 * memory in the swizzle that the tensor cores read. A stage is one unit of the packed layout, 128
 * values of k. The codes of the next stage are on their way while the present ones are widened. */
#include "kernel/matmul/cuda_launch.cuh"
#include "kernel/matmul/cuda_wgmma.cuh"
#include "kernel/qlinear/cuda_pack.cuh"
#include "kernel/qlinear/cuda_unpack.cuh"
#include "kernel/qlinear/cuda_widen.h"

enum { BM = 128, BK = OX_CUDA_UNIT, THREADS = 384, PRODUCERS = 128 };

template <int BN> struct stage_of {
    static constexpr int a_bytes = BM * BK * 2, b_bytes = BN * BK * 2, bytes = a_bytes + b_bytes;
    static constexpr int n = BN == 128 ? 3 : 4;
    static constexpr int shared = n * bytes + 1024 + 2 * n * 8;
};

/* What one warp widens of a stage: every fourth tile of 8 rows. */
template <int BN, int BITS> struct raw {
    static constexpr int tiles = BN / OX_CUDA_TILE / 4;
    uint4 codes[tiles][BITS / 4];
    uint2 scales[tiles];
};

/* Tile i of the warp, as the source's tile; with pairs the first half of the block's tiles are
 * gates, the others ups. */
template <int BN>
static __device__ __forceinline__ int source_tile(const ox_cuda_weight &w, int col, int i,
                                                  bool pairs)
{
    const int tile = threadIdx.x / 32 + i * 4, n_tiles = BN / OX_CUDA_TILE;
    const int at = !pairs               ? col / OX_CUDA_TILE + tile
                   : tile < n_tiles / 2 ? col / 2 / OX_CUDA_TILE + tile
                                        : (w.n / 2 + col / 2) / OX_CUDA_TILE + tile - n_tiles / 2;
    return at < w.n_tiles ? at : w.n_tiles - 1; /* beyond: any, it is not stored */
}

template <int BN, int BITS>
static __device__ __forceinline__ void fetch(raw<BN, BITS> &r, const ox_cuda_weight &w, int col,
                                             int unit, bool pairs, bool plain)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < raw<BN, BITS>::tiles; i++) {
        const int64_t at = (int64_t)source_tile<BN>(w, col, i, pairs) * w.k_units + unit;
#pragma unroll
        for (int c = 0; c < BITS / 4; c++)
            r.codes[i][c] = __ldg(w.codes + at * (BITS * 8) + c * 32 + lane);
        if (plain) r.scales[i] = __ldg((const uint2 *)w.scales + at * 8 + lane / 4);
    }
}

template <int BN, int BITS>
static __device__ __forceinline__ void widen_stage(const raw<BN, BITS> &r, const ox_cuda_weight &w,
                                                   uint32_t to, int col, int unit, bool pairs,
                                                   bool plain)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < raw<BN, BITS>::tiles; i++) {
        const int tile = threadIdx.x / 32 + i * 4, half = BN / OX_CUDA_TILE / 2;
        const int row = !pairs        ? tile * 8 + g
                        : tile < half ? (tile * 8 + g) * 2
                                      : ((tile - half) * 8 + g) * 2 + 1;
        const uint32_t *words = (const uint32_t *)r.codes[i];
        const int64_t first =
            (((int64_t)source_tile<BN>(w, col, i, pairs) * w.k_units + unit) * 8 + g) *
            (128 / w.block);
#pragma unroll
        for (int b = 0; b < 4; b++) {
            uint32_t h[4];
            const uint32_t *word = words + (BITS == 4 ? b : b * 2);
            if (plain) {
                const uint32_t pair = b < 2 ? r.scales[i].x : r.scales[i].y;
                const __half2 two = *(const __half2 *)&pair;
                unpack8_scaled<BITS>(word, b % 2 ? __high2half2(two) : __low2half2(two), h);
            } else {
                unpack8<BITS>(w, word, first + (b * 32 + t * 8) / w.block, h);
            }
            const int chunk = b * 4 + t;
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(
                             to + (chunk / 8 * BN + row) * 128 + ((chunk % 8) ^ (row % 8)) * 16),
                         "r"(h[0]), "r"(h[1]), "r"(h[2]), "r"(h[3])
                         : "memory");
        }
    }
}

template <int BN, int BITS>
static __device__ __forceinline__ void produce(const CUtensorMap *mx, const ox_cuda_weight &w,
                                               const tile_args &t, uint32_t ring, uint32_t full,
                                               uint32_t empty, bool pairs)
{
    using S = stage_of<BN>;
    const bool plain = !w.scale_f32 && w.zero == OX_CUDA_ZERO_MIDDLE && w.block == 32;
    const int rank = blockIdx.x % t.split, first = first_step(t, rank);
    const int end = first_step(t, rank + 1);
    int stage = 0, phase = 0, tile = blockIdx.x / t.split, k = first;
    raw<BN, BITS> r;
    if (tile < t.tiles) fetch<BN, BITS>(r, w, tile / t.tiles_m * BN, k, pairs, plain);
    while (tile < t.tiles) {
        const int row = tile % t.tiles_m * BM, col = tile / t.tiles_m * BN, unit = k;
        if (++k == end) {
            k = first;
            tile += gridDim.x / t.split;
        }
        raw<BN, BITS> next;
        if (tile < t.tiles) fetch<BN, BITS>(next, w, tile / t.tiles_m * BN, k, pairs, plain);
        barrier_wait(empty + stage * 8, phase ^ 1);
        const uint32_t at = ring + stage * S::bytes;
        if (threadIdx.x == 0) {
            barrier_expect(full + stage * 8, S::a_bytes);
            copy_tile(at, mx, unit * BK, row, full + stage * 8);
            copy_tile(at + S::a_bytes / 2, mx, unit * BK + 64, row, full + stage * 8);
        }
        widen_stage<BN, BITS>(r, w, at + S::a_bytes, col, unit, pairs, plain);
        fence_async();
        barrier_arrive(full + stage * 8);
        r = next;
        if (++stage == S::n) {
            stage = 0;
            phase ^= 1;
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
            const uint32_t a = ring + stage * S::bytes + group * 64 * 128;
            const uint32_t b = ring + stage * S::bytes + S::a_bytes;
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < BK / 16; i++)
                wgmma<BN>::run(d, wgmma_descriptor(a + i / 4 * (S::a_bytes / 2)) + i % 4 * 2,
                               wgmma_descriptor(b + i / 4 * (S::b_bytes / 2)) + i % 4 * 2, 1);
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

template <int BN, int BITS, int EPI>
static __global__ void __launch_bounds__(THREADS, 1)
    multiply_packed(const __grid_constant__ CUtensorMap mx, const ox_cuda_weight w,
                    const tile_args t)
{
#if OX_HAS_WGMMA
    using S = stage_of<BN>;
    extern __shared__ char memory[];
    const uint32_t ring = (shared_address(memory) + 1023) & ~1023u;
    const uint32_t full = ring + S::n * S::bytes, empty = full + S::n * 8;
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::n; i++) {
            barrier_init(full + i * 8, PRODUCERS + 1); /* everyone, and the copy of x */
            barrier_init(empty + i * 8, 8);            /* every consumer warp */
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int group = threadIdx.x / 128;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 120;");
        produce<BN, BITS>(&mx, w, t, ring, full, empty, EPI >= EPI_PAIRS_SILU);
        __syncwarp();
        if (t.split > 1) { /* every thread of the cluster has to come */
            cluster_meet();
            cluster_meet();
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        consume<BN, EPI>(t, ring, full, empty, group - 1);
    }
#endif
}

/* --- host ------------------------------------------------------------------------------------ */

template <int BN, int BITS, int EPI>
static int launch(const ox_cuda_weight *w, const ox_cuda_matmul_args *a, tile_args t,
                  cudaStream_t stream)
{
    CUtensorMap mx;
    if (!map_matrix(&mx, a->x, a->rows, a->k, a->ldx, BM)) return cudaErrorNotSupported;
    return launch_tiles(multiply_packed<BN, BITS, EPI>, stage_of<BN>::shared, THREADS, t, stream,
                        mx, *w);
}

typedef int launch_fn(const ox_cuda_weight *, const ox_cuda_matmul_args *, tile_args, cudaStream_t);

#define WIDTH(bn, bits)                                                                            \
    {                                                                                              \
        launch<bn, bits, EPI_PLAIN>, launch<bn, bits, EPI_F32>, launch<bn, bits, EPI_PAIRS_SILU>,  \
            launch<bn, bits, EPI_PAIRS_GELU_TANH>, launch<bn, bits, EPI_PAIRS_ANY>                 \
    }
static const struct {
    tile_width width;
    launch_fn *run[2][EPI_COUNT]; /* 4 and 8 bits */
} widths[] = {{{128, 1250}, {WIDTH(128, 4), WIDTH(128, 8)}},
              {{64, 760}, {WIDTH(64, 4), WIDTH(64, 8)}}};

int ox_cuda_linear_mixed(const ox_cuda_weight *w, const ox_cuda_matmul_args *a, int n_sm,
                         void *stream)
{
    if (w->bits == 16) return cudaErrorNotSupported;
    tile_args t = tile_args_of(a, w->n, w->k_units, n_sm);
    int best = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < 2; i++)
        if (choose_split(&t, widths[i].width, BM, n_sm, &least)) best = i;
    return widths[best].run[w->bits == 8][epilogue_of(a)](w, a, t, (cudaStream_t)stream);
}
