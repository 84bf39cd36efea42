/* lexer.c - template source to tokens: the white-space rules of trim_blocks and lstrip_blocks, raw
 * blocks, comments, numbers, strings with Python's escapes.
 *
 * Comes in: source with "\n" line ends and without its one final newline. Goes out: a flat array of
 * tokens ending with EOF, whose texts lie in the source or in the arena. Inside {{ }} and {% %} the
 * end mark counts only while all brackets are closed, so {{ {'a': {}} }} works. Next: parser.c. */
#include "text/jinja/state.h"

#include <utf8proc.h>

enum { BRACKETS_MAX = 256, TOKENS_MAX = 4 << 20 };

typedef struct lexer {
    ox_jtokens *out;
    ox_arena *arena;
    ox_str src;
    size_t at;
    uint32_t line;
    ox_err *err;
    char open[BRACKETS_MAX]; /* closing bracket that each open one waits for */
    size_t n_open;
} lexer;

static const char *const token_texts[OX_JTOKEN_COUNT] = {
#define X(name, text) text,
    OX_JTOKEN_LIST(X)
#undef X
};

/* Longest first: the first row that matches wins. */
static const struct operator_row {
    const char *text;
    ox_jtoken_kind kind;
} operators[] = {
    {"**", OX_JTOKEN_POW},     {"//", OX_JTOKEN_FLOORDIV}, {"==", OX_JTOKEN_EQ},
    {"!=", OX_JTOKEN_NE},      {">=", OX_JTOKEN_GE},       {"<=", OX_JTOKEN_LE},
    {"+", OX_JTOKEN_ADD},      {"-", OX_JTOKEN_SUB},       {"*", OX_JTOKEN_MUL},
    {"/", OX_JTOKEN_DIV},      {"%", OX_JTOKEN_MOD},       {"~", OX_JTOKEN_TILDE},
    {"[", OX_JTOKEN_LBRACKET}, {"]", OX_JTOKEN_RBRACKET},  {"(", OX_JTOKEN_LPAREN},
    {")", OX_JTOKEN_RPAREN},   {"{", OX_JTOKEN_LBRACE},    {"}", OX_JTOKEN_RBRACE},
    {">", OX_JTOKEN_GT},       {"<", OX_JTOKEN_LT},        {"=", OX_JTOKEN_ASSIGN},
    {".", OX_JTOKEN_DOT},      {":", OX_JTOKEN_COLON},     {"|", OX_JTOKEN_PIPE},
    {",", OX_JTOKEN_COMMA},    {";", OX_JTOKEN_SEMICOLON},
};

const char *ox_jtoken_text(ox_jtoken_kind kind)
{
    return kind < OX_JTOKEN_COUNT ? token_texts[kind] : "?";
}

static bool at_text(const lexer *l, size_t at, const char *z)
{
    const size_t n = strlen(z);
    return at <= l->src.n && l->src.n - at >= n && !memcmp(l->src.p + at, z, n);
}

