/* cmd_about.c - version, kernels, plan: what is here and what would run. */
#include "cli/bench.h"

#include "base/cpu.h"
#include "oxgen_build.h"

#include <string.h>

int cmd_version(const cli_options *o)
{
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    const char *tier = NULL;
    if (ox_machine_tier(&tier, &err)) return cli_fail(&err);
    if (o->json) {
        ox_buf_printf(&b, "{\"version\":\"%s\",\"commit\":\"%s\",\"compiler\":\"%s\",\"cpu\":",
                      ox_version(), OXGEN_COMMIT, OXGEN_COMPILER);
        cli_json_str(&b, ox_machine_cpu(), strlen(ox_machine_cpu()));
        ox_buf_printf(&b,
                      ",\"tier\":\"%s\",\"cpus\":%d,\"gpus\":[],\"onnxruntime\":null,"
                      "\"onnxruntime_genai\":null}\n",
                      tier, ox_machine_cpus());
    } else {
        ox_buf_printf(&b, "oxgen %s (%s, %s, %s)\n", ox_version(), OXGEN_COMMIT, OXGEN_COMPILER,
                      OXGEN_BUILD_TYPE);
        ox_buf_printf(&b, "cpu: %s, tier %s, %d usable\n", ox_machine_cpu(), tier,
                      ox_machine_cpus());
        ox_buf_put_z(&b, "gpu: this build has no GPU backend\n");
        ox_buf_put_z(&b, "onnxruntime: this build has no ONNX Runtime backend\n");
    }
    const int code = cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}

int cmd_plan(const cli_options *o)
{
    ox_model *m = NULL;
    ox_err err = OX_ERR_INIT;
    char *text = NULL;
    int code = 0;
    if (!o->args.n) return cli_usage("a MODEL is missing: oxgen plan MODEL");
    ox_status st = cli_open_model(&m, o, o->args.p[0], 0, &err);
    if (!st)
        st = o->bisect ? ox_model_bisect_text(m, &text, &err) : ox_model_plan_text(m, &text, &err);
    code = st ? cli_fail(&err) : cli_stdout(ox_str_of(text));
    ox_release(text);
    ox_model_close(&m);
    return code;
}

int cmd_kernels(const cli_options *o)
{
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    const char *family = "";
    const size_t n = ox_kernel_count();
    if (o->time) return bench_kernels(o);
    if (o->json) ox_buf_put_z(&b, "{\"rows\":[");
    int picked = 0;
    for (size_t i = 0; i < n; i++) {
        ox_kernel_report r;
        if (ox_kernel_at(i, &r, &err)) return cli_fail(&err);
        if (strcmp(r.family, family)) {
            family = r.family;
            picked = 0;
            if (!o->json) ox_buf_printf(&b, "%s\n", family);
        }
        const int first = r.runs_here && !picked;
        picked |= r.runs_here;
        if (o->json)
            ox_buf_printf(&b,
                          "%s{\"family\":\"%s\",\"row\":\"%s\",\"device\":\"%s\",\"runs\":%s,"
                          "\"tolerance\":\"%s\"}",
                          i ? "," : "", r.family, r.row, r.device, r.runs_here ? "true" : "false",
                          r.tolerance);
        else
            ox_buf_printf(&b, "  %c %-40s %-5s needs %-10s %s\n", first ? '>' : ' ', r.row,
                          r.tolerance, r.needs ? ox_cpu_tier_name(r.needs) : "nothing",
                          r.runs_here ? "" : "absent on this machine");
    }
    ox_buf_put_z(&b, o->json ? "]}\n"
                             : "'>' marks the first row this machine can run; rows that look "
                               "at shapes may yield to the next\n");
    const int code = cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}
