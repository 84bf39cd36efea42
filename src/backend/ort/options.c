/* options.c - how a session is made: threads, device, profile and the K=V settings of the user
 * become ONNX Runtime's session options, and a JSON object that says which ones. */
#include "backend/ort/session.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <string.h>

typedef struct making {
    const ox_ort *o;
    ox_ort_options *so;
    const ox_ort_settings *s;
    ox_json_writer w;
} making;

/* A row's call: value is the text behind "=". OX_BAD_ARGUMENT without a message = not such a value.
 */
typedef ox_status set_fn(making *m, const char *value, ox_err *err);

static ox_status pass(const making *m, ox_ort_status *st, ox_err *err)
{
    return ox_ort_check(m->o, st, "ONNX Runtime refuses a session option", err);
}

static ox_status set_intra(making *m, const char *value, ox_err *err)
{
    int64_t n;
    if (!ox_str_to_i64(ox_str_of(value), &n) || n < 0 || n > 4096) return OX_BAD_ARGUMENT;
    return pass(m, m->o->api.SetIntraOpNumThreads(m->so, (int)n), err);
}

static ox_status set_inter(making *m, const char *value, ox_err *err)
{
    int64_t n;
    if (!ox_str_to_i64(ox_str_of(value), &n) || n < 0 || n > 4096) return OX_BAD_ARGUMENT;
    return pass(m, m->o->api.SetInterOpNumThreads(m->so, (int)n), err);
}

/* The index of value in a NULL-ended list, or -1. */
static int index_of(const char *const *list, const char *value)
{
    for (int i = 0; list[i]; i++)
        if (!strcmp(list[i], value)) return i;
    return -1;
}

static ox_status set_mode(making *m, const char *value, ox_err *err)
{
    static const char *const modes[] = {"sequential", "parallel", NULL};
    const int i = index_of(modes, value);
    if (i < 0) return OX_BAD_ARGUMENT;
    return pass(m, m->o->api.SetSessionExecutionMode(m->so, i), err);
}

static ox_status set_level(making *m, const char *value, ox_err *err)
{
    static const char *const levels[] = {"disable",
                                         "basic",
                                         "extended",
                                         "all",
                                         "ORT_DISABLE_ALL",
                                         "ORT_ENABLE_BASIC",
                                         "ORT_ENABLE_EXTENDED",
                                         "ORT_ENABLE_ALL",
                                         NULL};
    static const int numbers[] = {0, 1, 2, 99};
    const int i = index_of(levels, value);
    if (i < 0) return OX_BAD_ARGUMENT;
    return pass(m, m->o->api.SetSessionGraphOptimizationLevel(m->so, numbers[i % 4]), err);
}

static bool is_switch(const char *value, bool *on)
{
    *on = !strcmp(value, "1");
    return *on || !strcmp(value, "0");
}

static ox_status set_spinning(making *m, const char *value, ox_err *err)
{
    bool on;
    if (!is_switch(value, &on)) return OX_BAD_ARGUMENT;
    OX_TRY(pass(m, m->o->api.AddSessionConfigEntry(m->so, "session.intra_op.allow_spinning", value),
                err));
    return pass(m, m->o->api.AddSessionConfigEntry(m->so, "session.inter_op.allow_spinning", value),
                err);
}

static ox_status set_arena(making *m, const char *value, ox_err *err)
{
    bool on;
    if (!is_switch(value, &on)) return OX_BAD_ARGUMENT;
    return pass(m, on ? m->o->api.EnableCpuMemArena(m->so) : m->o->api.DisableCpuMemArena(m->so),
                err);
}

static ox_status set_pattern(making *m, const char *value, ox_err *err)
{
    bool on;
    if (!is_switch(value, &on)) return OX_BAD_ARGUMENT;
    return pass(m, on ? m->o->api.EnableMemPattern(m->so) : m->o->api.DisableMemPattern(m->so),
                err);
}

static ox_status set_severity(making *m, const char *value, ox_err *err)
{
    int64_t n;
    if (!ox_str_to_i64(ox_str_of(value), &n) || n < 0 || n > 4) return OX_BAD_ARGUMENT;
    return pass(m, m->o->api.SetSessionLogSeverityLevel(m->so, (int)n), err);
}

static ox_status set_custom_ops(making *m, const char *value, ox_err *err)
{
    if (!*value) return OX_BAD_ARGUMENT;
    return pass(m, m->o->api.RegisterCustomOpsLibrary_V2(m->so, value), err);
}

/* decoder.c reads it. */
static ox_status set_caches(making *m, const char *value, ox_err *err)
{
    static const char *const places[] = {"bound", "library", NULL};
    (void)m;
    (void)err;
    return index_of(places, value) < 0 ? OX_BAD_ARGUMENT : OX_OK;
}

static ox_status set_nothing(making *m, const char *value, ox_err *err)
{
    (void)m;
    (void)err;
    return *value ? OX_OK : OX_BAD_ARGUMENT;
}

static const struct {
    const char *key;
    set_fn *set;
    const char *values;
} rows[] = {
#define OX_ORT_OPTION(key, set, values) {key, set, values},
#include "backend/ort/options.def"
#undef OX_ORT_OPTION
};

