/* record.h - scalar access to the packed layout, for references and tests. */
#ifndef OX_KERNEL_QLINEAR_RECORD_H
#define OX_KERNEL_QLINEAR_RECORD_H
#include "kernel/qlinear/pack.h"
#include "tensor/half.h"

static inline const uint8_t *record_at(const ox_qpack *p, size_t tile, size_t block)
{
    return p->data + tile * p->tile + block * p->record;
}

/* Code of column c (0..31) and k (0..block-1) of a record. */
static inline int record_code(const ox_qpack *p, const uint8_t *rec, size_t c, size_t k)
{
    const size_t block = (size_t)p->code.block, g = c / 16, lane = c % 16;
    if (p->code.bits == 8) return rec[g * block * 16 + k / 4 * 64 + lane * 4 + k % 4];
    return rec[g * block * 8 + k / 8 * 64 + lane * 4 + k % 8 / 2] >> (k % 2 * 4) & 15;
}

static inline float record_float(const ox_qpack *p, const uint8_t *rec, size_t i)
{
    const uint8_t *at = rec + (size_t)(OX_QPACK_COLS * p->code.block * p->code.bits / 8);
    uint16_t h;
    float f;
    if (p->code.scale_f16) {
        memcpy(&h, at + 2 * i, 2);
        return ox_f16_to_f32(h);
    }
    memcpy(&f, at + 4 * i, 4);
    return f;
}

static inline float record_scale(const ox_qpack *p, const uint8_t *rec, size_t c)
{
    return record_float(p, rec, c);
}

static inline float record_min(const ox_qpack *p, const uint8_t *rec, size_t c)
{
    return record_float(p, rec, OX_QPACK_COLS + c);
}

/* What is subtracted from the codes of column c. */
static inline int record_zero(const ox_qpack *p, const uint8_t *rec, size_t c)
{
    if (p->code.zero == OX_ZERO_MIDDLE) return 1 << (p->code.bits - 1);
    return p->code.zero == OX_ZERO_CODE ? rec[p->record - OX_QPACK_COLS + c] : 0;
}
#endif
