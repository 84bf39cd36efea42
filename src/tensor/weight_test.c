/* Every format against values that others dequantised (tests/golden/weight.bin, written by
 * tools/gen_weight_golden.py), the code reading against the float reading, and ox_weight_check. */
#include "tensor/weight.h"

#include "base/mem.h"
#include "tensor/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint8_t golden[1 << 20];
static size_t golden_n;

static void load_golden(void)
{
    if (golden_n) return;
    FILE *f = fopen(OXGEN_SOURCE_DIR "/tests/golden/weight.bin", "rb");
    assert_non_null(f);
    golden_n = fread(golden, 1, sizeof(golden), f);
    fclose(f);
    assert_true(golden_n > 1000 && golden_n < sizeof(golden));
}

static void codes_agree(const ox_weight *w, int64_t r, const float *want, float tol)
{
    const ox_code_layout l = ox_weight_code_layout(w);
    static uint8_t codes[4096], zeros[256];
    static float scales[256], mins[256];
    assert_true(l.bits == 4 || l.bits == 8);
    assert_true(l.block == 16 || l.block == 32);
    memset(codes, 0xee, sizeof(codes));
    ox_weight_row_codes(w, r, codes, scales, zeros, mins);
    const int64_t padded = (w->cols + l.block - 1) / l.block * l.block;
    for (int64_t k = 0; k < padded; k++) {
        const int64_t b = k / l.block;
        const int zero = l.zero == OX_ZERO_MIDDLE ? 1 << (l.bits - 1)
                         : l.zero == OX_ZERO_CODE ? zeros[b]
                                                  : 0;
        if (k >= w->cols) {
            assert_int_equal(codes[k], zero);
            continue;
        }
        assert_true(codes[k] < 1 << l.bits);
        const float v = scales[b] * (float)(codes[k] - zero);
        const float got = l.zero == OX_ZERO_MIN ? v + mins[b] : v;
        if (!(fabsf(got - want[k]) <= tol))
            fail_msg("%s k %d: %g, want %g", ox_format_name(w->format), (int)k, (double)got,
                     (double)want[k]);
        if (l.scale_f16) assert_true(ox_f16_to_f32(ox_f32_to_f16(scales[b])) == scales[b]);
    }
    assert_int_equal(codes[padded], 0xee);
}

static size_t block_record(const uint8_t *p, const int32_t *h)
{
    ox_weight w = {.name = OX_STR("golden"),
                   .rows = h[2],
                   .cols = h[3],
                   .data = p + 24,
                   .bytes = (size_t)h[4]};
    static float got[1024], want[2048];
    assert_true(ox_format_of_ggml(h[1], &w.format));
    assert_int_equal(ox_weight_check(&w, NULL), OX_OK);
    memcpy(want, p + 24 + h[4], (size_t)(w.rows * w.cols) * 4);
    for (int64_t r = 0; r < w.rows; r++) {
        ox_weight_row_f32(&w, r, got);
        for (int64_t k = 0; k < w.cols; k++)
            if (!(got[k] == want[r * w.cols + k]))
                fail_msg("%s row %d col %d: %.9g, want %.9g", ox_format_name(w.format), (int)r,
                         (int)k, (double)got[k], (double)want[r * w.cols + k]);
        codes_agree(&w, r, got, 0.0f);
    }
    w.bytes--;
    assert_int_equal(ox_weight_check(&w, NULL), OX_BAD_FILE);
    return 24 + (size_t)h[4] + (size_t)(w.rows * w.cols) * 4;
}

static size_t nbits_record(const uint8_t *p, const int32_t *h)
{
    ox_weight w = {.name = OX_STR("golden"), .format = OX_FORMAT_NBITS, .rows = h[3], .cols = h[4]};
    const size_t blocks = (size_t)((h[4] + h[2] - 1) / h[2]), scales = (size_t)h[3] * blocks * 4;
    const uint8_t *at = p + 32;
    w.nbits = (ox_nbits){.bits = h[1], .block = h[2], .scale_dtype = OX_DTYPE_F32};
    w.nbits.codes = at;
    w.nbits.scales = at + h[6];
    at += (size_t)h[6] + scales;
    if (h[5]) w.nbits.zeros = at;
    w.nbits.zeros_dtype = h[5] == 2 ? OX_DTYPE_F32 : OX_DTYPE_U8;
    w.bytes = (size_t)h[6] + scales + (size_t)h[7];
    assert_int_equal(ox_weight_check(&w, NULL), OX_OK);
    at += h[7];
    static float got[1024], want[1024];
    for (int64_t r = 0; r < w.rows; r++, at += w.cols * 4) {
        memcpy(want, at, (size_t)w.cols * 4);
        ox_weight_row_f32(&w, r, got);
        for (int64_t k = 0; k < w.cols; k++)
            if (!(fabsf(got[k] - want[k]) <= (h[5] == 2 ? 1e-5f : 0.0f)))
                fail_msg("nbits bits %d block %d zeros %d row %d col %d: %.9g, want %.9g", h[1],
                         h[2], h[5], (int)r, (int)k, (double)got[k], (double)want[k]);
        codes_agree(&w, r, got, h[5] == 2 ? 1e-5f : 0.0f);
    }
    w.bytes--;
    assert_int_equal(ox_weight_check(&w, NULL), OX_BAD_FILE);
    return (size_t)(at - p);
}

