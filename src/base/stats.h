/* stats.h - what a handful of noisy samples say: quantiles, and intervals of ratios by drawing
 * anew.
 *
 * Pure functions: the same samples and seed give the same bits everywhere. At most OX_STATS_MOST
 * samples and OX_STATS_ROUNDS rounds are looked at; what is beyond is left out. */
#ifndef OX_BASE_STATS_H
#define OX_BASE_STATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OX_STATS_MOST = 4096, OX_STATS_ROUNDS = 64, OX_STATS_LEAST = 5 };

/* Quantile 0..1 by linear interpolation between the two nearest samples; 0 for none. */
double ox_stats_quantile(const double *v, size_t n, double q);
double ox_stats_median(const double *v, size_t n);

typedef struct ox_summary {
    size_t n;
    double median, min, max, q1, q3;
} ox_summary;

ox_summary ox_stats_summary(const double *v, size_t n);

/* Samples in rounds: round k is v[end[k-1] .. end[k]). Samples of one round are no independent
 * witnesses, so rounds are drawn first and then samples within each. n_rounds 0 = one round of all.
 */
typedef struct ox_rounds {
    const double *v;
    size_t n;
    const size_t *end;
    size_t n_rounds;
} ox_rounds;

typedef struct ox_interval {
    double middle, lo, hi; /* lo and hi are NAN when there are too few samples for an interval */
} ox_interval;

/* Interval of median(a) / median(b), both drawn anew and independently: honest under drifts that
 * touch both, and it needs the two to be well apart when samples are few. confidence: 0.95. */
ox_interval ox_stats_ratio(ox_rounds a, ox_rounds b, double confidence, uint64_t seed);
/* Interval of the median of a[i] / b[i], pairs drawn anew: sharper where a[i] and b[i] were
 * measured side by side. */
ox_interval ox_stats_ratio_paired(const double *a, const double *b, size_t n, double confidence,
                                  uint64_t seed);
bool ox_interval_known(ox_interval i);
bool ox_interval_holds(ox_interval i, double x); /* true as well when it is not known */
#endif
