/* string.c - strings that know which of their bytes the caller sent: making, cutting, joining
 * them, code points, white space, and the builder.
 *
 * Invariant: runs are sorted, not empty, alternate in origin, and the last one ends at n; a string
 * of one origin has none. Next: value.c. */
#include "text/jinja/state.h"

#include <utf8proc.h>

size_t ox_jutf8_read(ox_str s, size_t at, uint32_t *cp)
{
    const unsigned char c = (unsigned char)s.p[at];
    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    const size_t n = c >= 0xF5 || c < 0xC2 ? 0 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    *cp = 0xDC80u + (c & 0x7Fu);
    if (!n || s.n - at < n) return 1;
    uint32_t v = c & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        const unsigned char k = (unsigned char)s.p[at + i];
        if ((k & 0xC0) != 0x80) return 1;
        v = v << 6 | (k & 0x3Fu);
    }
    if (n > 2 && (v < (n == 3 ? 0x800u : 0x10000u) || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)))
        return 1;
    *cp = v;
    return n;
}

size_t ox_jutf8_size(ox_str s, size_t at)
{
    uint32_t cp;
    return ox_jutf8_read(s, at, &cp);
}

size_t ox_jutf8_write(char out[4], uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp >= 0xDC80 && cp <= 0xDCFF) { /* a stray byte, see ox_jutf8_read */
        out[0] = (char)(cp & 0xFF);
        return 1;
    }
    const size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xF0u) | cp);
    return n;
}

static bool is_ascii(ox_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80) return false;
    return true;
}

size_t ox_jutf8_count(ox_str s)
{
    if (is_ascii(s)) return s.n;
    size_t n = 0;
    for (size_t i = 0; i < s.n; n++)
        i += ox_jutf8_size(s, i);
    return n;
}

size_t ox_jutf8_offset(ox_str s, size_t i)
{
    if (is_ascii(s)) return i < s.n ? i : s.n;
    size_t at = 0;
    for (; i && at < s.n; i--)
        at += ox_jutf8_size(s, at);
    return at;
}

bool ox_jspace(uint32_t cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x1F);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

