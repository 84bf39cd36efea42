/* head.cuh - the head phase: norm, logits, soft-cap, noise, and the token that wins.
 *
 * A CTA owns a run of row tiles; a warp takes 16 rows over the whole K with a ring of weights in
 * registers that never runs dry between tiles. The normed vector lies in shared memory as the mma
 * wants it: fixed point (quantised weights) or float16 (16-bit weights). The winner is an integer
 * maximum of (ordered logit, ~id), so the order of arrival doesn't matter and ties go to the lower
 * id; logits are rounded to float16 first, as the graph's output is.
 *
 * Grid: one CTA an SM; block NW*32; shared memory: 512 bytes a unit (fixed) or 256 (float16). */
#ifndef OX_CHAIN_HEAD_CUH
#define OX_CHAIN_HEAD_CUH
#include "backend/cuda/chain/device.cuh"

typedef struct head_args {
    ox_cuda_weight w;
    const __half *gamma;
    const float *bias;
    float softcap, inv_hidden;
    int step, seq, shift, store;
} head_args;

/* Standard Gumbel noise of sample/philox.h in float32; 1-u keeps its precision near u = 1. */
static __device__ __forceinline__ float gumbel(u64 seed, u32 position, u32 id)
{
    u32 c[4] = {id, 0, position, 0}, k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u32 h0 = __umulhi(0xD2511F53u, c[0]), l0 = 0xD2511F53u * c[0];
        const u32 h1 = __umulhi(0xCD9E8D57u, c[2]), l1 = 0xCD9E8D57u * c[2];
        const u32 n0 = h1 ^ c[1] ^ k0, n2 = h0 ^ c[3] ^ k1;
        c[0] = n0;
        c[1] = l1;
        c[2] = n2;
        c[3] = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const float inv = 1.0f / 4294967296.0f;
    const float e = c[0] < 0x80000000u ? -logf(fmaf((float)c[0], inv, 0.5f * inv))
                                       : -log1pf(-fmaf((float)~c[0], inv, 0.5f * inv));
    return -logf(e);
}

static __device__ __forceinline__ u64 key_of(float v, u32 id)
{
    const u32 b = __float_as_uint(v);
    return (u64)(b & 0x80000000u ? ~b : b | 0x80000000u) << 32 | (u32)~id;
}

static __device__ __forceinline__ u64 max_u64(u64 a, u64 b)
{
    return a > b ? a : b;
}

template <int RING, int NW, int BITS, int FORMAT>
__global__ void __launch_bounds__(NW * 32, 1)
    head_phase(const __grid_constant__ chain_state st, const __grid_constant__ head_args a)
{
#if CHAIN_DEVICE
    constexpr int NV = BITS == 8 ? 2 : 1, SPLIT = BITS == 16 ? 4 : 1; /* ring steps a unit */
    extern __shared__ uint4 xs[]; /* fixed: [units][32]; float16: [steps][4], then zeros [4] */
    __shared__ float ssq[NW];
    __shared__ u64 winners[NW];
    const int lane = threadIdx.x & 31, warp = uniform_warp(), g = lane >> 2, t = lane & 3;
    const int KU = a.w.k_units, K = a.w.k, KS = KU * SPLIT;
    const int n_pairs = (a.w.n_tiles + 1) / 2, per = (n_pairs + gridDim.x - 1) / gridDim.x;
    const int begin = blockIdx.x * per, end = min(n_pairs, begin + per);
    STAMP(0);
    pdl_trigger();
    warm_params(st);
    warm_params(a);
    uint4 w[RING][2][NV];
    u32 sc[RING][2], zc[FORMAT ? RING : 1][2];
#pragma unroll
    for (int u = 0; u < RING; u++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sc[u][h] = zc[FORMAT ? u : 0][h] = 0;
#pragma unroll
            for (int v = 0; v < NV; v++)
                w[u][h][v] = make_uint4(0, 0, 0, 0);
        }
    const int per_row = 128 >> a.shift;
    /* Slot r takes the step at `codes` (scale number `at`) + r of one tile and of the next one. */
    const int next_codes = KS * 32 * NV, next_scales = KU * 8 * per_row;
    auto fetch = [&](const int slot, const uint4 *codes, const u32 at, const int limit,
                     const bool ok) {
        const int s = min(slot, limit); /* the last step that there is */
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint4 *c = codes + (h ? next_codes : 0) + s * (32 * NV);
            /* steps beyond the end repeat the last one; the vector is zero there */
#pragma unroll
            for (int v = 0; v < NV; v++)
                ld_weight_if(w[slot][h][v], c + 32 * v, ok);
            if (BITS != 16) {
                const u32 i = at + (h ? next_scales : 0) + s * (8 * per_row);
                if (FORMAT == FORMAT_F32)
                    ld_small_if<4>(sc[slot][h], (const float *)a.w.scales + i, ok);
                else
                    ld_small_if<2>(sc[slot][h], (const __half *)a.w.scales + i, ok);
                if (FORMAT == FORMAT_CODE)
                    ld_small_if<1>(zc[FORMAT ? slot : 0][h], (const uint8_t *)a.w.zeros + i, ok);
                if (FORMAT == FORMAT_MIN)
                    ld_small_if<2>(zc[FORMAT ? slot : 0][h], (const __half *)a.w.zeros + i, ok);
                if (FORMAT == FORMAT_F32 && ok) zc[FORMAT ? slot : 0][h] = ld_zero<FORMAT>(a.w, i);
            }
        }
    };
    auto codes_of = [&](const int p) { return a.w.codes + (size_t)(2 * p) * next_codes + lane; };
    auto scales_of = [&](const int p) {
        return (u32)(2 * p) * next_scales + g * per_row + (t * 32 >> a.shift);
    };
    int pair = begin + warp;
    const uint4 *codes = codes_of(pair);
    u32 scales = scales_of(pair);