static char byte_at(const lexer *l, size_t at)
{
    return at < l->src.n ? l->src.p[at] : 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Moves past [at, to), counting lines. */
static void advance(lexer *l, size_t to)
{
    for (size_t i = l->at; i < to; i++)
        l->line += l->src.p[i] == '\n';
    l->at = to;
}

static size_t skip_space(const lexer *l, size_t at)
{
    while (at < l->src.n) {
        uint32_t cp;
        const size_t n = ox_jutf8_read(l->src, at, &cp);
        if (!ox_jspace(cp)) break;
        at += n;
    }
    return at;
}

static ox_status push(lexer *l, ox_jtoken_kind kind, ox_str text)
{
    if (l->out->n >= TOKENS_MAX)
        return ox_jsyntax(l->err, OX_UNSUPPORTED, l->line, "the template has too many tokens");
    if (!ox_vec_push(l->out, (ox_jtoken){.kind = kind, .line = l->line, .text = text}))
        return OX_FAIL(l->err, OX_NO_MEMORY, "template: out of memory while reading it");
    return OX_OK;
}

/* Text before a tag that begins with `sign`; what the sign or lstrip_blocks takes away is cut. */
static ox_status push_data(lexer *l, size_t begin, size_t end, char sign, bool lstrip)
{
    ox_str text = {l->src.p + begin, end - begin};
    size_t keep = text.n;
    if (sign == '-') {
        size_t from;
        ox_jstrip(text, (ox_str){NULL, 0}, false, true, &from, &keep);
    } else if (sign != '+' && lstrip) {
        size_t line = text.n;
        while (line && text.p[line - 1] != '\n')
            line--;
        const bool at_line_start = line > 0 || begin == 0 || l->src.p[begin - 1] == '\n';
        size_t from, to;
        ox_jstrip((ox_str){text.p + line, text.n - line}, (ox_str){NULL, 0}, true, false, &from,
                  &to);
        if (at_line_start && from == text.n - line) keep = line;
    }
    if (keep) OX_TRY(push(l, OX_JTOKEN_DATA, (ox_str){text.p, keep}));
    advance(l, end);
    return OX_OK;
}

/* The end mark `mark` ("%}", "#}") at `at`, with a sign in front; 0 when it isn't there, else the
 * position behind it and what it trims. */
static size_t end_mark(const lexer *l, size_t at, const char *mark, bool plus, bool trim)
{
    const char c = byte_at(l, at);
    if (c == '-' && at_text(l, at + 1, mark)) return skip_space(l, at + 3);
    if (plus && c == '+' && at_text(l, at + 1, mark)) return at + 3;
    if (!at_text(l, at, mark)) return 0;
    return at + 2 + (trim && byte_at(l, at + 2) == '\n');
}

static ox_status lex_comment(lexer *l)
{
    for (size_t i = l->at; i < l->src.n; i++) {
        const size_t end = end_mark(l, i, "#}", true, true);
        if (!end) continue;
        advance(l, end);
        return OX_OK;
    }
    return ox_jsyntax(l->err, OX_BAD_FILE, l->line, "a comment {# is never closed by #}");
}

/* Behind "{%" and sign: the position after a "raw %}" or 0. */
static size_t raw_begin(const lexer *l, size_t at)
{
    at = skip_space(l, at);
    if (!at_text(l, at, "raw")) return 0;
    at = skip_space(l, at + 3);
    return end_mark(l, at, "%}", false, false);
}

static ox_status lex_raw(lexer *l, size_t body)
{
    advance(l, body);
    for (size_t i = body; i < l->src.n; i++) {
        if (!at_text(l, i, "{%")) continue;
        const char c = byte_at(l, i + 2);
        const char sign = c == '-' || c == '+' ? c : 0;
        size_t at = skip_space(l, i + 2 + (sign != 0));
        if (!at_text(l, at, "endraw")) continue;
        at = skip_space(l, at + 6);
        const size_t end = end_mark(l, at, "%}", true, true);
        if (!end) continue;
        OX_TRY(push_data(l, body, i, sign, true));
        advance(l, end);
        return OX_OK;
    }
    return ox_jsyntax(l->err, OX_BAD_FILE, l->line,
                      "{%% raw %%} is never closed by {%% endraw %%}");
}

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    const char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static ox_status bad_escape(const lexer *l, const char *what)
{
    return ox_jsyntax(l->err, OX_BAD_FILE, l->line, "%s in a string literal", what);
}

/* One escape at s[i] == '\\'; writes to *o and moves i. */
static ox_status unescape_one(const lexer *l, ox_str s, size_t *i, char **o)
{
    static const char plain[] = "\\'\"abfnrtv", made[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = s.p[*i + 1];
    const char *hit = c ? strchr(plain, c) : NULL;
    *i += 2;
    if (hit) {
        *(*o)++ = made[hit - plain];
        return OX_OK;
    }
    if (c == '\n') return OX_OK;
    uint32_t cp = 0;
    if (c >= '0' && c <= '7') {
        size_t n = 1;
        cp = (uint32_t)(c - '0');
        for (; n < 3 && *i < s.n && s.p[*i] >= '0' && s.p[*i] <= '7'; n++, ++*i)
            cp = cp * 8 + (uint32_t)(s.p[*i] - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        for (size_t k = 0; k < digits; k++, ++*i) {
            const int d = *i < s.n ? hex_digit(s.p[*i]) : -1;
            if (d < 0) return bad_escape(l, "truncated \\x, \\u or \\U escape");
            cp = cp * 16 + (uint32_t)d;
        }
        if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
            return bad_escape(l, "escape that is no Unicode character");
    } else if (c == 'N') {
        return bad_escape(l, "\\N escape, which is not supported,");
    } else {
        *(*o)++ = '\\';
        *(*o)++ = c;
        return OX_OK;
    }
    *o += ox_jutf8_write(*o, cp);
    return OX_OK;
}

static ox_status lex_string(lexer *l)
{
    const char quote = l->src.p[l->at];
    size_t end = l->at + 1;
    bool escaped = false;
    while (end < l->src.n && l->src.p[end] != quote) {
        escaped |= l->src.p[end] == '\\';
        end += l->src.p[end] == '\\' ? 2 : 1;
    }
    if (end >= l->src.n)
        return ox_jsyntax(l->err, OX_BAD_FILE, l->line, "a string is never closed by %c", quote);
    ox_str text = {l->src.p + l->at + 1, end - l->at - 1};
    if (escaped) {
        char *p = ox_arena_take(l->arena, text.n + 1), *o = p;
        if (!p) return OX_FAIL(l->err, OX_NO_MEMORY, "template: out of memory while reading it");
        for (size_t i = 0; i < text.n;) {
            if (text.p[i] == '\\')
                OX_TRY(unescape_one(l, text, &i, &o));
            else
                *o++ = text.p[i++];
        }
        text = (ox_str){p, (size_t)(o - p)};
    }
    OX_TRY(push(l, OX_JTOKEN_STRING, text));
    advance(l, end + 1);
    return OX_OK;
}

/* Digits of `base` with single underscores between; the position behind them. */
static size_t digits(const lexer *l, size_t at, int base)
{
    for (;; at++) {
        const size_t i = byte_at(l, at) == '_' ? at + 1 : at;
        const int d = hex_digit(byte_at(l, i));
        if (d < 0 || d >= base) return at;
        at = i;
    }
}

static ox_status push_int(lexer *l, size_t begin, size_t end, int base)
{
    uint64_t v = 0;
    for (size_t i = begin; i < end; i++) {
        if (l->src.p[i] == '_') continue;
        if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)hex_digit(l->src.p[i]), &v) || v > INT64_MAX)
            return ox_jsyntax(l->err, OX_UNSUPPORTED, l->line,
                              "an integer does not fit in 64 bits");
    }
    OX_TRY(push(l, OX_JTOKEN_INT, (ox_str){l->src.p + begin, end - begin}));
    l->out->p[l->out->n - 1].u.i = (int64_t)v;
    l->at = end;
    return OX_OK;
}

