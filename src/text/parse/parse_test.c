/* Every format: what a model of its family writes, as the events it must give; the same events for
 * every way to cut the text in two, in three and into single bytes; what only looks like a call
 * stays content; limits. */
#include "text/parse/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Events as text: C<content> R<reasoning> [name#id arguments], ; when a call is complete. */
typedef struct record {
    ox_buf text;
    ox_part last;
    size_t call;
    bool any;
} record;

static void on_event(void *user, const ox_parser_event *e)
{
    record *r = user;
    const char *const begin[] = {"C<", "R<", "[", "#", " ", ";"};
    const bool joins =
        r->any && r->last == e->part && (e->part < OX_PART_CALL || e->part == OX_PART_ARGUMENTS);
    if (!joins) {
        if (r->any && r->last < OX_PART_CALL) ox_buf_put_c(&r->text, '>');
        ox_buf_put_z(&r->text, begin[e->part]);
    }
    ox_buf_put(&r->text, e->text, e->n);
    if (e->part == OX_PART_CALL_END) ox_buf_put_c(&r->text, ']');
    r->any = true;
    r->last = e->part;
    r->call = e->call;
}

typedef struct example {
    const char *format, *prompt, *tools, *text, *want;
} example;

#define BAR "\xef\xbd\x9c"
#define LOW "\xe2\x96\x81"
#define CALLS "<" BAR "tool" LOW "calls" LOW "begin" BAR ">"
#define CALLS_END "<" BAR "tool" LOW "calls" LOW "end" BAR ">"
#define CALL "<" BAR "tool" LOW "call" LOW "begin" BAR ">"
#define CALL_END "<" BAR "tool" LOW "call" LOW "end" BAR ">"
#define SEP "<" BAR "tool" LOW "sep" BAR ">"
#define DSML                                                                                       \
    "\xef\xbd\x9c"                                                                                 \
    "DSML\xef\xbd\x9c"

