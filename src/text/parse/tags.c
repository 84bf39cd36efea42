/* tags.c - calls written as tags, a tag per argument: values become JSON. What the tools declare as
 * a string is passed on as it comes; other values wait until they are whole. */
#include "text/parse/parse_internal.h"

#include "base/mem.h"

#include <string.h>

void ox_parse_tag_name(ox_parse *p)
{
    if (!ox_parse_commit(p)) {
        ox_parse_give_up(p);
        return;
    }
    p->at = AT_TAG_BODY;
    ox_buf_clear(&p->key);
}

/* The text as the inside of a JSON string. */
static void put_escaped(ox_parse *p, const char *text, size_t n)
{
    ox_buf b = {0};
    ox_json_quote(&b, (ox_str){text, n});
    if (b.n >= 2) ox_parse_args(p, b.p + 1, b.n - 2);
    if (b.failed) p->val.failed = true;
    ox_buf_deinit(&b);
}

void ox_parse_tag_key(ox_parse *p, char type)
{
    ox_str key = ox_buf_view(&p->key), name = ox_buf_view(&p->name);
    while (key.n && (unsigned char)key.p[0] <= ' ')
        key.p++, key.n--;
    while (key.n && (unsigned char)key.p[key.n - 1] <= ' ')
        key.n--;
    while (name.n && (unsigned char)name.p[name.n - 1] <= ' ')
        name.n--;
    p->type = type ? type : ox_parse_type(p, name, key);
    ox_parse_args(p, p->n_keys ? ", \"" : "{\"", p->n_keys ? 3 : 2);
    put_escaped(p, key.p, key.n);
    ox_parse_args(p, "\": ", 3);
    p->n_keys++;
    p->has_args = true;
    p->streaming = p->type == 's';
    if (p->streaming) ox_parse_args(p, "\"", 1);
    ox_buf_clear(&p->val);
    ox_buf_clear(&p->key);
    p->skip_lines = p->f->value_lines ? 1 : 0;
    p->at = p->f->value_open ? AT_TAG_GAP : AT_TAG_VALUE;
}

/* Bytes of a character that is not complete at the end of the text. */
static size_t incomplete(const char *s, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char c = (unsigned char)s[n - back];
        if (c < 0x80) return 0;
        if (c >= 0xc0) return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > back ? back : 0;
    }
    return 0;
}

/* val holds what is not given out: a newline that may be the tag's, half a character. */
static void stream(ox_parse *p, bool last)
{
    size_t n = p->val.n;
    if (p->f->value_lines && n && p->val.p[n - 1] == '\n') n--;
    if (!last && n == p->val.n) n -= incomplete(p->val.p, n);
    if (!n) return;
    put_escaped(p, p->val.p, n);
    memmove(p->val.p, p->val.p + n, p->val.n - n);
    p->val.n -= n;
}

void ox_parse_tag_value(ox_parse *p, const char *text, size_t n)
{
    if (p->skip_lines && n && *text == '\n') {
        text++;
        n--;
    }
    p->skip_lines = 0;
    if (!ox_parse_keep(p, &p->val, text, n, OX_PARSE_HELD)) return;
    if (p->streaming) stream(p, false);
}

static bool is_json(ox_str s, bool *is_text)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *v;
    ox_err ignored = OX_ERR_INIT;
    const bool yes = s.n && !ox_json_parse(&v, &arena, s, &ignored);
    *is_text = yes && ox_json_is(v, OX_JSON_STRING);
    ox_arena_deinit(&arena);
    return yes;
}

void ox_parse_tag_value_end(ox_parse *p)
{
    if (p->streaming) {
        stream(p, true);
        ox_parse_args(p, "\"", 1);
    } else {
        ox_str v = ox_buf_view(&p->val);
        if (p->f->value_lines && v.n && v.p[v.n - 1] == '\n') v.n--;
        bool text;
        if (p->type == 'b' && (ox_str_is(v, "True") || ox_str_is(v, "False")))
            ox_parse_args(p, ox_str_is(v, "True") ? "true" : "false", ox_str_is(v, "True") ? 4 : 5);
        else if (is_json(v, &text) && (!text || p->type == 'j'))
            ox_parse_args(p, v.p, v.n);
        else {
            ox_parse_args(p, "\"", 1);
            put_escaped(p, v.p, v.n);
            ox_parse_args(p, "\"", 1);
        }
    }
    ox_buf_clear(&p->val);
    p->skip_lines = 0;
    p->at = AT_TAG_BODY;
}
