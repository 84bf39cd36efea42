/* CUDA row for both rotations of a step and the append behind them: a block a (row, head), first
 * the query heads, then the keys, then the values. The same arithmetic as rotate.h and kv_append.h:
 * keys are rounded to the matrix' type, then to the cache's. */
#include "kernel/device.cuh"

enum { BLOCK = 64, PAGE = 64 };

/* Channel d of head h of a rotated row, before anything is written. */
OX_DEV float turned(const ox_dev_rotate_args &a, int32_t r, int32_t h, int32_t d, int32_t pos)
{
    const int32_t half = a.rotary / 2, at = h * a.head_size;
    const float x = ox_get(a.x, r, at + d);
    if (d >= a.rotary) return x;
    const int32_t j = a.interleaved ? d / 2 : d % half;
    const bool second = a.interleaved ? d & 1 : d >= half;
    const int32_t step = a.interleaved ? 1 : half;
    const float other = ox_get(a.x, r, at + (second ? d - step : d + step));
    const float c = a.cos_table[(size_t)pos * (size_t)half + (size_t)j];
    const float s = a.sin_table[(size_t)pos * (size_t)half + (size_t)j];
    return second ? x * c + other * s : x * c - other * s;
}

static __global__ void rotate_append_kernel(ox_dev_rotate_append_args a)
{
    const ox_dev_cache &c = a.append.cache;
    ox_let_next_start();
    ox_wait_for_step();
    const int32_t r = (int32_t)blockIdx.y, pos = c.step.pos[r];
    int32_t h = (int32_t)blockIdx.x;
    if (pos < 0) return;
    const bool is_q = h < a.q.n_heads;
    const bool is_v = h >= a.q.n_heads + c.n_kv_heads;
    if (!is_q) h -= is_v ? a.q.n_heads + c.n_kv_heads : a.q.n_heads;
    const int32_t size = is_q ? a.q.head_size : is_v ? c.v_head_size : c.head_size;
    char *page = (char *)c.step.pages[c.step.first[c.step.seq[r]] + pos / PAGE];
    const size_t row = ((size_t)h * PAGE + (size_t)(pos % PAGE)) * (size_t)size;
    enum { MOST = 8 }; /* channels a thread: heads of up to 512 */
    float y[MOST];
    int32_t n = 0;
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        const int32_t d = (int32_t)threadIdx.x + i * BLOCK;
        if (d >= size) break;
        y[i] = is_q ? turned(a.q, r, h, d, pos)
                    : is_v ? ox_get(a.append.v, r, h * size + d) : turned(a.k, r, h, d, pos);
        n = i + 1;
    }
    __syncthreads(); /* everything has been read before the turned values are written */
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        if (i >= n) break;
        const int32_t d = (int32_t)threadIdx.x + i * BLOCK;
        if (is_q) {
            ox_put(a.q.x, r, h * size + d, y[i]);
            continue;
        }
        if (!is_v) {
            ox_put(a.k.x, r, h * size + d, y[i]);
            y[i] = ox_get(a.k.x, r, h * size + d); /* rounded */
        }
        ox_write(page + (is_v ? c.v_offset : c.k_offset), c.dtype, row + (size_t)d, y[i]);
    }
}

void ox_rotate_append_cuda(const void *args, void *stream)
{
    const ox_dev_rotate_append_args *a = (const ox_dev_rotate_append_args *)args;
    const int32_t rows = a->append.rows;
    if (!rows) return;
    const dim3 grid((unsigned)(a->q.n_heads + 2 * a->append.cache.n_kv_heads), (unsigned)rows);
    ox_launch(rotate_append_kernel, grid, BLOCK, 0, ox_stream_of(stream), *a);
}
