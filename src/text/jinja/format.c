/* format.c - text with holes: the % operator and |format filter, and str.format.
 *
 * Both read their own notation into one `spec` and share what writes a value. Nested fields inside
 * a format spec are refused. */
#include "text/jinja/builtin.h"

#include <math.h>

enum { WIDTH_MAX = 100000, PRECISION_MAX = 120 };

typedef struct spec {
    ox_str fill; /* one code point */
    char align;  /* < > = ^ or 0 */
    char sign;   /* + - space or 0 */
    bool alternate, zero, comma;
    int64_t width, precision; /* precision -1: not given */
    char type;                /* 0: not given */
} spec;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_number(ox_str s, size_t *i)
{
    int64_t v = 0;
    for (; *i < s.n && is_digit(s.p[*i]); ++*i)
        if (v <= WIDTH_MAX) v = v * 10 + (s.p[*i] - '0');
    return v;
}

static ox_status check(ox_jstate *j, const spec *f)
{
    if (f->width > WIDTH_MAX || f->precision > PRECISION_MAX)
        return ox_jfail(j, OX_UNSUPPORTED, "format: width or precision is too large");
    return OX_OK;
}

/* body filled up to the width; `lead` bytes of it (sign, 0x) stay in front of zeros. */
static ox_status put_padded(ox_jstate *j, ox_jbuf *b, const spec *f, const ox_jstr *body,
                            size_t lead, char default_align)
{
    const int64_t n = (int64_t)ox_jutf8_count((ox_str){body->p, body->n});
    const int64_t room = f->width > n ? f->width - n : 0;
    const char align = f->align ? f->align : default_align;
    const int64_t left = align == '<' ? 0 : align == '^' ? room / 2 : room;
    const size_t split = align == '=' ? lead : 0;
    OX_TRY(ox_jspend(j, (uint64_t)room));
    OX_TRY(ox_jbuf_put_sub(j, b, body, 0, split));
    for (int64_t i = 0; i < left; i++)
        OX_TRY(ox_jbuf_put(j, b, f->fill.p, f->fill.n, false));
    OX_TRY(ox_jbuf_put_sub(j, b, body, split, body->n));
    for (int64_t i = left; i < room; i++)
        OX_TRY(ox_jbuf_put(j, b, f->fill.p, f->fill.n, false));
    return OX_OK;
}

static ox_status put_text(ox_jstate *j, ox_jbuf *b, const spec *f, const ox_jstr *s)
{
    const ox_str text = {s->p, s->n};
    ox_jval cut = ox_jstrval(s);
    if (f->precision >= 0)
        OX_TRY(ox_jstr_sub(j, s, 0, ox_jutf8_offset(text, (size_t)f->precision), &cut));
    return put_padded(j, b, f, cut.u.str, 0, '<');
}

/* Thousands separators into the digits of text[begin, end). */
static void put_grouped(ox_buf *b, ox_str digits)
{
    for (size_t i = 0; i < digits.n; i++) {
        if (i && (digits.n - i) % 3 == 0) ox_buf_put_c(b, ',');
        ox_buf_put_c(b, digits.p[i]);
    }
}

static ox_status finish_number(ox_jstate *j, ox_jbuf *b, const spec *f, bool minus,
                               const char *prefix, ox_str digits)
{
    ox_buf all = {0};
    size_t whole = 0;
    while (whole < digits.n && is_digit(digits.p[whole]))
        whole++;
    if (minus || f->sign == '+' || f->sign == ' ') ox_buf_put_c(&all, minus ? '-' : f->sign);
    ox_buf_put_z(&all, prefix);
    const size_t lead = all.n;
    if (f->comma)
        put_grouped(&all, (ox_str){digits.p, whole});
    else
        ox_buf_put(&all, digits.p, whole);
    ox_buf_put(&all, digits.p + whole, digits.n - whole);
    ox_jval v;
    ox_status st =
        all.failed ? ox_jno_memory(j) : ox_jstr_new(j, all.p, all.n, OX_JFROM_TEMPLATE, &v);
    ox_buf_deinit(&all);
    return st ? st : put_padded(j, b, f, v.u.str, lead, '>');
}

