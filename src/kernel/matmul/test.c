/* Every row against a sum in double over the weights as they were given (so that a fault of the
 * packing shows), for all storage forms; then bit for bit: row by row, tile
 * by tile, other tiers. */
#include "kernel/matmul/matmul.h"

#include "tensor/half.h"
#include "tests/ktest/ktest.h"

#include <string.h>

enum { WEIGHTS_MAX = 3 };

typedef struct stack {
    ktest_buf data[WEIGHTS_MAX];
    ox_weight weight[WEIGHTS_MAX];
    const ox_weight *list[WEIGHTS_MAX];
    size_t n_weights;
    ktest_buf value; /* [n, k] what the weights are worth */
    ktest_buf packed;
    ox_fpack pack;
} stack;

static float put(void *data, size_t i, ox_format f, float x)
{
    if (f == OX_FORMAT_F32) {
        ((float *)data)[i] = x;
        return x;
    }
    const uint16_t h = f == OX_FORMAT_F16 ? ox_f32_to_f16(x) : ox_f32_to_bf16(x);
    ((uint16_t *)data)[i] = h;
    return f == OX_FORMAT_F16 ? ox_f16_to_f32(h) : ox_bf16_to_f32(h);
}

static void stack_open(stack *s, const size_t *rows, size_t n_weights, size_t k, const ox_format *f,
                       bool transposed)
{
    size_t n = 0, bytes = 0, first = 0;
    *s = (stack){.n_weights = n_weights};
    for (size_t i = 0; i < n_weights; i++)
        n += rows[i];
    s->value = ktest_floats(n * k);
    for (size_t i = 0; i < n_weights; i++) {
        const size_t size = f[i] == OX_FORMAT_F32 ? 4 : 2;
        s->data[i] = ktest_bytes(rows[i] * k * size);
        for (size_t r = 0; r < rows[i]; r++)
            for (size_t c = 0; c < k; c++)
                ((float *)s->value.p)[(first + r) * k + c] =
                    put(s->data[i].p, transposed ? c * rows[i] + r : r * k + c, f[i],
                        ktest_uniform(-1.0f, 1.0f));
        s->weight[i] = (ox_weight){.format = f[i],
                                   .rows = (int64_t)rows[i],
                                   .cols = (int64_t)k,
                                   .data = s->data[i].p,
                                   .bytes = rows[i] * k * size,
                                   .transposed = transposed};
        s->list[i] = &s->weight[i];
        first += rows[i];
    }
    ox_err err = {0};
    if (ox_fpack_plan(&s->pack, s->list, n_weights, &bytes, &err)) ktest_fail("plan: %s", err.msg);
    s->packed = ktest_bytes(bytes);
    s->pack.data = s->packed.p;
    const size_t tiles = ox_fpack_tiles(&s->pack), half = tiles / 2;
    if (ox_fpack_fill(&s->pack, s->list, n_weights, half, tiles, &err) ||
        ox_fpack_fill(&s->pack, s->list, n_weights, 0, half, &err))
        ktest_fail("fill: %s", err.msg);
}

static void stack_close(stack *s)
{
    for (size_t i = 0; i < s->n_weights; i++)
        ktest_free(&s->data[i]);
    ktest_free(&s->value);
    ktest_free(&s->packed);
}

static void same_bits(const ox_matmul_args *a, const float *got, const float *want,
                      const char *what)
{
    for (size_t r = 0; r < a->rows; r++)
        if (memcmp(got + r * a->ldy, want + r * a->ldy, a->w->n * sizeof(float))) {
            ktest_fail("%s: other bits in row %zu; rows=%zu n=%zu k=%zu", what, r, a->rows, a->w->n,
                       a->w->k);
            return;
        }
}

static void check_splits(const ox_kernel_row *row, ox_matmul_args a, const float *want)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    const size_t tiles = ox_fpack_tiles(a.w);
    const ox_matmul_args all = a;
    ktest_buf got = ktest_floats(a.rows * a.ldy);
    a.y = got.p;
    for (size_t t = tiles; t-- > 0;)
        ((ox_matmul_fn *)row->fn)(&a, t, t + 1);
    same_bits(&all, got.p, want, "tile by tile");
    for (size_t r = 0; r < all.rows; r++) {
        a.rows = 1;
        a.x = all.x + r * all.ldx;
        a.y = (float *)got.p + r * all.ldy;
        a.add = all.add ? all.add + r * all.ld_add : NULL;
        ((ox_matmul_fn *)row->fn)(&a, 0, tiles);
    }
    same_bits(&all, got.p, want, "row by row");
    a = all;
    a.y = got.p;
    for (const ox_kernel_row *other = ox_matmul_rows; other->needs; other++) {
        if (!ox_kernel_runs_on(other, &m)) continue;
        ((ox_matmul_fn *)other->fn)(&a, 0, tiles);
        same_bits(&all, got.p, want, other->name);
    }
    ktest_free(&got);
}

