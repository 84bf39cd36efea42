/* chain_bench.cu - the chain against one plain kernel per operation, and its speed, on random
 * weights in true shapes. Built by hand with nvcc (docs/cuda.md): nothing here runs without a
 * device.
 *
 *   chain_bench SHAPE [v] [b] [l] [-r qkv,o,gate,down] [-c copies] [-d depth,...]
 *     v verify, b bench (5 repetitions), q quick bench (2), l leave one phase out, p rows taken */
#include "backend/cuda/chain/attend.cu"
#include "backend/cuda/chain/chain.cu"
#include "backend/cuda/chain/head.cu"
#include "backend/cuda/chain/linear_down.cu"
#include "backend/cuda/chain/linear_gate.cu"
#include "backend/cuda/chain/linear_o.cu"
#include "backend/cuda/chain/linear_qkv.cu"

#include <algorithm>
#include <math.h>
#include <stdlib.h>
#include <vector>

#define CK(x)                                                                                      \
    do {                                                                                           \
        const cudaError_t ck_ = (x);                                                               \
        if (ck_ != cudaSuccess) {                                                                  \
            printf("%s line %d: %s\n", #x, __LINE__, cudaGetErrorString(ck_));                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct shape {
    const char *name;
    int layers, hidden, ffn, heads, kv_heads, hd, vocab, block, head_bits, rotary, interleaved,
        bias, bits, zero, qk_norm;
} shape;
static const shape shapes[] = {
    {"05", 24, 896, 4864, 14, 2, 64, 151936, 32, 4, 64, 0, 1, 4, 0, 0},
    {"15", 28, 1536, 8960, 12, 2, 128, 151936, 32, 4, 128, 0, 1, 4, 0, 0},
    {"smol", 30, 576, 1536, 9, 3, 64, 49152, 32, 4, 64, 0, 0, 4, 0, 0},
    {"7", 28, 3584, 18944, 28, 4, 128, 152064, 32, 4, 128, 0, 1, 4, 0, 0},
    {"glm", 40, 4096, 13696, 32, 2, 128, 151552, 128, 16, 64, 1, 1, 4, 0, 0},
    {"q3", 4, 1024, 3072, 16, 8, 128, 8192, 32, 4, 128, 0, 0, 4, 0, 1},
    {"min", 3, 576, 1536, 9, 3, 64, 4096, 32, 4, 64, 0, 0, 4, 2, 0},
    {"code", 3, 2560, 10240, 32, 32, 80, 4096, 32, 4, 32, 0, 1, 4, 1, 0},
    {"i8", 3, 1024, 3072, 16, 8, 64, 4096, 32, 8, 64, 0, 0, 8, 0, 0},
};

static __device__ u32 hash(u64 x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    x ^= x >> 33;
    return (u32)x;
}
#define EACH(i, n)                                                                                 \
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;                                      \
    i < (n);                                                                                       \
    i += (size_t)gridDim.x * blockDim.x
static __global__ void fill_bits(u32 *p, size_t n, u64 seed)
{
    for (EACH(i, n))
        p[i] = hash(i + (seed << 40));
}
static __device__ float uniform(size_t i, u64 seed)
{
    return (float)hash(i + (seed << 40)) * (1.0f / 4294967296.0f);
}
static __global__ void fill_half(__half *p, size_t n, u64 seed, float lo, float hi)
{
    for (EACH(i, n))
        p[i] = __float2half_rn(lo + (hi - lo) * uniform(i, seed));
}
static __global__ void fill_float(float *p, size_t n, u64 seed, float lo, float hi)
{
    for (EACH(i, n))
        p[i] = lo + (hi - lo) * uniform(i, seed);
}
static __global__ void fill_normal(__half *p, size_t n, u64 seed, float sd)
{
    for (EACH(i, n)) {
        float s = 0;
        for (int k = 0; k < 4; k++)
            s += uniform(i * 4 + (size_t)k, seed);
        p[i] = __float2half_rn((s - 2.0f) * 1.7320508f * sd);
    }
}
/* Zero scales of rows and columns that the matrix does not have, as packing leaves them. */
static __global__ void clear_padding(ox_cuda_weight w)
{
    const int per = w.k_units * (128 / w.block);
    for (EACH(i, (size_t)w.n_tiles * 8 * per)) {
        const int n = (int)(i / per), k = (int)(i % per) * w.block;
        if (n < w.n && k < w.k) continue;
        ((__half *)w.scales)[ox_cuda_scale_at(&w, n, k)] = __float2half_rn(0);
        if (w.zero == 2) ((__half *)w.zeros)[ox_cuda_scale_at(&w, n, k)] = __float2half_rn(0);
    }
}
static __global__ void fill_rotary(float2 *p, int half, int n)
{
    for (EACH(i, (size_t)half * n)) {
        const double a = (double)(i / half) * pow(1e6, -(double)(i % half) / half);
        p[i] = make_float2(round_half((float)cos(a)), round_half((float)sin(a)));
    }
}

/* ---- the reference: one plain kernel an operation ---- */
static __global__ void r_norm(const __half *x, const __half *gm, __half *y, int n, float eps)
{
    __shared__ float sh[256];
    float s = 0;
    x += (size_t)blockIdx.x * n;
    y += (size_t)blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += 256)
        s += __half2float(x[i]) * __half2float(x[i]);
    sh[threadIdx.x] = s;
    __syncthreads();
    for (int o = 128; o; o >>= 1) {
        if ((int)threadIdx.x < o) sh[threadIdx.x] += sh[threadIdx.x + o];
        __syncthreads();
    }
    const float r = rsqrtf(sh[0] / n + eps);
    for (int i = threadIdx.x; i < n; i += 256)
        y[i] = __float2half_rn(__half2float(x[i]) * r * __half2float(gm[i]));
}
static __global__ void r_linear(ox_cuda_weight w, const __half *x, __half *y, const float *bias,
                                const __half *add)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= w.n) return;
    float acc = 0;
    for (int k = lane; k < w.k; k += 32)
        acc += ox_cuda_weight_at(&w, row, k) * __half2float(x[k]);
    for (int o = 16; o; o >>= 1)
        acc += SHFL_XOR(acc, o);
    if (lane) return;
    if (bias) acc += bias[row];
    __half h = __float2half_rn(acc);
    if (add) h = __float2half_rn(__half2float(h) + __half2float(add[row]));
    y[row] = h;
}
static __global__ void r_rotate(__half *x, const float2 *table, int pos, int heads, int hd, int rot,
                                int inter)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), h = i / (rot / 2),
              d = i % (rot / 2);
    if (h >= heads) return;
    const float2 cs = table[(size_t)pos * (rot / 2) + d];
    const int at = h * hd + (inter ? 2 * d : d), to = inter ? at + 1 : at + rot / 2;
    const float a = __half2float(x[at]), b = __half2float(x[to]);
    x[at] = __float2half_rn(a * cs.x - b * cs.y);
    x[to] = __float2half_rn(b * cs.x + a * cs.y);
}
static __global__ void r_append(const __half *qkv, char **table, ox_cuda_kv kv, int pos, int nq)
{
    for (int i = threadIdx.x; i < kv.n_kv_heads * kv.head_size; i += blockDim.x) {
        const int h = i / kv.head_size, d = i % kv.head_size;
        ox_cuda_k_row(&kv, table, h, pos)[d] = qkv[nq * kv.head_size + i];
        ox_cuda_v_row(&kv, table, h, pos)[d] = qkv[(nq + kv.n_kv_heads) * kv.head_size + i];
    }
}
static __global__ void r_attend(const __half *q, char **table, ox_cuda_kv kv, __half *o, float *p,
                                int pos, int nq, float scale)
{
    __shared__ float red[128];
    const int h = blockIdx.x, kh = h / (nq / kv.n_kv_heads), hd = kv.head_size;
    float m = -1e30f, l = 0;
    p += (size_t)h * (pos + 1);
    for (int i = threadIdx.x; i <= pos; i += 128) {
        const __half *k = ox_cuda_k_row(&kv, table, kh, i);
        float s = 0;
        for (int d = 0; d < hd; d++)
            s += __half2float(q[h * hd + d]) * __half2float(k[d]);
        p[i] = s * scale;
        m = fmaxf(m, p[i]);
    }
    red[threadIdx.x] = m;
    __syncthreads();
    for (int i = 0; i < 128; i++)
        m = fmaxf(m, red[i]);
    __syncthreads();
    for (int i = threadIdx.x; i <= pos; i += 128)
        l += p[i] = expf(p[i] - m);
    red[threadIdx.x] = l;
    __syncthreads();
    l = 0;
    for (int i = 0; i < 128; i++)
        l += red[i];
    for (int d = threadIdx.x; d < hd; d += 128) {
        float s = 0;
        for (int i = 0; i <= pos; i++)
            s += p[i] * __half2float(ox_cuda_v_row(&kv, table, kh, i)[d]);
        o[h * hd + d] = __float2half_rn(s / l);
    }
}
static __global__ void r_glu(const __half *x, __half *y, int n)
{
    for (EACH(i, (size_t)n)) {
        const float a = __half2float(x[i]), b = __half2float(x[n + i]);
        y[i] = __float2half_rn(round_half(a / (1.0f + expf(-a))) * b);
    }
}