static const char weather[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"
                              "{\"type\":\"object\",\"properties\":{"
                              "\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"b\":{"
                              "\"type\":\"boolean\"},\"o\":{\"type\":\"object\"}}}}}]";

static const example examples[] = {
    {"hermes", "", "", "Hello there", "C<Hello there>"},
    {"hermes", "", "", "<think>\nhm\nyes\n</think>\n\nHello", "R<hm\nyes>C<Hello>"},
    {"hermes", "<|im_start|>assistant\n<think>\n", "", "hm\n</think>\n\nHi", "R<hm>C<Hi>"},
    {"hermes", "<think>\n", "", "never closed <tool_call>", "R<never closed <tool_call>>"},
    {"hermes", "", "",
     "Look:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, {\"b\": "
     "\"}\"}]}}\n</tool_call>",
     "C<Look:>[f {\"a\": [1, {\"b\": \"}\"}]};]"},
    {"hermes", "", "",
     "<tool_call>\n{\"name\": \"f\", \"arguments\": "
     "{}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {\"x\": "
     "1}}\n</tool_call>",
     "[f {};][g {\"x\": 1};]"},
    {"hermes", "", "", "<tool_call>{\"arguments\": {\"x\": 1}, \"name\": \"late\"}</tool_call> bye",
     "[late {\"x\": 1};]C<bye>"},
    {"hermes", "", "", "<tool_call>{\"name\": \"f\"}</tool_call>", "[f {};]"},
    {"hermes", "", "",
     "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": "
     "\\\"\\u00e9\\ud83d\\ude00\\\"}\"}</tool_call>",
     "[f {\"a\": \"\xc3\xa9\xf0\x9f\x98\x80\"};]"},
    {"hermes", "", "", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}</tool_call>ok",
     "[f {\"a\": 1};]C<ok>"},
    {"hermes", "", "", "<tool_call>no call</tool_call>", "C<<tool_call>no call</tool_call>>"},
    {"hermes", "", "", "<tool_call></tool_call>x", "C<<tool_call></tool_call>x>"},
    {"hermes", "", "", "a < b <tool_cal <<tool_call", "C<a < b <tool_cal <<tool_call>"},
    {"hermes", "", "",
     "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"say </tool_call> "
     "twice\"}}</tool_call>",
     "[f {\"text\": \"say </tool_call> twice\"};]"},
    {"hermes", "", "", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "[f {\"a\": "},
    {"hermes", "", "",
     "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"f\", "
     "\"arguments\": {\"a\": 1}}}</tool_call>",
     "[f {\"a\": 1};]"},
    {"qwen3-coder", "", weather,
     "Sure.\n<tool_call>\n<function=f>\n<parameter=s>\nline 1\n\"line\" "
     "2\n</parameter>\n<parameter=n>\n42\n</parameter>\n<parameter=b>\nTrue\n</"
     "parameter>\n<parameter=o>\n{\"k\": [1]}\n</parameter>\n</function>\n</tool_call>",
     "C<Sure.>[f {\"s\": \"line 1\\n\\\"line\\\" 2\", \"n\": 42, \"b\": true, \"o\": "
     "{\"k\": [1]}};]"},
    {"qwen3-coder", "", "",
     "<tool_call>\n<function=g>\n<parameter=x>\n12\n</"
     "parameter>\n<parameter=y>\nword\n</parameter>\n</function>\n<function=h>\n</"
     "function>\n</tool_call>\nDone",
     "[g {\"x\": 12, \"y\": \"word\"};][h {};]C<Done>"},
    {"qwen3-coder", "", weather,
     "<tool_call><function=f><parameter=s>42</parameter></function></tool_call>",
     "[f {\"s\": \"42\"};]"},
    {"llama3", "", "", "{\"name\": \"f\", \"parameters\": {\"a\": \"b\"}}", "[f {\"a\": \"b\"};]"},
    {"llama3", "", "", "{\"answer\": 42, \"name\": \"x\"}", "C<{\"answer\": 42, \"name\": \"x\"}>"},
    {"llama3", "", "", "{\"name\": \"Bob\", \"age\": 3}", "C<{\"name\": \"Bob\", \"age\": 3}>"},
    {"llama3", "", "", "{\"name\": \"Bob\"}", "C<{\"name\": \"Bob\"}>"},
    {"llama3", "", weather, "{\"name\": \"unknown\", \"parameters\": {}}",
     "C<{\"name\": \"unknown\", \"parameters\": {}}>"},
    {"llama3", "", "", "text {\"name\": \"f\", \"parameters\": {}}",
     "C<text {\"name\": \"f\", \"parameters\": {}}>"},
    {"llama3", "", "", "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"a\": 1}}",
     "[f {\"a\": 1};]"},
    {"llama3", "", "", "<|python_tag|>brave_search.call(query=\"who?\", n=3)",
     "[brave_search {\"query\": \"who?\", \"n\": 3};]"},
    {"mistral-v3", "", "",
     "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": "
     "\"abcdefghi\"}, {\"name\": \"g\", \"arguments\": {}}]",
     "[f {\"a\": 1};][g {};]"},
    {"mistral-v3", "", "",
     "[TOOL_CALLS][{\"id\": \"123456789\", \"name\": \"f\", \"arguments\": {}}]",
     "[f#123456789 {};]"},
    {"mistral-v13", "", "",
     "[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{\"a\": {\"b\": 2}}[TOOL_CALLS]g[ARGS]{}",
     "[f#123456789 {\"a\": {\"b\": 2}};][g {};]"},
    {"mistral-v11", "", "", "[THINK]so[/THINK]Right.[TOOL_CALLS]f[ARGS]{\"a\": 1}",
     "R<so>C<Right.>[f {\"a\": 1};]"},
    {"deepseek-v3", "", "",
     "Ok" CALLS CALL "function" SEP "f\n```json\n{\"a\": 1}\n```" CALL_END "\n" CALL "function" SEP
     "g\n```json\n{}\n```" CALL_END CALLS_END,
     "C<Ok>[f {\"a\": 1};][g {};]"},
    {"deepseek-v3.1", "<think>", "",
     "mm</think>" CALLS CALL "f" SEP "{\"a\": 1}" CALL_END CALLS_END, "R<mm>[f {\"a\": 1};]"},
    {"deepseek-dsml", "", "",
     "<" DSML "function_calls>\n<" DSML "invoke name=\"f\">\n<" DSML
     "parameter name=\"s\" string=\"true\">a \"b\"</" DSML "parameter>\n<" DSML
     "parameter name=\"n\" string=\"false\">[1, 2]</" DSML "parameter>\n</" DSML "invoke>\n<" DSML
     "invoke name=\"g\">\n</" DSML "invoke>\n</" DSML "function_calls>",
     "[f {\"s\": \"a \\\"b\\\"\", \"n\": [1, 2]};][g {};]"},
    {"glm", "", weather,
     "\n<think>well</think>\nHi <tool_call>f\n<arg_key>s</arg_key>\n<arg_value>x "
     "y</arg_value>\n<arg_key>n</arg_key>\n<arg_value>7</arg_value>\n</tool_call>",
     "R<well>C<Hi >[f {\"s\": \"x y\", \"n\": 7};]"},
    {"glm", "", "",
     "<tool_call>f<arg_key>s</arg_key><arg_value>x</arg_value></"
     "tool_call><tool_call>g</tool_call>",
     "[f {\"s\": \"x\"};][g {};]"},
    {"kimi-k2", "", "",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_"
     "begin|>{\"a\": "
     "1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}"
     "<|tool_call_end|><|tool_calls_section_end|>",
     "[f#functions.f:0 {\"a\": 1};][g#functions.g:1 {};]"},
    {"minimax-m2", "", "",
     "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter "
     "name=\"q\">[\"a\"]</parameter>\n</invoke>\n<invoke name=\"g\">\n<parameter "
     "name=\"t\">hello</parameter>\n</invoke>\n</minimax:tool_call>",
     "[f {\"q\": [\"a\"]};][g {\"t\": \"hello\"};]"},
    {"seed-oss", "", "",
     "<seed:think>a</seed:think>b<seed:tool_call>\n<function=f>\n<parameter=k>v</"
     "parameter>\n</function>\n</seed:tool_call>",
     "R<a>C<b>[f {\"k\": \"v\"};]"},
    {"cohere", "", "",
     "<|START_THINKING|>plan<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": "
     "\"0\", \"tool_name\": \"f\", \"parameters\": {\"a\": 1}}\n]<|END_ACTION|>",
     "R<plan>[f#0 {\"a\": 1};]"},
    {"cohere", "", "", "<|START_RESPONSE|>Hi<|END_RESPONSE|>", "C<Hi>"},
    {"phi4-mini", "", "",
     "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|/tool_call|>",
     "[f {\"a\": 1};]"},
    {"granite", "", "", "<think>t</think><response>Hi</response>", "R<t>C<Hi>"},
    {"granite", "", "",
     "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", "
     "\"arguments\": {}}]",
     "[f {\"a\": 1};][g {};]"},
    {"lfm2", "", "",
     "<|tool_call_start|>[f(a=1, s='it\\'s', l=[1, 'x'], d={'k': None}), "
     "g()]<|tool_call_end|>Done",
     "[f {\"a\": 1, \"s\": \"it's\", \"l\": [1, \"x\"], \"d\": {\"k\": null}};][g "
     "{};]C<Done>"},
    {"gemma4", "", "",
     "<|channel>thought\nhm\n<channel|>Yes<|tool_call>call:f{s:<|\"|>a, "
     "{b}<|\"|>,n:3,l:[true,<|\"|>x<|\"|>]}<tool_call|>",
     "R<hm>C<Yes>[f {\"s\": \"a, {b}\", \"n\": 3, \"l\": [true, \"x\"]};]"},
    {"functiongemma", "", "",
     "<start_function_call>call:f{city:<escape>Paris<escape>}<end_function_call>",
     "[f {\"city\": \"Paris\"};]"},
    {"functionary-v3.1", "", "", "I call <function=f>{\"a\": 1}</function>",
     "C<I call >[f {\"a\": 1};]"},
    {"functionary-v3.2", ">>>", "", "all\nText here\n>>>f\n{\"a\": 1}",
     "C<Text here>[f {\"a\": 1};]"},
    {"nemotron-nano-v2", "", "",
     "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]</TOOLCALL>", "[f {\"a\": 1};]"},
    {"apriel", "", "", "<tool_calls>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]</tool_calls>",
     "[f {\"a\": 1};]"},
    {"apriel", "", "",
     "<tool_calls>\n{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", "
     "\"arguments\": {}}\n</tool_calls>\nok",
     "[f {};][g {};]C<ok>"},
    {"hermes", "", "",
     "<tool_call>{\"name\": \"f\", \"arguments\": {}} no close <tool_call>{"
     "\"name\": \"g\", \"arguments\": {}}",
     "[f {};]C<no close >[g {};]"},
    {"firefunction", "", "", "functools[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
     "[f {\"a\": 1};]"},
    {"firefunction", "", "", "functools are fun", "C<functools are fun>"},
    {"harmony", "", "",
     "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
     "R<hm>[f {\"a\": 1};]"},
    {"harmony", "", "", " to=functions.g<|channel|>commentary json<|message|>{}<|call|>",
     "[g {};]"},
    {"harmony", "", "", "<|channel|>final<|message|>Answer<|return|>", "C<Answer>"},
    {"harmony", "", "",
     "<|channel|>commentary<|message|>I will "
     "look.<|end|><|start|>assistant<|channel|>final<|message|>Done",
     "C<I will look.Done>"},
    {"harmony", "", "", "plain text", "C<plain text>"},
    {"think", "", "", "<think>\n\n</think>\n\nHi <tool_call>", "C<Hi <tool_call>>"},
    {"plain", "", "", "<think>a</think>", "C<<think>a</think>>"},
};

