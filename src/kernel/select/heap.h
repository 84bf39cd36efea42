/* heap.h - the k best seen so far, kept in the output arrays as a heap whose root is the worst.
 *
 * Static functions: included by every row of the family, whose only difference is how they skip
 * what cannot enter. Indices arrive in ascending order, so an equal value never displaces. */
#ifndef OX_KERNEL_SELECT_HEAP_H
#define OX_KERNEL_SELECT_HEAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a goes after b in the output */
static inline bool heap_worse(float a, int32_t ia, float b, int32_t ib)
{
    if (a < b) return true;
    if (a > b) return false;
    const bool na = a != a, nb = b != b;
    return na != nb ? na : ia > ib;
}

static inline void heap_sift(float *v, int32_t *id, size_t n, size_t i)
{
    const float x = v[i];
    const int32_t xi = id[i];
    for (size_t c = 2 * i + 1; c < n; c = 2 * i + 1) {
        if (c + 1 < n && heap_worse(v[c + 1], id[c + 1], v[c], id[c])) c++;
        if (!heap_worse(v[c], id[c], x, xi)) break;
        v[i] = v[c];
        id[i] = id[c];
        i = c;
    }
    v[i] = x;
    id[i] = xi;
}

static inline void heap_start(float *v, int32_t *id, const float *x, size_t k)
{
    for (size_t i = 0; i < k; i++) {
        v[i] = x[i];
        id[i] = (int32_t)i;
    }
    for (size_t i = k / 2; i-- > 0;)
        heap_sift(v, id, k, i);
}

static inline void heap_offer(float *v, int32_t *id, size_t k, float x, size_t i)
{
    if (!heap_worse(v[0], id[0], x, (int32_t)i)) return;
    v[0] = x;
    id[0] = (int32_t)i;
    heap_sift(v, id, k, 0);
}

/* Takes the worst off the end again and again: best first remains. */
static inline void heap_finish(float *v, int32_t *id, size_t k)
{
    for (size_t n = k; n > 1; n--) {
        const float x = v[0];
        const int32_t xi = id[0];
        v[0] = v[n - 1];
        id[0] = id[n - 1];
        v[n - 1] = x;
        id[n - 1] = xi;
        heap_sift(v, id, n - 1, 0);
    }
}
#endif