static ox_status push_float(lexer *l, size_t end)
{
    char text[100];
    size_t n = 0;
    for (size_t i = l->at; i < end && n < sizeof(text); i++)
        if (l->src.p[i] != '_') text[n++] = l->src.p[i];
    double v;
    if (n == sizeof(text) || !ox_str_to_f64((ox_str){text, n}, &v))
        return ox_jsyntax(l->err, OX_BAD_FILE, l->line, "malformed number");
    OX_TRY(push(l, OX_JTOKEN_FLOAT, (ox_str){l->src.p + l->at, end - l->at}));
    l->out->p[l->out->n - 1].u.f = v;
    l->at = end;
    return OX_OK;
}

static ox_status lex_number(lexer *l)
{
    const size_t whole = digits(l, l->at, 10);
    size_t end = whole;
    const bool after_dot = l->at && l->src.p[l->at - 1] == '.';
    if (byte_at(l, end) == '.' && is_digit(byte_at(l, end + 1))) end = digits(l, end + 1, 10);
    if ((byte_at(l, end) | 0x20) == 'e') {
        const char sign = byte_at(l, end + 1);
        const size_t first = end + 1 + (sign == '+' || sign == '-');
        if (is_digit(byte_at(l, first))) end = digits(l, first, 10);
    }
    if (end != whole && !after_dot) return push_float(l, end);
    if (l->src.p[l->at] == '0') {
        const char kind = (char)(byte_at(l, l->at + 1) | 0x20);
        const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
        const size_t last = base ? digits(l, l->at + 2, base) : 0;
        if (base && last > l->at + 2) return push_int(l, l->at + 2, last, base);
        return push_int(l, l->at, digits(l, l->at, 1), 10);
    }
    return push_int(l, l->at, whole, 10);
}

static bool is_name_cp(uint32_t cp, bool first)
{
    if (cp < 128) {
        const char low = (char)(cp | 0x20);
        return cp == '_' || (low >= 'a' && low <= 'z') || (!first && is_digit((char)cp));
    }
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
        return true;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
        return !first;
    default:
        return false;
    }
}

static size_t name_end(const lexer *l, size_t at)
{
    for (const size_t begin = at; at < l->src.n;) {
        uint32_t cp;
        const size_t n = ox_jutf8_read(l->src, at, &cp);
        if (!is_name_cp(cp, at == begin)) break;
        at += n;
    }
    return at;
}

