/* model.c - opens a model: source, terms, plan, packed weights, tokenizer, templates. */
#include "base/clock.h"
#include "base/log.h"
#include "engine/engine_internal.h"
#include "text/unicode.h"

#include <string.h>

enum { FALLBACK_CONTEXT = 4096 };

void ox_model_options_init(ox_model_options *o)
{
    *o = (ox_model_options){.struct_size = sizeof(*o)};
}

static bool is_one_of(const char *s, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(s, *list)) return true;
    return false;
}

static bool is_ort(const ox_model_options *o)
{
    return o->backend && !strcmp(o->backend, "ort");
}

static ox_status check_options(const ox_model_options *o, ox_err *err)
{
    static const char *const numerics[] = {"fast", "faster", "exact", NULL};
    static const char *const backends[] = {"native", "ort", NULL};
    static const char *const kv[] = {"f32", "f16", "bf16", NULL};
    int32_t index;
    if (o->backend && !strcmp(o->backend, "oga"))
        return OX_FAIL(err, OX_NO_DEVICE,
                       "oga is an arm of oxgen compare, not a backend; expected native or ort");
    if (o->backend && !is_one_of(o->backend, backends))
        return OX_FAIL(err, OX_NO_DEVICE, "--backend %s is not known; expected native or ort",
                       o->backend);
    if (!is_ort(o) && o->n_ort_options)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--ort-option needs --backend ort");
    if (!is_ort(o) && o->profile && !(o->device && ox_device_parse(o->device, &index)))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--profile needs --device cuda or --backend ort");
    if (!is_ort(o) && o->device && strcmp(o->device, "auto") && strcmp(o->device, "cpu") &&
        !ox_device_parse(o->device, &index))
        return OX_FAIL(err, OX_NO_DEVICE, "--device %s is not known; expected auto, cpu or cuda:N",
                       o->device);
    if (o->numerics && !is_one_of(o->numerics, numerics))
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "--numerics %s is not known; expected fast, faster or exact", o->numerics);
    if (o->kv && !is_one_of(o->kv, kv))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--kv %s is not known; expected f32, f16 or bf16",
                       o->kv);
    if (o->n_threads < 0 || o->n_threads > OX_TEAM_MAX)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--threads %d: expected 1 to %d", o->n_threads,
                       OX_TEAM_MAX);
    if (o->context < 0) return OX_FAIL(err, OX_BAD_ARGUMENT, "--context must be > 0");
    return OX_OK;
}

/* OXGEN_PASSES="-name,-name": rewrites of opt/passes.def and fusions of plan/phases.def. */
static ox_status check_passes(ox_err *err)
{
    const char *list = ox_env("OXGEN_PASSES");
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        const ox_str name = {list + 1, n ? n - 1 : 0};
        if (n && (*list != '-' || !(ox_opt_has_pass(name) || ox_plan_has_phase(name))))
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "OXGEN_PASSES names '%.*s', which is no rewrite; expected names that "
                           "oxgen plan prints, each behind a minus",
                           (int)n, list);
        list += n + (list[n] == ',');
    }
    return OX_OK;
}

static ox_status pick_threads(int32_t *n, const ox_model_options *o, ox_err *err)
{
    const char *env = ox_env("OXGEN_THREADS");
    int64_t v;
    *n = o->n_threads;
    if (*n || !env || !*env) {
        if (!*n) *n = ox_cpu_count() < OX_TEAM_MAX ? ox_cpu_count() : OX_TEAM_MAX;
        return OX_OK;
    }
    if (!ox_str_to_i64(ox_str_of(env), &v) || v < 1 || v > OX_TEAM_MAX)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "OXGEN_THREADS=%s: expected 1 to %d", env,
                       OX_TEAM_MAX);
    *n = (int32_t)v;
    return OX_OK;
}

