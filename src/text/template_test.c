/* template_test.c - templates against answers of jinja2 (tests/data/templates, written by
 * tools/gen_template_golden.py), and what jinja2 can't tell: spans, limits, failing memory. */
#include "base/arena.h"
#include "base/fs.h"
#include "base/mem.h"
#include "text/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define DATA OXGEN_SOURCE_DIR "/tests/data/templates/"

typedef struct rendering {
    ox_status st;
    ox_err err;
    ox_buf text;
    ox_template_spans spans;
} rendering;

static void rendering_deinit(rendering *r)
{
    ox_buf_deinit(&r->text);
    ox_vec_deinit(&r->spans);
}

static rendering render_with(ox_str source, const ox_template_input *in)
{
    rendering r = {.err = OX_ERR_INIT};
    ox_template *t;
    r.st = ox_template_open(&t, source, &r.err);
    if (!r.st) r.st = ox_template_render(t, in, &r.text, &r.spans, &r.err);
    ox_template_close(&t);
    return r;
}

static const ox_json *parse(ox_arena *arena, const char *text)
{
    const ox_json *root;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_json_parse(&root, arena, ox_str_of(text), &err), OX_OK);
    return root;
}

static const ox_json *parse_file(ox_arena *arena, const char *path)
{
    ox_buf b = {0};
    const ox_json *root;
    ox_err err = OX_ERR_INIT;
    if (ox_file_read(&b, path, 64 << 20, &err) ||
        ox_json_parse(&root, arena, ox_buf_view(&b), &err))
        fail_msg("%s: %s", path, err.msg);
    ox_buf_deinit(&b);
    return root;
}

/* Compares with {"want"} or {"error"}; prints what differs. */
static bool agrees(const rendering *r, const ox_json *answer, ox_str name)
{
    const ox_json *want = ox_json_get(answer, "want");
    if (!want) {
        if (r->st && strstr(r->err.msg, "line ")) return true;
        print_message("%.*s\n  must fail with a line number, gave: %s%s\n", OX_STR_ARGS(name),
                      r->text.p ? r->text.p : "", r->err.msg);
        return false;
    }
    if (!r->st && ox_str_eq(ox_buf_view(&r->text), ox_json_str(want))) return true;
    print_message("%.*s\n  want: %.*s\n  got:  %s%s\n", OX_STR_ARGS(name),
                  OX_STR_ARGS(ox_json_str(want)), r->text.p ? r->text.p : "", r->err.msg);
    return false;
}

static void small_templates_render_as_in_jinja2(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = parse_file(&arena, DATA "cases.json");
    const ox_json *cases = ox_json_get(root, "cases");
    const ox_template_input in = {.extra = ox_json_get(root, "vars"), .now_seconds = 1785931445};
    size_t n_bad = 0;
    assert_true(ox_json_n(cases) > 1000);
    for (size_t i = 0; i < ox_json_n(cases); i++) {
        const ox_json *c = ox_json_at(cases, i);
        const ox_str source = ox_json_str(ox_json_get(c, "t"));
        rendering r = render_with(source, &in);
        n_bad += !agrees(&r, c, source);
        rendering_deinit(&r);
    }
    ox_arena_deinit(&arena);
    assert_int_equal(n_bad, 0);
}

