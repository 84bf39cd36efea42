/* cuda_unpack.cuh - eight neighbouring weights out of the packed layout (cuda_pack.cuh), float16.
 *
 * A code in the low bits of the float16 1024 is 1024 + code, and its difference to 1024 + zero is
 * exact; conversions proper run at an eighth of this rate. scale * (code - zero) and scale * code +
 * min are rounded to float16 once, from float32; where the scale is float16 and there is no
 * minimum, one float16 product gives the same bits. */
#ifndef OX_KERNEL_QLINEAR_CUDA_UNPACK_CUH
#define OX_KERNEL_QLINEAR_CUDA_UNPACK_CUH
#include "kernel/qlinear/cuda_pack.cuh"

static __device__ __forceinline__ __half2 as_half2(uint32_t u)
{
    return *(const __half2 *)&u;
}
static __device__ __forceinline__ uint32_t as_word(__half2 h)
{
    return *(const uint32_t *)&h;
}

/* Codes 2i and 2i + 1 of the eight, plus 1024: word has one word (4 bits) or two (8 bits). */
template <int BITS> static __device__ __forceinline__ __half2 code_pair(const uint32_t *word, int i)
{
    return as_half2(BITS == 4 ? (word[0] >> 4 * i & 0x000f000f) | 0x64006400
                              : (word[i % 2] >> 8 * (i / 2) & 0x00ff00ff) | 0x64006400);
}

/* scale * (code - middle), scale twice the block's. */
template <int BITS>
static __device__ __forceinline__ void unpack8_scaled(const uint32_t *word, __half2 scale,
                                                      uint32_t *h)
{
    const __half2 middle = __half2half2(__int2half_rn(1024 + (1 << (BITS - 1))));
#pragma unroll
    for (int i = 0; i < 4; i++)
        h[i] = as_word(__hmul2(__hsub2(code_pair<BITS>(word, i), middle), scale));
}

/* Any scale and zero: those numbered i. */
template <int BITS>
static __device__ __forceinline__ void unpack8(const ox_cuda_weight &w, const uint32_t *word,
                                               int64_t i, uint32_t *h)
{
    const float s = ox_cuda_read_scale(w.scales, i, w.scale_f32);
    const int z = w.zero == OX_CUDA_ZERO_MIN    ? 0
                  : w.zero == OX_CUDA_ZERO_CODE ? ((const uint8_t *)w.zeros)[i]
                                                : 1 << (BITS - 1);
    const float m = w.zero == OX_CUDA_ZERO_MIN ? ox_cuda_read_scale(w.zeros, i, w.scale_f32) : 0.0f;
    const __half2 middle = __half2half2(__int2half_rn(1024 + z));
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const float2 q = __half22float2(__hsub2(code_pair<BITS>(word, c), middle));
        h[c] = as_word(__floats2half2_rn(fmaf(s, q.x, m), fmaf(s, q.y, m)));
    }
}
#endif
