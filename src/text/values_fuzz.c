/* values_fuzz.c - any JSON as the values of templates that do much with them: rendering ends and
 * leaves nothing behind when it fails. */
#include "text/template.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const sources[] = {
    "{% for m in messages %}{{ m.role }}{{ m['content'] | trim | upper }}{% if m.tool_calls %}"
    "{% for t in m.tool_calls %}{{ t.function.arguments | tojson(indent=2) }}{{ t.id }}{% endfor %}"
    "{% endif %}{% endfor %}{{ tools | tojson }}{{ x | default('none') }}",
    "{% set ns = namespace(a=0) %}{% for k, v in x.items() %}{{ k }}={{ v }};{% set ns.a = ns.a + 1"
    " %}{% endfor %}{{ ns.a }}{{ x | dictsort }}{{ y | sort | join(',') }}{{ y[1:] }}{{ y[::-1] }}",
    "{{ x + y }}{{ x * 2 }}{{ x ~ y }}{{ x in y }}{{ x == y }}{{ x < y }}{{ x | length }}"
    "{{ x | string | replace('a', 'bb') }}{{ '%s %r' % (x, y) }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }}"
    "{{ y | groupby('a') }}{{ y | unique | list }}{{ x.split('a') }}{{ x | int }}{{ x | float }}",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_err err = OX_ERR_INIT;
    const bool is = !ox_json_parse(&root, &arena, (ox_str){(const char *)data, n}, &err);
    for (size_t i = 0; is && i < OX_COUNT(sources); i++) {
        ox_template *t = NULL;
        ox_buf text = {0};
        ox_template_spans spans = {0};
        if (ox_template_open(&t, ox_str_of(sources[i]), &err)) abort();
        const ox_template_input in = {
            .messages = ox_json_get(root, "messages"),
            .tools = ox_json_get(root, "tools"),
            .documents = ox_json_get(root, "documents"),
            .extra = ox_json_is(root, OX_JSON_OBJECT) ? root : NULL,
            .limits = {.output_bytes = 1 << 16, .memory_bytes = 16 << 20, .steps = 100000},
        };
        if (ox_template_render(t, &in, &text, &spans, &err) && (text.n || spans.n)) abort();
        ox_vec_deinit(&spans);
        ox_buf_deinit(&text);
        ox_template_close(&t);
    }
    ox_arena_deinit(&arena);
    return 0;
}
