/* CUDA row of kv_append.h: a block a row; pages as in kernel/attend/cuda_kv.cuh. */
#include "kernel/device.cuh"

enum { BLOCK = 256, PAGE = 64 };

static __global__ void append_kernel(ox_dev_append_args a)
{
    const ox_dev_cache &c = a.cache;
    const int32_t r = (int32_t)blockIdx.x, pos = c.step.pos[r];
    if (pos < 0) return;
    char *page = (char *)c.step.pages[c.step.first[c.step.seq[r]] + pos / PAGE];
    const int32_t nk = c.n_kv_heads * c.head_size, nv = c.n_kv_heads * c.v_head_size;
    for (int32_t i = threadIdx.x; i < nk + nv; i += BLOCK) {
        const bool is_v = i >= nk;
        const int32_t j = is_v ? i - nk : i, size = is_v ? c.v_head_size : c.head_size;
        const size_t at =
            ((size_t)(j / size) * PAGE + (size_t)(pos % PAGE)) * (size_t)size + (size_t)(j % size);
        ox_write(page + (is_v ? c.v_offset : c.k_offset), c.dtype, at,
                 is_v ? ox_get(a.v, r, j) : ox_get(a.k, r, j));
    }
}

void ox_kv_append_cuda(const void *args, void *stream)
{
    const ox_dev_append_args *a = (const ox_dev_append_args *)args;
    if (!a->rows) return;
    append_kernel<<<(unsigned)a->rows, BLOCK, 0, ox_stream_of(stream)>>>(*a);
}
