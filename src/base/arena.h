/* arena.h - memory that is freed all at once. One owner; not thread safe. */
#ifndef OX_BASE_ARENA_H
#define OX_BASE_ARENA_H
#include <stddef.h>

typedef struct ox_arena {
    struct ox_arena_block *top; /* newest block; NULL = empty */
    size_t used_bytes;          /* sum of all requests, for limits and reports */
} ox_arena;

#define OX_ARENA_INIT                                                                              \
    {                                                                                              \
        0, 0                                                                                       \
    }

/* Zeroed, aligned to 16 bytes, valid until ox_arena_deinit. NULL when memory is short. */
void *ox_arena_take(ox_arena *a, size_t size);
void *ox_arena_take_n(ox_arena *a, size_t n, size_t size); /* overflow-checked */
char *ox_arena_copy(ox_arena *a, const char *s, size_t n); /* NUL-terminated copy */
void ox_arena_deinit(ox_arena *a);
#endif
