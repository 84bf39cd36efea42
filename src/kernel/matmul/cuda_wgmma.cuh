/* cuda_wgmma.cuh - the sm_90 tensor-core instruction and its bookkeeping: D[64, N] += A[64, 16] *
 * B[N, 16]^T, A and B float16 in shared memory (128-byte swizzle), D float32 in registers.
 *
 * Thread t of the warpgroup holds D at row (t / 32) * 16 + (t % 32) / 4 + 8 * i and column
 * 8 * j + 2 * (t % 4) + c as d[j][2 * i + c]. Source: PTX ISA, "wgmma.mma_async". The operand lists
 * are as long as the instruction wants them. */
#ifndef OX_KERNEL_MATMUL_CUDA_WGMMA_CUH
#define OX_KERNEL_MATMUL_CUDA_WGMMA_CUH
#include <stdint.h>

/* Bodies that use sm_90a's own instructions are compiled for it alone; the rows accept no other
 * device (kernel/cuda.def). */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define OX_HAS_WGMMA 1
#else
#define OX_HAS_WGMMA 0
#endif

static __device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int PENDING> static __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving uses of d across a wait. */
template <int N> static __device__ __forceinline__ void wgmma_hold(float (*d)[4])
{
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("" : "+f"(d[j][i])::"memory");
}

/* Rows of 64 float16 (128 bytes), groups of 8 rows 1,024 bytes apart; p is a shared address. */
static __device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t p)
{
    return (uint64_t)((p & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}
/* The same rows as N-contiguous B: 64 columns wide, the next 64 columns `next` bytes on. */
static __device__ __forceinline__ uint64_t wgmma_descriptor_rows(uint32_t p, uint32_t next)
{
    return (uint64_t)((p & 0x3ffff) >> 4) | (uint64_t)(next >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#define OX_ACC4(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])

template <int N> struct wgmma;

template <> struct wgmma<64> {
    static __device__ __forceinline__ void run(float (*d)[4], uint64_t a, uint64_t b, int keep)
    {
        asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                     "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                     "%24, %25, %26, %27, %28, %29, %30, %31}, "
                     "%32, %33, p, 1, 1, 0, 0;}"
                     : OX_ACC4(0), OX_ACC4(1), OX_ACC4(2), OX_ACC4(3), OX_ACC4(4), OX_ACC4(5),
                       OX_ACC4(6), OX_ACC4(7)
                     : "l"(a), "l"(b), "r"(keep));
    }
};

template <> struct wgmma<128> {
    static __device__ __forceinline__ void run(float (*d)[4], uint64_t a, uint64_t b, int keep)
    {
        asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;"
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                     "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                     "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
                     "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
                     "%60, %61, %62, %63}, "
                     "%64, %65, p, 1, 1, 0, 0;}"
                     : OX_ACC4(0), OX_ACC4(1), OX_ACC4(2), OX_ACC4(3), OX_ACC4(4), OX_ACC4(5),
                       OX_ACC4(6), OX_ACC4(7), OX_ACC4(8), OX_ACC4(9), OX_ACC4(10), OX_ACC4(11),
                       OX_ACC4(12), OX_ACC4(13), OX_ACC4(14), OX_ACC4(15)
                     : "l"(a), "l"(b), "r"(keep));
    }
};

template <> struct wgmma<192> {
    static __device__ __forceinline__ void run(float (*d)[4], uint64_t a, uint64_t b, int keep)
    {
        asm volatile("{.reg .pred p; setp.ne.b32 p, %98, 0;"
                     "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                     "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                     "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
                     "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
                     "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "
                     "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "
                     "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "
                     "%96, %97, p, 1, 1, 0, 0;}"
                     : OX_ACC4(0), OX_ACC4(1), OX_ACC4(2), OX_ACC4(3), OX_ACC4(4), OX_ACC4(5),
                       OX_ACC4(6), OX_ACC4(7), OX_ACC4(8), OX_ACC4(9), OX_ACC4(10), OX_ACC4(11),
                       OX_ACC4(12), OX_ACC4(13), OX_ACC4(14), OX_ACC4(15), OX_ACC4(16), OX_ACC4(17),
                       OX_ACC4(18), OX_ACC4(19), OX_ACC4(20), OX_ACC4(21), OX_ACC4(22), OX_ACC4(23)
                     : "l"(a), "l"(b), "r"(keep));
    }
};

template <> struct wgmma<256> {
    static __device__ __forceinline__ void run(float (*d)[4], uint64_t a, uint64_t b, int keep)
    {
        asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0;"
                     "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                     "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                     "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
                     "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
                     "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "
                     "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "
                     "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                     "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
                     "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, "
                     "%120, %121, %122, %123, %124, %125, %126, %127}, "
                     "%128, %129, p, 1, 1, 0, 0;}"
                     : OX_ACC4(0), OX_ACC4(1), OX_ACC4(2), OX_ACC4(3), OX_ACC4(4), OX_ACC4(5),
                       OX_ACC4(6), OX_ACC4(7), OX_ACC4(8), OX_ACC4(9), OX_ACC4(10), OX_ACC4(11),
                       OX_ACC4(12), OX_ACC4(13), OX_ACC4(14), OX_ACC4(15), OX_ACC4(16), OX_ACC4(17),
                       OX_ACC4(18), OX_ACC4(19), OX_ACC4(20), OX_ACC4(21), OX_ACC4(22), OX_ACC4(23),
                       OX_ACC4(24), OX_ACC4(25), OX_ACC4(26), OX_ACC4(27), OX_ACC4(28), OX_ACC4(29),
                       OX_ACC4(30), OX_ACC4(31)
                     : "l"(a), "l"(b), "r"(keep));
    }
};

