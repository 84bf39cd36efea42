/* kv.h - paged key/value cache: a pool of pages and, per sequence, the list of its pages.
 *
 * A page holds OX_KV_PAGE positions of every cache of the model (layout: kernel/kv_append/kv.h).
 * Pages are taken as a sequence grows, shared by forks, and copied when a shared page is written.
 * One owner (the engine's thread). */
#ifndef OX_KV_KV_H
#define OX_KV_KV_H
#include "base/status.h"
#include "base/vec.h"
#include "graph/graph.h"

typedef struct ox_kv_pool ox_kv_pool;

/* Where one cache lies inside a page. */
typedef struct ox_kv_place {
    size_t k_offset, v_offset; /* bytes */
    int32_t n_kv_heads, head_size, v_head_size;
} ox_kv_place;

/* Where pages live when not in the host's memory. Called by the pool's owner only. */
typedef struct ox_kv_memory {
    void *user;
    void *(*take)(void *user, size_t bytes); /* NULL: none is left */
    void (*give)(void *user, void *p, size_t bytes);
    void (*copy)(void *user, void *to, const void *from, size_t bytes); /* between two pages */
} ox_kv_memory;

typedef struct ox_kv_seq {
    ox_kv_pool *pool;
    OX_VEC(struct ox_kv_block *) pages;
    OX_VEC(void *) table; /* bytes of pages[i]; what kernels read */
    size_t n_positions;   /* valid positions */
} ox_kv_seq;

/* dtype F32, F16 or BF16; max_bytes 0 = no limit but memory. Caches are copied. */
ox_status ox_kv_pool_open(ox_kv_pool **out, const ox_cache *caches, size_t n_caches, ox_dtype dtype,
                          size_t max_bytes, ox_err *err);
/* Pages come from `memory` (borrowed until the pool is closed), before any sequence is opened. */
void ox_kv_pool_use(ox_kv_pool *pool, const ox_kv_memory *memory);
void ox_kv_pool_close(ox_kv_pool **pool); /* every sequence must be closed before */
const ox_kv_place *ox_kv_pool_places(const ox_kv_pool *pool);
ox_dtype ox_kv_pool_dtype(const ox_kv_pool *pool);
size_t ox_kv_pool_page_bytes(const ox_kv_pool *pool);
size_t ox_kv_pool_used_bytes(const ox_kv_pool *pool);

void ox_kv_seq_open(ox_kv_seq *seq, ox_kv_pool *pool);
void ox_kv_seq_close(ox_kv_seq *seq);
/* Makes positions [n_positions, upto) writable: takes pages, copies a shared last page. On failure
 * the sequence is unchanged and the message says how many bytes were missing. */
ox_status ox_kv_seq_reserve(ox_kv_seq *seq, size_t upto, ox_err *err);
void ox_kv_seq_truncate(ox_kv_seq *seq, size_t n_positions); /* gives pages beyond it back */
ox_status ox_kv_seq_fork(ox_kv_seq *out, const ox_kv_seq *seq, ox_err *err);
#endif
