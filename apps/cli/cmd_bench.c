/* cmd_bench.c - chooses the form of the benchmark, and the statistics all of them use. */
#include "cli/bench.h"

#include "base/stats.h"
#include "oxgen_build.h"

#include <string.h>

double bench_quantile(const bench_samples *s, double q)
{
    return ox_stats_quantile(s->v, s->n, q);
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
    ox_gpu_report gpu;
    size_t n_gpus = 0;
    ox_machine_gpus(&gpu, 1, &n_gpus, NULL);
    ox_buf_put_z(out, "{\"gpu\":");
    if (n_gpus) {
        cli_json_str(out, gpu.name, strlen(gpu.name));
        ox_buf_put_z(out, ",\"driver\":");
        cli_json_str(out, gpu.driver, strlen(gpu.driver));
    } else {
        ox_buf_put_z(out, "null,\"driver\":null");
    }
    ox_buf_put_z(out, ",\"cpu\":");
    cli_json_str(out, ox_machine_cpu(), strlen(ox_machine_cpu()));
    ox_buf_printf(out,
                  ",\"tier\":\"%s\",\"cores\":%d,\"version\":\"%s\","
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
