/* bench.h - what the forms of `oxgen bench` share: samples, their statistics, timing. */
#ifndef OX_CLI_BENCH_H
#define OX_CLI_BENCH_H
#include "cli/cli.h"

enum { BENCH_SAMPLES = 200 };

typedef struct bench_samples {
    double v[BENCH_SAMPLES];
    size_t n;
} bench_samples;

/* Quantile 0..1; see base/stats.h. */
double bench_quantile(const bench_samples *s, double q);
void bench_put_samples(ox_buf *out, const bench_samples *s); /* JSON array */
void bench_put_machine(ox_buf *out);                         /* JSON object: the machine card */

int bench_model(const cli_options *o);
int bench_micro(const cli_options *o);   /* args behind "micro": parts of names; none = every row */
int bench_diff(const cli_options *o);    /* args behind "diff": two files of results */
int bench_kernels(const cli_options *o); /* oxgen kernels --time */

/* Sampling ends when the 95 % interval of the median is within `width` of it, or earlier. */
typedef struct bench_limits {
    size_t samples; /* at most, 1 to BENCH_SAMPLES */
    int join;       /* when there are so many: make longer ones of pairs and go on */
    double seconds; /* at most */
    double width;   /* 0.01 = 1 % to either side */
} bench_limits;

/* -r is absent or lies in 1 to BENCH_SAMPLES; else the exit code of a usage error. */
int bench_check_repeat(const cli_options *o);
/* Milliseconds of one run; *per_sample runs make a sample. */
ox_status bench_time(ox_micro_case *c, const bench_limits *limits, bench_samples *ms,
                     size_t *per_sample, ox_err *err);
/* The least milliseconds that reading its bytes or doing its operations takes on its threads;
 * 0 = nothing limits it. *kind: "read", "float" or "int8". */
ox_status bench_roof(const ox_micro_cost *cost, double seconds, double *ms, const char **kind,
                     ox_err *err);
const char *bench_ms_text(double ms, char text[32]); /* "12.3 us" */
#endif
