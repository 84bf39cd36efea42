/* Compresses a register at a time; four that hold nothing are skipped at once. Writing behind what
 * was read keeps in-place use right: place n never runs ahead of i. */
#include "kernel/cut/cut.h"

#include <immintrin.h>

static inline size_t put(const ox_cut_args *a, size_t i, __mmask16 m, __m512 x, size_t n)
{
    _mm512_storeu_ps(a->values + n, _mm512_maskz_compress_ps(m, x));
    if (a->kept_ids) {
        const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        const __m512i id = a->ids ? _mm512_loadu_si512(a->ids + i)
                                  : _mm512_add_epi32(iota, _mm512_set1_epi32((int)i));
        _mm512_storeu_si512(a->kept_ids + n, _mm512_maskz_compress_epi32(m, id));
    }
    return n + (size_t)__builtin_popcount(m);
}

void ox_cut_avx512(const ox_cut_args *a)
{
    const __m512 floor = _mm512_set1_ps(a->floor), ceiling = _mm512_set1_ps(a->ceiling);
    size_t i = 0, n = 0;
    for (; i + 64 <= a->n; i += 64) {
        __m512 x[4];
        __mmask16 m[4];
        for (size_t j = 0; j < 4; j++) {
            x[j] = _mm512_loadu_ps(a->x + i + 16 * j);
            m[j] = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x[j], floor, _CMP_GE_OQ), x[j],
                                           ceiling, _CMP_NGE_UQ);
        }
        if (!(m[0] | m[1] | m[2] | m[3])) continue;
        for (size_t j = 0; j < 4; j++)
            n = put(a, i + 16 * j, m[j], x[j], n);
    }
    for (; i < a->n; i++) {
        if (!(a->x[i] >= a->floor) || a->x[i] >= a->ceiling) continue;
        const int32_t id = a->ids ? a->ids[i] : (int32_t)i;
        a->values[n] = a->x[i];
        if (a->kept_ids) a->kept_ids[n] = id;
        n++;
    }
    *a->n_kept = n;
}
