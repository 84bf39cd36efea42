/* Reference: the formula of qlinear.h term by term out of the packed bytes. Equality with the raw
 * weights is the test's business. */
#include "simd/scalar.h"

#include "kernel/qlinear/epilogue.h"
#include "kernel/qlinear/record.h"

static float column(const ox_qlinear_args *a, size_t tile, size_t c, size_t r)
{
    const ox_qpack *p = a->w;
    const size_t block = (size_t)p->code.block, planes = (size_t)a->x->planes;
    const float *scales = ox_qact_scales(a->x, r * planes + planes - 1);
    float acc = 0.0f;
    for (size_t b = 0; b < p->blocks; b++) {
        const uint8_t *rec = record_at(p, tile, b);
        int32_t dot = 0, sum = 0;
        for (size_t i = r * planes; i < (r + 1) * planes; i++) {
            const int8_t *x = ox_qact_codes(a->x, i) + b * block;
            dot *= 256;
            sum = sum * 256 + ox_qact_sums(a->x, i)[b];
            for (size_t k = 0; k < block; k++) {
                const size_t at = p->code.bits == 8 ? k : k / 8 * 8 + k % 2 * 4 + k % 8 / 2;
                dot += x[at] * (record_code(p, rec, c, k) - record_zero(p, rec, c));
            }
        }
        acc = fmaf((float)dot, record_scale(p, rec, c) * scales[b], acc);
        if (p->code.zero == OX_ZERO_MIN)
            acc = fmaf(record_min(p, rec, c), scales[b] * (float)sum, acc);
    }
    return acc;
}

void ox_qlinear_ref(const ox_qlinear_args *a, size_t begin, size_t end)
{
    const size_t per_unit = a->w->pairs ? 2 : 1;
    for (size_t u = begin; u < end; u++)
        for (size_t r = 0; r < a->rows; r++) {
            float c[2][OX_QPACK_COLS];
            for (size_t i = 0; i < per_unit; i++)
                for (size_t k = 0; k < OX_QPACK_COLS; k++)
                    c[i][k] = column(a, u * per_unit + i, k, r);
            finish_row(a, u, r, c[0], c[1]);
        }
}