/* y = x * value^T + bias + add in double */
static void product(const ox_matmul_args *a, const float *value, float *y)
{
    for (size_t r = 0; r < a->rows; r++)
        for (size_t c = 0; c < a->w->n; c++) {
            double sum = 0.0;
            for (size_t k = 0; k < a->w->k; k++)
                sum += (double)a->x[r * a->ldx + k] * (double)value[c * a->w->k + k];
            sum += a->bias ? (double)a->bias[c] : 0.0;
            sum += a->add ? (double)a->add[r * a->ld_add + c] : 0.0;
            y[r * a->ldy + c] = (float)sum;
        }
}

static void check(const ox_kernel_row *row, const stack *s, size_t rows, size_t pad, int flags)
{
    const size_t n = s->pack.n, k = s->pack.k, ldx = k + pad, ldy = n + pad;
    ktest_buf x = ktest_floats(rows * ldx), bias = ktest_floats(n), add = ktest_floats(rows * ldy);
    ktest_buf want = ktest_floats(rows * ldy), got = ktest_floats(rows * ldy);
    ktest_fill(x.p, rows * ldx, -1.0f, 1.0f);
    ktest_fill(bias.p, n, -1.0f, 1.0f);
    ktest_fill(add.p, rows * ldy, -1.0f, 1.0f);
    memcpy(want.p, add.p, add.n);
    memcpy(got.p, add.p, add.n);
    ox_matmul_args a = {.x = x.p,
                        .y = got.p,
                        .bias = flags & 1 ? bias.p : NULL,
                        .add = flags & 2 ? (flags & 4 ? got.p : add.p) : NULL,
                        .rows = rows,
                        .ldx = ldx,
                        .ldy = ldy,
                        .ld_add = ldy,
                        .w = &s->pack};
    product(&a, s->value.p, want.p);
    ((ox_matmul_fn *)row->fn)(&a, 0, ox_fpack_tiles(a.w));
    const ox_kernel_row sum = {.tol = OX_TOL_SUM}; /* the reference's sum has its own roundings */
    ktest_same(&sum, got.p, want.p, rows * ldy, k, (float)k * 0.3f + 2.0f,
               "rows=%zu n=%zu k=%zu type=%d flags=%d", rows, n, k, (int)s->pack.dtype, flags);
    a.add = flags & 2 ? add.p : NULL;
    if (row->needs) check_splits(row, a, got.p);
    ktest_free(&x);
    ktest_free(&bias);
    ktest_free(&add);
    ktest_free(&want);
    ktest_free(&got);
}

static void check_stack(const ox_kernel_row *row, const size_t *n, size_t n_weights, size_t k,
                        const ox_format *f, bool transposed)
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 23, 140};
    stack s;
    stack_open(&s, n, n_weights, k, f, transposed);
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        check(row, &s, rows[i], i % 2 * 3, (int)(i + k) % 8);
    stack_close(&s);
}

void ktest_matmul(void);
void ktest_matmul(void)
{
    static const size_t shapes[][4] = {/* rows of three weights, k */
                                       {1, 1, 1, 1},     {5, 7, 4, 33},   {16, 16, 16, 64},
                                       {48, 20, 9, 256}, {33, 0, 1, 257}, {130, 6, 32, 600}};
    static const ox_format same[][WEIGHTS_MAX] = {{OX_FORMAT_F32, OX_FORMAT_F32, OX_FORMAT_F32},
                                                  {OX_FORMAT_F16, OX_FORMAT_F16, OX_FORMAT_F16},
                                                  {OX_FORMAT_BF16, OX_FORMAT_BF16, OX_FORMAT_BF16},
                                                  {OX_FORMAT_F16, OX_FORMAT_F32, OX_FORMAT_BF16}};
    for (const ox_kernel_row *row = ox_matmul_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t i = 0; i < OX_COUNT(shapes); i++)
            for (size_t f = 0; f < OX_COUNT(same); f++) {
                if (!row->needs && (i + f) % 3) continue; /* the reference is slow */
                check_stack(row, shapes[i], 3, shapes[i][3], same[f], i % 2);
                check_stack(row, shapes[i], 1, shapes[i][3], same[f], !(i % 2));
            }
        ktest_end(row);
    }
}