static ox_status copy_facts(ox_model *m, ox_err *err)
{
    const ox_facts *f = &m->source->facts;
    ox_buf b = {0};
    m->type = ox_strdup_n(f->type.p ? f->type.p : "", f->type.n);
    const char *base = ox_path_base(m->source->path);
    m->name = f->name.n ? ox_strdup_n(f->name.p, f->name.n) : ox_strdup_n(base, strlen(base));
    const ox_search *s = &f->search;
    ox_buf_printf(&b, "{\"do_sample\":%s", s->do_sample ? "true" : "false");
    if (s->has_temperature) ox_buf_printf(&b, ",\"temperature\":%.9g", (double)s->temperature);
    if (s->has_top_k) ox_buf_printf(&b, ",\"top_k\":%d", s->top_k);
    if (s->has_top_p) ox_buf_printf(&b, ",\"top_p\":%.9g", (double)s->top_p);
    if (s->has_min_p) ox_buf_printf(&b, ",\"min_p\":%.9g", (double)s->min_p);
    if (s->has_repetition) ox_buf_printf(&b, ",\"repetition_penalty\":%.9g", (double)s->repetition);
    if (s->max_length) ox_buf_printf(&b, ",\"max_length\":%d", s->max_length);
    ox_buf_put_z(&b, "}");
    m->search_json = b.p;
    if (!m->type || !m->name || b.failed)
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    return OX_OK;
}

static ox_status open_text(ox_model *m, ox_err *err)
{
    const ox_facts *f = &m->source->facts;
    if (f->tokenizer_json.n)
        OX_TRY(
            ox_tokenizer_open_cached(&m->tokenizer, f->tokenizer_json, f->tokenizer_config, err));
    const ox_str texts[] = {f->chat_template, f->tool_template};
    for (size_t i = 0; i < OX_COUNT(texts); i++) {
        const size_t good = ox_utf8_check(texts[i]);
        if (good < texts[i].n)
            return OX_FAIL(err, OX_BAD_FILE, "the chat template is not UTF-8 from byte %zu on",
                           good);
    }
    if (f->chat_template.n) OX_TRY(ox_template_open(&m->chat, f->chat_template, err));
    if (f->tool_template.n) OX_TRY(ox_template_open(&m->tools, f->tool_template, err));
    return OX_OK;
}

/* The end-of-text ids of the files joined with the tokenizer's own eos token. */
static void join_eos(ox_model *m)
{
    ox_facts *f = &m->source->facts;
    const int32_t eos = m->tokenizer ? ox_tokenizer_special(m->tokenizer, OX_SPECIAL_EOS) : -1;
    if (eos >= 0 && !ox_model_is_eos(m, eos) && f->n_eos < OX_EOS_MAX) f->eos[f->n_eos++] = eos;
}

/* What is told while weights are packed. */
typedef struct loading {
    const ox_model *m;
    const ox_model_options *o;
} loading;

static void drop_source_pages(void *user, const ox_weight *w)
{
    const ox_model *m = ((const loading *)user)->m;
    for (size_t i = 0; i < m->source->mappings.n; i++) {
        const ox_mapping *map = &m->source->mappings.p[i];
        const uint8_t *data = w->data ? w->data : w->nbits.codes;
        if (data >= map->bytes && data < map->bytes + map->n) ox_mapping_drop(map, data, w->bytes);
    }
}

static bool on_prepare(void *user, uint64_t done, uint64_t total)
{
    const loading *p = user;
    return !p->o->progress || !p->o->progress(p->o->progress_user, "load", done, total);
}

/* What the cache holds: as asked, else float32 when exact, else what the graph declares; a device
 * holds halves where the graph says float32, as its activations are. */
