/* compose.c - NFC, NFD, NFKC and NFKD. utf8proc decomposes and composes single characters; putting
 * marks in order is done here with a stable counting sort, because sorting by neighbours takes
 * quadratic time on long runs of marks. ASCII runs are copied: between two ASCII characters
 * nothing can happen. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

#include <utf8proc.h>

typedef OX_VEC(utf8proc_int32_t) codes;

static unsigned class_of(utf8proc_int32_t c)
{
    return c < 0x300 ? 0 : (unsigned)utf8proc_get_property(c)->combining_class & 0xff;
}

/* Stable by combining class; the n codes are all marks. */
static bool sort_marks(utf8proc_int32_t *c, size_t n)
{
    size_t start[257] = {0};
    utf8proc_int32_t *copy = ox_alloc(n * sizeof(*copy));
    if (!copy) return false;
    memcpy(copy, c, n * sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        start[class_of(copy[i]) + 1]++;
    for (size_t k = 1; k < 257; k++)
        start[k] += start[k - 1];
    for (size_t i = 0; i < n; i++)
        c[start[class_of(copy[i])]++] = copy[i];
    ox_free(copy);
    return true;
}

static bool order_marks(codes *v)
{
    for (size_t i = 0; i < v->n;) {
        if (!class_of(v->p[i])) {
            i++;
            continue;
        }
        size_t end = i;
        bool sorted = true;
        for (; end < v->n && class_of(v->p[end]); end++)
            sorted = sorted && (end == i || class_of(v->p[end - 1]) <= class_of(v->p[end]));
        if (!sorted && !sort_marks(v->p + i, end - i)) return false;
        i = end;
    }
    return true;
}

static bool decompose(ox_str in, bool compat, codes *v)
{
    const utf8proc_option_t options =
        UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0);
    for (const char *p = in.p, *end = in.p + in.n; p < end;) {
        enum { LONGEST = 32 }; /* the longest decomposition has 18 characters */
        utf8proc_int32_t c = (utf8proc_int32_t)ox_utf8_next(&p);
        int boundary = 0;
        if (!ox_vec_reserve(v, v->n + LONGEST)) return false;
        const utf8proc_ssize_t n =
            utf8proc_decompose_char(c, v->p + v->n, LONGEST, options, &boundary);
        if (n > 0 && n <= LONGEST)
            v->n += (size_t)n;
        else
            v->p[v->n++] = c;
    }
    return true;
}

static bool normalize_run(ox_str in, bool compat, bool compose, codes *v, ox_buf *out)
{
    v->n = 0;
    if (!decompose(in, compat, v) || !order_marks(v)) return false;
    size_t n = v->n;
    if (compose) {
        const utf8proc_ssize_t left =
            utf8proc_normalize_utf32(v->p, (utf8proc_ssize_t)n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (left >= 0) n = (size_t)left;
    }
    for (size_t i = 0; v->p && i < n; i++)
        ox_utf8_put(out, (uint32_t)v->p[i]);
    return !out->failed;
}

/* Marks and the letters of Hangul that join the one before; what they join is one unit. */
static bool joins_before(uint32_t c)
{
    return ox_char_is_mark(c) || (c >= 0x1161 && c <= 0x1175) || (c >= 0x11a8 && c <= 0x11c2);
}

/* The same unit by unit, so that it is known where each comes from. */
static bool normal_form_tracked(ox_tok_work *w, ox_str in, bool compat, bool compose, codes *v,
                                ox_buf *out)
{
    for (const char *p = in.p, *end = in.p + in.n; p < end;) {
        const char *begin = p, *next = p;
        const size_t from = out->n;
        do
            p = next;
        while (p < end && (joins_before(ox_utf8_next(&next)) || p == begin));
        if (!normalize_run((ox_str){begin, (size_t)(p - begin)}, compat, compose, v, out))
            return false;
        if (out->n - from == (size_t)(p - begin) && !memcmp(out->p + from, begin, out->n - from))
            ox_tok_copied(w, out, in, begin, p);
        else
            ox_tok_made(w, out, in, begin, p);
    }
    return !out->failed;
}

bool ox_tok_normal_form(ox_tok_work *w, ox_str in, bool compat, bool compose, ox_buf *out)
{
    codes v = {0};
    size_t at = 0;
    bool ok = true;
    if (w->track) {
        ok = normal_form_tracked(w, in, compat, compose, &v, out);
        ox_vec_deinit(&v);
        return ok;
    }
    while (ok && at < in.n) {
        size_t high = at;
        while (high < in.n && (unsigned char)in.p[high] < 0x80)
            high++;
        if (high == in.n) break;
        const size_t begin = high > at ? high - 1 : at; /* the letter that marks may join */
        ox_buf_put(out, in.p + at, begin - at);
        size_t end = high;
        while (end < in.n && (unsigned char)in.p[end] >= 0x80)
            end++;
        ok = normalize_run((ox_str){in.p + begin, end - begin}, compat, compose, &v, out);
        at = end;
    }
    if (ok && at < in.n) ox_buf_put(out, in.p + at, in.n - at);
    ox_vec_deinit(&v);
    return ok && !out->failed;
}
