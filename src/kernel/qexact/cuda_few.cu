/* CUDA rows of qexact.h and matmul.h for few rows (1 to 64), float16 activations: tensor cores.
 *
 * A block owns 16 rows of W as the upper and lower halves of an mma.m16n8k16 fragment: two
 * neighbouring tiles, or with pairs the tile of gates and the tile of ups. Its warps take units of
 * 128 columns in turn; rows of x are the mma's columns, 8 a tile, up to 8 tiles. The columns of a
 * unit are contracted in the order in which the pack holds them (cuda_pack.cuh), so that operands
 * come as 16-byte vectors and nothing is shuffled. Codes minus their zero points are exact in
 * float16, products and sums are float32, scales are applied to the sums of a block.
 *
 * Sums meet over warps in index order, so a row's bits depend on its x and on the shape of W alone:
 * 1 row, 8 or 64 give the same. */
#include "kernel/device.cuh"
#include "kernel/qlinear/cuda_pack.cuh"

enum { FEW_ROWS = 64 };

OX_DEV void mma16816(float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

OX_DEV uint32_t minus_zero(uint32_t biased, uint32_t base) /* two halves 1024+q minus 1024+z */
{
    const __half2 r = __hsub2(*(const __half2 *)&biased, *(const __half2 *)&base);
    return *(const uint32_t *)&r;
}

/* Eight codes of a lane (piece b of its unit) as four pairs of float16 integers. */
template <int BITS> OX_DEV void pairs_of(const uint4 *v, int b, uint32_t base, uint32_t *out)
{
    if (BITS == 4) {
        const uint32_t q = b == 0 ? v[0].x : b == 1 ? v[0].y : b == 2 ? v[0].z : v[0].w;
#pragma unroll
        for (int i = 0; i < 4; i++)
            out[i] = minus_zero((q >> 4 * i & 0x000f000fu) | 0x64006400u, base);
    } else {
        const uint4 u = v[b >> 1];
        const uint32_t w0 = b & 1 ? u.z : u.x, w1 = b & 1 ? u.w : u.y;
#pragma unroll
        for (int i = 0; i < 4; i++)
            out[i] = minus_zero(__byte_perm(i & 1 ? w1 : w0, 0x64646464u, i >> 1 ? 0x4341 : 0x4240),
                                base);
    }
}

OX_DEV uint32_t base_of(float zero)
{
    const __half2 h = __float2half2_rn(1024.0f + zero);
    return *(const uint32_t *)&h;
}

template <int NT>
OX_DEV void load_x(const ox_dev_linear_args &a, int32_t k, int g, uint4 *x)
{
#pragma unroll
    for (int i = 0; i < NT; i++) {
        const int32_t r = i * 8 + g;
        x[i] = make_uint4(0, 0, 0, 0);
        if (r >= a.rows || k >= a.k) continue;
        const __half *row = (const __half *)a.x.p + (size_t)r * (size_t)a.x.ld + (size_t)k;
        if (k + 8 <= a.k) {
            x[i] = *(const uint4 *)row;
        } else {
            __half *to = (__half *)&x[i];
            for (int e = 0; k + e < a.k; e++)
                to[e] = row[e];
        }
    }
}

/* c[nt] += fragment (pairs 0..3 of the upper row, of the lower row) x columns. */
template <int NT>
OX_DEV void products(float c[NT][4], const uint32_t *up, const uint32_t *low, const uint4 *x)
{
    const uint32_t a0[4] = {up[0], low[0], up[1], low[1]}, a1[4] = {up[2], low[2], up[3], low[3]};
#pragma unroll
    for (int i = 0; i < NT; i++)
        mma16816(c[i], a0, x[i].x, x[i].y);
#pragma unroll
    for (int i = 0; i < NT; i++)
        mma16816(c[i], a1, x[i].z, x[i].w);
}

template <int NT>
OX_DEV void add_scaled(float acc[NT][4], const float c[NT][4], float up, float low)
{
#pragma unroll
    for (int i = 0; i < NT; i++) {
        acc[i][0] = fmaf(up, c[i][0], acc[i][0]);
        acc[i][1] = fmaf(up, c[i][1], acc[i][1]);
        acc[i][2] = fmaf(low, c[i][2], acc[i][2]);
        acc[i][3] = fmaf(low, c[i][3], acc[i][3]);
    }
}

/* What a lane needs of one unit of its two rows; fetched whole before it is used. NB: scales a
 * unit, 8 with blocks of 16, else 4 (larger blocks repeat theirs). */
template <int BITS, int NB> struct unit_data {
    uint4 up[BITS / 4], low[BITS / 4];
    float scale[2][NB], zero[2][NB]; /* of the upper and the lower row; zero: code or minimum */
};

template <int NB, class F> OX_DEV void read_all(const ox_cuda_weight &w, size_t at, float *out, F read)
{
#pragma unroll
    for (int i = 0; i < NB; i++)
        out[i] = read(at + (size_t)(i * (128 / NB) / w.block));
}

template <int BITS, int NB>
OX_DEV void fetch(const ox_cuda_weight &w, int32_t t0, int32_t t1, int32_t u,
                  unit_data<BITS, NB> &d)
{
    const int lane = threadIdx.x & 31, g = lane >> 2;
    const bool has_low = t1 < w.n_tiles;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const size_t unit = (size_t)(h && has_low ? t1 : t0) * (size_t)w.k_units + (size_t)u;
        const uint4 *codes = w.codes + unit * (BITS * 8);
        const size_t at = (unit * 8 + (size_t)g) * (size_t)(128 / w.block);
#pragma unroll
        for (int i = 0; i < BITS / 4; i++)
            (h ? d.low : d.up)[i] = codes[i * 32 + lane];
        if (w.scale_f32)
            read_all<NB>(w, at, d.scale[h], [&](size_t i) { return ((const float *)w.scales)[i]; });
        else
            read_all<NB>(w, at, d.scale[h],
                         [&](size_t i) { return __half2float(((const __half *)w.scales)[i]); });
        if (w.zero == OX_CUDA_ZERO_CODE)
            read_all<NB>(w, at, d.zero[h],
                         [&](size_t i) { return (float)((const uint8_t *)w.zeros)[i]; });
        else if (w.zero == OX_CUDA_ZERO_MIN)
            read_all<NB>(w, at, d.zero[h],
                         [&](size_t i) { return ox_cuda_read_scale(w.zeros, i, w.scale_f32); });
        if (h && !has_low)
#pragma unroll
            for (int i = 0; i < NB; i++)
                d.scale[1][i] = d.zero[1][i] = 0.0f;
    }
}