/* A from registers: a[0..3] = halves (row, k), (row + 8, k), (row, k + 8), (row + 8, k + 8) of the
 * thread's rows, k = 2 * (t % 4) + {0, 1}. B as it lies with N contiguous: rows of k. */
template <int N> struct wgmma_registers;

template <> struct wgmma_registers<64> {
    static __device__ __forceinline__ void run(float (*d)[4], const uint32_t *a, uint64_t b)
    {
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                     "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                     "%24, %25, %26, %27, %28, %29, %30, %31}, "
                     "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                     : OX_ACC4(0), OX_ACC4(1), OX_ACC4(2), OX_ACC4(3), OX_ACC4(4), OX_ACC4(5),
                       OX_ACC4(6), OX_ACC4(7)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }
};

template <> struct wgmma_registers<128> {
    static __device__ __forceinline__ void run(float (*d)[4], const uint32_t *a, uint64_t b)
    {
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                     "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                     "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
                     "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
                     "%60, %61, %62, %63}, "
                     "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                     : OX_ACC4(0), OX_ACC4(1), OX_ACC4(2), OX_ACC4(3), OX_ACC4(4), OX_ACC4(5),
                       OX_ACC4(6), OX_ACC4(7), OX_ACC4(8), OX_ACC4(9), OX_ACC4(10), OX_ACC4(11),
                       OX_ACC4(12), OX_ACC4(13), OX_ACC4(14), OX_ACC4(15)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }
};

template <> struct wgmma_registers<256> {
    static __device__ __forceinline__ void run(float (*d)[4], const uint32_t *a, uint64_t b)
    {
        asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                     "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
                     "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
                     "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
                     "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "
                     "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "
                     "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                     "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
                     "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, "
                     "%120, %121, %122, %123, %124, %125, %126, %127}, "
                     "{%128, %129, %130, %131}, %132, 1, 1, 1, 1;"
                     : OX_ACC4(0), OX_ACC4(1), OX_ACC4(2), OX_ACC4(3), OX_ACC4(4), OX_ACC4(5),
                       OX_ACC4(6), OX_ACC4(7), OX_ACC4(8), OX_ACC4(9), OX_ACC4(10), OX_ACC4(11),
                       OX_ACC4(12), OX_ACC4(13), OX_ACC4(14), OX_ACC4(15), OX_ACC4(16), OX_ACC4(17),
                       OX_ACC4(18), OX_ACC4(19), OX_ACC4(20), OX_ACC4(21), OX_ACC4(22), OX_ACC4(23),
                       OX_ACC4(24), OX_ACC4(25), OX_ACC4(26), OX_ACC4(27), OX_ACC4(28), OX_ACC4(29),
                       OX_ACC4(30), OX_ACC4(31)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }
};

#undef OX_ACC4
#endif