static ox_status put_int(ox_jstate *j, ox_jbuf *b, const spec *f, int64_t value)
{
    static const char low[] = "0123456789abcdef", high[] = "0123456789ABCDEF";
    const unsigned base = f->type == 'x' || f->type == 'X' ? 16
                          : f->type == 'o'                 ? 8
                          : f->type == 'b'                 ? 2
                                                           : 10;
    const char *prefix = !f->alternate    ? ""
                         : f->type == 'x' ? "0x"
                         : f->type == 'X' ? "0X"
                         : f->type == 'o' ? "0o"
                         : f->type == 'b' ? "0b"
                                          : "";
    char text[PRECISION_MAX + 72];
    size_t i = sizeof(text);
    uint64_t u = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        text[--i] = (f->type == 'X' ? high : low)[u % base];
        u /= base;
    } while (u);
    while (f->precision > 0 && sizeof(text) - i < (size_t)f->precision)
        text[--i] = '0';
    return finish_number(j, b, f, value < 0, prefix, (ox_str){text + i, sizeof(text) - i});
}

static ox_status put_float(ox_jstate *j, ox_jbuf *b, const spec *f, double v)
{
    ox_buf text = {0};
    const int precision = f->precision < 0 ? 6 : (int)f->precision;
    const double abs = fabs(v);
    OX_TRY(ox_jspend(j, 20 + (uint64_t)precision));
    if (f->type == 0 && f->precision < 0) {
        char repr[OX_JNUMBER_MAX];
        ox_buf_put(&text, repr, ox_jfloat_repr(repr, abs));
    } else if (f->type == 'e' || f->type == 'E') {
        ox_buf_printf(&text, f->type == 'e' ? "%.*e" : "%.*E", precision, abs);
    } else if (f->type == 'g' || f->type == 'G' || f->type == 0) {
        ox_buf_printf(&text, f->type == 'G' ? "%.*G" : "%.*g", precision, abs);
    } else if (f->type == '%') {
        ox_buf_printf(&text, "%.*f%%", precision, abs * 100);
    } else {
        ox_buf_printf(&text, "%.*f", precision, abs);
    }
    for (size_t i = 0; i < text.n; i++) /* whatever the locale's decimal point is */
        if (text.p[i] == ',') text.p[i] = '.';
    const ox_status st =
        text.failed ? ox_jno_memory(j)
                    : finish_number(j, b, f, signbit(v) && !isnan(v), "", ox_buf_view(&text));
    ox_buf_deinit(&text);
    return st;
}

/* ---- % ---- */

static ox_status percent_text(ox_jstate *j, ox_jbuf *b, const spec *f, ox_jval v)
{
    ox_jbuf text = {0};
    ox_jval s;
    if (f->type == 's')
        OX_TRY(ox_jput_str(j, &text, v));
    else
        OX_TRY(ox_jput_repr(j, &text, v));
    OX_TRY(ox_jbuf_take(j, &text, &s));
    spec g = *f;
    if (!g.align) g.align = '>';
    if (g.align == '=') g.align = '>';
    g.fill = OX_STR(" ");
    return put_text(j, b, &g, s.u.str);
}

