/* graph_run.c - plain ONNX graphs through the public interface: named arrays in and out, run
 * operator by operator on reference code. */
#include "engine/engine_internal.h"
#include "file/onnx.h"
#include "graph/from_onnx.h"
#include "ops/run.h"

#include <string.h>

/* Executed in one run: a loop that never ends stops here, within seconds. */
enum { MOST_OPERATORS = 1 << 22 };

struct ox_graph_run {
    ox_ort_graph *ort; /* or: */
    ox_onnx *file;
    ox_arena arena;
    ox_graph *graph;
    ox_run_results *results; /* of the last run */
};

ox_status ox_graph_run_open(ox_graph_run **out, const char *path, ox_err *err)
{
    static const ox_from_onnx_options keep = {.keep = ox_op_keep};
    ox_status st = OX_OK;
    *out = NULL;
    ox_graph_run *g = ox_calloc(1, sizeof(*g));
    if (!g) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a graph");
    OX_TRY_GOTO(ox_onnx_open(&g->file, path, err));
    OX_TRY_GOTO(ox_graph_from_onnx_with(&g->graph, &g->arena, g->file, &keep, err));
    OX_TRY_GOTO(ox_op_check_graph(g->graph, err));
    OX_TRY_GOTO(ox_op_check_attrs(g->graph, err));
    *out = g;
    return OX_OK;
fail:
    ox_graph_run_close(&g);
    st = ox_refused(st, err);
    if (err && !strstr(err->msg, ox_path_base(path))) ox_err_prefix(err, "%s", path);
    return st;
}

static ox_status open_ort(ox_graph_run **out, const char *path, const ox_model_options *o,
                          ox_err *err)
{
    ox_ort_settings settings;
    *out = NULL;
    OX_TRY(ox_engine_ort_settings(&settings, o, err));
    ox_graph_run *g = ox_calloc(1, sizeof(*g));
    if (!g) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a graph");
    const ox_status st = ox_ort_graph_open(&g->ort, path, &settings, err);
    if (st) {
        ox_graph_run_close(&g);
        if (err && !strstr(err->msg, ox_path_base(path))) ox_err_prefix(err, "%s", path);
        return st;
    }
    *out = g;
    return OX_OK;
}

ox_status ox_graph_run_open_with(ox_graph_run **out, const char *path,
                                 const ox_model_options *options, ox_err *err)
{
    ox_model_options o;
    ox_model_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    *out = NULL;
    if (o.backend && !strcmp(o.backend, "ort")) return open_ort(out, path, &o, err);
    if (o.backend && strcmp(o.backend, "native"))
        return OX_FAIL(err, OX_NO_DEVICE, "--backend %s is not known; expected native or ort",
                       o.backend);
    if (o.n_ort_options) return OX_FAIL(err, OX_BAD_ARGUMENT, "--ort-option needs --backend ort");
    return ox_graph_run_open(out, path, err);
}

void ox_graph_run_close(ox_graph_run **run)
{
    ox_graph_run *g = *run;
    if (!g) return;
    ox_ort_graph_close(&g->ort);
    ox_run_results_close(&g->results);
    ox_graph_close(&g->graph);
    ox_arena_deinit(&g->arena);
    ox_onnx_close(&g->file);
    ox_free(g);
    *run = NULL;
}

size_t ox_graph_run_n_inputs(const ox_graph_run *g)
{
    return g->ort ? ox_ort_graph_n_inputs(g->ort) : g->graph->inputs.n;
}

size_t ox_graph_run_n_outputs(const ox_graph_run *g)
{
    return g->ort ? ox_ort_graph_n_outputs(g->ort) : g->graph->outputs.n;
}

/* Names in the IR are copies in the arena and NUL-terminated. */
const char *ox_graph_run_input(const ox_graph_run *g, size_t i)
{
    if (g->ort) return ox_ort_graph_input(g->ort, i);
    return i < g->graph->inputs.n ? ox_graph_value(g->graph, g->graph->inputs.p[i])->name.p : NULL;
}

