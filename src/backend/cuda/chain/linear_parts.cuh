/* linear_parts.cuh - what the linear phases are made of: arguments, which tiles of the matrix a row
 * group is, what a row's end needs, and the merging of attention's splits on the way in. */
#ifndef OX_CHAIN_LINEAR_PARTS_CUH
#define OX_CHAIN_LINEAR_PARTS_CUH
#include "backend/cuda/chain/device.cuh"

enum { LINEAR_QKV, LINEAR_O, LINEAR_GATE, LINEAR_DOWN, LINEAR_KINDS };

typedef struct linear_args {
    ox_cuda_weight w;
    const float *bias;
    const __half *gamma;
    const float2 *rotary;
    const float *sinks;
    ox_cuda_kv kv;
    split_rule split;
    int step, seq;
    int tiles;  /* mma tiles a CTA */
    int groups; /* mma tiles in all */
    int shift;  /* log2(block) */
    int raw_qk; /* attention normalises and turns q and k */
    float inv_hidden;
} linear_args;

/* Matrix tiles behind the upper and lower eight rows of row group r. */
template <int KIND>
static __device__ __forceinline__ int2 row_group(const chain_state &st, const linear_args &a, int r)
{
    if (KIND == LINEAR_GATE) return make_int2(r, r + st.ffn / 8);
    if (KIND == LINEAR_QKV && !st.interleaved && !a.raw_qk) {
        const int per = st.head_size / 16, head = r / per, j = r - head * per;
        if (head < st.n_heads + st.n_kv_heads && j < st.rotary / 16)
            return make_int2(head * 2 * per + j, head * 2 * per + j + st.rotary / 16);
    }
    return make_int2(2 * r, 2 * r + 1);
}

/* What the epilogue of one row needs and no predecessor wrote. */
typedef struct row_consts {
    int n;              /* row of the matrix, -1 = none */
    float bias, cs, sn; /* y * cs + partner * sn */
    __half *to;
} row_consts;

template <int KIND>
static __device__ __forceinline__ row_consts consts_of(const chain_state &st, const linear_args &a,
                                                       int n, int pos, char *page, int copy)
{
    row_consts c = {n, 0.0f, 1.0f, 0.0f, 0};
    if (n < 0 || n >= a.w.n) {
        c.n = -1;
        return c;
    }
    if (a.bias) c.bias = a.bias[n];
    if (KIND == LINEAR_QKV && !a.raw_qk && n < (st.n_heads + st.n_kv_heads) * st.head_size) {
        const int d = n % st.head_size, half = st.rotary / 2;
        if (d < st.rotary) {
            const int i = st.interleaved ? d >> 1 : d < half ? d : d - half;
            const float2 cs = a.rotary[(size_t)pos * half + i];
            c.cs = cs.x;
            c.sn = cs.y;
            if (st.interleaved ? !(d & 1) : d < half) c.sn = -c.sn; /* first of the pair */
        }
    }
    if (KIND == LINEAR_QKV) {
        const int hs = st.head_size, nk = st.n_kv_heads * hs, m = n - st.n_heads * hs;
        if (m < 0 || (m < nk && a.raw_qk)) {
            c.to = st.q + n;
        } else {
            const int v = m < nk ? m : m - nk, head = v / hs;
            c.to = (__half *)(page + (m < nk ? a.kv.k_offset : a.kv.v_offset)) +
                   (size_t)(head * OX_CUDA_PAGE + pos % OX_CUDA_PAGE) * hs + v - head * hs;
        }
    } else if (KIND == LINEAR_GATE) {
        c.to = st.act + copy * st.ffn + (n < st.ffn ? n : n - st.ffn);
    } else {
        c.to = st.resid + copy * st.hidden + n;
    }
    return c;
}

/* The splits' results of one head's eight channels, merged: sum of o * l * 2^(m - M) / sum. The
 * lanes of the two planes hold the same channels: each takes every other split. */
static __device__ __forceinline__ uint4 merge_splits(const chain_state &st, const linear_args &a,
                                                     const __half *o, const float2 *ml, int k,
                                                     int head, int n_active, int plane)
{
    constexpr int BATCH = 3;
    const int width = st.n_heads * st.head_size;
    float m = -1e30f, l = 0.0f, acc[8];
    if (a.sinks && !plane) {
        m = a.sinks[head] * 1.44269504f;
        l = 1.0f;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        acc[i] = 0.0f;
    for (int s0 = plane; s0 < n_active; s0 += 2 * BATCH) {
        uint4 ov[BATCH];
        float2 mv[BATCH];
#pragma unroll
        for (int s = 0; s < BATCH; s++) {
            ov[s] = make_uint4(0, 0, 0, 0);
            mv[s] = make_float2(-1e30f, 0.0f);
            if (s0 + 2 * s < n_active) {
                ov[s] = ld_dep(o + (size_t)(s0 + 2 * s) * width + k);
                mv[s] = ld_dep_f2(ml + (s0 + 2 * s) * st.n_heads + head);
            }
        }
        float top = m;
#pragma unroll
        for (int s = 0; s < BATCH; s++)
            top = fmaxf(top, mv[s].x);
        const float keep = ex2(m - top);
        m = top;
        l *= keep;
#pragma unroll
        for (int i = 0; i < 8; i++)
            acc[i] *= keep;
#pragma unroll
        for (int s = 0; s < BATCH; s++) {
            const float weight = mv[s].y * ex2(mv[s].x - m);
            float f[8];
            widen8(f, ov[s]);
            l += weight;
#pragma unroll
            for (int i = 0; i < 8; i++)
                acc[i] = fmaf(weight, f[i], acc[i]);
        }
    }
    __syncwarp();
    const float top = fmaxf(m, SHFL_XOR(m, 4)), keep = ex2(m - top);
    l *= keep;
    l += SHFL_XOR(l, 4);
    const float inv = __fdividef(1.0f, l);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        acc[i] *= keep;
        acc[i] = (acc[i] + SHFL_XOR(acc[i], 4)) * inv;
    }
    return make_uint4(f2h(acc[0], acc[1]), f2h(acc[2], acc[3]), f2h(acc[4], acc[5]),
                      f2h(acc[6], acc[7]));
}
#endif