static ox_status percent_char(ox_jstate *j, ox_jbuf *b, const spec *f, ox_jval v)
{
    ox_jbuf text = {0};
    if (ox_jis(v, OX_JKIND_STR)) {
        if (ox_jutf8_count(ox_jview(v)) != 1) return OX_JFAIL(j, "%%c needs one character");
        OX_TRY(ox_jbuf_put_str(j, &text, v.u.str));
    } else {
        const int64_t cp = ox_jis_int(v) ? ox_jas_int(v) : -1;
        if (cp < 0 || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
            return OX_JFAIL(j, "%%c needs a character or its number");
        OX_TRY(ox_jbuf_put_cp(j, &text, (uint32_t)cp, false));
    }
    OX_TRY(ox_jbuf_take(j, &text, &v));
    return put_padded(j, b, f, v.u.str, 0, '>');
}

static ox_status percent_value(ox_jstate *j, ox_jbuf *b, const spec *f, ox_jval v)
{
    const bool number = ox_jis_int(v) || ox_jis(v, OX_JKIND_FLOAT);
    if (f->type == 's' || f->type == 'r') return percent_text(j, b, f, v);
    if (f->type == 'c') return percent_char(j, b, f, v);
    if (!number) return OX_JFAIL(j, "%%%c needs a number, found %s", f->type, ox_jkind_name(v));
    if (strchr("eEfFgG", f->type))
        return put_float(j, b, f, ox_jis_int(v) ? (double)ox_jas_int(v) : v.u.f);
    if (ox_jis_int(v)) return put_int(j, b, f, ox_jas_int(v));
    if (strchr("xXo", f->type)) return OX_JFAIL(j, "%%%c needs an integer", f->type);
    if (!(fabs(v.u.f) < 9.2e18)) return OX_JFAIL(j, "%%d of a float beyond 64 bits");
    return put_int(j, b, f, (int64_t)v.u.f);
}

typedef struct percent_args {
    const ox_jargs *args;
    size_t next;
    bool named;
} percent_args;

static ox_status next_value(ox_jstate *j, percent_args *a, ox_jval *out)
{
    if (a->next >= a->args->n) return OX_JFAIL(j, "not enough values for the format");
    *out = a->args->pos[a->next++];
    return OX_OK;
}

static ox_status named_value(ox_jstate *j, percent_args *a, ox_str name, ox_jval *out)
{
    a->named = true;
    for (size_t i = 0; i < a->args->n_kw; i++)
        if (ox_str_eq(a->args->kw[i].name, name)) {
            *out = a->args->kw[i].value;
            return OX_OK;
        }
    return OX_JFAIL(j, "the format has no value for '%.*s'", OX_STR_ARGS(name));
}

static ox_status read_star(ox_jstate *j, ox_str s, size_t *i, percent_args *a, int64_t *out)
{
    ox_jval v;
    if (*i >= s.n || s.p[*i] != '*') {
        *out = read_number(s, i);
        return OX_OK;
    }
    ++*i;
    OX_TRY(next_value(j, a, &v));
    if (!ox_jis_int(v)) return OX_JFAIL(j, "* in a format needs an integer");
    *out = ox_jas_int(v);
    return OX_OK;
}

/* One conversion behind '%' at s[*i]. */
static ox_status percent_one(ox_jstate *j, ox_jbuf *b, ox_str s, size_t *i, percent_args *a)
{
    spec f = {.fill = OX_STR(" "), .precision = -1};
    ox_jval v = {0};
    bool have = false;
    if (*i < s.n && s.p[*i] == '(') {
        const size_t end = ox_str_find(s, OX_STR(")"), *i);
        if (end == SIZE_MAX) return OX_JFAIL(j, "incomplete key in a format");
        OX_TRY(named_value(j, a, (ox_str){s.p + *i + 1, end - *i - 1}, &v));
        have = true;
        *i = end + 1;
    }
    for (; *i < s.n && s.p[*i] && strchr("#0- +", s.p[*i]); ++*i) {
        const char c = s.p[*i];
        f.alternate |= c == '#';
        f.zero |= c == '0';
        if (c == '-') f.align = '<';
        if (c == '+' || (c == ' ' && !f.sign)) f.sign = c;
    }
    OX_TRY(read_star(j, s, i, a, &f.width));
    if (*i < s.n && s.p[*i] == '.') {
        ++*i;
        OX_TRY(read_star(j, s, i, a, &f.precision));
    }
    while (*i < s.n && (s.p[*i] == 'h' || s.p[*i] == 'l' || s.p[*i] == 'L'))
        ++*i;
    if (*i >= s.n) return OX_JFAIL(j, "incomplete format");
    f.type = s.p[(*i)++];
    if (f.type == '%') return ox_jbuf_put_z(j, b, "%");
    if (!f.type || !strchr("diueEfFgGxXocrsa", f.type))
        return OX_JFAIL(j, "unsupported format character '%c'", f.type);
    if (f.type == 'a') f.type = 'r';
    if (f.width < 0) {
        f.align = '<';
        f.width = f.width < -WIDTH_MAX ? WIDTH_MAX + 1 : -f.width;
    }
    if (f.zero && !f.align) {
        f.align = '=';
        f.fill = OX_STR("0");
    }
    OX_TRY(check(j, &f));
    if (!have) OX_TRY(next_value(j, a, &v));
    return percent_value(j, b, &f, v);
}

ox_status ox_jpercent(ox_jstate *j, const ox_jstr *fmt, const ox_jargs *args, ox_jval *out)
{
    const ox_str s = {fmt->p, fmt->n};
    percent_args a = {.args = args};
    ox_jbuf b = {0};
    for (size_t i = 0; i < s.n;) {
        const char *hit = memchr(s.p + i, '%', s.n - i);
        const size_t end = hit ? (size_t)(hit - s.p) : s.n;
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(ox_jbuf_put_sub(j, &b, fmt, i, end));
        i = end + 1;
        if (hit) OX_TRY(percent_one(j, &b, s, &i, &a));
    }
    const bool dict_alone = args->n == 1 && ox_jis(args->pos[0], OX_JKIND_DICT);
    if (a.next < args->n && !a.named && !dict_alone)
        return OX_JFAIL(j, "not all values are used by the format");
    return ox_jbuf_take(j, &b, out);
}

/* ---- str.format ---- */

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '=' || c == '^';
}

