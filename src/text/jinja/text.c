/* text.c - what filters and methods on text share: letter case, replacing, joining, padding,
 * lines, and reading numbers.
 *
 * Case mapping is one code point to one, plus the common exceptions in `grown`; a Greek capital
 * sigma at the end of a word becomes a plain small sigma. */
#include "text/jinja/builtin.h"

#include <math.h>
#include <utf8proc.h>

/* Upper-case forms of more than one character. */
static const struct grown_row {
    uint32_t cp;
    const char *upper, *title;
} grown[] = {
    {0xDF, "SS", "Ss"},
    {0x149, "\xCA\xBCN", "\xCA\xBCN"},
    {0x587, "\xD4\xB5\xD5\x92", "\xD4\xB5\xD6\x82"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
};

typedef enum shape { SHAPE_UPPER, SHAPE_LOWER, SHAPE_TITLE } shape;

static utf8proc_category_t category(uint32_t cp)
{
    return cp >= 0xDC80 && cp <= 0xDCFF ? UTF8PROC_CATEGORY_CN
                                        : utf8proc_category((utf8proc_int32_t)cp);
}

static bool is_cased(uint32_t cp)
{
    const utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

static ox_status put_shaped(ox_jstate *j, ox_jbuf *b, uint32_t cp, shape how, bool input)
{
    if (cp < 0x80) {
        char c = (char)cp;
        if (how == SHAPE_LOWER && c >= 'A' && c <= 'Z') c = (char)(c + 32);
        if (how != SHAPE_LOWER && c >= 'a' && c <= 'z') c = (char)(c - 32);
        return ox_jbuf_put(j, b, &c, 1, input);
    }
    for (size_t i = 0; how != SHAPE_LOWER && i < OX_COUNT(grown); i++)
        if (grown[i].cp == cp) {
            const ox_str t = ox_str_of(how == SHAPE_UPPER ? grown[i].upper : grown[i].title);
            return ox_jbuf_put(j, b, t.p, t.n, input);
        }
    if (cp == 0x130 && how == SHAPE_LOWER) return ox_jbuf_put(j, b, "i\xCC\x87", 3, input);
    if (cp < 0xDC80 || cp > 0xDCFF) {
        const utf8proc_int32_t c = (utf8proc_int32_t)cp;
        cp = (uint32_t)(how == SHAPE_LOWER   ? utf8proc_tolower(c)
                        : how == SHAPE_UPPER ? utf8proc_toupper(c)
                                             : utf8proc_totitle(c));
    }
    return ox_jbuf_put_cp(j, b, cp, input);
}

typedef struct recase {
    ox_jcase how;
    bool inside; /* a word has begun */
} recase;

static bool ends_word(uint32_t cp)
{
    return ox_jspace(cp) || cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<';
}

static shape shape_of(recase *r, uint32_t cp)
{
    const bool inside = r->inside;
    switch (r->how) {
    case OX_JCASE_UPPER:
        return SHAPE_UPPER;
    case OX_JCASE_LOWER:
        return SHAPE_LOWER;
    case OX_JCASE_TITLE:
        r->inside = is_cased(cp);
        return inside ? SHAPE_LOWER : SHAPE_TITLE;
    case OX_JCASE_WORDS:
        r->inside = !ends_word(cp);
        return inside ? SHAPE_LOWER : SHAPE_UPPER;
    case OX_JCASE_CAPITALIZE:
        r->inside = true;
        return inside ? SHAPE_LOWER : SHAPE_TITLE;
    default:
        return category(cp) == UTF8PROC_CATEGORY_LU ? SHAPE_LOWER : SHAPE_UPPER;
    }
}

static ox_status recase_piece(ox_jstate *j, ox_jbuf *b, ox_str s, bool input, void *ctx)
{
    recase *r = ctx;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        i += ox_jutf8_read(s, i, &cp);
        OX_TRY(put_shaped(j, b, cp, shape_of(r, cp), input));
    }
    return OX_OK;
}

ox_status ox_jrecase(ox_jstate *j, const ox_jstr *s, ox_jcase how, ox_jval *out)
{
    recase r = {how, false};
    ox_jbuf b = {0};
    OX_TRY(ox_jspend(j, 1 + s->n / 8));
    OX_TRY(ox_jstr_pieces(j, &b, s, recase_piece, &r));
    return ox_jbuf_take(j, &b, out);
}

bool ox_jis_lower(ox_str s)
{
    bool any = false;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        i += ox_jutf8_read(s, i, &cp);
        if (!is_cased(cp)) continue;
        if (category(cp) != UTF8PROC_CATEGORY_LL) return false;
        any = true;
    }
    return any;
}

bool ox_jis_upper(ox_str s)
{
    bool any = false;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        i += ox_jutf8_read(s, i, &cp);
        if (!is_cased(cp)) continue;
        if (category(cp) != UTF8PROC_CATEGORY_LU) return false;
        any = true;
    }
    return any;
}