static ox_dtype kv_type(const ox_model *m, const ox_model_options *o, bool on_device)
{
    if (o->kv)
        return !strcmp(o->kv, "f32")   ? OX_DTYPE_F32
               : !strcmp(o->kv, "f16") ? OX_DTYPE_F16
                                       : OX_DTYPE_BF16;
    if (o->numerics && !strcmp(o->numerics, "exact")) return OX_DTYPE_F32;
    const ox_graph *g = m->source->graph;
    const bool onnx = m->source->form == OX_FORM_GENAI || m->source->form == OX_FORM_ONNX;
    const ox_dtype declared = g->caches.n ? g->caches.p[0].dtype : OX_DTYPE_F16;
    return onnx && ((declared == OX_DTYPE_F32 && !on_device) || declared == OX_DTYPE_BF16)
               ? declared
               : OX_DTYPE_F16;
}

/* Positions the rotary tables cover; 0 = no limit. */
static int64_t table_positions(const ox_graph *g)
{
    int64_t least = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        if (n->dead || !n->term || n->term->kind != OX_TERM_ROTATE) continue;
        const int64_t have = n->term->rotary->n_positions;
        if (!least || have < least) least = have;
    }
    return least;
}

/* Length at which rotary tables change; 0 = they do not. */
static int64_t table_switch(const ox_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        if (!n->dead && n->term && n->term->kind == OX_TERM_ROTATE && n->term->rotary->long_cos)
            return n->term->rotary->switch_length;
    }
    return 0;
}

/* Positions that the device's memory holds beside the weights; 0 = as many as one likes. */
static int64_t context_of_memory(const ox_model *m)
{
    if (!m->kv || !m->backend->ops->free_bytes) return 0;
    const uint64_t left = m->backend->ops->free_bytes(m->backend) / 100 * 95;
    const int64_t pages = (int64_t)(left / ox_kv_pool_page_bytes(m->kv));
    return pages < INT32_MAX / 64 ? pages * 64 : INT32_MAX;
}

static ox_status fit_context(ox_model *m, const ox_model_options *o, ox_err *err)
{
    const int64_t most = context_of_memory(m);
    if (!m->kv || !m->backend->ops->free_bytes || m->context <= most) return OX_OK;
    const double need = (double)(m->context - most) * (double)ox_model_kv_bytes_per_token(m);
    if (o->context || most < 64)
        return OX_FAIL(err, OX_NO_MEMORY,
                       "%s has too little memory for a context of %lld: %.2f GiB are missing; "
                       "lower --context to %lld or use --kv f16",
                       ox_model_device(m), (long long)m->context, need / 0x1p30, (long long)most);
    ox_source_warn(m->source, "%s holds %lld positions of the model's %lld", ox_model_device(m),
                   (long long)most, (long long)m->context);
    m->context = most;
    return OX_OK;
}

static ox_status pick_context(ox_model *m, const ox_model_options *o, ox_err *err)
{
    const int64_t declared = m->source->facts.context_length;
    const int64_t tables = m->plan ? table_positions(m->source->graph) : 0;
    int64_t most = declared ? declared : tables ? tables : FALLBACK_CONTEXT;
    if (tables && tables < most) most = tables;
    if (most > INT32_MAX) most = INT32_MAX;
    if (o->context > most)
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "--context %lld is more than the model's %lld positions; lower it",
                       (long long)o->context, (long long)most);
    m->context = o->context ? o->context : most;
    if (m->plan) m->switch_length = table_switch(m->source->graph);
    return fit_context(m, o, err);
}

static ox_numerics numerics_of(const ox_model_options *o)
{
    if (!o->numerics || !strcmp(o->numerics, "fast")) return OX_NUMERICS_FAST;
    return !strcmp(o->numerics, "faster") ? OX_NUMERICS_FASTER : OX_NUMERICS_EXACT;
}

/* "name: 1.2 ms", and the clock starts again. */
static void log_stage(const char *name, double *at)
{
    const double now = ox_clock_seconds();
    ox_log(OX_LOG_INFO, "%s: %.1f ms", name, (now - *at) * 1e3);
    *at = now;
}

