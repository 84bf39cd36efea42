/* linear.cuh - the linear phases qkv, o, gate and down: rows of a packed matrix times one vector.
 *
 * A CTA owns a run of mma tiles (16 A-rows each) over the whole K; warp w owns P pairs of units of
 * K and keeps the weights of the first WIN tiles in registers before the wait; with STREAM the rest
 * follow through the same registers. FOLD 1: the A-rows 0..7 and 8..15 are two tiles of the matrix
 * (neighbours, gate and up, halves of a rotary head). FOLD 2: one tile of 8 rows, two units of K,
 * so that few rows still fill 132 SMs; sums of a column of the wrong unit are never looked at.
 *
 * The vector becomes 16-bit fixed point per block of 32 (to_fixed). An mma column is (block,
 * plane): eight columns carry four blocks, a lane's two columns are the two planes of block t, and
 * the int32 sums are exact; only scaling and the sums over blocks round: y[row] = sum_w sum_t sum_p
 * float(dot) * (scale * scale_x)   p in a lane, t by shuffles, then w A norm needs no barrier: x *
 * gamma is multiplied, 1/rms comes at the end; each warp's part of the sum of squares rides with
 * the cross-warp sums.
 *
 * Grid: ceil(groups / tiles); block: n_warps * 32; shared: NWMAX * rows of the CTA floats. */
#ifndef OX_CHAIN_LINEAR_CUH
#define OX_CHAIN_LINEAR_CUH
#include "backend/cuda/chain/linear_parts.cuh"

enum { MODE_WINDOW, MODE_STREAM };

/* FLAG: 1 the usual form; 0 any activation (gate), the vector is the embedding row of the last
 * token, which becomes the residual (qkv), or the splits are merged on the way in (o). */
template <int KIND, int FOLD, int P, int WIN, int RI, int MODE, int NWMAX, int MINB, int BITS,
          int FORMAT, int FLAG>
