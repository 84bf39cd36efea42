/* Samplers: Philox against its published vectors, truncation rules at their edges, penalties, draws
 * that depend on nothing but seed, position and id. */
#include "base/mem.h"
#include "kernel/draw/philox.h"
#include "oxgen/sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Known answers of Random123 1.09 (kat_vectors, philox4x32 10 rounds). */
static void philox_matches_published_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t got[4];
        ox_philox4x32(rows[i].counter, rows[i].key, got);
        assert_memory_equal(got, rows[i].want, sizeof(got));
    }
}

static int32_t pick(const ox_sampler_options *o, const float *logits, size_t n, uint64_t position)
{
    ox_sampler *s;
    int32_t id = -1;
    assert_int_equal(ox_sampler_open(&s, o, NULL), OX_OK);
    assert_int_equal(ox_sampler_pick(s, logits, n, position, &id, NULL), OX_OK);
    ox_sampler_close(&s);
    return id;
}

static void greedy_takes_the_highest_and_the_lowest_id_of_ties(void **state)
{
    (void)state;
    ox_sampler_options o;
    ox_sampler_options_init(&o);
    assert_int_equal(pick(&o, (float[]){1, 3, 3, 2}, 4, 0), 1);
    assert_int_equal(pick(&o, (float[]){-INFINITY, -INFINITY, 0}, 3, 0), 2);
}

static void a_nan_among_the_logits_is_a_failure(void **state)
{
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        ox_sampler_options o;
        ox_sampler *s;
        ox_err err = OX_ERR_INIT;
        int32_t id = -1;
        ox_sampler_options_init(&o);
        o.temperature = (float)sampled;
        assert_int_equal(ox_sampler_open(&s, &o, NULL), OX_OK);
        assert_int_equal(ox_sampler_pick(s, (float[]){1, 3, NAN, 4}, 4, 7, &id, &err), OX_FAILED);
        assert_non_null(strstr(err.msg, "NaN at position 7"));
        ox_sampler_close(&s);
    }
}

/* Which ids ever come out in many draws. */
static unsigned reachable(const ox_sampler_options *o, const float *logits, size_t n)
{
    unsigned seen = 0;
    for (uint64_t position = 0; position < 4000; position++)
        seen |= 1u << pick(o, logits, n, position);
    return seen;
}

static void truncations_keep_exactly_their_set(void **state)
{
    (void)state;
    const float tied[] = {1, 2, 2, 2, 0};
    const float p[] = {logf(0.5f), logf(0.3f), logf(0.15f), logf(0.05f)};
    ox_sampler_options o;
    ox_sampler_options_init(&o);
    o.temperature = 1;
    o.top_k = 2; /* three share the best logit: the two lower ids stay */
    assert_int_equal(reachable(&o, tied, 5), 1u << 1 | 1u << 2);
    float many[1000];
    for (int i = 0; i < 1000; i++)
        many[i] = (float)((i * 7919) % 1000) * 0.01f; /* 0 to 9.99, each once */
    o.top_k = 1;
    assert_int_equal(pick(&o, many, 1000, 0), 321); /* 321 * 7919 = 999 (mod 1000) */
    o.top_k = 0;
    o.top_p = 0.6f; /* the smallest prefix that reaches it: 0.5 + 0.3 */
    assert_int_equal(reachable(&o, p, 4), 3);
    o.top_p = 0.5f; /* reached exactly by the first (up to rounding): one or two, never three */
    assert_int_equal(reachable(&o, p, 4) & ~3u, 0);
    o.top_p = 1;
    o.min_p = 0.29f; /* of 0.5: 0.145 */
    assert_int_equal(reachable(&o, p, 4), 7);
    o.min_p = 0;
    assert_int_equal(reachable(&o, p, 4), 15);
}

static void draws_follow_the_probabilities(void **state)
{
    (void)state;
    const float p[] = {logf(0.5f), logf(0.3f), logf(0.15f), logf(0.05f)};
    const double want[] = {0.5, 0.3, 0.15, 0.05};
    enum { N = 20000 };
    int count[4] = {0};
    ox_sampler_options o;
    ox_sampler_options_init(&o);
    o.temperature = 1;
    o.seed = 7;
    for (uint64_t i = 0; i < N; i++)
        count[pick(&o, p, 4, i)]++;
    for (int i = 0; i < 4; i++) /* five standard deviations of a binomial draw */
        assert_true(fabs(count[i] - N * want[i]) < 5 * sqrt(N * want[i] * (1 - want[i])));
}