static ox_status open_plan(ox_model *m, const ox_model_options *o, ox_err *err)
{
    const ox_plan_options po = {.numerics = numerics_of(o), .switches = ox_env("OXGEN_PASSES")};
    loading lp = {m, o};
    const ox_graph *g = m->source->graph;
    double at = ox_clock_seconds();
    OX_TRY(ox_plan_open(&m->plan, g, m->backend, &po, err));
    log_stage("plan made", &at);
    OX_TRY(m->backend->ops->prepare(m->backend, m->plan->calls.p, m->plan->calls.n, on_prepare, &lp,
                                    drop_source_pages, err));
    log_stage("weights packed", &at);
    ox_log(OX_LOG_INFO, "%zu terms became %zu calls; %.1f MB of packed weights", g->nodes.n,
           m->plan->calls.n, (double)m->backend->ops->weight_bytes(m->backend) / 1e6);
    OX_TRY(ox_exec_open(&m->exec, m->plan, err));
    OX_TRY(ox_kv_pool_open(&m->kv, g->caches.p, g->caches.n,
                           kv_type(m, o, m->backend->ops->page_memory != NULL), 0, err));
    const ox_backend_ops *ops = m->backend->ops;
    if (ops->page_memory) ox_kv_pool_use(m->kv, ops->page_memory(m->backend));
    return OX_OK;
}

static void close_plan(ox_model *m)
{
    ox_kv_pool_close(&m->kv);
    ox_exec_close(&m->exec);
    ox_plan_close(&m->plan);
    ox_backend_close(&m->backend);
    ox_device_library_close(&m->library);
}

/* Opens the plan on a CUDA device. */
static ox_status open_cuda(ox_model *m, const ox_model_options *o, int32_t index, ox_err *err)
{
    const bool exact = numerics_of(o) == OX_NUMERICS_EXACT;
    const ox_dtype kv = kv_type(m, o, true);
    const ox_device_options d = {.index = index,
                                 .activations = exact                 ? OX_DTYPE_F32
                                                : kv == OX_DTYPE_BF16 ? OX_DTYPE_BF16
                                                                      : OX_DTYPE_F16,
                                 .kv_dtype = kv,
                                 .exact = exact,
                                 .profile = o->profile != NULL,
                                 .context = o->context};
    ox_device_info info;
    OX_TRY(ox_device_library_open(&m->library, err));
    OX_TRY(ox_device_find(&m->library, index, &info, err));
    OX_TRY(m->library.plugin->open(&m->backend, &d, m->team, err));
    OX_TRY(open_plan(m, o, err));
    if (o->profile) {
        m->profile = ox_strdup_n(o->profile, strlen(o->profile));
        if (!m->profile) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    }
    ox_log(OX_LOG_INFO, "%s: %s, driver %s", ox_model_device(m), info.name, info.driver);
    return OX_OK;
}

/* --device: auto takes CUDA where it is there and the model fits; cuda never means the CPU. */
static ox_status open_device(ox_model *m, const ox_model_options *o, ox_err *err)
{
    int32_t index = 0;
    const bool asked = o->device && ox_device_parse(o->device, &index);
    if (asked || !o->device || !strcmp(o->device, "auto")) {
        ox_err why = OX_ERR_INIT;
        const ox_status st = open_cuda(m, o, index, &why);
        if (!st) return OX_OK;
        const bool may_go_on = asked ? o->allow_cpu && st == OX_UNSUPPORTED : st != OX_CANCELLED;
        if (!may_go_on) {
            if (err && !err->status) *err = why;
            return st;
        }
        close_plan(m);
        if (st != OX_NO_DEVICE) ox_source_warn(m->source, "the CPU is used: %s", why.msg);
    }
    OX_TRY(ox_backend_cpu_open(&m->backend, m->team, err));
    return open_plan(m, o, err);
}

