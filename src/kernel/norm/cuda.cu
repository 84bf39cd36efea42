/* CUDA row of norm.h: a block a group of channels; sums in float32, threads' parts in order. */
#include "kernel/device.cuh"

enum { BLOCK = 256 };

static __global__ void norm_kernel(ox_dev_norm_args a)
{
    __shared__ float part[33];
    const int32_t r = (int32_t)(blockIdx.x / (unsigned)a.groups);
    const int32_t first = (int32_t)(blockIdx.x % (unsigned)a.groups) * a.dim;
    float mean = 0.0f, sum = 0.0f;
    if (a.centre) {
        for (int32_t i = threadIdx.x; i < a.dim; i += BLOCK)
            mean += ox_get(a.x, r, first + i);
        mean = ox_block_sum(mean, part) / (float)a.dim;
    }
    for (int32_t i = threadIdx.x; i < a.dim; i += BLOCK) {
        const float d = ox_get(a.x, r, first + i) - mean;
        sum = fmaf(d, d, sum);
    }
    sum = ox_block_sum(sum, part);
    const float scale = 1.0f / sqrtf(sum / (float)a.dim + a.eps);
    for (int32_t i = threadIdx.x; i < a.dim; i += BLOCK) {
        const float y = (ox_get(a.x, r, first + i) - mean) * scale * a.gamma[i];
        ox_put(a.y, r, first + i, a.beta ? y + a.beta[i] : y);
    }
}

void ox_norm_cuda(const void *args, void *stream)
{
    const ox_dev_norm_args *a = (const ox_dev_norm_args *)args;
    if (!a->rows) return;
    norm_kernel<<<(unsigned)a->rows * (unsigned)a->groups, BLOCK, 0, ox_stream_of(stream)>>>(*a);
}