static void conversations_render_as_in_jinja2(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = parse_file(&arena, DATA "conversations.json");
    const ox_json *answers = ox_json_get(root, "answers"), *names = ox_json_get(root, "tokens");
    ox_template_token tokens[8];
    size_t n_bad = 0;
    for (size_t i = 0; i < ox_json_n(names) && i < 8; i++) {
        const ox_json_member *m = ox_json_member_at(names, i);
        tokens[i] = (ox_template_token){ox_json_str(&m->key), ox_json_str(&m->value)};
    }
    assert_true(ox_json_n(answers) > 100);
    for (size_t i = 0; i < ox_json_n(answers); i++) {
        const ox_json *a = ox_json_at(answers, i);
        const ox_json *r = ox_json_get_str(ox_json_get(root, "requests"),
                                           ox_json_str(ox_json_get(a, "conversation")));
        char path[512];
        ox_buf source = {0};
        ox_err err = OX_ERR_INIT;
        snprintf(path, sizeof(path), DATA "%.*s",
                 OX_STR_ARGS(ox_json_str(ox_json_get(a, "template"))));
        assert_int_equal(ox_file_read(&source, path, 1 << 20, &err), OX_OK);
        const ox_template_input in = {
            .messages = ox_json_get(r, "messages"),
            .tools = ox_json_get(r, "tools"),
            .documents = ox_json_get(r, "documents"),
            .extra = ox_json_get(r, "extra"),
            .add_generation_prompt = ox_json_true(ox_json_get(r, "add_generation_prompt")),
            .tokens = tokens,
            .n_tokens = ox_json_n(names),
            .now_seconds = ox_json_i64(ox_json_get(root, "now")),
        };
        rendering got = render_with(ox_buf_view(&source), &in);
        n_bad += !agrees(&got, a, ox_str_of(path));
        rendering_deinit(&got);
        ox_buf_deinit(&source);
    }
    ox_arena_deinit(&arena);
    assert_int_equal(n_bad, 0);
}

/* The text with the caller's bytes in brackets. */
static void expect_marked(const char *source, const char *vars, const char *want)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_template_token bos = {OX_STR("bos_token"), OX_STR("<s>")};
    const ox_template_input in = {.extra = parse(&arena, vars), .tokens = &bos, .n_tokens = 1};
    rendering r = render_with(ox_str_of(source), &in);
    ox_buf marked = {0};
    size_t at = 0;
    for (size_t i = 0; i < r.spans.n; i++) {
        const ox_template_span s = r.spans.p[i];
        assert_true(s.begin < s.end && s.end <= r.text.n && (i == 0 || s.begin > at));
        ox_buf_put(&marked, r.text.p + at, s.begin - at);
        ox_buf_put_c(&marked, '[');
        ox_buf_put(&marked, r.text.p + s.begin, s.end - s.begin);
        ox_buf_put_c(&marked, ']');
        at = s.end;
    }
    ox_buf_put(&marked, r.text.p + at, r.text.n - at);
    ox_buf_put_c(&marked, 0);
    assert_string_equal(r.err.msg, "");
    assert_string_equal(marked.p, want);
    ox_buf_deinit(&marked);
    rendering_deinit(&r);
    ox_arena_deinit(&arena);
}

static void spans_follow_the_callers_bytes(void **state)
{
    (void)state;
    const char *v = "{\"s\": \"Ab, c\", \"d\": {\"k\": \"v\\\"\"}, \"n\": 5, \"e\": \"\"}";
    expect_marked("{{ bos_token }}x{{ s }}y", v, "<s>x[Ab, c]y");
    expect_marked("{{ 'x' + s + 'y' }}", v, "x[Ab, c]y");
    expect_marked("{{ 'x' ~ s ~ n ~ s }}", v, "x[Ab, c]5[Ab, c]");
    expect_marked("{{ ('  ' ~ s ~ ' ')|trim }}", v, "[Ab, c]");
    expect_marked("{{ ('<' ~ s ~ '>')[:3] }}", v, "<[Ab]");
    expect_marked("{{ ('<' ~ s ~ '>')[::-1] }}", v, ">[c ,bA]<");
    expect_marked("{{ ('x' ~ s)|upper }}", v, "X[AB, C]");
    expect_marked("{{ s|replace(',', ';') }}", v, "[Ab];[ c]");
    expect_marked("{{ 'aXb'|replace('X', s) }}", v, "a[Ab, c]b");
    expect_marked("{{ s.split(', ')|join('|') }}", v, "[Ab]|[c]");
    expect_marked("{{ d|tojson }}", v, "{\"[k]\": \"[v\\\"]\"}");
    expect_marked("{{ [s, 1] }}", v, "['[Ab, c]', 1]");
    expect_marked("{{ '%s-%s'|format(s, 1) }}{{ '{}'.format(s) }}", v, "[Ab, c]-1[Ab, c]");
    expect_marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(s) }}{{ m('t') }}", v,
                  "<[Ab, c]><t>");
    expect_marked("{% set x %}<{{ s }}>{% endset %}{{ x }}{{ x|length }}", v, "<[Ab, c]>7");
    expect_marked("{{ '{\"a\": \"b\"}'|from_json }}", v, "{'a': 'b'}");
    expect_marked("{% set p = '{\"a\": \"' ~ s ~ '\"}' %}{{ (p|from_json).a }}", v, "[Ab, c]");
    expect_marked("{% for c in s %}{{ c }}{% endfor %}{{ e }}{{ s[0] }}", v, "[Ab, cA]");
    expect_marked("{% set ns = namespace(t='') %}{% for i in range(400) %}"
                  "{% set ns.t = ns.t + 'a' + (s if i == 399 else 'b') %}{% endfor %}"
                  "{{ ns.t[-7:] }}",
                  v, "ba[Ab, c]");
}