static void put(making *m, const char *key, const char *value)
{
    ox_json_put_key(&m->w, key);
    ox_json_put_z(&m->w, value);
}

/* True when key is "NAME.x" of an execution provider that provider=NAME asks for. */
static bool is_of_provider(const ox_ort_settings *s, ox_str key)
{
    for (size_t i = 0; i < s->n_options; i++) {
        const ox_str o = ox_str_of(s->options[i]);
        if (!ox_str_starts(o, OX_STR("provider="))) continue;
        const ox_str name = {o.p + 9, o.n - 9};
        if (name.n && key.n > name.n && key.p[name.n] == '.' && ox_str_starts(key, name))
            return true;
    }
    return false;
}

/* One K=V. The key's copy lives until the call returns. */
static ox_status set_one(making *m, const char *option, ox_err *err)
{
    const char *eq = strchr(option, '=');
    if (!eq || eq == option)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--ort-option expects KEY=VALUE, found '%s'", option);
    char *key = ox_strdup_n(option, (size_t)(eq - option));
    if (!key) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a session option");
    ox_status st = OX_BAD_ARGUMENT;
    const char *values = NULL;
    if (is_of_provider(m->s, ox_str_of(key))) {
        st = OX_OK; /* add_provider hands it over */
    } else {
        for (size_t i = 0; i < OX_COUNT(rows) && !values; i++)
            if (!strcmp(rows[i].key, key)) {
                values = rows[i].values;
                st = rows[i].set(m, eq + 1, err);
            }
        if (!values && strchr(key, '.'))
            st = pass(m, m->o->api.AddSessionConfigEntry(m->so, key, eq + 1), err);
        else if (!values)
            values = "a key that docs/ort.md lists, or one of ONNX Runtime's own, with a dot";
    }
    if (st == OX_BAD_ARGUMENT)
        OX_FAIL(err, st, "--ort-option %s: expected %s", option, values ? values : "another value");
    if (!st) put(m, key, eq + 1);
    ox_free(key);
    return st;
}

enum { MOST_KEYS = 64 };

/* The options "NAME.key=value" of one provider as two lists; text is owned by the caller. */
typedef struct provider_options {
    char *text[MOST_KEYS]; /* "key\0value" */
    const char *keys[MOST_KEYS], *values[MOST_KEYS];
    size_t n;
} provider_options;

static ox_status read_provider(provider_options *p, const ox_ort_settings *s, ox_str name,
                               ox_err *err)
{
    for (size_t i = 0; i < s->n_options; i++) {
        const ox_str o = ox_str_of(s->options[i]);
        if (o.n <= name.n || o.p[name.n] != '.' || !ox_str_starts(o, name)) continue;
        if (p->n == MOST_KEYS)
            return OX_FAIL(err, OX_LIMIT, "more than %d options for one provider", MOST_KEYS);
        char *text = ox_strdup_n(o.p + name.n + 1, o.n - name.n - 1);
        if (!text) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a provider's options");
        p->text[p->n] = text;
        char *eq = strchr(text, '=');
        if (eq) *eq = 0;
        p->keys[p->n] = text;
        p->values[p->n++] = eq ? eq + 1 : "";
    }
    return OX_OK;
}

static ox_status append_cuda(making *m, const provider_options *p, ox_err *err)
{
    ox_ort_cuda *c = NULL;
    OX_TRY(pass(m, m->o->api.CreateCUDAProviderOptions(&c), err));
    ox_status st = OX_OK;
    if (p->n) st = pass(m, m->o->api.UpdateCUDAProviderOptions(c, p->keys, p->values, p->n), err);
    if (!st) st = pass(m, m->o->api.SessionOptionsAppendExecutionProvider_CUDA_V2(m->so, c), err);
    m->o->api.ReleaseCUDAProviderOptions(c);
    return st;
}

static ox_status add_provider(making *m, ox_str name, ox_err *err)
{
    provider_options p = {.n = 0};
    char *z = ox_strdup_n(name.p, name.n);
    if (!z) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a provider's name");
    ox_status st = read_provider(&p, m->s, name, err);
    if (!st && (!strcmp(z, "CUDA") || !strcmp(z, "cuda")))
        st = append_cuda(m, &p, err);
    else if (!st && strcmp(z, "CPU") && strcmp(z, "cpu"))
        st = pass(m,
                  m->o->api.SessionOptionsAppendExecutionProvider(m->so, z, p.keys, p.values, p.n),
                  err);
    if (st && st != OX_NO_MEMORY && err) {
        err->status = OX_NO_DEVICE;
        ox_err_prefix(err, "execution provider %s (ONNX Runtime %s has %s)", z, m->o->about.version,
                      m->o->about.providers);
        st = OX_NO_DEVICE;
    }
    for (size_t i = 0; i < p.n; i++)
        ox_free(p.text[i]);
    ox_free(z);
    return st;
}

