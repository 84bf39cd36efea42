/* micro_test.c - micro-benchmarks open, run and close; absent ones say why; memory that runs out at
 * any point is a failure with a message and nothing else. */
#include "base/mem.h"
#include "oxgen/ox_experimental.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static size_t row_of(const char *name)
{
    ox_micro m;
    for (size_t i = 0; i < ox_micro_count(); i++)
        if (!ox_micro_at(i, &m, NULL) && !strcmp(m.name, name)) return i;
    fail_msg("there is no row %s", name);
    return 0;
}

static void absent_rows_are_refused_with_their_reason(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < ox_micro_count(); i++) {
        ox_micro m;
        ox_micro_case *c;
        ox_err err = OX_ERR_INIT;
        assert_int_equal(ox_micro_at(i, &m, &err), OX_OK);
        assert_true(!m.absent != !m.runs);
        if (!m.absent) continue;
        n++;
        assert_int_equal(ox_micro_open(&c, i, 0, &err), OX_UNSUPPORTED);
        assert_null(c);
        assert_non_null(strstr(err.msg, m.absent));
    }
    assert_true(n > 0);
}

/* One row of every maker, all small. */
static const char *const small[] = {
    "matmul/small_generic_f16_threads=1/1x256x256",
    "gather/small_bf16_threads=1-internal/4096",
    "add/small_f16_threads=1-internal/1024",
    "reduce_mean/small_f32_threads=1-internal/4096",
    "tokenization/encode_tokens_per_second",
    "tokenization/decode_tokens_per_second",
    "sampling_latency/top_k_per_token",
    "qwen3_sampling_processors/top_p_fast_after_top_k",
    "qwen3_sampling_processors/top_k_full_sort_baseline",
    "kv_cache/alloc_dealloc_pages",
    "oxgen/kv_append/f16_threads=1/rows=1,kv_heads=2,size=64",
    "oxgen/attend/f16_threads=1/rows=1,heads=14,kv_heads=2,size=64,positions=2048",
    "oxgen/norm/threads=1/1x896",
    "oxgen/quantize/planes=2_threads=1/1x896",
    "oxgen/qlinear/q4_planes=2_threads=1/1x896x4864",
};

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(small) / sizeof(small[0]); k++) {
        const size_t i = row_of(small[k]);
        ox_status st = OX_NO_MEMORY;
        for (long n = 1; st && n < 500; n++) {
            ox_micro_case *c = NULL;
            ox_err err = OX_ERR_INIT;
            ox_mem_fail_after(n);
            st = ox_micro_open(&c, i, 1, &err);
            if (!st) st = ox_micro_run(c, 2, &err);
            ox_mem_fail_after(0);
            if (st) {
                assert_int_equal(st, OX_NO_MEMORY);
                assert_true(err.msg[0] != 0);
            }
            ox_micro_close(&c);
            assert_null(c);
        }
        if (st) fail_msg("%s never ran", small[k]);
    }
}

static void costs_follow_the_shape(void **state)
{
    (void)state;
    ox_micro_case *c;
    ox_micro_cost cost;
    assert_int_equal(
        ox_micro_open(&c, row_of("oxgen/qlinear/q4_planes=2_threads=1/1x896x4864"), 0, NULL),
        OX_OK);
    ox_micro_cost_of(c, &cost);
    assert_true(cost.work == 2.0 * 896 * 4864 && cost.int8_ops == 2 * cost.work);
    /* 4 bits and a float16 scale for every 32 weights, at least */
    assert_true(cost.bytes >= 896.0 * 4864 * (0.5 + 2.0 / 32));
    assert_int_equal(cost.n_threads, 1);
    ox_micro_close(&c);
    ox_micro_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_rows_are_refused_with_their_reason),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(costs_follow_the_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
