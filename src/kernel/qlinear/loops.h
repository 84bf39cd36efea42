/* loops.h - what small.h and large.h share: sizes, prefetch, loads of a record's parts, and the
 * start value of integer sums. Functions that take R, NV, bits, zero are inlined with constants:
 * the loops over them unroll and the accumulators stay in registers. */
#ifndef OX_KERNEL_QLINEAR_LOOPS_H
#define OX_KERNEL_QLINEAR_LOOPS_H
#include "kernel/qlinear/epilogue.h"
#include "kernel/qlinear/qlinear.h"

#include "base/compiler.h"

enum {
    COLS = OX_QPACK_COLS,
    REGS = COLS / QW,   /* registers that hold a tile's columns */
    PER_LINE = 16 / QW, /* registers that a 64-byte line of codes fills */
    CHUNK = 512,        /* k of a panel: 16 KiB of codes */
    CHUNK_BLOCKS = CHUNK / 16,
    STRIP = 192,     /* rows that share an unpacked panel */
    NEAR = 2048,     /* bytes ahead: to the first-level cache, */
    FAR = 16384,     /* and to the second */
    SMALL_TILES = 4, /* tiles that are read side by side for few rows */
    LAG = 2,         /* rows between a row's last product and its scaling */
};

OX_INLINE void prefetch(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64) {
        _mm_prefetch((const char *)((uintptr_t)p + FAR + i), _MM_HINT_T1);
        _mm_prefetch((const char *)((uintptr_t)p + NEAR + i), _MM_HINT_T0);
    }
}

/* Offset of register v's codes in the first step of a record. */
OX_INLINE size_t codes_offset(int v, size_t group_bytes)
{
    return (size_t)(v / PER_LINE) * group_bytes + (size_t)(v % PER_LINE * QW * 4);
}

OX_INLINE qf load_floats(const uint8_t *p, int v, bool f16)
{
    return f16 ? qf_load_f16(p + v * QW * 2) : qf_load(p + v * QW * 4);
}

OX_INLINE int32_t x_word(const int8_t *x, size_t i)
{
    int32_t w;
    memcpy(&w, x + 4 * i, 4);
    return w;
}

/* How a loop treats zeros: one of ox_zero_kind as a constant, or all of them at run time for a
 * product and a branch more a block, where the number of copies of a loop matters more. */
enum { ANY_ZERO = 3 };

/* Integer sums start from minus zero times the row's sum: a word of the row, and, unless the zero
 * is part of the word (constant MIDDLE), the columns' zeros. */
OX_INLINE int32_t word_factor(int bits, int zero)
{
    return zero == OX_ZERO_MIDDLE ? -(1 << (bits - 1)) : -1;
}

OX_INLINE qi zero_init(int32_t word, qi zeros, int zero)
{
    if (zero == OX_ZERO_MIN) return qi_zero();
    return zero == OX_ZERO_MIDDLE ? qi_set1(word) : qi_mul16(zeros, qi_set1(word));
}

/* Zeros of register v; at: behind a record's scales. */
OX_INLINE qi load_zeros(const ox_code_layout *l, const uint8_t *at, int v)
{
    if (l->zero == OX_ZERO_CODE) return qi_load_u8(at + v * QW);
    return l->zero == OX_ZERO_MIDDLE ? qi_set1(1 << (l->bits - 1)) : qi_zero();
}

/* Calls CASE with the zero kind as a constant. */
#define FOR_ZERO(kind, CASE, ...)                                                                  \
    do {                                                                                           \
        if ((kind) == OX_ZERO_MIDDLE)                                                              \
            CASE(OX_ZERO_MIDDLE, __VA_ARGS__);                                                     \
        else if ((kind) == OX_ZERO_CODE)                                                           \
            CASE(OX_ZERO_CODE, __VA_ARGS__);                                                       \
        else                                                                                       \
            CASE(OX_ZERO_MIN, __VA_ARGS__);                                                        \
    } while (0)
#endif
