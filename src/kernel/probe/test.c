/* The read part sees every word once, whatever the range; the products part counts its work. */
#include "kernel/probe/probe.h"
#include "tests/ktest/ktest.h"

#include <string.h>

void ktest_probe(void);
void ktest_probe(void)
{
    enum { WORDS = 4096 };
    for (const ox_kernel_row *row = ox_probe_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        ktest_buf words = ktest_bytes(WORDS * 8);
        uint64_t *w = words.p;
        for (size_t i = 0; i < WORDS; i++)
            w[i] = ktest_bits();
        for (size_t begin = 0; begin < WORDS; begin += 992) {
            ox_probe_args want = {
                .words = w, .n_words = WORDS, .repeats = 3, .floats = begin > 992};
            ox_probe_args got = want;
            ox_probe_ref(&want, begin, WORDS - 32);
            ((ox_probe_fn *)row->fn)(&got, begin, WORDS - 32);
            if (memcmp(want.out, got.out, sizeof(want.out)))
                ktest_fail("words [%zu, %d) read differently", begin, WORDS - 32);
            if (got.ops < want.ops) ktest_fail("%g operations counted", got.ops);
        }
        ktest_free(&words);
        ktest_end(row);
    }
}
