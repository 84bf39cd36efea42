/* cuda_epilogue.cuh - from the accumulators of wgmma to y: bias, activation, gate * up, residual,
 * wide stores; and the sum of the parts when a cluster shares a tile along k. */
#ifndef OX_KERNEL_MATMUL_CUDA_EPILOGUE_CUH
#define OX_KERNEL_MATMUL_CUDA_EPILOGUE_CUH
#include "kernel/matmul/cuda_async.cuh"

#include <cuda_fp16.h>

/* As ox_act (kernel/act/act.h). */
enum { ACT_SILU, ACT_GELU, ACT_GELU_TANH, ACT_QUICK_GELU, ACT_RELU, ACT_RELU2, ACT_ANY };

typedef struct tile_args {
    const float *bias, *bias_up;
    const __half *add;
    void *y;
    int rows, n, k_steps, tiles_m, tiles;
    int blocks; /* of the grid */
    int split;  /* blocks of a cluster that share a tile, each a range of k; 1 = none */
    int64_t ldadd, ldy;
    int act;
    bool aligned; /* rows of y and add start at multiples of 16 bytes */
} tile_args;

/* Steps of k that a block of the cluster takes. */
static __device__ __forceinline__ int first_step(const tile_args &t, int rank)
{
    return t.k_steps * rank / t.split;
}

static __device__ __forceinline__ float sigmoid(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

template <int ACT> static __device__ __forceinline__ float activate(int act, float x)
{
    const float r = fmaxf(x, 0.0f);
    switch (ACT == ACT_ANY ? act : ACT) {
    case ACT_SILU:
        return x * sigmoid(x);
    case ACT_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678118f));
    case ACT_GELU_TANH:
        return x * sigmoid(1.5957691216f * (x + 0.044715f * x * x * x));
    case ACT_QUICK_GELU:
        return x * sigmoid(1.702f * x);
    case ACT_RELU:
        return r;
    default:
        return r * r;
    }
}

static __device__ __forceinline__ uint32_t pack2(float a, float b)
{
    const __half2 h = __floats2half2_rn(a, b);
    return *(const uint32_t *)&h;
}

/* Four lanes side by side hold four words each: afterwards lane q holds word q of all four. */
static __device__ __forceinline__ void exchange4(uint32_t *v, int q)
{
    const bool odd = q & 1, upper = q & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const uint32_t got = __shfl_xor_sync(0xffffffff, odd ? v[i] : v[i + 1], 1);
        v[i] = odd ? got : v[i];
        v[i + 1] = odd ? v[i + 1] : got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t got = __shfl_xor_sync(0xffffffff, upper ? v[i] : v[i + 2], 2);
        v[i] = upper ? got : v[i];
        v[i + 2] = upper ? v[i + 2] : got;
    }
}

/* Eight neighbouring results of one row from column c on, stored at once where the row's layout
 * allows it. */
template <bool F32>
static __device__ __forceinline__ void store8(const tile_args &t, int r, int c, int n_out,
                                              const float *v)
{
    if (r >= t.rows || c >= n_out) return;
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = v[i];
    const int n = n_out - c < 8 ? n_out - c : 8;
    const bool whole = n == 8 && t.aligned;
    if (t.add) {
        const __half *add = t.add + r * t.ldadd + c;
        if (whole) {
            const uint4 u = *(const uint4 *)add;
            const __half *h = (const __half *)&u;
#pragma unroll
            for (int i = 0; i < 8; i++)
                x[i] += __half2float(h[i]);
        } else {
            for (int i = 0; i < 8; i++)
                if (i < n) x[i] += __half2float(add[i]);
        }
    }
    if (F32) {
        float *y = (float *)t.y + r * t.ldy + c;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < n) y[i] = x[i];
        return;
    }
    __half *y = (__half *)t.y + r * t.ldy + c;
    if (whole) {
        *(uint4 *)y =
            make_uint4(pack2(x[0], x[1]), pack2(x[2], x[3]), pack2(x[4], x[5]), pack2(x[6], x[7]));
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < n) y[i] = __float2half_rn(x[i]);
    }
}

