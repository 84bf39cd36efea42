/* qweights.h - random block-quantised weights for the tests of qlinear and qexact: raw arrays as a
 * file has them, and the pack made of them. */
#ifndef OX_TESTS_QWEIGHTS_H
#define OX_TESTS_QWEIGHTS_H
#include "kernel/qlinear/pack.h"
#include "tensor/half.h"
#include "tests/ktest/ktest.h"

typedef struct qform {
    int32_t bits, block;
    int zeros;   /* 0 none, 1 codes, 2 floats */
    bool f16;    /* scales (and minima) are exact halves */
    int extreme; /* 0 random codes; 1 all lowest, 2 all highest, 3 alternating by row */
} qform;

typedef struct qweights {
    ktest_buf codes, scales, zeros, packed;
    ox_weight w[2];
    const ox_weight *list[2];
    ox_qpack pack;
} qweights;

static inline float qweights_float(float lo, float hi, bool f16)
{
    const float f = ktest_uniform(lo, hi) * (ktest_bits() & 1 ? 1.0f : -1.0f);
    return f16 ? ox_f16_to_f32(ox_f32_to_f16(f)) : f;
}

static inline void qweights_fill(qweights *q, qform f, size_t rows, size_t blocks)
{
    const uint8_t low_high[4] = {0, 0x00, 0xff, 0};
    uint8_t *codes = q->codes.p, *zeros = q->zeros.p;
    float *scales = q->scales.p, *minima = q->zeros.p;
    for (size_t i = 0; i < q->codes.n; i++) {
        const size_t row = i / (q->codes.n / rows);
        codes[i] = f.extreme == 3 ? (uint8_t)(row % 2 ? 0xff : 0)
                   : f.extreme    ? low_high[f.extreme]
                                  : (uint8_t)ktest_bits();
    }
    for (size_t i = 0; i < rows * blocks; i++) {
        scales[i] = qweights_float(0.002f, 0.02f, f.f16);
        /* halves: a small power of two keeps zero*scale a half */
        if (f.zeros == 2)
            minima[i] = f.f16 ? (float)(1u << (ktest_bits() % 4)) : ktest_uniform(0, 15);
    }
    for (size_t i = 0; f.zeros == 1 && i < q->zeros.n; i++)
        zeros[i] = (uint8_t)ktest_bits();
}

/* n rows of k in two weights (the second may be absent), packed. */
static inline void qweights_open(qweights *q, qform f, size_t n, size_t k, size_t n_first,
                                 bool pairs)
{
    const size_t blocks = (k + (size_t)f.block - 1) / (size_t)f.block;
    const size_t row_codes = blocks * (size_t)(f.block / 8 * f.bits);
    const size_t row_zeros = f.zeros == 1   ? (blocks * (size_t)f.bits + 7) / 8
                             : f.zeros == 2 ? blocks * 4
                                            : 0;
    *q = (qweights){.codes = ktest_bytes(n * row_codes),
                    .scales = ktest_floats(n * blocks),
                    .zeros = ktest_bytes(n * row_zeros)};
    qweights_fill(q, f, n, blocks);
    for (int i = 0; i < 2; i++) {
        const size_t first = i ? n_first : 0, rows = i ? n - n_first : n_first;
        q->w[i] = (ox_weight){.name = OX_STR("test"),
                              .format = OX_FORMAT_NBITS,
                              .rows = (int64_t)rows,
                              .cols = (int64_t)k,
                              .bytes = rows * (row_codes + row_zeros + 4 * blocks)};
        q->w[i].nbits = (ox_nbits){.bits = f.bits,
                                   .block = f.block,
                                   .codes = (uint8_t *)q->codes.p + first * row_codes,
                                   .scales = (float *)q->scales.p + first * blocks,
                                   .scale_dtype = OX_DTYPE_F32,
                                   .zeros_dtype = OX_DTYPE_U8};
        if (f.zeros) q->w[i].nbits.zeros = (uint8_t *)q->zeros.p + first * row_zeros;
        if (f.zeros == 2) q->w[i].nbits.zeros_dtype = OX_DTYPE_F32;
        q->list[i] = &q->w[i];
        if (rows && ox_weight_check(&q->w[i], NULL)) ktest_fail("the test's own weight is wrong");
    }
    const size_t n_weights = n_first == n ? 1 : 2;
    if (ox_qpack_shape(&q->pack, q->list, n_weights, pairs, NULL)) ktest_fail("no shape");
    if (q->pack.code.scale_f16 != f.f16) ktest_fail("scale_f16 is %d", q->pack.code.scale_f16);
    q->packed = ktest_bytes(q->pack.bytes);
    q->pack.data = q->packed.p;
    const size_t mid = q->pack.units / 2; /* two ranges, the last first */
    if (ox_qpack_fill(&q->pack, q->list, n_weights, mid, q->pack.units, NULL) ||
        ox_qpack_fill(&q->pack, q->list, n_weights, 0, mid, NULL))
        ktest_fail("no fill");
}

static inline void qweights_close(qweights *q)
{
    ktest_free(&q->codes);
    ktest_free(&q->scales);
    ktest_free(&q->zeros);
    ktest_free(&q->packed);
}

/* Row n of both weights one behind the other: values, and the size of the terms that make up a
 * value (|scale*code| + |min|), which is what float rounding is measured against. */
static inline void qweights_row(const qweights *q, size_t n, float *values, float *sizes)
{
    const size_t first = (size_t)q->w[0].rows;
    const ox_weight *w = n < first ? &q->w[0] : &q->w[1];
    const int64_t r = (int64_t)(n < first ? n : n - first);
    const ox_nbits *b = &w->nbits;
    const size_t blocks = ((size_t)w->cols + (size_t)b->block - 1) / (size_t)b->block;
    ox_weight_row_f32(w, r, values);
    for (size_t k = 0; k < (size_t)w->cols; k++) {
        const float *scales = (const float *)b->scales + (size_t)r * blocks;
        const float s = scales[k / (size_t)b->block];
        const float size = (s < 0 ? -s : s) * (float)(1 << b->bits);
        sizes[k] = 2.0f * size;
    }
}
#endif
