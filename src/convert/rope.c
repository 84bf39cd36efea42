/* rope.c - see rope.h. Tables are filled 64 positions at a time: cosine and sine of the block's
 * first position and of 0..63 come from libm, the rest by the addition theorem in double, whose
 * error (below 1e-15) does not reach float32. */
#include "convert/rope.h"

#include <math.h>

enum { BLOCK = 64 };
static const double PI = 3.14159265358979323846;

static double llama3_frequency(const ox_rope_rule *r, double f)
{
    const double wave = 2 * PI / f;
    const double original = (double)r->original;
    if (wave < original / r->high_freq) return f;
    if (wave > original / r->low_freq) return f / r->factor;
    const double smooth = (original / wave - r->low_freq) / (r->high_freq - r->low_freq);
    return (1 - smooth) * f / r->factor + smooth * f;
}

/* Pair whose wavelength makes `turns` turns over the original context. */
static double yarn_pair(const ox_rope_rule *r, double turns)
{
    return r->rotary * log((double)r->original / (turns * 2 * PI)) / (2 * log(r->theta));
}

static double yarn_frequency(const ox_rope_rule *r, int32_t i, double f)
{
    double low = yarn_pair(r, r->beta_fast), high = yarn_pair(r, r->beta_slow);
    if (!r->untruncated) {
        low = floor(low);
        high = ceil(high);
    }
    if (low < 0) low = 0;
    if (high > r->rotary - 1) high = r->rotary - 1;
    if (high <= low) high = low + 0.001;
    double ramp = (i - low) / (high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return f / r->factor * ramp + f * (1 - ramp);
}

double ox_rope_frequency(const ox_rope_rule *r, int32_t i, bool use_long)
{
    double f = pow(r->theta, -2.0 * i / r->rotary);
    const float *factors = use_long ? r->long_factors : r->factors;
    if (factors) f /= (double)factors[i];
    switch (r->kind) {
    case OX_ROPE_LINEAR:
        return f / r->factor;
    case OX_ROPE_LLAMA3:
        return llama3_frequency(r, f);
    case OX_ROPE_YARN:
        return yarn_frequency(r, i, f);
    case OX_ROPE_PLAIN:
    case OX_ROPE_LONG:
        break;
    }
    return f;
}

double ox_rope_magnitude(const ox_rope_rule *r, int64_t context)
{
    if (r->kind != OX_ROPE_YARN && r->kind != OX_ROPE_LONG) return 1;
    if (r->attention_factor > 0) return r->attention_factor;
    double factor = r->factor;
    if (r->kind == OX_ROPE_YARN) return factor <= 1 ? 1 : 0.1 * log(factor) + 1;
    if (factor <= 0) factor = (double)context / (double)r->original;
    return factor <= 1 ? 1 : sqrt(1 + log(factor) / log((double)r->original));
}

static void fill(float *cos_table, float *sin_table, const ox_rope_rule *r, bool use_long,
                 int64_t n, double magnitude)
{
    const int32_t half = r->rotary / 2;
    double fine_c[BLOCK], fine_s[BLOCK];
    for (int32_t i = 0; i < half; i++) {
        const double f = ox_rope_frequency(r, i, use_long);
        for (int j = 0; j < BLOCK; j++) {
            fine_c[j] = cos(f * j);
            fine_s[j] = sin(f * j);
        }
        for (int64_t p = 0; p < n; p += BLOCK) {
            const double c = cos(f * (double)p) * magnitude, s = sin(f * (double)p) * magnitude;
            const int m = (int)(n - p < BLOCK ? n - p : BLOCK);
            for (int j = 0; j < m; j++) {
                cos_table[(p + j) * half + i] = (float)(c * fine_c[j] - s * fine_s[j]);
                sin_table[(p + j) * half + i] = (float)(s * fine_c[j] + c * fine_s[j]);
            }
        }
    }
}

ox_status ox_rope_build(const ox_rotary **out, ox_arena *arena, const ox_rope_rule *rule,
                        int64_t n_positions, ox_err *err)
{
    const size_t n_tables = rule->kind == OX_ROPE_LONG ? 4 : 2;
    size_t count;
    ox_rotary *rotary = ox_arena_take(arena, sizeof *rotary);
    if (!rotary) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for rotary tables");
    if (n_positions <= 0 || n_positions > INT32_MAX || rule->rotary <= 0 || rule->rotary % 2 ||
        !ox_size_mul((size_t)n_positions, (size_t)rule->rotary / 2, &count))
        return OX_FAIL(err, OX_BAD_FILE,
                       "rotary tables of %lld positions and %d channels cannot be made: positions "
                       "must be positive, channels even",
                       (long long)n_positions, rule->rotary);
    float *tables[4] = {0};
    for (size_t i = 0; i < n_tables; i++) {
        tables[i] = ox_arena_take_n(arena, count, sizeof(float));
        if (!tables[i])
            return OX_FAIL(err, OX_NO_MEMORY,
                           "out of memory for rotary tables of %lld positions: use a smaller "
                           "context",
                           (long long)n_positions);
    }
    const double magnitude = ox_rope_magnitude(rule, n_positions);
    fill(tables[0], tables[1], rule, false, n_positions, magnitude);
    if (n_tables == 4) fill(tables[2], tables[3], rule, true, n_positions, magnitude);
    *rotary = (ox_rotary){.rotary = rule->rotary,
                          .interleaved = rule->interleaved,
                          .n_positions = (int32_t)n_positions,
                          .cos_table = tables[0],
                          .sin_table = tables[1],
                          .long_cos = tables[2],
                          .long_sin = tables[3],
                          .switch_length = n_tables == 4 ? (int32_t)rule->original : 0};
    *out = rotary;
    return OX_OK;
}
