/* rope_test.c - frequencies and magnitudes against transformers (tools/gen_rope_golden.py), tables
 * against libm. */
#include "convert/rope.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const int32_t PICKED[7] = {0, 7, 15, 16, 17, 20, 31};

typedef struct golden {
    ox_rope_rule rule;
    bool use_long;
    double magnitude, frequencies[7];
} golden;

static float short_factors[32], long_factors[32];

static const golden rows[] = {
    {{.kind = OX_ROPE_LINEAR, .rotary = 64, .theta = 1e4, .factor = 4},
     false,
     1,
     {0.25, 0.0333380364, 0.00333380373, 0.00249999994, 0.00187473558, 0.000790569466,
      3.33380376e-05}},
    {{.kind = OX_ROPE_LLAMA3,
      .rotary = 64,
      .theta = 5e5,
      .factor = 8,
      .low_freq = 1,
      .high_freq = 4,
      .original = 8192},
     false,
     1,
     {1, 0.0566696189, 0.00137189368, 0.000524846022, 0.000178507791, 3.42810235e-05,
      3.7673226e-07}},
    {{.kind = OX_ROPE_YARN,
      .rotary = 64,
      .theta = 1e6,
      .factor = 4,
      .beta_fast = 32,
      .beta_slow = 1,
      .original = 32768},
     false,
     1.13862944,
     {1, 0.0486967526, 0.00102661771, 0.000583333371, 0.000324690831, 4.44569851e-05,
      3.84981632e-07}},
    {{.kind = OX_ROPE_LONG,
      .rotary = 64,
      .theta = 1e4,
      .original = 4096,
      .factors = short_factors,
      .long_factors = long_factors},
     false,
     1.19023807,
     {1, 0.0484916903, 0.00280741369, 0.00200000009, 0.0014283699, 0.00052704633, 1.52402454e-05}},
    {{.kind = OX_ROPE_LONG,
      .rotary = 64,
      .theta = 1e4,
      .original = 4096,
      .factors = short_factors,
      .long_factors = long_factors},
     true,
     1.19023807,
     {1, 0.00889014266, 0.000430168235, 0.000303030305, 0.000214255473, 7.71287232e-05,
      2.11670067e-06}},
};

static void close_to(double got, double want, double relative)
{
    if (fabs(got - want) > relative * fabs(want)) fail_msg("%.9g, expected %.9g", got, want);
}

static void rules_give_the_frequencies_of_transformers(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++) {
        short_factors[i] = 1.0f + 0.25f * (float)i;
        long_factors[i] = 1.0f + 2.0f * (float)i;
    }
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        close_to(ox_rope_magnitude(&rows[i].rule, 131072), rows[i].magnitude, 1e-8);
        for (int k = 0; k < 7; k++)
            close_to(ox_rope_frequency(&rows[i].rule, PICKED[k], rows[i].use_long),
                     rows[i].frequencies[k], 1e-6);
    }
}

static void tables_equal_libm(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    const ox_rope_rule rule = {.kind = OX_ROPE_YARN,
                               .rotary = 16,
                               .theta = 1e4,
                               .factor = 4,
                               .beta_fast = 32,
                               .beta_slow = 1,
                               .original = 256};
    const ox_rotary *r;
    assert_int_equal(ox_rope_build(&r, &arena, &rule, 1000, NULL), OX_OK);
    assert_int_equal(r->n_positions, 1000);
    assert_null(r->long_cos);
    for (int p = 0; p < 1000; p++)
        for (int i = 0; i < 8; i++) {
            const double angle = ox_rope_frequency(&rule, i, false) * p;
            const double m = ox_rope_magnitude(&rule, 1000);
            assert_true(fabs((double)r->cos_table[p * 8 + i] - m * cos(angle)) < 7e-8);
            assert_true(fabs((double)r->sin_table[p * 8 + i] - m * sin(angle)) < 7e-8);
        }
    ox_arena_deinit(&arena);
}

static void senseless_sizes_are_refused(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    const ox_rotary *r;
    ox_rope_rule rule = {.rotary = 15, .theta = 1e4};
    assert_int_equal(ox_rope_build(&r, &arena, &rule, 8, NULL), OX_BAD_FILE);
    rule.rotary = 16;
    assert_int_equal(ox_rope_build(&r, &arena, &rule, 0, NULL), OX_BAD_FILE);
    assert_int_equal(ox_rope_build(&r, &arena, &rule, INT64_MAX, NULL), OX_BAD_FILE);
    ox_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_give_the_frequencies_of_transformers),
        cmocka_unit_test(tables_equal_libm),
        cmocka_unit_test(senseless_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
