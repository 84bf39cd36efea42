/* lane.c - see lane.h. */
#include "ops/lane.h"

#include "tensor/half.h"

#include <math.h>

ox_lane_class ox_lane_class_of(ox_dtype t)
{
    switch (t) {
    case OX_DTYPE_F32:
    case OX_DTYPE_F16:
    case OX_DTYPE_BF16:
    case OX_DTYPE_F64:
    case OX_DTYPE_F8E4M3FN:
    case OX_DTYPE_F8E4M3FNUZ:
    case OX_DTYPE_F8E5M2:
    case OX_DTYPE_F8E5M2FNUZ:
    case OX_DTYPE_F4E2M1:
    case OX_DTYPE_F8E8M0:
        return OX_LANE_F;
    case OX_DTYPE_U64:
        return OX_LANE_U;
    case OX_DTYPE_NONE:
    case OX_DTYPE_STRING:
    case OX_DTYPE_C64:
    case OX_DTYPE_C128:
        return OX_LANE_NONE;
    default:
        return OX_LANE_I;
    }
}

/* ---- small floats ---- */

typedef struct small {
    int mantissa, bias;
    double max;         /* largest finite */
    uint8_t inf, nan;   /* positive codes; inf 0 = none; nan 0 = none */
    bool unsigned_zero; /* no minus zero: its code is NaN */
} small;

static const small *small_of(ox_dtype t)
{
    static const small e4m3fn = {3, 7, 448, 0, 0x7f, false};
    static const small e4m3fnuz = {3, 8, 240, 0, 0x80, true};
    static const small e5m2 = {2, 15, 57344, 0x7c, 0x7f, false};
    static const small e5m2fnuz = {2, 16, 57344, 0, 0x80, true};
    static const small e2m1 = {1, 1, 6, 0, 0, false};
    switch (t) {
    case OX_DTYPE_F8E4M3FN:
        return &e4m3fn;
    case OX_DTYPE_F8E4M3FNUZ:
        return &e4m3fnuz;
    case OX_DTYPE_F8E5M2:
        return &e5m2;
    case OX_DTYPE_F8E5M2FNUZ:
        return &e5m2fnuz;
    default:
        return &e2m1;
    }
}

double ox_small_float_decode(ox_dtype t, uint8_t code)
{
    if (t == OX_DTYPE_F8E8M0) return code == 0xff ? (double)NAN : ldexp(1, (int)code - 127);
    const small *s = small_of(t);
    const int sign_bit = t == OX_DTYPE_F4E2M1 ? 3 : 7;
    const uint8_t low = (uint8_t)(code & ((1 << sign_bit) - 1));
    const bool minus = code >> sign_bit & 1;
    if (s->unsigned_zero && code == 0x80) return (double)NAN;
    if (s->inf && low == s->inf) return minus ? -(double)INFINITY : (double)INFINITY;
    if (!s->unsigned_zero && s->nan && (s->inf ? low > s->inf : low == s->nan)) return (double)NAN;
    const int e = low >> s->mantissa, m = low & ((1 << s->mantissa) - 1);
    const double x =
        e ? ldexp(1 + ldexp(m, -s->mantissa), e - s->bias) : ldexp(m, 1 - s->bias - s->mantissa);
    return minus ? -x : x;
}

