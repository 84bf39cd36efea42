/* Every row bit for bit against the reference, and the reference against what the header says. */
#include "kernel/quantize/quantize.h"
#include "tests/ktest/ktest.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void fill(float *x, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++)
        x[i] = ktest_uniform(-3.0f, 3.0f) * (kind == 1 ? 1e-33f : 1.0f);
    if (kind == 2)
        for (size_t i = 0; i < n; i++) /* many values halfway between two codes */
            x[i] = (float)((int)(ktest_bits() % 255) - 127) * 0.5f + (i % 16 ? 0.0f : 63.5f);
    if (kind == 3)
        for (size_t i = 0; i < n; i += 7)
            x[i] = i % 2 ? FLT_MAX : -FLT_MAX;
    if (kind == 4)
        for (size_t i = 0; i < n; i++)
            if (i / 32 % 2) x[i] = 0.0f;
    if (kind == 5 && n > 20) x[20] = NAN;
    if (kind == 5 && n > 70) x[70] = -INFINITY;
}

static void check_meaning(const ox_qact *q, const float *x, size_t ldx)
{
    const size_t block = (size_t)q->block;
    const size_t planes = (size_t)q->planes;
    const double steps = planes == 1 ? 127 : 32512;
    for (size_t i = 0; i < q->rows * q->blocks; i++) {
        const size_t r = i / q->blocks, b = i % q->blocks, last = r * planes + planes - 1;
        const int8_t *low = ox_qact_codes(q, last) + b * block;
        const int8_t *high = planes == 2 ? ox_qact_codes(q, last - 1) + b * block : NULL;
        const double s = (double)ox_qact_scales(q, last)[b];
        double max = 0.0;
        int sum = 0, sum_high = 0;
        bool finite = true;
        for (size_t k = 0; k < block && b * block + k < q->k; k++) {
            max = fmax(max, fabs((double)x[r * ldx + b * block + k]));
            finite = finite && isfinite(x[r * ldx + b * block + k]);
        }
        for (size_t k = 0; k < block; k++) {
            const size_t at = q->bits == 8 ? k : k / 8 * 8 + k % 2 * 4 + k % 8 / 2;
            const double v = b * block + k < q->k ? (double)x[r * ldx + b * block + k] : 0.0;
            const int code = low[at] + (high ? 256 * high[at] : 0);
            sum += low[at];
            sum_high += high ? high[at] : 0;
            if (high ? high[at] == -128 : low[at] == -128) ktest_fail("code -128");
            if (finite && !(fabs(v - s * code) <= s * (planes == 1 ? 0.50005 : 0.505) + 0x1p-100))
                ktest_fail("row %zu block %zu: %g became %g", r, b, v, s * code);
        }
        if (sum != ox_qact_sums(q, last)[b]) ktest_fail("row %zu block %zu: wrong sum", r, b);
        if (high && sum_high != ox_qact_sums(q, last - 1)[b])
            ktest_fail("row %zu block %zu: wrong sum of the high plane", r, b);
        if (high && finite && fabsf(ox_qact_scales(q, last - 1)[b] - 256.0f * (float)s) > 0)
            ktest_fail("row %zu block %zu: the planes' scales do not fit", r, b);
        if (finite && fabs(s * steps - max) > max * 1e-6 + 0x1p-100)
            ktest_fail("row %zu block %zu: scale %g for maximum %g", r, b, s, max);
        if (!finite && !isnan(s)) ktest_fail("row %zu block %zu: scale %g, want NaN", r, b, s);
    }
}

static void check(const ox_kernel_row *row, size_t rows, size_t k, int form, int kind)
{
    const size_t ldx = k + 5;
    ox_qact got = ox_qact_shape(rows, k, form & 1 ? 16 : 32, form & 2 ? 8 : 4, form & 4 ? 2 : 1);
    ox_qact want = got;
    size_t bytes = 0;
    if (!ox_qact_bytes(&got, &bytes)) ktest_fail("no bytes");
    ktest_buf x = ktest_floats(rows * ldx), a = ktest_bytes(bytes), b = ktest_bytes(bytes);
    memset(a.p, 0x55, bytes);
    memset(b.p, 0x55, bytes);
    got.data = a.p;
    want.data = b.p;
    fill(x.p, rows * ldx, kind);
    ox_quantize_args args = {.x = x.p, .ldx = ldx, .y = &want};
    ox_quantize_ref(&args, 0, rows);
    args.y = &got;
    const size_t mid = rows / 2;
    ((ox_quantize_fn *)row->fn)(&args, mid, rows);
    ((ox_quantize_fn *)row->fn)(&args, 0, mid);
    if (memcmp(a.p, b.p, bytes))
        ktest_fail("differs from the reference: rows %zu k %zu form %d kind %d", rows, k, form,
                   kind);
    check_meaning(&got, x.p, ldx);
    ktest_free(&x);
    ktest_free(&a);
    ktest_free(&b);
}

void ktest_quantize(void);
void ktest_quantize(void)
{
    static const size_t ks[] = {1, 7, 15, 16, 17, 31, 32, 33, 48, 63, 64, 100, 255, 576, 1024};
    for (const ox_kernel_row *row = ox_quantize_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t i = 0; i < OX_COUNT(ks); i++)
            for (int form = 0; form < 8; form++)
                for (int kind = 0; kind < 6; kind++)
                    check(row, 1 + i % 4, ks[i], form, kind);
        size_t bytes;
        const ox_qact huge = ox_qact_shape(SIZE_MAX / 4, SIZE_MAX / 64, 32, 4, 1);
        if (ox_qact_bytes(&huge, &bytes)) ktest_fail("an impossible size was accepted");
        ktest_end(row);
    }
}
