/* rope.h - rotary angles: the scaling rules that files state, and the tables of cosines and sines
 * made of them in double precision. */
#ifndef OX_CONVERT_ROPE_H
#define OX_CONVERT_ROPE_H
#include "base/arena.h"
#include "graph/terms.h"

typedef enum ox_rope_kind {
    OX_ROPE_PLAIN,  /* angle = position / theta^(2i/rotary) */
    OX_ROPE_LINEAR, /* ... / factor */
    OX_ROPE_LLAMA3, /* long wavelengths / factor, short ones as they are, a ramp between */
    OX_ROPE_YARN,   /* the same by a ramp over pairs, and the tables times an attention factor */
    OX_ROPE_LONG,   /* per-pair factors, one set up to `original` positions, one beyond */
} ox_rope_kind;

typedef struct ox_rope_rule {
    ox_rope_kind kind;
    int32_t rotary;
    bool interleaved;
    double theta, factor;
    double low_freq, high_freq;  /* LLAMA3 */
    double beta_fast, beta_slow; /* YARN */
    bool untruncated;            /* YARN: the ramp's ends are not rounded to pairs */
    double attention_factor;     /* YARN, LONG: 0 = by the rule */
    int64_t original;            /* LLAMA3, YARN, LONG: context before scaling */
    const float *factors;        /* [rotary/2] divisors of the frequencies, or NULL; LONG: short */
    const float *long_factors;   /* LONG */
} ox_rope_rule;

/* Angle of pair i at position 1, before factors of LONG's other set; exposed for tests. */
double ox_rope_frequency(const ox_rope_rule *rule, int32_t i, bool use_long);
double ox_rope_magnitude(const ox_rope_rule *rule, int64_t context);
/* Tables of n_positions rows in the arena. */
ox_status ox_rope_build(const ox_rotary **out, ox_arena *arena, const ox_rope_rule *rule,
                        int64_t n_positions, ox_err *err);
#endif
