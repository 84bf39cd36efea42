/* families.c - arguments for the rows of every family, and what their contracts say about them. */
#include "kernel/act/act_ref.h"
#include "tests/gpu/rows.h"

#include "tensor/half.h"

#include <math.h>
#include <stdlib.h>

void t_map(const ox_kernel_row *row), t_norm(const ox_kernel_row *row),
    t_rotate(const ox_kernel_row *row), t_embed(const ox_kernel_row *row);

static double map_of(const char *name, const ox_dev_map_args *a, double x, double x2)
{
    if (strstr(name, "_act_")) return act_in_double((ox_act)a->act, x);
    if (strstr(name, "_glu_")) return act_in_double((ox_act)a->act, x) * x2;
    if (strstr(name, "_add_")) return x + x2;
    if (strstr(name, "_gather_")) return x;
    x *= (double)a->scale;
    return a->softcap > 0.0f ? (double)a->softcap * tanh(x / (double)a->softcap) : x;
}

void t_map(const ox_kernel_row *row)
{
    const int32_t rows = t_range(1, 70), dim = t_range(1, 700), source = t_range(1, 90);
    const bool gather = strstr(row->name, "_gather_") != NULL;
    mat x = t_mat(gather ? source : rows, dim, t_type(), -6, 6),
        x2 = t_mat(rows, dim, t_type(), -3, 3);
    mat y = t_out(rows, dim, t_type());
    int32_t *index = malloc(sizeof(*index) * (size_t)rows);
    for (int32_t i = 0; i < rows; i++)
        index[i] = t_range(0, source - 1);
    const ox_dev_map_args a = {.x = x.d,
                               .x2 = x2.d,
                               .y = y.d,
                               .index =
                                   gather ? t_upload(index, sizeof(*index) * (size_t)rows) : NULL,
                               .rows = rows,
                               .dim = dim,
                               .act = t_range(0, 5),
                               .scale = t_uniform(0.1f, 2),
                               .softcap = t_range(0, 1) ? 3.0f : 0.0f};
    float *want = malloc(sizeof(float) * (size_t)rows * (size_t)dim);
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < dim; c++)
            want[r * dim + c] =
                (float)map_of(row->name, &a, (double)x.v[(gather ? index[r] : r) * x.ld + c],
                              (double)x2.v[r * x2.ld + c]);
    t_run(row, &a);
    t_fetch(&y);
    t_same(&y, want, dim, 1e-6, 1e-6, "map");
    free(want);
    free(index);
    t_mat_free(&x);
    t_mat_free(&x2);
    t_mat_free(&y);
}

void t_norm(const ox_kernel_row *row)
{
    const int32_t rows = t_range(1, 20), groups = t_range(0, 2) ? 1 : t_range(2, 9);
    const int32_t dim = t_range(1, 1100), width = groups * dim;
    const float eps = 1e-6f;
    const bool centre = t_range(0, 1), beta = t_range(0, 1);
    mat x = t_mat(rows, width, t_type(), -2, 3), y = t_out(rows, width, t_type());
    mat g = t_mat(1, dim, OX_DEV_F32, -1, 1), b = t_mat(1, dim, OX_DEV_F32, -1, 1);
    const ox_dev_norm_args a = {.x = x.d,
                                .y = y.d,
                                .gamma = g.d.p,
                                .beta = beta ? b.d.p : NULL,
                                .rows = rows,
                                .groups = groups,
                                .dim = dim,
                                .eps = eps,
                                .centre = centre};
    float *want = malloc(sizeof(float) * (size_t)rows * (size_t)width);
    for (int32_t i = 0; i < rows * groups; i++) {
        const float *from = x.v + i / groups * x.ld + i % groups * dim;
        double mean = 0, sum = 0;
        for (int32_t c = 0; c < dim && centre; c++)
            mean += (double)from[c] / dim;
        for (int32_t c = 0; c < dim; c++)
            sum += ((double)from[c] - mean) * ((double)from[c] - mean);
        const double s = 1 / sqrt(sum / dim + (double)eps);
        for (int32_t c = 0; c < dim; c++)
            want[i / groups * width + i % groups * dim + c] =
                (float)(((double)from[c] - mean) * s * (double)g.v[c] +
                        (beta ? (double)b.v[c] : 0));
    }
    t_run(row, &a);
    t_fetch(&y);
    t_same(&y, want, width, 2e-5, 2e-5, "norm");
    free(want);
    t_mat_free(&x);
    t_mat_free(&y);
    t_mat_free(&g);
    t_mat_free(&b);
}

