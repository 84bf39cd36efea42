/* arena.c - blocks that double up to 1 MiB; a request larger than that gets its own block. */
#include "base/arena.h"

#include "base/mem.h"

#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = 16 };

typedef struct ox_arena_block {
    struct ox_arena_block *below;
    size_t size, used;
    char *bytes;
} ox_arena_block;

static ox_arena_block *block_new(ox_arena *a, size_t need)
{
    size_t size = a->top ? a->top->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
    if (size < need) size = need;
    size_t total;
    if (!ox_size_add(size, sizeof(ox_arena_block) + ALIGN, &total)) return NULL;
    ox_arena_block *b = ox_calloc(1, total);
    if (!b) return NULL;
    b->size = size;
    b->bytes = (char *)b + (sizeof(*b) + ALIGN - 1) / ALIGN * ALIGN;
    b->below = a->top;
    a->top = b;
    return b;
}

void *ox_arena_take(ox_arena *a, size_t size)
{
    size_t need;
    if (!ox_size_add(size, ALIGN - 1, &need)) return NULL;
    need = need / ALIGN * ALIGN;
    if (!need) need = ALIGN;
    ox_arena_block *b = a->top;
    if (!b || b->size - b->used < need) b = block_new(a, need);
    if (!b) return NULL;
    void *p = b->bytes + b->used;
    b->used += need;
    a->used_bytes += need;
    return p;
}

void *ox_arena_take_n(ox_arena *a, size_t n, size_t size)
{
    size_t total;
    return ox_size_mul(n, size, &total) ? ox_arena_take(a, total) : NULL;
}

char *ox_arena_copy(ox_arena *a, const char *s, size_t n)
{
    size_t size;
    if (!ox_size_add(n, 1, &size)) return NULL;
    char *p = ox_arena_take(a, size);
    if (p && n) memcpy(p, s, n);
    return p;
}

void ox_arena_deinit(ox_arena *a)
{
    while (a->top) {
        ox_arena_block *b = a->top;
        a->top = b->below;
        ox_free(b);
    }
    a->used_bytes = 0;
}
