/* CUDA row of rotate.h: a thread a pair of channels, in place. */
#include "kernel/device.cuh"

enum { BLOCK = 128 };

static __global__ void rotate_kernel(ox_dev_rotate_args a)
{
    const int32_t half = a.rotary / 2, r = (int32_t)blockIdx.y;
    const int32_t n = a.n_heads * half, pos = a.pos[r];
    if (pos < 0) return;
    for (int32_t i = (int32_t)(blockIdx.x * BLOCK + threadIdx.x); i < n;
         i += (int32_t)gridDim.x * BLOCK) {
        const int32_t h = i / half, j = i % half;
        const float c = a.cos_table[(size_t)pos * (size_t)half + (size_t)j];
        const float s = a.sin_table[(size_t)pos * (size_t)half + (size_t)j];
        const int32_t c0 = h * a.head_size + (a.interleaved ? 2 * j : j);
        const int32_t c1 = c0 + (a.interleaved ? 1 : half);
        const float x0 = ox_get(a.x, r, c0), x1 = ox_get(a.x, r, c1);
        ox_put(a.x, r, c0, x0 * c - x1 * s);
        ox_put(a.x, r, c1, x1 * c + x0 * s);
    }
}

void ox_rotate_cuda(const void *args, void *stream)
{
    const ox_dev_rotate_args *a = (const ox_dev_rotate_args *)args;
    const int32_t n = a->n_heads * (a->rotary / 2);
    if (!a->rows || !n) return;
    const dim3 grid(ox_grid((size_t)n, BLOCK), (unsigned)a->rows);
    rotate_kernel<<<grid, BLOCK, 0, ox_stream_of(stream)>>>(*a);
}
