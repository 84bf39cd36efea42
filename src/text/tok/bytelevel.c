/* bytelevel.c - the alphabet of 256 printable characters that stand for bytes: printable Latin-1
 * stands for itself, the other 68 bytes follow each other from U+0100. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

static bool stands_for_itself(unsigned b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

/* 0..32, 127..160 and 173 in order. */
static uint32_t char_of(unsigned b)
{
    if (stands_for_itself(b)) return b;
    if (b <= 32) return 0x100 + b;
    return b == 173 ? 0x143 : 0x121 + b - 127;
}

static int byte_of(uint32_t c)
{
    if (c < 0x100) return stands_for_itself(c) ? (int)c : -1;
    if (c <= 0x120) return (int)(c - 0x100);
    if (c <= 0x142) return (int)(c - 0x121 + 127);
    return c == 0x143 ? 173 : -1;
}

ox_byte_char ox_byte_to_char(uint8_t b)
{
    ox_byte_char r = {{0}, 0};
    char utf8[4];
    r.n = (uint8_t)ox_utf8_encode(utf8, char_of(b));
    memcpy(r.utf8, utf8, 2);
    return r;
}

void ox_bytes_to_chars(ox_str in, ox_buf *out)
{
    if (!ox_buf_reserve(out, in.n * 2)) return;
    char *w = out->p + out->n;
    for (size_t i = 0; i < in.n; i++) {
        const uint32_t c = char_of((uint8_t)in.p[i]);
        if (c < 0x80) {
            *w++ = (char)c;
        } else {
            *w++ = (char)(0xc0 | c >> 6);
            *w++ = (char)(0x80 | (c & 0x3f));
        }
    }
    *w = 0;
    out->n = (size_t)(w - out->p);
}

bool ox_chars_to_bytes(ox_str in, ox_buf *out)
{
    const size_t before = out->n;
    if (!ox_buf_reserve(out, in.n)) return false;
    for (const char *p = in.p, *end = in.p + in.n; p < end;) {
        const int b = byte_of(ox_utf8_next(&p));
        if (b < 0) {
            out->n = before;
            out->p[before] = 0;
            return false;
        }
        out->p[out->n++] = (char)b;
    }
    out->p[out->n] = 0;
    return true;
}
