/* kv_append.h - stores the keys and values of the step's rows into their pages (see kv.h).
 *
 * Float32 rows are rounded to the cache's type, to nearest even; every tier stores the same bits
 * (but for NaN payloads). Rows of one step have different (sequence, position). */
#ifndef OX_KERNEL_KV_APPEND_H
#define OX_KERNEL_KV_APPEND_H
#include "kernel/kernel.h"
#include "kernel/kv_append/kv.h"

typedef struct ox_kv_append_args {
    const float *k; /* [rows, n_kv_heads, head_size], ldk floats between rows */
    const float *v; /* [rows, n_kv_heads, v_head_size], ldv floats between rows */
    size_t rows, ldk, ldv;
    ox_kv_view view;
} ox_kv_append_args;

/* Stores rows [begin, end). */
typedef void ox_kv_append_fn(const ox_kv_append_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_kv_append_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_kv_append_fn fn;
#include "kernel/kv_append/kernels.def"
#undef OX_CPU_KERNEL
#endif