__global__ void __launch_bounds__(NWMAX * 32, MINB)
    linear_phase(const __grid_constant__ chain_state st, const __grid_constant__ linear_args a)
{
#if CHAIN_DEVICE
    constexpr bool NORM = KIND == LINEAR_QKV || KIND == LINEAR_GATE;
    constexpr bool SILU = KIND == LINEAR_GATE && FLAG, EMBED = KIND == LINEAR_QKV && !FLAG;
    constexpr bool MERGE = KIND == LINEAR_O && !FLAG;
    constexpr int NV = BITS / 4, SETS = P * FOLD;
    constexpr int EROWS = FOLD == 2 && !NORM ? 8 : 16, EGROUPS = 32 / EROWS;
    static_assert(WIN % RI == 0, "window");
    extern __shared__ float part[]; /* [NWMAX][rows], those of absent warps are zero */
    __shared__ float ssq[NWMAX + 4];
    const int lane = threadIdx.x & 31, warp = uniform_warp();
    const int n_warps = blockDim.x >> 5;
    const int g = lane >> 2, t = lane & 3, KU = a.w.k_units, K = a.w.k;
    const int unit0 = warp * SETS, first = blockIdx.x * a.tiles;
    const int count = min(a.tiles, a.groups - first);
    const int rows = (MODE == MODE_WINDOW ? WIN : a.tiles) * (FOLD == 1 ? 16 : 8);
    STAMP(0);
    pdl_trigger();
    warm_params(st);
    warm_params(a);
    const int pos = ld_base(st.base) + a.step;

    /* weights of the first WIN tiles */
    uint4 w[WIN][P][2][NV];
    u32 sc[WIN][P][2], zc[FORMAT ? WIN : 1][P][2];
    const int per_row = 128 >> a.shift;
    /* What lies beyond the end repeats the last tile or unit: x is zero there, rows are not stored.
     */
    auto fetch = [&](const int slot, const int i) {
        const int gi = first + min(i, count - 1), last_tile = a.w.n_tiles - 1;
        const int2 tiles = FOLD == 1 ? row_group<KIND>(st, a, gi)
                           : NORM    ? row_group<KIND>(st, a, gi >> 1)
                                     : make_int2(gi, gi);
        const int fold_tile = NORM && (gi & 1) ? tiles.y : tiles.x;
#pragma unroll
        for (int p = 0; p < P; p++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int tile = min(FOLD == 2 ? fold_tile : h ? tiles.y : tiles.x, last_tile);
                const int unit = min(FOLD == 2 ? unit0 + 2 * p + h : unit0 + p, KU - 1);
                const uint4 *c = a.w.codes + (size_t)(tile * KU + unit) * (32 * NV) + lane;
#pragma unroll
                for (int v = 0; v < NV; v++)
                    w[slot][p][h][v] = ld_weight(c + 32 * v);
                const int su = min(FOLD == 2 ? unit0 + 2 * p + (t >> 1) : unit, KU - 1);
                const int block = FOLD == 2 ? 2 * h + (t & 1) : t;
                const u32 at = ((tile * KU + su) * 8 + g) * per_row + (block * 32 >> a.shift);
                sc[slot][p][h] = ld_scale<FORMAT>(a.w.scales, at);
                if (FORMAT) zc[FORMAT ? slot : 0][p][h] = ld_zero<FORMAT>(a.w, at);
            }
    };
#pragma unroll
    for (int r = 0; r < WIN; r++)
        fetch(r, r);

    /* where this lane's part of the vector lies */
    const int copy = blockIdx.x & (st.copies - 1), width = st.n_heads * st.head_size;
    const __half *xin = KIND == LINEAR_DOWN ? st.act + (size_t)copy * st.ffn
                        : KIND == LINEAR_O  ? st.o + (size_t)copy * OX_CHAIN_SPLITS * width
                                            : st.resid + (size_t)copy * st.hidden;
    const float2 *mlin = st.ml + (size_t)copy * OX_CHAIN_SPLITS * st.n_heads;
    touch(xin);
    int k_at[SETS], head_of[SETS];
    bool k_in[SETS];
    uint4 gamma[SETS];
#pragma unroll
    for (int s = 0; s < SETS; s++) {
        const int unit = FOLD == 2 ? unit0 + (s & ~1) + (g >> 2) : unit0 + s;
        const int block = FOLD == 2 ? 2 * (s & 1) + (g >> 1 & 1) : g >> 1;
        k_at[s] = unit * 128 + block * 32 + t * 8;
        k_in[s] = k_at[s] < K;
        if (NORM) gamma[s] = k_in[s] ? *(const uint4 *)(a.gamma + k_at[s]) : make_uint4(0, 0, 0, 0);
        if (MERGE) head_of[s] = k_in[s] ? k_at[s] / st.head_size : 0;
    }
    /* the rows this lane finishes */
    const int erow = lane % EROWS, egroup = lane / EROWS;
    const int n_ends = EROWS == 8 ? count : FOLD == 2 ? (count + 1) / 2 : count;
    auto row_of = [&](const int e) {
        if (e >= n_ends) return -1;
        if (EROWS == 8) return (first + e) * 8 + erow;
        const int2 tiles = row_group<KIND>(st, a, FOLD == 2 ? (first >> 1) + e : first + e);
        return (erow < 8 ? tiles.x : tiles.y) * 8 + (erow & 7);
    };
    char *page = 0;
    if (KIND == LINEAR_QKV) page = st.table[pos / OX_CUDA_PAGE];
    const int out_copy = KIND == LINEAR_GATE ? lane >> 3 : egroup;
    row_consts rc = consts_of<KIND>(st, a, row_of(warp), pos, page, out_copy);
    const __half *residual_at = st.resid + max(rc.n, 0);
    /* slots of the sums over warps; those of absent warps are zero */
    constexpr int KSLOTS = (NWMAX + EGROUPS - 1) / EGROUPS * EGROUPS;
    for (int i = n_warps * rows + (int)threadIdx.x; i < KSLOTS * rows; i += (int)blockDim.x)
        part[i] = 0.0f;
    if (NORM && threadIdx.x >= n_warps && threadIdx.x < KSLOTS) ssq[threadIdx.x] = 0.0f;
    const u32 part_from = shared_address(part + egroup * rows + warp * EROWS + erow);
    const u32 ssq_from = shared_address(ssq + egroup), ssq_to = shared_address(ssq + warp);
    const u32 part_to = shared_address(part + warp * rows + g);
    int n_active = 1;
    if (MERGE) {
        const int f = first_seen(a.split, pos);
        n_active = min(a.split.n, pos / a.split.positions - f / a.split.positions + 1);
    }
    const u64 *last = st.best + ((pos - 1) & (OX_CHAIN_RING - 1));
    STAMP(1);
    DEPENDENT_PART
    {
        pdl_wait();
        STAMP(2);
        if (WIN * P > 1) { /* keep the unpacking of many weights behind the wait */
#pragma unroll
            for (int r = 0; r < WIN; r++)
#pragma unroll
                for (int p = 0; p < P; p++)
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        asm volatile("" : "+r"(sc[r][p][h]));
#pragma unroll
                        for (int v = 0; v < NV; v++)
                            asm volatile(""
                                         : "+r"(w[r][p][h][v].x), "+r"(w[r][p][h][v].y),
                                           "+r"(w[r][p][h][v].z), "+r"(w[r][p][h][v].w));
                    }
        }
        float residual = 0.0f;
        if (!NORM && rc.n >= 0) residual = ld_dep_half(residual_at);
        const __half *from = xin;
        if (EMBED) {
            u32 token = ~(u32)ld_dep_u64(last);
            if (token >= (u32)st.vocab) token = 0;
            from = st.embedding + (size_t)token * st.hidden;
        }
        uint4 xv[SETS];
#pragma unroll
        for (int s = 0; s < SETS; s++) {
            xv[s] = make_uint4(0, 0, 0, 0);
            if (MERGE)
                xv[s] = merge_splits(st, a, xin, mlin, k_in[s] ? k_at[s] : 0, head_of[s], n_active,
                                     g & 1);
            else if (k_in[s])
                xv[s] = ld_dep(from + k_at[s]);
            if (MERGE && !k_in[s]) xv[s] = make_uint4(0, 0, 0, 0);
        }
        if (EMBED && blockIdx.x == 0) {
#pragma unroll
            for (int s = 0; s < SETS; s++)
                if (k_in[s] && !(g & 1)) {
#pragma unroll
                    for (int c = 0; c < 4; c++)
                        if (c < st.copies) *(uint4 *)(st.resid + c * st.hidden + k_at[s]) = xv[s];
                }
            if (threadIdx.x == 0) st.best[(pos + 32) & (OX_CHAIN_RING - 1)] = 0;
        }
#ifdef CHAIN_TRACE
        asm volatile("" ::"r"(xv[0].x), "r"(xv[SETS - 1].w));
#endif
        STAMP(3);
        fixed_x x[SETS];
        float ss = 0.0f;
#pragma unroll
        for (int s = 0; s < SETS; s++) {
            float f[8];
            widen8(f, xv[s]);
            if (NORM) {
                float gm[8];
                widen8(gm, gamma[s]);
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    ss = fmaf(f[i], f[i], ss);
                    f[i] *= gm[i];
                }
            }
            x[s] = to_fixed(f, g & 1);
        }
        /* sums over the blocks, and to the lanes that need them: overlaps the first products */
        auto spread = [&]() {
#pragma unroll
            for (int s = 0; s < SETS; s++) {
                int v = x[s].sum;
                v += SHFL_XOR(v, 1);
                v += SHFL_XOR(v, 2);
                x[s].sum = __shfl_sync(~0u, v, 8 * t);
                x[s].scale = __shfl_sync(~0u, x[s].scale, 8 * t);
            }
            if (NORM) {
                ss += SHFL_XOR(ss, 1);
                ss += SHFL_XOR(ss, 2);
                ss += SHFL_XOR(ss, 8);
                ss += SHFL_XOR(ss, 16);
                if (lane == 0) st_shared(ssq_to, ss);
            }
        };
        /* tiles i0 .. i0+RI-1 of the CTA, whose weights lie in slots r0 .. */
        auto products = [&](const int r0, const int i0, const bool start) {
            float y[RI][2];
#pragma unroll
            for (int r = 0; r < RI; r++)
                y[r][0] = y[r][1] = 0.0f;
#pragma unroll
            for (int p = 0; p < P; p++) {
                constexpr int NA = FOLD; /* accumulator sets: one a unit pair, or one a half */
                int al[NA][RI][4], ah[NA][RI][4];
#pragma unroll
                for (int n = 0; n < NA; n++)
#pragma unroll
                    for (int r = 0; r < RI; r++)
#pragma unroll
                        for (int e = 0; e < 4; e++)
                            al[n][r][e] = ah[n][r][e] = 0;
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    const fixed_x &v = x[FOLD == 2 ? 2 * p + s : p];
                    const int b = FOLD == 2 ? g >> 1 & 1 : (g >> 1) - 2 * s;
                    const u32 l0 = b == 0 ? v.lo : 0u, l1 = b == 1 ? v.lo : 0u;
                    const u32 h0 = b == 0 ? v.hi : 0u, h1 = b == 1 ? v.hi : 0u;
                    const int n = FOLD == 2 ? s : 0;
#pragma unroll
                    for (int r = 0; r < RI; r++) {
                        if (BITS == 4) {
                            const uint4 q = w[r0 + r][p][0][0], q8 = w[r0 + r][p][1][0];
                            const u32 a0 = s ? q.z : q.x, a1 = s ? q8.z : q8.x;
                            const u32 a2 = s ? q.w : q.y, a3 = s ? q8.w : q8.y;
                            const u32 ML = 0x0f0f0f0f, MH = 0xf0f0f0f0;
                            mma_i8(al[n][r], a0 & ML, a1 & ML, a2 & ML, a3 & ML, l0, l1);
                            mma_i8(ah[n][r], a0 & MH, a1 & MH, a2 & MH, a3 & MH, h0, h1);
                        } else {
                            const uint4 q = w[r0 + r][p][0][NV - 1 ? s : 0];
                            const uint4 q8 = w[r0 + r][p][1][NV - 1 ? s : 0];
                            mma_i8(al[n][r], q.x, q8.x, q.y, q8.y, l0, h0);
                            mma_i8(ah[n][r], q.z, q8.z, q.w, q8.w, l1, h1);
                        }
                    }
                }
                if (start && p == 0) spread();
#pragma unroll
                for (int r = 0; r < RI; r++)
#pragma unroll
                    for (int j = 0; j < 2; j++) { /* j: row half (FOLD 1) or unit half (FOLD 2) */
                        const int n = FOLD == 2 ? j : 0;
                        const bool upper = FOLD == 2 ? t >= 2 : j == 1;
                        const int *l = al[n][r], *h = ah[n][r];
                        const int l0 = upper ? l[2] : l[0], l1 = upper ? l[3] : l[1];
                        const int h0 = upper ? h[2] : h[0], h1 = upper ? h[3] : h[1];
                        const fixed_x &v = x[FOLD == 2 ? 2 * p + j : p];
                        const int to = FOLD == 2 ? 0 : j;
                        const int dot = BITS == 4 ? (l0 * 16 + h0) * 256 + (l1 * 16 + h1)
                                                  : (l0 + h0) * 256 + (l1 + h1);
                        y[r][to] =
                            add_block<BITS, FORMAT>(y[r][to], dot, v.sum, v.scale, sc[r0 + r][p][j],
                                                    zc[FORMAT ? r0 + r : 0][p][j], a.w.zero);
                    }
            }
