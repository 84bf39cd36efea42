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
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
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

/* Scales of a unit's row live side by side; zero points and minima likewise. */
struct unit_row {
    const ox_cuda_weight &w;
    size_t at; /* number of the first scale */
    __device__ unit_row(const ox_cuda_weight &weight, int32_t tile, int32_t u, int g)
        : w(weight), at(((size_t)tile * (size_t)weight.k_units + (size_t)u) * 8 * (size_t)(128 / weight.block) +
                        (size_t)g * (size_t)(128 / weight.block))
    {
    }
    __device__ float scale(int k) const
    {
        return ox_cuda_read_scale(w.scales, at + (size_t)(k / w.block), w.scale_f32);
    }
    __device__ float min(int k) const
    {
        return ox_cuda_read_scale(w.zeros, at + (size_t)(k / w.block), w.scale_f32);
    }
    __device__ uint32_t base(int k, int bits) const
    {
        if (w.zero == OX_CUDA_ZERO_CODE)
            return base_of((float)((const uint8_t *)w.zeros)[at + (size_t)(k / w.block)]);
        return base_of(w.zero == OX_CUDA_ZERO_MIN ? 0.0f : (float)(1 << (bits - 1)));
    }
};

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

/* One piece of 32 columns against one block (or the half `part` of it with blocks of 16). */
template <int BITS, int NT>
OX_DEV void piece(const ox_cuda_weight &w, const unit_row &ru, const unit_row &rl, bool has_low,
                  const uint4 *vu, const uint4 *vl, int b, int k, const uint4 *x, float acc[NT][4])
{
    uint32_t up[4], low[4];
    float c[NT][4] = {};
    pairs_of<BITS>(vu, b, ru.base(k, BITS), up);
    pairs_of<BITS>(vl, b, has_low ? rl.base(k, BITS) : 0, low);
    products<NT>(c, up, low, x);
    add_scaled<NT>(acc, c, ru.scale(k), has_low ? rl.scale(k) : 0.0f);
    if (w.zero != OX_CUDA_ZERO_MIN) return;
    const uint32_t ones[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
    float s[NT][4] = {};
    products<NT>(s, ones, ones, x);
    add_scaled<NT>(acc, s, ru.min(k), has_low ? rl.min(k) : 0.0f);
}

template <int BITS, int NT>
OX_DEV void unit_products(const ox_dev_linear_args &a, const ox_cuda_weight &w, int32_t t0,
                          int32_t t1, int32_t u, float acc[NT][4])
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const bool has_low = t1 < w.n_tiles;
    const size_t vectors = BITS * 8;
    uint4 vu[BITS / 4], vl[BITS / 4];
    const uint4 *pu = w.codes + ((size_t)t0 * (size_t)w.k_units + (size_t)u) * vectors;
    const uint4 *pl = w.codes + ((size_t)t1 * (size_t)w.k_units + (size_t)u) * vectors;
#pragma unroll
    for (int i = 0; i < BITS / 4; i++) {
        vu[i] = pu[i * 32 + lane];
        vl[i] = has_low ? pl[i * 32 + lane] : make_uint4(0, 0, 0, 0);
    }
    const unit_row ru(w, t0, u, g), rl(w, has_low ? t1 : t0, u, g);
#pragma unroll
    for (int b = 0; b < 4; b++) {
        uint4 x[NT];
        load_x<NT>(a, u * 128 + b * 32 + t * 8, g, x);
        if (w.block >= 32) {
            piece<BITS, NT>(w, ru, rl, has_low, vu, vl, b, b * 32, x, acc);
            continue;
        }
        for (int h = 0; h < 2; h++) { /* blocks of 16: lanes of the other half hold zeros */
            uint4 part[NT];
#pragma unroll
            for (int i = 0; i < NT; i++)
                part[i] = t >> 1 == h ? x[i] : make_uint4(0, 0, 0, 0);
            piece<BITS, NT>(w, ru, rl, has_low, vu, vl, b, b * 32 + h * 16, part, acc);
        }
    }
}

/* Float weights: the same fragments straight from row-major float16. */
template <int NT>
OX_DEV void unit_floats(const ox_dev_linear_args &a, int32_t n0, int32_t u, float acc[NT][4])
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const bool has_up = n0 + g < a.n, has_low = n0 + 8 + g < a.n;
    const __half *pu = (const __half *)a.w.p + (size_t)(n0 + g) * (size_t)a.w.ld;
    const __half *pl = pu + 8 * (size_t)a.w.ld;
    uint4 vu[4], vl[4];
#pragma unroll
    for (int b = 0; b < 4; b++) { /* rows are padded with zeros to whole vectors */
        const int32_t k = u * 128 + b * 32 + t * 8;
        vu[b] = has_up && k < a.k ? *(const uint4 *)(pu + k) : make_uint4(0, 0, 0, 0);
        vl[b] = has_low && k < a.k ? *(const uint4 *)(pl + k) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int b = 0; b < 4; b++) {
        uint4 x[NT];
        load_x<NT>(a, u * 128 + b * 32 + t * 8, g, x);
        products<NT>(acc, (const uint32_t *)&vu[b], (const uint32_t *)&vl[b], x);
    }
}

template <int BITS, int NT, int WARPS>
static __global__ void __launch_bounds__(WARPS * 32)
    few_kernel(ox_dev_linear_args a, ox_cuda_weight w, int32_t up_first)
{
    constexpr int COLS = NT * 8;
    __shared__ float part[WARPS][16][COLS + 1];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    const int32_t at = (int32_t)blockIdx.x, n_out = a.pairs ? a.n / 2 : a.n;
    float acc[NT][4] = {};
    for (int32_t u = warp; u < (BITS == 16 ? (a.k + 127) / 128 : w.k_units); u += WARPS) {
        if constexpr (BITS == 16)
            unit_floats<NT>(a, at * 16, u, acc);
        else
            unit_products<BITS, NT>(a, w, a.pairs ? at : 2 * at,
                                    a.pairs ? up_first / 8 + at : 2 * at + 1, u, acc);
    }
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

template <int BITS, int NT>
static void launch(const ox_dev_linear_args *a, const ox_cuda_weight *w, cudaStream_t s)
{
    const int32_t n_out = a->pairs ? a->n / 2 : a->n, up = (n_out + 7) / 8 * 8;
    const int32_t rows = a->pairs ? 8 : 16, units = (a->k + 127) / 128;
    const unsigned grid = (unsigned)((n_out + rows - 1) / rows);
    if (NT <= 4 && units >= 16)
        few_kernel<BITS, NT, 16><<<grid, 512, 0, s>>>(*a, *w, up);
    else
        few_kernel<BITS, NT, 8><<<grid, 256, 0, s>>>(*a, *w, up);
}

template <int BITS>
static void launch_tiles(const ox_dev_linear_args *a, const ox_cuda_weight *w, cudaStream_t s)
{
    if (a->rows <= 8)
        launch<BITS, 1>(a, w, s);
    else if (a->rows <= 16)
        launch<BITS, 2>(a, w, s);
    else if (a->rows <= 32)
        launch<BITS, 4>(a, w, s);
    else
        launch<BITS, 8>(a, w, s);
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
