/* Gathered rows are the table's rows times the scale; nothing else is written. */
#include "kernel/embed/embed.h"
#include "tests/ktest/ktest.h"

#include <string.h>

static void check(const ox_kernel_row *row, ox_format format, size_t dim, float scale)
{
    enum { VOCAB = 9, ROWS = 5 };
    const size_t row_bytes = dim / (size_t)ox_format_block(format) * ox_format_block_bytes(format);
    ktest_buf data = ktest_bytes(VOCAB * row_bytes), y = ktest_floats(ROWS * (dim + 2));
    ktest_buf want = ktest_floats(dim);
    for (size_t i = 0; i < data.n; i++)
        ((uint8_t *)data.p)[i] = (uint8_t)(ktest_bits() & 0x3f); /* every float field is finite */
    const ox_weight table = {.name = OX_STR("table"),
                             .format = format,
                             .rows = VOCAB,
                             .cols = (int64_t)dim,
                             .data = data.p,
                             .bytes = data.n};
    const int32_t ids[ROWS] = {8, 0, 3, 3, 7};
    const ox_embed_args a = {
        .table = &table, .ids = ids, .y = y.p, .rows = ROWS, .ldy = dim + 2, .scale = scale};
    ((ox_embed_fn *)row->fn)(&a, 2, ROWS);
    ((ox_embed_fn *)row->fn)(&a, 0, 2);
    for (size_t r = 0; r < ROWS; r++) {
        ox_weight_row_f32(&table, ids[r], want.p);
        for (size_t i = 0; i < dim; i++)
            ((float *)want.p)[i] *= scale;
        ktest_same(row, (float *)y.p + r * (dim + 2), want.p, dim, 1, 0.0f, "%s row %zu",
                   ox_format_name(format), r);
    }
    ktest_free(&data);
    ktest_free(&y);
    ktest_free(&want);
}

void ktest_embed(void);
void ktest_embed(void)
{
    for (const ox_kernel_row *row = ox_embed_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        check(row, OX_FORMAT_F32, 7, 1.0f);
        check(row, OX_FORMAT_F16, 33, 3.5f);
        check(row, OX_FORMAT_BF16, 20, 1.0f);
        check(row, OX_FORMAT_Q4_1, 64, 0.5f);
        check(row, OX_FORMAT_Q6_K, 256, 1.0f);
        ktest_end(row);
    }
}