static ox_status add_providers(making *m, ox_err *err)
{
    const ox_ort_settings *s = m->s;
    bool any = false;
    for (size_t i = 0; i < s->n_options; i++) {
        const ox_str o = ox_str_of(s->options[i]);
        if (!ox_str_starts(o, OX_STR("provider="))) continue;
        OX_TRY(add_provider(m, (ox_str){o.p + 9, o.n - 9}, err));
        any = true;
    }
    if (any || !s->device || strncmp(s->device, "cuda", 4)) return OX_OK;
    if (s->device[4] && strcmp(s->device, "cuda:0"))
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "--device %s with --backend ort: use --ort-option provider=CUDA and "
                       "--ort-option CUDA.device_id=N",
                       s->device);
    put(m, "provider", "CUDA");
    return add_provider(m, OX_STR("CUDA"), err);
}

static bool user_sets(const ox_ort_settings *s, ox_str key)
{
    for (size_t i = 0; i < s->n_options; i++)
        if (ox_str_starts(ox_str_of(s->options[i]), key) && s->options[i][key.n] == '=')
            return true;
    return false;
}

/* Keys that a model's own files may set. No libraries, no files, no providers, and threads are the
 * caller's: a model folder is not trusted with more than how its graph is prepared. */
static bool folder_may_set(ox_str key)
{
    static const char *const keys[] = {"graph_optimization_level",
                                       "enable_cpu_mem_arena",
                                       "enable_mem_pattern",
                                       "session.disable_prepacking",
                                       "session.use_env_allocators",
                                       "session.set_denormal_as_zero",
                                       "session.disable_quant_qdq",
                                       "session.enable_gelu_approximation",
                                       "session.intra_op.allow_spinning",
                                       "session.inter_op.allow_spinning"};
    for (size_t i = 0; i < OX_COUNT(keys); i++)
        if (ox_str_is(key, keys[i])) return true;
    return false;
}

/* session_options of genai_config.json, where the user says nothing else. */
static ox_status set_folder(making *m, ox_err *err)
{
    const ox_json *o = m->s->folder;
    for (size_t i = 0; ox_json_is(o, OX_JSON_OBJECT) && i < o->n; i++) {
        const ox_json_member *q = ox_json_member_at(o, i);
        const ox_str key = ox_json_str(&q->key), text = ox_json_str(&q->value);
        ox_buf b = {0};
        if (!folder_may_set(key) || user_sets(m->s, key)) continue;
        ox_buf_printf(&b, "%.*s=", OX_STR_ARGS(key));
        if (ox_json_is(&q->value, OX_JSON_BOOL))
            ox_buf_put_z(&b, ox_json_true(&q->value) ? "1" : "0");
        else
            ox_buf_put_str(&b, text);
        ox_status st = b.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for a session option")
                                : set_one(m, b.p, err);
        if (st == OX_BAD_ARGUMENT && err) {
            err->status = st = OX_BAD_FILE;
            ox_err_prefix(err, "genai_config.json: session_options");
        }
        ox_buf_deinit(&b);
        OX_TRY(st);
    }
    return OX_OK;
}

static ox_status set_all(making *m, ox_err *err)
{
    const ox_ort_settings *s = m->s;
    char number[16];
    bool threads = false;
    for (size_t i = 0; i < s->n_options; i++)
        threads |= !strncmp(s->options[i], "intra_op_num_threads=", 21);
    if (s->n_threads > 0 && !threads) {
        ox_buf b = {0};
        ox_buf_printf(&b, "%d", s->n_threads);
        if (b.failed) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a session option");
        memcpy(number, b.p, b.n + 1);
        ox_buf_deinit(&b);
        OX_TRY(set_intra(m, number, err));
        put(m, "intra_op_num_threads", number);
    }
    OX_TRY(set_folder(m, err));
    for (size_t i = 0; i < s->n_options; i++)
        OX_TRY(set_one(m, s->options[i], err));
    OX_TRY(add_providers(m, err));
    if (s->profile) {
        OX_TRY(pass(m, m->o->api.EnableProfiling(m->so, s->profile), err));
        put(m, "profile", s->profile);
    }
    return OX_OK;
}

ox_status ox_ort_session_open(ox_ort_session **out, ox_buf *json, const ox_ort *o, const char *onnx,
                              const ox_ort_settings *s, ox_err *err)
{
    making m = {.o = o, .s = s, .w = {.out = json}};
    *out = NULL;
    OX_TRY(pass(&m, o->api.CreateSessionOptions(&m.so), err));
    ox_json_begin_object(&m.w);
    ox_status st = set_all(&m, err);
    ox_json_end_object(&m.w);
    if (!st) {
        ox_log(OX_LOG_DEBUG, "onnxruntime %s: %s", o->about.version, json->p ? json->p : "");
        st = ox_ort_check(o, o->api.CreateSession(o->env, onnx, m.so, out),
                          "ONNX Runtime refuses the graph", err);
    }
    if (st == OX_FAILED && *out == NULL && err && err->status == OX_FAILED)
        err->status = st = OX_UNSUPPORTED;
    if (!st && json->failed) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for session options");
    o->api.ReleaseSessionOptions(m.so);
    if (st && *out) {
        o->api.ReleaseSession(*out);
        *out = NULL;
    }
    return st;
}
