/* Every 16-bit pattern to float32, and back from float32 patterns
 * around every rounding boundary. */
#include "kernel/convert_half/convert_half.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

static bool half_is_nan(uint16_t h, ox_dtype t)
{
    return t == OX_DTYPE_F16 ? (h & 0x7fff) > 0x7c00 : (h & 0x7fff) > 0x7f80;
}

static void check_widen(const ox_kernel_row *row, ox_dtype t)
{
    enum { N = 65536 };
    ktest_buf src = ktest_bytes(2 * N), want = ktest_floats(N), got = ktest_floats(N);
    for (size_t i = 0; i < N; i++)
        ((uint16_t *)src.p)[i] = (uint16_t)i;
    ox_convert_half_args a = {src.p, want.p, t, OX_DTYPE_F32, N};
    ox_convert_half_ref(&a, 0, N);
    a.dst = got.p;
    ((ox_convert_half_fn *)row->fn)(&a, 0, 12345);
    ((ox_convert_half_fn *)row->fn)(&a, 12345, N);
    ktest_same(row, got.p, want.p, N, 1, 0.0f, "widen %d", (int)t);
    ktest_free(&src);
    ktest_free(&want);
    ktest_free(&got);
}

static void check_narrow(const ox_kernel_row *row, ox_dtype t)
{
    enum { N = 3 * 65536 + 7 };
    ktest_buf src = ktest_floats(N), want = ktest_bytes(2 * N), got = ktest_bytes(2 * N);
    for (uint32_t i = 0; i < N; i++) { /* halfway points of both types, and their neighbours */
        const uint32_t low[] = {0x7fffu, 0x8000u, 0x8001u, 0xfffu, 0x1000u, 0x1001u, 0x3000u};
        const uint32_t u = i / 3 << 16 | (i % 2 ? low[ktest_bits() % OX_COUNT(low)]
                                                : (uint32_t)ktest_bits() & 0xffffu);
        memcpy((float *)src.p + i, &u, 4);
    }
    ox_convert_half_args a = {src.p, want.p, OX_DTYPE_F32, t, N};
    ox_convert_half_ref(&a, 0, N);
    a.dst = got.p;
    ((ox_convert_half_fn *)row->fn)(&a, 0, 777);
    ((ox_convert_half_fn *)row->fn)(&a, 777, N);
    for (size_t i = 0; i < N; i++) {
        const uint16_t w = ((uint16_t *)want.p)[i], g = ((uint16_t *)got.p)[i];
        if (w != g && !(half_is_nan(w, t) && half_is_nan(g, t)))
            ktest_fail("%g to type %d: want %04x got %04x", (double)((float *)src.p)[i], (int)t, w,
                       g);
    }
    ktest_free(&src);
    ktest_free(&want);
    ktest_free(&got);
}

void ktest_convert_half(void);
void ktest_convert_half(void)
{
    for (const ox_kernel_row *row = ox_convert_half_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        check_widen(row, OX_DTYPE_F16);
        check_widen(row, OX_DTYPE_BF16);
        check_narrow(row, OX_DTYPE_F16);
        check_narrow(row, OX_DTYPE_BF16);
        ktest_end(row);
    }
}
