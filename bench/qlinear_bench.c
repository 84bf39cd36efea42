/* Speed of kernel/qlinear as shares of ceilings measured beside it, because absolute numbers move
 * with the neighbours: few rows against a plain read of the same packed bytes by the same threads,
 * many rows against a loop of byte dot products. Prints medians (10th-90th percentile).
 *
 * usage: qlinear_bench [what] [threads] [row] [repeats] [planes]     what: gemv, gemm, ab, quant,
 * pack or all */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "kernel/qexact/qexact.h"
#include "kernel/qlinear/qlinear.h"
#include "tensor/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

enum { MAX_REPEATS = 400, MAX_WEIGHTS = 256 };

typedef struct form {
    const char *name;
    ox_format format;
} form;
static const form forms[] = {{"q4_1", OX_FORMAT_Q4_1},
                             {"q4_0", OX_FORMAT_Q4_0},
                             {"q8_0", OX_FORMAT_Q8_0},
                             {"q6_k", OX_FORMAT_Q6_K}};

typedef struct setup {
    ox_weight w;
    void *raw;
    const ox_weight *list[MAX_WEIGHTS];
    size_t n_weights;
    ox_qpack pack;
    double pack_seconds;
} setup;

static ox_team *team;
static const ox_kernel_row *row;
static bool exact;
static int repeats = 21, planes = 1;
static volatile uint64_t sink;

static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static void fail(const char *what)
{
    fprintf(stderr, "qlinear_bench: %s\n", what);
    exit(1);
}

static void pack_job(void *user, int i, int n)
{
    setup *s = user;
    size_t begin, end;
    ox_team_split(s->pack.units, 1, i, n, &begin, &end);
    if (ox_qpack_fill(&s->pack, s->list, s->n_weights, begin, end, NULL)) fail("no memory");
}

/* copies of one random matrix [n, k], packed one behind the other */
static void open_setup(setup *s, form f, size_t n, size_t k, size_t copies)
{
    const size_t block = (size_t)ox_format_block(f.format), size = ox_format_block_bytes(f.format);
    const size_t blocks = n * (k / block);
    uint64_t seed = 88172645463325252u;
    *s = (setup){.n_weights = copies};
    uint8_t *p = s->raw = ox_alloc(blocks * size + 8);
    if (!p) fail("no memory");
    for (size_t i = 0; i < blocks * size; i += 8) {
        const uint64_t v = next(&seed);
        memcpy(p + i, &v, 8);
    }
    for (size_t b = 0; b < blocks; b++) {
        const uint16_t scale = ox_f32_to_f16(0.005f + (float)(next(&seed) % 64) * 1e-4f);
        memcpy(p + b * size + (f.format == OX_FORMAT_Q6_K ? 208 : 0), &scale, 2);
        if (f.format == OX_FORMAT_Q4_1) memcpy(p + b * size + 2, &scale, 2);
    }
    s->w = (ox_weight){.name = OX_STR("bench"),
                       .format = f.format,
                       .rows = (int64_t)n,
                       .cols = (int64_t)k,
                       .data = p,
                       .bytes = blocks * size};
    for (size_t i = 0; i < copies; i++)
        s->list[i] = &s->w;
    if (ox_qpack_shape(&s->pack, s->list, copies, false, NULL)) fail("no shape");
    s->pack.data = ox_pages_alloc(s->pack.bytes);
    if (!s->pack.data) fail("no memory");
    ox_team_run(team, pack_job, s); /* touches the pages */
    const double t = ox_clock_seconds();
    ox_team_run(team, pack_job, s);
    s->pack_seconds = ox_clock_seconds() - t;
}

static void close_setup(setup *s)
{
    ox_free(s->raw);
    ox_pages_free(s->pack.data, s->pack.bytes);
}

static void linear_job(void *user, int i, int n)
{
    const ox_qlinear_args *a = user;
    size_t begin, end;
    ox_team_split(a->w->units, 1, i, n, &begin, &end);
    ((ox_qlinear_fn *)row->fn)(a, begin, end);
}

