/* wrong_kernel.c - the command line with a wrong kernel: a normalisation in which
 * every sixteenth element is 2 % too large. For the test of `oxgen compare`, which has to call it a
 * fault. Functions called __wrap_x replace x when this program is linked. */
#include "kernel/norm/norm.h"

#define PLANT(fn)                                                                                  \
    ox_norm_fn __real_##fn, __wrap_##fn;                                                           \
    void __wrap_##fn(const ox_norm_args *a, size_t begin, size_t end)                              \
    {                                                                                              \
        __real_##fn(a, begin, end);                                                                \
        for (size_t r = begin; r < end; r++)                                                       \
            for (size_t i = 0; i < a->dim; i += 16)                                                \
                a->y[r * a->ldy + i] *= 1.02f;                                                     \
    }

PLANT(ox_norm_f32_avx512)
PLANT(ox_norm_f32_avx2)
PLANT(ox_norm_f32_ref)