static void same_seed_same_token(void **state)
{
    (void)state;
    float logits[64];
    int differ = 0;
    ox_sampler_options a, b;
    ox_sampler_options_init(&a);
    a.temperature = 0.8f;
    a.seed = 1;
    b = a;
    b.seed = 2;
    for (int i = 0; i < 64; i++)
        logits[i] = (float)((i * 37) % 11);
    for (uint64_t p = 0; p < 50; p++) {
        assert_int_equal(pick(&a, logits, 64, p), pick(&a, logits, 64, p));
        differ += pick(&a, logits, 64, p) != pick(&b, logits, 64, p);
    }
    assert_true(differ > 5);
}

static void penalties_count_as_documented(void **state)
{
    (void)state;
    ox_sampler *s;
    int32_t id;
    ox_sampler_options o;
    ox_sampler_options_init(&o);
    o.repetition_penalty = 2; /* positive logits halve, negative double */
    assert_int_equal(ox_sampler_open(&s, &o, NULL), OX_OK);
    assert_int_equal(ox_sampler_accept(s, 0, 0, NULL), OX_OK);
    assert_int_equal(ox_sampler_pick(s, (float[]){3, 2, -9}, 3, 0, &id, NULL), OX_OK);
    assert_int_equal(id, 1);
    ox_sampler_rewind(s, 0);
    assert_int_equal(ox_sampler_pick(s, (float[]){3, 2, -9}, 3, 0, &id, NULL), OX_OK);
    assert_int_equal(id, 0);
    ox_sampler_close(&s);

    ox_sampler_options_init(&o);
    o.frequency_penalty = 1; /* per occurrence among new tokens; the prompt's do not count */
    assert_int_equal(ox_sampler_open(&s, &o, NULL), OX_OK);
    ox_sampler_accept(s, 0, 0, NULL);
    ox_sampler_accept(s, 1, 1, NULL);
    ox_sampler_accept(s, 1, 1, NULL);
    assert_int_equal(ox_sampler_pick(s, (float[]){1, 2.5f, 0.9f}, 3, 0, &id, NULL), OX_OK);
    assert_int_equal(id, 0);
    ox_sampler_close(&s);
}

static void bias_and_suppression(void **state)
{
    (void)state;
    const ox_logit_bias bias = {2, 5};
    const int32_t never = 0;
    ox_sampler_options o;
    ox_sampler_options_init(&o);
    o.bias = &bias;
    o.n_bias = 1;
    assert_int_equal(pick(&o, (float[]){3, 2, 0}, 3, 0), 2);
    o.n_bias = 0;
    o.suppress = &never;
    o.n_suppress = 1;
    assert_int_equal(pick(&o, (float[]){3, 2, 0}, 3, 0), 1);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    ox_sampler_options o;
    ox_sampler *s;
    ox_err err = OX_ERR_INIT;
    ox_sampler_options_init(&o);
    o.temperature = NAN;
    assert_int_equal(ox_sampler_open(&s, &o, &err), OX_BAD_ARGUMENT);
    ox_sampler_options_init(&o);
    o.order = "top_k,nonsense";
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_sampler_open(&s, &o, &err), OX_BAD_ARGUMENT);
    assert_non_null(strstr(err.msg, "nonsense"));
}

static void options_are_set_by_name_within_their_range(void **state)
{
    (void)state;
    ox_sampler_options o;
    ox_err err = OX_ERR_INIT;
    ox_sampler_options_init(&o);
    assert_int_equal(ox_sampler_options_set(&o, "typical-p", 0.5, NULL), OX_OK);
    assert_true(o.typical_p == 0.5f);
    assert_int_equal(ox_sampler_options_set(&o, "top_k", 7, NULL), OX_OK);
    assert_int_equal(o.top_k, 7);
    assert_int_equal(ox_sampler_options_set(&o, "top_k", 1.5, NULL), OX_BAD_ARGUMENT);
    assert_int_equal(ox_sampler_options_set(&o, "no_such", 1, NULL), OX_BAD_ARGUMENT);
    assert_int_equal(ox_sampler_options_set(&o, "min_p", 2, &err), OX_BAD_ARGUMENT);
    assert_string_equal(err.msg, "min-p must be 0 to 1, found 2");
}

