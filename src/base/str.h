/* str.h - byte-string views, a growable buffer, and number parsing that knows no locale. */
#ifndef OX_BASE_STR_H
#define OX_BASE_STR_H
#include "base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed byte string; not NUL-terminated. p may be NULL when n is 0. */
typedef struct ox_str {
    const char *p;
    size_t n;
} ox_str;

#define OX_STR(lit) ((ox_str){(lit), sizeof(lit) - 1})
/* For printf: "%.*s", OX_STR_ARGS(s) */
#define OX_STR_ARGS(s) (int)((s).n > 4096 ? 4096 : (s).n), (s).p ? (s).p : ""

static inline ox_str ox_str_of(const char *z)
{
    return (ox_str){z, z ? strlen(z) : 0};
}

static inline bool ox_str_eq(ox_str a, ox_str b)
{
    return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n));
}

static inline bool ox_str_is(ox_str a, const char *z)
{
    return ox_str_eq(a, ox_str_of(z));
}

bool ox_str_starts(ox_str s, ox_str prefix);
bool ox_str_ends(ox_str s, ox_str suffix);
/* Byte offset of the first needle at or after `from`, or SIZE_MAX. */
size_t ox_str_find(ox_str s, ox_str needle, size_t from);
/* The whole string is a decimal number; false on any other byte or on overflow. */
bool ox_str_to_i64(ox_str s, int64_t *out);
bool ox_str_to_u64(ox_str s, uint64_t *out);
/* Decimal or scientific, as JSON writes numbers, plus inf/nan; independent of the locale. */
bool ox_str_to_f64(ox_str s, double *out);
/* Edit distance, for "did you mean". */
size_t ox_str_distance(ox_str a, ox_str b);

/* Growable bytes, always NUL-terminated once non-empty. Zero-initialise; owner calls deinit.
 * A failed append sets `failed` and keeps the old content: check it once at the end. */
typedef struct ox_buf {
    char *p;
    size_t n, cap;
    bool failed;
} ox_buf;

void ox_buf_put(ox_buf *b, const void *bytes, size_t n);
void ox_buf_put_str(ox_buf *b, ox_str s);
void ox_buf_put_z(ox_buf *b, const char *z);
void ox_buf_put_c(ox_buf *b, char c);
void ox_buf_printf(ox_buf *b, const char *fmt, ...) OX_PRINTF(2, 3);
void ox_buf_vprintf(ox_buf *b, const char *fmt, va_list ap);
bool ox_buf_reserve(ox_buf *b, size_t more); /* room for `more` bytes; false = failed is set */
void ox_buf_clear(ox_buf *b);                /* keeps the memory */
void ox_buf_deinit(ox_buf *b);

static inline ox_str ox_buf_view(const ox_buf *b)
{
    return (ox_str){b->p ? b->p : "", b->n};
}
#endif