static ox_status read_spec(ox_jstate *j, ox_str s, spec *f)
{
    size_t i = 0;
    *f = (spec){.fill = OX_STR(" "), .precision = -1};
    const size_t first = s.n ? ox_jutf8_size(s, 0) : 0;
    if (first && first < s.n && is_align(s.p[first])) {
        f->fill = (ox_str){s.p, first};
        f->align = s.p[first];
        i = first + 1;
    } else if (s.n && is_align(s.p[0])) {
        f->align = s.p[0];
        i = 1;
    }
    if (i < s.n && (s.p[i] == '+' || s.p[i] == '-' || s.p[i] == ' ')) f->sign = s.p[i++];
    if (i < s.n && s.p[i] == '#') {
        f->alternate = true;
        i++;
    }
    if (i < s.n && s.p[i] == '0') {
        f->zero = true;
        i++;
        if (!f->align) {
            f->align = '=';
            f->fill = OX_STR("0");
        }
    }
    f->width = read_number(s, &i);
    if (i < s.n && s.p[i] == ',') {
        f->comma = true;
        i++;
    }
    if (i < s.n && s.p[i] == '.') {
        i++;
        if (i >= s.n || !is_digit(s.p[i])) return OX_JFAIL(j, "format: precision is missing");
        f->precision = read_number(s, &i);
    }
    if (i < s.n) f->type = s.p[i++];
    if (i != s.n) return OX_JFAIL(j, "format: invalid specifier '%.*s'", OX_STR_ARGS(s));
    return check(j, f);
}

static ox_status format_value(ox_jstate *j, ox_jbuf *b, ox_jval v, ox_str text)
{
    spec f;
    OX_TRY(read_spec(j, text, &f));
    if (!text.n) return ox_jput_str(j, b, v);
    if (ox_jis(v, OX_JKIND_STR)) {
        if ((f.type && f.type != 's') || f.align == '=' || f.sign || f.comma)
            return OX_JFAIL(j, "format: '%.*s' is not for %s", OX_STR_ARGS(text), ox_jkind_name(v));
        return put_text(j, b, &f, v.u.str);
    }
    if (ox_jis_int(v) && (!f.type || strchr("dxXobn", f.type))) {
        if (f.precision >= 0) return OX_JFAIL(j, "format: precision is not for integers");
        return put_int(j, b, &f, ox_jas_int(v));
    }
    if ((ox_jis_int(v) || ox_jis(v, OX_JKIND_FLOAT)) && (!f.type || strchr("eEfFgG%n", f.type)))
        return put_float(j, b, &f, ox_jis_int(v) ? (double)ox_jas_int(v) : v.u.f);
    return OX_JFAIL(j, "format: '%.*s' is not for %s", OX_STR_ARGS(text), ox_jkind_name(v));
}

typedef struct field_args {
    const ox_jargs *args;
    size_t next;
    bool automatic, numbered;
} field_args;

/* The first part of a field: "", "0" or "name". */
static ox_status field_base(ox_jstate *j, ox_str name, field_args *a, ox_jval *out)
{
    uint64_t i = a->next;
    const bool number = ox_str_to_u64(name, &i);
    if (name.n && !number) {
        for (size_t k = 0; k < a->args->n_kw; k++)
            if (ox_str_eq(a->args->kw[k].name, name)) {
                *out = a->args->kw[k].value;
                return OX_OK;
            }
        return OX_JFAIL(j, "format: no value for '%.*s'", OX_STR_ARGS(name));
    }
    a->automatic |= !number;
    a->numbered |= number;
    if (a->automatic && a->numbered) return OX_JFAIL(j, "format: {} and {0} can't be mixed");
    if (!number) a->next++;
    if (i >= a->args->n) return OX_JFAIL(j, "format: not enough values");
    *out = a->args->pos[i];
    return OX_OK;
}

