/* CUDA row of matmul.h for any shape: a warp a weight row, lanes over k, up to ROWS rows of x at
 * once. A row's sum depends on k alone. */
#include "kernel/device.cuh"

enum { WARPS = 4 };

template <class T, class W, int M>
static __global__ void matmul_kernel(ox_dev_linear_args a, bool vec_x, bool vec_w)
{
    const int32_t n = (int32_t)(blockIdx.x * WARPS + (threadIdx.x >> 5));
    const int32_t lane = threadIdx.x & 31, r0 = (int32_t)blockIdx.y * M;
    if (n >= a.n) return;
    const W *w = (const W *)a.w.p + (size_t)n * (size_t)a.w.ld;
    float acc[M];
#pragma unroll
    for (int m = 0; m < M; m++)
        acc[m] = 0.0f;
    for (int32_t k = lane * 8; k < a.k; k += 256) {
        float wf[8], xf[8];
        ox_load8(w, k, a.k, vec_w, wf);
#pragma unroll
        for (int m = 0; m < M; m++) {
            if (r0 + m >= a.rows) break;
            ox_load8((const T *)a.x.p + (size_t)(r0 + m) * (size_t)a.x.ld, k, a.k, vec_x, xf);
#pragma unroll
            for (int e = 0; e < 8; e++)
                acc[m] = fmaf(xf[e], wf[e], acc[m]);
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++) {
        const float sum = ox_warp_sum(acc[m]);
        if (lane || r0 + m >= a.rows) continue;
        float y = a.bias ? sum + a.bias[n] : sum;
        if (a.add.p) y += ox_get(a.add, r0 + m, n);
        ox_put(a.y, r0 + m, n, y);
    }
}

template <class T, class W> static void launch(const ox_dev_linear_args *a, cudaStream_t s)
{
    const bool vx = ox_is_vec(a->x.p, a->x.ld, a->x.dtype);
    const bool vw = ox_is_vec(a->w.p, a->w.ld, a->w.dtype);
    const unsigned tiles = (unsigned)(a->n + WARPS - 1) / WARPS;
    if (a->rows == 1)
        matmul_kernel<T, W, 1><<<dim3(tiles, 1), WARPS * 32, 0, s>>>(*a, vx, vw);
    else
        matmul_kernel<T, W, 8>
            <<<dim3(tiles, (unsigned)(a->rows + 7) / 8), WARPS * 32, 0, s>>>(*a, vx, vw);
}

void ox_matmul_cuda(const void *args, void *stream)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    if (!a->rows) return;
    OX_WITH_TYPE(a->x.dtype, T,
                 OX_WITH_TYPE(a->w.dtype, W, launch<T, W>(a, ox_stream_of(stream))));
}
