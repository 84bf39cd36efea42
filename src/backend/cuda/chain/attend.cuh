/* attend.cuh - the attention phase: one step's queries against the paged cache.
 *
 * CTA (x, y) = (KV head and 8*QR of its query heads, split of positions). Keys are the rows of the
 * mma and the group's query heads its columns, so a group shares every key it reads; the weights
 * are transposed in registers for the product with V. Past keys and values wait in registers before
 * the predecessor is done; only the newest row is read after it. Warp w takes tiles of 16 positions
 * w, w+NW, ...; each warp has its own maximum, joined once at the end (one barrier). Splits are cut
 * at absolute positions, so a row's bits depend on its position alone. With q_norm (NORMED) the
 * linear phase leaves q and k raw: norm and rotation happen here, in registers, and the CTA that
 * owns the newest position stores its key. Results go out as float16 with (maximum base 2, sum) per
 * split; the o phase merges them. GENERAL: a split may be walked in several rounds, and scores may
 * have a soft cap.
 *
 * Block NW*32; dynamic shared memory NW * heads * (HD + 4) floats. */
#ifndef OX_CHAIN_ATTEND_CUH
#define OX_CHAIN_ATTEND_CUH
#include "backend/cuda/chain/attend_parts.cuh"

template <int HD, int NW, int NG, int QR, int NORMED, int GENERAL>
__global__ void __launch_bounds__(NW * 32, 1)
    attend_phase(const __grid_constant__ chain_state st, const __grid_constant__ attend_args a)
{
#if CHAIN_DEVICE
    constexpr int KCH = (HD + 31) / 32, VH = (HD + 63) / 64, SD = HD + 4, TILE = NW * 16 * NG;
    extern __shared__ float4 shared4[];
    float *acc = (float *)shared4; /* [NW][heads][SD] */
    __shared__ __align__(16) float sm[8 * QR][NW], sl[8 * QR][NW];
    const int lane = threadIdx.x & 31, warp = uniform_warp(), g = lane >> 2, t = lane & 3;
    const int group = st.n_heads / st.n_kv_heads, subs = (group + 8 * QR - 1) / (8 * QR);
    const int kvh = blockIdx.x / subs, sub = blockIdx.x - kvh * subs;
    const int head0 = kvh * group + sub * 8 * QR, heads = min(8 * QR, group - sub * 8 * QR);
    STAMP(0);
    pdl_trigger();
    warm_params(st);
    warm_params(a);
    const int pos = ld_base(st.base) + a.step, lo = first_seen(a.split, pos);
    const int s0 = (lo / a.split.positions + (int)blockIdx.y) * a.split.positions;
    if (s0 > pos) return;
    const uint4 Z = make_uint4(0, 0, 0, 0);
    uint4 k[NG][2][KCH], v[NG][VH][4];
    /* Tiles of 16 positions of a round, newest first: slot i of this warp starts at tile_at(). The
     * newest row of all is then always in slot 0 of warp 0 of the split's last round. */
    auto tile_at = [&](const int from, const int i) {
        return from + (min(pos - from, TILE - 1) / 16 - i * NW - warp) * 16;
    };
    auto fetch = [&](const int from) {
        const char *pages[NG];
#pragma unroll
        for (int i = 0; i < NG; i++) {
            const int b = tile_at(from, i);
            pages[i] = b >= from && b < pos ? st.table[b / OX_CUDA_PAGE] : 0;
        }
#pragma unroll
        for (int i = 0; i < NG; i++) {
            const int b = tile_at(from, i);
            const __half *kb = (const __half *)(pages[i] + a.kv.k_offset) +
                               (size_t)(kvh * OX_CUDA_PAGE + b % OX_CUDA_PAGE) * HD;
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int c = 0; c < KCH; c++) {
                    k[i][n][c] = Z;
                    if (b >= from && b + n * 8 + g < pos && c * 32 + t * 8 < HD)
                        k[i][n][c] = ld_dep(kb + (n * 8 + g) * HD + c * 32 + t * 8);
                }
        }
#pragma unroll
        for (int i = 0; i < NG; i++) {
            const int b = tile_at(from, i);
            const __half *vb = (const __half *)(pages[i] + a.kv.v_offset) +
                               (size_t)(kvh * OX_CUDA_PAGE + b % OX_CUDA_PAGE) * HD;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int r = (e >> 1) * 8 + 2 * t + (e & 1);
#pragma unroll
                for (int h = 0; h < VH; h++) {
                    v[i][h][e] = Z;
                    if (b >= from && b + r < pos && h * 64 + g * 8 < HD)
                        v[i][h][e] = ld_dep(vb + r * HD + h * 64 + g * 8);
                }
            }
        }
    };
    fetch(s0);
    char *const newest = st.table[pos / OX_CUDA_PAGE];
    const float2 *rotary = a.rotary + (size_t)pos * (st.rotary / 2);
    const float by = a.scale * 1.44269504f;
    const int width = st.n_heads * HD;
    touch(st.q);
    STAMP(1);
    DEPENDENT_PART
    {
        pdl_wait();
        STAMP(2);
        uint4 q[QR][KCH];
#pragma unroll
        for (int x = 0; x < QR; x++)
#pragma unroll
            for (int c = 0; c < KCH; c++) {
                q[x][c] = Z;
                if (x * 8 + g < heads && c * 32 + t * 8 < HD)
                    q[x][c] = ld_dep(st.q + (head0 + x * 8 + g) * HD + c * 32 + t * 8);
            }
        if (NORMED) {
#pragma unroll
            for (int x = 0; x < QR; x++)
                norm_turn<KCH>(st, q[x], a.q_norm, rotary, t, HD);
        }
        /* heads 2t and 2t+1 of each eight: maximum, sum, and o[dims 8g+2j, 8g+2j+1][heads] */
        float m[QR][2], l[QR][2], o[QR][VH][4][4];
#pragma unroll
        for (int x = 0; x < QR; x++) {
            m[x][0] = m[x][1] = -1e29f;
            l[x][0] = l[x][1] = 0.0f;
#pragma unroll
            for (int h = 0; h < VH; h++)
#pragma unroll
                for (int j = 0; j < 4; j++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        o[x][h][j][e] = 0.0f;
        }
        for (int it = 0; it < (GENERAL ? a.loops : 1); it++) {
            const int from = s0 + it * TILE;
            if (GENERAL && from > pos) break;
            if (GENERAL && it) fetch(from);
            /* the newest row */
            if (warp == 0 && pos < from + TILE) {
                const int b = tile_at(from, 0), at = (kvh * OX_CUDA_PAGE + pos % OX_CUDA_PAGE) * HD;
                uint4 fresh[KCH];
                __half *kr = (__half *)(newest + a.kv.k_offset) + at;
#pragma unroll
                for (int c = 0; c < KCH; c++) {
                    fresh[c] = Z;
                    if (c * 32 + t * 8 < HD)
                        fresh[c] =
                            ld_dep((NORMED ? st.q + (st.n_heads + kvh) * HD : kr) + c * 32 + t * 8);
                }
                const __half *vr = (const __half *)(newest + a.kv.v_offset) + at;
#pragma unroll
                for (int e = 0; e < 4; e++)
                    if (b + (e >> 1) * 8 + 2 * t + (e & 1) == pos) {
#pragma unroll
                        for (int h = 0; h < VH; h++)
                            if (h * 64 + g * 8 < HD) v[0][h][e] = ld_dep(vr + h * 64 + g * 8);
                    }
                if (NORMED) {
                    norm_turn<KCH>(st, fresh, a.k_norm, rotary, t, HD);
#pragma unroll
                    for (int c = 0; c < KCH; c++)
                        if (g == 0 && c * 32 + t * 8 < HD)
                            *(uint4 *)(kr + c * 32 + t * 8) = fresh[c];
                }
#pragma unroll
                for (int n = 0; n < 2; n++)
                    if (b + n * 8 + g == pos) {
#pragma unroll
                        for (int c = 0; c < KCH; c++)
                            k[0][n][c] = fresh[c];
                    }
            }
            STAMP(3);
            /* s[positions g, g+8][heads 2t, 2t+1]; step by step over all tiles: independent sums
             * hide the latency of the mma */
            float s[NG][QR][4];
#pragma unroll
            for (int i = 0; i < NG; i++)
#pragma unroll
                for (int x = 0; x < QR; x++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        s[i][x][e] = 0.0f;
#pragma unroll
            for (int c = 0; c < KCH; c++)
#pragma unroll
                for (int half = 0; half < 2; half++)
#pragma unroll
                    for (int i = 0; i < NG; i++)
                        if (tile_at(from, i) >= from) {
                            const uint4 k0 = k[i][0][c], k1 = k[i][1][c];
#pragma unroll
                            for (int x = 0; x < QR; x++)
                                if (half)
                                    mma_f16(s[i][x], k0.z, k1.z, k0.w, k1.w, q[x][c].z, q[x][c].w);
                                else
                                    mma_f16(s[i][x], k0.x, k1.x, k0.y, k1.y, q[x][c].x, q[x][c].y);
                        }
            if (GENERAL && a.softcap > 0.0f) {
                const float in = 2.0f * a.scale / a.softcap, out = a.softcap / a.scale;
#pragma unroll
                for (int i = 0; i < NG; i++)
#pragma unroll
                    for (int x = 0; x < QR; x++)
#pragma unroll
                        for (int e = 0; e < 4; e++) /* tanh z = 1 - 2 / (1 + e^2z) */
                            s[i][x][e] =
                                out * (1.0f - __fdividef(2.0f, 1.0f + __expf(s[i][x][e] * in)));
            }
            float top[QR][2];
#pragma unroll
            for (int x = 0; x < QR; x++) {
                top[x][0] = m[x][0];
                top[x][1] = m[x][1];
            }
#pragma unroll
            for (int i = 0; i < NG; i++) {
                const int b = tile_at(from, i) + g, least = max(lo, from);
                const bool in0 = b <= pos && b >= least, in1 = b + 8 <= pos && b + 8 >= least;
#pragma unroll
                for (int x = 0; x < QR; x++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        const float z = (e < 2 ? in0 : in1) ? s[i][x][e] * by : -1e30f;
                        s[i][x][e] = z;
                        top[x][e & 1] = fmaxf(top[x][e & 1], z);
                    }
            }
#pragma unroll
            for (int x = 0; x < QR; x++)
#pragma unroll
                for (int z = 4; z < 32; z <<= 1)
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        top[x][e] = fmaxf(top[x][e], SHFL_XOR(top[x][e], z));
#pragma unroll
            for (int x = 0; x < QR; x++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    if (GENERAL && it) {
                        const float keep = ex2(m[x][e] - top[x][e]);
                        l[x][e] *= keep;
#pragma unroll
                        for (int h = 0; h < VH; h++)
#pragma unroll
                            for (int j = 0; j < 4; j++) {
                                o[x][h][j][e] *= keep;
                                o[x][h][j][e + 2] *= keep;
                            }
                    }
                    m[x][e] = top[x][e];
                }
#pragma unroll
            for (int i = 0; i < NG; i++) {
                if (tile_at(from, i) < from) break;
                u32 p[QR][2]; /* heads g, positions 2t.. and 2t+8.. */
#pragma unroll
                for (int x = 0; x < QR; x++)
#pragma unroll
                    for (int n = 0; n < 2; n++) {
                        const float p0 = ex2(s[i][x][2 * n] - m[x][0]);
                        const float p1 = ex2(s[i][x][2 * n + 1] - m[x][1]);
                        l[x][0] += p0;
                        l[x][1] += p1;
                        p[x][n] = transpose8(f2h(p0, p1));
                    }
#pragma unroll
                for (int h = 0; h < VH; h++)
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        const u32 *v0 = (const u32 *)&v[i][h][0];
                        const u32 a0 = __byte_perm(v0[j], v0[4 + j], 0x5410);
                        const u32 a1 = __byte_perm(v0[j], v0[4 + j], 0x7632);
                        const u32 a2 = __byte_perm(v0[8 + j], v0[12 + j], 0x5410);
                        const u32 a3 = __byte_perm(v0[8 + j], v0[12 + j], 0x7632);
#pragma unroll
                        for (int x = 0; x < QR; x++)
                            mma_f16(o[x][h][j], a0, a1, a2, a3, p[x][0], p[x][1]);
                    }
            }
        }
#pragma unroll
        for (int x = 0; x < QR; x++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
#pragma unroll
                for (int z = 4; z < 32; z <<= 1)
                    l[x][e] += SHFL_XOR(l[x][e], z);
                const int head = x * 8 + 2 * t + e;
                if (g == 0) {
                    sm[head][warp] = m[x][e];
                    sl[head][warp] = l[x][e];
                }
                if (head < heads) {
                    float *d = acc + (warp * heads + head) * SD;
#pragma unroll
                    for (int h = 0; h < VH; h++)
                        if (h * 64 + g * 8 < HD) {
#pragma unroll
                            for (int j = 0; j < 4; j += 2)
                                *(float4 *)(d + h * 64 + g * 8 + 2 * j) =
                                    make_float4(o[x][h][j][e], o[x][h][j][e + 2], o[x][h][j + 1][e],
                                                o[x][h][j + 1][e + 2]);
                        }
                }
            }
        STAMP(5);
        __syncthreads();
        STAMP(6);
        const int live = GENERAL ? NW : min(NW, (pos - s0) / 16 + 1);
        for (int i = threadIdx.x; i < heads * (HD / 4); i += NW * 32) {
            const int h = i / (HD / 4), d = (i - h * (HD / 4)) * 4;
            float mw[NW], lw[NW], top = -1e29f, sum = 0.0f;
            float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (int w = 0; w < NW; w += 4) {
                *(float4 *)&mw[w] = *(const float4 *)&sm[h][w];
                *(float4 *)&lw[w] = *(const float4 *)&sl[h][w];
            }
#pragma unroll
            for (int w = 0; w < NW; w++)
                if (w < live) top = fmaxf(top, mw[w]);
            const float *part = acc + h * SD + d;
#pragma unroll
            for (int w = 0; w < NW; w++)
                if (w < live) {
                    const float keep = ex2(mw[w] - top);
                    const float4 f = *(const float4 *)(part + w * heads * SD);
                    sum = fmaf(keep, lw[w], sum);
                    y.x = fmaf(keep, f.x, y.x);
                    y.y = fmaf(keep, f.y, y.y);
                    y.z = fmaf(keep, f.z, y.z);
                    y.w = fmaf(keep, f.w, y.w);
                }
            const float inv = sum > 0.0f ? __fdividef(1.0f, sum) : 0.0f;
            const uint2 out = make_uint2(f2h(y.x * inv, y.y * inv), f2h(y.z * inv, y.w * inv));
            __half *to = st.o + (size_t)blockIdx.y * width + (head0 + h) * HD + d;
            float2 *ml = st.ml + blockIdx.y * st.n_heads + head0 + h;
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (c < a.copies) {
                    *(uint2 *)(to + (size_t)c * (OX_CHAIN_SPLITS * width)) = out;
                    if (d == 0) ml[c * (OX_CHAIN_SPLITS * st.n_heads)] = make_float2(top, sum);
                }
        }
        STAMP(4);
    }
#endif
}
#endif