/* One piece of 32 columns against block i (or the half of it with blocks of 16). */
template <int BITS, int NT, int NB>
OX_DEV void piece(const ox_cuda_weight &w, const unit_data<BITS, NB> &d, int b, int i,
                  const uint4 *x, float acc[NT][4])
{
    const float middle = w.zero == OX_CUDA_ZERO_MIDDLE ? (float)(1 << (BITS - 1)) : 0.0f;
    const bool codes = w.zero == OX_CUDA_ZERO_CODE;
    uint32_t up[4], low[4];
    float c[NT][4] = {};
    pairs_of<BITS>(d.up, b, base_of(codes ? d.zero[0][i] : middle), up);
    pairs_of<BITS>(d.low, b, base_of(codes ? d.zero[1][i] : middle), low);
    products<NT>(c, up, low, x);
    add_scaled<NT>(acc, c, d.scale[0][i], d.scale[1][i]);
    if (w.zero != OX_CUDA_ZERO_MIN) return;
    const uint32_t ones[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
    float s[NT][4] = {};
    products<NT>(s, ones, ones, x);
    add_scaled<NT>(acc, s, d.zero[0][i], d.zero[1][i]);
}

template <int BITS, int NT, int NB>
OX_DEV void unit_products(const ox_dev_linear_args &a, const ox_cuda_weight &w,
                          const unit_data<BITS, NB> &d, int32_t u, float acc[NT][4])
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    constexpr int AHEAD = NT <= 2 ? 4 : 1; /* pieces of x fetched before the first is used */
    uint4 x[AHEAD][NT];
#pragma unroll
    for (int b = 0; b < 4; b++) {
        if (b % AHEAD == 0)
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                load_x<NT>(a, u * 128 + (b + i) * 32 + t * 8, g, x[i]);
        if (NB == 4) {
            piece<BITS, NT, NB>(w, d, b, b, x[b % AHEAD], acc);
            continue;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) { /* blocks of 16: lanes of the other half hold zeros */
            uint4 part[NT];
#pragma unroll
            for (int i = 0; i < NT; i++)
                part[i] = t >> 1 == h ? x[b % AHEAD][i] : make_uint4(0, 0, 0, 0);
            piece<BITS, NT, NB>(w, d, b, (b * 2 + h) % NB, part, acc);
        }
    }
}

