/* A 4-bit code is an index: one permutation of a table of 16 floats reads 16 of them. */
#include "kernel/qlinear/lanes_avx512.h"

typedef __m512 code_table;

static inline code_table code_table_of(int middle)
{
    const __m512i i = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(i, _mm512_set1_epi32(middle)));
}

static inline qf code_float(qi w, int i, int bits, int middle, code_table table)
{
    if (bits == 4) return _mm512_permutexvar_ps(_mm512_srli_epi32(w, (unsigned)(4 * i)), table);
    const qi byte =
        _mm512_and_si512(_mm512_srli_epi32(w, (unsigned)(8 * i)), _mm512_set1_epi32(255));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(byte, _mm512_set1_epi32(middle)));
}

static inline qf add_floats(qf a, qf b)
{
    return _mm512_add_ps(a, b);
}

#define QEXACT_NAME ox_qexact_avx512
#include "kernel/qexact/body.h"