static void run(const example *e, const size_t *cuts, size_t n_cuts, ox_buf *out)
{
    ox_parse *p;
    record r = {0};
    const size_t n = strlen(e->text);
    assert_int_equal(ox_parse_open(&p, ox_tool_format_named(ox_str_of(e->format)),
                                   ox_str_of(e->prompt), ox_str_of(e->tools), false, NULL),
                     OX_OK);
    size_t at = 0;
    for (size_t i = 0; i <= n_cuts; i++) {
        const size_t end = i < n_cuts ? cuts[i] : n;
        assert_int_equal(ox_parse_feed(p, (ox_str){e->text + at, end - at}, on_event, &r, NULL),
                         OX_OK);
        at = end;
    }
    assert_int_equal(ox_parse_finish(p, on_event, &r, NULL), OX_OK);
    if (r.any && r.last < OX_PART_CALL) ox_buf_put_c(&r.text, '>');
    ox_parse_close(&p);
    *out = r.text;
}

static void check(const example *e, const size_t *cuts, size_t n_cuts)
{
    ox_buf got = {0};
    run(e, cuts, n_cuts, &got);
    if (!ox_str_is(ox_buf_view(&got), e->want)) {
        print_message("%s, %zu cuts (first %zu): %s\n", e->format, n_cuts, n_cuts ? cuts[0] : 0,
                      e->text);
        assert_string_equal(got.p ? got.p : "", e->want);
    }
    ox_buf_deinit(&got);
}

