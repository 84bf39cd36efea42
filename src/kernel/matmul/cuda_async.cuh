/* cuda_async.cuh - barriers in shared memory, bulk copies and clusters of sm_90, a function each.
 *
 * Addresses are those of shared memory (32 bits). Source: PTX ISA, "mbarrier", "cp.async.bulk". */
#ifndef OX_KERNEL_MATMUL_CUDA_ASYNC_CUH
#define OX_KERNEL_MATMUL_CUDA_ASYNC_CUH
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
static __device__ __forceinline__ void barrier_init(uint32_t b, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(count) : "memory");
}
static __device__ __forceinline__ void barrier_expect(uint32_t b, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes)
                 : "memory");
}
static __device__ __forceinline__ void barrier_arrive(uint32_t b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}
static __device__ __forceinline__ void barrier_wait(uint32_t b, int phase)
{
    asm volatile("{.reg .pred p;"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
                 "@!p bra again;}" ::"r"(b),
                 "r"(phase)
                 : "memory");
}
static __device__ __forceinline__ void copy_tile(uint32_t to, const CUtensorMap *map, int x, int y,
                                                 uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}
/* Ordinary stores before it are seen by tensor cores and bulk copies after it. */
static __device__ __forceinline__ void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
static __device__ __forceinline__ void cluster_meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* --- host: matrices as the copy engine sees them ---------------------------------------------- */

typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                           const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                           const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static encode_fn *find_encode(void)
{
    void *p = NULL;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, 12000, cudaEnableDefault,
                                         &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess)
        return NULL;
    return (encode_fn *)p;
}

/* A matrix [rows, k] of float16, read in boxes of box_rows x 64; what lies outside reads as 0. */
static bool map_matrix(CUtensorMap *m, const void *p, int rows, int k, int64_t ld, int box_rows)
{
    static encode_fn *const encode = find_encode(); /* the driver's own, never changes */
    const cuuint64_t size[2] = {(cuuint64_t)k, (cuuint64_t)rows}, stride[1] = {(cuuint64_t)ld * 2};
    const cuuint32_t box[2] = {64, (cuuint32_t)box_rows}, step[2] = {1, 1};
    return encode && encode(m, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)p, size, stride, box,
                            step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
#endif
