/* lane.h - elements of any type as 8-byte lanes: float types as double, integers and bool as int64
 * (uint64 keeps its bits), one value of a type's class. All conversions between element types that
 * operators need are made of these two steps. */
#ifndef OX_OPS_LANE_H
#define OX_OPS_LANE_H
#include "tensor/tensor.h"

typedef union ox_lane {
    double f;
    int64_t i;
    uint64_t u;
} ox_lane;

typedef enum ox_lane_class {
    OX_LANE_NONE, /* strings, complex */
    OX_LANE_F,    /* float types, also below 16 bits */
    OX_LANE_I,    /* signed, bool, and unsigned up to 32 bits */
    OX_LANE_U,    /* uint64 */
} ox_lane_class;

ox_lane_class ox_lane_class_of(ox_dtype t);

/* Elements index[0..n) of data (of type t) into lanes; index NULL = first + 0 .. n-1. */
void ox_lane_load(ox_dtype t, const void *data, const size_t *index, size_t first, size_t n,
                  ox_lane *out);
/* Lanes into elements first .. first+n. Integers wrap; doubles round to nearest even; float types
 * below 16 bits saturate. */
void ox_lane_store(ox_dtype t, void *data, size_t first, size_t n, const ox_lane *in);

/* x as an integer: towards zero, NaN 0, saturating. */
static inline int64_t ox_lane_int(double x)
{
    if (!(x > -9223372036854775808.0)) return x < 0 ? INT64_MIN : 0;
    return x < 9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

/* Small float codes (spec of the formats: float8 kinds, e8m0, e2m1). */
double ox_small_float_decode(ox_dtype t, uint8_t code);
uint8_t ox_small_float_encode(ox_dtype t, double x, bool saturate);
/* e8m0 with a rounding mode: 'u'p, 'd'own, 'n'earest. */
uint8_t ox_e8m0_encode(double x, bool saturate, char mode);
#endif
