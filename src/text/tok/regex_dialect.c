/* regex_dialect.c - Oniguruma's Ruby dialect, which tokenizer files are written in, put in words of
 * PCRE2. What differs and is rewritten: \s (no U+180E), \w (marks, connector punctuation), \b, \h
 * (a hexadecimal digit), \p of scripts, && and nested classes, {n,m}+ (a repeat, not possessive),
 * (?m) (dot matches newline), \uHHHH. Everything else is copied. */
#include "text/tok/regex.h"

#include "text/unicode.h"

/* Bodies of classes. A list ends in a range or property, so that a following '-' is literal. */
#define SPACE                                                                                      \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{a0}\\x{1680}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{2000}-\\x{200a}"
#define NOT_SPACE                                                                                  \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{"     \
    "1fff}"                                                                                        \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"                 \
    "\\x{3001}-\\x{10ffff}"
#define WORD                                                                                       \
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"           \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}"
/* Outside of classes the engine also counts six characters of Latin-1 as parts of words. */
#define WORD_ALONE "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" WORD
#define HEX "A-Fa-f0-9"

enum { MAX_DEPTH = 100, MAX_OPERANDS = 16 };

typedef struct translator {
    ox_str in;
    size_t at;
    ox_err *err;
    size_t groups[MAX_DEPTH]; /* where in the output each open group begins */
    size_t n_groups;
    size_t atom; /* where the last atom begins */
    bool has_atom;
    int class_depth;
} translator;

static bool more(const translator *t)
{
    return t->at < t->in.n;
}

static char peek(const translator *t, size_t ahead)
{
    return t->in.n - t->at > ahead ? t->in.p[t->at + ahead] : 0;
}

static bool looking_at(const translator *t, const char *z)
{
    return ox_str_starts((ox_str){t->in.p + t->at, t->in.n - t->at}, ox_str_of(z));
}

static ox_status fail(const translator *t, const char *what)
{
    return OX_FAIL(t->err, OX_UNSUPPORTED, "pattern \"%.*s\": %s at byte %zu", OX_STR_ARGS(t->in),
                   what, t->at);
}

static void copy_char(translator *t, ox_buf *out)
{
    size_t n = ox_utf8_length(t->in.p + t->at, t->in.n - t->at);
    if (!n) n = 1;
    ox_buf_put(out, t->in.p + t->at, n);
    t->at += n;
}

/* Names that PCRE2 takes as they are or under another name; other long names are scripts. */
static ox_str property_name(ox_str name)
{
    static const char *const names[][2] = {{"Letter", "L"},
                                           {"Mark", "M"},
                                           {"Number", "N"},
                                           {"Punctuation", "P"},
                                           {"Symbol", "S"},
                                           {"Separator", "Z"},
                                           {"Other", "C"},
                                           {"Alpha", "Alphabetic"},
                                           {"Upper", "Uppercase"},
                                           {"Lower", "Lowercase"},
                                           {"Any", "Any"},
                                           {"Digit", "Nd"},
                                           {"Alphabetic", "Alphabetic"},
                                           {"Uppercase", "Uppercase"},
                                           {"Lowercase", "Lowercase"},
                                           {"Emoji", "Emoji"},
                                           {"White_Space", "White_Space"},
                                           {"Uppercase_Letter", "Lu"},
                                           {"Lowercase_Letter", "Ll"},
                                           {"Titlecase_Letter", "Lt"},
                                           {"Modifier_Letter", "Lm"},
                                           {"Other_Letter", "Lo"},
                                           {"Decimal_Number", "Nd"},
                                           {"Extended_Pictographic", "Extended_Pictographic"}};
    for (size_t i = 0; i < OX_COUNT(names); i++) {
        if (ox_str_is(name, names[i][0])) return ox_str_of(names[i][1]);
    }
    return (ox_str){NULL, 0};
}

/* At \p{ or \P{. */
static ox_status property(translator *t, ox_buf *out)
{
    bool inverted = peek(t, 1) == 'P';
    const size_t end = ox_str_find(t->in, OX_STR("}"), t->at);
    if (peek(t, 2) != '{' || end == SIZE_MAX) return fail(t, "a property needs a name in braces");
    ox_str name = {t->in.p + t->at + 3, end - t->at - 3};
    if (name.n && name.p[0] == '^') {
        inverted = !inverted;
        name = (ox_str){name.p + 1, name.n - 1};
    }
    if (!name.n || name.n > 60) return fail(t, "a property needs a name in braces");
    const ox_str known = property_name(name);
    ox_buf_put_z(out, inverted ? "\\P{" : "\\p{");
    if (!known.p && name.n > 2) ox_buf_put_z(out, "sc:");
    ox_buf_put_str(out, known.p ? known : name);
    ox_buf_put_c(out, '}');
    t->at = end + 1;
    return OX_OK;
}

