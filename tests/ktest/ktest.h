/* ktest.h - the harness every kernel family's test.c uses: guarded buffers, seeded values, and
 * comparison by the row's own tolerance. A family's test.c defines `void ktest_<family>(void)`. */
#ifndef OX_TESTS_KTEST_H
#define OX_TESTS_KTEST_H
#include "kernel/kernel.h"

#include <stdint.h>

/* n bytes, aligned to 64, between guard bands whose bits read as NaN (freeing checks them) and
 * pages that nobody may touch. */
typedef struct ktest_buf {
    void *p;
    size_t n;
    void *raw;
} ktest_buf;

ktest_buf ktest_bytes(size_t n);
static inline ktest_buf ktest_floats(size_t n)
{
    return ktest_bytes(n * sizeof(float));
}
void ktest_free(ktest_buf *b); /* a write outside the buffer fails the current row */

float ktest_uniform(float lo, float hi); /* seeded by the command line */
uint64_t ktest_bits(void);
void ktest_fill(float *p, size_t n, float lo, float hi);

/* True when this machine can run the row; else the row is counted as absent. Every row is run that
 * the hardware has, whatever OXGEN_CPU says. */
int ktest_begin(const ox_kernel_row *row);
void ktest_end(const ox_kernel_row *row);
/* got[i] against want[i] by the row's tolerance: EXACT bitwise; ROUND 8 ulp; SUM
 * FLT_EPSILON*(2+sqrt(k))*scale where scale bounds the sum of the absolute terms (at least |want|).
 * Returns 1 when all agree; the first difference is printed with the message. */
int ktest_same(const ox_kernel_row *row, const float *got, const float *want, size_t n, size_t k,
               float scale, const char *fmt, ...) __attribute__((format(printf, 7, 8)));
void ktest_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#endif
