/* bench.h - what the three forms of `oxgen bench` share: samples and their statistics. */
#ifndef OX_CLI_BENCH_H
#define OX_CLI_BENCH_H
#include "cli/cli.h"

enum { BENCH_SAMPLES = 200 };

typedef struct bench_samples {
    double v[BENCH_SAMPLES];
    size_t n;
} bench_samples;

/* Quantile 0..1 by linear interpolation over the sorted samples; 0 for none. */
double bench_quantile(const bench_samples *s, double q);
void bench_put_samples(ox_buf *out, const bench_samples *s); /* JSON array */
void bench_put_machine(ox_buf *out);                         /* JSON object: the machine card */

int bench_model(const cli_options *o);
#endif