/* At \uHHHH: writes \x{HHHH}. */
static ox_status unicode_escape(translator *t, ox_buf *out)
{
    for (size_t i = 2; i < 6; i++) {
        const char c = peek(t, i);
        if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f')))
            return fail(t, "\\u needs four hexadecimal digits");
    }
    ox_buf_put_z(out, "\\x{");
    ox_buf_put(out, t->in.p + t->at + 2, 4);
    ox_buf_put_c(out, '}');
    t->at += 6;
    return OX_OK;
}

static void put_alternative(ox_buf *nested, const char *z)
{
    if (nested->n) ox_buf_put_c(nested, '|');
    ox_buf_put_z(nested, z);
}

/* At a backslash inside a class. plain collects items of one class, nested whole alternatives. */
static ox_status class_escape(translator *t, ox_buf *plain, ox_buf *nested)
{
    static const struct {
        char letter;
        const char *plain, *nested;
    } known[] = {{'s', SPACE, NULL},         {'S', NOT_SPACE, NULL}, {'w', WORD, NULL},
                 {'W', NULL, "[^" WORD "]"}, {'h', HEX, NULL},       {'H', NULL, "[^" HEX "]"}};
    const char c = peek(t, 1);
    for (size_t i = 0; i < OX_COUNT(known); i++) {
        if (c != known[i].letter) continue;
        if (known[i].plain)
            ox_buf_put_z(plain, known[i].plain);
        else
            put_alternative(nested, known[i].nested);
        t->at += 2;
        return OX_OK;
    }
    if (c == 'p' || c == 'P') return property(t, plain);
    if (c == 'u') return unicode_escape(t, plain);
    if (!c) return fail(t, "a backslash ends the pattern");
    copy_char(t, plain);
    copy_char(t, plain);
    return OX_OK;
}

/* One operand of && as a pattern of one character. */
static void finish_operand(ox_buf *plain, ox_buf *nested, bool inverted, ox_buf *out)
{
    if (!nested->n) {
        ox_buf_put_z(out, inverted ? "[^" : "[");
        ox_buf_put_str(out, ox_buf_view(plain));
        ox_buf_put_c(out, ']');
    } else {
        ox_buf_put_z(out, inverted ? "(?:(?!" : "(?:");
        if (plain->n) {
            ox_buf_put_c(out, '[');
            ox_buf_put_str(out, ox_buf_view(plain));
            ox_buf_put_z(out, "]|");
        }
        ox_buf_put_str(out, ox_buf_view(nested));
        ox_buf_put_z(out, inverted ? ")(?s:.))" : ")");
    }
    ox_buf_clear(plain);
    ox_buf_clear(nested);
}

static ox_status char_class(translator *t, ox_buf *out);

/* Up to the bracket that closes; `all` gets the operands but the last as look-aheads. */
static ox_status class_items(translator *t, ox_buf *plain, ox_buf *nested, ox_buf *all)
{
    for (bool first = true;; first = false) {
        if (!more(t)) return fail(t, "a class is not closed");
        const char c = peek(t, 0);
        if (c == ']' && !first) break;
        if (looking_at(t, "&&")) {
            t->at += 2;
            ox_buf_put_z(all, "(?=");
            finish_operand(plain, nested, false, all);
            ox_buf_put_c(all, ')');
        } else if (looking_at(t, "[:")) {
            const size_t end = ox_str_find(t->in, OX_STR(":]"), t->at);
            if (end == SIZE_MAX) return fail(t, "a class is not closed");
            if (looking_at(t, "[:punct:]"))
                ox_buf_put_z(plain, "\\p{P}\\p{S}");
            else
                ox_buf_put(plain, t->in.p + t->at, end + 2 - t->at);
            t->at = end + 2;
        } else if (c == '[') {
            if (nested->n) ox_buf_put_c(nested, '|');
            OX_TRY(char_class(t, nested));
        } else if (c == '\\') {
            OX_TRY(class_escape(t, plain, nested));
        } else {
            if (c == ']') ox_buf_put_c(plain, '\\');
            copy_char(t, plain);
        }
    }
    t->at++;
    return OX_OK;
}

/* At the opening bracket. */
static ox_status char_class(translator *t, ox_buf *out)
{
    ox_buf plain = {0}, nested = {0}, all = {0};
    ox_status st = OX_OK;
    if (++t->class_depth > 20) return fail(t, "classes nested deeper than 20 levels");
    t->at++;
    const bool inverted = peek(t, 0) == '^';
    t->at += inverted;
    OX_TRY_GOTO(class_items(t, &plain, &nested, &all));
    if (!all.n) {
        finish_operand(&plain, &nested, inverted, out);
    } else {
        ox_buf_put_z(out, inverted ? "(?:(?!" : "(?:");
        ox_buf_put_str(out, ox_buf_view(&all));
        finish_operand(&plain, &nested, false, out);
        ox_buf_put_z(out, inverted ? ")(?s:.))" : ")");
    }
    if (plain.failed || nested.failed || all.failed) out->failed = true;
fail:
    t->class_depth--;
    ox_buf_deinit(&plain);
    ox_buf_deinit(&nested);
    ox_buf_deinit(&all);
    return st;
}