static void read_job(void *user, int i, int n)
{
    const ox_qpack *p = user;
    size_t begin, end;
    ox_team_split(p->units, 1, i, n, &begin, &end);
    const uint8_t *at = p->data + begin * p->tile, *stop = p->data + end * p->tile;
    uint64_t sum = 0;
#if defined(__AVX512VNNI__)
    __m512i s[4] = {0};
    for (; at + 256 <= stop; at += 256)
        for (int j = 0; j < 4; j++) {
            _mm_prefetch((const char *)((uintptr_t)at + 4096 + (size_t)j * 64), _MM_HINT_T0);
            s[j] = _mm512_or_si512(s[j], _mm512_loadu_si512(at + 64 * j));
        }
    s[0] = _mm512_or_si512(_mm512_or_si512(s[0], s[1]), _mm512_or_si512(s[2], s[3]));
    sum = (uint64_t)_mm512_reduce_or_epi64(s[0]);
#else
    uint64_t v[8] = {0};
    for (; at + 64 <= stop; at += 64)
        for (size_t j = 0; j < 8; j++) {
            uint64_t w;
            memcpy(&w, at + 8 * j, 8);
            v[j] |= w;
        }
    for (int j = 0; j < 8; j++)
        sum |= v[j];
#endif
    sink += sum;
}

/* 2^20 byte dot products of a register in 16 chains; operations in *user. */
static void peak_job(void *user, int i, int n)
{
    (void)i;
    double *ops = user;
    if (!i) *ops = (double)n * (1 << 20) * 128.0;
#if defined(__AVX512VNNI__)
    __m512i acc[16];
    const __m512i w = _mm512_set1_epi8(3), x = _mm512_set1_epi8(1);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++)
        acc[j] = _mm512_setzero_si512();
    for (int t = 0; t < 1 << 16; t++)
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++)
            __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(acc[j]) : "v"(w), "v"(x));
#pragma GCC unroll 16
    for (int j = 1; j < 16; j++)
        acc[0] = _mm512_add_epi32(acc[0], acc[j]);
    sink += (uint64_t)_mm512_reduce_add_epi32(acc[0]);
#endif
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_share(const char *label, double *share, double *rate, const char *unit, int n)
{
    qsort(share, (size_t)n, sizeof(*share), ascending);
    qsort(rate, (size_t)n, sizeof(*rate), ascending);
    printf("%-44s %7.1f %s (best %.1f)   share %.3f (%.3f-%.3f)\n", label, rate[n / 2], unit,
           rate[n - 1], share[n / 2], share[n / 10], share[n * 9 / 10]);
    fflush(stdout);
}

typedef struct inputs {
    float *x, *y;
    ox_qact act;
    size_t x_bytes, y_bytes, act_bytes;
    ox_qlinear_args args;
} inputs;

static void open_inputs(inputs *in, const ox_qpack *p, size_t rows)
{
    *in = (inputs){.x_bytes = rows * p->k * 4, .y_bytes = rows * p->n_out * 4};
    in->act = ox_qact_shape(rows, p->k, p->code.block, p->code.bits, planes);
    if (!ox_qact_bytes(&in->act, &in->act_bytes)) fail("too large");
    in->x = ox_pages_alloc(in->x_bytes);
    in->y = ox_pages_alloc(in->y_bytes);
    in->act.data = ox_pages_alloc(in->act_bytes);
    if (!in->x || !in->y || !in->act.data) fail("no memory");
    uint64_t seed = 12345;
    for (size_t i = 0; i < rows * p->k; i++)
        in->x[i] = (float)(next(&seed) % 2001) * 1e-3f - 1.0f;
    ox_quantize_ref(&(ox_quantize_args){.x = in->x, .ldx = p->k, .y = &in->act}, 0, rows);
    in->args = (ox_qlinear_args){.w = p, .x = &in->act, .rows = rows, .y = in->y, .ldy = p->n_out};
    in->args.xf = in->x;
    in->args.ldx = p->k;
}

static void close_inputs(inputs *in)
{
    ox_pages_free(in->x, in->x_bytes);
    ox_pages_free(in->y, in->y_bytes);
    ox_pages_free(in->act.data, in->act_bytes);
}

