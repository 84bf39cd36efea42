/* cuda_flash.cu - attention of many rows on sm_90: see cuda_flash.h.
 *
 * A block owns one query head and up to 128 rows: two warpgroups of consumers with 64 rows each. A
 * third warpgroup brings tiles of keys and values from the pages into a ring in shared memory, in
 * the 128-byte swizzle that the tensor cores read. A consumer starts the next tile's scores before
 * it multiplies the present weights with the values, and works out the softmax meanwhile. */
#include "kernel/attend/cuda_flash.h"
#include "kernel/matmul/cuda_async.cuh"
#include "kernel/matmul/cuda_wgmma.cuh"

#include "kernel/device.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

enum { THREADS = 384, PAGE = 64, ROWS = OX_FLASH_ROWS };

/* KD, VD: sizes of keys and values, rounded up to 64; NT: keys of a tile. */
template <int KD, int VD> struct shape {
    static constexpr int nt = KD + VD > 256 ? 64 : 128;
    static constexpr int q_bytes = ROWS * KD * 2;
    static constexpr int k_bytes = nt * KD * 2, v_bytes = nt * VD * 2;
    static constexpr int n = (200 * 1024 - q_bytes) / (k_bytes + v_bytes) >= 4
                                 ? 4
                                 : (200 * 1024 - q_bytes) / (k_bytes + v_bytes);
    static constexpr int shared = q_bytes + n * (k_bytes + v_bytes) + 1024 + 4 * n * 8;
};

/* Arrives once every copy that this thread has started so far is there. */
static __device__ __forceinline__ void arrive_after_copies(uint32_t b)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(b) : "memory");
}
static __device__ __forceinline__ float exp2_fast(float x) /* 2^x, error 2 ulp; 2^-inf = 0 */
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
static __device__ __forceinline__ void copy16(uint32_t to, const void *from, bool real)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(real ? 16 : 0)
                 : "memory");
}

/* Byte of 16-byte chunk c of row r in a block of rows of 128 bytes; blocks of 64 columns follow
 * each other, n_rows rows each. */
static __device__ __forceinline__ uint32_t swizzled(int r, int c, int n_rows)
{
    return (uint32_t)((c / 8 * n_rows + r) * 128 + ((c % 8) ^ (r % 8)) * 16);
}

/* Tiles of keys that rows at [pos, pos + n) see: [first, end). */
struct tile_range {
    int first, end;
};
static __device__ __forceinline__ tile_range tiles_seen(int pos, int n, int window, int nt)
{
    const int from = window > 0 && pos >= window ? pos - window + 1 : 0;
    return {from / nt, (pos + n + nt - 1) / nt};
}

/* --- the warpgroup that brings keys and values --------------------------------------------------
 */

/* Each thread brings one 16-byte column of every 1024 / D-th row. Rows past last_pos become 0. */
template <int D, int NT>
static __device__ __forceinline__ void bring(uint32_t to, const char *const *table, int tile,
                                             int last_pos, int64_t offset, int64_t per_pos,
                                             int size)
{
    constexpr int chunks = D / 8, step = 128 / chunks;
    const int c = threadIdx.x % chunks, r0 = threadIdx.x / chunks;
    const bool inside = c * 8 < size;
#pragma unroll 1
    for (int part = 0; part < NT / PAGE; part++) {
        const int start = tile * NT + part * PAGE;
        const bool any = start <= last_pos;
        const char *from = table[(any ? start : last_pos) / PAGE] + offset + (inside ? c * 16 : 0);
#pragma unroll 4
        for (int i = 0; i < PAGE; i += step) {
            const int r = i + r0;
            if (step <= PAGE || r < PAGE)
                copy16(to + swizzled(part * PAGE + r, c, NT), from + r * per_pos,
                       inside && start + r <= last_pos);
        }
    }
}

