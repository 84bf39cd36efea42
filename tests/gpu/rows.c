/* rows.c - see rows.h; and the program: every CUDA row of every family on random arguments. */
#include "tests/gpu/rows.h"

#include "tensor/half.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 1;
static const char *current = "";
static long n_checks, n_failures;
static void *uploads[256];
static int n_uploads;

uint64_t t_bits(void)
{
    uint64_t z = (seed += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

float t_uniform(float lo, float hi)
{
    return lo + (hi - lo) * (float)(t_bits() >> 40) * 0x1p-24f;
}

int32_t t_range(int32_t lo, int32_t hi)
{
    return lo + (int32_t)(t_bits() % (uint64_t)(hi - lo + 1));
}

int32_t t_type(void)
{
    const int32_t i = t_range(0, 3);
    return i < 2 ? OX_DEV_F16 : i == 2 ? OX_DEV_F32 : OX_DEV_BF16;
}

static uint32_t encode(int32_t dtype, float v)
{
    return dtype == OX_DEV_F32   ? ox_f32_bits(v)
           : dtype == OX_DEV_F16 ? ox_f32_to_f16(v)
                                 : ox_f32_to_bf16(v);
}

static float decode(int32_t dtype, uint32_t u)
{
    return dtype == OX_DEV_F32   ? ox_f32_from_bits(u)
           : dtype == OX_DEV_F16 ? ox_f16_to_f32((uint16_t)u)
                                 : ox_bf16_to_f32((uint16_t)u);
}

float t_round(int32_t dtype, float v)
{
    return decode(dtype, encode(dtype, v));
}

void t_fail(const char *fmt, ...)
{
    va_list ap;
    n_failures++;
    if (n_failures > 40) return;
    fprintf(stderr, "FAILED %s: ", current);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

static void cuda_ok(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "FAILED %s: %s: %s\n", current, what, cudaGetErrorString(e));
    exit(1);
}

void *t_upload(const void *host, size_t bytes)
{
    void *p = NULL;
    cuda_ok(cudaMalloc(&p, bytes ? bytes : 16), "cudaMalloc");
    if (host) cuda_ok(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    if (n_uploads == (int)OX_COUNT(uploads)) exit(2);
    uploads[n_uploads++] = p;
    return p;
}

void t_drop(void)
{
    while (n_uploads)
        cudaFree(uploads[--n_uploads]);
}

/* NaN with a pattern of its own, so that a rewritten guard shows. */
static uint32_t nan_bits(int32_t dtype)
{
    return dtype == OX_DEV_F32 ? 0x7fc12345u : dtype == OX_DEV_F16 ? 0x7e5au : 0x7fdau;
}

static void put_bits(char *to, size_t size, size_t i, uint32_t u)
{
    const uint16_t h = (uint16_t)u;
    if (size == 4)
        memcpy(to + 4 * i, &u, 4);
    else
        memcpy(to + 2 * i, &h, 2);
}

static uint32_t get_bits(const char *from, size_t size, size_t i)
{
    uint32_t u;
    uint16_t h;
    if (size == 4) {
        memcpy(&u, from + 4 * i, 4);
        return u;
    }
    memcpy(&h, from + 2 * i, 2);
    return h;
}

static mat make(int32_t rows, int32_t cols, int32_t dtype, bool filled, float lo, float hi)
{
    const size_t size = dtype == OX_DEV_F32 ? 4 : 2;
    const int32_t gap = t_range(0, 3) ? (8 - cols % 8) % 8 + t_range(0, 3) * 8 : t_range(0, 9);
    mat m = {.rows = rows, .cols = cols, .ld = cols + gap};
    m.bytes = ((size_t)rows * (size_t)m.ld + 2 * T_GUARD) * size;
    char *host = malloc(m.bytes);
    m.v = malloc(((size_t)rows * (size_t)m.ld + 1) * sizeof(float));
    for (size_t i = 0; i < m.bytes / size; i++)
        put_bits(host, size, i, nan_bits(dtype));
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < m.ld; c++) {
            const size_t i = (size_t)r * (size_t)m.ld + (size_t)c;
            m.v[i] = NAN;
            if (!filled || c >= cols) continue;
            m.v[i] = t_round(dtype, t_uniform(lo, hi));
            put_bits(host, size, T_GUARD + i, encode(dtype, m.v[i]));
        }
    cuda_ok(cudaMalloc((void **)&m.raw, m.bytes), "cudaMalloc");
    cuda_ok(cudaMemcpy(m.raw, host, m.bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    free(host);
    m.d = (ox_dev_matrix){m.raw + T_GUARD * size, m.ld, dtype};
    return m;
}

mat t_mat(int32_t rows, int32_t cols, int32_t dtype, float lo, float hi)
{
    return make(rows, cols, dtype, true, lo, hi);
}

mat t_out(int32_t rows, int32_t cols, int32_t dtype)
{
    return make(rows, cols, dtype, false, 0, 0);
}

void t_fetch(mat *m)
{
    const size_t size = m->d.dtype == OX_DEV_F32 ? 4 : 2, n = m->bytes / size;
    char *host = malloc(m->bytes);
    cuda_ok(cudaMemcpy(host, m->raw, m->bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    bool touched = false;
    for (size_t i = 0; i < n; i++) {
        const size_t at = i - T_GUARD;
        const bool inside = i >= T_GUARD && i < n - T_GUARD;
        const uint32_t u = get_bits(host, size, i);
        if (inside && at % (size_t)m->ld < (size_t)m->cols)
            m->v[at] = decode(m->d.dtype, u);
        else
            touched |= u != nan_bits(m->d.dtype);
    }
    if (touched) t_fail("wrote outside its output");
    free(host);
}

void t_mat_free(mat *m)
{
    cudaFree(m->raw);
    free(m->v);
    *m = (mat){0};
}

void t_run(const ox_kernel_row *row, const void *args)
{
    ((ox_dev_fn *)row->fn)(args, NULL);
    cuda_ok(cudaGetLastError(), "launch");
    cuda_ok(cudaDeviceSynchronize(), "run");
}

void t_same(const mat *got, const float *want, int32_t ldw, double rel, double abs,
            const char *what)
{
    const int32_t type = got->d.dtype;
    const double step = type == OX_DEV_F32 ? 0x1p-23 : type == OX_DEV_F16 ? 0x1p-10 : 0x1p-7;
    const double least = type == OX_DEV_F16 ? 0x1p-24 : 1e-37;
    n_checks++;
    for (int32_t r = 0; r < got->rows; r++)
        for (int32_t c = 0; c < got->cols; c++) {
            const double g = (double)got->v[(size_t)r * (size_t)got->ld + (size_t)c];
            const double w = (double)want[(size_t)r * (size_t)ldw + (size_t)c];
            if (isnan(g) && isnan(w)) continue;
            if (fabs(g - w) <= (rel + step) * fabs(w) + abs + least) continue;
            if (g == w) continue;
            t_fail("%s [%d,%d] type %d: row %d column %d is %.9g, expected %.9g", what, got->rows,
                   got->cols, type, r, c, g, w);
            return;
        }
}

extern t_family_fn t_map, t_norm, t_rotate, t_embed, t_matmul, t_qexact, t_append, t_attend,
    t_rotate_append;

static const struct {
    const char *family;
    t_family_fn *fn;
} families[] = {
    {"act", t_map},
    {"glu", t_map},
    {"add", t_map},
    {"scale", t_map},
    {"gather", t_map},
    {"norm", t_norm},
    {"rotate", t_rotate},
    {"embed", t_embed},
    {"matmul", t_matmul},
    {"qexact", t_qexact},
    {"kv_append", t_append},
    {"attend", t_attend},
    {"rotate_append", t_rotate_append},
};

int main(int argc, char **argv)
{
    struct cudaDeviceProp p;
    const char *only = argc > 1 ? argv[1] : "";
    const int rounds = argc > 2 ? atoi(argv[2]) : 40;
    cuda_ok(cudaGetDeviceProperties(&p, 0), "no device");
    for (const ox_device_row *r = ox_cuda_rows; r->family; r++) {
        if (*only && strcmp(only, r->family) != 0 && strcmp(only, r->row.name) != 0) continue;
        if (!ox_cuda_row_runs(&r->row, p.major * 10 + p.minor)) continue;
        const long before = n_failures, checks = n_checks;
        current = r->row.name;
        for (size_t i = 0; i < OX_COUNT(families); i++)
            if (!strcmp(families[i].family, r->family))
                for (int k = 0; k < rounds && n_failures - before < 5; k++) {
                    seed = (uint64_t)k + 1;
                    families[i].fn(&r->row);
                    t_drop();
                }
        printf("%-10s %-28s %5ld checks %s\n", r->family, r->row.name, n_checks - checks,
               n_failures > before ? "FAILED" : "ok");
    }
    printf("%s: %ld checks, %ld failures\n", p.name, n_checks, n_failures);
    return n_failures ? 1 : 0;
}
