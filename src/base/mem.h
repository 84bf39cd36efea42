/* mem.h - the only door to the allocator, checked size arithmetic, and page memory.
 *
 * Nobody outside base/ calls malloc. Every function that can fail returns NULL or false and the
 * caller reports OX_NO_MEMORY. Thread safe. */
#ifndef OX_BASE_MEM_H
#define OX_BASE_MEM_H
#include <stdbool.h>
#include <stddef.h>

/* Memory aligned to 16 bytes; size 0 gives a valid pointer. Owned by the caller, see ox_free. */
void *ox_alloc(size_t size);
void *ox_calloc(size_t n, size_t size);     /* zeroed, overflow-checked */
void *ox_realloc(void *p, size_t size);     /* on failure p stays valid */
void ox_free(void *p);                      /* NULL allowed */
char *ox_strdup_n(const char *s, size_t n); /* NUL-terminated copy, owned by the caller */

/* Zeroed memory aligned to 64 bytes for operands of kernels (2 MiB and huge pages when large).
 * Give back with the same size. */
void *ox_pages_alloc(size_t size);
void ox_pages_free(void *p, size_t size);

/* *out = a*b or a+b; false on overflow (then *out is unchanged). For every untrusted size. */
bool ox_size_mul(size_t a, size_t b, size_t *out);
bool ox_size_add(size_t a, size_t b, size_t *out);

/* Test hook: let the n-th next allocation fail (n >= 1), 0 turns it off. Never set in products. */
void ox_mem_fail_after(long n);
#endif