uint8_t ox_small_float_encode(ox_dtype t, double x, bool saturate)
{
    if (t == OX_DTYPE_F8E8M0) return ox_e8m0_encode(x, saturate, 'u');
    const small *s = small_of(t);
    const int sign_bit = t == OX_DTYPE_F4E2M1 ? 3 : 7;
    const uint8_t sign = (uint8_t)((signbit(x) ? 1 : 0) << sign_bit);
    double a = fabs(x);
    int e = 0;
    if (isnan(x)) {
        if (t == OX_DTYPE_F4E2M1) return 8; /* has no NaN: minus zero, as the reference does */
        return s->unsigned_zero ? s->nan : (uint8_t)(s->nan | sign);
    }
    if (a > 0 && isfinite(a)) {
        (void)frexp(a, &e);
        e -= 1; /* a = 1.xxx * 2^e */
        if (e < 1 - s->bias) e = 1 - s->bias;
        a = ldexp(nearbyint(ldexp(a, s->mantissa - e)), e - s->mantissa);
    }
    if (a > s->max) {
        if (!saturate && t != OX_DTYPE_F4E2M1) {
            if (s->inf) return (uint8_t)(s->inf | sign);
            return s->unsigned_zero ? s->nan : (uint8_t)(s->nan | sign);
        }
        a = s->max;
    }
    if (a <= 0) return s->unsigned_zero ? 0 : sign;
    (void)frexp(a, &e);
    e -= 1;
    uint8_t code;
    if (e < 1 - s->bias) {
        code = (uint8_t)ldexp(a, s->mantissa + s->bias - 1);
    } else {
        const int m = (int)ldexp(a, s->mantissa - e) - (1 << s->mantissa);
        code = (uint8_t)((e + s->bias) << s->mantissa | m);
    }
    return (uint8_t)(code | sign);
}

uint8_t ox_e8m0_encode(double x, bool saturate, char mode)
{
    int e = 0;
    if (isnan(x)) return 0xff;
    const double a = fabs(x);
    if (isinf(a)) return saturate ? 0xfe : 0xff;
    if (a <= 0) return 0;
    const double m = frexp(a, &e) * 2; /* [1, 2) */
    e -= 1;
    if (mode == 'u' && m > 1) e++;
    if (mode == 'n' && (m > 1.5 || (m >= 1.5 && e > -127))) e++;
    if (e > 127) return saturate ? 0xfe : 0xff;
    return e < -127 ? 0 : (uint8_t)(e + 127);
}

/* ---- loading ---- */

#define AT(k) (index ? index[k] : first + (k))
#define LOAD(T, expr)                                                                              \
    {                                                                                              \
        const char *p = data; /* views of files need not be aligned */                             \
        for (size_t k = 0; k < n; k++) {                                                           \
            T x;                                                                                   \
            memcpy(&x, p + AT(k) * sizeof(T), sizeof(T));                                          \
            expr;                                                                                  \
        }                                                                                          \
        return;                                                                                    \
    }
#define BITS(width, mask, expr)                                                                    \
    {                                                                                              \
        const uint8_t *p = data;                                                                   \
        for (size_t k = 0; k < n; k++) {                                                           \
            const size_t at = AT(k), bit = at * (width);                                           \
            const uint8_t x = (uint8_t)(p[bit / 8] >> bit % 8 & (mask));                           \
            expr;                                                                                  \
        }                                                                                          \
        return;                                                                                    \
    }

