/* json_write.c - writes JSON onto a buffer: separators and
 * indentation, escapes, shortest numbers. */
#include "base/json.h"

static void new_line(ox_json_writer *w)
{
    ox_buf_put_c(w->out, '\n');
    for (int i = 0; i < w->depth * w->indent; i++)
        ox_buf_put_c(w->out, ' ');
}

/* Before a key, or before a value that has no key. */
static void separate(ox_json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->after_item) ox_buf_put_c(w->out, ',');
    if (w->indent && w->depth)
        new_line(w);
    else if (w->after_item && w->spaced)
        ox_buf_put_c(w->out, ' ');
}

static void begin(ox_json_writer *w, char bracket)
{
    separate(w);
    ox_buf_put_c(w->out, bracket);
    w->depth++;
    w->after_item = false;
}

static void end(ox_json_writer *w, char bracket)
{
    w->depth--;
    if (w->indent && w->after_item) new_line(w);
    ox_buf_put_c(w->out, bracket);
    w->after_item = true;
}

void ox_json_begin_object(ox_json_writer *w)
{
    begin(w, '{');
}

void ox_json_end_object(ox_json_writer *w)
{
    end(w, '}');
}

void ox_json_begin_array(ox_json_writer *w)
{
    begin(w, '[');
}

void ox_json_end_array(ox_json_writer *w)
{
    end(w, ']');
}

void ox_json_put_key_str(ox_json_writer *w, ox_str key)
{
    separate(w);
    ox_json_quote(w->out, key);
    ox_buf_put_z(w->out, w->indent || w->spaced ? ": " : ":");
    w->after_key = true;
    w->after_item = true;
}

void ox_json_put_key(ox_json_writer *w, const char *key)
{
    ox_json_put_key_str(w, ox_str_of(key));
}

void ox_json_put_raw(ox_json_writer *w, ox_str json_text)
{
    separate(w);
    ox_buf_put_str(w->out, json_text);
    w->after_item = true;
}

void ox_json_put_str(ox_json_writer *w, ox_str s)
{
    separate(w);
    ox_json_quote(w->out, s);
    w->after_item = true;
}

void ox_json_put_null(ox_json_writer *w)
{
    ox_json_put_raw(w, OX_STR("null"));
}

void ox_json_put_z(ox_json_writer *w, const char *z)
{
    if (z)
        ox_json_put_str(w, ox_str_of(z));
    else
        ox_json_put_null(w);
}

void ox_json_put_bool(ox_json_writer *w, bool v)
{
    ox_json_put_raw(w, v ? OX_STR("true") : OX_STR("false"));
}

void ox_json_put_u64(ox_json_writer *w, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    ox_json_put_raw(w, (ox_str){digits + at, sizeof(digits) - at});
}

void ox_json_put_i64(ox_json_writer *w, int64_t v)
{
    if (v >= 0) {
        ox_json_put_u64(w, (uint64_t)v);
        return;
    }
    separate(w);
    ox_buf_put_c(w->out, '-');
    w->after_key = true; /* the digits follow at once */
    ox_json_put_u64(w, 0 - (uint64_t)v);
}

void ox_json_put_f64(ox_json_writer *w, double v)
{
    if (!__builtin_isfinite(v)) {
        ox_json_put_null(w);
        return;
    }
    separate(w);
    ox_json_print_f64(w->out, v);
    w->after_item = true;
}

void ox_json_put_node(ox_json_writer *w, const ox_json *node)
{
    if (!node) {
        ox_json_put_null(w);
        return;
    }
    switch ((ox_json_kind)node->kind) {
    case OX_JSON_NULL:
        ox_json_put_null(w);
        break;
    case OX_JSON_BOOL:
        ox_json_put_bool(w, node->truth);
        break;
    case OX_JSON_NUMBER:
        if (node->is_int)
            ox_json_put_i64(w, node->u.i);
        else
            ox_json_put_f64(w, node->u.f);
        break;
    case OX_JSON_STRING:
        ox_json_put_str(w, ox_json_str(node));
        break;
    case OX_JSON_ARRAY:
        ox_json_begin_array(w);
        for (size_t i = 0; i < node->n; i++)
            ox_json_put_node(w, &node->u.items[i]);
        ox_json_end_array(w);
        break;
    case OX_JSON_OBJECT:
        ox_json_begin_object(w);
        for (size_t i = 0; i < node->n; i++) {
            ox_json_put_key_str(w, ox_json_str(&node->u.members[i].key));
            ox_json_put_node(w, &node->u.members[i].value);
        }
        ox_json_end_object(w);
        break;
    }
}

