/* json_test.c - strictness, values, limits and messages of the reader; round
 * trips of the writer. */
#include "base/json.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct doc {
    ox_arena arena;
    const ox_json *root;
    ox_err err;
    ox_status st;
} doc;

static doc parse(ox_str text)
{
    doc d = {.root = NULL};
    d.st = ox_json_parse(&d.root, &d.arena, text, &d.err);
    return d;
}

static void refuses(const char *text, const char *message)
{
    doc d = parse(ox_str_of(text));
    assert_int_equal(d.st, OX_BAD_FILE);
    if (!strstr(d.err.msg, message)) fail_msg("%s: \"%s\" lacks \"%s\"", text, d.err.msg, message);
    ox_arena_deinit(&d.arena);
}

static void accepts(const char *text, const char *written)
{
    doc d = parse(ox_str_of(text));
    ox_buf out = {0};
    if (d.st) fail_msg("%s: %s", text, d.err.msg);
    ox_json_put_node(&(ox_json_writer){.out = &out}, d.root);
    assert_string_equal(out.p, written);
    ox_buf_deinit(&out);
    ox_arena_deinit(&d.arena);
}

static void takes_what_the_standard_allows(void **state)
{
    (void)state;
    accepts(" [ ] ", "[]");
    accepts("{}", "{}");
    accepts("\xef\xbb\xbf[1]", "[1]");
    accepts("\t{\"a\" : [1 , -2,0,3.5e2 ]\r\n, \"b\":{\"c\":null}}",
            "{\"a\":[1,-2,0,350.0],\"b\":{\"c\":null}}");
    accepts("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"",
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\xc3\xa9\xf0\x9f\x98\x80\"");
    accepts("\"a long plain string without any escape in it \\n and on\"",
            "\"a long plain string without any escape in it \\n and on\"");
    accepts("\"\\u0000\\u001f\x7f\"", "\"\\u0000\\u001f\x7f\"");
    accepts("-0", "-0.0");
    accepts("[9223372036854775807,-9223372036854775808,9223372036854775808]",
            "[9223372036854775807,-9223372036854775808,9.223372036854776e+18]");
    accepts("[0.1,1e22,1e23,123456789.123456789,5e-324,1.7976931348623157e308,1e-7,12345e-3]",
            "[0.1,1e+22,1e+23,123456789.12345679,5e-324,1.7976931348623157e+308,1e-07,12.345]");
    accepts("1000000000000000019884624838656", "1e+30");
    accepts("[100.0,1e15,1e16,0.0001,0.00012]", "[100.0,1000000000000000.0,1e+16,0.0001,0.00012]");
    accepts("{\"k\":1,\"k\":2}", "{\"k\":1,\"k\":2}");
}

static void refuses_what_the_standard_forbids(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "nul",
                                      "truE",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "{\"a\":1,}",
                                      "01",
                                      "-",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "1e+",
                                      "0x1",
                                      "NaN",
                                      "-Infinity",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"a",
                                      "\"a\\",
                                      "\"\t\"",
                                      "\"\x80\"",
                                      "\"\xc0\xaf\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xe2\x82\"",
                                      "[1]x",
                                      "[1] [2]",
                                      "]",
                                      "[}",
                                      "{]",
                                      "[\"a\",\n4",
                                      "1e400",
                                      "'a'",
                                      "[1//c\n]",
                                      "\xff"};
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        doc d = parse(ox_str_of(bad[i]));
        if (d.st != OX_BAD_FILE) fail_msg("accepted: %s", bad[i]);
        ox_arena_deinit(&d.arena);
    }
    doc d = parse((ox_str){"[1\0]", 4});
    assert_int_equal(d.st, OX_BAD_FILE);
    ox_arena_deinit(&d.arena);
}

static void messages_say_where(void **state)
{
    (void)state;
    refuses("{\n \"a\": 1,\n \"b\": x}", "expected a value at line 3 column 7 (byte 17)");
    refuses("[1", "the text ends too early at line 1 column 3 (byte 2)");
    refuses("[1] ]", "text behind the value");
    refuses("{\"a\":1 \"b\":2}", "expected ',' or '}'");
}