static ox_status open_graph(ox_model *m, const ox_model_options *o, ox_err *err)
{
    ox_source *s = m->source;
    OX_TRY(pick_threads(&m->n_threads, o, err));
    OX_TRY(ox_team_open(&m->team, m->n_threads, err));
    if (!ox_graph_is_terms(s->graph)) {
        const ox_opt_ports ports = {s->in_ids,        s->in_mask,       s->in_positions,
                                    s->in_past_k,     s->in_past_v,     s->out_logits,
                                    s->out_present_k, s->out_present_v, s->facts.context_length};
        OX_TRY(ox_opt_run(s->graph, &ports, &s->arena, &m->opt, err));
        for (size_t i = 0; i < m->opt.n_changes; i++)
            if (m->opt.changes[i].n_changes)
                ox_log(OX_LOG_DEBUG, "rewrite %s: %d", m->opt.changes[i].pass,
                       m->opt.changes[i].n_changes);
    } else {
        m->opt.is_terms = true;
    }
    if (m->opt.is_terms) return open_device(m, o, err);
    if (m->opt.n_remaining)
        ox_source_warn(s,
                       "node %.*s (%.*s) is not recognised (%s): the graph runs operator by "
                       "operator, slowly",
                       OX_STR_ARGS(m->opt.remaining[0].node),
                       OX_STR_ARGS(m->opt.remaining[0].op_type), m->opt.remaining[0].reason);
    int32_t index;
    if (o->device && ox_device_parse(o->device, &index) && !o->allow_cpu)
        return OX_FAIL(
            err, OX_UNSUPPORTED,
            "node %.*s (%.*s) is not recognised (%s), so the graph runs operator by "
            "operator, which the CUDA backend cannot do; use --device cpu or --allow-cpu",
            OX_STR_ARGS(m->opt.remaining[0].node), OX_STR_ARGS(m->opt.remaining[0].op_type),
            m->opt.remaining[0].reason);
    return ox_interp_open(&m->interp, s, err);
}

ox_status ox_engine_ort_settings(ox_ort_settings *out, const ox_model_options *o, ox_err *err)
{
    *out = (ox_ort_settings){.device = o->device,
                             .options = o->ort_options,
                             .n_options = o->n_ort_options,
                             .profile = o->profile};
    if (o->device && strcmp(o->device, "auto") && strcmp(o->device, "cpu") &&
        strncmp(o->device, "cuda", 4))
        return OX_FAIL(err, OX_NO_DEVICE, "--device %s is not known; expected auto, cpu or cuda",
                       o->device);
    return pick_threads(&out->n_threads, o, err);
}

/* Flags that a graph run by another library cannot follow. */
static ox_status warn_idle_flags(ox_model *m, const ox_model_options *o)
{
    const struct {
        const char *flag, *value;
    } flags[] = {{"numerics", o->numerics}, {"kv", o->kv}, {"quant", o->quant}};
    for (size_t i = 0; i < OX_COUNT(flags); i++)
        if (flags[i].value)
            OX_TRY(ox_source_warn(m->source,
                                  "--%s %s changes nothing with --backend ort: the graph decides",
                                  flags[i].flag, flags[i].value));
    return OX_OK;
}

static ox_status open_ort(ox_model *m, const char *path, const ox_model_options *o, ox_err *err)
{
    char *onnx = NULL;
    ox_ort_settings settings;
    OX_TRY(ox_engine_ort_settings(&settings, o, err));
    ox_status st = ox_source_open_file(&m->source, &onnx, path, err);
    m->n_threads = settings.n_threads;
    if (!st && !o->text_only) st = ox_ort_decoder_open(&m->ort, m->source, onnx, &settings, err);
    if (!st) st = warn_idle_flags(m, o);
    ox_free(onnx);
    return st;
}

