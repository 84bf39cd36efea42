/* experimental.c - views into the engine for tools: plan text, kernel rows, the machine. */
#include "engine/engine_internal.h"

#include <string.h>

ox_status ox_model_plan_text(const ox_model *m, char **text, ox_err *err)
{
    ox_buf b = {0};
    if (m->ort)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "ONNX Runtime runs the graph as one call: there is no plan");
    if (!m->plan)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "the graph runs operator by operator: there is no plan");
    ox_opt_report_print(&m->opt, &b);
    ox_plan_print(m->plan, &b);
    return ox_engine_hand_over(&b, text, NULL, err);
}

ox_status ox_model_cost_of(const ox_model *m, ox_model_cost *out, ox_err *err)
{
    *out = (ox_model_cost){0};
    if (m->ort) {
        const ox_ort_cost c = ox_ort_decoder_cost(m->ort);
        if (c.weight_bytes <= 0)
            return OX_FAIL(err, OX_UNSUPPORTED, "the graph's weights are not known: no cost");
        out->ops = out->ops_with_logits = c.ops; /* the graph makes the logits of every row */
        out->weight_bytes = c.weight_bytes;
        out->kv_bytes_per_position = (double)ox_model_kv_bytes_per_token(m);
        return OX_OK;
    }
    if (!m->plan)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "the graph runs operator by operator: its cost is unknown");
    for (size_t i = 0; i < m->plan->calls.n; i++) {
        const ox_call *c = &m->plan->calls.p[i];
        for (int32_t k = 0; k < c->n_weights; k++) {
            const double ops = 2.0 * (double)c->weights[k]->rows * (double)c->weights[k]->cols;
            out->ops_with_logits += ops;
            if (!c->wanted) out->ops += ops;
        }
    }
    out->weight_bytes = (double)ox_model_weight_bytes(m);
    out->kv_bytes_per_position = (double)ox_model_kv_bytes_per_token(m);
    return OX_OK;
}

size_t ox_kernel_count(void)
{
    size_t n = 0;
    for (const ox_kernel_family *f = ox_kernel_families; f->name; f++)
        for (const ox_kernel_row *r = f->rows; r->device; r++)
            n++;
    return n;
}

static const char *tolerance_name(ox_tol t)
{
    static const char *const names[] = {[OX_TOL_EXACT] = "exact",
                                        [OX_TOL_ROUND] = "round",
                                        [OX_TOL_SUM] = "sum",
                                        [OX_TOL_HALF] = "half"};
    return names[t];
}

ox_status ox_kernel_at(size_t i, ox_kernel_report *out, ox_err *err)
{
    ox_machine machine = {0};
    OX_TRY(ox_cpu_features(&machine.cpu_features, err));
    for (const ox_kernel_family *f = ox_kernel_families; f->name; f++)
        for (const ox_kernel_row *r = f->rows; r->device; r++) {
            if (i--) continue;
            *out = (ox_kernel_report){.family = f->name,
                                      .row = r->name,
                                      .device = r->device == OX_DEVICE_CPU ? "cpu" : "cuda",
                                      .needs = r->needs,
                                      .runs_here = ox_kernel_runs_on(r, &machine),
                                      .tolerance = tolerance_name(r->tol)};
            return OX_OK;
        }
    return OX_FAIL(err, OX_BAD_ARGUMENT, "there is no such kernel row");
}

const char *ox_machine_cpu(void)
{
    return ox_cpu_model();
}

ox_status ox_machine_tier(const char **name, ox_err *err)
{
    unsigned features;
    OX_TRY(ox_cpu_features(&features, err));
    *name = ox_cpu_tier_name(features);
    return OX_OK;
}

int32_t ox_machine_cpus(void)
{
    return ox_cpu_count();
}

ox_status ox_machine_gpus(ox_gpu_report *out, size_t max, size_t *n, ox_err *err)
{
    enum { MOST = 64 };
    ox_device_library library;
    ox_device_info all[MOST];
    int32_t count = 0;
    *n = 0;
    OX_TRY(ox_device_library_open(&library, err));
    const ox_status st = library.plugin->devices(all, MOST, &count, err);
    for (int32_t i = 0; !st && i < count && *n < max; i++) {
        ox_gpu_report *r = &out[(*n)++];
        *r = (ox_gpu_report){
            .index = all[i].index, .sm = all[i].sm, .memory_bytes = all[i].total_bytes};
        memcpy(r->name, all[i].name, sizeof(r->name));
        memcpy(r->driver, all[i].driver, sizeof(r->driver));
    }
    ox_device_library_close(&library);
    return st;
}

static bool row_runs(const ox_kernel_row *r, int32_t sm)
{
    return r->needs == OX_SM_90A ? sm == 90 : (int32_t)r->needs <= sm;
}

ox_status ox_kernel_cuda_rows(ox_kernel_report *out, size_t max, size_t *n, ox_err *err)
{
    ox_device_library library;
    ox_device_info info = {0};
    *n = 0;
    OX_TRY(ox_device_library_open(&library, err));
    const bool have = !ox_device_find(&library, 0, &info, NULL);
    for (const ox_device_row *r = library.plugin->rows; r->family && *n < max; r++)
        out[(*n)++] = (ox_kernel_report){.family = r->family,
                                         .row = r->row.name,
                                         .device = "cuda",
                                         .needs = r->row.needs,
                                         .runs_here = have && row_runs(&r->row, info.sm),
                                         .tolerance = tolerance_name(r->row.tol)};
    ox_device_library_close(&library);
    return OX_OK;
}
