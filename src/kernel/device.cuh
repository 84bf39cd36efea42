/* device.cuh - what the CUDA rows share: elements of any type, sums over a block. */
#ifndef OX_KERNEL_DEVICE_CUH
#define OX_KERNEL_DEVICE_CUH
#include "kernel/device.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define OX_DEV static __device__ __forceinline__

template <class T> OX_DEV float ox_to_float(T v)
{
    return (float)v;
}
template <> __device__ __forceinline__ float ox_to_float(__half v)
{
    return __half2float(v);
}
template <> __device__ __forceinline__ float ox_to_float(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}
template <class T> OX_DEV T ox_from_float(float v);
template <> __device__ __forceinline__ float ox_from_float(float v)
{
    return v;
}
template <> __device__ __forceinline__ __half ox_from_float(float v)
{
    return __float2half_rn(v);
}
template <> __device__ __forceinline__ __nv_bfloat16 ox_from_float(float v)
{
    return __float2bfloat16_rn(v);
}

/* Element i of memory of a type that is known at run time: the branch is the same for all lanes. */
OX_DEV float ox_read(const void *p, int32_t dtype, size_t i)
{
    if (dtype == OX_DEV_F16) return __half2float(((const __half *)p)[i]);
    if (dtype == OX_DEV_F32) return ((const float *)p)[i];
    return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}
OX_DEV void ox_write(void *p, int32_t dtype, size_t i, float v)
{
    if (dtype == OX_DEV_F16)
        ((__half *)p)[i] = __float2half_rn(v);
    else if (dtype == OX_DEV_F32)
        ((float *)p)[i] = v;
    else
        ((__nv_bfloat16 *)p)[i] = __float2bfloat16_rn(v);
}
OX_DEV float ox_get(const ox_dev_matrix &m, int32_t r, int32_t i)
{
    return ox_read(m.p, m.dtype, (size_t)r * (size_t)m.ld + (size_t)i);
}
OX_DEV void ox_put(const ox_dev_matrix &m, int32_t r, int32_t i, float v)
{
    ox_write(m.p, m.dtype, (size_t)r * (size_t)m.ld + (size_t)i, v);
}

/* Eight neighbours x[k..k+8) of a row of n; zeros beyond n. vec: the row is aligned to 16 bytes. */
template <class T> OX_DEV void ox_load8(const T *row, int32_t k, int32_t n, bool vec, float *out)
{
    if (vec && k + 8 <= n) {
        alignas(16) T v[8];
#pragma unroll
        for (int i = 0; i < (int)sizeof(v) / 16; i++)
            ((uint4 *)v)[i] = *(const uint4 *)((const char *)(row + k) + 16 * i);
#pragma unroll
        for (int e = 0; e < 8; e++)
            out[e] = ox_to_float(v[e]);
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; e++)
        out[e] = k + e < n ? ox_to_float(row[k + e]) : 0.0f;
}

OX_DEV float ox_warp_sum(float v)
{
#pragma unroll
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(~0u, v, o);
    return v;
}
OX_DEV float ox_warp_max(float v)
{
#pragma unroll
    for (int o = 16; o; o >>= 1)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    return v;
}
/* Sum over a block of whole warps, the same in every thread; order fixed. part: 33 floats. */
OX_DEV float ox_block_sum(float v, float *part)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n = (blockDim.x + 31) >> 5;
    v = ox_warp_sum(v);
    __syncthreads();
    if (!lane) part[warp] = v;
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        sum += part[i];
    return sum;
}

/* kernel/act/act.h in float32; expf and tanhf are the accurate ones. */
OX_DEV float ox_act_float(int32_t act, float x)
{
    switch (act) {
    case 0: return x / (1.0f + expf(-x));
    case 1: return 0.5f * x * erfcf(-x * 0.70710678118654752440f);
    case 2: return x / (1.0f + expf(-2.0f * 0.79788456080286535588f * (x + 0.044715f * x * x * x)));
    case 3: return x / (1.0f + expf(-1.702f * x));
    case 4: return x < 0.0f ? 0.0f : x;
    case 5: return x < 0.0f ? 0.0f : x * x;
    }
    return x;
}

/* Programmatic launch: a kernel may start while the one before it still runs. It fetches what no
 * step writes (weights), then waits; nothing of the step is read or written before. Every kernel
 * that is launched with ox_launch must call ox_wait_for_step, in every thread. */
OX_DEV void ox_wait_for_step(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
OX_DEV void ox_let_next_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static inline bool ox_launches_ahead(void)
{
    int device = 0, major = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return false;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    return major >= 9;
}

template <class... P, class... A>
static void ox_launch(void (*kernel)(P...), dim3 grid, unsigned block, size_t shared,
                      cudaStream_t stream, A... args)
{
    static const bool ahead = ox_launches_ahead();
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t c = {};
    c.gridDim = grid;
    c.blockDim = dim3(block);
    c.dynamicSmemBytes = shared;
    c.stream = stream;
    c.attrs = &attribute;
    c.numAttrs = ahead ? 1 : 0;
    cudaLaunchKernelEx(&c, kernel, args...);
}

static inline cudaStream_t ox_stream_of(void *stream)
{
    return (cudaStream_t)stream;
}
static inline unsigned ox_grid(size_t n, unsigned block)
{
    const size_t g = (n + block - 1) / block;
    return (unsigned)(g < 1 ? 1 : g > 65535u * 16u ? 65535u * 16u : g);
}
static inline size_t ox_dev_element(int32_t dtype)
{
    return dtype == OX_DEV_F32 ? 4 : 2;
}
/* Rows of m may be read sixteen bytes at a time. */
static inline bool ox_is_vec(const void *p, int64_t ld, int32_t dtype)
{
    return (((uintptr_t)p | (uintptr_t)ld * ox_dev_element(dtype)) & 15) == 0;
}

/* Runs the statement with T = the type of dtype. */
#define OX_WITH_TYPE(dtype, T, ...)                                                                \
    do {                                                                                           \
        if ((dtype) == OX_DEV_F16) {                                                               \
            using T = __half;                                                                      \
            __VA_ARGS__;                                                                           \
        } else if ((dtype) == OX_DEV_F32) {                                                        \
            using T = float;                                                                       \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            using T = __nv_bfloat16;                                                               \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)
#endif