template <class T> static T *dev(size_t n)
{
    T *p;
    CK(cudaMalloc(&p, n * sizeof(T)));
    return p;
}

enum { MAX_POS = 9216 };
typedef struct bench {
    const shape *s;
    ox_chain_model m;
    std::vector<ox_chain_layer> layers;
    char **table, **ref_table, *pages, *ref_pages, *fresh;
    size_t page_bytes;
    __half *x, *n, *qkv, *o, *gu, *act, *logits;
    float *p;
    cudaStream_t stream;
    ox_chain *chain;
} bench;
static u64 seed_now = 1;

static ox_chain_linear matrix(int n, int k, int bits, int block, int zero, float gain, bool bias)
{
    ox_chain_linear l = {};
    ox_cuda_weight w = ox_cuda_weight_shape(n, k, bits, block, zero, 0);
    const size_t bytes = ox_cuda_code_bytes(&w), scales = ox_cuda_scale_count(&w);
    uint8_t *c = dev<uint8_t>(bytes);
    w.codes = (const uint4 *)c;
    const float step = gain / ((bits == 8 ? 74.0f : 4.63f) * sqrtf((float)k));
    if (bits == 16) {
        fill_normal<<<2048, 256>>>((__half *)c, bytes / 2, seed_now++, gain / sqrtf((float)k));
    } else {
        fill_bits<<<2048, 256>>>((u32 *)c, bytes / 4, seed_now++);
        __half *s = dev<__half>(scales);
        fill_half<<<1024, 256>>>(s, scales, seed_now++, 0.5f * step, 1.5f * step);
        w.scales = s;
        if (zero == 1) {
            uint8_t *z = dev<uint8_t>(scales);
            fill_bits<<<1024, 256>>>((u32 *)z, scales / 4, seed_now++);
            std::vector<uint8_t> h(scales);
            CK(cudaMemcpy(h.data(), z, scales, cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < scales; i++)
                h[i] = (uint8_t)(6 + (h[i] & 3));
            CK(cudaMemcpy(z, h.data(), scales, cudaMemcpyHostToDevice));
            w.zeros = z;
        }
        if (zero == 2) {
            __half *z = dev<__half>(scales);
            fill_half<<<1024, 256>>>(z, scales, seed_now++, -9.0f * step, -6.0f * step);
            w.zeros = z;
        }
        clear_padding<<<1024, 256>>>(w);
    }
    memcpy(&l.w, &w, sizeof w);
    if (bias) {
        float *b = dev<float>((size_t)n);
        fill_float<<<64, 256>>>(b, (size_t)n, seed_now++, -0.5f, 0.5f);
        l.bias = b;
    }
    CK(cudaGetLastError());
    return l;
}
static __half *gammas(int n)
{
    __half *g = dev<__half>((size_t)n);
    fill_half<<<8, 256>>>(g, (size_t)n, seed_now++, 0.6f, 1.4f);
    return g;
}

static void make(bench *b, const shape *s)
{
    b->s = s;
    CK(cudaStreamCreate(&b->stream));
    ox_chain_model m = {};
    ox_chain_defaults(&m);
    m.n_layers = s->layers;
    m.hidden = s->hidden;
    m.ffn = s->ffn;
    m.vocab = s->vocab;
    m.n_heads = s->heads;
    m.n_kv_heads = s->kv_heads;
    m.head_size = s->hd;
    m.rotary = s->rotary;
    m.interleaved = s->interleaved;
    m.epsilon = 1e-6f;
    m.scale = 1.0f / sqrtf((float)s->hd);
    m.max_positions = MAX_POS;
    const int width = s->heads * s->hd, nqkv = (s->heads + 2 * s->kv_heads) * s->hd;
    float2 *rot = dev<float2>((size_t)MAX_POS * s->rotary / 2);
    fill_rotary<<<256, 256>>>(rot, s->rotary / 2, MAX_POS);
    size_t at = 0;
    for (int l = 0; l < s->layers; l++) {
        ox_chain_layer y = {};
        y.qkv = matrix(nqkv, s->hidden, s->bits, s->block, s->zero, 1.3f, s->bias);
        y.o = matrix(s->hidden, width, s->bits, s->block, s->zero, 1.0f, false);
        y.gate_up = matrix(2 * s->ffn, s->hidden, s->bits, s->block, s->zero, 1.0f, false);
        y.down = matrix(s->hidden, s->ffn, s->bits, s->block, s->zero, 1.0f, false);
        y.norm1 = gammas(s->hidden);
        y.norm2 = gammas(s->hidden);
        if (s->qk_norm) {
            y.q_norm = gammas(s->hd);
            y.k_norm = gammas(s->hd);
        }
        y.rotary = (const float *)rot;
        y.kv.n_kv_heads = s->kv_heads;
        y.kv.head_size = y.kv.v_head_size = s->hd;
        y.kv.k_offset = (int64_t)at;
        at += ox_cuda_kv_bytes(s->kv_heads, s->hd);
        y.kv.v_offset = (int64_t)at;
        at += ox_cuda_kv_bytes(s->kv_heads, s->hd);
        b->layers.push_back(y);
    }
    b->page_bytes = at;
    m.head = matrix(s->vocab, s->hidden, s->head_bits, s->block, s->head_bits == 16 ? 0 : s->zero,
                    2.0f, false);
    m.norm = gammas(s->hidden);
    __half *e = dev<__half>((size_t)s->vocab * s->hidden);
    fill_normal<<<2048, 256>>>(e, (size_t)s->vocab * s->hidden, seed_now++, 1.0f);
    m.embedding = e;
    m.layers = b->layers.data();
    const int n_pages = MAX_POS / OX_CUDA_PAGE;
    const size_t total = at * n_pages;
    b->pages = dev<char>(total);
    b->ref_pages = dev<char>(total);
    b->fresh = dev<char>(total);
    fill_normal<<<2048, 256>>>((__half *)b->fresh, total / 2, seed_now++, 1.0f);
    std::vector<char *> t(n_pages), r(n_pages);
    for (int i = 0; i < n_pages; i++) { /* pages in a mixed order */
        const int j = (int)((i * 37ll) % n_pages);
        t[i] = b->pages + at * j;
        r[i] = b->ref_pages + at * j;
    }
    b->table = dev<char *>(n_pages);
    b->ref_table = dev<char *>(n_pages);
    CK(cudaMemcpy(b->table, t.data(), n_pages * 8, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(b->ref_table, r.data(), n_pages * 8, cudaMemcpyHostToDevice));
    b->x = dev<__half>((size_t)s->hidden);
    b->n = dev<__half>((size_t)s->hidden);
    b->qkv = dev<__half>((size_t)nqkv);
    b->o = dev<__half>((size_t)width);
    b->gu = dev<__half>(2 * (size_t)s->ffn);
    b->act = dev<__half>((size_t)s->ffn);
    b->logits = dev<__half>((size_t)s->vocab);
    b->p = dev<float>((size_t)s->heads * MAX_POS);
    b->m = m;
    b->chain = 0;
    CK(cudaDeviceSynchronize());
}

/* Chains are few here: their memory is left to the end of the program. */
static void *memory_for(const ox_chain_model *m)
{
    return calloc(1, ox_chain_bytes(m->n_layers));
}

static void open_chain(bench *b)
{
    char why[256] = "";
    ox_chain_close(&b->chain);
    if (ox_chain_open(&b->chain, memory_for(&b->m), &b->m, b->stream, why, sizeof why)) {
        printf("%s: %s\n", b->s->name, why);
        exit(1);
    }
}
static void reset(bench *b, int depth, int token, const ox_chain_sampling *s)
{
    CK(cudaMemcpyAsync(b->pages, b->fresh, b->page_bytes * (MAX_POS / OX_CUDA_PAGE),
                       cudaMemcpyDeviceToDevice, b->stream));
    if (ox_chain_start(b->chain, depth, token, b->table, MAX_POS / OX_CUDA_PAGE, s)) exit(2);
    CK(cudaStreamSynchronize(b->stream));
}
static void ref_linear(bench *b, const ox_chain_linear &l, const __half *x, __half *y,
                       const __half *add)
{
    r_linear<<<(l.w.n + 7) / 8, 256>>>(as_weight(l.w), x, y, l.bias, add);
}
static __global__ void r_nudge(__half *x, int n)
{
    for (EACH(i, (size_t)n))
        if (i % 16 == 0) x[i] = __ushort_as_half((unsigned short)(__half_as_ushort(x[i]) + 1));
}
static void ref_token(bench *b, int pos, int token, bool nudge)
{
    const shape *s = b->s;
    CK(cudaMemcpy(b->x, (const __half *)b->m.embedding + (size_t)token * s->hidden, s->hidden * 2,
                  cudaMemcpyDeviceToDevice));
    if (nudge) r_nudge<<<8, 256>>>(b->x, s->hidden);
    for (const ox_chain_layer &y : b->layers) {
        r_norm<<<1, 256>>>(b->x, (const __half *)y.norm1, b->n, s->hidden, b->m.epsilon);
        ref_linear(b, y.qkv, b->n, b->qkv, 0);
        if (y.q_norm) {
            r_norm<<<s->heads, 256>>>(b->qkv, (const __half *)y.q_norm, b->qkv, s->hd,
                                      b->m.epsilon);
            r_norm<<<s->kv_heads, 256>>>(b->qkv + s->heads * s->hd, (const __half *)y.k_norm,
                                         b->qkv + s->heads * s->hd, s->hd, b->m.epsilon);
        }
        const int nh = s->heads + s->kv_heads;
        r_rotate<<<(nh * s->rotary / 2 + 127) / 128, 128>>>(b->qkv, (const float2 *)y.rotary, pos,
                                                            nh, s->hd, s->rotary, s->interleaved);
        r_append<<<1, 256>>>(b->qkv, b->ref_table, as_cache(y.kv), pos, s->heads);
        r_attend<<<s->heads, 128>>>(b->qkv, b->ref_table, as_cache(y.kv), b->o, b->p, pos, s->heads,
                                    b->m.scale);
        ref_linear(b, y.o, b->o, b->x, b->x);
        r_norm<<<1, 256>>>(b->x, (const __half *)y.norm2, b->n, s->hidden, b->m.epsilon);
        ref_linear(b, y.gate_up, b->n, b->gu, 0);
        r_glu<<<64, 256>>>(b->gu, b->act, s->ffn);
        ref_linear(b, y.down, b->act, b->x, b->x);
    }
    r_norm<<<1, 256>>>(b->x, (const __half *)b->m.norm, b->n, s->hidden, b->m.epsilon);
    ref_linear(b, b->m.head, b->n, b->logits, 0);
    CK(cudaDeviceSynchronize());
}

static std::vector<int> stream_of(bench *b, int depth, int n, int per, const ox_chain_sampling *s)
{
    reset(b, depth, 1234 % b->s->vocab, s);
    for (int i = 0; i < n; i += per)
        if (ox_chain_enqueue(b->chain, per, depth + n)) exit(3);
    CK(cudaStreamSynchronize(b->stream));
    std::vector<int> out(n);
    for (int i = 0; i < n; i++)
        out[i] = ox_chain_token(b->chain, depth + i);
    return out;
}

static int verify(bench *b, int depth, int n)
{
    open_chain(b);
    ox_chain_store_logits(b->chain, 0);
    const int bulk = 64;
    const std::vector<int> a = stream_of(b, depth, bulk, 8, 0), c = stream_of(b, depth, bulk, 8, 0),
                           d = stream_of(b, depth, bulk, 1, 0);
    ox_chain_sampling hot = {0.8f, 42};
    const std::vector<int> e = stream_of(b, depth, bulk, 8, &hot),
                           f = stream_of(b, depth, bulk, 4, &hot);
    ox_chain_store_logits(b->chain, 1);
    CK(cudaMemcpy(b->ref_pages, b->fresh, b->page_bytes * (MAX_POS / OX_CUDA_PAGE),
                  cudaMemcpyDeviceToDevice));
    reset(b, depth, 1234 % b->s->vocab, 0);
    int token = 1234 % b->s->vocab, flips = 0, wrong = 0;
    double sum = 0, worst = 0;
    std::vector<__half> r((size_t)b->s->vocab), g((size_t)b->s->vocab);
    for (int i = 0; i < n; i++) {
        if (ox_chain_enqueue(b->chain, 1, depth + bulk)) exit(3);
        CK(cudaStreamSynchronize(b->stream));
        const int got = ox_chain_token(b->chain, depth + i);
        CK(cudaMemcpy(g.data(), ox_chain_logits(b->chain), g.size() * 2, cudaMemcpyDeviceToHost));
        /* the reference continues from the chain's own cache, so that steps stand alone */
        CK(cudaMemcpy(b->ref_pages, b->pages, b->page_bytes * (MAX_POS / OX_CUDA_PAGE),
                      cudaMemcpyDeviceToDevice));
        ref_token(b, depth + i, token, false);
        CK(cudaMemcpy(r.data(), b->logits, r.size() * 2, cudaMemcpyDeviceToHost));
        double d2 = 0, n2 = 0;
        int top = 0;
        for (size_t v = 0; v < r.size(); v++) {
            const float x = __half2float(r[v]), y = __half2float(g[v]);
            if (x > __half2float(r[(size_t)top])) top = (int)v;
            d2 += (double)(x - y) * (x - y);
            n2 += (double)x * x;
        }
        const double rel = sqrt(d2 / n2);
        bool chaotic = false;
        if (rel > 5e-3) { /* how far the reference moves when its input moves by an ulp */
            std::vector<__half> r2(r.size());
            ref_token(b, depth + i, token, true);
            CK(cudaMemcpy(r2.data(), b->logits, r2.size() * 2, cudaMemcpyDeviceToHost));
            double p2 = 0;
            for (size_t v = 0; v < r.size(); v++)
                p2 += pow((double)__half2float(r[v]) - (double)__half2float(r2[v]), 2);
            printf("  step %d token %d: rel L2 %.2e; the reference against itself, nudged: %.2e\n",
                   i, token, rel, sqrt(p2 / n2));
            chaotic = rel < 4 * sqrt(p2 / n2);
        }
        sum += rel;
        if (!(rel <= worst) && !chaotic) worst = rel;
        if (got != top) {
            const float margin =
                __half2float(r[(size_t)top]) - (got >= 0 ? __half2float(r[(size_t)got]) : -1e9f);
            flips++;
            if (!chaotic && !(margin <= 0.02f * fabsf(__half2float(r[(size_t)top])))) wrong++;
            if (flips < 3)
                printf("  step %d: %d, reference %d, margin %.4f of %.3f\n", i, got, top, margin,
                       __half2float(r[(size_t)top]));
        }
        token = got >= 0 && got < b->s->vocab ? got : 0;
    }
    const bool ok = a == c && a == d && e == f && a != e && !wrong && worst < 2e-2;
    printf("%s depth %d: %s; runs %s, 8 = 1 tokens a graph %s, sampled 8 = 4 %s; rel L2 mean %.2e "
           "worst "
           "%.2e; arg-max %d of %d, wrong %d\n",
           b->s->name, depth, ok ? "ok" : "FAILED", a == c ? "equal" : "DIFFER",
           a == d ? "equal" : "DIFFER", e == f ? "equal" : "DIFFER", sum / n, worst, n - flips, n,
           wrong);
    fflush(stdout);
    return ok ? 0 : 1;
}

static double bench_one(bench *b, int depth, int reps, std::vector<double> *all)
{
    enum { N = 256 };
    cudaEvent_t e0, e1;
    CK(cudaEventCreate(&e0));
    CK(cudaEventCreate(&e1));
    std::vector<double> out;
    for (int r = 0; r <= reps; r++) {
        reset(b, depth, (1234 + r) % b->s->vocab, 0);
        if (ox_chain_enqueue(b->chain, 8, depth + N + 8)) exit(3);
        CK(cudaEventRecord(e0, b->stream));
        for (int i = 0; i < N; i += 8)
            ox_chain_enqueue(b->chain, 8, depth + N + 8);
        CK(cudaEventRecord(e1, b->stream));
        CK(cudaEventSynchronize(e1));
        float ms;
        CK(cudaEventElapsedTime(&ms, e0, e1));
        if (r) out.push_back(ms * 1e3 / N);
    }
    std::sort(out.begin(), out.end());
    if (all) *all = out;
    return out[out.size() / 2];
}

#ifdef CHAIN_TRACE
static void trace(bench *b, int depth)
{
    static const char *names[6] = {"qkv", "attend", "o", "gate", "down", "head"};
    open_chain(b);
    reset(b, depth, 7, 0);
    for (int i = 0; i < 3; i++)
        ox_chain_enqueue(b->chain, 8, depth + 264);
    CK(cudaStreamSynchronize(b->stream));
    std::vector<u64> tb(2048 * 160 * 7);
    CK(cudaMemcpyFromSymbol(tb.data(), chain_trace, tb.size() * 8));
    const int per = 5 * b->s->layers + 1;
    double acc[6][10] = {};
    int cnt[6] = {};
    auto red = [&](int q, int i, int mode) {
        std::vector<u64> v;
        for (int c = 0; c < 160; c++) {
            const u64 x = tb[((size_t)q * 160 + c) * 7 + i];
            if (x) v.push_back(x);
        }
        std::sort(v.begin(), v.end());
        return v.empty()   ? 0.0
               : mode == 0 ? (double)(v[0] % 1000000000)
               : mode == 1 ? (double)(v[v.size() / 2] % 1000000000)
                           : (double)(v.back() % 1000000000);
    };
    for (int q = per + 1; q < 8 * per && q < 2048; q++) {
        const int k = q % per == per - 1 ? 5 : q % per % 5;
        const double pe = red(q - 1, 4, 2);
        cnt[k]++;
        const double v[10] = {red(q, 0, 1) - pe, red(q, 1, 2) - pe, red(q, 2, 0) - pe,
                              red(q, 2, 2) - pe, red(q, 3, 1) - pe, red(q, 3, 2) - pe,
                              red(q, 5, 1) - pe, red(q, 6, 1) - pe, red(q, 4, 1) - pe,
                              red(q, 4, 2) - pe};
        for (int i = 0; i < 10; i++)
            acc[k][i] += v[i];
    }
    printf("%s depth %d, ns after the predecessor's last stamp: entry(med) fetched(max) "
           "released(min,max) input(med,max) products(med) summed(med) end(med,max)\n",
           b->s->name, depth);
    for (int k = 0; k < 6; k++) {
        printf("  %-6s", names[k]);
        for (int i = 0; i < 10; i++)
            printf(" %7.0f", acc[k][i] / (cnt[k] ? cnt[k] : 1));
        printf("\n");
    }
}
#endif

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "05", *what = argc > 2 ? argv[2] : "vb";
    const shape *s = 0;
    for (const shape &x : shapes)
        if (!strcmp(x.name, name)) s = &x;
    if (!s) return 1;
    bench b = {};
    make(&b, s);
    std::vector<int> depths = {128, 2048, 8192};
    setvbuf(stdout, 0, _IOLBF, 0);
    int bad = 0;
    for (int i = 3; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "-d")) {
            depths.clear();
            for (char *p = argv[i + 1]; *p; p += strcspn(p, ","), p += *p == ',')
                depths.push_back(atoi(p));
        }
    }
    for (int i = 3; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "-k")) b.m.carve = atoi(argv[i + 1]);
        if (!strcmp(argv[i], "-a")) b.m.force_attend = atoi(argv[i + 1]);
        if (!strcmp(argv[i], "-m")) b.m.merge_from = atoi(argv[i + 1]);
    }
    /* "-r qkv,o,gate,down/..." tries combinations of rows; the first one is verified with V */
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-r")) continue;
        const ox_chain_model keep = b.m;
        (void)keep;
        for (char *p = argv[i + 1]; *p; p += strcspn(p, "/"), p += *p == '/') {
            int r[4] = {-1, -1, -1, -1};
            sscanf(p, "%d,%d,%d,%d", r, r + 1, r + 2, r + 3);
            for (int k = 0; k < 4; k++)
                b.m.force_rows[k] = r[k];
            char why[256] = "";
            ox_chain *c = 0;
            if (ox_chain_open(&c, memory_for(&b.m), &b.m, b.stream, why, sizeof why)) {
                printf("%s rows %d,%d,%d,%d: %s\n", name, r[0], r[1], r[2], r[3], why);
                continue;
            }
            ox_chain_close(&b.chain);
            b.chain = c;
            printf("%s rows %d,%d,%d,%d:", name, r[0], r[1], r[2], r[3]);
            for (int d : depths)
                printf(" %.1f", bench_one(&b, d, 2, 0));
            printf(" us\n");
            if (strchr(what, 'V')) bad |= verify(&b, depths[0], 12);
        }
