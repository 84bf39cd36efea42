/* bench_micro.c - `oxgen bench micro`: parts of the engine on made-up data, each beside the roof
 * measured right before and after it. Rows whose part does not exist are listed with the reason. */
#include "cli/bench.h"

#include <stdio.h>
#include <string.h>

typedef struct result {
    ox_micro row;
    ox_micro_cost cost;
    bench_samples ms;
    size_t per_sample;
    double roof; /* ms; 0 = none */
    const char *roof_kind;
} result;

bench_limits bench_micro_limits(const cli_options *o)
{
    return (bench_limits){.samples = o->has_bench_repeat ? (size_t)o->bench_repeat : BENCH_SAMPLES,
                          .seconds = 1,
                          .width = 0.01};
}

static int wanted(const cli_options *o, const char *name)
{
    for (size_t i = 1; i < o->args.n; i++)
        if (strstr(name, o->args.p[i])) return 1;
    return o->args.n < 2;
}

/* The roof is the better of two measurements around the row: a slow moment lowers both alike. */
static ox_status measure(result *r, size_t i, const bench_limits *limits, ox_err *err)
{
    ox_micro_case *c = NULL;
    double after = 0;
    const char *kind = NULL;
    const double seconds = limits->samples < BENCH_SAMPLES ? 0.004 : 0.02;
    OX_TRY(ox_micro_open(&c, i, err));
    ox_micro_cost_of(c, &r->cost);
    ox_status st = bench_roof(&r->cost, seconds, &r->roof, &r->roof_kind, err);
    if (!st) st = bench_time(c, limits, &r->ms, &r->per_sample, err);
    if (!st) st = bench_roof(&r->cost, seconds, &after, &kind, err);
    if (!st && after < r->roof) {
        r->roof = after;
        r->roof_kind = kind;
    }
    ox_micro_close(&c);
    return st;
}

static double iqr(const bench_samples *s)
{
    return bench_quantile(s, 0.75) - bench_quantile(s, 0.25);
}

static void put_line(ox_buf *out, const result *r)
{
    char median[32], least[32], roof[32];
    if (r->row.absent) {
        ox_buf_printf(out, "%-60s absent: %s\n", r->row.name, r->row.absent);
        return;
    }
    const double m = bench_quantile(&r->ms, 0.5);
    ox_buf_printf(out, "%-60s %11s %11s %5.1f%%", r->row.name, bench_ms_text(m, median),
                  bench_ms_text(bench_quantile(&r->ms, 0), least), 100 * iqr(&r->ms) / m);
    if (r->roof > 0)
        ox_buf_printf(out, " %11s %-5s %6.3f\n", bench_ms_text(r->roof, roof), r->roof_kind,
                      r->roof / m);
    else
        ox_buf_printf(out, " %11s %-5s %6s\n", "-", "", "-");
}

static void put_row(ox_buf *out, const result *r)
{
    ox_buf_put_z(out, "{\"name\":");
    cli_json_str(out, r->row.name, strlen(r->row.name));
    if (r->row.absent) {
        ox_buf_put_z(out,
                     ",\"unit\":\"ms\",\"samples\":[],\"median\":null,\"iqr\":null,\"roof\":null,"
                     "\"share\":null,\"comparator\":null,\"absent\":");
        cli_json_str(out, r->row.absent, strlen(r->row.absent));
        ox_buf_put_c(out, '}');
        return;
    }
    const double m = bench_quantile(&r->ms, 0.5);
    ox_buf_put_z(out, ",\"unit\":\"ms\",\"samples\":");
    bench_put_samples(out, &r->ms);
    ox_buf_printf(out, ",\"median\":%.9g,\"iqr\":%.6g,\"min\":%.9g", m, iqr(&r->ms),
                  bench_quantile(&r->ms, 0));
    if (r->roof > 0)
        ox_buf_printf(out, ",\"roof\":%.9g,\"share\":%.6g,\"roof_kind\":\"%s\"", r->roof,
                      r->roof / m, r->roof_kind);
    else
        ox_buf_put_z(out, ",\"roof\":null,\"share\":null,\"roof_kind\":null");
    ox_buf_printf(out,
                  ",\"comparator\":null,\"absent\":null,\"threads\":%d,\"runs_per_sample\":%zu,"
                  "\"work\":%.9g,\"work_unit\":\"%s\",\"runs\":",
                  r->cost.n_threads, r->per_sample, r->cost.work, r->cost.unit);
    cli_json_str(out, r->row.runs, strlen(r->row.runs));
    ox_buf_put_c(out, '}');
}

/* Measures row i and shows it: a line at once, or an object into out. */
static int do_row(const cli_options *o, size_t i, const ox_micro *row, ox_buf *out, int first)
{
    const bench_limits limits = bench_micro_limits(o);
    ox_err err = OX_ERR_INIT;
    result r = {.row = *row};
    if (!row->absent && measure(&r, i, &limits, &err)) {
        ox_err_prefix(&err, "%s", row->name);
        return cli_fail(&err);
    }
    if (o->json) {
        if (!first) ox_buf_put_c(out, ',');
        put_row(out, &r);
        return 0;
    }
    ox_buf_clear(out);
    put_line(out, &r);
    return cli_stdout(ox_buf_view(out));
}

static int run_rows(const cli_options *o, ox_buf *out)
{
    const size_t n = ox_micro_count();
    size_t n_done = 0;
    for (size_t i = 0; i < n; i++) {
        ox_micro row;
        ox_err err = OX_ERR_INIT;
        if (ox_micro_at(i, &row, &err)) return cli_fail(&err);
        if (!wanted(o, row.name)) continue;
        if (o->json) cli_progress((void *)(uintptr_t)o, "bench micro", i, n);
        const int code = do_row(o, i, &row, out, !n_done++);
        if (code) return code;
    }
    cli_progress_end();
    if (n_done) return 0;
    return cli_usage("no micro-benchmark has '%s' in its name; 'oxgen bench micro -r 1' lists them",
                     o->args.p[1]);
}

int bench_micro(const cli_options *o)
{
    ox_buf out = {0};
    if (o->has_bench_repeat && (o->bench_repeat < 1 || o->bench_repeat > BENCH_SAMPLES))
        return cli_usage("-r expects 1 to %d, found %lld", BENCH_SAMPLES, o->bench_repeat);
    if (o->json) {
        ox_buf_put_z(&out, "{\"machine\":");
        bench_put_machine(&out);
        ox_buf_put_z(&out, ",\"rows\":[");
    } else {
        ox_buf_printf(&out, "%-60s %11s %11s %6s %11s %-5s %6s\n", "one run", "median", "min",
                      "IQR", "roof", "", "share");
        cli_stdout(ox_buf_view(&out));
    }
    int code = run_rows(o, &out);
    if (!code && o->json) {
        ox_buf_put_z(&out, "]}\n");
        code = cli_stdout(ox_buf_view(&out));
    }
    ox_buf_deinit(&out);
    return code;
}
