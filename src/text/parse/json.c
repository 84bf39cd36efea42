/* json.c - calls written as JSON objects: names and ids are read, arguments passed on byte by byte,
 * everything else is stepped over. */
#include "text/parse/parse_internal.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

value_step ox_value_step(value *v, char c)
{
    if (v->in_string) {
        if (v->escaped)
            v->escaped = false;
        else if (c == '\\')
            v->escaped = true;
        else if (c == '"')
            v->in_string = false;
        return !v->in_string && !v->depth ? VALUE_LAST : VALUE_MORE;
    }
    if (!v->started) {
        v->started = true;
        v->scalar = c != '{' && c != '[' && c != '"';
    } else if (v->scalar && !v->depth && (is_space(c) || c == ',' || c == '}' || c == ']')) {
        return VALUE_BEHIND;
    }
    if (c == '"') {
        v->in_string = true;
    } else if (c == '{' || c == '[') {
        v->depth++;
    } else if (c == '}' || c == ']') {
        v->depth--;
        if (v->depth <= 0) return VALUE_LAST;
    }
    return VALUE_MORE;
}

static void put_code(ox_buf *out, uint32_t c)
{
    char b[4];
    size_t n = 0;
    if (c < 0x80) {
        b[n++] = (char)c;
    } else if (c < 0x800) {
        b[n++] = (char)(0xc0 | c >> 6);
        b[n++] = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        b[n++] = (char)(0xe0 | c >> 12);
        b[n++] = (char)(0x80 | (c >> 6 & 63));
        b[n++] = (char)(0x80 | (c & 63));
    } else {
        b[n++] = (char)(0xf0 | c >> 18);
        b[n++] = (char)(0x80 | (c >> 12 & 63));
        b[n++] = (char)(0x80 | (c >> 6 & 63));
        b[n++] = (char)(0x80 | (c & 63));
    }
    ox_buf_put(out, b, n);
}

/* A code unit of four hexadecimal digits: halves of a pair join, a half alone is U+FFFD. */
static void put_unit(unescape *u, ox_buf *out)
{
    const bool high = u->code >= 0xd800 && u->code < 0xdc00,
               low = u->code >= 0xdc00 && u->code < 0xe000;
    if (u->high && low) {
        put_code(out, 0x10000 + ((u->high - 0xd800) << 10) + (u->code - 0xdc00));
        u->high = 0;
        return;
    }
    if (u->high) put_code(out, 0xfffd);
    u->high = high ? u->code : 0;
    if (!high) put_code(out, low ? 0xfffd : u->code);
}

bool ox_unescape(unescape *u, char c, ox_buf *out)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    if (u->n_hex) {
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : 0;
        u->code = u->code << 4 | (uint32_t)digit;
        if (!--u->n_hex) put_unit(u, out);
        return false;
    }
    if (u->escaped && c == 'u') {
        u->escaped = false;
        u->n_hex = 4;
        u->code = 0;
        return false;
    }
    if (u->high && !(c == '\\' && !u->escaped)) { /* nothing joined it */
        put_code(out, 0xfffd);
        u->high = 0;
    }
    if (u->escaped) {
        const char *at = c ? strchr(from, c) : NULL;
        u->escaped = false;
        ox_buf_put_c(out, at ? to[at - from] : c);
        return false;
    }
    if (c == '\\')
        u->escaped = true;
    else if (c != '"')
        ox_buf_put_c(out, c);
    return c == '"';
}

void ox_parse_json_start(ox_parse *p)
{
    p->json = JSON_VALUE0;
    p->is_array = false;
    p->nested = 0;
}

static bool key_is(const ox_parse *p, const char *a, const char *b)
{
    const ox_str key = ox_buf_view(&p->key);
    return ox_str_is(key, a) || (b && ox_str_is(key, b));
}

static void object_starts(ox_parse *p)
{
    ox_buf_clear(&p->name);
    ox_buf_clear(&p->id);
    ox_buf_clear(&p->early);
    p->has_args = false;
    p->nested = 1;
    p->json = JSON_KEY;
    if (!p->in_call) ox_buf_put_c(&p->raw, '{'); /* behind another one */
    p->in_call = true;
}

/* A call object is complete. */
static void object_ends(ox_parse *p)
{
    const bool more = p->is_array || (p->tagged && p->f->close[0]);
    if ((!p->tagged && !p->has_args) || !ox_parse_commit(p)) {
        ox_parse_give_up(p);
        return;
    }
    ox_parse_end_call(p);
    if (!more) return;
    p->at = AT_JSON; /* perhaps another one */
    p->json = p->is_array ? JSON_ITEM : JSON_VALUE0;
}

