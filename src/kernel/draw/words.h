/* words.h - the random words of one vector of ids. An ISA file defines first:
 *   wide           a vector whose 64-bit lanes each hold one 32-bit word (upper half: anything)
 *   wide_all(u64), wide_mul(a, b): 32 x 32 -> 64 bits of every lane, wide_high(a): a >> 32 (upper
 *   half: anything), wide_xor(a, b, c) */
#include "kernel/draw/philox.h"

/* Keys of the ten rounds and what of the first two does not depend on the id. */
typedef struct rounds {
    wide m0, m1, k0[10], k1[10];
    wide first_n1, first_n2;        /* round 1: word 1; what word 2 is XORed with */
    wide second_c0_high, second_n3; /* round 2: high half of m0 * word 0, and its low half */
    wide second_n0;                 /* round 2: what word 0 is XORed with */
} rounds;

static void rounds_start(rounds *r, uint64_t seed, uint64_t position)
{
    const uint32_t M0 = 0xD2511F53u, M1 = 0xCD9E8D57u;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    r->m0 = wide_all(M0);
    r->m1 = wide_all(M1);
    const uint64_t p1 = (uint64_t)M1 * (uint32_t)position;
    const uint32_t c0 = (uint32_t)(p1 >> 32) ^ k0; /* counter word 1 is 0 */
    r->first_n1 = wide_all((uint32_t)p1);
    r->first_n2 = wide_all((uint32_t)(position >> 32) ^ k1);
    const uint64_t p0 = (uint64_t)M0 * c0;
    for (int i = 0; i < 10; i++) {
        r->k0[i] = wide_all(k0);
        r->k1[i] = wide_all(k1);
        if (i == 1) {
            r->second_c0_high = wide_all((uint32_t)(p0 >> 32) ^ k1);
            r->second_n3 = wide_all((uint32_t)p0);
            r->second_n0 = wide_all((uint32_t)p1 ^ k0);
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Word 0 of Philox4x32-10 in the lower half of every lane. */
static inline wide words_of(const rounds *r, wide id)
{
    const wide zero = wide_all(0);
    /* round 1 */
    wide n3 = wide_mul(r->m0, id), n2 = wide_xor(wide_high(n3), r->first_n2, zero);
    /* round 2 */
    wide p1 = wide_mul(r->m1, n2);
    wide c0 = wide_xor(wide_high(p1), r->second_n0, zero), c1 = p1;
    wide c2 = wide_xor(r->second_c0_high, n3, zero), c3 = r->second_n3;
    OX_UNROLL(8)
    for (int i = 2; i < 10; i++) {
        const wide p0 = wide_mul(r->m0, c0);
        p1 = wide_mul(r->m1, c2);
        c0 = wide_xor(wide_high(p1), c1, r->k0[i]);
        c1 = p1;
        c2 = wide_xor(wide_high(p0), c3, r->k1[i]);
        c3 = p0;
    }
    return c0;
}
