/* CUDA row of attend.h for any shape: pages as in kernel/attend/cuda_kv.cuh, of any element type.
 *
 * A block owns one kv head, up to 8 queries of its group (of several rows when they share their
 * sequence) and a range of key tiles; tiles are 64 keys, cut at absolute positions. Per tile: a
 * thread a key and four queries, softmax in running form by warps, then a thread a channel of V.
 * Ranges are merged by a second kernel in ascending order. The range is a fixed number of tiles, so
 * a row's bits do not depend on who shares the step. */
#include "kernel/device.cuh"

#include <math_constants.h>

enum { BLOCK = 128, QUERIES = 8, TILE = 64, TILES_A_SPLIT = 1, MAX_V = 512, MAX_SPLITS = 512 };

typedef struct plan {
    int32_t splits, tiles_a_split, blocks_a_row, rows_mixed, d_lanes;
} plan;

/* Query i (0..7) of query block y: its row and head; false: there is none. */
OX_DEV bool query_of(const ox_dev_attend_args &a, const plan &p, int32_t y, int32_t i, int32_t *row,
                     int32_t *head)
{
    const int32_t group = a.n_heads / a.cache.n_kv_heads;
    int32_t in_group;
    if (p.rows_mixed) {
        const int32_t at = y * QUERIES + i;
        *row = at / group;
        in_group = at % group;
    } else {
        *row = y / p.blocks_a_row;
        in_group = y % p.blocks_a_row * QUERIES + i;
    }
    *head = (int32_t)blockIdx.z * group + in_group;
    return in_group < group && *row < a.rows;
}

OX_DEV float *partial_of(const ox_dev_attend_args &a, const plan &p, int32_t row, int32_t head,
                         int32_t split)
{
    const size_t at = ((size_t)row * (size_t)a.n_heads + (size_t)head) * (size_t)p.splits;
    return (float *)a.scratch + (at + (size_t)split) * (size_t)(2 + a.cache.v_head_size);
}

/* s[0..4) += dot of the key row with four queries. D: head size, 0 = d, any. Rows of q are `ldq`
 * floats apart, a multiple of 8, and padded with zeros. */
template <class T, int D>
OX_DEV void dots(const T *kr, const float *q, int32_t ldq, int32_t d, float *s)
{
    const bool vec = ((uintptr_t)kr & 15) == 0;
    const int32_t n = D ? D : d;
#pragma unroll(D ? D / 8 : 1)
    for (int32_t i = 0; i < n; i += 8) {
        float kf[8];
        ox_load8(kr, i, n, vec, kf);
#pragma unroll
        for (int m = 0; m < 4; m++) {
            const float4 a = *(const float4 *)(q + m * ldq + i);
            const float4 b = *(const float4 *)(q + m * ldq + i + 4);
            s[m] = fmaf(kf[0], a.x, fmaf(kf[1], a.y, fmaf(kf[2], a.z, fmaf(kf[3], a.w, s[m]))));
            s[m] = fmaf(kf[4], b.x, fmaf(kf[5], b.y, fmaf(kf[6], b.z, fmaf(kf[7], b.w, s[m]))));
        }
    }
}

/* acc[0..QUERIES) += weights of keys part, part + parts, ... times a channel of V. w: [key][query],
 * whose weights of keys nobody sees are zero and whose values are not looked at. */
template <class T>
OX_DEV void weigh(const T *v, int32_t dv, const float *w, int32_t part, int32_t parts,
                  int32_t n_keys, float *acc)
{
    enum { AHEAD = 16 };
    for (int32_t j0 = part; j0 < n_keys; j0 += parts * AHEAD) {
        T x[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int32_t j = j0 + i * parts;
            x[i] = j < n_keys ? v[(size_t)j * (size_t)dv] : ox_from_float<T>(0.0f);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int32_t j = min(j0 + i * parts, TILE - 1);
            const float4 a = *(const float4 *)(w + j * QUERIES);
            const float4 b = *(const float4 *)(w + j * QUERIES + 4);
            const float f = ox_to_float(x[i]);
            acc[0] = fmaf(a.x, f, acc[0]);
            acc[1] = fmaf(a.y, f, acc[1]);
            acc[2] = fmaf(a.z, f, acc[2]);
            acc[3] = fmaf(a.w, f, acc[3]);
            acc[4] = fmaf(b.x, f, acc[4]);
            acc[5] = fmaf(b.y, f, acc[5]);
            acc[6] = fmaf(b.z, f, acc[6]);
            acc[7] = fmaf(b.w, f, acc[7]);
        }
    }
}

