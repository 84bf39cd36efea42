/* cmd_bench.c - chooses the form of the benchmark, and the statistics all of them use. */
#include "cli/bench.h"

#include "base/cpu.h"
#include "oxgen_build.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const bench_samples *s, double q)
{
    bench_samples sorted = *s;
    if (!s->n) return 0;
    qsort(sorted.v, sorted.n, sizeof(sorted.v[0]), by_value);
    const double at = q * (double)(sorted.n - 1);
    const size_t i = (size_t)at;
    const double next = i + 1 < sorted.n ? sorted.v[i + 1] : sorted.v[i];
    return sorted.v[i] + (at - (double)i) * (next - sorted.v[i]);
}

void bench_put_samples(ox_buf *out, const bench_samples *s)
{
    ox_buf_put_c(out, '[');
    for (size_t i = 0; i < s->n; i++)
        ox_buf_printf(out, "%s%.9g", i ? "," : "", s->v[i]);
    ox_buf_put_c(out, ']');
}

void bench_put_machine(ox_buf *out)
{
    const char *tier = "unknown";
    ox_err err = OX_ERR_INIT;
    ox_machine_tier(&tier, &err);
    ox_buf_put_z(out, "{\"cpu\":");
    cli_json_str(out, ox_machine_cpu(), strlen(ox_machine_cpu()));
    ox_buf_printf(out,
                  ",\"tier\":\"%s\",\"cores\":%d,\"gpu\":null,\"driver\":null,\"version\":\"%s\","
                  "\"compiler\":\"%s\",\"commit\":\"%s\"}",
                  tier, ox_machine_cpus(), ox_version(), OXGEN_COMPILER, OXGEN_COMMIT);
}

int cmd_bench(const cli_options *o)
{
    if (!o->args.n)
        return cli_usage(
            "a MODEL is missing: oxgen bench MODEL | micro [FILTER] | diff A.json B.json");
    if (!strcmp(o->args.p[0], "micro")) return bench_micro(o);
    if (!strcmp(o->args.p[0], "diff")) return bench_diff(o);
    return bench_model(o);
}