static void depth_is_limited(void **state)
{
    (void)state;
    char text[2 * OX_JSON_MAX_DEPTH + 3];
    memset(text, '[', OX_JSON_MAX_DEPTH + 1);
    memset(text + OX_JSON_MAX_DEPTH + 1, ']', OX_JSON_MAX_DEPTH + 1);
    doc d = parse((ox_str){text, 2 * OX_JSON_MAX_DEPTH + 2});
    assert_int_equal(d.st, OX_BAD_FILE);
    assert_non_null(strstr(d.err.msg, "512 levels"));
    ox_arena_deinit(&d.arena);
    d = parse((ox_str){text + 1, 2 * OX_JSON_MAX_DEPTH});
    assert_int_equal(d.st, OX_OK);
    ox_arena_deinit(&d.arena);
}

static void lookup_finds_the_last_of_equal_keys(void **state)
{
    (void)state;
    ox_buf text = {0};
    for (int n = 1; n < 2000; n = n * 3 + 1) {
        ox_buf_clear(&text);
        ox_json_writer w = {.out = &text};
        ox_json_begin_object(&w);
        for (int i = 0; i < 2 * n; i++) {
            char key[16];
            snprintf(key, sizeof(key), "k%d", i % n);
            ox_json_put_key(&w, key);
            ox_json_put_i64(&w, i);
        }
        ox_json_end_object(&w);
        doc d = parse(ox_buf_view(&text));
        assert_int_equal(d.st, OX_OK);
        assert_int_equal(ox_json_n(d.root), 2 * n);
        for (int i = 0; i < n; i++) {
            char key[16];
            snprintf(key, sizeof(key), "k%d", i);
            assert_int_equal(ox_json_i64(ox_json_get(d.root, key)), n + i);
        }
        assert_null(ox_json_get(d.root, "none"));
        assert_null(ox_json_get(d.root, ""));
        ox_arena_deinit(&d.arena);
    }
    ox_buf_deinit(&text);
}

static void typed_getters_name_the_path(void **state)
{
    (void)state;
    doc d =
        parse(OX_STR("{\"model\":{\"eos\":[1,2],\"name\":\"x\",\"n\":32.0,\"r\":0.5,\"on\":true,"
                     "\"no\":null}}"));
    ox_str s = {0};
    int64_t v = -1;
    double f = 0;
    bool b = false;
    const ox_json *node = NULL;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_json_need_str(d.root, "model.name", &s, &err), OX_OK);
    assert_true(ox_str_is(s, "x"));
    assert_int_equal(ox_json_need_i64(d.root, "model.eos.1", 0, 10, &v, &err), OX_OK);
    assert_int_equal(v, 2);
    assert_int_equal(ox_json_need_i64(d.root, "model.n", 0, 100, &v, &err), OX_OK);
    assert_int_equal(v, 32);
    assert_int_equal(ox_json_need_f64(d.root, "model.r", &f, &err), OX_OK);
    assert_true(f == 0.5);
    assert_int_equal(ox_json_need_bool(d.root, "model.on", &b, &err), OX_OK);
    assert_true(b);
    assert_int_equal(ox_json_opt_i64(d.root, "model.no", 0, 9, &v, &err), OX_OK);
    assert_int_equal(ox_json_opt_i64(d.root, "model.gone.far", 0, 9, &v, &err), OX_OK);
    assert_int_equal(v, 32);
    assert_int_equal(ox_json_need(d.root, "model.eos", OX_JSON_ARRAY, &node, &err), OX_OK);
    assert_int_equal(ox_json_n(node), 2);
    assert_int_equal(ox_json_opt_str(d.root, "model.n", &s, &err), OX_BAD_FILE);
    assert_string_equal(err.msg, "\"model.n\" must be a string, found a number");
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_json_need_i64(d.root, "model.gone", 0, 9, &v, &err), OX_BAD_FILE);
    assert_string_equal(err.msg, "\"model.gone\" must be a number, found nothing");
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_json_need_i64(d.root, "model.n", 0, 9, &v, &err), OX_BAD_FILE);
    assert_string_equal(err.msg, "\"model.n\" must be between 0 and 9, found 32");
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_json_need_i64(d.root, "model.r", 0, 9, &v, &err), OX_BAD_FILE);
    ox_arena_deinit(&d.arena);
}

