/* literals.c - calls written as Python, and as braces with quote marks of their own: their values
 * become JSON, an argument at a time. */
#include "text/parse/parse_internal.h"

#include "base/mem.h"

#include <string.h>

enum { MOST_DEPTH = 64 };

/* A text that is read from the front. */
typedef struct cursor {
    const char *at, *end;
    ox_str quote; /* braces: what stands around strings; empty in Python */
    int32_t depth;
    ox_buf *out;
} cursor;

static void skip(cursor *c)
{
    while (c->at < c->end && (unsigned char)*c->at <= ' ')
        c->at++;
}

static bool begins(const cursor *c, ox_str s)
{
    return s.n && (size_t)(c->end - c->at) >= s.n && !memcmp(c->at, s.p, s.n);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Python's string from its quote on. */
static bool python_string(cursor *c)
{
    static const char from[] = "nrtbf0", to[] = "\n\r\t\b\f\0";
    const char quote = *c->at++;
    ox_buf text = {0};
    while (c->at < c->end && *c->at != quote) {
        char ch = *c->at++;
        if (ch == '\\' && c->at < c->end) {
            ch = *c->at++;
            const char *hit = ch ? strchr(from, ch) : NULL;
            if (hit) {
                ch = to[hit - from];
            } else if (ch == 'x' && c->end - c->at >= 2 && hex_digit(c->at[0]) >= 0 &&
                       hex_digit(c->at[1]) >= 0) {
                ch = (char)(hex_digit(c->at[0]) * 16 + hex_digit(c->at[1]));
                c->at += 2;
            }
        }
        ox_buf_put_c(&text, ch);
    }
    const bool closed = c->at < c->end;
    if (closed) c->at++;
    ox_json_quote(c->out, ox_buf_view(&text));
    if (text.failed) c->out->failed = true;
    ox_buf_deinit(&text);
    return closed;
}

/* A string between quote marks, as it is. */
static bool marked_string(cursor *c)
{
    c->at += c->quote.n;
    const ox_str rest = {c->at, (size_t)(c->end - c->at)};
    const size_t n = ox_str_find(rest, c->quote, 0);
    if (n == SIZE_MAX) return false;
    ox_json_quote(c->out, (ox_str){c->at, n});
    c->at += n + c->quote.n;
    return true;
}

/* A word: true, None, 3.5; what JSON has no word for becomes a string. */
static void word(cursor *c)
{
    static const struct {
        const char *python, *json;
    } words[] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    const char *begin = c->at;
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *v;
    ox_err ignored = OX_ERR_INIT;
    while (c->at < c->end && !strchr(",:)]}=", *c->at))
        c->at++;
    ox_str s = {begin, (size_t)(c->at - begin)};
    while (s.n && (unsigned char)s.p[s.n - 1] <= ' ')
        s.n--;
    for (size_t i = 0; i < OX_COUNT(words); i++)
        if (ox_str_is(s, words[i].python)) s = ox_str_of(words[i].json);
    if (s.n && !ox_json_parse(&v, &arena, s, &ignored))
        ox_buf_put_str(c->out, s);
    else
        ox_json_quote(c->out, s);
    ox_arena_deinit(&arena);
}

static bool literal(cursor *c);

/* Items up to `close`; `keys`: with names before a colon. */
static bool items(cursor *c, char close, bool keys)
{
    ox_buf_put_c(c->out, keys ? '{' : '[');
    c->at++;
    for (bool first = true;; first = false) {
        skip(c);
        if (c->at == c->end) return false;
        if (*c->at == close) break;
        if (!first) ox_buf_put_z(c->out, ", ");
        if (keys) {
            if (begins(c, c->quote) || *c->at == '"' || *c->at == '\'') {
                if (!literal(c)) return false;
            } else {
                const char *begin = c->at;
                while (c->at < c->end && *c->at != ':' && *c->at != close)
                    c->at++;
                ox_json_quote(c->out, (ox_str){begin, (size_t)(c->at - begin)});
            }
            skip(c);
            if (c->at == c->end || *c->at != ':') return false;
            c->at++;
            ox_buf_put_z(c->out, ": ");
        }
        if (!literal(c)) return false;
        skip(c);
        if (c->at < c->end && *c->at == ',')
            c->at++;
        else if (c->at == c->end || *c->at != close)
            return false;
    }
    c->at++;
    ox_buf_put_c(c->out, keys ? '}' : ']');
    return true;
}

static bool literal(cursor *c)
{
    skip(c);
    if (c->at == c->end || c->depth == MOST_DEPTH) return false;
    bool ok = true;
    c->depth++;
    if (begins(c, c->quote))
        ok = marked_string(c);
    else if (*c->at == '"' || *c->at == '\'')
        ok = python_string(c);
    else if (*c->at == '{')
        ok = items(c, '}', true);
    else if (*c->at == '[')
        ok = items(c, ']', false);
    else if (*c->at == '(')
        ok = items(c, ')', false);
    else if (strchr(",:)]}=", *c->at))
        ok = false;
    else
        word(c);
    c->depth--;
    return ok;
}

/* p->val is one argument's value. */
static bool put_argument(ox_parse *p)
{
    ox_buf out = {0};
    cursor c = {.at = p->val.p ? p->val.p : "", .out = &out};
    c.end = c.at + p->val.n;
    ox_buf_put_z(&out, p->n_keys++ ? ", " : "{");
    ox_json_quote(&out, ox_buf_view(&p->key));
    ox_buf_put_z(&out, ": ");
    bool ok = literal(&c);
    skip(&c);
    ok = ok && c.at == c.end;
    if (ok) {
        p->has_args = true;
        ox_parse_args(p, out.p ? out.p : "", out.n);
    }
    if (out.failed) p->val.failed = true;
    ox_buf_deinit(&out);
    ox_buf_clear(&p->key);
    ox_buf_clear(&p->val);
    return ok;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static void function_ends(ox_parse *p)
{
    if (p->n_keys) ox_parse_args(p, "}", 1);
    ox_parse_end_call(p);
    p->at = AT_PYTHON; /* perhaps another one */
    p->in_call = false;
    p->depth = 0;
    p->n_keys = 0;
}

/* depth: 0 before a name, 1 inside the parentheses before '=', 2 and more in a value. */
void ox_parse_python(ox_parse *p, char c)
{
    const bool space = (unsigned char)c <= ' ';
    if (p->depth == 0) {
        if (is_word(c)) {
            if (!p->in_call) ox_buf_put_c(&p->raw, c); /* behind another one */
            p->in_call = true;
            if (!ox_parse_keep(p, &p->name, &c, 1, OX_PARSE_NAME)) ox_parse_give_up(p);
        } else if (c == '(' && p->name.n) {
            if (ox_str_ends(ox_buf_view(&p->name), OX_STR(".call"))) p->name.n -= 5;
            p->depth = 1;
            if (!ox_parse_commit(p)) ox_parse_give_up(p);
        } else if (c == ']' && !p->name.n) {
            ox_buf_clear(&p->raw);
            p->in_call = false;
            p->at = AT_CONTENT;
            p->skip_space = true;
        } else if (!(c == '[' || c == ',' || space)) {
            p->in_call = true;
            if (!p->raw.n && !p->named) ox_buf_put_c(&p->raw, c);
            ox_parse_give_up(p);
        }
        return;
    }
    if (p->depth == 1) {
        if (c == '=' && p->key.n)
            p->depth = 2;
        else if (c == ')' && !p->key.n)
            function_ends(p);
        else if (is_word(c)) {
            if (!ox_parse_keep(p, &p->key, &c, 1, OX_PARSE_KEY)) ox_parse_give_up(p);
        } else if (!space && c != ',')
            ox_parse_give_up(p);
        return;
    }
    if (p->quote) {
        if (p->escaped)
            p->escaped = false;
        else if (c == '\\')
            p->escaped = true;
        else if (c == p->quote)
            p->quote = 0;
    } else if (c == '"' || c == '\'') {
        p->quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
        p->depth++;
    } else if (p->depth == 2 && (c == ',' || c == ')')) {
        p->depth = 1;
        if (!put_argument(p))
            ox_parse_give_up(p);
        else if (c == ')')
            function_ends(p);
        return;
    } else if (c == ')' || c == ']' || c == '}') {
        p->depth--;
    }
    if (p->depth < 2 || p->depth > MOST_DEPTH) {
        ox_parse_give_up(p);
        return;
    }
    ox_parse_keep(p, &p->val, &c, 1, OX_PARSE_HELD);
}

void ox_parse_braces(ox_parse *p)
{
    ox_buf out = {0};
    ox_str all = ox_buf_view(&p->val);
    cursor c = {.quote = ox_str_of(p->f->quote), .out = &out};
    while (all.n && (unsigned char)all.p[0] <= ' ')
        all.p++, all.n--;
    if (ox_str_starts(all, OX_STR("call:"))) all.p += 5, all.n -= 5;
    const char *open = all.n ? memchr(all.p, '{', all.n) : NULL;
    ox_buf_clear(&p->name);
    if (!open || !ox_parse_keep(p, &p->name, all.p, (size_t)(open - all.p), OX_PARSE_NAME)) return;
    c.at = open;
    c.end = all.p + all.n;
    const bool ok = literal(&c);
    skip(&c);
    if (ok && c.at == c.end && !out.failed && ox_parse_commit(p)) {
        p->has_args = true;
        ox_parse_args(p, out.p, out.n);
        ox_parse_end_call(p);
    }
    if (out.failed) p->val.failed = true;
    ox_buf_deinit(&out);
}