template <class T, int NI, int D>
static __global__ void attend_kernel(ox_dev_attend_args a, plan p)
{
    extern __shared__ __align__(16) float shared[];
    const ox_dev_cache &c = a.cache;
    const int32_t d = c.head_size, dv = c.v_head_size, tid = (int32_t)threadIdx.x;
    const int32_t split = (int32_t)blockIdx.x, y = (int32_t)blockIdx.y, kvh = (int32_t)blockIdx.z;
    const int32_t ldq = (d + 7) / 8 * 8;
    float *q = shared, *w = q + QUERIES * ldq, *fold = w + QUERIES * TILE; /* fold: [QUERIES] */
    float *sum_of = fold + QUERIES, *max_of = sum_of + QUERIES, *meet = max_of + QUERIES;
    int32_t *pos_of = (int32_t *)(meet + NI * QUERIES * BLOCK);

    ox_let_next_start();
    ox_wait_for_step();
    if (tid < QUERIES) {
        int32_t row, head;
        pos_of[tid] = query_of(a, p, y, tid, &row, &head) ? c.step.pos[row] : -1;
        sum_of[tid] = 0.0f;
        max_of[tid] = -CUDART_INF_F;
    }
    for (int32_t m = 0; m < QUERIES; m++) {
        int32_t row, head;
        const bool have = query_of(a, p, y, m, &row, &head);
        for (int32_t i = tid; i < ldq; i += BLOCK)
            q[m * ldq + i] = have && i < d ? ox_get(a.q, row, head * d + i) : 0.0f;
    }
    __syncthreads();
    int32_t last = -1, first = 0x7fffffff, row0, head0;
    for (int i = 0; i < QUERIES; i++) {
        const int32_t pos = pos_of[i];
        if (pos < 0) continue;
        last = max(last, pos);
        first = min(first, a.window > 0 && pos >= a.window ? pos - a.window + 1 : 0);
    }
    query_of(a, p, y, 0, &row0, &head0);
    void *const *pages = c.step.pages + (last < 0 ? 0 : c.step.first[c.step.seq[row0]]);

    const int32_t parts = BLOCK / p.d_lanes, part = tid / p.d_lanes, d0 = tid % p.d_lanes;
    float acc[NI][QUERIES] = {};
    int32_t tile = split * p.tiles_a_split, end = tile + p.tiles_a_split;
    if (tile < first / TILE) tile = first / TILE;
    if (p.splits == 1 || end > last / TILE + 1) end = last / TILE + 1;
    if (last < 0) end = 0;
    for (; tile < end; tile++) {
        const int32_t key = tid % TILE, q0 = tid / TILE * 4, at = tile * TILE + key;
        const char *page = (const char *)pages[tile];
        const T *kr = (const T *)(page + c.k_offset) + ((size_t)kvh * TILE + (size_t)key) * (size_t)d;
        float s[4] = {};
        if (at <= last) dots<T, D>(kr, q + q0 * ldq, ldq, d, s);
#pragma unroll
        for (int m = 0; m < 4; m++) {
            const int32_t pos = pos_of[q0 + m];
            float t = s[m] * a.scale;
            if (a.softcap > 0.0f) t = a.softcap * tanhf(t / a.softcap);
            const bool seen = at <= pos && !(a.window > 0 && at <= pos - a.window);
            w[key * QUERIES + q0 + m] = seen ? t : -CUDART_INF_F;
        }
        __syncthreads();
        for (int i = 0; i < QUERIES / (BLOCK / 32); i++) {
            const int32_t m = tid / 32 * (QUERIES / (BLOCK / 32)) + i, lane = tid & 31;
            const float t0 = w[lane * QUERIES + m], t1 = w[(32 + lane) * QUERIES + m];
            const float old = max_of[m], top = fmaxf(old, ox_warp_max(fmaxf(t0, t1)));
            const float base = top == -CUDART_INF_F ? 0.0f : top;
            const float e0 = expf(t0 - base), e1 = expf(t1 - base), f = expf(old - base);
            const float more = ox_warp_sum(e0 + e1);
            w[lane * QUERIES + m] = e0;
            w[(32 + lane) * QUERIES + m] = e1;
            __syncwarp();
            if (!lane) {
                fold[m] = f;
                sum_of[m] = sum_of[m] * f + more;
                max_of[m] = top;
            }
        }
        __syncthreads();
        const T *v = (const T *)(page + c.v_offset) + (size_t)kvh * TILE * (size_t)dv;
        const int32_t n_keys = min(TILE, last - tile * TILE + 1);
#pragma unroll
        for (int i = 0; i < NI; i++) {
            const int32_t ch = d0 + i * BLOCK;
            if (ch >= dv) break;
#pragma unroll
            for (int m = 0; m < QUERIES; m++)
                acc[i][m] *= fold[m];
            weigh(v + ch, dv, w, part, parts, n_keys, acc[i]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < NI; i++)
#pragma unroll
        for (int m = 0; m < QUERIES; m++)
            meet[(i * QUERIES + m) * BLOCK + tid] = acc[i][m];
    __syncthreads();
    for (int32_t i = tid; i < QUERIES * dv; i += BLOCK) {
        const int32_t m = i / dv, ch = i % dv;
        int32_t row, head;
        if (!query_of(a, p, y, m, &row, &head)) continue;
        float sum = 0.0f;
        for (int32_t k = 0; k < parts; k++)
            sum += meet[(ch / BLOCK * QUERIES + m) * BLOCK + k * p.d_lanes + ch % BLOCK];
        if (p.splits > 1) {
            float *to = partial_of(a, p, row, head, split);
            to[2 + ch] = sum;
            if (!ch) {
                to[0] = max_of[m];
                to[1] = sum_of[m];
            }
            continue;
        }
        float l = sum_of[m], f = 1.0f;
        if (a.sinks) {
            const float top = fmaxf(max_of[m], a.sinks[head]);
            f = expf(max_of[m] - top);
            l = l * f + expf(a.sinks[head] - top);
        }
        ox_put(a.y, row, head * dv + ch, sum_of[m] > 0.0f ? sum * f / l : sum_of[m]);
    }
}

OX_DEV float block_max(float v, float *part)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    v = ox_warp_max(v);
    if (!lane) part[warp] = v;
    __syncthreads();
    for (int i = 0; i < BLOCK / 32; i++)
        v = fmaxf(v, part[i]);
    __syncthreads();
    return v;
}

static __global__ void merge_kernel(ox_dev_attend_args a, plan p)
{
    const int32_t row = (int32_t)blockIdx.x / a.n_heads, head = (int32_t)blockIdx.x % a.n_heads;
    const int32_t dv = a.cache.v_head_size, stride = 2 + dv;
    __shared__ float weight[MAX_SPLITS], scratch[33];
    const float *part = partial_of(a, p, row, head, 0);
    float top = -CUDART_INF_F, l = 0.0f;
    ox_let_next_start();
    ox_wait_for_step();
    for (int32_t s = threadIdx.x; s < p.splits; s += BLOCK)
        top = fmaxf(top, part[s * stride]);
    top = block_max(top, scratch);
    if (a.sinks) top = fmaxf(top, a.sinks[head]);
    for (int32_t s = threadIdx.x; s < p.splits; s += BLOCK) {
        const float sum = part[s * stride + 1];
        weight[s] = sum != 0.0f ? expf(part[s * stride] - top) : 0.0f;
        l += sum * weight[s];
    }
    l = ox_block_sum(l, scratch); /* its barriers cover weight[] */
    const float keys = l;
    if (a.sinks) l += expf(a.sinks[head] - top);
    for (int32_t ch = threadIdx.x; ch < dv; ch += BLOCK) {
        float sum = 0.0f;
#pragma unroll 8
        for (int32_t s = 0; s < p.splits; s++) {
            const float v = part[s * stride + 2 + ch];
            sum = weight[s] != 0.0f ? fmaf(weight[s], v, sum) : sum;
        }
        ox_put(a.y, row, head * dv + ch, keys == 0.0f ? 0.0f : sum / l);
    }
}

template <class T, int NI, int D>
static void launch_size(const ox_dev_attend_args *a, plan p, dim3 grid, cudaStream_t s)
{
    const int32_t ldq = (a->cache.head_size + 7) / 8 * 8;
    const int32_t words = QUERIES * (ldq + TILE + 3 + NI * BLOCK + 1);
    const size_t shared = sizeof(float) * (size_t)words;
    if (shared > 48 * 1024)
        cudaFuncSetAttribute(attend_kernel<T, NI, D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)shared);
    ox_launch(attend_kernel<T, NI, D>, grid, BLOCK, shared, s, *a, p);
}

