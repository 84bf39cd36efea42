/* metrics.c - what is read off the runs of an arm. */
#include "cli/compare/compare.h"

#include "base/hash.h"

#include <stddef.h>

enum { CONFIDENCE_PERMILLE = 999 };

const metric metrics[] = {
#define OX_METRIC(member, title, unit, more, in_ratio, scale)                                      \
    {#member, title, unit, offsetof(arm_run, member), more, in_ratio, scale},
#include "cli/compare/metrics.def"
#undef OX_METRIC
};
const size_t n_metrics = OX_COUNT(metrics);

static double member(const arm_run *r, size_t at)
{
    return *(const double *)(const void *)((const char *)r + at);
}

size_t metric_samples(const metric *m, const arm *a, double out[RUNS_MOST])
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_runs; i++) {
        const double v = member(&a->runs[i], m->member) * m->scale;
        if (v > 0) out[n++] = v;
    }
    return n;
}

/* Drawn independently, not in pairs: two arms count as different only when their runs lie well
 * apart. 99.9 %, because several metrics and pairs are looked at together. */
ox_interval metric_ratio(const metric *m, const arm *a, const arm *b)
{
    double x[RUNS_MOST], y[RUNS_MOST];
    const size_t n = metric_samples(m, a, x), k = metric_samples(m, b, y);
    return ox_stats_ratio((ox_rounds){.v = x, .n = n}, (ox_rounds){.v = y, .n = k},
                          CONFIDENCE_PERMILLE / 1000.0, ox_hash64(m->key, strlen(m->key)));
}

double arm_share(const arm *a, bool decode, double *roof)
{
    double shares[RUNS_MOST], roofs[RUNS_MOST];
    size_t n = 0;
    for (size_t i = 0; i < a->n_runs; i++) {
        const arm_run *r = &a->runs[i];
        const double top = decode ? r->roof_decode : r->roof_prefill;
        if (!(top > 0)) continue;
        shares[n] = (decode ? r->decode_tps : r->prefill_tps) / top;
        roofs[n++] = top;
    }
    if (roof) *roof = ox_stats_median(roofs, n);
    return ox_stats_median(shares, n);
}

double arm_token_ms(const arm *a, size_t i)
{
    double v[RUNS_MOST];
    size_t n = 0;
    for (size_t k = 0; k < a->n_runs; k++)
        if (i < a->runs[k].n_new && i) v[n++] = a->runs[k].ms[i] - a->runs[k].ms[i - 1];
    return ox_stats_median(v, n);
}
