/* Quantiles against values by hand; intervals: what they hold, how often they err, that they
 * repeat. */
#include "base/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t state = 1;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* Skewed like timings: mostly near 1, sometimes interrupted. */
static double timing(double scale)
{
    const double base = scale * (1 + 0.02 * uniform());
    return uniform() < 0.15 ? base * (1.2 + uniform()) : base;
}

static void fill(double *v, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++)
        v[i] = timing(scale);
}

static void quantiles_interpolate_between_neighbours(void **s)
{
    (void)s;
    const double v[] = {4, 1, 3, 2};
    assert_true(ox_stats_median(v, 4) == 2.5);
    assert_true(ox_stats_quantile(v, 4, 0) == 1 && ox_stats_quantile(v, 4, 1) == 4);
    assert_true(ox_stats_quantile(v, 4, 0.25) == 1.75);
    assert_true(ox_stats_median(v, 0) == 0 && ox_stats_median(v, 1) == 4);
    const ox_summary m = ox_stats_summary(v, 4);
    assert_true(m.n == 4 && m.median == 2.5 && m.min == 1 && m.max == 4 && m.q1 == 1.75 &&
                m.q3 == 3.25);
}

static void few_samples_give_no_interval(void **s)
{
    (void)s;
    const double a[] = {1, 2, 3, 4}, b[] = {2, 4, 6, 8};
    const ox_interval r =
        ox_stats_ratio((ox_rounds){.v = a, .n = 4}, (ox_rounds){.v = b, .n = 4}, 0.95, 1);
    assert_true(r.middle == 0.5 && !ox_interval_known(r) && ox_interval_holds(r, 99));
    const ox_interval p = ox_stats_ratio_paired(a, b, 4, 0.95, 1);
    assert_true(p.middle == 0.5 && !ox_interval_known(p));
}

static void a_real_difference_is_shown(void **s)
{
    (void)s;
    double a[7], b[7];
    fill(a, 7, 1.3);
    fill(b, 7, 1.0);
    const ox_interval r =
        ox_stats_ratio((ox_rounds){.v = a, .n = 7}, (ox_rounds){.v = b, .n = 7}, 0.99, 1);
    assert_false(ox_interval_holds(r, 1));
    assert_true(r.lo <= r.middle && r.middle <= r.hi && ox_interval_holds(r, 1.3));
}

static void equal_arms_rarely_differ(void **s)
{
    (void)s;
    int flagged = 0, flagged_paired = 0;
    enum { TRIALS = 400 };
    for (uint64_t t = 0; t < TRIALS; t++) {
        double a[7], b[7];
        fill(a, 7, 1.0);
        fill(b, 7, 1.0);
        const ox_rounds x = {.v = a, .n = 7}, y = {.v = b, .n = 7};
        flagged += !ox_interval_holds(ox_stats_ratio(x, y, 0.99, t), 1);
        flagged_paired += !ox_interval_holds(ox_stats_ratio_paired(a, b, 7, 0.99, t), 1);
    }
    print_message("flagged %d, paired %d of %d\n", flagged, flagged_paired, TRIALS);
    assert_in_range(flagged, 0, TRIALS / 50);
    assert_in_range(flagged_paired, 0, TRIALS / 20);
}

static void rounds_widen_the_interval(void **s)
{
    (void)s;
    /* Five rounds that lie apart; within each the samples agree. */
    double a[50], b[50];
    size_t end[5];
    for (size_t k = 0; k < 5; k++) {
        for (size_t i = 0; i < 10; i++) {
            a[10 * k + i] = 1.0 + 0.1 * (double)k + 0.001 * uniform();
            b[10 * k + i] = 1.03 * a[10 * k + i];
        }
        end[k] = 10 * (k + 1);
    }
    const ox_rounds x = {a, 50, end, 5}, y = {b, 50, end, 5};
    assert_true(ox_interval_holds(ox_stats_ratio(x, y, 0.95, 1), 1));
    /* The same samples in pairs show the three percent. */
    const ox_interval p = ox_stats_ratio_paired(b, a, 50, 0.95, 1);
    assert_true(!ox_interval_holds(p, 1) && ox_interval_holds(p, 1.03) && p.hi - p.lo < 0.001);
}

static void intervals_repeat_and_depend_on_the_seed_only(void **s)
{
    (void)s;
    double a[9], b[9];
    fill(a, 9, 1.0);
    fill(b, 9, 1.1);
    const ox_rounds x = {.v = a, .n = 9}, y = {.v = b, .n = 9};
    const ox_interval p = ox_stats_ratio(x, y, 0.95, 7), q = ox_stats_ratio(x, y, 0.95, 7);
    assert_true(p.lo == q.lo && p.hi == q.hi);
}

static void odd_rounds_are_one_round(void **s)
{
    (void)s;
    double a[6];
    const size_t wrong[] = {0, 99};
    fill(a, 6, 1.0);
    const ox_rounds x = {a, 6, wrong, 2}, y = {.v = a, .n = 6};
    const ox_interval p = ox_stats_ratio(x, y, 0.95, 3);
    assert_true(ox_interval_known(p) && p.middle == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_interpolate_between_neighbours),
        cmocka_unit_test(few_samples_give_no_interval),
        cmocka_unit_test(a_real_difference_is_shown),
        cmocka_unit_test(equal_arms_rarely_differ),
        cmocka_unit_test(rounds_widen_the_interval),
        cmocka_unit_test(intervals_repeat_and_depend_on_the_seed_only),
        cmocka_unit_test(odd_rounds_are_one_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
