/* library.c - finds and opens libonnxruntime, checks its version, fills the table of api.def. */
#include "backend/ort/find.h"
#include "backend/ort/ort.h"
#include "base/dl.h"
#include "base/log.h"
#include "base/mem.h"

#include <string.h>

static const ox_find_what what = {
    .name = "ONNX Runtime",
    .env = "OXGEN_ORT_LIB",
    .folder = "onnxruntime/capi",
    .stem = "libonnxruntime.so",
    .loader = {"libonnxruntime.so.1", "libonnxruntime.so", NULL},
    .package = "onnxruntime",
    .needs = "version 1.20 or later",
};

/* The loader's path: the first name that opens. */
static ox_status open_by_name(ox_dl **dl, ox_err *err)
{
    for (int i = 0; what.loader[i]; i++) {
        const ox_status st = ox_dl_open_kept(dl, what.loader[i], NULL);
        if (!st) return OX_OK;
        if (st == OX_NO_MEMORY) return OX_FAIL(err, st, "no memory to open %s", what.loader[i]);
    }
    return OX_FAIL(
        err, OX_NO_DEVICE,
        "there is no ONNX Runtime: it is not in the active Python environment and not on "
        "the loader's path; install the Python package onnxruntime (%s) or name the "
        "file with OXGEN_ORT_LIB",
        what.needs);
}

static ox_status open_file(ox_dl **dl, const char *path, ox_err *err)
{
    ox_err why = OX_ERR_INIT;
    OX_TRY(ox_find_check(path, err));
    const ox_status st = ox_dl_open_kept(dl, path, &why);
    if (st == OX_NO_MEMORY) return OX_FAIL(err, st, "%s", why.msg);
    if (st)
        return OX_FAIL(err, OX_NO_DEVICE, "%s; install it again or name another with OXGEN_ORT_LIB",
                       why.msg);
    return OX_OK;
}

/* "1.32.0" as 1 and 32; false for anything else. */
static bool read_version(const char *text, int64_t *major, int64_t *minor)
{
    const ox_str s = ox_str_of(text);
    const size_t a = ox_str_find(s, OX_STR("."), 0);
    if (a == SIZE_MAX) return false;
    size_t b = ox_str_find(s, OX_STR("."), a + 1);
    if (b == SIZE_MAX) b = s.n;
    return ox_str_to_i64((ox_str){s.p, a}, major) &&
           ox_str_to_i64((ox_str){s.p + a + 1, b - a - 1}, minor);
}

static ox_status check_version(const char *path, const char *version, ox_err *err)
{
    int64_t major = 0, minor = 0;
    if (!version || !read_version(version, &major, &minor))
        return OX_FAIL(err, OX_NO_DEVICE, "%s says its version is '%.40s'; expected 1.20 or later",
                       path, version ? version : "");
    if (major < 1 || (major == 1 && minor < OX_ORT_API_VERSION))
        return OX_FAIL(err, OX_NO_DEVICE,
                       "%s is ONNX Runtime %.40s, too old; expected 1.20 or later", path, version);
    if (major > 1)
        return OX_FAIL(err, OX_NO_DEVICE,
                       "%s is ONNX Runtime %.40s, newer than this oxgen knows; expected 1.20 or a "
                       "later 1.x",
                       path, version);
    return OX_OK;
}

static ox_status fill_api(ox_ort *o, ox_dl *dl, const char *path, ox_err *err)
{
    const ox_ort_api_base *(*get)(void) = NULL;
    void *symbol = ox_dl_symbol(dl, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof(get));
    const ox_ort_api_base *base = get ? get() : NULL;
    if (!base)
        return OX_FAIL(err, OX_NO_DEVICE, "%s is not ONNX Runtime: it has no OrtGetApiBase", path);
    const char *version = base->version();
    OX_TRY(check_version(path, version, err));
    void *const *table = base->get_api(OX_ORT_API_VERSION);
    if (!table)
        return OX_FAIL(err, OX_NO_DEVICE,
                       "%s (ONNX Runtime %.40s) does not give its interface of version %d", path,
                       version, OX_ORT_API_VERSION);
#define OX_ORT_FN(index, result, name, args) memcpy(&o->api.name, &table[index], sizeof(void *));
#include "backend/ort/api.def"
#undef OX_ORT_FN
    const size_t n = strlen(version), most = sizeof(o->about.version) - 1;
    memcpy(o->about.version, version, n < most ? n : most);
    o->about.api = OX_ORT_API_VERSION;
    return OX_OK;
}

static void on_log(void *user, int severity, const char *category, const char *id,
                   const char *where, const char *message)
{
    (void)user, (void)category, (void)id, (void)where;
    ox_log(severity >= OX_ORT_SEVERITY_ERROR     ? OX_LOG_INFO
           : severity >= OX_ORT_SEVERITY_WARNING ? OX_LOG_INFO
                                                 : OX_LOG_DEBUG,
           "onnxruntime: %s", message ? message : "");
}

