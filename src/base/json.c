/* json.c - the JSON reader. The text is copied into the arena once; strings are unescaped in place
 * there and NUL-terminated over their closing quote. Finished values wait on one stack; closing a
 * bracket moves its items to the arena as one contiguous array. No recursion. Objects of more than
 * INDEX_FROM members carry a hash index behind their members (see json_get.c for its reader).
 * The invariant: `at` never passes `end`, where a NUL stands that no token accepts. */
#include "base/json_internal.h"

#include "base/hash.h"
#include "base/vec.h"

typedef struct frame {
    uint32_t first; /* position of the first item on the stack */
    uint8_t is_object;
} frame;

typedef struct parser {
    char *text, *at, *end;
    ox_arena *arena;
    ox_err *err;
    unsigned flags;
    OX_VEC(ox_json) stack;
    frame frames[OX_JSON_MAX_DEPTH];
    size_t n_frames;
} parser;

static ox_status fail_at(parser *p, const char *at, const char *what)
{
    size_t line = 1;
    const char *line_start = p->text;
    for (const char *c = p->text; c < at; c++) {
        if (*c != '\n') continue;
        line++;
        line_start = c + 1;
    }
    return OX_FAIL(p->err, OX_BAD_FILE, "JSON: %s at line %zu column %zu (byte %zu)", what, line,
                   (size_t)(at - line_start) + 1, (size_t)(at - p->text));
}

static ox_status fail_here(parser *p, const char *what)
{
    return fail_at(p, p->at, p->at == p->end ? "the text ends too early" : what);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(parser *p)
{
    while (is_space(*p->at))
        p->at++;
}

/* Eight bytes at once: does any need a look (quote, backslash, control, not ASCII)? */
static bool block_is_plain(const char *s)
{
    uint64_t v;
    memcpy(&v, s, 8);
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    const uint64_t q = v ^ (ones * '"'), b = v ^ (ones * '\\');
    const uint64_t hit = ((q - ones) & ~q) | ((b - ones) & ~b) | ((v - ones * 0x20) & ~v) | v;
    return !(hit & high);
}

/* Length of the well-formed UTF-8 sequence that starts at s, 0 when ill-formed. s is readable up to
 * a NUL, which ends every sequence. */
static size_t utf8_sequence(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0xc2 || u[0] > 0xf4) return 0;
    if ((u[1] & 0xc0) != 0x80) return 0;
    if (u[0] < 0xe0) return 2;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f)) return 0;
    if ((u[2] & 0xc0) != 0x80) return 0;
    if (u[0] < 0xf0) return 3;
    if ((u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f)) return 0;
    return (u[3] & 0xc0) == 0x80 ? 4 : 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Four hex digits at s, or -1. Stops at the NUL behind the text. */
static int32_t hex4(const char *s)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const int d = hex_digit(s[i]);
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static char *put_utf8(char *w, uint32_t c)
{
    if (c < 0x80) {
        *w++ = (char)c;
        return w;
    }
    if (c < 0x800) {
        *w++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *w++ = (char)(0xe0 | c >> 12);
        } else {
            *w++ = (char)(0xf0 | c >> 18);
            *w++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *w++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *w++ = (char)(0x80 | (c & 0x3f));
    return w;
}

/* p->at is on the 'u'. */
static ox_status read_unicode_escape(parser *p, char **w)
{
    const char *start = p->at - 1;
    int32_t c = hex4(p->at + 1);
    if (c < 0) return fail_at(p, start, "\\u needs four hexadecimal digits");
    p->at += 5;
    if (c >= 0xdc00 && c < 0xe000) return fail_at(p, start, "unpaired low surrogate");
    if (c >= 0xd800 && c < 0xdc00) {
        const int32_t low = p->at[0] == '\\' && p->at[1] == 'u' ? hex4(p->at + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000) return fail_at(p, start, "unpaired high surrogate");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p->at += 6;
    }
    *w = put_utf8(*w, (uint32_t)c);
    return OX_OK;
}

static ox_status read_escape(parser *p, char **w)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    p->at++;
    if (*p->at == 'u') return read_unicode_escape(p, w);
    const char *hit = *p->at ? strchr(from, *p->at) : NULL;
    if (!hit) return fail_here(p, "unknown escape in a string");
    *(*w)++ = to[hit - from];
    p->at++;
    return OX_OK;
}

