/* half.h - float16 and bfloat16 to and from float32, scalar, round to nearest even. */
#ifndef OX_TENSOR_HALF_H
#define OX_TENSOR_HALF_H
#include <stdint.h>
#include <string.h>

static inline uint32_t ox_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float ox_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline float ox_bf16_to_f32(uint16_t h)
{
    return ox_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t ox_f32_to_bf16(float f)
{
    const uint32_t u = ox_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u); /* NaN stays NaN */
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float ox_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = h >> 10 & 31u, man = h & 0x3ffu;
    if (exp == 31) return ox_f32_from_bits(sign | 0x7f800000u | man << 13);
    if (exp) return ox_f32_from_bits(sign | (exp + 112) << 23 | man << 13);
    const float tiny = (float)man * 0x1p-24f; /* subnormal: exact in float32 */
    return sign ? -tiny : tiny;
}

static inline uint16_t ox_f32_to_f16(float f)
{
    const uint32_t u = ox_f32_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* rounds to 65536 or more */
    if (a < 0x38800000u) {                                   /* below 2^-14: subnormal */
        if (a < 0x33000000u) return (uint16_t)sign;          /* below 2^-25 */
        const uint32_t shift = 126 - (a >> 23), man = (a & 0x7fffffu) | 0x800000u;
        const uint32_t half = 1u << (shift - 1), rest = man & ((1u << shift) - 1);
        uint32_t q = man >> shift;
        q += rest > half || (rest == half && (q & 1u));
        return (uint16_t)(sign | q);
    }
    return (uint16_t)(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13);
}
#endif