#ifndef CHAIN_TRACE /* which traces the last combination */
        b.m = keep;
#endif
    }
    if (strchr(what, 'v'))
        for (int d : depths)
            bad |= verify(&b, d, s->layers > 8 && s->hidden > 3000 ? 6 : 24);
    std::vector<double> all;
    if (strpbrk(what, "bq")) {
        open_chain(&b);
        ox_chain_store_logits(b.chain, 0);
        if (strchr(what, 'p')) {
            char text[2000];
            ox_chain_describe(b.chain, text, sizeof text);
            printf("%s", text);
        }
        for (int d : depths) {
            const double x = bench_one(&b, d, strchr(what, 'b') ? 5 : 2, &all);
            printf("%s depth %d: %.1f us a token, %.0f tok/s (%.1f to %.1f)\n", name, d, x, 1e6 / x,
                   all[0], all.back());
        }
    }
    if (strchr(what, 'l')) { /* leave one out */
        const double full = bench_one(&b, depths[0], 2, 0);
        printf("%s leave one out:", name);
        for (int k = 0; k < 6; k++) {
            b.m.skip = 1 << k;
            open_chain(&b);
            const double x = bench_one(&b, depths[0], 2, 0);
            printf(" %.2f", (full - x) / (k == 5 ? 1 : s->layers));
        }
        b.m.skip = 0;
        printf("\n");
    }
    /* sweep: "-s kind:row,row,..." tries rows one phase at a time */
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-s")) continue;
        const int kind = argv[i + 1][0] - '0';
        for (char *p = argv[i + 1] + 2; *p; p += strcspn(p, ","), p += *p == ',') {
            char why[256] = "";
            ox_chain_model m = b.m;
            m.force_rows[kind] = atoi(p);
            ox_chain *c = 0;
            if (ox_chain_open(&c, memory_for(&m), &m, b.stream, why, sizeof why)) {
                printf("%s phase %d row %d: %s\n", name, kind, atoi(p), why);
                continue;
            }
            ox_chain_close(&b.chain);
            b.chain = c;
            const double x = bench_one(&b, depths[0], 2, &all);
            const linear_plan *lp = &c->linear[kind];
            printf("%s phase %d row %d (%d CTAs x %d warps x %d tiles): %.1f us\n", name, kind,
                   atoi(p), lp->grid, lp->warps, lp->tiles, x);
        }
    }
    for (int i = 3; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "-c")) {
            b.m.copies = atoi(argv[i + 1]);
            open_chain(&b);
            for (int d : depths)
                printf("%s copies %d depth %d: %.1f us\n", name, b.m.copies, d,
                       bench_one(&b, d, 2, 0));
            b.m.copies = 0;
        }
#ifdef CHAIN_TRACE
    trace(&b, depths[0]);
#endif
    return bad;
}
