/* slow_kernel.c - the command line with one kernel a tenth slower: the normalisation does every
 * tenth row twice, of single rows every tenth call. Time and instructions grow by the same tenth.
 * For the test of tools/regress; functions called __wrap_x replace x when this program is linked.
 */
#include "kernel/norm/norm.h"

static unsigned n_calls; /* the micro-benchmark's rows run on one thread */

/* How many of n rows to do twice. */
static size_t again(size_t n)
{
    return n >= 10 ? (n + 5) / 10 : ++n_calls % 10 == 0 ? n : 0;
}

#define PLANT(fn)                                                                                  \
    ox_norm_fn __real_##fn, __wrap_##fn;                                                           \
    void __wrap_##fn(const ox_norm_args *a, size_t begin, size_t end)                              \
    {                                                                                              \
        __real_##fn(a, begin, end);                                                                \
        const size_t n = again(end - begin);                                                       \
        if (n) __real_##fn(a, begin, begin + n);                                                   \
    }

PLANT(ox_norm_f32_avx512)
PLANT(ox_norm_f32_avx2)
PLANT(ox_norm_f32_ref)
