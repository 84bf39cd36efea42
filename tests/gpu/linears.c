/* linears.c - matrix products: float weights, and codes in the pack that the backend makes. */
#include "kernel/act/act_ref.h"
#include "tests/gpu/rows.h"

#include "tensor/half.h"

#include <math.h>
#include <stdlib.h>

void t_matmul(const ox_kernel_row *row), t_qexact(const ox_kernel_row *row);

/* Weights of a product as float32 [n, k], and everything around it. */
typedef struct product {
    ox_dev_linear_args a;
    float *w;
    mat x, y, add, bias;
    int32_t n_out;
} product;

static const int32_t row_counts[] = {1, 1, 1, 2, 3, 7, 8, 9, 16, 33, 64, 65, 130, 200};

/* Rows of prompts want float16 and many rows: mostly that, else few samples would reach them. */
static void open_product(const ox_kernel_row *row, product *p, int32_t n, int32_t k, bool pairs)
{
    const bool prompt = row->needs == OX_SM_90A && t_range(0, 7);
    const int32_t rows =
        prompt ? t_range(65, 300) : row_counts[t_range(0, (int32_t)OX_COUNT(row_counts) - 1)];
    const int32_t type = prompt ? OX_DEV_F16 : t_type();
    const bool same = t_range(0, 3) != 0, biased = t_range(0, 1), added = t_range(0, 1);
    p->n_out = pairs ? n / 2 : n;
    p->x = t_mat(rows, k, type, -1, 1);
    p->y = t_out(rows, p->n_out, same ? type : t_type());
    p->add = t_mat(rows, p->n_out, same ? type : t_type(), -1, 1);
    p->bias = t_mat(1, n, OX_DEV_F32, -1, 1);
    p->a = (ox_dev_linear_args){.x = p->x.d,
                                .y = p->y.d,
                                .bias = biased ? p->bias.d.p : NULL,
                                .rows = rows,
                                .n = n,
                                .k = k,
                                .pairs = pairs,
                                .act = pairs ? t_range(0, 5) : -1,
                                .n_sm = 132};
    if (added) p->a.add = p->add.d;
    p->a.scratch_bytes = (size_t)(n + 16) * (size_t)(k + 128) * 2;
    p->a.scratch = t_upload(NULL, p->a.scratch_bytes);
}

/* The product in double; tolerance from the sum of the absolute terms. */
static void check_product(const ox_kernel_row *row, product *p, const char *what)
{
    const ox_dev_linear_args *a = &p->a;
    const size_t n = (size_t)a->rows * (size_t)p->n_out;
    float *want = malloc(sizeof(float) * n);
    double size = 0;
    if (row->accepts && !row->accepts(a)) goto done;
    for (int32_t r = 0; r < a->rows; r++)
        for (int32_t c = 0; c < p->n_out; c++) {
            double sum[2] = {0, 0};
            for (int32_t h = 0; h < (a->pairs ? 2 : 1); h++) {
                const int32_t i = h * p->n_out + c;
                double terms = 0;
                for (int32_t k = 0; k < a->k; k++) {
                    const double t = (double)p->x.v[r * p->x.ld + k] * (double)p->w[i * a->k + k];
                    sum[h] += t;
                    terms += fabs(t);
                }
                if (a->bias) sum[h] += (double)p->bias.v[i];
                if (terms > size) size = terms;
            }
            double v = a->act >= 0 ? act_in_double((ox_act)a->act, sum[0]) : sum[0];
            if (a->pairs) v *= sum[1];
            if (a->add.p) v += (double)p->add.v[r * p->add.ld + c];
            want[r * p->n_out + c] = (float)v;
        }
    t_run(row, a);
    t_fetch(&p->y);
    const double rel = row->tol == OX_TOL_HALF ? 0x1p-11 + 1e-6 : 1e-6;
    t_same(&p->y, want, p->n_out, rel * 4, rel * size * (a->pairs ? 6 : 1), what);
done:
    free(want);
    free(p->w);
    t_mat_free(&p->x);
    t_mat_free(&p->y);
    t_mat_free(&p->add);
    t_mat_free(&p->bias);
}

void t_matmul(const ox_kernel_row *row)
{
    const int32_t n = t_range(1, 300), k = t_range(0, 1) ? t_range(1, 40) * 16 : t_range(1, 600);
    product p = {0};
    open_product(row, &p, n, k, false);
    mat w = t_mat(n, k, t_type(), -1, 1);
    p.w = malloc(sizeof(float) * (size_t)n * (size_t)k);
    for (int32_t i = 0; i < n; i++)
        memcpy(p.w + (size_t)i * (size_t)k, w.v + (size_t)i * (size_t)w.ld,
               sizeof(float) * (size_t)k);
    p.a.w = (ox_dev_fweight){w.d.p, n, k, w.d.dtype, w.d.ld};
    check_product(row, &p, "matmul");
    t_mat_free(&w);
}