static void a_fork_goes_on_like_its_origin(void **state)
{
    (void)state;
    ox_sampler *a, *b;
    float logits[200];
    ox_sampler_options o;
    ox_sampler_options_init(&o);
    o.temperature = 1;
    o.repetition_penalty = 1.3f;
    o.penalty_last_n = 8;
    o.mirostat = 2;
    o.dry_multiplier = 1;
    for (int i = 0; i < 200; i++)
        logits[i] = (float)((i * 37) % 23) * 0.3f;
    assert_int_equal(ox_sampler_open(&a, &o, NULL), OX_OK);
    for (uint64_t p = 0; p < 40; p++) {
        int32_t x, y;
        assert_int_equal(ox_sampler_fork(&b, a, NULL), OX_OK);
        assert_int_equal(ox_sampler_pick(a, logits, 200, p, &x, NULL), OX_OK);
        assert_int_equal(ox_sampler_pick(b, logits, 200, p, &y, NULL), OX_OK);
        assert_int_equal(x, y);
        assert_int_equal(ox_sampler_accept(a, x, 1, NULL), OX_OK);
        ox_sampler_close(&b);
    }
    ox_sampler_close(&a);
}

/* What was taken back was never there: window counts and mirostat's value. */
static void a_rewind_forgets_everything(void **state)
{
    (void)state;
    ox_sampler *a, *b;
    float logits[100];
    int32_t x, y;
    ox_sampler_options o;
    ox_sampler_options_init(&o);
    o.temperature = 1;
    o.frequency_penalty = 0.5f;
    o.penalty_last_n = 5;
    o.mirostat = 2;
    for (int i = 0; i < 100; i++)
        logits[i] = (float)((i * 31) % 17) * 0.3f;
    assert_int_equal(ox_sampler_open(&a, &o, NULL), OX_OK);
    assert_int_equal(ox_sampler_open(&b, &o, NULL), OX_OK);
    for (uint64_t p = 0; p < 30; p++) {
        for (int extra = 0; extra < 9; extra++) {
            assert_int_equal(ox_sampler_pick(a, logits, 100, p + 1000, &x, NULL), OX_OK);
            ox_sampler_accept(a, x, 1, NULL);
        }
        ox_sampler_rewind(a, p);
        assert_int_equal(ox_sampler_pick(a, logits, 100, p, &x, NULL), OX_OK);
        assert_int_equal(ox_sampler_pick(b, logits, 100, p, &y, NULL), OX_OK);
        assert_int_equal(x, y);
        ox_sampler_accept(a, x, 1, NULL);
        ox_sampler_accept(b, y, 1, NULL);
    }
    ox_sampler_close(&a);
    ox_sampler_close(&b);
}

static void memory_that_ends_is_an_error(void **state)
{
    (void)state;
    ox_sampler_options o;
    float logits[500];
    ox_sampler_options_init(&o);
    o.temperature = 1;
    o.repetition_penalty = 1.1f;
    o.typical_p = 0.9f;
    o.top_p = 0.9f;
    o.tail_free = 0.9f;
    for (int i = 0; i < 500; i++)
        logits[i] = (float)((i * 31) % 97) * 0.1f;
    for (long n = 1; n < 60; n++) {
        ox_sampler *s = NULL;
        int32_t id;
        ox_mem_fail_after(n);
        ox_status st = ox_sampler_open(&s, &o, NULL);
        if (!st) st = ox_sampler_accept(s, 3, 1, NULL);
        if (!st) st = ox_sampler_pick(s, logits, 500, 1, &id, NULL);
        ox_mem_fail_after(0);
        assert_true(st == OX_OK || st == OX_NO_MEMORY);
        ox_sampler_close(&s);
    }
}

static void logprobs_are_a_log_softmax(void **state)
{
    (void)state;
    const float logits[] = {1, 2, 3};
    float lp, values[2], margin;
    int32_t ids[2];
    assert_int_equal(ox_logprobs(logits, 3, 1, 2, &lp, ids, values, &margin, NULL), OX_OK);
    const double sum = exp(1.0) + exp(2.0) + exp(3.0);
    assert_true(fabs((double)lp - (2 - log(sum))) < 1e-6);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], 1);
    assert_true(fabs((double)values[0] - (3 - log(sum))) < 1e-6);
    assert_true(margin == 1.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_matches_published_vectors),
        cmocka_unit_test(greedy_takes_the_highest_and_the_lowest_id_of_ties),
        cmocka_unit_test(a_nan_among_the_logits_is_a_failure),
        cmocka_unit_test(truncations_keep_exactly_their_set),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(same_seed_same_token),
        cmocka_unit_test(penalties_count_as_documented),
        cmocka_unit_test(bias_and_suppression),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(options_are_set_by_name_within_their_range),
        cmocka_unit_test(a_fork_goes_on_like_its_origin),
        cmocka_unit_test(a_rewind_forgets_everything),
        cmocka_unit_test(memory_that_ends_is_an_error),
        cmocka_unit_test(logprobs_are_a_log_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
