/* Codes are shifted out, centred and converted. */
#include "kernel/qlinear/lanes_avx2.h"

typedef int code_table;

static inline code_table code_table_of(int middle)
{
    return middle;
}

static inline qf code_float(qi w, int i, int bits, int middle, code_table table)
{
    (void)table;
    const qi mask = _mm256_set1_epi32((1 << bits) - 1);
    const qi code = _mm256_and_si256(_mm256_srli_epi32(w, bits * i), mask);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(code, _mm256_set1_epi32(middle)));
}

static inline qf add_floats(qf a, qf b)
{
    return _mm256_add_ps(a, b);
}

#define QEXACT_NAME ox_qexact_avx2
#include "kernel/qexact/body.h"