static ox_status list_providers(ox_ort *o, ox_err *err)
{
    char **names = NULL;
    int n = 0;
    ox_buf b = {0};
    OX_TRY(ox_ort_check(o, o->api.GetAvailableProviders(&names, &n),
                        "ONNX Runtime cannot list its providers", err));
    for (int i = 0; i < n; i++)
        ox_buf_printf(&b, "%s%s", i ? ", " : "", names[i]);
    if (b.n && b.n < sizeof(o->about.providers)) memcpy(o->about.providers, b.p, b.n + 1);
    ox_buf_deinit(&b);
    return ox_ort_check(o, o->api.ReleaseAvailableProviders(names, n), "ONNX Runtime", err);
}

static ox_status open_env(ox_ort *o, ox_err *err)
{
    OX_TRY(ox_ort_check(
        o,
        o->api.CreateEnvWithCustomLogger(on_log, NULL, OX_ORT_SEVERITY_WARNING, "oxgen", &o->env),
        "ONNX Runtime does not start", err));
    OX_TRY(ox_ort_check(
        o, o->api.CreateCpuMemoryInfo(OX_ORT_ARENA_ALLOCATOR, OX_ORT_MEMORY_DEFAULT, &o->cpu),
        "ONNX Runtime does not start", err));
    OX_TRY(ox_ort_check(o, o->api.GetAllocatorWithDefaultOptions(&o->allocator),
                        "ONNX Runtime does not start", err));
    return list_providers(o, err);
}

ox_status ox_ort_open(ox_ort **out, ox_err *err)
{
    ox_status st = OX_OK;
    char *path = NULL;
    ox_dl *dl = NULL;

    *out = NULL;
    ox_ort *o = ox_calloc(1, sizeof(*o));
    if (!o) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a library");
    OX_TRY_GOTO(ox_find_library(&path, &what, err));
    OX_TRY_GOTO(*path ? open_file(&dl, path, err) : open_by_name(&dl, err));
    const void *symbol = ox_dl_symbol(dl, "OrtGetApiBase");
    ox_dl_file_of(symbol, o->about.path, sizeof(o->about.path));
    OX_TRY_GOTO(fill_api(o, dl, *path ? path : o->about.path, err));
    OX_TRY_GOTO(open_env(o, err));
    *out = o;
    o = NULL;
fail:
    ox_dl_close(&dl);
    ox_free(path);
    ox_ort_close(&o);
    return st;
}

void ox_ort_close(ox_ort **ort)
{
    ox_ort *o = *ort;
    if (!o) return;
    if (o->cpu) o->api.ReleaseMemoryInfo(o->cpu);
    if (o->env) o->api.ReleaseEnv(o->env);
    ox_free(o);
    *ort = NULL;
}

/* What the library's error numbers mean here. */
static ox_status status_of(int code)
{
    switch (code) {
    case OX_ORT_NO_SUCHFILE:
    case OX_ORT_INVALID_PROTOBUF:
        return OX_BAD_FILE;
    case OX_ORT_NOT_IMPLEMENTED:
    case OX_ORT_INVALID_GRAPH:
        return OX_UNSUPPORTED;
    default:
        return OX_FAILED;
    }
}

/* The first line without the place in the library's sources, "/onnxruntime_src/x.cc:7 f(int) ". */
static void put_words(ox_buf *out, const char *said)
{
    const ox_str line = {said, strcspn(said, "\n")};
    const size_t at = ox_str_find(line, OX_STR("/onnxruntime_src/"), 0);
    const size_t end = at == SIZE_MAX ? SIZE_MAX : ox_str_find(line, OX_STR(") "), at);
    ox_buf_put(out, line.p, end == SIZE_MAX ? line.n : at);
    if (end != SIZE_MAX) ox_buf_put(out, line.p + end + 2, line.n - end - 2);
    ox_buf_put_c(out, 0);
}

ox_status ox_ort_check(const ox_ort *o, ox_ort_status *status, const char *phrase, ox_err *err)
{
    if (!status) return OX_OK;
    const char *said = o->api.GetErrorMessage(status);
    const ox_status st = status_of(o->api.GetErrorCode(status));
    ox_buf words = {0};
    put_words(&words, said ? said : "");
    OX_FAIL(err, st, "%s: %.700s", phrase, words.failed ? "" : words.p);
    ox_buf_deinit(&words);
    o->api.ReleaseStatus(status);
    return st;
}

ox_status ox_library_ort(ox_library *out, ox_err *err)
{
    ox_ort *o = NULL;
    *out = (ox_library){.api = 0};
    OX_TRY(ox_ort_open(&o, err));
    *out = o->about;
    ox_ort_close(&o);
    return OX_OK;
}
