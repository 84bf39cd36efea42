/* prefill_bench.cu - the CUDA rows of prompts (many-row products, flash attention) against plain
 * loops, and their speed. Usage: prefill [test] [bench]. Needs a GPU of sm_90; exits 1 when a check
 * fails. Build: nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -Isrc -Iinclude
 *        tests/gpu/prefill_bench.cu
 * src/kernel/{matmul/cuda_wgmma,qlinear/cuda_{widen,mixed},attend/cuda_flash}.cu */
#include "kernel/attend/cuda_flash.h"
#include "kernel/attend/cuda_kv.cuh"
#include "kernel/qlinear/cuda_pack.cuh"
#include "kernel/qlinear/cuda_widen.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

static void ok_at(int e, int line)
{
    if (!e) return;
    printf("line %d: %s\n", line, cudaGetErrorString((cudaError_t)e));
    exit(1);
}
#define OK(x) ok_at((int)(x), __LINE__)

static int n_sm, failures, checks;

static __host__ __device__ uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}
static __host__ __device__ float unit_float(uint32_t i) /* [-1, 1) */
{
    return (float)(mix(i) >> 8) * (2.0f / 16777216.0f) - 1.0f;
}
static __global__ void fill_half(__half *p, size_t n, uint32_t seed, float by)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        p[i] = __float2half(unit_float((uint32_t)i * 2654435761u + seed) * by);
}
static __global__ void fill_float(float *p, size_t n, uint32_t seed, float by, float base)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        p[i] = base + unit_float((uint32_t)i * 2654435761u + seed) * by;
}
static __global__ void fill_bytes(uint8_t *p, size_t n, uint32_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        p[i] = (uint8_t)mix((uint32_t)i + seed);
}
template <typename T> static T *take(size_t n)
{
    T *p;
    OK(cudaMalloc(&p, n * sizeof(T) + 256));
    return p;
}

/* --- references ------------------------------------------------------------------------------ */

static __device__ double act_ref(int act, double x)
{
    switch (act) {
    case 0:
        return x / (1 + exp(-x));
    case 1:
        return 0.5 * x * (1 + erf(x * 0.70710678118654752));
    case 2:
        return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case 3:
        return x / (1 + exp(-1.702 * x));
    case 4:
        return x > 0 ? x : 0;
    default:
        return x > 0 ? x * x : 0;
    }
}

/* One thread an output; weight (n, k) from w (float16 rows) or q. bound = sum |x w|. */
static __global__ void product_ref(ox_cuda_matmul_args a, ox_cuda_weight q, double *out,
                                   double *bound)
{
    const int n_out = a.pairs ? a.n / 2 : a.n;
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= (size_t)a.rows * n_out) return;
    const int r = (int)(i / n_out), c = (int)(i % n_out);
    double v[2], s[2];
    for (int p = 0; p < (a.pairs ? 2 : 1); p++) {
        double sum = 0, size = 0;
        for (int k = 0; k < a.k; k++) {
            const int row = q.codes ? c + p * n_out : a.pairs ? 2 * c + p : c;
            const double w =
                q.codes ? (double)__half2float(__float2half_rn(ox_cuda_weight_at(&q, row, k)))
                        : (double)__half2float(((const __half *)a.w)[row * a.ldw + k]);
            const double x = (double)__half2float(((const __half *)a.x)[r * a.ldx + k]);
            sum += x * w;
            size += fabs(x * w);
        }
        const float *b = p ? a.bias_up : a.bias;
        v[p] = sum + (b ? (double)b[c] : 0);
        s[p] = size;
    }
    double y = v[0], e = s[0];
    if (a.pairs) {
        y = act_ref(a.act, v[0]) * v[1];
        e = 1.1 * s[0] * fabs(v[1]) + fabs(act_ref(a.act, v[0])) * s[1];
        if (a.act == 5) e *= 2 * fabs(v[0]) + 1;
    }
    if (a.add) y += (double)__half2float(((const __half *)a.add)[r * a.ldadd + c]);
    out[i] = y;
    bound[i] = e;
}

