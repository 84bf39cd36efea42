/* cmd_about.c - version, kernels, plan: what is here and what would run. */
#include "cli/bench.h"
#include "oxgen/arm.h"

#include "base/cpu.h"
#include "oxgen_build.h"

#include <string.h>

/* One line, or one member of the JSON object: the library, or why there is none. */
static void put_library(ox_buf *b, const char *name, ox_status st, const ox_library *l,
                        const ox_err *why, int json)
{
    if (!json && st) ox_buf_printf(b, "%s: none: %s\n", name, why->msg);
    if (!json && !st) {
        ox_buf_printf(b, "%s: %s", name, l->version[0] ? l->version : "version not known");
        if (l->api) ox_buf_printf(b, ", interface %d", l->api);
        ox_buf_printf(b, ", %s", l->path);
        if (l->providers[0]) ox_buf_printf(b, ", providers %s", l->providers);
        ox_buf_put_c(b, '\n');
    }
    if (!json) return;
    ox_buf_printf(b, "{\"version\":");
    if (st) {
        ox_buf_put_z(b, "null,\"reason\":");
        cli_json_str(b, why->msg, strlen(why->msg));
    } else {
        cli_json_str(b, l->version, strlen(l->version));
        ox_buf_printf(b, ",\"api\":%d,\"path\":", l->api);
        cli_json_str(b, l->path, strlen(l->path));
        ox_buf_put_z(b, ",\"providers\":");
        cli_json_str(b, l->providers, strlen(l->providers));
    }
    ox_buf_put_c(b, '}');
}

static void put_libraries(ox_buf *b, int json)
{
    static const struct {
        const char *name, *key;
        ox_status (*get)(ox_library *, ox_err *);
    } libraries[] = {{"onnxruntime", "onnxruntime", ox_library_ort},
                     {"onnxruntime-genai", "onnxruntime_genai", ox_library_oga}};
    for (size_t i = 0; i < OX_COUNT(libraries); i++) {
        ox_library l;
        ox_err why = OX_ERR_INIT;
        const ox_status st = libraries[i].get(&l, &why);
        if (json) ox_buf_printf(b, ",\"%s\":", libraries[i].key);
        put_library(b, libraries[i].name, st, &l, &why, json);
    }
}

/* The GPUs that --device cuda can use, or what is missing. */
static void put_gpus(ox_buf *b, int json)
{
    enum { MOST = 16 };
    ox_gpu_report gpus[MOST];
    size_t n = 0;
    ox_err why = OX_ERR_INIT;
    const ox_status st = ox_machine_gpus(gpus, MOST, &n, &why);
    if (json) ox_buf_put_z(b, ",\"gpus\":[");
    if (!json && st) ox_buf_printf(b, "gpu: none: %s\n", why.msg);
    for (size_t i = 0; i < n; i++) {
        const ox_gpu_report *g = &gpus[i];
        if (!json) {
            ox_buf_printf(b, "gpu: cuda:%d: %s, %.0f GiB, compute capability %d.%d, driver %s\n",
                          g->index, g->name, (double)g->memory_bytes / 0x1p30, g->sm / 10,
                          g->sm % 10, g->driver);
            continue;
        }
        ox_buf_put_z(b, i ? ",{\"name\":" : "{\"name\":");
        cli_json_str(b, g->name, strlen(g->name));
        ox_buf_put_z(b, ",\"driver\":");
        cli_json_str(b, g->driver, strlen(g->driver));
        ox_buf_printf(b, ",\"device\":\"cuda:%d\",\"sm\":%d,\"memory_bytes\":%llu}", g->index,
                      g->sm, (unsigned long long)g->memory_bytes);
    }
    if (json) ox_buf_put_z(b, "]");
}

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
        ox_buf_printf(&b, ",\"tier\":\"%s\",\"cpus\":%d", tier, ox_machine_cpus());
        put_gpus(&b, 1);
        put_libraries(&b, 1);
        ox_buf_put_z(&b, "}\n");
    } else {
        ox_buf_printf(&b, "oxgen %s (%s, %s, %s)\n", ox_version(), OXGEN_COMMIT, OXGEN_COMPILER,
                      OXGEN_BUILD_TYPE);
        ox_buf_printf(&b, "cpu: %s, tier %s, %d usable\n", ox_machine_cpu(), tier,
                      ox_machine_cpus());
        put_gpus(&b, 0);
        put_libraries(&b, 0);
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

/* Rows of the CUDA library, or why there are none. */
static void put_cuda_rows(ox_buf *b, int json)
{
    enum { MOST = 256 };
    static ox_kernel_report rows[MOST];
    size_t n = 0;
    ox_err why = OX_ERR_INIT;
    const ox_status st = ox_kernel_cuda_rows(rows, MOST, &n, &why);
    if (json) ox_buf_put_z(b, "],\"cuda_rows\":[");
    if (!json && st) ox_buf_printf(b, "cuda: none: %s\n", why.msg);
    if (!json && !st) ox_buf_put_z(b, "cuda\n");
    for (size_t i = 0; i < n; i++) {
        const ox_kernel_report *r = &rows[i];
        if (json)
            ox_buf_printf(
                b, "%s{\"family\":\"%s\",\"row\":\"%s\",\"runs\":%s,\"tolerance\":\"%s\"}",
                i ? "," : "", r->family, r->row, r->runs_here ? "true" : "false", r->tolerance);
        else
            ox_buf_printf(b, "    %-10s %-29s %-5s %s\n", r->family, r->row, r->tolerance,
                          r->runs_here ? "" : "absent on this machine");
    }
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
    put_cuda_rows(&b, o->json);
    ox_buf_put_z(&b, o->json ? "]}\n"
                             : "'>' marks the first row this machine can run; rows that look "
                               "at shapes may yield to the next\n");
    const int code = cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}
