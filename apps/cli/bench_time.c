/* bench_time.c - times one micro-benchmark, and the roof that it is held against.
 *
 * A sample is the mean of so many runs that the cycle counter's own cost vanishes. Samples are
 * taken until the median is known well enough. When there is no room for more, neighbours are
 * joined into samples twice as long: slow drifts then average out. Preemption only makes samples
 * longer, so medians and minima are shown, never means. */
#include "cli/bench.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

int bench_check_repeat(const cli_options *o)
{
    if (!o->has_bench_repeat || (o->bench_repeat >= 1 && o->bench_repeat <= BENCH_SAMPLES))
        return 0;
    return cli_usage("-r expects 1 to %d, found %lld", BENCH_SAMPLES, o->bench_repeat);
}

static const double SAMPLE_SECONDS = 100e-6;
enum { LEAST_SAMPLES = 10, MOST_RUNS = 1 << 24 };

static ox_status time_runs(ox_micro_case *c, size_t runs, double *seconds, ox_err *err)
{
    const uint64_t start = ox_clock_cycles();
    OX_TRY(ox_micro_run(c, runs, err));
    *seconds = (double)(ox_clock_cycles() - start) / ox_clock_cycles_per_second();
    return OX_OK;
}

static void join_neighbours(bench_samples *s)
{
    for (size_t i = 0; i < s->n / 2; i++)
        s->v[i] = (s->v[2 * i] + s->v[2 * i + 1]) / 2;
    s->n /= 2;
}

/* Half the 95 % interval of the median, from the order of the
 * samples alone (binomial), relative. */
static double interval(const bench_samples *s)
{
    const double n = (double)s->n, half = 0.98 * sqrt(n);
    const double lo = bench_quantile(s, fmax(0, (n / 2 - half) / n));
    const double hi = bench_quantile(s, fmin(1, (n / 2 + half) / n));
    return (hi - lo) / 2 / bench_quantile(s, 0.5);
}

ox_status bench_time(ox_micro_case *c, const bench_limits *limits, bench_samples *ms,
                     size_t *per_sample, ox_err *err)
{
    double took = 0;
    size_t runs = 1;
    ms->n = 0;
    (void)ox_clock_cycles_per_second();  /* calibrates */
    OX_TRY(time_runs(c, 1, &took, err)); /* warms up */
    OX_TRY(time_runs(c, runs, &took, err));
    while (took < SAMPLE_SECONDS && runs < MOST_RUNS) {
        runs *= 2;
        OX_TRY(time_runs(c, runs, &took, err));
    }
    const double stop = ox_clock_seconds() + limits->seconds;
    do {
        OX_TRY(time_runs(c, runs, &took, err));
        if (ms->n == limits->samples) {
            join_neighbours(ms);
            runs *= 2;
            continue; /* that one was too short */
        }
        ms->v[ms->n++] = took / (double)runs * 1e3;
        if (ms->n >= limits->samples && !limits->join) break;
        if (ms->n >= LEAST_SAMPLES && ms->n % 5 == 0 && interval(ms) <= limits->width) break;
        if (cli_interrupted()) return OX_FAIL(err, OX_CANCELLED, "interrupted");
    } while (ox_clock_seconds() < stop);
    *per_sample = runs;
    return OX_OK;
}

static void raise_roof(double *ms, const char **kind, double seconds, const char *name)
{
    if (seconds * 1e3 <= *ms) return;
    *ms = seconds * 1e3;
    *kind = name;
}

ox_status bench_roof(const ox_micro_cost *cost, double seconds, double *ms, const char **kind,
                     ox_err *err)
{
    enum { LEAST_BYTES = 1024 };
    double rate;
    *ms = 0;
    *kind = NULL;
    if (cost->bytes >= LEAST_BYTES) {
        OX_TRY(ox_roof_read((size_t)cost->bytes, cost->n_threads, seconds, &rate, err));
        raise_roof(ms, kind, cost->bytes / rate, "read");
    }
    if (cost->float_ops > 0) {
        OX_TRY(ox_roof_float(cost->n_threads, seconds, &rate, err));
        raise_roof(ms, kind, cost->float_ops / rate, "float");
    }
    if (cost->int8_ops > 0) {
        OX_TRY(ox_roof_int8(cost->n_threads, seconds, &rate, err));
        raise_roof(ms, kind, cost->int8_ops / rate, "int8");
    }
    return OX_OK;
}

const char *bench_ms_text(double ms, char text[32])
{
    const double us = ms * 1e3;
    if (us < 1)
        snprintf(text, 32, "%.1f ns", us * 1e3);
    else if (ms < 1)
        snprintf(text, 32, "%.2f us", us);
    else
        snprintf(text, 32, "%.3f ms", ms);
    return text;
}