static ox_status balance(lexer *l, char c)
{
    const char *const opening = "([{", *const closing = ")]}";
    const char *hit = strchr(opening, c);
    if (hit) {
        if (l->n_open == BRACKETS_MAX)
            return ox_jsyntax(l->err, OX_UNSUPPORTED, l->line,
                              "more than %d brackets within each other", BRACKETS_MAX);
        l->open[l->n_open++] = closing[hit - opening];
    } else if (strchr(closing, c)) {
        if (!l->n_open) return ox_jsyntax(l->err, OX_BAD_FILE, l->line, "unexpected '%c'", c);
        const char want = l->open[--l->n_open];
        if (want != c)
            return ox_jsyntax(l->err, OX_BAD_FILE, l->line, "unexpected '%c', expected '%c'", c,
                              want);
    }
    return OX_OK;
}

static ox_status lex_operator(lexer *l)
{
    for (size_t i = 0; i < OX_COUNT(operators); i++) {
        if (!at_text(l, l->at, operators[i].text)) continue;
        OX_TRY(balance(l, l->src.p[l->at]));
        const size_t n = strlen(operators[i].text);
        OX_TRY(push(l, operators[i].kind, (ox_str){l->src.p + l->at, n}));
        l->at += n;
        return OX_OK;
    }
    return ox_jsyntax(l->err, OX_BAD_FILE, l->line, "unexpected character '%.*s'",
                      (int)ox_jutf8_size(l->src, l->at), l->src.p + l->at);
}

/* Everything up to and including the end mark of {{ or {%. */
static ox_status lex_code(lexer *l, bool block)
{
    l->n_open = 0;
    for (;;) {
        const size_t end = l->n_open ? 0 : end_mark(l, l->at, block ? "%}" : "}}", block, block);
        if (end) {
            OX_TRY(push(l, block ? OX_JTOKEN_BLOCK_END : OX_JTOKEN_VAR_END, (ox_str){0}));
            advance(l, end);
            return OX_OK;
        }
        const size_t next = skip_space(l, l->at);
        if (next != l->at) {
            advance(l, next);
            continue;
        }
        /* the parser reports what it misses at the end of the text */
        if (l->at >= l->src.n) return OX_OK;
        const char c = l->src.p[l->at];
        const size_t name = name_end(l, l->at);
        if (is_digit(c)) {
            OX_TRY(lex_number(l));
        } else if (name != l->at) {
            OX_TRY(push(l, OX_JTOKEN_NAME, (ox_str){l->src.p + l->at, name - l->at}));
            l->at = name;
        } else if (c == '\'' || c == '"') {
            OX_TRY(lex_string(l));
        } else {
            OX_TRY(lex_operator(l));
        }
    }
}

/* Position of the next {{, {% or {#, or the end. */
static size_t next_tag(const lexer *l)
{
    for (size_t i = l->at; i + 1 < l->src.n; i++) {
        const char *hit = memchr(l->src.p + i, '{', l->src.n - 1 - i);
        if (!hit) break;
        i = (size_t)(hit - l->src.p);
        const char c = hit[1];
        if (c == '{' || c == '%' || c == '#') return i;
    }
    return l->src.n;
}

ox_status ox_jlex(ox_jtokens *out, ox_arena *arena, ox_str source, ox_err *err)
{
    lexer l = {.out = out, .arena = arena, .src = source, .line = 1, .err = err};
    while (l.at < source.n) {
        const size_t begin = l.at, tag = next_tag(&l);
        if (tag == source.n) {
            OX_TRY(push(&l, OX_JTOKEN_DATA, (ox_str){source.p + begin, tag - begin}));
            l.at = tag;
            break;
        }
        const char kind = source.p[tag + 1], c = byte_at(&l, tag + 2);
        const char sign = c == '-' || c == '+' ? c : 0;
        const size_t inside = tag + 2 + (sign != 0);
        OX_TRY(push_data(&l, begin, tag, sign, kind != '{'));
        const size_t raw = kind == '%' ? raw_begin(&l, inside) : 0;
        if (raw) {
            OX_TRY(lex_raw(&l, raw));
            continue;
        }
        if (kind == '#') {
            l.at = inside;
            OX_TRY(lex_comment(&l));
            continue;
        }
        OX_TRY(push(&l, kind == '%' ? OX_JTOKEN_BLOCK_BEGIN : OX_JTOKEN_VAR_BEGIN, (ox_str){0}));
        l.at = inside;
        OX_TRY(lex_code(&l, kind == '%'));
    }
    return push(&l, OX_JTOKEN_EOF, (ox_str){0});
}
