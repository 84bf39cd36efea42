/* bench_kernels.c - `oxgen kernels --time`: every kernel row of this machine on the typical shape
 * of its family, on one thread, and which of them a plan takes and why. */
#include "cli/bench.h"

#include "base/cpu.h"

#include <stdio.h>
#include <string.h>

typedef struct timed {
    ox_kernel_report row;
    ox_kernel_choice choice;
    bench_samples ms; /* none: it was not run */
} timed;

/* A row that cannot run says so; only a failure of the measurement itself is one. */
static ox_status measure(timed *t, size_t i, const bench_limits *limits, ox_err *err)
{
    ox_micro_case *c = NULL;
    ox_err refused = OX_ERR_INIT;
    size_t runs;
    OX_TRY(ox_kernel_at(i, &t->row, err));
    OX_TRY(ox_kernel_choose(i, &t->choice, err));
    if (!t->row.runs_here || !t->choice.shape) return OX_OK;
    ox_status st = ox_kernel_open(&c, i, &refused);
    if (st == OX_UNSUPPORTED) return OX_OK;
    if (st) return OX_FAIL(err, st, "%s", refused.msg);
    st = bench_time(c, limits, &t->ms, &runs, err);
    ox_micro_close(&c);
    return st;
}

static void put_line(ox_buf *b, const timed *t)
{
    char time[32] = "-";
    if (t->ms.n) bench_ms_text(bench_quantile(&t->ms, 0.5), time);
    ox_buf_printf(b, "  %c %-28s %12s  %-6s needs %-11s %s\n", t->choice.picked ? '>' : ' ',
                  t->row.row, time, t->row.tolerance,
                  t->row.needs ? ox_cpu_tier_name(t->row.needs) : "nothing", t->choice.why);
}

static void put_row(ox_buf *b, const timed *t)
{
    ox_buf_printf(b,
                  "{\"family\":\"%s\",\"row\":\"%s\",\"device\":\"%s\",\"runs\":%s,"
                  "\"tolerance\":\"%s\",\"picked\":%s,\"why\":\"%s\",\"shape\":",
                  t->row.family, t->row.row, t->row.device, t->row.runs_here ? "true" : "false",
                  t->row.tolerance, t->choice.picked ? "true" : "false", t->choice.why);
    if (t->choice.shape)
        cli_json_str(b, t->choice.shape, strlen(t->choice.shape));
    else
        ox_buf_put_z(b, "null");
    ox_buf_put_z(b, ",\"unit\":\"ms\",\"samples\":");
    bench_put_samples(b, &t->ms);
    if (t->ms.n)
        ox_buf_printf(b, ",\"median\":%.9g}", bench_quantile(&t->ms, 0.5));
    else
        ox_buf_put_z(b, ",\"median\":null}");
}

int bench_kernels(const cli_options *o)
{
    ox_buf b = {0};
    const char *family = "";
    const size_t n = ox_kernel_count();
    const bench_limits limits = {.samples = o->has_bench_repeat ? (size_t)o->bench_repeat : 100,
                                 .join = !o->has_bench_repeat,
                                 .seconds = 0.3,
                                 .width = 0.01};
    int code = bench_check_repeat(o);
    if (code) return code;
    if (o->json) ox_buf_put_z(&b, "{\"rows\":[");
    for (size_t i = 0; !code && i < n; i++) {
        timed t = {0};
        ox_err err = OX_ERR_INIT;
        if (measure(&t, i, &limits, &err)) {
            code = cli_fail(&err);
        } else if (o->json) {
            ox_buf_put_z(&b, i ? "," : "");
            put_row(&b, &t);
        } else {
            ox_buf_clear(&b);
            if (strcmp(t.row.family, family))
                ox_buf_printf(&b, "%s  (%s)\n", t.row.family,
                              t.choice.shape ? t.choice.shape : "no typical shape");
            put_line(&b, &t);
            code = cli_stdout(ox_buf_view(&b));
        }
        family = t.row.family ? t.row.family : family;
    }
    if (!code && o->json) {
        ox_buf_put_z(&b, "]}\n");
        code = cli_stdout(ox_buf_view(&b));
    }
    ox_buf_deinit(&b);
    return code;
}
