/* mem.c - allocator front door, see mem.h. Large page memory is mapped so that it can be huge. */
#define _GNU_SOURCE
#include "base/mem.h"

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, LINE = 64 };

static atomic_long fail_after; /* set by tests only */

static bool injected_failure(void)
{
    if (OX_LIKELY(atomic_load_explicit(&fail_after, memory_order_relaxed) == 0)) return false;
    return atomic_fetch_sub(&fail_after, 1) == 1;
}

void ox_mem_fail_after(long n)
{
    atomic_store(&fail_after, n);
}

void *ox_alloc(size_t size)
{
    return injected_failure() ? NULL : malloc(size ? size : 1);
}

void *ox_calloc(size_t n, size_t size)
{
    return injected_failure() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *ox_realloc(void *p, size_t size)
{
    return injected_failure() ? NULL : realloc(p, size ? size : 1);
}

void ox_free(void *p)
{
    free(p);
}

char *ox_strdup_n(const char *s, size_t n)
{
    char *p = n < SIZE_MAX ? ox_alloc(n + 1) : NULL;
    if (!p) return NULL;
    if (n) memcpy(p, s, n);
    p[n] = 0;
    return p;
}

void *ox_pages_alloc(size_t size)
{
    if (injected_failure() || size > SIZE_MAX / 2) return NULL;
    if (size < HUGE_PAGE) {
        void *p = NULL;
        if (posix_memalign(&p, LINE, size ? size : LINE)) return NULL;
        memset(p, 0, size);
        return p;
    }
    /* Map one huge page more, then trim both ends so that the block starts on a huge page. */
    const size_t len = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *raw =
        mmap(NULL, len + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    const size_t head = (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    if (head) munmap(raw, head);
    if (HUGE_PAGE - head) munmap(raw + head + len, HUGE_PAGE - head);
    madvise(raw + head, len, MADV_HUGEPAGE); /* a hint: refusal costs speed only */
    return raw + head;
}

void ox_pages_free(void *p, size_t size)
{
    if (!p) return;
    if (size < HUGE_PAGE)
        free(p);
    else
        munmap(p, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
}

bool ox_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool ox_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
