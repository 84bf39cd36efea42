/* attend.h - softmax(scale * q.K) . V over the paged cache (kernel/kv_append/kv.h).
 *
 * Row r at position p = pos[r] attends the keys j with j <= p and, if window > 0, j > p - window
 * (exactly `window` keys, its own included), for every query head h with kv head h / (n_heads/
 * n_kv_heads):
 *   t_j = scale * dot(q, k_j);   softcap > 0: t_j = softcap * tanh(t_j / softcap)
 *   m = max(sink_h, max_j t_j);  w_j = e^(t_j - m);  l = (sinks ? e^(sink_h - m) : 0) + sum_j w_j
 *   out = sum_j w_j v_j / l;     no keys: zeros
 * Keys and values of the step's own rows have been appended before.
 *
 * The result of a row depends on nothing but its own query, keys and values: keys are taken in
 * chunks of 64 aligned to position 0, in ascending order, by one formula for decode and prompt. */
#ifndef OX_KERNEL_ATTEND_H
#define OX_KERNEL_ATTEND_H
#include "kernel/kernel.h"
#include "kernel/kv_append/kv.h"

typedef struct ox_attend_args {
    const float *q; /* [rows, n_heads, head_size], ldq floats between rows */
    float *out;     /* [rows, n_heads, v_head_size], ldo floats between rows; not q */
    size_t rows, ldq, ldo;
    int32_t n_heads;      /* a multiple of view.n_kv_heads */
    float scale, softcap; /* softcap 0 = none */
    int32_t window;       /* 0 = all */
    const float *sinks;   /* [n_heads] or NULL */
    ox_kv_view view;
} ox_attend_args;

/* A unit is a block of rows and one kv head with its group of query heads. Units are ordered so
 * that contiguous ranges of equal length cost about the same on a prompt. */
enum { OX_ATTEND_ROWS = 16 };

static inline size_t ox_attend_block(const ox_attend_args *a) /* rows of a block */
{
    return a->rows < OX_ATTEND_ROWS ? 1 : OX_ATTEND_ROWS;
}

static inline size_t ox_attend_units(const ox_attend_args *a)
{
    const size_t block = ox_attend_block(a);
    return (a->rows + block - 1) / block * (size_t)a->view.n_kv_heads;
}

/* Unit u: its rows [*begin, *end) and its kv head. First, last, second, last but one, ... block. */
static inline int32_t ox_attend_unit(const ox_attend_args *a, size_t u, size_t *begin, size_t *end)
{
    const size_t block = ox_attend_block(a), n = (a->rows + block - 1) / block;
    const size_t i = u % n, b = i % 2 ? n - 1 - i / 2 : i / 2;
    *begin = b * block;
    *end = (b + 1) * block < a->rows ? (b + 1) * block : a->rows;
    return (int32_t)(u / n);
}

/* Computes units [begin, end) of ox_attend_units. */
typedef void ox_attend_fn(const ox_attend_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_attend_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_attend_fn fn;
#include "kernel/attend/kernels.def"
#undef OX_CPU_KERNEL
#endif
