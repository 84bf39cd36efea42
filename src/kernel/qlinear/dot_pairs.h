/* dot_pairs.h - for tiers without a byte dot product: products of unsigned and signed bytes in
 * pairs, which saturate at 16 bits. 4-bit codes: a block of 32 stays within 16*15*127 = 30480, so
 * sums are kept in 16 bits to its end. 8-bit codes: split at bit 7
 * (2*127*127 and 2*128*127 fit). */
enum { DOT_NEEDS_BITS = 1 };
#define LARGE_KINDS LARGE_ANY

static inline qi dot_begin(qi init)
{
    (void)init;
    return qi_zero();
}
static inline qi dot_step(qi acc, qi codes, qi x, int bits)
{
    if (bits == 4) return ADD16(acc, MADDUBS(codes, x));
    const qi low = MADDUBS(AND(codes, SET8(0x7f)), x), high = MADDUBS(AND(codes, SET8(-128)), x);
    return ADD32(acc, ADD32(MADD(low, SET16(1)), MADD(high, SET16(1))));
}
static inline qi dot_end(qi acc, qi init, int bits)
{
    return ADD32(init, bits == 4 ? MADD(acc, SET16(1)) : acc);
}
