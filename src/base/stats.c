/* stats.c - quantiles by sorting a copy; intervals by the percentile bootstrap with splitmix64. The
 * median of a drawn sample is found by counting ranks of the sorted original, so a draw costs O(n)
 * and no sort. */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 4000 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t sorted_copy(double out[OX_STATS_MOST], const double *v, size_t n)
{
    if (n > OX_STATS_MOST) n = OX_STATS_MOST;
    if (n) memcpy(out, v, n * sizeof(*v));
    qsort(out, n, sizeof(*out), by_value);
    return n;
}

static double quantile_sorted(const double *v, size_t n, double q)
{
    if (!n) return 0;
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    const double next = i + 1 < n ? v[i + 1] : v[i];
    return v[i] + (at - (double)i) * (next - v[i]);
}

double ox_stats_quantile(const double *v, size_t n, double q)
{
    double sorted[OX_STATS_MOST];
    n = sorted_copy(sorted, v, n);
    return quantile_sorted(sorted, n, q);
}

double ox_stats_median(const double *v, size_t n)
{
    return ox_stats_quantile(v, n, 0.5);
}

ox_summary ox_stats_summary(const double *v, size_t n)
{
    double sorted[OX_STATS_MOST];
    n = sorted_copy(sorted, v, n);
    return (ox_summary){.n = n,
                        .median = quantile_sorted(sorted, n, 0.5),
                        .min = quantile_sorted(sorted, n, 0),
                        .max = quantile_sorted(sorted, n, 1),
                        .q1 = quantile_sorted(sorted, n, 0.25),
                        .q3 = quantile_sorted(sorted, n, 0.75)};
}

static uint64_t next(uint64_t *s) /* splitmix64 */
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Median of as many draws as there are, from n sorted samples. */
static double draw_median(const double *v, size_t n, uint64_t *seed)
{
    uint16_t count[OX_STATS_MOST];
    size_t seen = 0, at = 0;
    memset(count, 0, n * sizeof(count[0]));
    for (size_t i = 0; i < n; i++)
        count[next(seed) % n]++;
    while ((seen += count[at]) <= (n - 1) / 2)
        at++;
    const size_t low = at;
    while (seen <= n / 2)
        seen += count[++at];
    return (v[low] + v[at]) / 2;
}

/* Rounds with each one's samples sorted. */
typedef struct sorted_rounds {
    double v[OX_STATS_MOST];
    size_t n, end[OX_STATS_ROUNDS], n_rounds;
} sorted_rounds;

static void sort_rounds(sorted_rounds *s, const ox_rounds *r)
{
    size_t at = 0;
    s->n = r->n < OX_STATS_MOST ? r->n : OX_STATS_MOST;
    s->n_rounds = 0;
    if (s->n) memcpy(s->v, r->v, s->n * sizeof(s->v[0]));
    for (size_t k = 0; k < r->n_rounds && k < OX_STATS_ROUNDS; k++)
        if (r->end[k] > at && r->end[k] <= s->n) s->end[s->n_rounds++] = at = r->end[k];
    if (!s->n_rounds) s->end[s->n_rounds++] = s->n;
    for (size_t k = 0, begin = 0; k < s->n_rounds; begin = s->end[k++])
        qsort(s->v + begin, s->end[k] - begin, sizeof(s->v[0]), by_value);
}

/* Median over drawn rounds of the median of draws within each. */
static double draw(const sorted_rounds *s, uint64_t *seed)
{
    double medians[OX_STATS_ROUNDS];
    if (s->n_rounds == 1) return draw_median(s->v, s->end[0], seed);
    for (size_t i = 0; i < s->n_rounds; i++) {
        const size_t k = next(seed) % s->n_rounds, begin = k ? s->end[k - 1] : 0;
        medians[i] = draw_median(s->v + begin, s->end[k] - begin, seed);
    }
    qsort(medians, s->n_rounds, sizeof(medians[0]), by_value);
    return quantile_sorted(medians, s->n_rounds, 0.5);
}

static bool enough(const sorted_rounds *s)
{
    return s->n_rounds > 1 ? s->n_rounds >= OX_STATS_LEAST : s->n >= OX_STATS_LEAST;
}

static void cut(ox_interval *out, double draws[DRAWS], double confidence)
{
    const double tail = (1 - confidence) / 2;
    qsort(draws, DRAWS, sizeof(draws[0]), by_value);
    out->lo = draws[(size_t)(tail * DRAWS)];
    out->hi = draws[DRAWS - 1 - (size_t)(tail * DRAWS)];
}

ox_interval ox_stats_ratio(ox_rounds a, ox_rounds b, double confidence, uint64_t seed)
{
    sorted_rounds x, y;
    double draws[DRAWS];
    sort_rounds(&x, &a);
    sort_rounds(&y, &b);
    ox_interval out = {ox_stats_median(a.v, a.n) / ox_stats_median(b.v, b.n), (double)NAN,
                       (double)NAN};
    if (!enough(&x) || !enough(&y)) return out;
    for (size_t i = 0; i < DRAWS; i++) {
        const double base = draw(&y, &seed);
        draws[i] = draw(&x, &seed) / base;
    }
    cut(&out, draws, confidence);
    return out;
}

ox_interval ox_stats_ratio_paired(const double *a, const double *b, size_t n, double confidence,
                                  uint64_t seed)
{
    double ratios[OX_STATS_MOST], draws[DRAWS];
    if (n > OX_STATS_MOST) n = OX_STATS_MOST;
    for (size_t i = 0; i < n; i++)
        ratios[i] = a[i] / b[i];
    qsort(ratios, n, sizeof(ratios[0]), by_value);
    ox_interval out = {quantile_sorted(ratios, n, 0.5), (double)NAN, (double)NAN};
    if (n < OX_STATS_LEAST) return out;
    for (size_t i = 0; i < DRAWS; i++)
        draws[i] = draw_median(ratios, n, &seed);
    cut(&out, draws, confidence);
    return out;
}

bool ox_interval_known(ox_interval i)
{
    return i.lo == i.lo && i.hi == i.hi;
}

bool ox_interval_holds(ox_interval i, double x)
{
    return !ox_interval_known(i) || (i.lo <= x && x <= i.hi);
}
