/* device.cuh - what the phases share: programmatic links, loads that know who wrote their data,
 * tensor-core steps, activations as fixed point, and the state of the sequence.
 *
 * A phase triggers its successor first, fetches everything that no predecessor of the same token
 * wrote (weights, past keys, tables), waits, and then runs the dependent part inside a loop of one
 * trip that the compiler can't see through: so addresses and conversions are hoisted above the wait
 * and the dependent part stays short. Data of predecessors is read by volatile asm only (`ld_dep`):
 * the header's __ldcg is plain asm and was hoisted over the wait. */
#ifndef OX_CHAIN_DEVICE_CUH
#define OX_CHAIN_DEVICE_CUH
#include "backend/cuda/chain/chain.h"
#include "kernel/attend/cuda_kv.cuh"
#include "kernel/qlinear/cuda_pack.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CHAIN_DEVICE 1 /* programmatic links, bulk copies: older devices get empty kernels */
#else
#define CHAIN_DEVICE 0
#endif

typedef unsigned long long u64;
typedef uint32_t u32;

/* What all phases of a chain see; written once, by value in every launch. */
typedef struct chain_state {
    __half *resid; /* [copies][hidden] */
    __half *act;   /* [copies][ffn] */
    __half *q;     /* [(n_heads + 2 n_kv_heads) * head_size]: rotated queries; raw with q_norm */
    __half *o;     /* [copies][SPLITS][n_heads * head_size] */
    float2 *ml;    /* [copies][SPLITS][n_heads]: maximum (base 2) and sum */
    __half *logits;
    u64 *best;          /* [RING] order of the logit, ~id */
    const int *base;    /* position of the graph's first step */
    char *const *table; /* [SPLITS...] pages: copied here by ox_chain_start */
    const __half *embedding;
    const u64 *sampling; /* [2]: bits of 1/temperature (0 = greedy) and seed */
    int hidden, ffn, vocab, copies, n_heads, n_kv_heads, head_size, rotary, interleaved, act_kind;
    float epsilon;
} chain_state;

/* Shape of attention's splits, for the phases that write and read them. */
typedef struct split_rule {
    int positions; /* a split */
    int window;
    int n; /* launched */
} split_rule;

/* First position seen, and the split it lies in. */
static __device__ __forceinline__ int first_seen(const split_rule &s, int pos)
{
    return s.window > 0 && pos >= s.window ? pos - s.window + 1 : 0;
}

#ifdef CHAIN_TRACE
/* Time stamps a CTA and launch: entered, fetched, released, input here, done, products, summed. */
__device__ u64 chain_trace[2048 * 160 * 7];
static __device__ __forceinline__ void stamp(int seq, int i)
{
    const int cta = (int)(blockIdx.x + gridDim.x * blockIdx.y);
    if (threadIdx.x == 0 && cta < 160 && seq < 2048) {
        u64 v;
        asm volatile("mov.u64 %0,%globaltimer;" : "=l"(v)::"memory");
        chain_trace[((size_t)seq * 160 + cta) * 7 + i] = v;
    }
}
#define STAMP(i) stamp(a.seq, i)
#else
#define STAMP(i)
#endif