/* p->at is on the opening quote. The result is never longer than what it replaces. */
static ox_status read_string(parser *p, ox_json *out)
{
    char *const start = ++p->at, *w = start;
    for (;;) {
        while (p->end - p->at >= 8 && block_is_plain(p->at)) {
            if (w != p->at) memmove(w, p->at, 8);
            w += 8;
            p->at += 8;
        }
        const unsigned char c = (unsigned char)*p->at;
        if (c == '"') break;
        if (c == '\\') {
            OX_TRY(read_escape(p, &w));
        } else if (c < 0x20) {
            return fail_here(p, "control character in a string (write it as an escape)");
        } else if (c < 0x80) {
            *w++ = *p->at++;
        } else {
            const size_t n = utf8_sequence(p->at);
            if (!n) return fail_here(p, "ill-formed UTF-8 in a string");
            for (size_t i = 0; i < n; i++)
                *w++ = *p->at++;
        }
    }
    p->at++;
    *w = 0;
    *out = (ox_json){.kind = OX_JSON_STRING, .n = (uint32_t)(w - start), .u.text = start};
    return OX_OK;
}

/* Exact when the digits fit 2^53 and the power of ten is one that a double holds exactly. */
static bool small_decimal(uint64_t digits, int exponent, bool minus, double *out)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits > (1ull << 53) || exponent < -22 || exponent > 22) return false;
    const double v =
        exponent < 0 ? (double)digits / tens[-exponent] : (double)digits * tens[exponent];
    *out = minus ? -v : v;
    return true;
}

static ox_status read_nonfinite(parser *p, ox_json *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"NaN", (double)__builtin_nanf("")},
                 {"Infinity", (double)__builtin_inff()},
                 {"-Infinity", -(double)__builtin_inff()}};
    const ox_str rest = {p->at, (size_t)(p->end - p->at)};
    for (size_t i = 0; i < OX_COUNT(words); i++) {
        if (!ox_str_starts(rest, ox_str_of(words[i].word))) continue;
        if (!(p->flags & OX_JSON_NONFINITE)) break;
        p->at += strlen(words[i].word);
        *out = (ox_json){.kind = OX_JSON_NUMBER, .u.f = words[i].value};
        return OX_OK;
    }
    return fail_here(p, "expected a value");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What the shape of a number says before its value is computed. */
typedef struct number {
    uint64_t digits;
    int exponent, n_digits;
    bool minus, is_int;
} number;

static void read_digits(parser *p, number *v)
{
    while (is_digit(*p->at)) {
        const uint64_t d = (uint64_t)(*p->at++ - '0');
        if (v->digits || d) v->n_digits++;
        if (v->n_digits <= 19) v->digits = v->digits * 10 + d;
    }
}

static ox_status read_exponent(parser *p, number *v)
{
    p->at++;
    const bool minus = *p->at == '-';
    if (*p->at == '-' || *p->at == '+') p->at++;
    if (!is_digit(*p->at)) return fail_here(p, "a digit must follow the exponent sign");
    int e = 0;
    while (is_digit(*p->at)) {
        if (e < 100000) e = e * 10 + (*p->at - '0');
        p->at++;
    }
    v->exponent += minus ? -e : e;
    v->is_int = false;
    return OX_OK;
}