static void every_format_gives_its_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < OX_COUNT(examples); i++)
        check(&examples[i], NULL, 0);
}

static void every_format_has_an_example(void **state)
{
    (void)state;
    for (const ox_tool_format *f = ox_tool_formats; f->name; f++) {
        bool found = !strcmp(f->name, "seed-think");
        for (size_t i = 0; i < OX_COUNT(examples); i++)
            found |= !strcmp(examples[i].format, f->name);
        if (!found) print_message("no example of %s\n", f->name);
        assert_true(found);
    }
}

static void events_do_not_depend_on_how_the_text_is_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < OX_COUNT(examples); i++) {
        const size_t n = strlen(examples[i].text);
        size_t all[1024];
        assert_true(n < OX_COUNT(all));
        for (size_t a = 0; a <= n; a++) {
            check(&examples[i], &a, 1);
            for (size_t b = a; b <= n; b += 1 + n / 40)
                check(&examples[i], (const size_t[]){a, b}, 2);
            all[a] = a;
        }
        check(&examples[i], all, n);
    }
}

static void calls_are_content_where_none_are_wanted(void **state)
{
    (void)state;
    ox_parse *p;
    record r = {0};
    const char text[] = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    assert_int_equal(ox_parse_open(&p, ox_tool_format_named(OX_STR("hermes")), OX_STR(""),
                                   OX_STR(""), true, NULL),
                     OX_OK);
    assert_int_equal(ox_parse_feed(p, ox_str_of(text), on_event, &r, NULL), OX_OK);
    assert_int_equal(ox_parse_finish(p, on_event, &r, NULL), OX_OK);
    assert_int_equal(r.text.n, strlen(text) + 2);
    ox_parse_close(&p);
    ox_buf_deinit(&r.text);
}