/* A random weight in the ONNX form; all arrays are the caller's to free. */
static ox_weight random_nbits(int32_t n, int32_t k)
{
    static const int32_t widths[] = {4, 4, 8, 2};
    static const ox_dtype types[] = {OX_DTYPE_F16, OX_DTYPE_F32, OX_DTYPE_BF16};
    const int32_t bits = widths[t_range(0, 3)], block = 16 << t_range(0, 4);
    const int32_t blocks = (k + block - 1) / block;
    ox_nbits q = {.bits = bits, .block = block, .scale_dtype = types[t_range(0, 2)]};
    const size_t bytes = (size_t)n * (size_t)blocks * (size_t)(block / 8 * bits);
    const size_t scales = (size_t)n * (size_t)blocks;
    uint8_t *codes = malloc(bytes), *zeros = malloc(scales * 4);
    void *s = malloc(scales * 4);
    for (size_t i = 0; i < bytes; i++)
        codes[i] = (uint8_t)t_bits();
    const int zero_kind = t_range(0, 2);
    q.zeros_dtype = zero_kind == 2 ? q.scale_dtype : OX_DTYPE_U8;
    for (size_t i = 0; i < scales; i++) {
        const float v = t_uniform(-0.02f, 0.02f), z = t_uniform(0, (float)(1 << bits));
        if (q.scale_dtype == OX_DTYPE_F32) {
            memcpy((char *)s + 4 * i, &v, 4);
        } else {
            const uint16_t h = q.scale_dtype == OX_DTYPE_F16 ? ox_f32_to_f16(v) : ox_f32_to_bf16(v);
            memcpy((char *)s + 2 * i, &h, 2);
        }
        if (zero_kind != 2) {
            zeros[i] = (uint8_t)t_bits();
        } else if (q.scale_dtype == OX_DTYPE_F32) {
            memcpy((char *)zeros + 4 * i, &z, 4);
        } else {
            const uint16_t h = q.scale_dtype == OX_DTYPE_F16 ? ox_f32_to_f16(z) : ox_f32_to_bf16(z);
            memcpy((char *)zeros + 2 * i, &h, 2);
        }
    }
    q.codes = codes;
    q.scales = s;
    q.zeros = zero_kind ? zeros : NULL;
    if (!zero_kind) free(zeros);
    return (ox_weight){
        .name = {"w", 1}, .format = OX_FORMAT_NBITS, .rows = n, .cols = k, .nbits = q};
}

static int32_t source_type(ox_dtype t)
{
    return t == OX_DTYPE_F32 ? 0 : t == OX_DTYPE_F16 ? 1 : t == OX_DTYPE_BF16 ? 2 : 3;
}

/* Packs the rows of w from row n0 on, as upload.c does: the file's arrays, or spread codes. */
static void fill(const ox_dev_pack *pack, const ox_weight *w, int32_t n0)
{
    const ox_nbits *q = &w->nbits;
    const int32_t n = (int32_t)w->rows, k = (int32_t)w->cols,
                  blocks = (k + q->block - 1) / q->block;
    const size_t scales = (size_t)n * (size_t)blocks;
    ox_dev_source s = {.rows = n, .k = k, .bits = q->bits, .block = q->block, .n0 = n0};
    s.codes = t_upload(q->codes, scales * (size_t)(q->block / 8 * q->bits));
    s.scales = t_upload(q->scales, scales * (q->scale_dtype == OX_DTYPE_F32 ? 4 : 2));
    s.scale_type = source_type(q->scale_dtype);
    s.zeros_type = source_type(q->zeros_dtype);
    if (q->zeros)
        s.zeros = t_upload(q->zeros, q->zeros_dtype == OX_DTYPE_U8
                                         ? (size_t)n * (size_t)((blocks * q->bits + 7) / 8)
                                         : scales * (q->zeros_dtype == OX_DTYPE_F32 ? 4 : 2));
    ox_dev_pack_fill(pack, &s, NULL);
}

void t_qexact(const ox_kernel_row *row)
{
    const bool pairs = t_range(0, 2) == 0;
    const int32_t n = pairs ? 16 * t_range(1, 20) : t_range(1, 300);
    const int32_t k = t_range(0, 1) ? t_range(1, 20) * 32 : t_range(1, 600);
    product p = {0};
    size_t bytes[3];
    open_product(row, &p, n, k, pairs);
    ox_weight w = random_nbits(n, k);
    const ox_code_layout l = ox_weight_code_layout(&w);
    ox_dev_pack pack =
        ox_dev_pack_shape(n, k, l.bits, w.nbits.block, (int32_t)l.zero, !l.scale_f16, bytes);
    pack.codes = t_upload(NULL, bytes[0]);
    pack.scales = t_upload(NULL, bytes[1]);
    pack.zeros = bytes[2] ? t_upload(NULL, bytes[2]) : NULL;
    fill(&pack, &w, 0);
    p.w = malloc(sizeof(float) * (size_t)n * (size_t)k);
    for (int32_t i = 0; i < n; i++)
        ox_weight_row_f32(&w, i, p.w + (size_t)i * (size_t)k);
    p.a.pack = &pack;
    check_product(row, &p, "qexact");
    free((void *)(uintptr_t)w.nbits.codes);
    free((void *)(uintptr_t)w.nbits.scales);
    free((void *)(uintptr_t)w.nbits.zeros);
}