/* The thread's part of 32 columns from c0 on (d[0..3]) of rows r and r + 8. The four lanes of a row
 * first exchange what they have, so that each stores 8 neighbours. */
template <bool F32>
static __device__ __forceinline__ void finish(const tile_args &t, int r, int c0, float (*d)[4])
{
    const int q = threadIdx.x % 4, c = c0 + q * 8;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t v[2][4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            v[0][j] = __float_as_uint(d[j][2 * half]);
            v[1][j] = __float_as_uint(d[j][2 * half + 1]);
        }
        exchange4(v[0], q);
        exchange4(v[1], q);
        float x[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[2 * i] = __uint_as_float(v[0][i]);
            x[2 * i + 1] = __uint_as_float(v[1][i]);
        }
        if (t.bias) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (c + i < t.n) x[i] += t.bias[c + i];
        }
        store8<F32>(t, r + 8 * half, c, t.n, x);
    }
}

/* The same with gates in even and ups in odd columns, 64 columns from c0 on (d[0..7]). */
template <int ACT>
static __device__ __forceinline__ void finish_pairs(const tile_args &t, int r, int c0,
                                                    float (*d)[4])
{
    const int q = threadIdx.x % 4, n_out = t.n / 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t v[2][4];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float a = d[j][2 * half], b = d[j][2 * half + 1];
            const int i = (c0 + j * 8) / 2 + q;
            if (t.bias && i < n_out) a += t.bias[i];
            if (t.bias_up && i < n_out) b += t.bias_up[i];
            v[j % 2][j / 2] = __float_as_uint(activate<ACT>(t.act, a) * b);
        }
        exchange4(v[0], q);
        exchange4(v[1], q);
        float x[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[i] = __uint_as_float(v[0][i]);
            x[4 + i] = __uint_as_float(v[1][i]);
        }
        store8<false>(t, r + 8 * half, c0 / 2 + q * 8, n_out, x);
    }
}

/* What becomes of a product: float16, float32, or pairs with their activation. */
enum { EPI_PLAIN, EPI_F32, EPI_PAIRS_SILU, EPI_PAIRS_GELU_TANH, EPI_PAIRS_ANY, EPI_COUNT };

template <int BN, int EPI>
static __device__ __forceinline__ void finish_tile(const tile_args &t, int r, int col,
                                                   float (*d)[4])
{
    if (EPI == EPI_PLAIN || EPI == EPI_F32) {
#pragma unroll
        for (int j = 0; j < BN / 8; j += 4)
            finish<EPI == EPI_F32>(t, r, col + j * 8, d + j);
    } else {
        constexpr int act = EPI == EPI_PAIRS_SILU        ? ACT_SILU
                            : EPI == EPI_PAIRS_GELU_TANH ? ACT_GELU_TANH
                                                         : ACT_ANY;
#pragma unroll
        for (int j = 0; j < BN / 8; j += 8)
            finish_pairs<act>(t, r, col + j * 8, d + j);
    }
}

/* The parts of ranks 1, 2, ... are added to rank 0's in that order, through the shared memory that
 * the ring no longer needs: a cluster has one tile. */
template <int BN>
static __device__ __forceinline__ void gather_parts(const tile_args &t, uint32_t ring, int rank,
                                                    float (*d)[4])
{
    const uint32_t mine = ring + (threadIdx.x - 128) * 16;
    if (rank > 0) {
        asm volatile("bar.sync 1, 256;" ::: "memory"); /* nobody reads the ring any more */
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(mine + j * 4096),
                         "f"(d[j][0]), "f"(d[j][1]), "f"(d[j][2]), "f"(d[j][3])
                         : "memory");
    }
    cluster_meet();
    for (int other = 1; rank == 0 && other < t.split; other++) {
        uint32_t from;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(from) : "r"(mine), "r"(other));
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            float x[4];
            asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                         : "r"(from + j * 4096)
                         : "memory");
#pragma unroll
            for (int i = 0; i < 4; i++)
                d[j][i] += x[i];
        }
    }
    cluster_meet(); /* a block's shared memory lives until everybody has read it */
}
#endif