/* The key is known, the value's first byte is c. */
static void value_starts(ox_parse *p, char c)
{
    p->v = (value){0};
    p->u = (unescape){0};
    if (c == '"' && key_is(p, "name", "tool_name")) {
        ox_buf_clear(&p->name);
        p->json = JSON_IN_NAME;
        return;
    }
    if (c == '"' && key_is(p, "id", "tool_call_id")) {
        ox_buf_clear(&p->id);
        p->json = JSON_IN_ID;
        return;
    }
    if (c == '{' && key_is(p, "function", NULL) && p->nested == 1) {
        p->nested = 2;
        p->json = JSON_KEY;
        return;
    }
    const bool args =
        key_is(p, "arguments", "parameters") && !p->has_args && (c == '{' || c == '[' || c == '"');
    if (!args && !p->tagged && !p->named && !key_is(p, "type", "function") &&
        !key_is(p, "name", "id")) {
        ox_parse_give_up(p); /* JSON, but no call */
        return;
    }
    if (args) {
        p->has_args = true;
        if (p->name.n && !ox_parse_commit(p)) {
            ox_parse_give_up(p);
            return;
        }
        p->json = c == '"' ? JSON_IN_ARGS_TEXT : JSON_IN_ARGS;
        if (c == '"') return;
        ox_value_step(&p->v, c);
        ox_parse_args(p, &c, 1);
        return;
    }
    p->json = JSON_IN_OTHER;
    ox_value_step(&p->v, c);
}

static void text_byte(ox_parse *p, char c, ox_buf *to)
{
    if (ox_unescape(&p->u, c, to)) {
        p->json = JSON_KEY;
        if (to == &p->name && p->has_args && !ox_parse_commit(p)) ox_parse_give_up(p);
        return;
    }
    if (to->n > OX_PARSE_NAME) ox_parse_give_up(p);
}

static void between(ox_parse *p, char c)
{
    if (is_space(c) || c == ',') return;
    if (c == '"') {
        ox_buf_clear(&p->key);
        p->u = (unescape){0};
        p->json = JSON_IN_KEY;
    } else if (c == '}') {
        if (--p->nested == 0) object_ends(p);
    } else {
        ox_parse_give_up(p);
    }
}

/* Before an object: at the beginning, or in an array. */
static void before(ox_parse *p, char c)
{
    if (is_space(c)) return;
    if (c == '{') {
        object_starts(p);
    } else if (c == '[' && p->json == JSON_VALUE0 && p->tagged) {
        p->is_array = true;
        p->json = JSON_ITEM;
    } else if (c == ']' && p->json == JSON_ITEM) {
        p->in_call = false;
        ox_buf_clear(&p->raw);
        p->at = AT_CONTENT;
        p->skip_space = true;
    } else if (!p->in_call && p->json == JSON_VALUE0) { /* the close is missing */
        p->at = AT_CONTENT;
        ox_parse_content(p, c);
    } else if (c != ',' || p->json != JSON_ITEM) {
        p->in_call = true;
        if (p->json == JSON_VALUE0 && p->tagged && p->f->bare) { /* python behind its tag */
            p->at = AT_PYTHON;
            ox_parse_python(p, c);
            return;
        }
        ox_parse_give_up(p);
    }
}

void ox_parse_json(ox_parse *p, char c)
{
    value_step step;
    switch (p->json) {
    case JSON_VALUE0:
    case JSON_ITEM:
        before(p, c);
        return;
    case JSON_KEY:
        between(p, c);
        return;
    case JSON_IN_KEY:
        if (ox_unescape(&p->u, c, &p->key))
            p->json = JSON_COLON;
        else if (p->key.n > OX_PARSE_KEY)
            ox_parse_give_up(p);
        return;
    case JSON_COLON:
        if (c == ':')
            p->json = JSON_VALUE;
        else if (!is_space(c))
            ox_parse_give_up(p);
        return;
    case JSON_VALUE:
        if (!is_space(c)) value_starts(p, c);
        return;
    case JSON_IN_NAME:
        text_byte(p, c, &p->name);
        return;
    case JSON_IN_ID:
        text_byte(p, c, &p->id);
        return;
    case JSON_IN_ARGS_TEXT:
        ox_buf_clear(&p->val);
        if (ox_unescape(&p->u, c, &p->val)) p->json = JSON_KEY;
        if (p->val.n) ox_parse_args(p, p->val.p, p->val.n);
        return;
    case JSON_IN_ARGS:
    case JSON_IN_OTHER:
        step = ox_value_step(&p->v, c);
        if (p->json == JSON_IN_ARGS && step != VALUE_BEHIND) ox_parse_args(p, &c, 1);
        if (step != VALUE_MORE) p->json = JSON_KEY;
        if (step == VALUE_BEHIND) between(p, c);
        return;
    }
}
