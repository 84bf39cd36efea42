/* philox.h - counter-based random numbers: the same for a (seed, position, token id) on every
 * device, whatever the batch, thread count or order of evaluation.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): key = seed
 * (low, high), counter = (token id, 0, position low, position high); word 0 of
 * the result is used. */
#ifndef OX_KERNEL_DRAW_PHILOX_H
#define OX_KERNEL_DRAW_PHILOX_H
#include <math.h>
#include <stdint.h>

static inline void ox_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = n0;
        c[1] = (uint32_t)p1;
        c[2] = n2;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

/* Uniform in (0, 1): (word + 1/2) / 2^32. */
static inline double ox_philox_uniform(uint64_t seed, uint64_t position, uint32_t id)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {id, 0, (uint32_t)position, (uint32_t)(position >> 32)};
    uint32_t word[4];
    ox_philox4x32(counter, key, word);
    return ((double)word[0] + 0.5) * 0x1p-32;
}

/* Uniform in (0, 1) of a position, from the stream that no token id draws from: counter word 1
 * is 1. */
static inline double ox_philox_coin(uint64_t seed, uint64_t position)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {0, 1, (uint32_t)position, (uint32_t)(position >> 32)};
    uint32_t word[4];
    ox_philox4x32(counter, key, word);
    return ((double)word[0] + 0.5) * 0x1p-32;
}

/* Standard Gumbel noise: -log(-log(u)). */
static inline double ox_gumbel(uint64_t seed, uint64_t position, uint32_t id)
{
    return -log(-log(ox_philox_uniform(seed, position, id)));
}
#endif