/* One warp... one thread a (row, head): two passes over the keys. */
static __global__ void attend_ref(ox_cuda_flash_args a, const int *pos, const int *seq, int rows,
                                  double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * a.n_heads) return;
    const int r = i / a.n_heads, h = i % a.n_heads, kv = h / (a.n_heads / a.n_kv_heads);
    const __half *q = (const __half *)a.q + r * a.ldq + (int64_t)h * a.head_size;
    const char *const *table = (const char *const *)a.pages + a.first[seq[r]];
    const int first = a.window > 0 && pos[r] >= a.window ? pos[r] - a.window + 1 : 0;
    double max = a.sinks ? (double)a.sinks[h] : -INFINITY, sum = 0;
    double *o = out + (size_t)i * a.v_head_size;
    for (int c = 0; c < a.v_head_size; c++)
        o[c] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int j = first; j <= pos[r]; j++) {
            const __half *k =
                (const __half *)(table[j / 64] + a.k_offset + kv * a.k_head + j % 64 * a.k_pos);
            const __half *v =
                (const __half *)(table[j / 64] + a.v_offset + kv * a.v_head + j % 64 * a.v_pos);
            double t = 0;
            for (int d = 0; d < a.head_size; d++)
                t += (double)__half2float(q[d]) * (double)__half2float(k[d]);
            t *= a.scale;
            if (a.softcap > 0) t = a.softcap * tanh(t / a.softcap);
            if (pass == 0) {
                max = t > max ? t : max;
            } else {
                const double e = exp(t - max);
                sum += e;
                for (int c = 0; c < a.v_head_size; c++)
                    o[c] += e * (double)__half2float(v[c]);
            }
        }
    if (a.sinks) sum += exp((double)a.sinks[h] - max);
    for (int c = 0; c < a.v_head_size; c++)
        o[c] /= sum;
}

/* --- checks ---------------------------------------------------------------------------------- */