bool ox_jprintable(uint32_t cp)
{
    if (cp < 0x7F) return cp >= ' ';
    if (cp >= 0xDC80 && cp <= 0xDCFF) return false;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

static bool strips(ox_str chars, uint32_t cp)
{
    if (!chars.p) return ox_jspace(cp);
    for (size_t i = 0; i < chars.n;) {
        uint32_t c;
        i += ox_jutf8_read(chars, i, &c);
        if (c == cp) return true;
    }
    return false;
}

void ox_jstrip(ox_str s, ox_str chars, bool left, bool right, size_t *begin, size_t *end)
{
    size_t b = 0, e = s.n;
    uint32_t cp;
    while (left && b < e) {
        const size_t n = ox_jutf8_read(s, b, &cp);
        if (!strips(chars, cp)) break;
        b += n;
    }
    while (right && e > b) {
        size_t at = e - 1; /* back to where the last code point begins */
        while (at > b && e - at < 4 && ((unsigned char)s.p[at] & 0xC0) == 0x80)
            at--;
        if (ox_jutf8_read((ox_str){s.p, e}, at, &cp) != e - at) {
            at = e - 1;
            ox_jutf8_read((ox_str){s.p, e}, at, &cp);
        }
        if (!strips(chars, cp)) break;
        e = at;
    }
    *begin = b;
    *end = e;
}

static ox_status make(ox_jstate *j, const char *p, size_t n, ox_jfrom from, ox_jstr **out)
{
    void *mem;
    OX_TRY(ox_jtake(j, 1, sizeof(ox_jstr), &mem));
    *out = mem;
    **out = (ox_jstr){.p = n ? p : "", .n = n, .from = n ? from : OX_JFROM_TEMPLATE};
    return OX_OK;
}

ox_status ox_jstr_borrow(ox_jstate *j, const char *p, size_t n, ox_jfrom from, ox_jval *out)
{
    ox_jstr *s;
    OX_TRY(make(j, p, n, from, &s));
    *out = ox_jstrval(s);
    return OX_OK;
}

ox_status ox_jstr_new(ox_jstate *j, const char *p, size_t n, ox_jfrom from, ox_jval *out)
{
    void *mem = NULL;
    if (n) {
        OX_TRY(ox_jtake(j, n, 1, &mem));
        memcpy(mem, p, n);
    }
    return ox_jstr_borrow(j, mem, n, from, out);
}

/* The runs of s[begin, end) at offset `shift` of a new list, joined to what is there. */
static size_t copy_runs(ox_jrun *runs, size_t n, const ox_jstr *s, size_t begin, size_t end,
                        size_t shift)
{
    const ox_jrun whole = {s->n, s->from == OX_JFROM_INPUT};
    const ox_jrun *from = s->from == OX_JFROM_MIXED ? s->runs : &whole;
    const size_t n_from = s->from == OX_JFROM_MIXED ? s->n_runs : 1;
    size_t at = 0;
    for (size_t i = 0; i < n_from && begin < end; at = from[i].end, i++) {
        const size_t lo = at > begin ? at : begin, hi = from[i].end < end ? from[i].end : end;
        if (lo >= hi) continue;
        if (n && runs[n - 1].input == from[i].input)
            runs[n - 1].end = hi - begin + shift;
        else
            runs[n++] = (ox_jrun){hi - begin + shift, from[i].input};
    }
    return n;
}

static void set_runs(ox_jstr *s, ox_jrun *runs, size_t n)
{
    s->from = n > 1 ? OX_JFROM_MIXED : n && runs[0].input ? OX_JFROM_INPUT : OX_JFROM_TEMPLATE;
    if (n > 1) {
        s->runs = runs;
        s->n_runs = n;
    }
}

ox_status ox_jstr_sub(ox_jstate *j, const ox_jstr *s, size_t begin, size_t end, ox_jval *out)
{
    if (begin > end) begin = end;
    if (!begin && end == s->n) {
        *out = ox_jstrval(s);
        return OX_OK;
    }
    ox_jstr *t;
    OX_TRY(make(j, s->p + begin, end - begin, s->from, &t));
    if (t->n && s->from == OX_JFROM_MIXED) {
        void *mem;
        OX_TRY(ox_jspend(j, s->n_runs));
        OX_TRY(ox_jtake(j, s->n_runs, sizeof(ox_jrun), &mem));
        set_runs(t, mem, copy_runs(mem, 0, s, begin, end, 0));
    }
    *out = ox_jstrval(t);
    return OX_OK;
}

enum { ROOM_FROM = 512 }; /* strings this long get room for what is appended next */

static ox_status concat_bytes(ox_jstate *j, const ox_jstr *a, const ox_jstr *b, ox_jstr *t)
{
    ox_jroom *room = a->room;
    void *mem;
    if (room && a->p + a->n == room->base + room->used && room->cap - room->used >= b->n) {
        memcpy(room->base + room->used, b->p, b->n);
        room->used += b->n;
        t->p = a->p;
        t->room = room;
        return OX_OK;
    }
    OX_TRY(ox_jspend_bytes(j, t->n));
    const size_t cap = t->n >= ROOM_FROM ? t->n * 2 : t->n;
    OX_TRY(ox_jtake(j, cap, 1, &mem));
    char *p = mem;
    memcpy(p, a->p, a->n);
    memcpy(p + a->n, b->p, b->n);
    t->p = p;
    if (cap > t->n) {
        OX_TRY(ox_jtake(j, 1, sizeof(*room), &mem));
        t->room = mem;
        *t->room = (ox_jroom){p, t->n, cap};
    }
    return OX_OK;
}

ox_status ox_jstr_concat(ox_jstate *j, const ox_jstr *a, const ox_jstr *b, ox_jval *out)
{
    if (!a->n || !b->n) {
        *out = ox_jstrval(a->n ? a : b);
        return OX_OK;
    }
    size_t n;
    ox_jstr *t;
    if (!ox_size_add(a->n, b->n, &n) || n > j->memory_max) return ox_jno_memory(j);
    OX_TRY(make(j, a->p, n, a->from, &t));
    OX_TRY(ox_jspend_bytes(j, b->n));
    OX_TRY(concat_bytes(j, a, b, t));
    if (a->from != b->from || a->from == OX_JFROM_MIXED) {
        void *mem;
        const size_t n_runs = a->n_runs + b->n_runs + 2;
        OX_TRY(ox_jspend(j, n_runs / 4));
        OX_TRY(ox_jtake(j, n_runs, sizeof(ox_jrun), &mem));
        size_t k = copy_runs(mem, 0, a, 0, a->n, 0);
        k = copy_runs(mem, k, b, 0, b->n, a->n);
        set_runs(t, mem, k);
    }
    *out = ox_jstrval(t);
    return OX_OK;
}

static ox_status grow(ox_jstate *j, void **p, size_t *cap, size_t need, size_t item, size_t first)
{
    if (need <= *cap) return OX_OK;
    size_t cap2 = *cap ? *cap * 2 : first;
    if (cap2 < need) cap2 = need;
    void *mem;
    OX_TRY(ox_jtake(j, cap2, item, &mem));
    if (*cap) memcpy(mem, *p, *cap * item);
    *p = mem;
    *cap = cap2;
    return OX_OK;
}

ox_status ox_jbuf_put(ox_jstate *j, ox_jbuf *b, const char *p, size_t n, bool input)
{
    if (!n) return OX_OK;
    if (n > j->memory_max || b->n > j->memory_max) return ox_jno_memory(j);
    if (b == j->final_out && b->n + n > j->output_max)
        return ox_jfail(j, OX_UNSUPPORTED, "the template writes more than %zu bytes",
                        j->output_max);
    OX_TRY(ox_jspend(j, n / 64));
    OX_TRY(grow(j, (void **)&b->p, &b->cap, b->n + n, 1, 256));
    memcpy(b->p + b->n, p, n);
    b->n += n;
    if (b->n_runs && b->runs[b->n_runs - 1].input == input) {
        b->runs[b->n_runs - 1].end = b->n;
        return OX_OK;
    }
    OX_TRY(grow(j, (void **)&b->runs, &b->cap_runs, b->n_runs + 1, sizeof(ox_jrun), 8));
    b->runs[b->n_runs++] = (ox_jrun){b->n, input};
    return OX_OK;
}

ox_status ox_jbuf_put_z(ox_jstate *j, ox_jbuf *b, const char *z)
{
    return ox_jbuf_put(j, b, z, strlen(z), false);
}

ox_status ox_jbuf_put_cp(ox_jstate *j, ox_jbuf *b, uint32_t cp, bool input)
{
    char text[4];
    const size_t n = ox_jutf8_write(text, cp);
    return ox_jbuf_put(j, b, text, n, input);
}

ox_status ox_jbuf_put_sub(ox_jstate *j, ox_jbuf *b, const ox_jstr *s, size_t begin, size_t end)
{
    if (s->from != OX_JFROM_MIXED)
        return ox_jbuf_put(j, b, s->p + begin, end - begin, s->from == OX_JFROM_INPUT);
    size_t at = 0;
    for (size_t i = 0; i < s->n_runs && at < end; at = s->runs[i].end, i++) {
        const size_t lo = at > begin ? at : begin, hi = s->runs[i].end < end ? s->runs[i].end : end;
        if (lo < hi) OX_TRY(ox_jbuf_put(j, b, s->p + lo, hi - lo, s->runs[i].input));
    }
    return OX_OK;
}

ox_status ox_jbuf_put_str(ox_jstate *j, ox_jbuf *b, const ox_jstr *s)
{
    return ox_jbuf_put_sub(j, b, s, 0, s->n);
}

ox_status ox_jbuf_take(ox_jstate *j, ox_jbuf *b, ox_jval *out)
{
    ox_jstr *s;
    OX_TRY(make(j, b->p, b->n, OX_JFROM_TEMPLATE, &s));
    set_runs(s, b->runs, b->n_runs);
    *b = (ox_jbuf){0};
    *out = ox_jstrval(s);
    return OX_OK;
}

ox_status ox_jstr_pieces(ox_jstate *j, ox_jbuf *b, const ox_jstr *s, ox_jpiece_fn fn, void *ctx)
{
    if (s->from != OX_JFROM_MIXED)
        return fn(j, b, (ox_str){s->p, s->n}, s->from == OX_JFROM_INPUT, ctx);
    size_t at = 0;
    for (size_t i = 0; i < s->n_runs; at = s->runs[i].end, i++)
        OX_TRY(fn(j, b, (ox_str){s->p + at, s->runs[i].end - at}, s->runs[i].input, ctx));
    return OX_OK;
}
