/* render_template.c - renders one chat template for tests: the template is a file, the request is
 * JSON on standard input, the text goes to standard output.
 *
 * Request: {"messages", "tools", "documents", "extra", "add_generation_prompt", "tokens": {name:
 * text}, "now", "utc_offset"}, or an array of such; for an array, or with -j, every answer is one
 * line of JSON: {"text", "spans"} or {"error", "status"}. -b N repeats and prints microseconds. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "text/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 32, REQUEST_MAX = 64 << 20 };

static size_t read_tokens(const ox_json *node, ox_template_token *tokens)
{
    size_t n = 0;
    for (; n < ox_json_n(node) && n < TOKENS_MAX; n++) {
        const ox_json_member *m = ox_json_member_at(node, n);
        tokens[n] = (ox_template_token){ox_json_str(&m->key), ox_json_str(&m->value)};
    }
    return n;
}

static ox_template_input input_of(const ox_json *r, ox_template_token *tokens)
{
    const ox_json *tools = ox_json_get(r, "tools"), *documents = ox_json_get(r, "documents");
    return (ox_template_input){
        .messages = ox_json_get(r, "messages"),
        .tools = tools,
        .documents = documents,
        .extra = ox_json_get(r, "extra"),
        .add_generation_prompt = ox_json_true(ox_json_get(r, "add_generation_prompt")),
        .tokens = tokens,
        .n_tokens = read_tokens(ox_json_get(r, "tokens"), tokens),
        .now_seconds = ox_json_i64(ox_json_get(r, "now")),
        .utc_offset_seconds = (int32_t)ox_json_i64(ox_json_get(r, "utc_offset")),
    };
}

static void answer(const ox_template *t, const ox_json *request, bool as_json, int *code)
{
    ox_template_token tokens[TOKENS_MAX];
    const ox_template_input in = input_of(request, tokens);
    ox_template_spans spans = {0};
    ox_err err = OX_ERR_INIT;
    ox_buf text = {0}, line = {0};
    const ox_status st = ox_template_render(t, &in, &text, &spans, &err);
    ox_json_writer w = {.out = &line};
    if (as_json) {
        ox_json_begin_object(&w);
        if (st) {
            ox_json_put_key(&w, "error");
            ox_json_put_z(&w, err.msg);
            ox_json_put_key(&w, "status");
            ox_json_put_i64(&w, st);
        } else {
            ox_json_put_key(&w, "text");
            ox_json_put_str(&w, ox_buf_view(&text));
            ox_json_put_key(&w, "spans");
            ox_json_begin_array(&w);
            for (size_t i = 0; i < spans.n; i++) {
                ox_json_put_u64(&w, spans.p[i].begin);
                ox_json_put_u64(&w, spans.p[i].end);
            }
            ox_json_end_array(&w);
        }
        ox_json_end_object(&w);
        ox_buf_put_c(&line, '\n');
        fwrite(line.p, 1, line.n, stdout);
    } else if (st) {
        fprintf(stderr, "render_template: %s\n", err.msg);
        *code = st == OX_UNSUPPORTED || st == OX_BAD_FILE ? 3 : 1;
    } else {
        fwrite(text.p ? text.p : "", 1, text.n, stdout);
    }
    ox_vec_deinit(&spans);
    ox_buf_deinit(&text);
    ox_buf_deinit(&line);
}

static void bench(ox_str source, const ox_template *t, const ox_json *request, int n)
{
    ox_template_token tokens[TOKENS_MAX];
    const ox_template_input in = input_of(request, tokens);
    ox_template_spans spans = {0};
    ox_buf text = {0};
    const double t0 = ox_clock_seconds();
    for (int i = 0; i < n; i++) {
        ox_template *again = NULL;
        ox_err err = OX_ERR_INIT;
        if (ox_template_open(&again, source, &err)) break;
        ox_template_close(&again);
    }
    const double t1 = ox_clock_seconds();
    for (int i = 0; i < n; i++) {
        ox_err err = OX_ERR_INIT;
        ox_buf_clear(&text);
        spans.n = 0;
        if (ox_template_render(t, &in, &text, &spans, &err)) {
            fprintf(stderr, "%s\n", err.msg);
            break;
        }
    }
    const double t2 = ox_clock_seconds();
    printf("%zu bytes of template, parse %.2f us, render %.2f us, %zu bytes out\n", source.n,
           (t1 - t0) / n * 1e6, (t2 - t1) / n * 1e6, text.n);
    ox_vec_deinit(&spans);
    ox_buf_deinit(&text);
}

int main(int argc, char **argv)
{
    ox_buf source = {0}, request = {0};
    ox_arena arena = OX_ARENA_INIT;
    ox_template *t = NULL;
    const ox_json *root = NULL;
    ox_err err = OX_ERR_INIT;
    bool as_json = false;
    int i = 1, repeat = 0, code = 0;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (!strcmp(argv[i], "-j")) as_json = true;
        if (!strcmp(argv[i], "-b") && i + 1 < argc) repeat = (int)strtol(argv[++i], NULL, 10);
    }
    if (i + 1 != argc) {
        fprintf(stderr, "usage: render_template [-j] [-b N] TEMPLATE < request.json\n");
        return 2;
    }
    ox_status st = ox_file_read(&source, argv[i], REQUEST_MAX, &err);
    if (!st) st = ox_file_read(&request, "-", REQUEST_MAX, &err);
    if (!st) st = ox_json_parse(&root, &arena, ox_buf_view(&request), &err);
    if (!st) st = ox_template_open(&t, ox_buf_view(&source), &err);
    const bool many = ox_json_is(root, OX_JSON_ARRAY);
    if (st && as_json && root) {
        ox_buf line = {0};
        ox_json_quote(&line, ox_str_of(err.msg));
        for (size_t k = 0; k < (many ? ox_json_n(root) : 1); k++)
            printf("{\"error\": %s, \"status\": %d}\n", line.p, (int)st);
        ox_buf_deinit(&line);
    } else if (st) {
        fprintf(stderr, "render_template: %s\n", err.msg);
        code = st == OX_UNSUPPORTED || st == OX_BAD_FILE ? 3 : 1;
    } else if (repeat) {
        bench(ox_buf_view(&source), t, many ? ox_json_at(root, 0) : root, repeat);
    } else if (many) {
        for (size_t k = 0; k < ox_json_n(root); k++)
            answer(t, ox_json_at(root, k), true, &code);
    } else {
        answer(t, root, as_json, &code);
    }
    ox_template_close(&t);
    ox_arena_deinit(&arena);
    ox_buf_deinit(&source);
    ox_buf_deinit(&request);
    return code;
}