/* Bytes of the well-formed sequence at s, 0 when ill-formed or cut. */
static size_t utf8_sequence(const unsigned char *s, size_t n)
{
    const unsigned char a = s[0];
    const size_t need = a < 0x80   ? 1
                        : a < 0xc2 ? 0
                        : a < 0xe0 ? 2
                        : a < 0xf0 ? 3
                        : a < 0xf5 ? 4
                                   : 0;
    if (!need || need > n) return 0;
    for (size_t i = 1; i < need; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    if ((a == 0xe0 && s[1] < 0xa0) || (a == 0xed && s[1] > 0x9f)) return 0;
    if ((a == 0xf0 && s[1] < 0x90) || (a == 0xf4 && s[1] > 0x8f)) return 0;
    return need;
}

static void put_escape(ox_buf *out, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", hex[] = "0123456789abcdef";
    const char *hit = c ? strchr(from, c) : NULL;
    ox_buf_put_c(out, '\\');
    if (hit) {
        ox_buf_put_c(out, to[hit - from]);
        return;
    }
    ox_buf_put_z(out, "u00");
    ox_buf_put_c(out, hex[c >> 4]);
    ox_buf_put_c(out, hex[c & 15]);
}

size_t ox_json_utf8_check(ox_str s)
{
    size_t i = 0, n;
    while (i < s.n && (n = utf8_sequence((const unsigned char *)s.p + i, s.n - i)) > 0)
        i += n;
    return i;
}

void ox_json_quote(ox_buf *out, ox_str s)
{
    const unsigned char *u = (const unsigned char *)s.p;
    size_t plain = 0, i = 0;
    ox_buf_put_c(out, '"');
    while (i < s.n) {
        const size_t n = utf8_sequence(u + i, s.n - i);
        if (n && u[i] >= 0x20 && u[i] != '"' && u[i] != '\\') {
            i += n;
            continue;
        }
        ox_buf_put(out, u + plain, i - plain);
        if (n)
            put_escape(out, u[i]);
        else
            ox_buf_put_z(out, "\xef\xbf\xbd");
        plain = ++i;
    }
    if (i > plain) ox_buf_put(out, u + plain, i - plain);
    ox_buf_put_c(out, '"');
}

/* Digits d1 d2 ... without point and the decimal exponent of d1, from "d.ddde+xx" in any locale. */
static size_t split_scientific(const char *text, char *digits, int *exponent)
{
    size_t n = 0;
    const char *e = strchr(text, 'e');
    for (const char *c = text; c < e; c++) {
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    }
    while (n > 1 && digits[n - 1] == '0')
        n--;
    *exponent = 0;
    for (const char *c = e + 2; *c; c++)
        *exponent = *exponent * 10 + (*c - '0');
    if (e[1] == '-') *exponent = -*exponent;
    return n;
}

/* Shortest digit count (up to 17) that reads back as v; v is finite and positive. */
static size_t shortest_digits(double v, char *digits, int *exponent)
{
    size_t n = 0;
    ox_buf text = {0};
    const int first = v < 0x1p-1022 ? 0 : 14; /* 15 digits always fit a normal number */
    for (int precision = first; precision < 17; precision++) {
        char number[40];
        double back;
        ox_buf_clear(&text);
        ox_buf_printf(&text, "%.*e", precision, v);
        if (text.failed) break;
        n = split_scientific(text.p, digits, exponent);
        ox_buf again = {0};
        ox_buf_printf(&again, "%.*se%d", (int)n, digits, *exponent - (int)n + 1);
        const bool copied = !again.failed && again.n < sizeof(number);
        if (copied) memcpy(number, again.p, again.n);
        const bool same =
            copied && ox_str_to_f64((ox_str){number, again.n}, &back) && !(back < v) && !(back > v);
        ox_buf_deinit(&again);
        if (same) break;
    }
    ox_buf_deinit(&text);
    return n;
}

void ox_json_print_f64(ox_buf *out, double v)
{
    char digits[24];
    int exponent = 0;
    if (__builtin_signbit(v)) ox_buf_put_c(out, '-');
    v = __builtin_fabs(v);
    if (!(v > 0)) {
        ox_buf_put_z(out, "0.0");
        return;
    }
    const int n = (int)shortest_digits(v, digits, &exponent);
    if (!n) {
        out->failed = true;
        return;
    }
    if (exponent < -4 || exponent >= 16) {
        ox_buf_put_c(out, digits[0]);
        if (n > 1) ox_buf_put_c(out, '.');
        ox_buf_put(out, digits + 1, (size_t)n - 1);
        ox_buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+',
                      exponent < 0 ? -exponent : exponent);
        return;
    }
    if (exponent < 0) ox_buf_put_z(out, "0.");
    for (int i = exponent + 1; i < 0; i++)
        ox_buf_put_c(out, '0');
    for (int i = 0; i < n || i <= exponent; i++) {
        if (i && i == exponent + 1) ox_buf_put_c(out, '.');
        ox_buf_put_c(out, i < n ? digits[i] : '0');
    }
    if (n <= exponent + 1) ox_buf_put_z(out, ".0");
}
