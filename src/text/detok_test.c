/* detok_test.c - characters over token borders, special tokens, stop strings over pushes. */
#include "text/detok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Tokens of single bytes e2 82 ac f0 9f 98 80 (euro sign, emoji), letters, one special. */
static const char bytes_json[] =
    "{\"added_tokens\":[{\"content\":\"<s>\",\"special\":true}],\"decoder\":{\"type\":\"Sequence\","
    "\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},\"content\":\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
    "\",\"start\":1,"
    "\"stop\":0}]},\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"<0xE2>\":0,\"<0x82>\":1,"
    "\"<0xAC>\":2,\"<0xF0>\":3,\"<0x9F>\":4,\"<0x98>\":5,\"<0x80>\":6,\"_a\":7,\"b\":8,\"<s>\":9}}"
    "}";

static ox_tokenizer *open_bytes(void)
{
    ox_tokenizer *tok = NULL;
    ox_err err = OX_ERR_INIT;
    if (ox_tokenizer_open(&tok, OX_STR(bytes_json), (ox_str){0}, &err)) fail_msg("%s", err.msg);
    return tok;
}

static void streams(const char *expected, const int32_t *ids, size_t n, bool show, bool at_start)
{
    ox_tokenizer *tok = open_bytes();
    ox_buf out = {0};
    ox_detok d;
    ox_detok_init(&d, tok, show, at_start);
    for (size_t i = 0; i < n; i++) {
        ox_detok_push(&d, ids[i], &out);
        ox_buf_put_c(&out, '|');
    }
    ox_detok_flush(&d, &out);
    assert_string_equal(out.p, expected);
    ox_buf_deinit(&out);
    ox_tokenizer_close(&tok);
}

static void a_character_leaves_when_it_is_whole(void **state)
{
    (void)state;
    streams("||\xe2\x82\xac|b|", (int32_t[]){0, 1, 2, 8}, 4, false, false);
    streams("|||\xf0\x9f\x98\x80|", (int32_t[]){3, 4, 5, 6}, 4, false, false);
}

static void broken_characters_become_one_replacement_each(void **state)
{
    (void)state;
    streams("||\xef\xbf\xbd"
            "b|",
            (int32_t[]){0, 1, 8}, 3, false, false);
    streams("||\xef\xbf\xbd", (int32_t[]){3, 2}, 2, false, false); /* f0 ac may go on */
    streams("\xef\xbf\xbd|\xef\xbf\xbd|", (int32_t[]){1, 2}, 2, false, false);
    streams("||\xef\xbf\xbd", (int32_t[]){0, 1}, 2, false, false);
    streams("|\xef\xbf\xbd||\xe2\x82\xac|", (int32_t[]){0, 0, 1, 2}, 4, false, false);
}

static void special_tokens_part_characters_and_show_on_request(void **state)
{
    (void)state;
    streams("|\xef\xbf\xbd|\xef\xbf\xbd|", (int32_t[]){0, 9, 1}, 3, false, false);
    streams("|\xef\xbf\xbd<s>|b|", (int32_t[]){0, 9, 8}, 3, true, false);
}

static void the_first_space_goes_only_at_the_start_of_a_text(void **state)
{
    (void)state;
    streams("a| a|", (int32_t[]){7, 7}, 2, false, true);
    streams(" a| a|", (int32_t[]){7, 7}, 2, false, false);
    streams("|a|", (int32_t[]){9, 7}, 2, false, true);
}

/* Pushes `text` in pieces of n bytes; "|" shows where a push ended. */
static void stops_at(const ox_str *list, size_t n_list, const char *text, size_t n,
                     const char *expected, int which)
{
    ox_stops s;
    ox_buf out = {0};
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_stops_init(&s, list, n_list, &err), OX_OK);
    for (size_t i = 0; i < strlen(text); i += n) {
        const size_t left = strlen(text) - i;
        ox_stops_push(&s, (ox_str){text + i, left < n ? left : n}, &out);
    }
    ox_stops_flush(&s, &out);
    assert_string_equal(out.p ? out.p : "", expected);
    assert_int_equal(s.hit ? (int)s.which : -1, which);
    ox_stops_deinit(&s);
    ox_buf_deinit(&out);
}

static void stop_strings_are_found_over_any_borders(void **state)
{
    const ox_str list[] = {OX_STR("</s>"), OX_STR("\n\n"), OX_STR("aab")};
    (void)state;
    for (size_t n = 1; n < 12; n++) {
        stops_at(list, 3, "hello </s> x", n, "hello ", 0);
        stops_at(list, 3, "a\nb\n\nc", n, "a\nb", 1);
        stops_at(list, 3, "xaaab", n, "xa", 2);
        stops_at(list, 3, "tail </s", n, "tail </s", -1);
        stops_at(list, 0, "any\n\n", n, "any\n\n", -1);
        stops_at(list, 3, "</s>", n, "", 0);
    }
}

static void nothing_of_a_stop_string_shows_early(void **state)
{
    const ox_str list[] = {OX_STR("STOP")};
    ox_stops s;
    ox_buf out = {0};
    (void)state;
    assert_int_equal(ox_stops_init(&s, list, 1, NULL), OX_OK);
    ox_stops_push(&s, OX_STR("abST"), &out);
    assert_string_equal(out.p, "ab");
    ox_stops_push(&s, OX_STR("STO"), &out);
    assert_string_equal(out.p, "abST");
    ox_stops_push(&s, OX_STR("P after"), &out);
    assert_string_equal(out.p, "abST");
    assert_true(s.hit);
    ox_stops_push(&s, OX_STR("more"), &out);
    ox_stops_flush(&s, &out);
    assert_string_equal(out.p, "abST");
    ox_stops_deinit(&s);
    ox_buf_deinit(&out);
}

static void empty_and_too_long_stop_strings_are_refused(void **state)
{
    ox_stops s;
    ox_err err = OX_ERR_INIT;
    const ox_str empty = OX_STR("");
    (void)state;
    assert_int_equal(ox_stops_init(&s, &empty, 1, &err), OX_BAD_ARGUMENT);
    assert_string_equal(err.msg, "a stop string has 0 bytes, expected 1 to 4096");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_leaves_when_it_is_whole),
        cmocka_unit_test(broken_characters_become_one_replacement_each),
        cmocka_unit_test(special_tokens_part_characters_and_show_on_request),
        cmocka_unit_test(the_first_space_goes_only_at_the_start_of_a_text),
        cmocka_unit_test(stop_strings_are_found_over_any_borders),
        cmocka_unit_test(nothing_of_a_stop_string_shows_early),
        cmocka_unit_test(empty_and_too_long_stop_strings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
