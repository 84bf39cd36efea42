/* lane_test.c - every code of the small float types, packing below
 * bytes, rounding and saturation. */
#include "ops/lane.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void small_float_codes_round_trip(void **state)
{
    static const struct {
        ox_dtype t;
        int codes;
    } types[] = {{OX_DTYPE_F8E4M3FN, 256},   {OX_DTYPE_F8E4M3FNUZ, 256}, {OX_DTYPE_F8E5M2, 256},
                 {OX_DTYPE_F8E5M2FNUZ, 256}, {OX_DTYPE_F4E2M1, 16},      {OX_DTYPE_F8E8M0, 256}};
    (void)state;
    for (size_t i = 0; i < OX_COUNT(types); i++) {
        for (int code = 0; code < types[i].codes; code++) {
            const double x = ox_small_float_decode(types[i].t, (uint8_t)code);
            if (isnan(x)) continue;
            const uint8_t back = ox_small_float_encode(types[i].t, x, false);
            if (back != code)
                fail_msg("%s: code %d is %g and comes back as %d", ox_dtype_name(types[i].t), code,
                         x, back);
        }
    }
}

static void small_floats_have_their_documented_values(void **state)
{
    (void)state;
    assert_true(ox_small_float_decode(OX_DTYPE_F8E4M3FN, 0x7e) == 448);
    assert_true(isnan(ox_small_float_decode(OX_DTYPE_F8E4M3FN, 0x7f)));
    assert_true(ox_small_float_decode(OX_DTYPE_F8E4M3FN, 1) == 0x1p-9);
    assert_true(ox_small_float_decode(OX_DTYPE_F8E4M3FNUZ, 1) == 0x1p-10);
    assert_true(isnan(ox_small_float_decode(OX_DTYPE_F8E4M3FNUZ, 0x80)));
    assert_true(ox_small_float_decode(OX_DTYPE_F8E5M2, 0x7b) == 57344);
    assert_true(isinf(ox_small_float_decode(OX_DTYPE_F8E5M2, 0xfc)));
    assert_true(ox_small_float_decode(OX_DTYPE_F4E2M1, 7) == 6);
    assert_true(ox_small_float_decode(OX_DTYPE_F8E8M0, 0) == 0x1p-127);
}

static void small_floats_saturate_or_overflow(void **state)
{
    (void)state;
    assert_int_equal(ox_small_float_encode(OX_DTYPE_F8E4M3FN, 1e6, true), 0x7e);
    assert_int_equal(ox_small_float_encode(OX_DTYPE_F8E4M3FN, -1e6, false), 0xff);
    assert_int_equal(ox_small_float_encode(OX_DTYPE_F8E5M2, 1e6, false), 0x7c);
    assert_int_equal(ox_small_float_encode(OX_DTYPE_F8E5M2, (double)INFINITY, true), 0x7b);
    assert_int_equal(ox_small_float_encode(OX_DTYPE_F8E4M3FNUZ, -0.0, true), 0);
    assert_int_equal(ox_e8m0_encode(3, true, 'u'), 129);
    assert_int_equal(ox_e8m0_encode(3, true, 'd'), 128);
}

static void narrow_elements_are_packed_low_bits_first(void **state)
{
    uint8_t bytes[2] = {0};
    ox_lane in[4] = {{.i = -8}, {.i = 7}, {.i = -1}, {.i = 3}}, out[4];
    const size_t index[2] = {3, 0};
    (void)state;
    ox_lane_store(OX_DTYPE_I4, bytes, 0, 4, in);
    assert_int_equal(bytes[0], 0x78);
    assert_int_equal(bytes[1], 0x3f);
    ox_lane_load(OX_DTYPE_I4, bytes, NULL, 0, 4, out);
    for (int i = 0; i < 4; i++)
        assert_int_equal(out[i].i, in[i].i);
    ox_lane_load(OX_DTYPE_I4, bytes, index, 0, 2, out);
    assert_int_equal(out[0].i, 3);
    assert_int_equal(out[1].i, -8);
}

static void doubles_become_integers_safely(void **state)
{
    (void)state;
    assert_int_equal(ox_lane_int(-1.9), -1);
    assert_int_equal(ox_lane_int((double)NAN), 0);
    assert_true(ox_lane_int(1e300) == INT64_MAX && ox_lane_int(-1e300) == INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_float_codes_round_trip),
        cmocka_unit_test(small_floats_have_their_documented_values),
        cmocka_unit_test(small_floats_saturate_or_overflow),
        cmocka_unit_test(narrow_elements_are_packed_low_bits_first),
        cmocka_unit_test(doubles_become_integers_safely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