const char *ox_graph_run_output(const ox_graph_run *g, size_t i)
{
    if (g->ort) return ox_ort_graph_output(g->ort, i);
    return i < g->graph->outputs.n ? ox_graph_value(g->graph, g->graph->outputs.p[i])->name.p
                                   : NULL;
}

static ox_status read_array(ox_run_input *in, const ox_array *a, ox_err *err)
{
    size_t bytes;
    if (!a->name) return OX_FAIL(err, OX_BAD_ARGUMENT, "an input array has no name");
    in->name = ox_str_of(a->name);
    in->kind = OX_RT_TENSOR;
    if (a->rank < 0 || a->rank > OX_RANK_MAX)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "input %s: rank %d, expected 0 to %d", a->name,
                       a->rank, OX_RANK_MAX);
    in->t.dtype = (ox_dtype)a->dtype;
    in->t.rank = a->rank;
    memcpy(in->t.dims, a->dims, sizeof(in->t.dims));
    in->t.data = (void *)(uintptr_t)a->data;
    if (!ox_tensor_bytes(&in->t, &bytes) || bytes != a->bytes)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "input %s: %zu bytes do not fit its type and shape",
                       a->name, a->bytes);
    return OX_OK;
}

static ox_status write_tensor(ox_array *a, const char *name, const ox_tensor *t, ox_err *err)
{
    *a = (ox_array){.name = name, .dtype = (int32_t)t->dtype, .rank = t->rank, .data = t->data};
    memcpy(a->dims, t->dims, sizeof(a->dims));
    return ox_tensor_bytes(t, &a->bytes) ? OX_OK : OX_FAIL(err, OX_LIMIT, "output %s", name);
}

static ox_status write_array(ox_array *a, const char *name, const ox_rt_value *v, ox_err *err)
{
    if (v->kind != OX_RT_TENSOR)
        return OX_FAIL(err, OX_UNSUPPORTED, "output %s is not a tensor", name);
    return write_tensor(a, name, &v->t, err);
}

static ox_status run_ort(ox_graph_run *g, const ox_run_input *in, size_t n, ox_array *outputs,
                         ox_err *err)
{
    const size_t n_out = ox_ort_graph_n_outputs(g->ort);
    ox_tensor *t = ox_calloc(n + n_out, sizeof(*t));
    const char **names = ox_calloc(n, sizeof(*names));
    ox_status st = t && names ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a run");
    for (size_t i = 0; !st && i < n; i++) {
        names[i] = in[i].name.p;
        t[i] = in[i].t;
    }
    if (!st) st = ox_ort_graph_run(g->ort, names, t, n, t + n, err);
    for (size_t i = 0; !st && i < n_out; i++)
        st = write_tensor(&outputs[i], ox_ort_graph_output(g->ort, i), &t[n + i], err);
    ox_free(names);
    ox_free(t);
    return st;
}

ox_status ox_graph_run_once(ox_graph_run *g, const ox_array *inputs, size_t n_inputs,
                            ox_array *outputs, ox_err *err)
{
    static const ox_run_options limits = {.node_limit = MOST_OPERATORS};
    ox_status st = OX_OK;
    ox_run_input *in = ox_calloc(n_inputs, sizeof(*in));
    if (!in) return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu inputs", n_inputs);
    for (size_t i = 0; i < n_inputs; i++)
        OX_TRY_GOTO(read_array(&in[i], &inputs[i], err));
    if (g->ort) {
        st = run_ort(g, in, n_inputs, outputs, err);
        goto fail;
    }
    ox_run_results_close(&g->results);
    OX_TRY_GOTO(ox_graph_eval(&g->results, g->graph, in, n_inputs, NULL, 0, &limits, err));
    for (size_t i = 0; i < g->results->n; i++)
        OX_TRY_GOTO(
            write_array(&outputs[i], ox_graph_run_output(g, i), g->results->values[i], err));
fail:
    ox_free(in);
    return st;
}
