/* CUDA row of embed.h: a block a token; the table is a pack or float rows. */
#include "kernel/device.cuh"
#include "kernel/qlinear/cuda_pack.cuh"

enum { BLOCK = 256 };

static __global__ void embed_kernel(ox_dev_embed_args a, ox_cuda_weight pack)
{
    const int32_t r = (int32_t)blockIdx.x, id = a.ids[r];
    for (int32_t i = threadIdx.x; i < a.dim; i += BLOCK) {
        const float v = a.pack ? ox_cuda_weight_at(&pack, id, i)
                               : ox_read(a.table.p, a.table.dtype,
                                         (size_t)id * (size_t)a.table.ld + (size_t)i);
        ox_put(a.y, r, i, v * a.scale);
    }
}

void ox_embed_cuda(const void *args, void *stream)
{
    const ox_dev_embed_args *a = (const ox_dev_embed_args *)args;
    ox_cuda_weight pack = {};
    static_assert(sizeof(pack) == sizeof(ox_dev_pack), "the same struct under two names");
    if (a->pack) memcpy(&pack, a->pack, sizeof(pack));
    if (!a->rows) return;
    embed_kernel<<<(unsigned)a->rows, BLOCK, 0, ox_stream_of(stream)>>>(*a, pack);
}