ox_status ox_model_open(ox_model **out, const char *path, const ox_model_options *options,
                        ox_err *err)
{
    ox_status st = OX_OK;
    ox_model_options o;

    *out = NULL;
    ox_model_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    OX_TRY(check_options(&o, err));
    OX_TRY(check_passes(err));
    ox_model *m = ox_calloc(1, sizeof(*m));
    if (!m) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    double at = ox_clock_seconds();
    OX_TRY_GOTO(is_ort(&o) ? open_ort(m, path, &o, err)
                           : ox_source_open(&m->source, path, &o, err));
    OX_TRY_GOTO(copy_facts(m, err));
    log_stage("files read", &at);
    OX_TRY_GOTO(open_text(m, err));
    log_stage("tokenizer and template made", &at);
    join_eos(m);
    OX_TRY_GOTO(ox_model_search_open(m, err));
    if (!o.text_only) {
        if (!m->ort) OX_TRY_GOTO(open_graph(m, &o, err));
        OX_TRY_GOTO(pick_context(m, &o, err));
    }
    *out = m;
    return OX_OK;
fail:
    ox_model_close(&m);
    st = ox_refused(st, err);
    if (err && !strstr(err->msg, ox_path_base(path))) ox_err_prefix(err, "%s", path);
    return st;
}

ox_status ox_refused(ox_status st, ox_err *err)
{
    if (st != OX_LIMIT) return st;
    if (err) err->status = OX_UNSUPPORTED;
    return OX_UNSUPPORTED;
}

void ox_model_close(ox_model **model)
{
    ox_model *m = *model;
    if (!m) return;
    close_plan(m);
    ox_interp_close(&m->interp);
    ox_ort_decoder_close(&m->ort);
    ox_team_close(&m->team);
    ox_template_close(&m->chat);
    ox_template_close(&m->tools);
    ox_tokenizer_close(&m->tokenizer);
    ox_source_close(&m->source);
    ox_free(m->name);
    ox_free(m->type);
    ox_free(m->search_json);
    ox_model_search_close(m);
    ox_free(m->profile);
    ox_free(m);
    *model = NULL;
}

const char *ox_model_name(const ox_model *m)
{
    return m->name;
}

const char *ox_model_architecture(const ox_model *m)
{
    return m->type;
}

const char *ox_model_backend(const ox_model *m)
{
    return m->ort ? "ort" : "native";
}

const char *ox_model_device(const ox_model *m)
{
    if (m->ort && ox_ort_decoder_on_cuda(m->ort)) return "cuda";
    return m->backend && m->backend->ops->device ? m->backend->ops->device(m->backend) : "cpu";
}

int64_t ox_model_context(const ox_model *m)
{
    return m->context;
}

int64_t ox_model_vocab(const ox_model *m)
{
    return m->plan ? m->plan->vocab : m->source->facts.vocab_size;
}

size_t ox_model_n_eos(const ox_model *m)
{
    return (size_t)m->source->facts.n_eos;
}

int32_t ox_model_eos(const ox_model *m, size_t i)
{
    return i < ox_model_n_eos(m) ? m->source->facts.eos[i] : -1;
}

int32_t ox_model_is_eos(const ox_model *m, int32_t id)
{
    for (int32_t i = 0; i < m->source->facts.n_eos; i++)
        if (m->source->facts.eos[i] == id) return 1;
    return 0;
}

int32_t ox_model_has_tokenizer(const ox_model *m)
{
    return m->tokenizer != NULL;
}

int32_t ox_model_has_template(const ox_model *m)
{
    return m->chat != NULL;
}

size_t ox_model_n_warnings(const ox_model *m)
{
    return m->source->warnings.n;
}

const char *ox_model_warning(const ox_model *m, size_t i)
{
    return i < m->source->warnings.n ? m->source->warnings.p[i] : NULL;
}

uint64_t ox_model_weight_bytes(const ox_model *m)
{
    if (m->ort) return ox_ort_decoder_weight_bytes(m->ort);
    return m->backend ? m->backend->ops->weight_bytes(m->backend) : 0;
}

uint64_t ox_model_kv_bytes_per_token(const ox_model *m)
{
    if (m->ort) return ox_ort_decoder_kv_bytes(m->ort);
    return m->kv ? ox_kv_pool_page_bytes(m->kv) / 64 : 0;
}

int32_t ox_model_n_threads(const ox_model *m)
{
    return m->n_threads;
}

const char *ox_model_search_json(const ox_model *m)
{
    return m->search_json;
}
