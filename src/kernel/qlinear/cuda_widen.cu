/* cuda_widen.cu - block-quantised weights against many rows: see cuda_widen.h. */
#include "kernel/qlinear/cuda_widen.h"
#include "kernel/device.h"
#include "kernel/matmul/cuda_row.h"
#include "kernel/qlinear/cuda_pack.cuh"
#include "kernel/qlinear/cuda_unpack.cuh"

#include <cuda_runtime.h>

/* A warp a (tile, unit): lane 4g + t widens row g, columns 32b + 8t ... of the unit. */
template <int BITS>
static __global__ void widen(ox_cuda_weight w, int tile0, int tiles, __half *out, int64_t ld,
                             int out_row, int out_step, int rows)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int64_t unit = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (unit >= (int64_t)tiles * w.k_units) return;
    const int tile = (int)(unit / w.k_units), u = (int)(unit % w.k_units);
    const uint4 *codes = w.codes + ((int64_t)(tile0 + tile) * w.k_units + u) * (BITS * 8);
    uint32_t words[BITS == 16 ? 16 : BITS];
#pragma unroll
    for (int i = 0; i < BITS / 4; i++) {
        const uint4 v = __ldcs(codes + i * 32 + lane);
        words[4 * i] = v.x;
        words[4 * i + 1] = v.y;
        words[4 * i + 2] = v.z;
        words[4 * i + 3] = v.w;
    }
    const int row = tile * 8 + g;
    if (row >= rows) return;
    __half *to = out + (int64_t)(out_row + row * out_step) * ld + u * 128 + t * 8;
    const int per_unit = 128 / w.block;
    const int64_t first = (((int64_t)(tile0 + tile) * w.k_units + u) * 8 + g) * per_unit;
#pragma unroll
    for (int b = 0; b < 4; b++) {
        uint32_t h[4];
        if (BITS == 16) {
            for (int i = 0; i < 4; i++)
                h[i] = words[4 * b + i];
        } else {
            unpack8<BITS>(w, words + (BITS == 4 ? b : b * 2), first + (b * 32 + t * 8) / w.block,
                          h);
        }
        *(uint4 *)(to + b * 32) = make_uint4(h[0], h[1], h[2], h[3]);
    }
}

int ox_cuda_widen(const ox_cuda_weight *w, int32_t row, int32_t rows, void *out, int32_t out_row,
                  int32_t out_step, void *stream)
{
    const int tiles = (rows + 7) / 8;
    const int64_t warps = (int64_t)tiles * w->k_units, ld = (int64_t)w->k_units * 128;
    const dim3 grid((unsigned)((warps + 7) / 8));
    cudaStream_t s = (cudaStream_t)stream;
    if (w->bits == 4)
        widen<4>
            <<<grid, 256, 0, s>>>(*w, row / 8, tiles, (__half *)out, ld, out_row, out_step, rows);
    else if (w->bits == 8)
        widen<8>
            <<<grid, 256, 0, s>>>(*w, row / 8, tiles, (__half *)out, ld, out_row, out_step, rows);
    else
        widen<16>
            <<<grid, 256, 0, s>>>(*w, row / 8, tiles, (__half *)out, ld, out_row, out_step, rows);
    return cudaGetLastError();
}

int ox_cuda_linear_widen(const ox_cuda_weight *w, const ox_cuda_matmul_args *product, void *scratch,
                         size_t scratch_bytes, int n_sm, void *stream)
{
    const int64_t ld = (int64_t)w->k_units * 128;
    const int32_t half = w->n / 2;
    int64_t most = (int64_t)(scratch_bytes / (size_t)(ld * 2)) / 32 * 32;
    if (most < 32) return cudaErrorInvalidValue;
    const int64_t slices = (w->n + most - 1) / most;
    most = ((w->n + slices - 1) / slices + 255) / 256 * 256 < most
               ? ((w->n + slices - 1) / slices + 255) / 256 * 256
               : most;
    for (int32_t n = 0; n < w->n; n += (int32_t)most) {
        const int32_t rows = w->n - n < most ? w->n - n : (int32_t)most;
        int e;
        if (product->pairs) {
            e = ox_cuda_widen(w, n / 2, rows / 2, scratch, 0, 2, stream);
            if (!e) e = ox_cuda_widen(w, half + n / 2, rows / 2, scratch, 1, 2, stream);
        } else {
            e = ox_cuda_widen(w, n, rows, scratch, 0, 1, stream);
        }
        if (e) return e;
        const int32_t column = product->pairs ? n / 2 : n;
        ox_cuda_matmul_args a = *product;
        a.w = scratch;
        a.ldw = ld;
        a.n = rows;
        if (a.bias) a.bias += column;
        if (product->pairs && a.bias_up) a.bias_up += column;
        if (a.add) a.add = (const __half *)a.add + column;
        a.y = a.y_f32 ? (void *)((float *)a.y + column) : (void *)((__half *)a.y + column);
        e = ox_cuda_matmul_wgmma(&a, n_sm, stream);
        if (e) return e;
    }
    return 0;
}

enum { MIXED_ROWS = 128 }; /* measured: above, wider tiles win over widening once per 128 rows */

int ox_cuda_linear_many(const ox_cuda_weight *w, const ox_cuda_matmul_args *product, void *scratch,
                        size_t scratch_bytes, int n_sm, void *stream)
{
    return product->rows <= MIXED_ROWS && w->bits != 16
               ? ox_cuda_linear_mixed(w, product, n_sm, stream)
               : ox_cuda_linear_widen(w, product, scratch, scratch_bytes, n_sm, stream);
}

/* --- the row of kernel/cuda.def --------------------------------------------------------------- */

bool ox_qexact_cuda_wgmma_accepts(const void *args)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    const size_t slice = (size_t)(a->k + 127) / 128 * 128 * 2 * 256;
    return ox_cuda_matmul_takes(a) && a->scratch_bytes >= slice;
}

void ox_qexact_cuda_wgmma(const void *args, void *stream)
{
    const ox_dev_linear_args *a = (const ox_dev_linear_args *)args;
    ox_cuda_matmul_args m;
    if (!ox_cuda_matmul_fill(&m, a)) {
        ox_qexact_cuda(args, stream); /* few rows, or columns that start anywhere */
        return;
    }
    ox_cuda_weight w;
    memcpy(&w, a->pack, sizeof(w));
    const size_t bytes =
        a->scratch_bytes < OX_CUDA_WIDEN_BYTES ? a->scratch_bytes : OX_CUDA_WIDEN_BYTES;
    const size_t least = (size_t)w.k_units * 256 * 256;
    ox_cuda_linear_many(&w, &m, a->scratch, bytes < least ? least : bytes, a->n_sm, stream);
}