#pragma unroll
    for (int u = 0; u < RING; u++)
        fetch(u, codes, scales, KS - 1, pair < end);
    const int pos = ld_base(st.base) + a.step;
    const float invt = __uint_as_float((u32)st.sampling[0]);
    const u64 seed = st.sampling[1];
    const __half *xin = st.resid + (size_t)(blockIdx.x & (st.copies - 1)) * st.hidden;
    uint4 gamma0 = make_uint4(0, 0, 0, 0);
    const int my_k = warp * 128 + (BITS == 16 ? (lane >> 2) * 32 : (g >> 1) * 32) + t * 8;
    if (my_k < K && (BITS != 16 || lane < 16)) gamma0 = *(const uint4 *)(a.gamma + my_k);
    touch(xin);
    STAMP(1);
    pdl_wait();
    STAMP(2);
    float ss = 0.0f;
    const int KP = (KS + RING - 1) / RING * RING; /* steps, padded with zeros to whole rings */
    constexpr int WIDE = BITS == 16 ? 4 : 32;
    for (int i = KS * WIDE + (int)threadIdx.x; i < KP * WIDE + (BITS == 16 ? 4 : 0); i += NW * 32)
        xs[i] = make_uint4(0, 0, 0, 0);
    for (int u = warp; u < KU; u += NW) {
        /* fixed: every lane one (block, plane); float16: lanes 0..15 one (block, t) */
        const int k = u * 128 + (BITS == 16 ? (lane >> 2) * 32 : (g >> 1) * 32) + t * 8;
        const bool in = k < K && (BITS != 16 || lane < 16);
        uint4 xv = make_uint4(0, 0, 0, 0);
        if (in) xv = ld_dep(xin + k);
        if (u != warp && in) gamma0 = *(const uint4 *)(a.gamma + k);
        float f[8], gm[8];
        widen8(f, xv);
        widen8(gm, gamma0);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            ss = fmaf(f[i], f[i], ss);
            f[i] *= gm[i];
        }
        if (BITS == 16) {
            if (lane < 16)
                xs[u * 16 + lane] =
                    make_uint4(f2h(f[0], f[1]), f2h(f[2], f[3]), f2h(f[4], f[5]), f2h(f[6], f[7]));
        } else {
            fixed_x x = to_fixed(f, g & 1);
            x.sum += SHFL_XOR(x.sum, 1);
            x.sum += SHFL_XOR(x.sum, 2);
            x.sum = __shfl_sync(~0u, x.sum, 8 * t);
            x.scale = __shfl_sync(~0u, x.scale, 8 * t);
            xs[u * 32 + lane] = make_uint4(x.lo, x.hi, (u32)x.sum, __float_as_uint(x.scale));
        }
    }