void ox_lane_load(ox_dtype t, const void *data, const size_t *index, size_t first, size_t n,
                  ox_lane *out)
{
    switch (t) {
    case OX_DTYPE_F32:
        LOAD(float, out[k].f = (double)x)
    case OX_DTYPE_F64:
        LOAD(double, out[k].f = x)
    case OX_DTYPE_F16:
        LOAD(uint16_t, out[k].f = (double)ox_f16_to_f32(x))
    case OX_DTYPE_BF16:
        LOAD(uint16_t, out[k].f = (double)ox_bf16_to_f32(x))
    case OX_DTYPE_F8E4M3FN:
    case OX_DTYPE_F8E4M3FNUZ:
    case OX_DTYPE_F8E5M2:
    case OX_DTYPE_F8E5M2FNUZ:
    case OX_DTYPE_F8E8M0:
        LOAD(uint8_t, out[k].f = ox_small_float_decode(t, x))
    case OX_DTYPE_F4E2M1:
        BITS(4, 15u, out[k].f = ox_small_float_decode(t, x))
    case OX_DTYPE_I8:
        LOAD(int8_t, out[k].i = x)
    case OX_DTYPE_U8:
        LOAD(uint8_t, out[k].i = x)
    case OX_DTYPE_BOOL:
        LOAD(uint8_t, out[k].i = x != 0)
    case OX_DTYPE_I16:
        LOAD(int16_t, out[k].i = x)
    case OX_DTYPE_U16:
        LOAD(uint16_t, out[k].i = x)
    case OX_DTYPE_I32:
        LOAD(int32_t, out[k].i = x)
    case OX_DTYPE_U32:
        LOAD(uint32_t, out[k].i = x)
    case OX_DTYPE_I64:
        LOAD(int64_t, out[k].i = x)
    case OX_DTYPE_U64:
        LOAD(uint64_t, out[k].u = x)
    case OX_DTYPE_U4:
        BITS(4, 15u, out[k].i = x)
    case OX_DTYPE_I4:
        BITS(4, 15u, out[k].i = x < 8 ? x : x - 16)
    case OX_DTYPE_U2:
        BITS(2, 3u, out[k].i = x)
    case OX_DTYPE_I2:
        BITS(2, 3u, out[k].i = x < 2 ? x : x - 4)
    default:
        memset(out, 0, n * sizeof(*out));
    }
}

/* ---- storing ---- */

#define STORE(T, value)                                                                            \
    {                                                                                              \
        T *p = data;                                                                               \
        for (size_t k = 0; k < n; k++)                                                             \
            p[first + k] = (T)(value);                                                             \
        return;                                                                                    \
    }

static void store_bits(void *data, size_t at, unsigned width, unsigned code)
{
    uint8_t *p = data;
    const size_t bit = at * width;
    const unsigned mask = ((1u << width) - 1) << bit % 8;
    p[bit / 8] = (uint8_t)((p[bit / 8] & ~mask) | (code << bit % 8 & mask));
}

void ox_lane_store(ox_dtype t, void *data, size_t first, size_t n, const ox_lane *in)
{
    switch (t) {
    case OX_DTYPE_F32:
        STORE(float, in[k].f)
    case OX_DTYPE_F64:
        STORE(double, in[k].f)
    case OX_DTYPE_F16:
        STORE(uint16_t, ox_f32_to_f16((float)in[k].f))
    case OX_DTYPE_BF16:
        STORE(uint16_t, ox_f32_to_bf16((float)in[k].f))
    case OX_DTYPE_F8E4M3FN:
    case OX_DTYPE_F8E4M3FNUZ:
    case OX_DTYPE_F8E5M2:
    case OX_DTYPE_F8E5M2FNUZ:
    case OX_DTYPE_F8E8M0:
        STORE(uint8_t, ox_small_float_encode(t, in[k].f, true))
    case OX_DTYPE_F4E2M1:
        for (size_t k = 0; k < n; k++)
            store_bits(data, first + k, 4, ox_small_float_encode(t, in[k].f, true));
        return;
    case OX_DTYPE_I8:
    case OX_DTYPE_U8:
        STORE(uint8_t, in[k].u)
    case OX_DTYPE_BOOL:
        STORE(uint8_t, in[k].i != 0)
    case OX_DTYPE_I16:
    case OX_DTYPE_U16:
        STORE(uint16_t, in[k].u)
    case OX_DTYPE_I32:
    case OX_DTYPE_U32:
        STORE(uint32_t, in[k].u)
    case OX_DTYPE_I64:
    case OX_DTYPE_U64:
        STORE(uint64_t, in[k].u)
    case OX_DTYPE_U4:
    case OX_DTYPE_I4:
        for (size_t k = 0; k < n; k++)
            store_bits(data, first + k, 4, (unsigned)(in[k].u & 15u));
        return;
    case OX_DTYPE_U2:
    case OX_DTYPE_I2:
        for (size_t k = 0; k < n; k++)
            store_bits(data, first + k, 2, (unsigned)(in[k].u & 3u));
        return;
    default:
        return;
    }
}