static void a_shared_prefix_keeps_its_text(void **state)
{
    (void)state;
    /* both grow from the same long string, whose spare room only the first may use */
    const char *source = "{% set a = 'x' * 600 %}{% set a = a + 'y' %}{% set b = a + '1' %}"
                         "{% set c = a + '2' %}{{ b[-2:] }}{{ c[-2:] }}{{ (b + '3')[-2:] }}"
                         "{{ b|length }}{{ c|length }}";
    const ox_template_input in = {0};
    rendering r = render_with(ox_str_of(source), &in);
    assert_string_equal(r.text.p, "y1y213602602");
    rendering_deinit(&r);
}

static void expect_refusal(const char *source, const ox_template_limits *limits, ox_status st,
                           const char *text)
{
    ox_template_input in = {0};
    if (limits) in.limits = *limits;
    rendering r = render_with(ox_str_of(source), &in);
    if (!strstr(r.err.msg, text)) print_message("%s\n  said: %s\n", source, r.err.msg);
    assert_int_equal(r.st, st);
    assert_non_null(strstr(r.err.msg, text));
    assert_int_equal(r.text.n, 0);
    assert_int_equal(r.spans.n, 0);
    rendering_deinit(&r);
}

static void templates_without_end_are_refused(void **state)
{
    (void)state;
    const ox_template_limits small = {.output_bytes = 1000, .steps = 100000};
    const ox_template_limits tiny = {.memory_bytes = 1 << 20};
    const ox_status no = OX_UNSUPPORTED;
    expect_refusal("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                   &small, no, "does not end");
    expect_refusal("{% set l = [1] %}{% for i in l %}{% set _ = l.append(1) %}{% endfor %}", NULL,
                   no, "line 1");
    expect_refusal("{% for i in range(9999) %}0123456789{% endfor %}", &small, no, "1000 bytes");
    expect_refusal("{% set x = 'a' * 999999999999 %}", NULL, no, "too long");
    expect_refusal("{% set ns = namespace(s='ab') %}{% for i in range(99) %}"
                   "{% set ns.s = ns.s + ns.s %}{% endfor %}",
                   &tiny, no, "memory");
    expect_refusal("{% set l = [] %}{% for i in range(99999) %}{% set _ = l.append([1, 2, 3]) %}"
                   "{% endfor %}",
                   &tiny, no, "memory");
    expect_refusal("{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}", NULL, no, "calls itself");
    expect_refusal("{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", NULL, no, "nested");
    expect_refusal("{% set l = [] %}{% set _ = l.append(l) %}{{ l == [l] }}", NULL, no, "nested");
    expect_refusal("{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}", NULL, no, "nested");
    expect_refusal("{% set d = {} %}{% set _ = d.update({1: d}) %}{{ d }}", NULL, no, "nested");
    expect_refusal("{{ range(1000000) }}", NULL, no, "range");
    expect_refusal("{{ '%999999999d' % 1 }}", NULL, no, "too large");
    expect_refusal("{% include 'x' %}", NULL, no, "include");
    expect_refusal("{{ 99999999999999999999 }}", NULL, no, "64 bits");
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *open, *middle, *close;
    } rows[] = {
        {"(", "1", ")"},  {"[", "1", "]"},   {"{1:", "1", "}"},
        {"- ", "1", ""},  {"not ", "1", ""}, {"1 if 1 else ", "1", ""},
        {"a(", "1", ")"}, {"a[", "1", "]"},  {"1|d(", "1", ")"},
    };
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        ox_buf b = {0};
        ox_buf_put_z(&b, "{{ ");
        for (int k = 0; k < 200; k++)
            ox_buf_put_z(&b, rows[i].open);
        ox_buf_put_z(&b, rows[i].middle);
        for (int k = 0; k < 200; k++)
            ox_buf_put_z(&b, rows[i].close);
        ox_buf_put_z(&b, " }}");
        expect_refusal(b.p, NULL, OX_UNSUPPORTED, "nested more than");
        ox_buf_clear(&b);
        for (int k = 0; k < 5000; k++)
            ox_buf_put_z(&b, "{% if 1 %}");
        expect_refusal(b.p, NULL, OX_UNSUPPORTED, "nested more than");
        ox_buf_clear(&b);
        ox_buf_put_z(&b, "{{ 1");
        for (int k = 0; k < 100000; k++)
            ox_buf_put_z(&b, "+1");
        ox_buf_put_z(&b, " }}");
        expect_refusal(b.p, NULL, OX_UNSUPPORTED, "too deeply");
        ox_buf_deinit(&b);
    }
}

