/* quantize_test.c - codes, scales and zero points bit for bit against ONNX Runtime's quantiser
 * (tests/data/convert/quantize.txt, made by tools/gen_quantize_golden.py). */
#include "convert/quantize.h"

#include "base/fs.h"
#include "tensor/half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COLS = 64, BLOCKS = 4 };

static unsigned long take(char **p, int base)
{
    return strtoul(*p, p, base);
}

static void skip_bar(char **p)
{
    while (**p == ' ')
        (*p)++;
    assert_int_equal(**p, '|');
    (*p)++;
}

static unsigned code_at(const uint8_t *codes, int bits, int i)
{
    return bits == 8 ? codes[i] : i % 2 ? codes[i / 2] >> 4 : codes[i / 2] & 15u;
}

static void check_line(char *p)
{
    float w[COLS], scales[BLOCKS];
    uint8_t codes[COLS], zeros[BLOCKS];
    const int bits = (int)take(&p, 10), block = (int)take(&p, 10);
    const bool symmetric = take(&p, 10);
    const int cols = (int)take(&p, 10), n = (cols + block - 1) / block;
    assert_true(cols <= COLS && n <= BLOCKS);
    skip_bar(&p);
    for (int i = 0; i < cols; i++)
        w[i] = ox_f32_from_bits((uint32_t)take(&p, 16));
    ox_quantize_row(w, cols, bits, block, codes, scales, symmetric ? NULL : zeros);
    skip_bar(&p);
    for (int i = 0; i < cols; i++)
        assert_int_equal(code_at(codes, bits, i), take(&p, 10));
    for (int i = cols; i < n * block; i++) { /* padding means zero */
        const unsigned zero = symmetric ? 1u << (bits - 1) : code_at(zeros, bits, n - 1);
        assert_int_equal(code_at(codes, bits, i), zero);
    }
    skip_bar(&p);
    for (int i = 0; i < n; i++)
        assert_int_equal(ox_f32_bits(scales[i]), take(&p, 16));
    skip_bar(&p);
    for (int i = 0; i < n && !symmetric; i++)
        assert_int_equal(code_at(zeros, bits, i), take(&p, 10));
}

static void rows_equal_those_of_onnx_runtime(void **state)
{
    (void)state;
    ox_buf b = {0};
    int n = 0;
    assert_int_equal(
        ox_file_read(&b, OXGEN_SOURCE_DIR "/tests/data/convert/quantize.txt", 4 << 20, NULL),
        OX_OK);
    for (char *line = b.p; line && *line; n++) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        *end = 0;
        check_line(line);
        line = end + 1;
    }
    assert_int_equal(n, 144);
    ox_buf_deinit(&b);
}

static void a_quantised_weight_reads_back_within_half_a_step(void **state)
{
    (void)state;
    float w[3 * 40], row[40];
    ox_arena arena = OX_ARENA_INIT;
    const ox_weight src = {.name = OX_STR("w"),
                           .format = OX_FORMAT_F32,
                           .rows = 3,
                           .cols = 40,
                           .data = w,
                           .bytes = sizeof w};
    for (int i = 0; i < 120; i++)
        w[i] = (float)((i * 37 % 101) - 50) / 50.0f;
    for (int bits = 4; bits <= 8; bits += 4)
        for (int asym = 0; asym < 2; asym++) {
            const ox_quant_choice q = {OX_QUANT_INT4, 16, asym, 8};
            const ox_weight *out;
            assert_int_equal(ox_quantize_weight(&out, &arena, &src, &q, bits, NULL), OX_OK);
            assert_int_equal(ox_weight_check(out, NULL), OX_OK);
            for (int r = 0; r < 3; r++) {
                ox_weight_row_f32(out, r, row);
                for (int i = 0; i < 40; i++) {
                    const float step = 2.0f / (float)((1 << bits) - 1) * 1.1f;
                    assert_true(row[i] - w[40 * r + i] < step && w[40 * r + i] - row[i] < step);
                }
            }
        }
    ox_arena_deinit(&arena);
}

static void choices_are_checked(void **state)
{
    (void)state;
    ox_quant_choice q = OX_QUANT_CHOICE_INIT;
    ox_quant_kind k;
    assert_int_equal(ox_quant_choice_check(&q, NULL), OX_OK);
    assert_int_equal(ox_quant_bits(&q, false), 4);
    assert_int_equal(ox_quant_bits(&q, true), 8);
    q.head_bits = 16;
    assert_int_equal(ox_quant_bits(&q, true), 0);
    q.block = 48;
    assert_int_equal(ox_quant_choice_check(&q, NULL), OX_BAD_ARGUMENT);
    q.block = 32;
    q.head_bits = 5;
    assert_int_equal(ox_quant_choice_check(&q, NULL), OX_BAD_ARGUMENT);
    for (int i = 0; i < OX_QUANT_COUNT; i++) {
        assert_true(ox_quant_kind_of(ox_str_of(ox_quant_kind_name((ox_quant_kind)i)), &k));
        assert_int_equal(k, i);
    }
    assert_false(ox_quant_kind_of(OX_STR("int5"), &k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_equal_those_of_onnx_runtime),
        cmocka_unit_test(a_quantised_weight_reads_back_within_half_a_step),
        cmocka_unit_test(choices_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
