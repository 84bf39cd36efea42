/* graph.c - a plain graph on ONNX Runtime: named tensors in, named tensors out. */
#include "backend/ort/session.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

struct ox_ort_graph {
    ox_ort *o;
    ox_ort_session *session;
    ox_ort_binding *binding;
    ox_arena arena;
    ox_buf settings;
    ox_onnx_graph ports;
    ox_ort_value **values; /* [n_values] outputs of the last run; the list is the library's */
    size_t n_values;
};

static void drop_values(ox_ort_graph *g)
{
    for (size_t i = 0; i < g->n_values; i++)
        g->o->api.ReleaseValue(g->values[i]);
    if (g->values)
        ox_ort_check(g->o, g->o->api.AllocatorFree(g->o->allocator, g->values), "", NULL);
    g->values = NULL;
    g->n_values = 0;
}

ox_status ox_ort_graph_open(ox_ort_graph **out, const char *onnx, const ox_ort_settings *settings,
                            ox_err *err)
{
    ox_status st = OX_OK;
    *out = NULL;
    ox_ort_graph *g = ox_calloc(1, sizeof(*g));
    if (!g) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a graph");
    OX_TRY_GOTO(ox_ort_open(&g->o, err));
    OX_TRY_GOTO(ox_ort_session_open(&g->session, &g->settings, g->o, onnx, settings, err));
    OX_TRY_GOTO(ox_ort_session_ports(&g->ports, &g->arena, g->o, g->session, err));
    OX_TRY_GOTO(ox_ort_check(g->o, g->o->api.CreateIoBinding(g->session, &g->binding),
                             "ONNX Runtime cannot start a run", err));
    *out = g;
    return OX_OK;
fail:
    ox_ort_graph_close(&g);
    return st;
}

void ox_ort_graph_close(ox_ort_graph **graph)
{
    ox_ort_graph *g = *graph;
    if (!g) return;
    if (g->o) drop_values(g);
    assert(g->o || (!g->binding && !g->session));
    if (g->binding) g->o->api.ReleaseIoBinding(g->binding);
    if (g->session) g->o->api.ReleaseSession(g->session);
    ox_buf_deinit(&g->settings);
    ox_arena_deinit(&g->arena);
    ox_ort_close(&g->o);
    ox_free(g);
    *graph = NULL;
}

size_t ox_ort_graph_n_inputs(const ox_ort_graph *g)
{
    return g->ports.n_inputs;
}

size_t ox_ort_graph_n_outputs(const ox_ort_graph *g)
{
    return g->ports.n_outputs;
}

const char *ox_ort_graph_input(const ox_ort_graph *g, size_t i)
{
    return i < g->ports.n_inputs ? g->ports.inputs[i].name.p : NULL;
}

const char *ox_ort_graph_output(const ox_ort_graph *g, size_t i)
{
    return i < g->ports.n_outputs ? g->ports.outputs[i].name.p : NULL;
}

static ox_status bind_inputs(ox_ort_graph *g, const char *const *names, const ox_tensor *in,
                             size_t n_in, ox_err *err)
{
    for (size_t i = 0; i < n_in; i++) {
        ox_ort_value *v = NULL;
        if (in[i].dtype == OX_DTYPE_STRING)
            return OX_FAIL(err, OX_UNSUPPORTED,
                           "input %s: texts are not handed to ONNX Runtime; expected numbers",
                           names[i]);
        OX_TRY(ox_ort_value_over(&v, g->o, &in[i], err));
        const ox_status st = ox_ort_check(g->o, g->o->api.BindInput(g->binding, names[i], v),
                                          "ONNX Runtime refuses an input", err);
        g->o->api.ReleaseValue(v);
        if (st && err) err->status = OX_BAD_ARGUMENT;
        OX_TRY(st);
    }
    return OX_OK;
}

ox_status ox_ort_graph_bind(ox_ort_graph *g, const char *const *names, const ox_tensor *in,
                            size_t n_in, ox_err *err)
{
    OX_TRY(bind_inputs(g, names, in, n_in, err));
    for (size_t i = 0; i < g->ports.n_outputs; i++)
        OX_TRY(ox_ort_check(
            g->o, g->o->api.BindOutputToDevice(g->binding, g->ports.outputs[i].name.p, g->o->cpu),
            "ONNX Runtime refuses an output", err));
    return OX_OK;
}

ox_status ox_ort_graph_repeat(ox_ort_graph *g, ox_err *err)
{
    return ox_ort_check(g->o, g->o->api.RunWithBinding(g->session, NULL, g->binding),
                        "ONNX Runtime failed", err);
}

ox_status ox_ort_graph_run(ox_ort_graph *g, const char *const *names, const ox_tensor *in,
                           size_t n_in, ox_tensor *out, ox_err *err)
{
    const ox_ort *o = g->o;
    drop_values(g);
    OX_TRY(ox_ort_graph_bind(g, names, in, n_in, err));
    OX_TRY(ox_ort_graph_repeat(g, err));
    OX_TRY(ox_ort_check(
        o, o->api.GetBoundOutputValues(g->binding, o->allocator, &g->values, &g->n_values),
        "ONNX Runtime does not give the outputs", err));
    if (g->n_values != g->ports.n_outputs)
        return OX_FAIL(err, OX_FAILED, "ONNX Runtime gave %zu of %zu outputs", g->n_values,
                       g->ports.n_outputs);
    for (size_t i = 0; i < g->n_values; i++) {
        const ox_status st = ox_ort_value_view(&out[i], o, g->values[i], err);
        if (st) ox_err_prefix(err, "output %s", g->ports.outputs[i].name.p);
        OX_TRY(st);
    }
    return OX_OK;
}
