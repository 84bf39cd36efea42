/* unicode.c - UTF-8 by hand, categories and lower case from utf8proc's tables. */
#include "text/unicode.h"

#include <utf8proc.h>

size_t ox_utf8_length(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    if (!n) return 0;
    const unsigned char a = u[0];
    if (a < 0x80) return 1;
    const size_t need = a < 0xc2 ? 0 : a < 0xe0 ? 2 : a < 0xf0 ? 3 : a < 0xf5 ? 4 : 0;
    if (!need || need > n) return 0;
    if ((a == 0xe0 && u[1] < 0xa0) || (a == 0xed && u[1] > 0x9f)) return 0;
    if ((a == 0xf0 && u[1] < 0x90) || (a == 0xf4 && u[1] > 0x8f)) return 0;
    for (size_t i = 1; i < need; i++) {
        if ((u[i] & 0xc0) != 0x80) return 0;
    }
    return need;
}

/* Length of the longest prefix of s that could begin a well-formed character; 0 for none. */
static size_t legal_prefix(const unsigned char *u, size_t n, size_t *need)
{
    const unsigned char a = u[0];
    *need = a < 0x80 ? 1 : a < 0xc2 ? 0 : a < 0xe0 ? 2 : a < 0xf0 ? 3 : a < 0xf5 ? 4 : 0;
    if (!*need) return 0;
    size_t i = 1;
    for (; i < *need && i < n; i++) {
        unsigned char lo = 0x80, hi = 0xbf;
        if (i == 1 && a == 0xe0) lo = 0xa0;
        if (i == 1 && a == 0xed) hi = 0x9f;
        if (i == 1 && a == 0xf0) lo = 0x90;
        if (i == 1 && a == 0xf4) hi = 0x8f;
        if (u[i] < lo || u[i] > hi) break;
    }
    return i;
}

size_t ox_utf8_partial(const char *s, size_t n)
{
    size_t need;
    if (!n) return 0;
    const size_t legal = legal_prefix((const unsigned char *)s, n, &need);
    return legal == n && legal < need ? n : 0;
}

size_t ox_utf8_check(ox_str s)
{
    size_t i = 0;
    while (i < s.n) {
        uint64_t v;
        while (s.n - i >= 8) {
            memcpy(&v, s.p + i, 8);
            if (v & 0x8080808080808080u) break;
            i += 8;
        }
        if (i == s.n) break;
        const size_t n = ox_utf8_length(s.p + i, s.n - i);
        if (!n) return i;
        i += n;
    }
    return s.n;
}

void ox_utf8_put_lossy(ox_buf *out, ox_str s)
{
    while (s.n) {
        const size_t good = ox_utf8_check(s);
        ox_buf_put(out, s.p, good);
        s = (ox_str){s.p + good, s.n - good};
        if (!s.n) break;
        size_t need;
        const size_t bad = legal_prefix((const unsigned char *)s.p, s.n, &need);
        ox_buf_put_z(out, "\xef\xbf\xbd");
        s = (ox_str){s.p + (bad ? bad : 1), s.n - (bad ? bad : 1)};
    }
}

size_t ox_utf8_encode(char *w, uint32_t c)
{
    if (c < 0x80) {
        w[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        w[0] = (char)(0xc0 | c >> 6);
        w[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        w[0] = (char)(0xe0 | c >> 12);
        w[1] = (char)(0x80 | (c >> 6 & 0x3f));
        w[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    w[0] = (char)(0xf0 | c >> 18);
    w[1] = (char)(0x80 | (c >> 12 & 0x3f));
    w[2] = (char)(0x80 | (c >> 6 & 0x3f));
    w[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

void ox_utf8_put(ox_buf *out, uint32_t c)
{
    char w[4];
    ox_buf_put(out, w, ox_utf8_encode(w, c));
}

bool ox_char_is_space(uint32_t c)
{
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool ox_char_is_mark_nonspacing(uint32_t c)
{
    return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN;
}

bool ox_char_is_mark(uint32_t c)
{
    if (c < 0x300) return false;
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

bool ox_char_is_numeric(uint32_t c)
{
    if (c < 0x80) return c >= '0' && c <= '9';
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool ox_char_is_word(uint32_t c)
{
    if (c < 0x80) return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    if (c == 0x200c || c == 0x200d) return true;
    if ((c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
        (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189))
        return true;
    const utf8proc_category_t k = category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_ME) || k == UTF8PROC_CATEGORY_ND ||
           k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_PC;
}

bool ox_char_is_punct(uint32_t c)
{
    if (c < 0x80)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
               (c >= 123 && c <= 126);
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool ox_char_is_other(uint32_t c)
{
    if (c < 0x7f) return c < 0x20;
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_CC;
}

void ox_char_put_lower(ox_buf *out, uint32_t c)
{
    if (c < 0x80) {
        ox_buf_put_c(out, (char)(c >= 'A' && c <= 'Z' ? c + 32 : c));
        return;
    }
    if (c == 0x130) { /* the only character whose lower case is two */
        ox_buf_put_z(out, "i\xcc\x87");
        return;
    }
    ox_utf8_put(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}