static ox_status read_number(parser *p, ox_json *out)
{
    const char *start = p->at;
    number v = {.is_int = true};
    v.minus = *p->at == '-';
    p->at += v.minus;
    if (!is_digit(*p->at)) {
        p->at -= v.minus;
        return read_nonfinite(p, out);
    }
    if (*p->at == '0' && is_digit(p->at[1])) return fail_here(p, "a number with a leading zero");
    read_digits(p, &v);
    if (*p->at == '.') {
        const char *dot = p->at++;
        if (!is_digit(*p->at)) return fail_here(p, "a digit must follow the decimal point");
        read_digits(p, &v);
        v.exponent -= (int)(p->at - dot - 1);
        v.is_int = false;
    }
    if (*p->at == 'e' || *p->at == 'E') OX_TRY(read_exponent(p, &v));
    *out = (ox_json){.kind = OX_JSON_NUMBER};
    const ox_str all = {start, (size_t)(p->at - start)};
    if (v.is_int && (v.n_digits || !v.minus) && ox_str_to_i64(all, &out->u.i)) {
        out->is_int = 1;
        return OX_OK;
    }
    if (v.n_digits <= 19 && small_decimal(v.digits, v.exponent, v.minus, &out->u.f)) return OX_OK;
    if (all.n > 127) return fail_at(p, start, "a number longer than 127 characters");
    if (!ox_str_to_f64(all, &out->u.f)) return fail_at(p, start, "a malformed number");
    if (__builtin_isinf(out->u.f)) return fail_at(p, start, "a number out of range");
    return OX_OK;
}

static ox_status read_word(parser *p, const char *word, ox_json value, ox_json *out)
{
    if (!ox_str_starts((ox_str){p->at, (size_t)(p->end - p->at)}, ox_str_of(word)))
        return fail_here(p, "expected a value");
    p->at += strlen(word);
    *out = value;
    return OX_OK;
}

static ox_status read_scalar(parser *p, ox_json *out)
{
    switch (*p->at) {
    case '"':
        return read_string(p, out);
    case 't':
        return read_word(p, "true", (ox_json){.kind = OX_JSON_BOOL, .truth = 1}, out);
    case 'f':
        return read_word(p, "false", (ox_json){.kind = OX_JSON_BOOL}, out);
    case 'n':
        return read_word(p, "null", (ox_json){.kind = OX_JSON_NULL}, out);
    default:
        return read_number(p, out);
    }
}

static ox_status no_memory(parser *p)
{
    return OX_FAIL(p->err, OX_NO_MEMORY, "JSON: out of memory after %zu bytes of text",
                   (size_t)(p->at - p->text));
}

static ox_status push(parser *p, ox_json v)
{
    return ox_vec_push(&p->stack, v) ? OX_OK : no_memory(p);
}

/* Later members replace earlier ones of the same key. Probes are bounded, so that keys made to
 * collide end in an error and not in quadratic time. */
static ox_status index_members(parser *p, const ox_json_member *members, uint32_t n,
                               ox_json_index *index)
{
    const size_t mask = ox_json_index_size(n) - 1;
    for (uint32_t i = 0; i < n; i++) {
        const ox_str key = {members[i].key.u.text, members[i].key.n};
        const uint64_t h = ox_hash64(key.p, key.n);
        size_t at = (size_t)h & mask, probes = 0;
        for (; index[at].member; at = (at + 1) & mask) {
            const ox_json *k = &members[index[at].member - 1].key;
            if (index[at].hash == (uint32_t)(h >> 32) && ox_str_eq(key, (ox_str){k->u.text, k->n}))
                break;
            if (++probes > OX_JSON_MAX_PROBES)
                return OX_FAIL(p->err, OX_LIMIT,
                               "JSON: the keys of an object of %u members collide on purpose", n);
        }
        index[at] = (ox_json_index){(uint32_t)(h >> 32), i + 1};
    }
    return OX_OK;
}

/* Pops the innermost frame and pushes the array or object made of its items. */
static ox_status close_frame(parser *p)
{
    const frame f = p->frames[--p->n_frames];
    const size_t n_nodes = p->stack.n - f.first;
    ox_json node = {.kind = f.is_object ? OX_JSON_OBJECT : OX_JSON_ARRAY,
                    .n = (uint32_t)(f.is_object ? n_nodes / 2 : n_nodes)};
    const size_t bytes = n_nodes * sizeof(ox_json);
    const bool indexed = f.is_object && node.n > OX_JSON_INDEX_FROM;
    size_t extra = indexed ? ox_json_index_size(node.n) * sizeof(ox_json_index) : 0;
    if (n_nodes) {
        char *items = ox_arena_take(p->arena, bytes + extra);
        if (!items) return no_memory(p);
        memcpy(items, p->stack.p + f.first, bytes);
        node.u.items = (const ox_json *)(const void *)items;
        if (f.is_object) node.u.members = (const ox_json_member *)(const void *)items;
        if (indexed)
            OX_TRY(
                index_members(p, node.u.members, node.n, (ox_json_index *)(void *)(items + bytes)));
    }
    p->stack.n = f.first;
    return push(p, node);
}