#pragma unroll
    for (int o = 16; o; o >>= 1)
        if (BITS == 16 || o != 4) ss += SHFL_XOR(ss, o); /* both planes hold the same values */
    if (lane == 0) ssq[warp] = ss;
    STAMP(3);
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < NW; i++)
        sum += ssq[i];
    const float rms = rsqrtf(fmaf(sum, a.inv_hidden, st.epsilon));
    u64 best = 0;
    for (; pair < end; pair += NW) {
        float y0 = 0.0f, y1 = 0.0f, acc[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
        const uint4 *const after = codes_of(pair + NW);
        const u32 after_scales = scales_of(pair + NW);
        for (int base = 0; base < KS; base += RING) {
            /* where the slots' next steps are: in this tile, or at the start of the next one */
            const bool same = base + RING < KS;
            const int limit = same ? KS - 1 - (base + RING) : KS - 1;
            const bool refill = same || pair + NW < end;
            const uint4 *const to_codes = same ? codes + (base + RING) * (32 * NV) : after;
            const u32 to_scales = same ? scales + (u32)((base + RING) * 8 * per_row) : after_scales;
#pragma unroll
            for (int r = 0; r < RING; r++) {
                const int u = base + r;
                const uint4 q = w[r][0][0], q8 = w[r][1][0];
                if (BITS == 16) {
                    const uint4 x = xs[g == 0 ? u * 4 + t : KP * 4 + t];
                    mma_f16(acc[0], q.x, q8.x, q.y, q8.y, x.x, x.y);
                    mma_f16(acc[1], q.z, q8.z, q.w, q8.w, x.z, x.w);
                } else {
                    const uint4 x = xs[u * 32 + lane];
                    const u32 ML = 0x0f0f0f0f, MH = 0xf0f0f0f0;
                    int al[4] = {0, 0, 0, 0}, ah[4] = {0, 0, 0, 0};
#pragma unroll
                    for (int s = 0; s < 2; s++) {
                        const int b = (g >> 1) - 2 * s;
                        const u32 l0 = b == 0 ? x.x : 0u, l1 = b == 1 ? x.x : 0u;
                        const u32 h0 = b == 0 ? x.y : 0u, h1 = b == 1 ? x.y : 0u;
                        if (BITS == 4) {
                            const u32 a0 = s ? q.z : q.x, a1 = s ? q8.z : q8.x;
                            const u32 a2 = s ? q.w : q.y, a3 = s ? q8.w : q8.y;
                            mma_i8(al, a0 & ML, a1 & ML, a2 & ML, a3 & ML, l0, l1);
                            mma_i8(ah, a0 & MH, a1 & MH, a2 & MH, a3 & MH, h0, h1);
                        } else {
                            const uint4 v = w[r][0][NV - 1 ? s : 0], v8 = w[r][1][NV - 1 ? s : 0];
                            mma_i8(al, v.x, v8.x, v.y, v8.y, l0, h0);
                            mma_i8(ah, v.z, v8.z, v.w, v8.w, l1, h1);
                        }
                    }
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        const int *l = al + 2 * j, *h = ah + 2 * j;
                        const int dot = BITS == 4 ? (l[0] * 16 + h[0]) * 256 + (l[1] * 16 + h[1])
                                                  : (l[0] + h[0]) * 256 + (l[1] + h[1]);
                        float &y = j ? y1 : y0;
                        y = add_block<BITS, FORMAT>(y, dot, (int)x.z, __uint_as_float(x.w),
                                                    sc[r][j], zc[FORMAT ? r : 0][j], a.w.zero);
                    }
                }
                fetch(r, to_codes, to_scales, limit, refill);
            }
        }
        if (BITS == 16) { /* column 0 only: lanes t = 0 */
            y0 = acc[0][0] + acc[1][0];
            y1 = acc[0][2] + acc[1][2];
            y1 = __shfl_sync(~0u, y1, lane & ~3);
        } else {
            y0 += SHFL_XOR(y0, 1);
            y1 += SHFL_XOR(y1, 1);
            y0 += SHFL_XOR(y0, 2);
            y1 += SHFL_XOR(y1, 2);
        }
        codes = after;
        scales = after_scales;
        const int row = pair * 16 + g + (t ? 8 : 0);
        if (t < 2 && row < a.w.n) {
            float v = (t ? y1 : y0) * rms;
            if (a.bias) v += a.bias[row];
            if (a.softcap > 0.0f) v = a.softcap * tanhf(v / a.softcap);
            v = round_half(v);
            if (a.store) st.logits[row] = __float2half_rn(v);
            if (invt > 0.0f) v = fmaf(v, invt, gumbel(seed, (u32)pos + 1u, (u32)row));
            best = max_u64(best, key_of(v, (u32)row));
        }
    }
#pragma unroll
    for (int o = 16; o; o >>= 1)
        best = max_u64(best, SHFL_XOR(best, o));
    if (lane == 0) winners[warp] = best;
    __syncthreads();
    if (warp == 0) {
        best = lane < NW ? winners[lane] : 0;
#pragma unroll
        for (int o = 16; o; o >>= 1)
            best = max_u64(best, SHFL_XOR(best, o));
        if (lane == 0) atomicMax(st.best + (pos & (OX_CHAIN_RING - 1)), best);
    }
    STAMP(4);
#endif
}
#endif
