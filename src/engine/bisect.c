/* bisect.c - finds a rewrite or fusion that changes a model's answer: the planned run against the
 * graph as written, run operator by operator, and then with one fusion of plan/phases.def off at a
 * time. Imports (GGUF, safetensors) have no graph as written: there the plan of single terms is
 * what the others are compared with. Rewrites of opt/ are switched off with OXGEN_PASSES=-name. */
#include "engine/engine_internal.h"

#include <math.h>
#include <string.h>

enum { N_IDS = 8 };

static const char *const phase_names[] = {
#define OX_PHASE(name, fn, what) name,
#include "plan/phases.def"
#undef OX_PHASE
};

typedef struct rows {
    float *p; /* [N_IDS, vocab] */
    size_t n;
} rows;

static ox_status keep(void *user, size_t position, const float *logits, size_t vocab)
{
    rows *r = user;
    memcpy(r->p + position * vocab, logits, vocab * sizeof(float));
    r->n++;
    return OX_OK;
}

/* Largest difference over the largest logit. */
static double distance(const rows *a, const rows *b, size_t vocab)
{
    double off = 0, size = 1e-30;
    for (size_t i = 0; i < N_IDS * vocab; i++) {
        off = fmax(off, fabs((double)a->p[i] - (double)b->p[i]));
        size = fmax(size, fabs((double)b->p[i]));
    }
    return off / size;
}

/* Logits of the planned run with some phases off. */
static ox_status run_plan(const ox_model *m, const int32_t *ids, const char *off, rows *out,
                          ox_err *err)
{
    ox_model other = {.source = m->source, .team = m->team, .context = N_IDS};
    const ox_plan_options o = {.numerics = OX_NUMERICS_EXACT, .switches = off};
    ox_session *s = NULL;
    const ox_graph *g = m->source->graph;
    ox_status st = ox_backend_cpu_open(&other.backend, m->team, err);
    if (!st) st = ox_plan_open(&other.plan, g, other.backend, &o, err);
    if (!st)
        st = other.backend->ops->prepare(other.backend, other.plan->calls.p, other.plan->calls.n,
                                         NULL, NULL, NULL, err);
    if (!st) st = ox_exec_open(&other.exec, other.plan, err);
    if (!st) st = ox_kv_pool_open(&other.kv, g->caches.p, g->caches.n, OX_DTYPE_F32, 0, err);
    if (!st) st = ox_session_open(&s, &other, err);
    if (!st) st = ox_session_all_logits(s, ids, N_IDS, 0, keep, out, err);
    ox_session_close(&s);
    ox_kv_pool_close(&other.kv);
    ox_exec_close(&other.exec);
    ox_plan_close(&other.plan);
    ox_backend_close(&other.backend);
    return st;
}

/* Logits of the graph as its file says it. */
static ox_status run_as_written(const ox_model *m, const int32_t *ids, rows *out, ox_err *err)
{
    ox_source *s = NULL;
    ox_interp *p = NULL;
    struct ox_interp_state *state = NULL;
    ox_status st = ox_source_open_onnx(&s, m->source->path, err);
    if (!st) st = ox_interp_open(&p, s, err);
    if (!st) st = ox_interp_state_open(&state, p, err);
    if (!st) st = ox_interp_append(p, state, ids, N_IDS, N_IDS, keep, out, err);
    ox_interp_state_close(&state);
    ox_interp_close(&p);
    ox_source_close(&s);
    return st;
}

static ox_status compare_all(const ox_model *m, const int32_t *ids, rows *oracle, rows *got,
                             ox_buf *b, ox_err *err)
{
    const size_t vocab = (size_t)m->plan->vocab;
    const bool onnx = m->source->form == OX_FORM_GENAI || m->source->form == OX_FORM_ONNX;
    ox_buf all = {0};
    for (size_t i = 0; i < OX_COUNT(phase_names); i++)
        ox_buf_printf(&all, "%s-%s", i ? "," : "", phase_names[i]);
    ox_status st = all.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for a report") : OX_OK;
    if (!st) st = onnx ? run_as_written(m, ids, oracle, err) : run_plan(m, ids, all.p, oracle, err);
    ox_buf_deinit(&all);
    OX_TRY(st);
    ox_buf_printf(b,
                  "compared with %s: largest difference over the largest logit, %d tokens, exact\n",
                  onnx ? "the graph as written, operator by operator" : "one call a term", N_IDS);
    OX_TRY(run_plan(m, ids, NULL, got, err));
    ox_buf_printf(b, "%-24s %.3g\n", "everything on", distance(got, oracle, vocab));
    for (size_t i = 0; i + 1 < OX_COUNT(phase_names); i++) {
        ox_buf off = {0};
        ox_buf_printf(&off, "-%s", phase_names[i]);
        st = run_plan(m, ids, off.p, got, err);
        ox_buf_printf(b, "without %-16s %.3g\n", phase_names[i], distance(got, oracle, vocab));
        ox_buf_deinit(&off);
        OX_TRY(st);
    }
    return OX_OK;
}

ox_status ox_model_bisect_text(ox_model *m, char **text, ox_err *err)
{
    int32_t ids[N_IDS];
    ox_buf b = {0};
    if (!m->plan)
        return OX_FAIL(err, OX_UNSUPPORTED, "%s: nothing to compare",
                       m->ort ? "ONNX Runtime runs the graph as one call"
                              : "the graph runs operator by operator");
    const size_t vocab = (size_t)m->plan->vocab;
    for (size_t i = 0; i < N_IDS; i++)
        ids[i] = (int32_t)((i * 7919 + 13) % vocab);
    rows oracle = {ox_calloc(N_IDS * vocab, sizeof(float)), 0};
    rows got = {ox_calloc(N_IDS * vocab, sizeof(float)), 0};
    ox_status st = oracle.p && got.p ? compare_all(m, ids, &oracle, &got, &b, err)
                                     : OX_FAIL(err, OX_NO_MEMORY, "no memory for logits");
    ox_free(oracle.p);
    ox_free(got.p);
    if (!st && b.failed) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a report");
    if (st)
        ox_buf_deinit(&b);
    else
        *text = b.p;
    return st;
}