static __device__ __forceinline__ void pdl_trigger()
{
#if CHAIN_DEVICE
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
static __device__ __forceinline__ void pdl_wait()
{
#if CHAIN_DEVICE
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* Reads a word of every 64 bytes of a kernel parameter: each launch has parameters of its own, and
 * a constant that is first read behind the wait costs a trip to L2 there. */
template <class T> static __device__ __forceinline__ void warm_params(const T &p)
{
#pragma unroll
    for (size_t i = 0; i < sizeof p; i += 64)
        asm volatile("" ::"r"(*(const u32 *)((const char *)&p + i)));
}
/* One trip, opaque to the compiler. */
#define DEPENDENT_PART                                                                             \
    int trip;                                                                                      \
    asm volatile("mov.u32 %0,1;" : "=r"(trip));                                                    \
    _Pragma("unroll 1") for (; trip < 2; trip++)

/* The warp's number, known to be the same in all lanes. */
static __device__ __forceinline__ int uniform_warp()
{
    return __shfl_sync(~0u, (int)(threadIdx.x >> 5), 0);
}

/* ---- loads ---- */
static __device__ __forceinline__ uint4 ld_weight(const void *p)
{
    uint4 r;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3},[%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "l"(p));
    return r;
}
static __device__ __forceinline__ u32 ld_weight_u16(const void *p)
{
    unsigned short r;
    asm volatile("ld.global.nc.L1::no_allocate.u16 %0,[%1];" : "=h"(r) : "l"(p));
    return r;
}
static __device__ __forceinline__ u32 ld_weight_u32(const void *p)
{
    u32 r;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0,[%1];" : "=r"(r) : "l"(p));
    return r;
}
static __device__ __forceinline__ u32 ld_weight_u8(const void *p)
{
    u32 r;
    asm volatile("ld.global.nc.L1::no_allocate.u8 %0,[%1];" : "=r"(r) : "l"(p));
    return r;
}
/* The same, left alone where `ok` is false: no branch, so that neighbours' work can mix. */
static __device__ __forceinline__ void ld_weight_if(uint4 &r, const void *p, bool ok)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p,%5,0;\n\t"
                 "@p ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3},[%4];\n\t}"
                 : "+r"(r.x), "+r"(r.y), "+r"(r.z), "+r"(r.w)
                 : "l"(p), "r"((u32)ok));
}
template <int BYTES>
static __device__ __forceinline__ void ld_small_if(u32 &r, const void *p, bool ok)
{
    unsigned short h = (unsigned short)r;
    if (BYTES == 4)
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p,%2,0;\n\t"
                     "@p ld.global.nc.L1::no_allocate.u32 %0,[%1];\n\t}"
                     : "+r"(r)
                     : "l"(p), "r"((u32)ok));
    if (BYTES == 2) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p,%2,0;\n\t"
                     "@p ld.global.nc.L1::no_allocate.u16 %0,[%1];\n\t}"
                     : "+h"(h)
                     : "l"(p), "r"((u32)ok));
        r = h;
    }
    if (BYTES == 1)
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p,%2,0;\n\t"
                     "@p ld.global.nc.L1::no_allocate.u8 %0,[%1];\n\t}"
                     : "+r"(r)
                     : "l"(p), "r"((u32)ok));
}
static __device__ __forceinline__ uint4 ld_dep(const void *p)
{
    uint4 r;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3},[%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "l"(p)
                 : "memory");
    return r;
}
static __device__ __forceinline__ float ld_dep_half(const __half *p)
{
    unsigned short r;
    asm volatile("ld.global.cg.u16 %0,[%1];" : "=h"(r) : "l"(p) : "memory");
    return __half2float(__ushort_as_half(r));
}
static __device__ __forceinline__ float2 ld_dep_f2(const float2 *p)
{
    float2 r;
    asm volatile("ld.global.cg.v2.f32 {%0,%1},[%2];" : "=f"(r.x), "=f"(r.y) : "l"(p) : "memory");
    return r;
}
static __device__ __forceinline__ u64 ld_dep_u64(const u64 *p)
{
    u64 r;
    asm volatile("ld.global.cg.u64 %0,[%1];" : "=l"(r) : "l"(p) : "memory");
    return r;
}
static __device__ __forceinline__ int ld_base(const int *p)
{
    int r;
    asm volatile("ld.global.u32 %0,[%1];" : "=r"(r) : "l"(p));
    return r;
}
/* Touches a page so that its address translation is warm. */
static __device__ __forceinline__ void touch(const void *p)
{
    u32 r;
    asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(r) : "l"(p));
    (void)r;
}

/* ---- shared memory by plain addresses: the compiler would compute generic ones again and again,
 * with a special register each time ---- */
static __device__ __forceinline__ u32 shared_address(const void *p)
{
    u32 a = (u32)__cvta_generic_to_shared(p);
    asm volatile("" : "+r"(a));
    return a;
}
static __device__ __forceinline__ void st_shared(u32 at, float v)
{
    asm volatile("st.shared.f32 [%0],%1;" ::"r"(at), "f"(v) : "memory");
}
static __device__ __forceinline__ float ld_shared(u32 at)
{
    float v;
    asm volatile("ld.shared.f32 %0,[%1];" : "=f"(v) : "r"(at) : "memory");
    return v;
}

/* ---- numbers ---- */
static __device__ __forceinline__ float2 h2f(u32 v)
{
    return __half22float2(*reinterpret_cast<__half2 *>(&v));
}
static __device__ __forceinline__ u32 f2h(float a, float b)
{
    __half2 r = __floats2half2_rn(a, b);
    return *reinterpret_cast<u32 *>(&r);
}
static __device__ __forceinline__ float round_half(float x)
{
    return __half2float(__float2half_rn(x));
}
static __device__ __forceinline__ float ex2(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(x));
    return r;
}
static __device__ __forceinline__ float half_bits(u32 bits)
{
    return __half2float(__ushort_as_half((unsigned short)bits));
}

/* What a kernel reads: float16 scales around the middle, with zero codes, with minima; or float32
 * scales and any of these. */
enum { FORMAT_MIDDLE, FORMAT_CODE, FORMAT_MIN, FORMAT_F32, FORMATS };