void t_rotate(const ox_kernel_row *row)
{
    const int32_t rows = t_range(1, 30), heads = t_range(1, 9), head = 2 * t_range(1, 80);
    const int32_t rotary = t_range(0, 1) ? head : 2 * t_range(1, head / 2), half = rotary / 2;
    mat x = t_mat(rows, heads * head, t_type(), -2, 2);
    mat c = t_mat(64, half, OX_DEV_F32, -1, 1), s = t_mat(64, half, OX_DEV_F32, -1, 1);
    int32_t pos[30];
    float *table[2] = {malloc(sizeof(float) * 64 * (size_t)half),
                       malloc(sizeof(float) * 64 * (size_t)half)};
    for (int32_t i = 0; i < 64 * half; i++) {
        table[0][i] = c.v[i / half * c.ld + i % half];
        table[1][i] = s.v[i / half * s.ld + i % half];
    }
    for (int32_t i = 0; i < rows; i++)
        pos[i] = t_range(0, 9) ? t_range(0, 63) : -1;
    const ox_dev_rotate_args a = {
        .x = x.d,
        .pos = t_upload(pos, sizeof(pos)),
        .cos_table = t_upload(table[0], sizeof(float) * 64 * (size_t)half),
        .sin_table = t_upload(table[1], sizeof(float) * 64 * (size_t)half),
        .rows = rows,
        .n_heads = heads,
        .head_size = head,
        .rotary = rotary,
        .interleaved = t_range(0, 1)};
    float *want = malloc(sizeof(float) * (size_t)rows * (size_t)x.ld);
    memcpy(want, x.v, sizeof(float) * (size_t)rows * (size_t)x.ld);
    for (int32_t i = 0; i < rows * heads * half; i++) {
        const int32_t r = i / half / heads, h = i / half % heads, j = i % half;
        if (pos[r] < 0) continue;
        const int32_t at = r * x.ld + h * head;
        const int32_t c0 = at + (a.interleaved ? 2 * j : j), c1 = c0 + (a.interleaved ? 1 : half);
        const double co = (double)table[0][pos[r] * half + j],
                     si = (double)table[1][pos[r] * half + j];
        want[c0] = (float)((double)x.v[c0] * co - (double)x.v[c1] * si);
        want[c1] = (float)((double)x.v[c1] * co + (double)x.v[c0] * si);
    }
    t_run(row, &a);
    t_fetch(&x);
    t_same(&x, want, x.ld, 1e-6, 1e-6, "rotate");
    free(want);
    free(table[0]);
    free(table[1]);
    t_mat_free(&x);
    t_mat_free(&c);
    t_mat_free(&s);
}

void t_embed(const ox_kernel_row *row)
{
    const int32_t vocab = t_range(5, 300), dim = t_range(1, 500), rows = t_range(1, 40);
    mat w = t_mat(vocab, dim, t_type(), -1, 1), y = t_out(rows, dim, t_type());
    int32_t ids[40];
    for (int32_t i = 0; i < rows; i++)
        ids[i] = t_range(0, vocab - 1);
    const ox_dev_embed_args a = {.table = {w.d.p, vocab, dim, w.d.dtype, w.d.ld},
                                 .ids = t_upload(ids, sizeof(ids)),
                                 .y = y.d,
                                 .rows = rows,
                                 .dim = dim,
                                 .scale = t_uniform(0.5f, 2)};
    float *want = malloc(sizeof(float) * (size_t)rows * (size_t)dim);
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < dim; c++)
            want[r * dim + c] = w.v[ids[r] * w.ld + c] * a.scale;
    t_run(row, &a);
    t_fetch(&y);
    t_same(&y, want, dim, 0, 0, "embed");
    free(want);
    t_mat_free(&w);
    t_mat_free(&y);
}
