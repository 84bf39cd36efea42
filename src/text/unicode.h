/* unicode.h - UTF-8 and the few character classes that text processing needs.
 *
 * Functions that take a position inside text (ox_utf8_next) need well-formed UTF-8: check once at
 * the border with ox_utf8_check. Thread safe; no state. */
#ifndef OX_TEXT_UNICODE_H
#define OX_TEXT_UNICODE_H
#include "base/str.h"

/* Bytes of the well-formed character at s (n bytes readable), 0 when ill-formed or cut short. */
size_t ox_utf8_length(const char *s, size_t n);
/* Bytes that belong to an incomplete but so far legal character at s, when it ends with n. 0 when
 * more bytes can't make it legal. */
size_t ox_utf8_partial(const char *s, size_t n);
/* Offset of the first byte that is not well-formed UTF-8, or s.n. */
size_t ox_utf8_check(ox_str s);
/* Appends s with every maximal ill-formed part replaced by U+FFFD. */
void ox_utf8_put_lossy(ox_buf *out, ox_str s);
/* Writes code point c (not a surrogate, at most U+10FFFF) to w (4 bytes of room): bytes written. */
size_t ox_utf8_encode(char *w, uint32_t c);
void ox_utf8_put(ox_buf *out, uint32_t c);

/* The code point at *p, which moves behind it. */
static inline uint32_t ox_utf8_next(const char **p)
{
    const unsigned char *u = (const unsigned char *)*p;
    const uint32_t a = u[0];
    if (a < 0x80) {
        *p += 1;
        return a;
    }
    if (a < 0xe0) {
        *p += 2;
        return (a & 0x1f) << 6 | (u[1] & 0x3fu);
    }
    if (a < 0xf0) {
        *p += 3;
        return (a & 0x0f) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    }
    *p += 4;
    return (a & 0x07) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
}

bool ox_char_is_space(uint32_t c);           /* White_Space */
bool ox_char_is_word(uint32_t c);            /* Alphabetic, M, Nd, Pc, Join_Control */
bool ox_char_is_numeric(uint32_t c);         /* N */
bool ox_char_is_punct(uint32_t c);           /* P, and all ASCII punctuation and symbols */
bool ox_char_is_mark(uint32_t c);            /* M */
bool ox_char_is_mark_nonspacing(uint32_t c); /* Mn */
bool ox_char_is_other(uint32_t c);           /* C without Cn: control, format, private use */
/* Full lower case: one character may become two. */
void ox_char_put_lower(ox_buf *out, uint32_t c);
#endif
