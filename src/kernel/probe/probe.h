/* probe.h - what this machine can do at most: a plain read, and a chain of integer products.
 *
 *   read: out[i_lane] = xor of the 64-bit words at lane, lane + 8, lane + 16 ...   (8 lanes)
 *   products: `repeats` rounds of 8-bit multiply-adds from registers, or of float32 ones with
 *   `floats`; returns the operations done (a multiply and an add count as two)
 *
 * The roofs that benchmarks print beside their figures come from these. */
#ifndef OX_KERNEL_PROBE_H
#define OX_KERNEL_PROBE_H
#include "kernel/kernel.h"

#include <stdint.h>

typedef struct ox_probe_args {
    const uint64_t *words; /* [n_words], aligned to 64; n_words a multiple of 32 */
    size_t n_words;
    uint64_t out[8];
    size_t repeats;
    bool floats;
    double ops; /* result of the products part */
} ox_probe_args;

/* Reads words [begin, end) (multiples of 32) into out, then runs the products. */
typedef void ox_probe_fn(ox_probe_args *a, size_t begin, size_t end);

extern const ox_kernel_row ox_probe_rows[];

#define OX_CPU_KERNEL(fn, needs, tol, accepts) ox_probe_fn fn;
#include "kernel/probe/kernels.def"
#undef OX_CPU_KERNEL
#endif