template <int FORMAT> static __device__ __forceinline__ u32 ld_scale(const void *scales, size_t at)
{
    return FORMAT == FORMAT_F32 ? ld_weight_u32((const float *)scales + at)
                                : ld_weight_u16((const __half *)scales + at);
}
template <int FORMAT>
static __device__ __forceinline__ u32 ld_zero(const ox_cuda_weight &w, size_t at)
{
    if (FORMAT == FORMAT_CODE) return ld_weight_u8((const uint8_t *)w.zeros + at);
    if (FORMAT == FORMAT_MIN) return ld_weight_u16((const __half *)w.zeros + at);
    if (w.zero == OX_CUDA_ZERO_CODE) return ld_weight_u8((const uint8_t *)w.zeros + at);
    return w.zero == OX_CUDA_ZERO_MIN ? ld_weight_u32((const float *)w.zeros + at) : 0;
}

/* y + one block's part. dot = sum of code * integer of x (times 16 with 4 bits), sum = that of x.
 */
template <int BITS, int FORMAT>
static __device__ __forceinline__ float add_block(float y, int dot, int sum, float x_scale,
                                                  u32 scale, u32 zero, int zero_kind)
{
    constexpr int ONE = BITS == 4 ? 16 : 1;
    const float s = FORMAT == FORMAT_F32 ? __uint_as_float(scale) : half_bits(scale);
    const int kind = FORMAT == FORMAT_F32 ? zero_kind : FORMAT;
    if (kind == OX_CUDA_ZERO_MIDDLE) dot -= sum * (ONE << ((BITS - 1) & 7));
    if (kind == OX_CUDA_ZERO_CODE) dot -= sum * (int)zero * ONE;
    y = fmaf((float)dot, s * (x_scale * (1.0f / ONE)), y);
    if (kind == OX_CUDA_ZERO_MIN)
        y = fmaf(FORMAT == FORMAT_F32 ? __uint_as_float(zero) : half_bits(zero),
                 (float)sum * x_scale, y);
    return y;
}
#define SHFL_XOR(v, m) __shfl_xor_sync(~0u, v, m)

static __device__ __forceinline__ void mma_f16(float *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                               u32 b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
/* Transposes an 8 x 8 matrix of halves: lane (g, t) gives (g, 2t..) and gets (2t.., g). */
static __device__ __forceinline__ u32 transpose8(u32 v)
{
    u32 r;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(r) : "r"(v));
    return r;
}
static __device__ __forceinline__ void mma_i8(int *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                              u32 b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ float activation(float x, int kind)
{
    if (kind == 0) return __fdividef(x, 1.0f + __expf(-x)); /* the order of ox_act */
    if (kind == 1) return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    if (kind == 2) return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    if (kind == 3) return __fdividef(x, 1.0f + __expf(-1.702f * x));
    const float r = fmaxf(x, 0.0f);
    return kind == 4 ? r : r * r;
}

/* ---- activations as 16-bit fixed point per block of 32 ----
 * Lane (g, t) holds eight neighbours 8t..8t+7 of the block that column g of the mma stands for, and
 * makes the bytes of plane g & 1: 0 the high, 1 the low one (signed, high*256 + low = the value).
 * Bytes are in the order of the low (lo) and high (hi) nibbles of cuda_pack.cuh. */
typedef struct fixed_x {
    u32 lo, hi;
    int sum;     /* of the lane's eight values */
    float scale; /* value = integer * scale */
} fixed_x;

static __device__ __forceinline__ fixed_x to_fixed(const float *f, int plane)
{
    float am = 1e-20f;
#pragma unroll
    for (int i = 0; i < 8; i++)
        am = fmaxf(am, fabsf(f[i]));
    am = fmaxf(am, SHFL_XOR(am, 1));
    am = fmaxf(am, SHFL_XOR(am, 2));
    const float inv = __fdividef(32512.0f, am);
    const float magic = plane ? 12582912.0f : 12582912.0f + 128.0f;
    u32 v[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = __float_as_uint(fmaf(f[i], inv, magic));
    const u32 pick = plane ? 0x0040 : 0x0051;
    fixed_x x;
    x.lo = __byte_perm(__byte_perm(v[0], v[4], pick), __byte_perm(v[1], v[5], pick), 0x5410);
    x.hi = __byte_perm(__byte_perm(v[2], v[6], pick), __byte_perm(v[3], v[7], pick), 0x5410);
    x.sum = (int)(((v[0] + v[1] + v[2]) + (v[3] + v[4] + v[5]) + (v[6] + v[7])) -
                  8u * __float_as_uint(magic));
    x.scale = am * (1.0f / 32512.0f);
    return x;
}

static __device__ __forceinline__ void widen8(float *f, uint4 v)
{
    const u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 e = h2f(w[i]);
        f[2 * i] = e.x;
        f[2 * i + 1] = e.y;
    }
}
#endif
