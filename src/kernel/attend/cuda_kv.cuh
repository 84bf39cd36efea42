/* cuda_kv.cuh - how attention's keys and values lie in device memory: pages of 64 positions.
 *
 * A page holds the same 64 positions of every cache of the model, float16. One cache's part of it:
 *
 *   at k_offset:  K [n_kv_heads][64 positions][head_size]
 *   at v_offset:  V [n_kv_heads][64 positions][v_head_size]
 *
 * so that one head's keys of a page are one contiguous block (64 x 128 x 2 = 16 KiB: a bulk copy),
 * a key is a contiguous row (the B fragment of q.K is one 16-byte vector of eight channels a lane,
 * ldmatrix rows for prefill), and the eight lanes that share a row of V read 128 bytes of it side
 * by side. Head sizes are multiples of 8, offsets of 256 bytes. Pages come from anywhere: a
 * sequence is a table of device addresses in device memory, entry p = positions 64p .. 64p+63.
 * Memory of a position that has not been appended is never used, whatever its bits (NaN included):
 * readers select, they do not multiply by zero. */
#ifndef OX_KERNEL_ATTEND_CUDA_KV_CUH
#define OX_KERNEL_ATTEND_CUDA_KV_CUH
#include <cuda_fp16.h>
#include <stddef.h>
#include <stdint.h>

enum { OX_CUDA_PAGE = 64 };

/* Where one cache lies inside a page. */
typedef struct ox_cuda_kv {
    int64_t k_offset, v_offset; /* bytes */
    int32_t n_kv_heads, head_size, v_head_size;
} ox_cuda_kv;

/* Bytes of one cache's K or V in a page. */
static __host__ __device__ __forceinline__ size_t ox_cuda_kv_bytes(int32_t n_kv_heads, int32_t size)
{
    return ((size_t)n_kv_heads * (size_t)size * OX_CUDA_PAGE * 2 + 255) & ~(size_t)255;
}

/* Address of key row (head h, position pos); the row is head_size halves. */
static __host__ __device__ __forceinline__ __half *
ox_cuda_k_row(const ox_cuda_kv *c, char *const *table, int32_t h, int32_t pos)
{
    const int32_t row = h * OX_CUDA_PAGE + pos % OX_CUDA_PAGE;
    return (__half *)(table[pos / OX_CUDA_PAGE] + c->k_offset) + (size_t)row * (size_t)c->head_size;
}

static __host__ __device__ __forceinline__ __half *
ox_cuda_v_row(const ox_cuda_kv *c, char *const *table, int32_t h, int32_t pos)
{
    const int32_t row = h * OX_CUDA_PAGE + pos % OX_CUDA_PAGE;
    return (__half *)(table[pos / OX_CUDA_PAGE] + c->v_offset) +
           (size_t)row * (size_t)c->v_head_size;
}
#endif