static void messages_name_the_line_and_the_thing(void **state)
{
    (void)state;
    expect_refusal("a\nb\n{{ raise_exception('no system role') }}", NULL, OX_FAILED,
                   "line 3: no system role");
    expect_refusal("\n{{ foo.bar }}", NULL, OX_FAILED, "line 2: 'foo' is undefined");
    expect_refusal("\n\n{% if x %}", NULL, OX_BAD_FILE, "line 3");
    expect_refusal("{{ 'a' + 1 }}", NULL, OX_FAILED, "can't add str and int");
    expect_refusal("{{ 1|nofilter }}", NULL, OX_UNSUPPORTED, "nofilter");
    expect_refusal("{{ 9223372036854775807 + 1 }}", NULL, OX_FAILED, "64 bits");
    expect_refusal("{{ {'a': 1}.a.b.c }}", NULL, OX_FAILED, "no attribute 'b'");
}

static void a_template_tells_what_it_uses(void **state)
{
    (void)state;
    ox_template *t;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_template_open(&t, OX_STR("{% if tools %}{{ x }}{% endif %}"), &err), OX_OK);
    assert_true(ox_template_uses(t, OX_STR("tools")));
    assert_false(ox_template_uses(t, OX_STR("documents")));
    ox_template_close(&t);
    assert_null(t);
}

/* Every allocation of opening and rendering fails once; nothing leaks or breaks. */
static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    const char *source = "{% macro m(a, b=2, *c) %}{% endmacro %}";
    const ox_template_input in = {
        .messages = parse(&arena, "[{\"role\": \"user\", \"content\": \"hi\"}]"),
        .extra = parse(&arena, "{\"d\": {\"a\": [1, 2.5, \"x\"]}}"),
    };
    source = "{% macro m(a, b=2) %}{{ a ~ b }}{% endmacro %}{% for x in messages %}"
             "{{ m(x.content|upper) }}{{ d|tojson }}{{ d }}{{ '%s' % 1.5 }}{{ [3, 1]|sort }}"
             "{{ x.role.split('s')|join('a' 'b') }}{{ '{}'.format('x' * 700 + 'y') }}{% endfor %}"
             "{% set q %}{{ '[1]'|from_json }}{% endset %}{{ q }}";
    long n = 1;
    for (ox_status st = OX_NO_MEMORY; st; n++) {
        assert_true(n < 2000);
        ox_mem_fail_after(n);
        rendering r = render_with(ox_str_of(source), &in);
        ox_mem_fail_after(0);
        st = r.st;
        if (st && st != OX_NO_MEMORY) print_message("%ld: %s\n", n, r.err.msg);
        assert_true(!st || st == OX_NO_MEMORY);
        rendering_deinit(&r);
    }
    ox_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_templates_render_as_in_jinja2),
        cmocka_unit_test(conversations_render_as_in_jinja2),
        cmocka_unit_test(spans_follow_the_callers_bytes),
        cmocka_unit_test(a_shared_prefix_keeps_its_text),
        cmocka_unit_test(templates_without_end_are_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(messages_name_the_line_and_the_thing),
        cmocka_unit_test(a_template_tells_what_it_uses),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