static void nonfinite_only_on_request(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_json_parse_with(&root, &arena, OX_STR("[NaN,Infinity,-Infinity]"),
                                        OX_JSON_NONFINITE, &err),
                     OX_OK);
    assert_true(__builtin_isnan(ox_json_f64(ox_json_at(root, 0))));
    assert_true(ox_json_f64(ox_json_at(root, 1)) > 1e308);
    assert_true(ox_json_f64(ox_json_at(root, 2)) < -1e308);
    ox_arena_deinit(&arena);
}

static void writer_lays_out_as_asked(void **state)
{
    (void)state;
    doc d = parse(OX_STR("{\"a\":[1,{\"b\":[]}],\"c\":{}}"));
    ox_buf out = {0};
    ox_json_put_node(&(ox_json_writer){.out = &out, .spaced = true}, d.root);
    assert_string_equal(out.p, "{\"a\": [1, {\"b\": []}], \"c\": {}}");
    ox_buf_clear(&out);
    ox_json_put_node(&(ox_json_writer){.out = &out, .indent = 2}, d.root);
    assert_string_equal(
        out.p, "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
    ox_buf_clear(&out);
    ox_json_writer w = {.out = &out};
    ox_json_begin_array(&w);
    ox_json_put_i64(&w, INT64_MIN);
    ox_json_put_u64(&w, UINT64_MAX);
    ox_json_put_z(&w, NULL);
    ox_json_put_bool(&w, true);
    ox_json_put_i64(&w, -5);
    ox_json_put_f64(&w, __builtin_nan(""));
    ox_json_put_str(&w, (ox_str){"\xff"
                                 "a\0",
                                 3});
    ox_json_end_array(&w);
    assert_string_equal(out.p, "[-9223372036854775808,18446744073709551615,null,true,-5,null,"
                               "\"\xef\xbf\xbd"
                               "a\\u0000\"]");
    ox_buf_deinit(&out);
    ox_arena_deinit(&d.arena);
}

static void random_doubles_read_back_equal(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    ox_buf out = {0};
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double v;
        memcpy(&v, &x, 8);
        if (!__builtin_isfinite(v)) continue;
        if (i % 2) v = (double)(int64_t)(x % 2000001) / 1000;
        ox_buf_clear(&out);
        ox_json_print_f64(&out, v);
        doc d = parse(ox_buf_view(&out));
        const double back = ox_json_f64(d.root);
        if (memcmp(&back, &v, 8)) fail_msg("%s is not %.17g", out.p, v);
        ox_arena_deinit(&d.arena);
    }
    ox_buf_deinit(&out);
}

static void memory_failure_is_reported_at_every_site(void **state)
{
    (void)state;
    for (long n = 1;; n++) {
        ox_mem_fail_after(n);
        doc d = parse(OX_STR("{\"a\":[1,2,3],\"b\":[[[]]],\"c\":[1,2,3,4,5,6,7,8,9,10]}"));
        ox_mem_fail_after(0);
        ox_arena_deinit(&d.arena);
        if (!d.st) break;
        assert_int_equal(d.st, OX_NO_MEMORY);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_the_standard_allows),
        cmocka_unit_test(refuses_what_the_standard_forbids),
        cmocka_unit_test(messages_say_where),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(lookup_finds_the_last_of_equal_keys),
        cmocka_unit_test(typed_getters_name_the_path),
        cmocka_unit_test(nonfinite_only_on_request),
        cmocka_unit_test(writer_lays_out_as_asked),
        cmocka_unit_test(random_doubles_read_back_equal),
        cmocka_unit_test(memory_failure_is_reported_at_every_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