/* At a backslash outside classes. */
static ox_status escape(translator *t, ox_buf *out)
{
    static const struct {
        char letter;
        const char *text;
    } known[] = {{'s', "[" SPACE "]"},
                 {'S', "[^" SPACE "]"},
                 {'w', "[" WORD_ALONE "]"},
                 {'W', "[^" WORD_ALONE "]"},
                 {'h', "[" HEX "]"},
                 {'H', "[^" HEX "]"},
                 {'b', "(?:(?<=[" WORD_ALONE "])(?![" WORD_ALONE "])|(?<![" WORD_ALONE
                       "])(?=[" WORD_ALONE "]))"},
                 {'B', "(?:(?<=[" WORD_ALONE "])(?=[" WORD_ALONE "])|(?<![" WORD_ALONE
                       "])(?![" WORD_ALONE "]))"}};
    const char c = peek(t, 1);
    for (size_t i = 0; i < OX_COUNT(known); i++) {
        if (c != known[i].letter) continue;
        ox_buf_put_z(out, known[i].text);
        t->at += 2;
        return OX_OK;
    }
    if (c == 'p' || c == 'P') return property(t, out);
    if (c == 'u') return unicode_escape(t, out);
    if (!c) return fail(t, "a backslash ends the pattern");
    copy_char(t, out);
    copy_char(t, out);
    return OX_OK;
}

/* Behind "(?": flags up to ':' or ')'; m means what PCRE2 calls s. Other constructs are copied. */
static void flags(translator *t, ox_buf *out)
{
    while (more(t)) {
        const char c = peek(t, 0);
        if (c != 'i' && c != 'm' && c != 'x' && c != '-') return;
        ox_buf_put_c(out, c == 'm' ? 's' : c);
        t->at++;
    }
}

static ox_status open_group(translator *t, ox_buf *out)
{
    if (looking_at(t, "(?#")) {
        const size_t end = ox_str_find(t->in, OX_STR(")"), t->at);
        if (end == SIZE_MAX) return fail(t, "a comment is not closed");
        t->at = end + 1;
        return OX_OK;
    }
    if (t->n_groups == MAX_DEPTH) return fail(t, "groups nested deeper than 100 levels");
    t->groups[t->n_groups++] = out->n;
    copy_char(t, out);
    t->has_atom = false;
    if (peek(t, 0) != '?') return OX_OK;
    copy_char(t, out);
    if (looking_at(t, "<") && peek(t, 1) != '=' && peek(t, 1) != '!') {
        while (more(t) && peek(t, 0) != '>')
            copy_char(t, out);
    } else {
        flags(t, out);
    }
    return OX_OK;
}

/* Length of {n}, {n,}, {,m} or {n,m} here, 0 when the brace is literal. */
static size_t interval_length(const translator *t)
{
    size_t i = 1, digits = 0;
    for (; peek(t, i) >= '0' && peek(t, i) <= '9'; i++)
        digits++;
    if (peek(t, i) == ',') {
        for (i++; peek(t, i) >= '0' && peek(t, i) <= '9'; i++)
            digits++;
    }
    return digits && peek(t, i) == '}' ? i + 1 : 0;
}

static void insert(ox_buf *out, size_t at, const char *z)
{
    const size_t n = strlen(z), tail = out->n - at;
    ox_buf_put_z(out, z);
    if (out->failed) return;
    memmove(out->p + at + n, out->p + at, tail);
    memcpy(out->p + at, z, n);
}

static void interval(translator *t, size_t n, ox_buf *out)
{
    const bool no_least = peek(t, 1) == ',';
    ox_buf_put_z(out, no_least ? "{0" : "{");
    ox_buf_put(out, t->in.p + t->at + 1, n - 1);
    t->at += n;
    if (peek(t, 0) != '+') return;
    insert(out, t->atom, "(?:");
    ox_buf_put_c(out, ')');
}

static ox_status step(translator *t, ox_buf *out)
{
    const char c = peek(t, 0);
    const size_t start = out->n;
    if (c == '(') return open_group(t, out);
    if (c == ')') {
        copy_char(t, out);
        t->atom = t->n_groups ? t->groups[--t->n_groups] : start;
        t->has_atom = true;
        return OX_OK;
    }
    if (c == '*' || c == '+' || c == '?' || c == '|') {
        copy_char(t, out);
        if (c == '|') t->has_atom = false;
        return OX_OK;
    }
    const size_t n = c == '{' && t->has_atom ? interval_length(t) : 0;
    if (n) {
        interval(t, n, out);
        return OX_OK;
    }
    t->atom = start;
    t->has_atom = true;
    if (c == '[') return char_class(t, out);
    if (c == '\\') return escape(t, out);
    copy_char(t, out);
    return OX_OK;
}

ox_status ox_regex_translate(ox_str pattern, ox_buf *out, ox_err *err)
{
    translator t = {.in = pattern, .err = err};
    while (more(&t))
        OX_TRY(step(&t, out));
    if (!out->failed) ox_buf_put(out, "", 1); /* so that an empty pattern has bytes, too */
    if (out->failed) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a pattern");
    out->n--;
    return OX_OK;
}
