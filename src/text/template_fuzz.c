/* template_fuzz.c - any bytes as a template, rendered for one fixed conversation with small
 * limits: it must end, stay in bounds and give sorted spans. */
#include "text/template.h"

#include <stdlib.h>

static const char request[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be \\u00e9.\"},"
    " {\"role\": \"user\", \"content\": \" hi <|x|>\\n\"},"
    " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"a\", \"function\":"
    " {\"name\": \"f\", \"arguments\": {\"x\": [1, 2.5, null, true], \"items\": \"y\"}}}]}],"
    " \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\":"
    " {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}}}}}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_err err = OX_ERR_INIT;
    ox_template *t = NULL;
    const ox_template_token tokens[] = {{OX_STR("bos_token"), OX_STR("<s>")}};
    if (ox_json_parse(&root, &arena, OX_STR(request), &err)) abort();
    if (!ox_template_open(&t, (ox_str){(const char *)data, n}, &err)) {
        ox_buf text = {0};
        ox_template_spans spans = {0};
        const ox_template_input in = {
            .messages = ox_json_get(root, "messages"),
            .tools = ox_json_get(root, "tools"),
            .add_generation_prompt = true,
            .tokens = tokens,
            .n_tokens = 1,
            .now_seconds = 1785931445,
            .limits = {.output_bytes = 1 << 16, .memory_bytes = 16 << 20, .steps = 100000},
        };
        if (ox_template_render(t, &in, &text, &spans, &err) && (text.n || spans.n)) abort();
        for (size_t i = 0, at = 0; i < spans.n; at = spans.p[i++].end)
            if (spans.p[i].begin < at || spans.p[i].end <= spans.p[i].begin ||
                spans.p[i].end > text.n)
                abort();
        ox_vec_deinit(&spans);
        ox_buf_deinit(&text);
    }
    ox_template_close(&t);
    ox_arena_deinit(&arena);
    return 0;
}
