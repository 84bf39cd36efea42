/* CUDA row of qexact.h for any shape: weights as kernel/qlinear/cuda_pack.cuh packs them, float
 * activations, float32 sums.
 *
 * A block owns a tile of 8 weight rows (with pairs the tile of gates and the tile of ups); its
 * warps take units of 128 columns in turn. Lane 4g+t multiplies row g with eight neighbours of x at
 * a time, all of one quantisation block. Sums meet over t by shuffles, over warps in shared memory,
 * in fixed order: a row's bits depend on its x and on k alone. */
#include "kernel/device.cuh"
#include "kernel/qlinear/cuda_pack.cuh"

enum { WARPS = 4 };

/* Eight codes of lane `lane`, 32-column piece b of a unit, as floats minus the zero point. */
template <int BITS>
OX_DEV void codes8(const uint4 *unit, int lane, int b, float zero, float *q)
{
    const uint32_t *words = (const uint32_t *)unit;
    const float magic = 8388608.0f + zero; /* 0x4b000000 | code is 2^23 + code */
    if (BITS == 4) {
        const uint32_t w = words[lane * 4 + b];
#pragma unroll
        for (int e = 0; e < 8; e++)
            q[e] = __uint_as_float((w >> 4 * ((e >> 1) + 4 * (e & 1)) & 15u) | 0x4b000000u) - magic;
    } else {
        const uint32_t *at = words + ((b >> 1) * 32 + lane) * 4 + 2 * (b & 1);
#pragma unroll
        for (int e = 0; e < 8; e++)
            q[e] = __uint_as_float((at[e >> 1 & 1] >> 8 * ((e >> 2) + 2 * (e & 1)) & 255u) |
                                   0x4b000000u) - magic;
    }
}

template <class T, int BITS, int M>
OX_DEV void tile_sums(const ox_dev_linear_args &a, const ox_cuda_weight &w, int32_t tile,
                      int32_t r0, bool vec, float *acc)
{
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    for (int32_t u = threadIdx.x >> 5; u < w.k_units; u += WARPS) {
        const size_t unit = (size_t)tile * (size_t)w.k_units + (size_t)u;
        const uint4 *codes = w.codes + unit * (BITS * 8);
        for (int b = 0; b < 4; b++) {
            const int32_t k = u * 128 + b * 32 + t * 8;
            const size_t i = (unit * 8 + (size_t)g) * (size_t)(128 / w.block) +
                             (size_t)((b * 32 + t * 8) / w.block);
            const float scale = ox_cuda_read_scale(w.scales, i, w.scale_f32);
            float zero = (float)(1 << (BITS - 1)), min = 0.0f, q[8], x[8];
            if (w.zero == OX_CUDA_ZERO_CODE) zero = (float)((const uint8_t *)w.zeros)[i];
            if (w.zero == OX_CUDA_ZERO_MIN) {
                zero = 0.0f;
                min = ox_cuda_read_scale(w.zeros, i, w.scale_f32);
            }
            codes8<BITS>(codes, lane, b, zero, q);
#pragma unroll
            for (int m = 0; m < M; m++) {
                if (M > 1 && r0 + m >= a.rows) break;
                ox_load8((const T *)a.x.p + (size_t)(r0 + m) * (size_t)a.x.ld, k, a.k, vec, x);
                float sum = 0.0f, sum_x = 0.0f;
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    sum = fmaf(q[e], x[e], sum);
                    sum_x += x[e];
                }
                acc[m] = fmaf(scale, sum, acc[m]);
                if (w.zero == OX_CUDA_ZERO_MIN) acc[m] = fmaf(min, sum_x, acc[m]);
            }
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++) {
        acc[m] += __shfl_xor_sync(~0u, acc[m], 1);
        acc[m] += __shfl_xor_sync(~0u, acc[m], 2);
    }
}

template <class T, int BITS, int M>
static __global__ void qexact_kernel(ox_dev_linear_args a, ox_cuda_weight w, int32_t up_first,
                                     bool vec)
{
    __shared__ float part[2][WARPS][M][8];
    const int32_t tile = (int32_t)blockIdx.x, r0 = (int32_t)blockIdx.y * M;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float acc[M] = {}, up[M] = {};
    tile_sums<T, BITS, M>(a, w, tile, r0, vec, acc);
    if (a.pairs) tile_sums<T, BITS, M>(a, w, up_first / 8 + tile, r0, vec, up);
    if (!(lane & 3))
#pragma unroll
        for (int m = 0; m < M; m++) {
            part[0][warp][m][lane >> 2] = acc[m];
            part[1][warp][m][lane >> 2] = up[m];
        }
    __syncthreads();
    const int32_t n_out = a.pairs ? a.n / 2 : a.n;
    for (int i = threadIdx.x; i < M * 8; i += WARPS * 32) {
        const int m = i >> 3;
        const int32_t c = tile * 8 + (i & 7), r = r0 + m;
        if (c >= n_out || r >= a.rows) continue;
        float v = 0.0f, u = 0.0f;
        for (int k = 0; k < WARPS; k++) {
            v += part[0][k][m][i & 7];
            u += part[1][k][m][i & 7];
        }
        if (a.bias) v += a.bias[c];
        if (a.act >= 0) v = ox_act_float(a.act, v);
        if (a.pairs) v *= a.bias ? u + a.bias[n_out + c] : u;
        if (a.add.p) v += ox_get(a.add, r, c);
        ox_put(a.y, r, c, v);
    }
}

template <class T, int BITS>
static void launch(const ox_dev_linear_args *a, const ox_cuda_weight *w, cudaStream_t s)
{
    const bool vec = ox_is_vec(a->x.p, a->x.ld, a->x.dtype);
    const int32_t n_out = a->pairs ? a->n / 2 : a->n, up = (n_out + 7) / 8 * 8;
    const unsigned tiles = (unsigned)(n_out + 7) / 8;
    if (a->rows == 1)
        qexact_kernel<T, BITS, 1><<<dim3(tiles, 1), WARPS * 32, 0, s>>>(*a, *w, up, vec);
    else
        qexact_kernel<T, BITS, 8>
            <<<dim3(tiles, (unsigned)(a->rows + 7) / 8), WARPS * 32, 0, s>>>(*a, *w, up, vec);
}

void ox_qexact_cuda(const void *args, void *stream)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    ox_cuda_weight w;
    memcpy(&w, a->pack, sizeof(w));
    if (!a->rows) return;
    if (w.bits == 4)
        OX_WITH_TYPE(a->x.dtype, T, launch<T, 4>(a, &w, ox_stream_of(stream)));
    else
        OX_WITH_TYPE(a->x.dtype, T, launch<T, 8>(a, &w, ox_stream_of(stream)));
}