template <class T, int NI>
static void launch(const ox_dev_attend_args *a, plan p, dim3 grid, cudaStream_t s)
{
    if (NI == 1 && sizeof(T) == 2 && a->cache.head_size == 64)
        launch_size<T, NI, NI == 1 && sizeof(T) == 2 ? 64 : 0>(a, p, grid, s);
    else if (NI == 1 && sizeof(T) == 2 && a->cache.head_size == 128)
        launch_size<T, NI, NI == 1 && sizeof(T) == 2 ? 128 : 0>(a, p, grid, s);
    else
        launch_size<T, NI, 0>(a, p, grid, s);
}

template <class T> static void launch_type(const ox_dev_attend_args *a, plan p, dim3 grid,
                                           cudaStream_t s)
{
    if (a->cache.v_head_size <= BLOCK)
        launch<T, 1>(a, p, grid, s);
    else if (a->cache.v_head_size <= 2 * BLOCK)
        launch<T, 2>(a, p, grid, s);
    else
        launch<T, 4>(a, p, grid, s);
}

bool ox_attend_cuda_accepts(const void *args)
{
    const ox_dev_attend_args *a = (const ox_dev_attend_args *)args;
    return a->cache.v_head_size <= MAX_V && a->cache.head_size <= MAX_V;
}