/* How: 0 = wgmma, 1 = widened, 2 = mixed. */
static void check_product(const char *what, const ox_cuda_matmul_args &a, const ox_cuda_weight *q,
                          void *scratch, size_t scratch_bytes, int how)
{
    const int n_out = a.pairs ? a.n / 2 : a.n;
    const size_t n = (size_t)a.rows * n_out;
    double *want = take<double>(n), *bound = take<double>(n);
    ox_cuda_weight none = {};
    product_ref<<<(unsigned)((n + 127) / 128), 128>>>(a, q ? *q : none, want, bound);
    OK(cudaMemset(a.y, 0xff, a.rows * a.ldy * (a.y_f32 ? 4 : 2)));
    OK(how == 2   ? ox_cuda_linear_mixed(q, &a, n_sm, 0)
       : how == 1 ? ox_cuda_linear_widen(q, &a, scratch, scratch_bytes, n_sm, 0)
                  : ox_cuda_matmul_wgmma(&a, n_sm, 0));
    OK(cudaDeviceSynchronize());
    std::vector<double> w(n), b(n);
    std::vector<char> y((size_t)a.rows * a.ldy * (a.y_f32 ? 4 : 2));
    OK(cudaMemcpy(w.data(), want, n * 8, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(b.data(), bound, n * 8, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(y.data(), a.y, y.size(), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t at = i / n_out * a.ldy + i % n_out;
        const double got = a.y_f32 ? (double)((float *)y.data())[at]
                                   : (double)__half2float(((__half *)y.data())[at]);
        /* float32 accumulation of k terms, then one rounding to the output's type */
        const double may = b[i] * 3e-7 * sqrt((double)a.k) + fabs(w[i]) * (a.y_f32 ? 1e-6 : 6e-4) +
                           (a.y_f32 ? 1e-7 : 1e-6);
        const double ratio = fabs(got - w[i]) / may;
        if (!(ratio <= worst)) worst = ratio;
    }
    /* nothing beyond the columns */
    bool clean = true;
    for (int r = 0; r < a.rows && !a.add; r++)
        for (int64_t c = n_out * (a.y_f32 ? 4 : 2); c < a.ldy * (a.y_f32 ? 4 : 2); c++)
            clean &= y[r * a.ldy * (a.y_f32 ? 4 : 2) + c] == (char)0xff;
    checks++;
    if (!(worst <= 1.0) || !clean) {
        failures++;
        printf("FAIL %s rows %d n %d k %d pairs %d act %d f32 %d: %.3f of the bound, guard %s\n",
               what, a.rows, a.n, a.k, a.pairs, a.act, a.y_f32, worst, clean ? "clean" : "hit");
    }
    OK(cudaFree(want));
    OK(cudaFree(bound));
}

static void test_products()
{
    const int shapes[][3] = {{1, 64, 64},      {7, 72, 136},     {128, 256, 512},  {129, 264, 896},
                             {300, 1152, 896}, {256, 9728, 896}, {513, 896, 4864}, {65, 40, 200}};
    for (auto &s : shapes)
        for (int kind = 0; kind < 6; kind++) {
            const int rows = s[0], n = s[1], k = s[2];
            __half *x = take<__half>((size_t)rows * (k + 8)),
                   *w = take<__half>((size_t)n * (k + 16));
            float *bias = take<float>(n);
            __half *add = take<__half>((size_t)rows * n);
            fill_half<<<256, 256>>>(x, (size_t)rows * (k + 8), 1, 1.0f);
            fill_half<<<256, 256>>>(w, (size_t)n * (k + 16), 2, 0.5f);
            fill_float<<<8, 256>>>(bias, n, 3, 1.0f, 0.0f);
            fill_half<<<256, 256>>>(add, (size_t)rows * n, 4, 4.0f);
            char *y = take<char>((size_t)rows * (n + 8) * 4);
            ox_cuda_matmul_args a = {};
            a.x = x, a.w = w, a.y = y, a.rows = rows, a.n = n, a.k = k;
            a.ldx = k + 8, a.ldw = k + 16, a.ldy = n + 8, a.ldadd = n;
            a.pairs = kind >= 3 && kind < 5, a.act = kind == 3 ? 0 : 2, a.y_f32 = kind == 5;
            if (kind == 1 || kind == 3) a.bias = bias, a.bias_up = a.pairs ? bias + n / 2 : NULL;
            if (kind == 2) a.add = add;
            check_product("wgmma", a, NULL, NULL, 0, 0);
            OK(cudaFree(x)), OK(cudaFree(w)), OK(cudaFree(bias)), OK(cudaFree(add)),
                OK(cudaFree(y));
        }
}

static ox_cuda_weight random_weight(int n, int k, int bits, int block, int zero, int f32)
{
    ox_cuda_weight w = ox_cuda_weight_shape(n, k, bits, block, zero, f32);
    uint8_t *codes = take<uint8_t>(ox_cuda_code_bytes(&w));
    if (bits == 16)
        fill_half<<<512, 256>>>((__half *)codes, ox_cuda_code_bytes(&w) / 2, 9, 0.3f);
    else
        fill_bytes<<<512, 256>>>(codes, ox_cuda_code_bytes(&w), 9);
    w.codes = (const uint4 *)codes;
    if (bits == 16) return w;
    const float by = bits == 4 ? 0.02f : 0.002f;
    const size_t count = ox_cuda_scale_count(&w);
    if (f32) {
        float *s = take<float>(count);
        fill_float<<<64, 256>>>(s, count, 5, by / 4, by);
        w.scales = s;
    } else {
        __half *s = take<__half>(count);
        fill_half<<<64, 256>>>(s, count, 5, by);
        w.scales = s;
    }
    if (zero == OX_CUDA_ZERO_CODE) {
        uint8_t *z = take<uint8_t>(count);
        fill_bytes<<<64, 256>>>(z, count, 6);
        w.zeros = z;
    } else if (zero == OX_CUDA_ZERO_MIN) {
        char *z = take<char>(count * 4);
        if (f32)
            fill_float<<<64, 256>>>((float *)z, count, 7, 0.1f, 0.0f);
        else
            fill_half<<<64, 256>>>((__half *)z, count, 7, 0.1f);
        w.zeros = z;
    }
    return w;
}
static void drop_weight(ox_cuda_weight *w)
{
    OK(cudaFree((void *)w->codes)), OK(cudaFree((void *)w->scales)), OK(cudaFree((void *)w->zeros));
}

static void test_widened()
{
    const int kinds[][4] = {{4, 32, 0, 0}, {4, 128, 1, 0}, {4, 16, 2, 1},   {8, 32, 0, 1},
                            {8, 64, 1, 0}, {4, 256, 0, 0}, {16, 128, 0, 0}, {8, 128, 2, 0}};
    for (auto &kd : kinds)
        for (int pairs = 0; pairs < 2; pairs++)
            for (int small = 0; small < 2; small++) {
                const int rows = 200, n = 1168, k = kd[1] == 256 ? 512 : 736;
                ox_cuda_weight w = random_weight(n, k, kd[0], kd[1], kd[2], kd[3]);
                __half *x = take<__half>((size_t)rows * k);
                fill_half<<<256, 256>>>(x, (size_t)rows * k, 1, 1.0f);
                char *y = take<char>((size_t)rows * (n + 8) * 4);
                const size_t bytes = small ? (size_t)w.k_units * 128 * 2 * 416 : 64 << 20;
                char *scratch = take<char>(bytes);
                ox_cuda_matmul_args a = {};
                a.x = x, a.y = y, a.rows = rows, a.n = n, a.k = k, a.ldx = k, a.ldy = n + 8;
                a.pairs = pairs;
                check_product("widen", a, &w, scratch, bytes, 1);
                if (kd[0] != 16) {
                    check_product("mixed", a, &w, scratch, bytes, 2);
                    a.rows = 20; /* few tiles: k is split */
                    check_product("mixed", a, &w, scratch, bytes, 2);
                }
                drop_weight(&w);
                OK(cudaFree(x)), OK(cudaFree(y)), OK(cudaFree(scratch));
            }
}

struct cache { /* sequences of one cache, pages in shuffled order */
    std::vector<char *> slabs;
    void **pages;
    int *first;
    ox_cuda_kv place;
};

static cache make_cache(int n_seq, int positions, int kv_heads, int kd, int vd)
{
    cache c;
    c.place = {256, 256 + (int64_t)ox_cuda_kv_bytes(kv_heads, kd), kv_heads, kd, vd};
    const size_t page = 256 + ox_cuda_kv_bytes(kv_heads, kd) + ox_cuda_kv_bytes(kv_heads, vd);
    const int n = (positions + 63) / 64;
    std::vector<void *> pages;
    std::vector<int> first;
    for (int s = 0; s < n_seq; s++) {
        char *slab = take<char>(page * n);
        fill_half<<<512, 256>>>((__half *)slab, page * n / 2, 77 + s, 1.0f);
        c.slabs.push_back(slab);
        first.push_back((int)pages.size());
        for (int p = 0; p < n; p++)
            pages.push_back(slab + page * (size_t)p);
        std::sort(pages.begin() + first.back(), pages.end(), [](void *a, void *b) {
            return mix((uint32_t)(uintptr_t)a) < mix((uint32_t)(uintptr_t)b);
        });
    }
    c.pages = take<void *>(pages.size());
    c.first = take<int>(n_seq);
    OK(cudaMemcpy(c.pages, pages.data(), pages.size() * sizeof(void *), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(c.first, first.data(), first.size() * sizeof(int), cudaMemcpyHostToDevice));
    return c;
}

static ox_cuda_flash_args flash_args(const cache &c, int n_heads)
{
    ox_cuda_flash_args a = {};
    const ox_cuda_kv &p = c.place;
    a.pages = c.pages, a.first = c.first;
    a.k_offset = p.k_offset, a.v_offset = p.v_offset;
    a.k_pos = p.head_size * 2, a.k_head = a.k_pos * 64;
    a.v_pos = p.v_head_size * 2, a.v_head = a.v_pos * 64;
    a.n_heads = n_heads, a.n_kv_heads = p.n_kv_heads;
    a.head_size = p.head_size, a.v_head_size = p.v_head_size;
    a.scale = 1.0f / sqrtf((float)p.head_size);
    a.ldq = (int64_t)n_heads * p.head_size, a.ldo = (int64_t)n_heads * p.v_head_size;
    return a;
}

/* Tiles of runs {row, n, seq, pos}, cut into at most 128 rows. */
static std::vector<ox_cuda_flash_tile> cut(const std::vector<ox_cuda_flash_tile> &runs, int most)
{
    std::vector<ox_cuda_flash_tile> t;
    for (auto r : runs)
        for (int i = 0; i < r.n_rows; i += most)
            t.push_back({r.row + i, std::min(most, r.n_rows - i), r.seq, r.pos + i});
    std::sort(t.begin(), t.end(), [](const ox_cuda_flash_tile &a, const ox_cuda_flash_tile &b) {
        return a.pos + a.n_rows < b.pos + b.n_rows;
    });
    return t;
}

static void test_flash()
{
    struct {
        int heads, kv, kd, vd, window;
        float cap;
        bool sinks;
    } cases[] = {{14, 2, 64, 64, 0, 0, false},    {12, 2, 128, 128, 0, 0, false},
                 {4, 4, 256, 256, 0, 0, false},   {4, 2, 80, 80, 0, 0, false},
                 {8, 2, 96, 96, 100, 0, false},   {8, 1, 64, 64, 1, 0, false},
                 {4, 2, 128, 128, 130, 30, true}, {4, 2, 64, 64, 0, 50, false},
                 {4, 4, 192, 128, 0, 0, true},    {4, 2, 256, 256, 64, 20, true},
                 {2, 1, 40, 40, 0, 0, true}};
    for (auto &c : cases) {
        cache kv = make_cache(2, 700, c.kv, c.kd, c.vd);
        ox_cuda_flash_args a = flash_args(kv, c.heads);
        a.window = c.window, a.softcap = c.cap;
        std::vector<ox_cuda_flash_tile> runs = {
            {0, 300, 0, 0}, {300, 77, 1, 600}, {377, 1, 0, 650}};
        const int rows = 378;
        std::vector<int> pos(rows), seq(rows);
        for (auto r : runs)
            for (int i = 0; i < r.n_rows; i++)
                pos[r.row + i] = r.pos + i, seq[r.row + i] = r.seq;
        int *dpos = take<int>(rows), *dseq = take<int>(rows);
        OK(cudaMemcpy(dpos, pos.data(), rows * 4, cudaMemcpyHostToDevice));
        OK(cudaMemcpy(dseq, seq.data(), rows * 4, cudaMemcpyHostToDevice));
        __half *q = take<__half>(rows * a.ldq), *out = take<__half>(rows * a.ldo);
        fill_half<<<256, 256>>>(q, rows * a.ldq, 5, 3.0f);
        float *sinks = take<float>(c.heads);
        fill_float<<<1, 32>>>(sinks, c.heads, 8, 2.0f, 0.0f);
        if (c.sinks) a.sinks = sinks;
        a.q = q, a.out = out;
        double *want = take<double>((size_t)rows * a.ldo);
        attend_ref<<<(rows * c.heads + 63) / 64, 64>>>(a, dpos, dseq, rows, want);
        std::vector<double> w((size_t)rows * a.ldo);
        OK(cudaMemcpy(w.data(), want, w.size() * 8, cudaMemcpyDeviceToHost));
        std::vector<uint16_t> before;
        for (int most : {128, 37}) { /* bits must not depend on the tiles */
            auto tiles = cut(runs, most);
            ox_cuda_flash_tile *t = take<ox_cuda_flash_tile>(tiles.size());
            OK(cudaMemcpy(t, tiles.data(), tiles.size() * sizeof tiles[0], cudaMemcpyHostToDevice));
            a.tiles = t, a.n_tiles = (int)tiles.size();
            OK(cudaMemset(out, 0xff, rows * a.ldo * 2));
            OK(ox_cuda_flash(&a, 0));
            OK(cudaDeviceSynchronize());
            std::vector<uint16_t> got(w.size());
            OK(cudaMemcpy(got.data(), out, got.size() * 2, cudaMemcpyDeviceToHost));
            double worst = 0;
            for (size_t i = 0; i < w.size(); i++) {
                __half h;
                memcpy(&h, &got[i], 2);
                /* values in [-1, 1): rounding of weights and of the result, 2^-11 each */
                const double e = fabs((double)__half2float(h) - w[i]) / (2.0e-3);
                if (!(e <= worst)) worst = e;
            }
            const bool same = before.empty() || before == got;
            before = got;
            checks += 2;
            if (!(worst <= 1.0) || !same) {
                failures++;
                printf("FAIL flash heads %d/%d size %d/%d window %d cap %g sinks %d tiles %d: "
                       "%.3f of the bound, %s\n",
                       c.heads, c.kv, c.kd, c.vd, c.window, (double)c.cap, c.sinks, most, worst,
                       same ? "same bits" : "other bits");
            }
            OK(cudaFree(t));
        }
        OK(cudaFree(q)), OK(cudaFree(out)), OK(cudaFree(want)), OK(cudaFree(sinks));
        OK(cudaFree(dpos)), OK(cudaFree(dseq));
        for (char *s : kv.slabs)
            OK(cudaFree(s));
    }
}

/* --- speed ----------------------------------------------------------------------------------- */

template <typename F> static double median_us(F f)
{
    cudaEvent_t a, b;
    OK(cudaEventCreate(&a)), OK(cudaEventCreate(&b));
    std::vector<float> t;
    for (int i = 0; i < 3; i++)
        f();
    for (int i = 0; i < 15; i++) {
        OK(cudaEventRecord(a));
        for (int j = 0; j < 4; j++)
            f();
        OK(cudaEventRecord(b));
        OK(cudaEventSynchronize(b));
        float ms;
        OK(cudaEventElapsedTime(&ms, a, b));
        t.push_back(ms * 250.0f);
    }
    std::sort(t.begin(), t.end());
    return (double)t[7];
}

struct model {
    const char *name;
    int layers, hidden, ffn, heads, kv, size;
};

static void bench_model(const model &m, int rows)
{
    const int qkv = (m.heads + 2 * m.kv) * m.size, o = m.heads * m.size;
    const struct {
        const char *name;
        int n, k, pairs;
    } mats[] = {{"qkv", qkv, m.hidden, 0},
                {"o", m.hidden, o, 0},
                {"gate-up", 2 * m.ffn, m.hidden, 1},
                {"down", m.hidden, m.ffn, 0}};
    char *scratch = take<char>(64 << 20);
    double total = 0, flops = 0;
    printf("%s rows %5d:", m.name, rows);
    for (auto &t : mats) {
        ox_cuda_weight w = random_weight(t.n, t.k, 4, 32, 0, 0);
        __half *x = take<__half>((size_t)rows * t.k), *y = take<__half>((size_t)rows * t.n);
        fill_half<<<512, 256>>>(x, (size_t)rows * t.k, 1, 1.0f);
        ox_cuda_matmul_args a = {};
        a.x = x, a.y = y, a.rows = rows, a.n = t.n, a.k = t.k, a.ldx = t.k;
        a.ldy = t.pairs ? t.n / 2 : t.n, a.pairs = t.pairs;
        const double us = median_us(
            [&] { OK(ox_cuda_linear_widen(&w, &a, scratch, OX_CUDA_WIDEN_BYTES, n_sm, 0)); });
        const double mixed = median_us([&] { OK(ox_cuda_linear_mixed(&w, &a, n_sm, 0)); });
        a.w = scratch, a.ldw = (t.k + 127) / 128 * 128;
        const double bare = t.n * (size_t)a.ldw * 2 <= (64u << 20)
                                ? median_us([&] { OK(ox_cuda_matmul_wgmma(&a, n_sm, 0)); })
                                : 0;
        const double f = 2.0 * rows * t.n * t.k;
        printf("  %s widen %.1f mixed %.1f bare %.1f us (%.0f TF)", t.name, us, mixed, bare,
               f / std::min(us, mixed) / 1e6);
        total += std::min(us, mixed), flops += f;
        drop_weight(&w);
        OK(cudaFree(x)), OK(cudaFree(y));
    }
    cache kv = make_cache(1, rows, m.kv, m.size, m.size);
    ox_cuda_flash_args a = flash_args(kv, m.heads);
    auto tiles = cut({{0, rows, 0, 0}}, 128);
    ox_cuda_flash_tile *t = take<ox_cuda_flash_tile>(tiles.size());
    OK(cudaMemcpy(t, tiles.data(), tiles.size() * sizeof tiles[0], cudaMemcpyHostToDevice));
    __half *q = take<__half>(rows * a.ldq), *out = take<__half>(rows * a.ldo);
    fill_half<<<256, 256>>>(q, rows * a.ldq, 5, 1.0f);
    a.q = q, a.out = out, a.tiles = t, a.n_tiles = (int)tiles.size();
    const double us = median_us([&] { OK(ox_cuda_flash(&a, 0)); });
    const double f = 2.0 * rows * rows * m.heads * m.size;
    printf("  flash %.1f us (%.0f TF)", us, f / us / 1e6);
    total += us;
    printf("  | layer %.1f us, model %.2f ms, %.0f tok/s\n", total, total * m.layers / 1e3,
           rows / (total * m.layers) * 1e6);
    OK(cudaFree(q)), OK(cudaFree(out)), OK(cudaFree(scratch));
    for (char *s : kv.slabs)
        OK(cudaFree(s));
}

int main(int argc, char **argv)
{
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    n_sm = p.multiProcessorCount;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "test")) {
            test_products();
            printf("products: %d checks, %d failures\n", checks, failures);
            test_widened();
            printf("widened: %d checks, %d failures\n", checks, failures);
            test_flash();
            printf("flash: %d checks, %d failures\n", checks, failures);
        } else {
            const model models[] = {{"0.5B", 24, 896, 4864, 14, 2, 64},
                                    {"1.5B", 28, 1536, 8960, 12, 2, 128},
                                    {"7B", 28, 3584, 18944, 28, 4, 128}};
            for (auto &m : models)
                for (int rows : {128, 512, 2048, 8192})
                    bench_model(m, rows);
        }
    }
    return failures ? 1 : 0;
}
