/* str.c - see str.h. strtod_l with the C locale keeps numbers independent of the user's locale. */
#define _GNU_SOURCE
#include "base/str.h"

#include "base/mem.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

bool ox_str_starts(ox_str s, ox_str prefix)
{
    return s.n >= prefix.n && (!prefix.n || !memcmp(s.p, prefix.p, prefix.n));
}

bool ox_str_ends(ox_str s, ox_str suffix)
{
    return s.n >= suffix.n && (!suffix.n || !memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n));
}

size_t ox_str_find(ox_str s, ox_str needle, size_t from)
{
    if (from > s.n) return SIZE_MAX;
    if (!needle.n) return from;
    const char *hit = memmem(s.p + from, s.n - from, needle.p, needle.n);
    return hit ? (size_t)(hit - s.p) : SIZE_MAX;
}

bool ox_str_to_u64(ox_str s, uint64_t *out)
{
    uint64_t v = 0;
    if (!s.n) return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        if (__builtin_mul_overflow(v, 10u, &v)) return false;
        if (__builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v)) return false;
    }
    *out = v;
    return true;
}

bool ox_str_to_i64(ox_str s, int64_t *out)
{
    const bool minus = s.n && s.p[0] == '-';
    uint64_t v;
    if (!ox_str_to_u64((ox_str){s.p + minus, s.n - minus}, &v)) return false;
    if (v > (uint64_t)INT64_MAX + minus) return false;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool ox_str_to_f64(ox_str s, double *out)
{
    char text[128], *end = NULL;
    if (!s.n || s.n >= sizeof(text) || memchr(s.p, 0, s.n)) return false;
    const char first = s.p[0];
    if (first == ' ' || (first >= '\t' && first <= '\r')) return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    pthread_once(&c_locale_once, make_c_locale);
    const double v = c_locale ? strtod_l(text, &end, c_locale) : strtod(text, &end);
    if (end != text + s.n) return false;
    *out = v;
    return true;
}

size_t ox_str_distance(ox_str a, ox_str b)
{
    enum { MAX = 64 };
    size_t row[MAX + 1];
    if (a.n > MAX || b.n > MAX) return MAX;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            const size_t up = row[j];
            size_t best = diagonal + (a.p[i - 1] != b.p[j - 1]);
            if (up + 1 < best) best = up + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diagonal = up;
        }
    }
    return row[b.n];
}

bool ox_buf_reserve(ox_buf *b, size_t more)
{
    size_t need;
    if (!ox_size_add(b->n, more, &need) || !ox_size_add(need, 1, &need)) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap) return true;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *p = ox_realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void ox_buf_put(ox_buf *b, const void *bytes, size_t n)
{
    if (!n || !ox_buf_reserve(b, n)) return;
    memcpy(b->p + b->n, bytes, n);
    b->n += n;
    b->p[b->n] = 0;
}

void ox_buf_put_str(ox_buf *b, ox_str s)
{
    ox_buf_put(b, s.p, s.n);
}

void ox_buf_put_z(ox_buf *b, const char *z)
{
    ox_buf_put(b, z, strlen(z));
}

void ox_buf_put_c(ox_buf *b, char c)
{
    ox_buf_put(b, &c, 1);
}

void ox_buf_vprintf(ox_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        b->failed = true;
    else if (ox_buf_reserve(b, (size_t)n)) {
        vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void ox_buf_printf(ox_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ox_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void ox_buf_clear(ox_buf *b)
{
    b->n = 0;
    b->failed = false;
    if (b->p) b->p[0] = 0;
}

void ox_buf_deinit(ox_buf *b)
{
    ox_free(b->p);
    *b = (ox_buf){0};
}