static ox_status open_frame(parser *p, bool is_object)
{
    if (p->n_frames == OX_JSON_MAX_DEPTH)
        return fail_here(p, "brackets nested deeper than 512 levels");
    p->frames[p->n_frames++] = (frame){(uint32_t)p->stack.n, is_object};
    p->at++;
    return OX_OK;
}

/* Inside an object, p->at on what should be a key. */
static ox_status read_key(parser *p)
{
    ox_json key;
    if (*p->at != '"') return fail_here(p, "expected a key in quotes");
    OX_TRY(read_string(p, &key));
    skip_space(p);
    if (*p->at != ':') return fail_here(p, "expected ':' after a key");
    p->at++;
    skip_space(p);
    return push(p, key);
}

/* Behind a value: closes what closes here, or passes the comma. */
static ox_status after_value(parser *p)
{
    while (p->n_frames) {
        const frame *f = &p->frames[p->n_frames - 1];
        skip_space(p);
        if (*p->at == ',') {
            p->at++;
            skip_space(p);
            return f->is_object ? read_key(p) : OX_OK;
        }
        if (*p->at != (f->is_object ? '}' : ']'))
            return fail_here(p, f->is_object ? "expected ',' or '}'" : "expected ',' or ']'");
        p->at++;
        OX_TRY(close_frame(p));
    }
    return OX_OK;
}

static ox_status read_all(parser *p)
{
    skip_space(p);
    for (;;) {
        const char c = *p->at;
        if (c == '{' || c == '[') {
            OX_TRY(open_frame(p, c == '{'));
            skip_space(p);
            if (*p->at == (c == '{' ? '}' : ']')) {
                p->at++;
                OX_TRY(close_frame(p));
            } else {
                if (c == '{') OX_TRY(read_key(p));
                continue;
            }
        } else {
            ox_json v;
            OX_TRY(read_scalar(p, &v));
            OX_TRY(push(p, v));
        }
        OX_TRY(after_value(p));
        if (!p->n_frames) break;
    }
    skip_space(p);
    if (p->at != p->end) return fail_at(p, p->at, "text behind the value");
    return OX_OK;
}

ox_status ox_json_parse_with(const ox_json **root, ox_arena *arena, ox_str bytes, unsigned flags,
                             ox_err *err)
{
    if (ox_str_starts(bytes, OX_STR("\xef\xbb\xbf"))) bytes = (ox_str){bytes.p + 3, bytes.n - 3};
    if (bytes.n > OX_JSON_MAX_BYTES)
        return OX_FAIL(err, OX_LIMIT, "JSON: the text has %zu bytes, the limit is %d", bytes.n,
                       (int)OX_JSON_MAX_BYTES);
    ox_status st = OX_OK;
    parser *p = ox_calloc(1, sizeof(*p));
    char *copy = ox_arena_copy(arena, bytes.p, bytes.n);
    ox_json *top = ox_arena_take(arena, sizeof(*top));
    if (!p || !copy || !top) {
        ox_free(p);
        return OX_FAIL(err, OX_NO_MEMORY, "JSON: out of memory for %zu bytes of text", bytes.n);
    }
    *p = (parser){.text = copy, .at = copy, .end = copy + bytes.n, .arena = arena, .err = err};
    p->flags = flags;
    OX_TRY_GOTO(read_all(p));
    *top = p->stack.p[0];
    *root = top;
fail:
    ox_vec_deinit(&p->stack);
    ox_free(p);
    return st;
}

ox_status ox_json_parse(const ox_json **root, ox_arena *arena, ox_str bytes, ox_err *err)
{
    return ox_json_parse_with(root, arena, bytes, 0, err);
}
