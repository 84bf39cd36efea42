/* vec.h - growable arrays: OX_VEC(T) declares {T *p; size_t n, cap;}, zero is empty.
 *
 * ox_vec_push(&v, item) returns false when memory is short; ox_vec_deinit frees. */
#ifndef OX_BASE_VEC_H
#define OX_BASE_VEC_H
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OX_VEC(T)                                                                                  \
    struct {                                                                                       \
        T *p;                                                                                      \
        size_t n, cap;                                                                             \
    }

static inline bool ox_vec_grow(void **p, size_t *cap, size_t need, size_t item)
{
    if (need <= *cap) return true;
    size_t cap2 = *cap ? *cap * 2 : 8, bytes;
    if (cap2 < need) cap2 = need;
    if (!ox_size_mul(cap2, item, &bytes)) return false;
    void *q = ox_realloc(*p, bytes);
    if (!q) return false;
    *p = q;
    *cap = cap2;
    return true;
}

#define ox_vec_reserve(v, need) ox_vec_grow((void **)&(v)->p, &(v)->cap, (need), sizeof(*(v)->p))
#define ox_vec_push(v, ...)                                                                        \
    (ox_vec_reserve((v), (v)->n + 1) ? ((v)->p[(v)->n++] = (__VA_ARGS__), true) : false)
#define ox_vec_deinit(v) (ox_free((v)->p), (v)->p = NULL, (v)->n = (v)->cap = 0)
#endif