static void bench_gemv(form f, size_t n, size_t k, size_t copies, size_t rows)
{
    setup s;
    inputs in;
    double share[MAX_REPEATS], rate[MAX_REPEATS];
    open_setup(&s, f, n, k, copies);
    open_inputs(&in, &s.pack, rows);
    for (int i = -2; i < repeats; i++) {
        const double t0 = ox_clock_seconds();
        ox_team_run(team, linear_job, &in.args);
        const double t1 = ox_clock_seconds();
        ox_team_run(team, read_job, &s.pack);
        const double t2 = ox_clock_seconds();
        if (i < 0) continue;
        share[i] = (t2 - t1) / (t1 - t0);
        rate[i] = (double)s.pack.bytes / (t1 - t0) * 1e-9;
    }
    char label[128];
    snprintf(label, sizeof(label), "%s rows %zu, %zu x %zu (%.0f MB)", f.name, rows, n * copies, k,
             (double)s.pack.bytes * 1e-6);
    print_share(label, share, rate, "GB/s", repeats);
    close_inputs(&in);
    close_setup(&s);
}

static void bench_gemm(form f, size_t n, size_t k, size_t rows)
{
    setup s;
    inputs in;
    double share[MAX_REPEATS], rate[MAX_REPEATS];
    open_setup(&s, f, n, k, 1);
    open_inputs(&in, &s.pack, rows);
    const double ops = 2.0 * planes * (double)rows * (double)n * (double)k;
    for (int i = -2; i < repeats; i++) {
        double peak_ops = 0;
        const double t0 = ox_clock_seconds();
        ox_team_run(team, linear_job, &in.args);
        const double t1 = ox_clock_seconds();
        ox_team_run(team, peak_job, &peak_ops);
        const double t2 = ox_clock_seconds();
        if (i < 0) continue;
        rate[i] = ops / (t1 - t0) * 1e-9;
        share[i] = rate[i] / (peak_ops / (t2 - t1) * 1e-9);
    }
    char label[128];
    snprintf(label, sizeof(label), "%s rows %zu, %zu x %zu", f.name, rows, n, k);
    print_share(label, share, rate, "GOP/s", repeats);
    close_inputs(&in);
    close_setup(&s);
}

