/* CUDA row of norm.h: a block a group of channels; sums in float32, threads' parts in order. A row
 * of up to 8,192 channels is read once and kept in registers. */
#include "kernel/device.cuh"

enum { BLOCK = 256, KEPT = 4 }; /* vectors of eight channels a thread */

template <class T> static __global__ void norm_kernel(ox_dev_norm_args a, bool vec)
{
    __shared__ float part[33];
    const int32_t r = (int32_t)(blockIdx.x / (unsigned)a.groups);
    const int32_t first = (int32_t)(blockIdx.x % (unsigned)a.groups) * a.dim;
    const T *x = (const T *)a.x.p + (size_t)r * (size_t)a.x.ld + (size_t)first;
    float v[KEPT][8], mean = 0.0f, sum = 0.0f;
    ox_let_next_start();
    ox_wait_for_step();
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        const int32_t k = (i * BLOCK + (int32_t)threadIdx.x) * 8;
        if (i * BLOCK * 8 >= a.dim) break;
        ox_load8(x, k, a.dim, vec, v[i]);
#pragma unroll
        for (int e = 0; e < 8; e++)
            mean += v[i][e];
    }
    for (int32_t k = KEPT * BLOCK * 8 + (int32_t)threadIdx.x; k < a.dim && a.centre; k += BLOCK)
        mean += ox_to_float(x[k]);
    mean = a.centre ? ox_block_sum(mean, part) / (float)a.dim : 0.0f;
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        const int32_t k = (i * BLOCK + (int32_t)threadIdx.x) * 8;
        if (i * BLOCK * 8 >= a.dim) break;
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const float d = k + e < a.dim ? v[i][e] - mean : 0.0f;
            sum = fmaf(d, d, sum);
        }
    }
    for (int32_t k = KEPT * BLOCK * 8 + (int32_t)threadIdx.x; k < a.dim; k += BLOCK) {
        const float d = ox_to_float(x[k]) - mean;
        sum = fmaf(d, d, sum);
    }
    const float scale = 1.0f / sqrtf(ox_block_sum(sum, part) / (float)a.dim + a.eps);
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        const int32_t k = (i * BLOCK + (int32_t)threadIdx.x) * 8;
        if (i * BLOCK * 8 >= a.dim) break;
#pragma unroll
        for (int e = 0; e < 8; e++) {
            if (k + e >= a.dim) break;
            const float y = (v[i][e] - mean) * scale * a.gamma[k + e];
            ox_put(a.y, r, first + k + e, a.beta ? y + a.beta[k + e] : y);
        }
    }
    for (int32_t k = KEPT * BLOCK * 8 + (int32_t)threadIdx.x; k < a.dim; k += BLOCK) {
        const float y = (ox_to_float(x[k]) - mean) * scale * a.gamma[k];
        ox_put(a.y, r, first + k, a.beta ? y + a.beta[k] : y);
    }
}

void ox_norm_cuda(const void *args, void *stream)
{
    const ox_dev_norm_args *a = (const ox_dev_norm_args *)args;
    if (!a->rows) return;
    const bool vec = ox_is_vec(a->x.p, a->x.ld, a->x.dtype) && a->dim % 8 == 0;
    OX_WITH_TYPE(a->x.dtype, T,
                 ox_launch(norm_kernel<T>, (unsigned)a->rows * (unsigned)a->groups, BLOCK, 0,
                           ox_stream_of(stream), *a, vec));
}
