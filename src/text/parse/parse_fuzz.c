/* parse_fuzz.c - any bytes as an answer in any format: whole and byte by byte it gives the same
 * events; arguments that the parser writes itself are JSON. Byte 0: the format; byte 1: bit 0 tools
 * are given, bit 1 the prompt ends with the mark of reasoning, bit 2 calls are content. */
#include "base/json.h"
#include "text/parse/parse.h"

#include <stdlib.h>

typedef struct record {
    ox_buf all, args;
    ox_part last;
    bool any, must_be_json;
} record;

static void on_event(void *user, const ox_parser_event *e)
{
    record *r = user;
    const bool joins =
        r->any && r->last == e->part && (e->part < OX_PART_CALL || e->part == OX_PART_ARGUMENTS);
    if (!joins) ox_buf_printf(&r->all, "\n%d %zu ", (int)e->part, e->call);
    ox_buf_put(&r->all, e->text, e->n);
    r->any = true;
    r->last = e->part;
    if (e->part == OX_PART_CALL) ox_buf_clear(&r->args);
    if (e->part == OX_PART_ARGUMENTS) ox_buf_put(&r->args, e->text, e->n);
    if (e->part != OX_PART_CALL_END || !r->must_be_json) return;
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *v;
    if (ox_json_parse(&v, &arena, ox_buf_view(&r->args), NULL) || !ox_json_is(v, OX_JSON_OBJECT))
        abort();
    ox_arena_deinit(&arena);
}

static void run(const ox_tool_format *f, ox_str text, unsigned flags, size_t step, record *r)
{
    static const char tools[] =
        "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":"
        "\"string\"},\"n\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"}}}}]";
    ox_parse *p;
    ox_status st = OX_OK;
    *r = (record){.must_be_json = f->body == OX_BODY_PYTHON || f->body == OX_BODY_BRACES};
    if (ox_parse_open(&p, f, flags & 2 ? ox_str_of(f->think[0]) : OX_STR(""),
                      flags & 1 ? OX_STR(tools) : OX_STR(""), flags & 4, NULL))
        abort();
    for (size_t i = 0; i < text.n && !st; i += step)
        st = ox_parse_feed(p, (ox_str){text.p + i, text.n - i < step ? text.n - i : step}, on_event,
                           r, NULL);
    if (!st) st = ox_parse_finish(p, on_event, r, NULL);
    ox_parse_close(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t n_formats = 0;
    record a, b;
    if (n < 2) return 0;
    while (ox_tool_formats[n_formats].name)
        n_formats++;
    const ox_tool_format *f = &ox_tool_formats[data[0] % n_formats];
    const ox_str text = {(const char *)data + 2, n - 2};
    run(f, text, data[1], text.n + 1, &a);
    run(f, text, data[1], 1, &b);
    if (!ox_str_eq(ox_buf_view(&a.all), ox_buf_view(&b.all))) abort();
    ox_buf_deinit(&a.all);
    ox_buf_deinit(&a.args);
    ox_buf_deinit(&b.all);
    ox_buf_deinit(&b.args);
    return 0;
}