/* All units of this warp; the weights of the first are fetched before the step's data is there. */
template <int BITS, int NT, int NB, int WARPS>
OX_DEV void packed_sums(const ox_dev_linear_args &a, const ox_cuda_weight &w, int32_t t0,
                        int32_t t1, float acc[NT][4])
{
    int32_t u = threadIdx.x >> 5;
    unit_data<BITS, NB> d, next;
    if (u < w.k_units) fetch<BITS, NB>(w, t0, t1, u, d);
    ox_wait_for_step();
    for (; u < w.k_units; u += WARPS) {
        if (u + WARPS < w.k_units) fetch<BITS, NB>(w, t0, t1, u + WARPS, next);
        unit_products<BITS, NT, NB>(a, w, d, u, acc);
        d = next;
    }
}

OX_DEV uint4 float_vector(const __half *row, int32_t k, int32_t n, bool have)
{
    uint4 v = make_uint4(0, 0, 0, 0);
    if (!have || k >= n) return v;
    if (k + 8 <= n) return *(const uint4 *)(row + k);
    for (int e = 0; k + e < n; e++)
        ((__half *)&v)[e] = row[k + e];
    return v;
}

/* Float weights: the same fragments straight from row-major float16. */
template <int NT, int WARPS>
OX_DEV void float_sums(const ox_dev_linear_args &a, int32_t n0, float acc[NT][4])
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const __half *pu = (const __half *)a.w.p + (size_t)(n0 + g) * (size_t)a.w.ld;
    const __half *pl = pu + 8 * (size_t)a.w.ld;
    ox_wait_for_step();
    for (int32_t u = threadIdx.x >> 5; u * 128 < a.k; u += WARPS) {
        uint4 vu[4], vl[4];
#pragma unroll
        for (int b = 0; b < 4; b++) {
            const int32_t k = u * 128 + b * 32 + t * 8;
            vu[b] = float_vector(pu, k, a.k, n0 + g < a.n);
            vl[b] = float_vector(pl, k, a.k, n0 + 8 + g < a.n);
        }
#pragma unroll
        for (int b = 0; b < 4; b++) {
            uint4 x[NT];
            load_x<NT>(a, u * 128 + b * 32 + t * 8, g, x);
            products<NT>(acc, (const uint32_t *)&vu[b], (const uint32_t *)&vl[b], x);
        }
    }
}