static void arguments_stream_as_they_come(void **state)
{
    (void)state;
    ox_parse *p;
    record r = {0};
    assert_int_equal(ox_parse_open(&p, ox_tool_format_named(OX_STR("hermes")), OX_STR(""),
                                   OX_STR(""), false, NULL),
                     OX_OK);
    assert_int_equal(
        ox_parse_feed(p, OX_STR("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"lo"),
                      on_event, &r, NULL),
        OX_OK);
    assert_string_equal(r.text.p, "[f {\"a\": \"lo");
    ox_parse_close(&p);
    ox_buf_deinit(&r.text);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    enum { N = 5 << 20 };
    ox_parse *p;
    record r = {0};
    ox_err err = OX_ERR_INIT;
    char *text = malloc(N);
    memset(text, 'x', N);
    memcpy(text, "<tool_call>{\"arguments\": {\"a\": \"", 33);
    assert_int_equal(ox_parse_open(&p, ox_tool_format_named(OX_STR("hermes")), OX_STR(""),
                                   OX_STR(""), false, NULL),
                     OX_OK);
    assert_int_equal(ox_parse_feed(p, (ox_str){text, N}, on_event, &r, &err), OX_LIMIT);
    ox_parse_close(&p);
    ox_buf_deinit(&r.text);
    free(text);
}

static void tools_that_are_no_array_are_refused(void **state)
{
    (void)state;
    ox_parse *p;
    ox_err err = OX_ERR_INIT;
    const ox_tool_format *f = ox_tool_format_named(OX_STR("hermes"));
    assert_int_equal(ox_parse_open(&p, f, OX_STR(""), OX_STR("{}"), false, &err), OX_BAD_ARGUMENT);
    assert_int_not_equal(ox_parse_open(&p, f, OX_STR(""), OX_STR("[1,"), false, NULL), OX_OK);
    assert_null(ox_tool_format_named(OX_STR("no such")));
}

static void templates_tell_their_format(void **state)
{
    (void)state;
    assert_string_equal(ox_tool_format_of(OX_STR("{{ messages }}"))->name, "plain");
    assert_string_equal(ox_tool_format_of(OX_STR("x <think> y"))->name, "think");
    assert_string_equal(ox_tool_format_of(OX_STR("<tool_call>\\n{\"name\""))->name, "hermes");
    assert_string_equal(ox_tool_format_of(OX_STR("<tool_call> <function="))->name, "qwen3-coder");
    assert_string_equal(ox_tool_format_of(OX_STR("[TOOL_CALLS] [ARGS] [CALL_ID]"))->name,
                        "mistral-v13");
    assert_true(ox_tool_format_mentions(ox_tool_format_named(OX_STR("mistral-v3")),
                                        OX_STR("[TOOL_CALLS]")));
    assert_false(
        ox_tool_format_mentions(ox_tool_format_named(OX_STR("mistral-v3")), OX_STR("</s>")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_gives_its_events),
        cmocka_unit_test(every_format_has_an_example),
        cmocka_unit_test(events_do_not_depend_on_how_the_text_is_cut),
        cmocka_unit_test(calls_are_content_where_none_are_wanted),
        cmocka_unit_test(arguments_stream_as_they_come),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(tools_that_are_no_array_are_refused),
        cmocka_unit_test(templates_tell_their_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
