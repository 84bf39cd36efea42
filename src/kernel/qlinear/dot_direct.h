/* dot_direct.h - for tiers with a byte dot product (DPBUSD): it adds to int32, any codes fit. */
enum { DOT_NEEDS_BITS = 0 };
#define LARGE_KINDS FOR_ZERO

static inline qi dot_begin(qi init)
{
    return init;
}
static inline qi dot_step(qi acc, qi codes, qi x, int bits)
{
    (void)bits;
    return DPBUSD(acc, codes, x);
}
static inline qi dot_end(qi acc, qi init, int bits)
{
    (void)init;
    (void)bits;
    return acc;
}