bool ox_jis_alnum(uint32_t cp)
{
    const utf8proc_category_t c = category(cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
           (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
}

/* With an empty `old`, `with` goes before every code point and behind the last. */
static ox_status replace_empty(ox_jstate *j, const ox_jstr *s, const ox_jstr *with, int64_t count,
                               ox_jval *out)
{
    ox_jbuf b = {0};
    size_t i = 0;
    for (; count; count--) {
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(ox_jbuf_put_str(j, &b, with));
        if (i >= s->n) break;
        const size_t n = ox_jutf8_size((ox_str){s->p, s->n}, i);
        OX_TRY(ox_jbuf_put_sub(j, &b, s, i, i + n));
        i += n;
    }
    if (i < s->n) OX_TRY(ox_jbuf_put_sub(j, &b, s, i, s->n));
    return ox_jbuf_take(j, &b, out);
}

ox_status ox_jreplace(ox_jstate *j, const ox_jstr *s, const ox_jstr *old, const ox_jstr *with,
                      int64_t count, ox_jval *out)
{
    OX_TRY(ox_jspend_bytes(j, s->n));
    if (!old->n) return replace_empty(j, s, with, count, out);
    const ox_str text = {s->p, s->n}, needle = {old->p, old->n};
    size_t at = 0, hit = ox_str_find(text, needle, 0);
    if (hit == SIZE_MAX || !count) {
        *out = ox_jstrval(s);
        return OX_OK;
    }
    ox_jbuf b = {0};
    for (; hit != SIZE_MAX && count; count--) {
        OX_TRY(ox_jspend(j, 1));
        OX_TRY(ox_jbuf_put_sub(j, &b, s, at, hit));
        OX_TRY(ox_jbuf_put_str(j, &b, with));
        at = hit + old->n;
        hit = ox_str_find(text, needle, at);
    }
    OX_TRY(ox_jbuf_put_sub(j, &b, s, at, s->n));
    return ox_jbuf_take(j, &b, out);
}

ox_status ox_jjoin(ox_jstate *j, const ox_jstr *between, const ox_jseq *items, ox_jval *out)
{
    ox_jbuf b = {0};
    for (size_t i = 0; i < items->n; i++) {
        OX_TRY(ox_jspend(j, 1));
        if (i) OX_TRY(ox_jbuf_put_str(j, &b, between));
        OX_TRY(ox_jput_str(j, &b, items->p[i]));
    }
    return ox_jbuf_take(j, &b, out);
}

static bool ends_line(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

size_t ox_jline(ox_str s, size_t at, size_t *end)
{
    while (at < s.n) {
        uint32_t cp;
        const size_t n = ox_jutf8_read(s, at, &cp);
        if (ends_line(cp)) {
            *end = at;
            return at + n + (cp == '\r' && at + 1 < s.n && s.p[at + 1] == '\n');
        }
        at += n;
    }
    *end = s.n;
    return s.n;
}

ox_status ox_jpad(ox_jstate *j, const ox_jstr *s, int64_t left, int64_t right, ox_str fill,
                  ox_jval *out)
{
    const int64_t most = (int64_t)(j->memory_max / 8);
    if (left > most || right > most) return ox_jno_memory(j);
    ox_jbuf b = {0};
    if (left > 0) OX_TRY(ox_jspend(j, (uint64_t)left));
    if (right > 0) OX_TRY(ox_jspend(j, (uint64_t)right));
    for (int64_t i = 0; i < left; i++)
        OX_TRY(ox_jbuf_put(j, &b, fill.p, fill.n, false));
    OX_TRY(ox_jbuf_put_str(j, &b, s));
    for (int64_t i = 0; i < right; i++)
        OX_TRY(ox_jbuf_put(j, &b, fill.p, fill.n, false));
    return ox_jbuf_take(j, &b, out);
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    const char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

bool ox_jparse_int(ox_str s, int64_t base, int64_t *out)
{
    size_t i, end;
    ox_jstrip(s, (ox_str){NULL, 0}, true, true, &i, &end);
    if (base && (base < 2 || base > 36)) return false;
    const bool minus = i < end && s.p[i] == '-';
    if (i < end && (s.p[i] == '-' || s.p[i] == '+')) i++;
    bool prefixed = false;
    if (i + 1 < end && s.p[i] == '0') {
        const char mark = (char)(s.p[i + 1] | 0x20);
        const int64_t named = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
        if (named && (base == 0 || base == named)) {
            base = named;
            i += 2;
            prefixed = true;
        }
    }
    if (!base) base = 10;
    uint64_t v = 0;
    bool digit_before = prefixed;
    if (i >= end) return false;
    for (; i < end; i++) {
        if (s.p[i] == '_') {
            if (!digit_before || i + 1 == end) return false;
            digit_before = false;
            continue;
        }
        const int d = digit_value(s.p[i]);
        if (d >= base) return false;
        digit_before = true;
        if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    if (v > (uint64_t)INT64_MAX + minus) return false;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool ox_jparse_float(ox_str s, double *out)
{
    char text[120];
    size_t i, end, n = 0;
    ox_jstrip(s, (ox_str){NULL, 0}, true, true, &i, &end);
    for (; i < end && n < sizeof(text); i++) {
        if (s.p[i] == '_') {
            const bool between =
                n && i + 1 < end && digit_value(s.p[i - 1]) < 10 && digit_value(s.p[i + 1]) < 10;
            if (!between) return false;
            continue;
        }
        if ((s.p[i] | 0x20) == 'x' || s.p[i] == '(') return false; /* hex floats, nan(…) */
        text[n++] = s.p[i];
    }
    return n < sizeof(text) && ox_str_to_f64((ox_str){text, n}, out);
}