static void every_format_reads_as_others_read_it(void **state)
{
    (void)state;
    load_golden();
    size_t at = 0;
    int n[2] = {0, 0};
    while (at < golden_n) {
        int32_t h[8];
        memcpy(h, golden + at, sizeof(h));
        n[h[0]]++;
        at += h[0] ? nbits_record(golden + at, h) : block_record(golden + at, h);
    }
    assert_int_equal(at, golden_n);
    assert_int_equal(n[0], 11);
    assert_true(n[1] >= 30);
}

static void floats_read_straight_and_transposed(void **state)
{
    (void)state;
    const uint16_t halves[6] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x3555};
    const float f32s[6] = {1, 2, 3, 4, 5, 6};
    float out[3];
    ox_weight w = {.name = OX_STR("w"),
                   .format = OX_FORMAT_F16,
                   .rows = 2,
                   .cols = 3,
                   .data = halves,
                   .bytes = 12};
    assert_int_equal(ox_weight_check(&w, NULL), OX_OK);
    assert_int_equal(ox_weight_code_layout(&w).bits, 0);
    ox_weight_row_f32(&w, 1, out);
    assert_true(out[0] == 65504.0f && out[1] == 0.0f && signbit(out[1]));
    w.format = OX_FORMAT_F32;
    w.data = f32s;
    w.bytes = 24;
    w.transposed = true; /* stored [3, 2] */
    assert_int_equal(ox_weight_check(&w, NULL), OX_OK);
    ox_weight_row_f32(&w, 1, out);
    assert_true(out[0] == 2 && out[1] == 4 && out[2] == 6);
}

static void groups_by_index_read_their_own_scale(void **state)
{
    (void)state;
    uint8_t codes[2][8];
    memset(codes, 0x99, sizeof(codes)); /* 9 - 8 = 1 everywhere */
    const float scales[2] = {2.0f, 5.0f};
    int32_t g_idx[32];
    float out[32];
    for (int k = 0; k < 32; k++)
        g_idx[k] = k % 2;
    ox_weight w = {.name = OX_STR("w"),
                   .format = OX_FORMAT_NBITS,
                   .rows = 1,
                   .cols = 32,
                   .bytes = sizeof(codes) + sizeof(scales)};
    w.nbits = (ox_nbits){.bits = 4,
                         .block = 16,
                         .codes = codes[0],
                         .scales = scales,
                         .scale_dtype = OX_DTYPE_F32,
                         .g_idx = g_idx};
    assert_int_equal(ox_weight_check(&w, NULL), OX_OK);
    assert_int_equal(ox_weight_code_layout(&w).bits, 0);
    ox_weight_row_f32(&w, 0, out);
    for (int k = 0; k < 32; k++)
        assert_true(out[k] == scales[k % 2]);
    g_idx[7] = 2;
    assert_int_equal(ox_weight_check(&w, NULL), OX_BAD_FILE);
}

static void scales_are_called_f16_only_when_they_are(void **state)
{
    (void)state;
    uint8_t codes[32] = {0};
    float scales[2] = {0.5f, 0.25f}, zeros[2] = {7.0f, 8.0f};
    ox_weight w = {
        .name = OX_STR("w"), .format = OX_FORMAT_NBITS, .rows = 1, .cols = 64, .bytes = 64};
    w.nbits = (ox_nbits){
        .bits = 4, .block = 32, .codes = codes, .scales = scales, .scale_dtype = OX_DTYPE_F32};
    assert_true(ox_weight_code_layout(&w).scale_f16);
    w.nbits.zeros = zeros;
    w.nbits.zeros_dtype = OX_DTYPE_F32;
    assert_true(ox_weight_code_layout(&w).scale_f16);
    zeros[1] = 7.0001f;
    assert_false(ox_weight_code_layout(&w).scale_f16);
    w.nbits.zeros = NULL;
    scales[1] = 0.1f;
    assert_false(ox_weight_code_layout(&w).scale_f16);
}

static void wrong_shapes_are_refused_by_name(void **state)
{
    (void)state;
    uint8_t data[64] = {0};
    ox_err err = OX_ERR_INIT;
    ox_weight w = {.name = OX_STR("blk.0.q"),
                   .format = OX_FORMAT_Q4_0,
                   .rows = 1,
                   .cols = 33,
                   .data = data,
                   .bytes = sizeof(data)};
    assert_int_equal(ox_weight_check(&w, &err), OX_BAD_FILE);
    assert_non_null(strstr(err.msg, "blk.0.q"));
    w.cols = INT64_MAX / 32 * 32;
    w.rows = INT64_MAX;
    assert_int_equal(ox_weight_check(&w, NULL), OX_BAD_FILE);
    w.cols = 32;
    w.rows = 0;
    assert_int_equal(ox_weight_check(&w, NULL), OX_BAD_FILE);
    w.format = OX_FORMAT_NBITS;
    w.rows = INT64_MAX;
    w.cols = INT64_MAX - 1;
    w.nbits = (ox_nbits){
        .bits = 4, .block = 1 << 30, .codes = data, .scales = data, .scale_dtype = OX_DTYPE_F16};
    assert_int_equal(ox_weight_check(&w, NULL), OX_BAD_FILE);
    w.nbits.block = 24;
    assert_int_equal(ox_weight_check(&w, NULL), OX_BAD_FILE);
    ox_format f;
    assert_false(ox_format_of_ggml(-1, &f));
    assert_false(ox_format_of_ggml(9999, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_reads_as_others_read_it),
        cmocka_unit_test(floats_read_straight_and_transposed),
        cmocka_unit_test(groups_by_index_read_their_own_scale),
        cmocka_unit_test(scales_are_called_f16_only_when_they_are),
        cmocka_unit_test(wrong_shapes_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
