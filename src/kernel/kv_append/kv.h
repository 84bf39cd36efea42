/* kv.h - how attention's keys and values lie in memory: pages of OX_KV_PAGE positions.
 *
 * A page holds the same 64 positions of every cache of the model. One cache's part of it:
 *
 *   at k_offset:  K [n_kv_heads][64/16][head_size][16]   16 positions side by side, so that one
 *                                                        vector holds one channel of 16 keys
 *   at v_offset:  V [n_kv_heads][64][v_head_size]
 *
 * Elements are float32, float16 or bfloat16. Offsets are bytes, multiples of 64. The memory of a
 * position that has not been appended is never interpreted. */
#ifndef OX_KERNEL_KV_H
#define OX_KERNEL_KV_H
#include "tensor/tensor.h"

enum { OX_KV_PAGE = 64, OX_KV_LANES = 16 };

/* Row r of the step belongs to sequence seq[r], whose page p is tables[seq[r]][p], and sits at the
 * absolute position pos[r] (negative: the row is idle; nothing is
 * stored, attention gives zeros). */
typedef struct ox_kv_view {
    void *const *const *tables; /* borrowed; pages aligned to 64 bytes */
    const int32_t *seq;         /* [rows], NULL = all rows belong to sequence 0 */
    const int32_t *pos;         /* [rows] */
    ox_dtype dtype;             /* F32, F16, BF16 */
    size_t k_offset, v_offset;
    int32_t n_kv_heads, head_size, v_head_size;
} ox_kv_view;

static inline size_t ox_kv_element(ox_dtype t)
{
    return t == OX_DTYPE_F32 ? 4 : 2;
}

/* Bytes of one cache's K and V in a page, each rounded up to 64. */
static inline size_t ox_kv_bytes(int32_t n_kv_heads, int32_t size, ox_dtype t)
{
    const size_t n = (size_t)n_kv_heads * (size_t)size * OX_KV_PAGE * ox_kv_element(t);
    return (n + 63) & ~(size_t)63;
}

/* Page that holds position pos of sequence seq. */
static inline char *ox_kv_page(const ox_kv_view *v, int32_t seq, int32_t pos)
{
    return v->tables[seq][pos / OX_KV_PAGE];
}

/* Element numbers, counted from k_offset and v_offset, of channel d of head h at position pos. */
static inline size_t ox_kv_k_at(const ox_kv_view *v, int32_t h, int32_t pos, int32_t d)
{
    const size_t in = (size_t)(pos % OX_KV_PAGE), blocks = OX_KV_PAGE / OX_KV_LANES;
    const size_t block = (size_t)h * blocks + in / OX_KV_LANES;
    return (block * (size_t)v->head_size + (size_t)d) * OX_KV_LANES + in % OX_KV_LANES;
}

static inline size_t ox_kv_v_at(const ox_kv_view *v, int32_t h, int32_t pos, int32_t d)
{
    const size_t row = (size_t)h * OX_KV_PAGE + (size_t)(pos % OX_KV_PAGE);
    return row * (size_t)v->v_head_size + (size_t)d;
}
#endif
