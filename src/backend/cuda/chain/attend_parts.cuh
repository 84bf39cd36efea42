/* attend_parts.cuh - beside the attention phase: its arguments, norm and rotation of a head in
 * registers, and the phase that merges many splits. */
#ifndef OX_CHAIN_ATTEND_PARTS_CUH
#define OX_CHAIN_ATTEND_PARTS_CUH
#include "backend/cuda/chain/device.cuh"

typedef struct attend_args {
    ox_cuda_kv kv;
    const __half *q_norm, *k_norm;
    const float2 *rotary;
    split_rule split; /* positions = loops * NW * 16 * NG */
    float scale, softcap;
    int step, seq, loops;
    int copies; /* of the results */
} attend_args;

/* One head's row, lane t holds channels 32c + 8t ..+7: norm, then rotation, rounded after each as
 * a float16 graph does. */
template <int KCH>
static __device__ __forceinline__ void norm_turn(const chain_state &st, uint4 (&v)[KCH],
                                                 const __half *gamma, const float2 *rotary, int t,
                                                 int hd)
{
    float f[KCH][8], ss = 0.0f;
#pragma unroll
    for (int c = 0; c < KCH; c++) {
        widen8(f[c], v[c]);
#pragma unroll
        for (int i = 0; i < 8; i++)
            ss = fmaf(f[c][i], f[c][i], ss);
    }
    ss += SHFL_XOR(ss, 1);
    ss += SHFL_XOR(ss, 2);
    const float r = rsqrtf(ss / (float)hd + st.epsilon);
#pragma unroll
    for (int c = 0; c < KCH; c++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            f[c][i] =
                round_half(f[c][i] * r * __half2float(gamma[min(32 * c + 8 * t + i, hd - 1)]));
    const int half = st.rotary / 64; /* chunks of the first halves */
    float g[KCH][8];
#pragma unroll
    for (int c = 0; c < KCH; c++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int d = 32 * c + 8 * t + i;
            float y = f[c][i];
            if (st.interleaved) {
                if (d < st.rotary) {
                    const float2 cs = rotary[d >> 1];
                    y = i & 1 ? fmaf(f[c][i ^ 1], cs.y, y * cs.x)
                              : fmaf(-f[c][i ^ 1], cs.y, y * cs.x);
                }
            } else {
#pragma unroll
                for (int o = 1; o <= KCH / 2; o++)
                    if (o == half && c < 2 * o) {
                        const float2 cs = rotary[c < o ? d : d - 32 * o];
                        y = c < o ? fmaf(-f[c + o < KCH ? c + o : c][i], cs.y, y * cs.x)
                                  : fmaf(f[c - o >= 0 ? c - o : c][i], cs.y, y * cs.x);
                    }
            }
            g[c][i] = y;
        }
#pragma unroll
    for (int c = 0; c < KCH; c++)
        v[c] = make_uint4(f2h(g[c][0], g[c][1]), f2h(g[c][2], g[c][3]), f2h(g[c][4], g[c][5]),
                          f2h(g[c][6], g[c][7]));
}

/* Many splits are merged once, into the first split's place, instead of by every CTA of o. CTA = a
 * query head; thread = eight channels and every n-th split. Block 128, shared memory: see below. */
static __global__ void __launch_bounds__(128, 4)
    merge_phase(const __grid_constant__ chain_state st, const __grid_constant__ attend_args a,
                const float *sinks)
{
#if CHAIN_DEVICE
    __shared__ float ms[32], ls[32];
    __shared__ __align__(16) float acc[32][264];
    pdl_trigger();
    warm_params(st);
    warm_params(a);
    const int hd = st.head_size, per = hd / 8, groups = min(128 / per, 32);
    const int v = threadIdx.x % per, sg = threadIdx.x / per, head = blockIdx.x;
    const int pos = ld_base(st.base) + a.step, f = first_seen(a.split, pos);
    const int n = min(a.split.n, pos / a.split.positions - f / a.split.positions + 1);
    const int width = st.n_heads * hd;
    __half *o = st.o + head * hd + v * 8;
    const float2 *ml = st.ml + head;
    touch(o);
    DEPENDENT_PART
    {
        pdl_wait();
        float m = -1e29f, l = 0.0f, y[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int s0 = sg; s0 < n && sg < groups; s0 += 4 * groups) {
            uint4 ov[4];
            float2 mv[4];
#pragma unroll
            for (int s = 0; s < 4; s++) {
                ov[s] = make_uint4(0, 0, 0, 0);
                mv[s] = make_float2(-1e30f, 0.0f);
                if (s0 + s * groups < n) {
                    ov[s] = ld_dep(o + (size_t)(s0 + s * groups) * width);
                    mv[s] = ld_dep_f2(ml + (s0 + s * groups) * st.n_heads);
                }
            }
            float top = m;
#pragma unroll
            for (int s = 0; s < 4; s++)
                top = fmaxf(top, mv[s].x);
            const float keep = ex2(m - top);
            m = top;
            l *= keep;
#pragma unroll
            for (int i = 0; i < 8; i++)
                y[i] *= keep;
#pragma unroll
            for (int s = 0; s < 4; s++) {
                const float weight = mv[s].y * ex2(mv[s].x - m);
                float h[8];
                widen8(h, ov[s]);
                l += weight;
#pragma unroll
                for (int i = 0; i < 8; i++)
                    y[i] = fmaf(weight, h[i], y[i]);
            }
        }
        if (sg < groups) {
            ms[sg] = m;
            ls[sg] = l;
            *(float4 *)&acc[sg][v * 8] = make_float4(y[0], y[1], y[2], y[3]);
            *(float4 *)&acc[sg][v * 8 + 4] = make_float4(y[4], y[5], y[6], y[7]);
        }
        __syncthreads();
        if (threadIdx.x * 4 < hd) { /* four channels a thread */
            const int d = threadIdx.x * 4;
            float top = sinks ? sinks[head] * 1.44269504f : -1e29f;
            float sum = sinks ? 1.0f : 0.0f;
            const float sink = top;
            for (int i = 0; i < groups; i++)
                top = fmaxf(top, ms[i]);
            sum *= ex2(sink - top);
            float4 z = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
            for (int i = 0; i < groups; i++) {
                const float keep = ex2(ms[i] - top);
                const float4 p = *(const float4 *)&acc[i][d];
                sum = fmaf(keep, ls[i], sum);
                z.x = fmaf(keep, p.x, z.x);
                z.y = fmaf(keep, p.y, z.y);
                z.z = fmaf(keep, p.z, z.z);
                z.w = fmaf(keep, p.w, z.w);
            }
            const float inv = __fdividef(1.0f, sum);
            const uint2 out = make_uint2(f2h(z.x * inv, z.y * inv), f2h(z.z * inv, z.w * inv));
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (c < st.copies)
                    *(uint2 *)(st.o + (size_t)c * (OX_CHAIN_SPLITS * width) + head * hd + d) = out;
        }
    }
#endif
}
#endif
