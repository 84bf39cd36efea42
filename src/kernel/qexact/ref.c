/* Reference: the obvious loop over dequantised weights, in double. */
#include "simd/scalar.h"

#include "kernel/qexact/qexact.h"
#include "kernel/qlinear/epilogue.h"
#include "kernel/qlinear/record.h"

static float column(const ox_qexact_args *a, size_t tile, size_t c, size_t r)
{
    const ox_qpack *p = a->w;
    const float *x = a->xf + r * a->ldx;
    const size_t block = (size_t)p->code.block;
    double acc = 0.0;
    for (size_t k = 0; k < p->k; k++) {
        const uint8_t *rec = record_at(p, tile, k / block);
        const int q = record_code(p, rec, c, k % block) - record_zero(p, rec, c);
        const double min = p->code.zero == OX_ZERO_MIN ? (double)record_min(p, rec, c) : 0.0;
        acc += (double)x[k] * ((double)record_scale(p, rec, c) * q + min);
    }
    return (float)acc;
}

void ox_qexact_ref(const ox_qexact_args *a, size_t begin, size_t end)
{
    const size_t per_unit = a->w->pairs ? 2 : 1;
    for (size_t u = begin; u < end; u++)
        for (size_t r = 0; r < a->rows; r++) {
            float c[2][OX_QPACK_COLS];
            for (size_t i = 0; i < per_unit * OX_QPACK_COLS; i++)
                c[i / OX_QPACK_COLS][i % OX_QPACK_COLS] =
                    column(a, u * per_unit + i / OX_QPACK_COLS, i % OX_QPACK_COLS, r);
            finish_row(a, u, r, c[0], c[1]);
        }
}
