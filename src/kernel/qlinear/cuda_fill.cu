/* cuda_fill.cu - weights into device form: packs of codes, float rows (device.h says which). */
#include "kernel/device.cuh"
#include "kernel/qlinear/cuda_pack.cuh"

enum { BLOCK = 256 };

static_assert(sizeof(ox_cuda_weight) == sizeof(ox_dev_pack), "the same struct under two names");
static_assert(sizeof(ox_cuda_source) == sizeof(ox_dev_source), "the same struct under two names");

ox_dev_pack ox_dev_pack_shape(int32_t n, int32_t k, int32_t bits, int32_t block, int32_t zero,
                              int32_t scale_f32, size_t bytes[3])
{
    const ox_cuda_weight w = ox_cuda_weight_shape(n, k, bits, block, zero, scale_f32);
    ox_dev_pack p;
    memcpy(&p, &w, sizeof(p));
    bytes[0] = ox_cuda_code_bytes(&w);
    bytes[1] = ox_cuda_scale_bytes(&w);
    bytes[2] = ox_cuda_zero_bytes(&w);
    return p;
}

void ox_dev_pack_fill(const ox_dev_pack *pack, const ox_dev_source *source, void *stream)
{
    ox_cuda_weight w;
    ox_cuda_source s;
    memcpy(&w, pack, sizeof(w));
    memcpy(&s, source, sizeof(s));
    const size_t rows = (size_t)(s.rows + 7) / 8 * 8;
    const size_t scales = rows * (size_t)w.k_units * (size_t)(128 / w.block);
    ox_cuda_pack_codes<<<ox_grid(rows * (size_t)w.k_units * 4, BLOCK), BLOCK, 0,
                         ox_stream_of(stream)>>>(w, s);
    ox_cuda_pack_scales<<<ox_grid(scales, BLOCK), BLOCK, 0, ox_stream_of(stream)>>>(w, s);
}

static __global__ void convert_kernel(const void *in, int32_t from, bool transposed, void *out,
                                      int32_t to, int64_t ld, int64_t rows, int64_t cols)
{
    const size_t n = (size_t)rows * (size_t)cols;
    for (size_t i = blockIdx.x * (size_t)BLOCK + threadIdx.x; i < n;
         i += (size_t)gridDim.x * BLOCK) {
        const size_t r = i / (size_t)cols, c = i % (size_t)cols;
        ox_write(out, to, r * (size_t)ld + c,
                 ox_read(in, from, transposed ? c * (size_t)rows + r : i));
    }
}

void ox_dev_convert(const void *in, int32_t from, int32_t transposed, void *out, int32_t to,
                    int64_t ld, int64_t rows, int64_t cols, void *stream)
{
    convert_kernel<<<ox_grid((size_t)rows * (size_t)cols, BLOCK), BLOCK, 0, ox_stream_of(stream)>>>(
        in, from, transposed != 0, out, to, ld, rows, cols);
}