/* Of this thread where there is only one: the neighbours' turns do not count. */
static double cpu_seconds(void)
{
    struct timespec t;
    if (team) return ox_clock_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Two rows in alternation: the second's time over the first's. */
static void bench_ab(form f, size_t n, size_t k, size_t rows, const ox_kernel_row *a,
                     const ox_kernel_row *b)
{
    setup s;
    inputs in;
    double ratio[MAX_REPEATS], best[2] = {1e9, 1e9};
    open_setup(&s, f, n, k, 1);
    open_inputs(&in, &s.pack, rows);
    for (int i = -2; i < repeats; i++) {
        double t[2];
        for (int j = 0; j < 2; j++) {
            row = j ? b : a;
            const double t0 = cpu_seconds();
            ox_team_run(team, linear_job, &in.args);
            t[j] = cpu_seconds() - t0;
            if (t[j] < best[j]) best[j] = t[j];
        }
        if (i >= 0) ratio[i] = t[0] / t[1];
    }
    qsort(ratio, (size_t)repeats, sizeof(*ratio), ascending);
    const double ops = 2e-9 * planes * (double)rows * (double)n * (double)k;
    printf("%s rows %zu, %zu x %zu, planes %d: best %.0f and %.0f GOP/s, ratio of bests %.2f, "
           "median %.2f (%.2f-%.2f)\n",
           f.name, rows, n, k, planes, ops / best[0], ops / best[1], best[0] / best[1],
           ratio[repeats / 2], ratio[repeats / 10], ratio[repeats * 9 / 10]);
    fflush(stdout);
    close_inputs(&in);
    close_setup(&s);
}

static void bench_quantize(size_t rows, size_t k)
{
    ox_qact act = ox_qact_shape(rows, k, 32, 4, 1);
    size_t bytes;
    float *x = ox_calloc(rows * k, 4);
    if (!x || !ox_qact_bytes(&act, &bytes)) fail("no memory");
    act.data = ox_pages_alloc(bytes);
    uint64_t seed = 7;
    for (size_t i = 0; i < rows * k; i++)
        x[i] = (float)(next(&seed) % 2001) * 1e-3f - 1.0f;
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    ox_quantize_fn *fn =
        (ox_quantize_fn *)ox_kernel_pick(ox_quantize_rows, OX_DEVICE_CPU, &m, NULL)->fn;
    const ox_quantize_args a = {.x = x, .ldx = k, .y = &act};
    double t[MAX_REPEATS];
    for (int i = 0; i < repeats; i++) {
        const double t0 = ox_clock_seconds();
        fn(&a, 0, rows);
        t[i] = ox_clock_seconds() - t0;
    }
    qsort(t, (size_t)repeats, sizeof(*t), ascending);
    printf("quantize %zu x %zu, 1 thread: %.2f us (best %.2f), %.1f GB/s of floats\n", rows, k,
           t[repeats / 2] * 1e6, t[0] * 1e6, (double)(rows * k) * 4e-9 / t[repeats / 2]);
    ox_pages_free(act.data, bytes);
    ox_free(x);
}

static void bench_pack(form f)
{
    setup s;
    open_setup(&s, f, 4864, 896, 16);
    printf("pack %s: %.2f G weights/s, %.2f GB/s written\n", f.name,
           (double)s.pack.n * (double)s.pack.k / s.pack_seconds * 1e-9,
           (double)s.pack.bytes / s.pack_seconds * 1e-9);
    close_setup(&s);
}

static const ox_kernel_row *pick(const char *name)
{
    const ox_kernel_row *lists[2] = {ox_qlinear_rows, ox_qexact_rows};
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    for (int i = 0; i < 2; i++)
        for (const ox_kernel_row *r = lists[i]; r->device; r++)
            if (ox_kernel_runs_on(r, &m) && (!name || strstr(r->name, name))) {
                exact = i == 1;
                return r;
            }
    fail("no such row on this machine");
    return NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    const int threads = argc > 2 ? atoi(argv[2]) : 1;
    const bool all = !strcmp(what, "all");
    row = pick(argc > 3 ? argv[3] : NULL);
    if (argc > 4) repeats = atoi(argv[4]);
    if (argc > 5) planes = atoi(argv[5]);
    if (repeats < 1 || repeats > MAX_REPEATS) fail("repeats: 1 to 400");
    if (threads > 1 && ox_team_open(&team, threads, NULL)) fail("no team");
    printf("%s, %s, %d thread%s\n", ox_cpu_model(), row->name, threads, threads > 1 ? "s" : "");
    if (!strcmp(what, "ab")) {
        const ox_kernel_row *one = row, *other = pick(argc > 6 ? argv[6] : NULL);
        static const size_t ab_rows[] = {16, 32, 64, 128, 256};
        for (size_t i = 0; i < OX_COUNT(ab_rows); i++)
            for (size_t f = 0; f < 2; f++)
                bench_ab(forms[f], 4864, 896, ab_rows[i], one, other);
        bench_ab(forms[1], 896, 4864, 256, one, other);
        bench_ab(forms[1], 1536, 576, 256, one, other);
        return 0;
    }
    static const size_t small[] = {1, 2, 4, 8}, large[] = {16, 64, 128, 512};
    for (size_t f = 0; f < OX_COUNT(forms); f++) {
        if (all || !strcmp(what, "gemv"))
            for (size_t i = 0; i < OX_COUNT(small) && (!i || f < 1); i++)
                bench_gemv(forms[f], 4864, 896, 100, small[i]);
        if (all || !strcmp(what, "gemm"))
            for (size_t i = 0; i < OX_COUNT(large) && (i == 3 || f < 2); i++)
                bench_gemm(forms[f], 4864, 896, large[i]);
        if (all || !strcmp(what, "pack")) bench_pack(forms[f]);
    }
    if (all || !strcmp(what, "gemm")) {
        bench_gemm(forms[0], 896, 4864, 512);
        bench_gemm(forms[0], 1536, 576, 512);
    }
    if (all || !strcmp(what, "quant")) {
        bench_quantize(1, 576);
        bench_quantize(1, 4864);
        bench_quantize(512, 896);
    }
    ox_team_close(&team);
    return 0;
}