#pragma unroll
            for (int r = 0; r < RI; r++)
#pragma unroll
                for (int j = 0; j < (FOLD == 1 ? 2 : 1); j++) {
                    y[r][j] += SHFL_XOR(y[r][j], 1);
                    y[r][j] += SHFL_XOR(y[r][j], 2);
                    if (t == 0 && (MODE == MODE_WINDOW && RI == 1 || i0 + r < a.tiles))
                        st_shared(part_to + ((i0 + r) * (FOLD == 1 ? 16 : 8) + 8 * j) * 4, y[r][j]);
                }
        };
        if (MODE == MODE_STREAM) {
            for (int base = 0; base < a.tiles; base += WIN) {
#pragma unroll
                for (int r = 0; r < WIN; r += RI) {
                    products(r, base + r, r == 0 && base == 0);
#pragma unroll
                    for (int i = 0; i < RI; i++)
                        if (base + WIN + r + i < count) fetch(r + i, base + WIN + r + i);
                }
            }
        } else {
#pragma unroll
            for (int r = 0; r < WIN; r += RI)
                products(r, r, r == 0);
        }
        STAMP(5);
        __syncthreads();
        STAMP(6);
        /* in a window every warp finishes at most one group (chain.cu sees to it) */
        if (warp < n_ends) {
            for (int e = warp;;) {
                float y = 0.0f, q = 0.0f;
                const u32 from_part =
                    part_from + (MODE == MODE_WINDOW ? 0 : (e - warp) * EROWS * 4);
#pragma unroll
                for (int i = 0; i < KSLOTS / EGROUPS; i++) {
                    y += ld_shared(from_part + i * EGROUPS * rows * 4);
                    if (NORM) q += ld_shared(ssq_from + i * EGROUPS * 4);
                }
#pragma unroll
                for (int o = EROWS; o < 32; o <<= 1) {
                    y += SHFL_XOR(y, o);
                    if (NORM) q += SHFL_XOR(q, o);
                }
                if (NORM) y *= rsqrtf(fmaf(q, a.inv_hidden, st.epsilon));
                y = round_half(y + rc.bias);
                if (KIND == LINEAR_QKV) {
                    const float other = SHFL_XOR(y, st.interleaved ? 1 : 8);
                    y = fmaf(other, rc.sn, y * rc.cs);
                    if (lane < 16 && rc.n >= 0) *rc.to = __float2half_rn(y);
                } else if (KIND == LINEAR_GATE) {
                    const float other = SHFL_XOR(y, 8);
                    const float gate = lane & 8 ? other : y, up = lane & 8 ? y : other;
                    const float act = SILU ? __fdividef(gate, 1.0f + __expf(-gate))
                                           : activation(gate, st.act_kind);
                    const __half v = __float2half_rn(round_half(act) * up);
                    if (rc.n >= 0 && (lane >> 3) < st.copies) *rc.to = v;
                } else if (rc.n >= 0) {
                    const __half v = __float2half_rn(y + residual);
                    if (egroup < st.copies) *rc.to = v;
                    if (EGROUPS == 2 && egroup + 2 < st.copies) rc.to[2 * st.hidden] = v;
                }
                e += n_warps;
                if (MODE == MODE_WINDOW || e >= n_ends) break;
                rc = consts_of<KIND>(st, a, row_of(e), pos, page, out_copy);
                if (!NORM && rc.n >= 0) residual = ld_dep_half(st.resid + rc.n);
            }
        }
        STAMP(4);
    }
#endif
}
#endif