template <int BITS, int NT, int NB, int WARPS>
static __global__ void __launch_bounds__(WARPS * 32)
    few_kernel(ox_dev_linear_args a, ox_cuda_weight w, int32_t up_first)
{
    constexpr int COLS = NT * 8;
    __shared__ float part[WARPS][16][COLS + 1];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    const int32_t at = (int32_t)blockIdx.x, n_out = a.pairs ? a.n / 2 : a.n;
    float acc[NT][4] = {};
    ox_let_next_start();
    if constexpr (BITS == 16)
        float_sums<NT, WARPS>(a, at * 16, acc);
    else
        packed_sums<BITS, NT, NB, WARPS>(a, w, a.pairs ? at : 2 * at,
                                         a.pairs ? up_first / 8 + at : 2 * at + 1, acc);
#pragma unroll
    for (int i = 0; i < NT; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            part[warp][g + 8 * (e >> 1)][i * 8 + 2 * t + (e & 1)] = acc[i][e];
    __syncthreads();
    const int rows = a.pairs ? 8 : 16;
    for (int i = threadIdx.x; i < rows * COLS; i += WARPS * 32) {
        const int m = i % COLS, o = i / COLS;
        const int32_t c = at * rows + o;
        if (c >= n_out || m >= a.rows) continue;
        float v = 0.0f, up = 0.0f;
#pragma unroll
        for (int k = 0; k < WARPS; k++) {
            v += part[k][o][m];
            if (a.pairs) up += part[k][8 + o][m];
        }
        if (a.bias) v += a.bias[c];
        if (a.act >= 0) v = ox_act_float(a.act, v);
        if (a.pairs) v *= a.bias ? up + a.bias[n_out + c] : up;
        if (a.add.p) v += ox_get(a.add, m, c);
        ox_put(a.y, m, c, v);
    }
}

template <int BITS, int NT, int NB>
static void launch(const ox_dev_linear_args *a, const ox_cuda_weight *w, cudaStream_t s)
{
    const int32_t n_out = a->pairs ? a->n / 2 : a->n, up = (n_out + 7) / 8 * 8;
    const int32_t rows = a->pairs ? 8 : 16, units = (a->k + 127) / 128;
    const unsigned grid = (unsigned)((n_out + rows - 1) / rows);
    if (NT <= 4 && units >= 16)
        ox_launch(few_kernel<BITS, NT, NB, NT <= 4 ? 16 : 8>, grid, NT <= 4 ? 512 : 256, 0, s, *a, *w, up);
    else
        ox_launch(few_kernel<BITS, NT, NB, 8>, grid, 256, 0, s, *a, *w, up);
}

template <int BITS, int NT>
static void launch_blocks(const ox_dev_linear_args *a, const ox_cuda_weight *w, cudaStream_t s)
{
    if (BITS < 16 && w->block == 16)
        launch<BITS, NT, BITS < 16 ? 8 : 4>(a, w, s);
    else
        launch<BITS, NT, 4>(a, w, s);
}

template <int BITS>
static void launch_tiles(const ox_dev_linear_args *a, const ox_cuda_weight *w, cudaStream_t s)
{
    if (a->rows <= 8)
        launch_blocks<BITS, 1>(a, w, s);
    else if (a->rows <= 16)
        launch_blocks<BITS, 2>(a, w, s);
    else if (a->rows <= 32)
        launch_blocks<BITS, 4>(a, w, s);
    else
        launch_blocks<BITS, 8>(a, w, s);
}

/* Rows of x are vectors of 16 bytes: operands that start in the middle go to the general row. */
static bool fits(const ox_dev_linear_args *a)
{
    return a->rows <= FEW_ROWS && ox_is_vec(a->x.p, a->x.ld, a->x.dtype);
}

bool ox_few_cuda_accepts(const void *args)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    const bool weights = a->pack || (a->w.dtype == OX_DEV_F16 && a->w.ld % 8 == 0);
    return weights && a->x.dtype == OX_DEV_F16 && fits(a);
}

void ox_qexact_cuda_few(const void *args, void *stream)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    ox_cuda_weight w;
    if (!a->rows) return;
    if (!fits(a)) {
        ox_qexact_cuda(args, stream);
        return;
    }
    memcpy(&w, a->pack, sizeof(w));
    if (w.bits == 4)
        launch_tiles<4>(a, &w, ox_stream_of(stream));
    else
        launch_tiles<8>(a, &w, ox_stream_of(stream));
}

void ox_matmul_cuda_few(const void *args, void *stream)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    const ox_cuda_weight none = {};
    if (!a->rows) return;
    if (fits(a) && ox_is_vec(a->w.p, a->w.ld, a->w.dtype))
        launch_tiles<16>(a, &none, ox_stream_of(stream));
    else
        ox_matmul_cuda(args, stream);
}