template <int KD, int VD>
static __device__ __forceinline__ void produce(const ox_cuda_flash_args &a,
                                               const ox_cuda_flash_tile &t, int kv_head,
                                               uint32_t ring, uint32_t bars)
{
    using S = shape<KD, VD>;
    const char *const *table = (const char *const *)a.pages + a.first[t.seq];
    const tile_range seen = tiles_seen(t.pos, t.n_rows, a.window, S::nt);
    const int last = t.pos + t.n_rows - 1;
    const int64_t k_at = a.k_offset + kv_head * a.k_head, v_at = a.v_offset + kv_head * a.v_head;
    int stage = 0, phase = 0;
    for (int j = seen.first; j < seen.end; j++) {
        const uint32_t at = ring + stage * (S::k_bytes + S::v_bytes);
        barrier_wait(bars + (2 * S::n + stage) * 8, phase ^ 1);
        bring<KD, S::nt>(at, table, j, last, k_at, a.k_pos, a.head_size);
        arrive_after_copies(bars + stage * 8);
        barrier_wait(bars + (3 * S::n + stage) * 8, phase ^ 1);
        bring<VD, S::nt>(at + S::k_bytes, table, j, last, v_at, a.v_pos, a.v_head_size);
        arrive_after_copies(bars + (S::n + stage) * 8);
        if (++stage == S::n) {
            stage = 0;
            phase ^= 1;
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* --- consumers ------------------------------------------------------------------------------- */

template <int KD>
static __device__ __forceinline__ void load_queries(const ox_cuda_flash_args &a,
                                                    const ox_cuda_flash_tile &t, int head,
                                                    uint32_t to, int group)
{
    constexpr int chunks = KD / 8;
    const int thread = threadIdx.x % 128;
    for (int i = thread; i < 64 * chunks; i += 128) {
        const int r = group * 64 + i / chunks, c = i % chunks;
        const bool real = r < t.n_rows && c * 8 < a.head_size;
        const __half *from = (const __half *)a.q + (int64_t)(t.row + (real ? r : 0)) * a.ldq +
                             (int64_t)head * a.head_size + (real ? c * 8 : 0);
        copy16(to + swizzled(r, c, ROWS), from, real);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    fence_async();
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

template <int KD, int NT>
static __device__ __forceinline__ void scores(float (*s)[4], uint32_t q, uint32_t k, int group)
{
#pragma unroll
    for (int i = 0; i < KD / 16; i++) {
        const uint64_t x = wgmma_descriptor(q + i / 4 * ROWS * 128 + group * 64 * 128) + i % 4 * 2;
        const uint64_t y = wgmma_descriptor(k + i / 4 * NT * 128) + i % 4 * 2;
        wgmma<NT>::run(s, x, y, i > 0);
    }
    wgmma_commit();
}

template <int VD, int NT>
static __device__ __forceinline__ void blend(float (*o)[4], const uint32_t (*p)[4], uint32_t v)
{
#pragma unroll
    for (int i = 0; i < NT / 16; i++)
        wgmma_registers<VD>::run(o, p[i], wgmma_descriptor_rows(v + i * 2048, NT * 128));
    wgmma_commit();
}

struct softmax_rows { /* of the thread's two rows */
    float max[2], sum[2];
};

/* Scores become weights; returns by how much the accumulator shrinks. */
template <int NT, bool CAP>
static __device__ __forceinline__ void weigh(const ox_cuda_flash_args &a, float (*s)[4],
                                             softmax_rows &w, float *shrink, const int *first,
                                             const int *end, int start, bool masked)
{
    const float log2e = 1.4426950408889634f, by = CAP ? log2e : a.scale * log2e;
    const int column = threadIdx.x % 4 * 2;
    if (CAP) {
#pragma unroll
        for (int j = 0; j < NT / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[j][i] = a.softcap * tanhf(s[j][i] * a.scale / a.softcap);
    }
    if (masked) {
#pragma unroll
        for (int j = 0; j < NT / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int key = start + j * 8 + column + i % 2;
                if (key < first[i / 2] || key >= end[i / 2]) s[j][i] = -INFINITY;
            }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float part[4]; /* four chains, so that none waits for itself */
#pragma unroll
        for (int c = 0; c < 4; c++)
            part[c] = fmaxf(s[c][2 * r], s[c][2 * r + 1]);
#pragma unroll
        for (int j = 4; j < NT / 8; j++)
            part[j % 4] = fmaxf(part[j % 4], fmaxf(s[j][2 * r], s[j][2 * r + 1]));
        float top = fmaxf(w.max[r], fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])));
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
        const float from = top == -INFINITY ? 0.0f : top * by;
        /* a tile that brings no new maximum shrinks by exactly 1 */
        shrink[r] = w.max[r] == -INFINITY ? 0.0f : exp2_fast((w.max[r] - top) * by);
        w.max[r] = top;
#pragma unroll
        for (int c = 0; c < 4; c++)
            part[c] = 0.0f;
#pragma unroll
        for (int j = 0; j < NT / 8; j++) {
            s[j][2 * r] = exp2_fast(fmaf(s[j][2 * r], by, -from));
            s[j][2 * r + 1] = exp2_fast(fmaf(s[j][2 * r + 1], by, -from));
            part[j % 4] += s[j][2 * r] + s[j][2 * r + 1];
        }
        const float sum = (part[0] + part[1]) + (part[2] + part[3]);
        w.sum[r] = w.sum[r] * shrink[r] + sum;
    }
}

template <int NT>
static __device__ __forceinline__ void pack_weights(const float (*s)[4], uint32_t (*p)[4])
{
#pragma unroll
    for (int i = 0; i < NT / 16; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const __half2 h =
                __floats2half2_rn(s[2 * i + c / 2][c % 2 * 2], s[2 * i + c / 2][c % 2 * 2 + 1]);
            p[i][c] = *(const uint32_t *)&h;
        }
}

template <int KD, int VD, bool CAP>
static __device__ __forceinline__ void consume(const ox_cuda_flash_args &a,
                                               const ox_cuda_flash_tile &t, int head, uint32_t q,
                                               uint32_t ring, uint32_t bars, int group)
{
    using S = shape<KD, VD>;
    constexpr int NT = S::nt;
    const int thread = threadIdx.x % 128, lane = thread % 32, warp = thread / 32;
    load_queries<KD>(a, t, head, q, group);
    const tile_range seen = tiles_seen(t.pos, t.n_rows, a.window, NT);
    const int row = group * 64 + warp * 16 + lane / 4; /* and + 8 */
    int first[2], end[2];
    softmax_rows w;
    const float log2e = 1.4426950408889634f, by = CAP ? log2e : a.scale * log2e;
    for (int r = 0; r < 2; r++) {
        const int pos = t.pos + row + 8 * r;
        end[r] = pos + 1;
        first[r] = a.window > 0 && pos >= a.window ? pos - a.window + 1 : 0;
        w.max[r] = a.sinks ? a.sinks[head] * log2e / by : -INFINITY;
        w.sum[r] = a.sinks && lane % 4 == 0 ? 1.0f : 0.0f;
    }
    /* Tiles [free, bound) are seen whole by every row of this warpgroup. */
    const int low = t.pos + group * 64, high = low + 63;
    const int free = a.window > 0 && high >= a.window ? (high - a.window + 1 + NT - 1) / NT : 0;
    const int bound = (low + 1) / NT;
    float s[NT / 8][4], o[VD / 8][4], shrink[2];
    uint32_t p[NT / 16][4];
#pragma unroll
    for (int j = 0; j < VD / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            o[j][i] = 0.0f;
    int stage = 0, phase = 0;
    barrier_wait(bars, 0);
    fence_async(); /* written by ordinary copies, read by the tensor cores */
    wgmma_fence();
    scores<KD, NT>(s, q, ring, group);
    wgmma_wait<0>();
    if (lane == 0) barrier_arrive(bars + 2 * S::n * 8);
    weigh<NT, CAP>(a, s, w, shrink, first, end, seen.first * NT,
                   seen.first < free || seen.first >= bound);
    pack_weights<NT>(s, p);
    for (int j = seen.first + 1; j < seen.end; j++) {
        const int next = stage + 1 == S::n ? 0 : stage + 1, next_phase = next ? phase : phase ^ 1;
        const uint32_t at = ring + stage * (S::k_bytes + S::v_bytes);
        barrier_wait(bars + next * 8, next_phase);
        barrier_wait(bars + (S::n + stage) * 8, phase);
        fence_async();
        wgmma_fence();
        scores<KD, NT>(s, q, ring + next * (S::k_bytes + S::v_bytes), group);
        blend<VD, NT>(o, p, at + S::k_bytes);
        wgmma_wait<1>();
        if (lane == 0) barrier_arrive(bars + (2 * S::n + next) * 8);
        weigh<NT, CAP>(a, s, w, shrink, first, end, j * NT, j < free || j >= bound);
        wgmma_wait<0>();
        if (lane == 0) barrier_arrive(bars + (3 * S::n + stage) * 8);
        pack_weights<NT>(s, p);
#pragma unroll
        for (int i = 0; i < VD / 8; i++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                o[i][c] *= shrink[c / 2];
        stage = next;
        phase = next_phase;
    }
    barrier_wait(bars + (S::n + stage) * 8, phase);
    fence_async();
    wgmma_fence();
    blend<VD, NT>(o, p, ring + stage * (S::k_bytes + S::v_bytes) + S::k_bytes);
    wgmma_wait<0>();
    for (int r = 0; r < 2; r++) {
        float sum = w.sum[r];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        const float scale = sum > 0.0f ? 1.0f / sum : 0.0f;
        if (row + 8 * r >= t.n_rows) continue;
        __half *out = (__half *)a.out + (int64_t)(t.row + row + 8 * r) * a.ldo +
                      (int64_t)head * a.v_head_size + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < VD / 8; j++)
            if (j * 8 < a.v_head_size)
                *(__half2 *)(out + j * 8) =
                    __floats2half2_rn(o[j][2 * r] * scale, o[j][2 * r + 1] * scale);
    }
}

template <int KD, int VD, bool CAP>
static __global__ void __launch_bounds__(THREADS, 1) flash(const ox_cuda_flash_args a)
{
#if OX_HAS_WGMMA
    using S = shape<KD, VD>;
    extern __shared__ char memory[];
    const uint32_t q = (shared_address(memory) + 1023) & ~1023u;
    const uint32_t ring = q + S::q_bytes, bars = ring + S::n * (S::k_bytes + S::v_bytes);
    if (threadIdx.x == 0)
        for (int i = 0; i < S::n; i++) {
            barrier_init(bars + i * 8, 128);            /* keys are there */
            barrier_init(bars + (S::n + i) * 8, 128);   /* values are there */
            barrier_init(bars + (2 * S::n + i) * 8, 8); /* keys were read by every warp */
            barrier_init(bars + (3 * S::n + i) * 8, 8); /* values were */
        }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const int head = blockIdx.x, group = threadIdx.x / 128;
    const ox_cuda_flash_tile t = a.tiles[a.n_tiles - 1 - blockIdx.y]; /* the costliest first */
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        produce<KD, VD>(a, t, head / (a.n_heads / a.n_kv_heads), ring, bars);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume<KD, VD, CAP>(a, t, head, q, ring, bars, group - 1);
    }
#endif
}

/* --- host ------------------------------------------------------------------------------------ */

template <int KD, int VD, bool CAP>
static int launch(const ox_cuda_flash_args *a, cudaStream_t stream)
{
    const int bytes = shape<KD, VD>::shared;
    const cudaError_t e = cudaFuncSetAttribute(flash<KD, VD, CAP>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (e != cudaSuccess) return e;
    flash<KD, VD, CAP><<<dim3(a->n_heads, a->n_tiles), THREADS, bytes, stream>>>(*a);
    return cudaGetLastError();
}

typedef int launch_fn(const ox_cuda_flash_args *, cudaStream_t);

/* Head sizes, rounded up: the first row that holds both. */
static const struct {
    int kd, vd;
    launch_fn *plain, *capped;
} sizes[] = {
    {64, 64, launch<64, 64, false>, launch<64, 64, true>},
    {128, 128, launch<128, 128, false>, launch<128, 128, true>},
    {256, 256, launch<256, 256, false>, launch<256, 256, true>},
};

int ox_cuda_flash(const ox_cuda_flash_args *a, void *stream)
{
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        if (a->head_size <= sizes[i].kd && a->v_head_size <= sizes[i].vd)
            return (a->softcap > 0.0f ? sizes[i].capped : sizes[i].plain)(a, (cudaStream_t)stream);
    return cudaErrorNotSupported;
}

/* --- the row of kernel/cuda.def --------------------------------------------------------------- */

bool ox_attend_cuda_wgmma_accepts(const void *args)
{
    const ox_dev_attend_args *a = (const ox_dev_attend_args *)args;
    const ox_dev_cache &c = a->cache;
    return a->rows >= OX_FLASH_ROWS && a->q.dtype == OX_DEV_F16 && a->y.dtype == OX_DEV_F16 &&
           c.dtype == OX_DEV_F16 && c.head_size % 8 == 0 && c.v_head_size % 8 == 0 &&
           c.head_size <= 256 && c.v_head_size <= 256 && a->q.ld % 8 == 0 && a->y.ld % 2 == 0;
}

void ox_attend_cuda_wgmma(const void *args, void *stream)
{
    const ox_dev_attend_args *a = (const ox_dev_attend_args *)args;
    const ox_dev_cache &c = a->cache;
    if (!c.step.n_tiles || (uintptr_t)a->q.p % 16 || (uintptr_t)a->y.p % 4) {
        ox_attend_cuda(args, stream); /* no runs of rows, or columns that start anywhere */
        return;
    }
    ox_cuda_flash_args f = {};
    f.q = a->q.p;
    f.out = a->y.p;
    f.ldq = a->q.ld;
    f.ldo = a->y.ld;
    f.tiles = (const ox_cuda_flash_tile *)c.step.tiles;
    f.n_tiles = c.step.n_tiles;
    f.pages = c.step.pages;
    f.first = c.step.first;
    f.k_offset = (int64_t)c.k_offset;
    f.v_offset = (int64_t)c.v_offset;
    f.k_pos = c.head_size * 2;
    f.v_pos = c.v_head_size * 2;
    f.k_head = f.k_pos * PAGE;
    f.v_head = f.v_pos * PAGE;
    f.n_heads = a->n_heads;
    f.n_kv_heads = c.n_kv_heads;
    f.head_size = c.head_size;
    f.v_head_size = c.v_head_size;
    f.scale = a->scale;
    f.softcap = a->softcap;
    f.window = a->window;
    f.sinks = a->sinks;
    ox_cuda_flash(&f, stream); /* a failed launch shows after the step */
}
