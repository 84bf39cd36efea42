/* No compress instruction: the kept lanes' numbers are packed into a register by pext, 4 bits a
 * lane, and permuted. */
#include "kernel/cut/cut.h"

#include <immintrin.h>

/* Lane j of the result = number of the j-th set bit of m. */
static inline __m256i order_of(unsigned m)
{
    const unsigned long long wide = _pdep_u64(m, 0x0101010101010101ull) * 0xffu;
    const unsigned long long lanes = _pext_u64(0x0706050403020100ull, wide);
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)lanes));
}

static inline size_t put(const ox_cut_args *a, size_t i, unsigned m, __m256 x, size_t n)
{
    const __m256i to = order_of(m);
    _mm256_storeu_ps(a->values + n, _mm256_permutevar8x32_ps(x, to));
    if (a->kept_ids) {
        const __m256i iota = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
        const __m256i id = a->ids ? _mm256_loadu_si256((const void *)(a->ids + i))
                                  : _mm256_add_epi32(iota, _mm256_set1_epi32((int)i));
        _mm256_storeu_si256((void *)(a->kept_ids + n), _mm256_permutevar8x32_epi32(id, to));
    }
    return n + (size_t)__builtin_popcount(m);
}

void ox_cut_avx2(const ox_cut_args *a)
{
    const __m256 floor = _mm256_set1_ps(a->floor), ceiling = _mm256_set1_ps(a->ceiling);
    size_t i = 0, n = 0;
    for (; i + 32 <= a->n; i += 32) {
        __m256 x[4];
        unsigned m[4];
        for (size_t j = 0; j < 4; j++) {
            x[j] = _mm256_loadu_ps(a->x + i + 8 * j);
            m[j] = (unsigned)_mm256_movemask_ps(_mm256_and_ps(
                _mm256_cmp_ps(x[j], floor, _CMP_GE_OQ), _mm256_cmp_ps(x[j], ceiling, _CMP_NGE_UQ)));
        }
        if (!(m[0] | m[1] | m[2] | m[3])) continue;
        for (size_t j = 0; j < 4; j++)
            n = put(a, i + 8 * j, m[j], x[j], n);
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