/* base followed by .name and [index]. */
static ox_status field_value(ox_jstate *j, ox_str f, field_args *a, ox_jval *out)
{
    size_t i = 0;
    while (i < f.n && f.p[i] != '.' && f.p[i] != '[')
        i++;
    OX_TRY(field_base(j, (ox_str){f.p, i}, a, out));
    while (i < f.n) {
        const bool dot = f.p[i] == '.';
        size_t end = i + 1;
        while (end < f.n && (dot ? f.p[end] != '.' && f.p[end] != '[' : f.p[end] != ']'))
            end++;
        if ((!dot && f.p[i] != '[') || (!dot && end == f.n) || end == i + 1)
            return OX_JFAIL(j, "format: malformed field '%.*s'", OX_STR_ARGS(f));
        ox_jval key;
        const ox_str name = {f.p + i + 1, end - i - 1};
        int64_t index;
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(ox_jstr_borrow(j, name.p, name.n, OX_JFROM_TEMPLATE, &key));
        if (dot)
            OX_TRY(ox_jgetattr(j, *out, key, NULL, out));
        else
            OX_TRY(ox_jgetitem(j, *out, ox_str_to_i64(name, &index) ? ox_jint(index) : key, NULL,
                               out));
        i = dot ? end : end + 1;
    }
    return OX_OK;
}

/* The replacement field s[begin, end) between its braces. */
static ox_status format_field(ox_jstate *j, ox_jbuf *b, ox_str field, field_args *a)
{
    size_t name = 0;
    while (name < field.n && field.p[name] != ':' && field.p[name] != '!')
        name++;
    char conversion = 0;
    size_t at = name;
    ox_jval v;
    if (at < field.n && field.p[at] == '!') {
        if (at + 1 >= field.n) return OX_JFAIL(j, "format: conversion is missing");
        conversion = field.p[at + 1];
        at += 2;
        if (at < field.n && field.p[at] != ':') return OX_JFAIL(j, "format: expected ':'");
    }
    const ox_str spec_text =
        at < field.n ? (ox_str){field.p + at + 1, field.n - at - 1} : (ox_str){"", 0};
    OX_TRY(field_value(j, (ox_str){field.p, name}, a, &v));
    if (conversion == 's') {
        OX_TRY(ox_jto_str(j, v, &v));
    } else if (conversion == 'r') {
        ox_jbuf text = {0};
        OX_TRY(ox_jput_repr(j, &text, v));
        OX_TRY(ox_jbuf_take(j, &text, &v));
    } else if (conversion) {
        return OX_JFAIL(j, "format: unknown conversion '!%c'", conversion);
    }
    return format_value(j, b, v, spec_text);
}

ox_status ox_jformat(ox_jstate *j, const ox_jstr *fmt, const ox_jargs *args, ox_jval *out)
{
    const ox_str s = {fmt->p, fmt->n};
    field_args a = {.args = args};
    ox_jbuf b = {0};
    for (size_t i = 0; i < s.n;) {
        size_t end = i;
        while (end < s.n && s.p[end] != '{' && s.p[end] != '}')
            end++;
        OX_TRY(ox_jspend(j, 1 + (end - i) / 64));
        OX_TRY(ox_jbuf_put_sub(j, &b, fmt, i, end));
        i = end;
        if (i >= s.n) break;
        if (i + 1 < s.n && s.p[i + 1] == s.p[i]) {
            OX_TRY(ox_jbuf_put_sub(j, &b, fmt, i, i + 1));
            i += 2;
            continue;
        }
        const size_t close = s.p[i] == '{' ? ox_str_find(s, OX_STR("}"), i) : SIZE_MAX;
        if (close == SIZE_MAX) return OX_JFAIL(j, "format: single '%c'", s.p[i]);
        const ox_str field = {s.p + i + 1, close - i - 1};
        if (field.n && memchr(field.p, '{', field.n))
            return ox_jfail(j, OX_UNSUPPORTED, "format: fields inside fields are not supported");
        OX_TRY(format_field(j, &b, field, &a));
        i = close + 1;
    }
    return ox_jbuf_take(j, &b, out);
}