void ox_attend_cuda(const void *args, void *stream)
{
    const ox_dev_attend_args *a = (const ox_dev_attend_args *)args;
    const int32_t group = a->n_heads / a->cache.n_kv_heads, dv = a->cache.v_head_size;
    if (!a->rows) return;
    plan p = {1, TILES_A_SPLIT, (group + QUERIES - 1) / QUERIES, a->one_sequence && a->rows > 8, BLOCK};
    while (p.d_lanes / 2 >= dv && p.d_lanes > 16)
        p.d_lanes /= 2;
    if (!p.rows_mixed) {
        const int32_t tiles = (a->total + TILE - 1) / TILE;
        const size_t one = (size_t)a->rows * (size_t)a->n_heads * (size_t)(2 + dv) * sizeof(float);
        const size_t most = a->scratch_bytes / one;
        p.splits = (tiles + p.tiles_a_split - 1) / p.tiles_a_split;
        while (p.splits > 1 && ((size_t)p.splits > most || p.splits > MAX_SPLITS)) {
            p.tiles_a_split *= 2;
            p.splits = (tiles + p.tiles_a_split - 1) / p.tiles_a_split;
        }
    }
    const int32_t blocks = p.rows_mixed ? (a->rows * group + QUERIES - 1) / QUERIES
                                        : a->rows * p.blocks_a_row;
    const dim3 grid((unsigned)p.splits, (unsigned)blocks, (unsigned)a->cache.n_kv_heads);
    OX_WITH_TYPE(a->cache.dtype, T, launch_type<T>(a, p, grid, ox_stream_of(stream)));
    if (p.splits > 1)
        ox_launch(merge_kernel, (unsigned)(a->rows * a->n_heads), BLOCK, 0, ox_stream_of(stream), *a, p);
}
