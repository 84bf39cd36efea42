/* library.c - finds and opens libonnxruntime-genai, and before it the libonnxruntime that it works
 * with: it has none of its own and takes the one that the process has loaded. */
#include "backend/oga/oga.h"
#include "backend/ort/find.h"
#include "base/dl.h"
#include "base/fs.h"
#include "base/mem.h"

#include <string.h>

enum { LEAST_ORT_MINOR = 31 };

static const ox_find_what what = {
    .name = "ONNX Runtime GenAI",
    .env = "OXGEN_OGA_LIB",
    .folder = "onnxruntime_genai",
    .stem = "libonnxruntime-genai.so",
    .loader = {"libonnxruntime-genai.so", NULL},
    .package = "onnxruntime-genai",
    .needs = "version 0.18 or later",
};

ox_status ox_oga_check(const ox_oga_lib *l, ox_oga_result *r, ox_status st, const char *phrase,
                       ox_err *err)
{
    if (!r) return OX_OK;
    const char *said = l->api.OgaResultGetError(r);
    const size_t n = said ? strcspn(said, "\n") : 0;
    OX_FAIL(err, st, "%s: %.*s", phrase, (int)(n < 700 ? n : 700), said ? said : "");
    l->api.OgaDestroyResult(r);
    return st;
}

static ox_status open_file(ox_dl **dl, const char *path, ox_err *err)
{
    ox_err why = OX_ERR_INIT;
    if (!*path && !ox_dl_open_kept(dl, what.loader[0], NULL)) return OX_OK;
    if (!*path)
        return OX_FAIL(err, OX_NO_DEVICE,
                       "there is no ONNX Runtime GenAI: it is not in the active Python environment "
                       "and not on the loader's path; install the Python package %s (%s) or name "
                       "the file with OXGEN_OGA_LIB",
                       what.package, what.needs);
    OX_TRY(ox_find_check(path, err));
    const ox_status st = ox_dl_open_kept(dl, path, &why);
    if (st == OX_NO_MEMORY) return OX_FAIL(err, st, "%s", why.msg);
    if (st)
        return OX_FAIL(err, OX_NO_DEVICE, "%s; install it again or name another with OXGEN_OGA_LIB",
                       why.msg);
    return OX_OK;
}

static ox_status fill_api(ox_oga_lib *l, ox_dl *dl, const char *path, ox_err *err)
{
    const char *missing = NULL;
    void *symbol;
#define OX_OGA_FN(result, name, args)                                                              \
    symbol = ox_dl_symbol(dl, #name);                                                              \
    if (!symbol && !missing) missing = #name;                                                      \
    memcpy(&l->api.name, &symbol, sizeof(symbol));
#include "backend/oga/api.def"
#undef OX_OGA_FN
    if (!missing) return OX_OK;
    return OX_FAIL(err, OX_NO_DEVICE,
                   "%s is no ONNX Runtime GenAI that oxgen knows: it has no %s; expected %s", path,
                   missing, what.needs);
}

/* The library does not tell its version; the Python package's folder name does:
 * site-packages/onnxruntime_genai[_x]-0.18.0.dist-info beside site-packages/onnxruntime_genai. */
static ox_status read_version(ox_oga_lib *l, ox_err *err)
{
    char **names = NULL;
    size_t n = 0;
    const ox_str prefix = OX_STR("onnxruntime_genai"), suffix = OX_STR(".dist-info");
    char *dir = ox_path_dir(l->about.path), *site = dir ? ox_path_dir(dir) : NULL;
    if (site && ox_path_is_dir(site)) ox_dir_list(&names, &n, site, NULL);
    for (size_t i = 0; names && i < n; i++) {
        const ox_str name = ox_str_of(names[i]);
        if (!ox_str_starts(name, prefix) || !ox_str_ends(name, suffix)) continue;
        const char *dash = strchr(names[i], '-');
        const size_t at = dash ? (size_t)(dash + 1 - names[i]) : name.n;
        if (at + suffix.n >= name.n || name.n - suffix.n - at >= sizeof(l->about.version)) continue;
        memcpy(l->about.version, names[i] + at, name.n - suffix.n - at);
    }
    if (names) ox_dir_list_free(names, n);
    const bool good = dir && site;
    ox_free(site);
    ox_free(dir);
    return good ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
}

/* "1.32.0": ox_ort_open has refused what is not 1.x. */
static ox_status check_ort(const ox_ort *o, ox_err *err)
{
    const ox_str v = ox_str_of(o->about.version);
    int64_t minor = 0;
    size_t end = ox_str_find(v, OX_STR("."), 2);
    if (end == SIZE_MAX) end = v.n;
    if (v.n > 2 && ox_str_to_i64((ox_str){v.p + 2, end - 2}, &minor) && minor >= LEAST_ORT_MINOR)
        return OX_OK;
    return OX_FAIL(err, OX_NO_DEVICE,
                   "ONNX Runtime GenAI needs ONNX Runtime 1.%d or later; %s is %s", LEAST_ORT_MINOR,
                   o->about.path, o->about.version);
}

ox_status ox_oga_lib_open(ox_oga_lib **out, ox_err *err)
{
    ox_status st = OX_OK;
    char *path = NULL;
    ox_dl *dl = NULL;
    *out = NULL;
    ox_oga_lib *l = ox_calloc(1, sizeof(*l));
    if (!l) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a library");
    OX_TRY_GOTO(ox_find_library(&path, &what, err));
    OX_TRY_GOTO(ox_ort_open(&l->ort, err));
    OX_TRY_GOTO(check_ort(l->ort, err));
    OX_TRY_GOTO(open_file(&dl, path, err));
    OX_TRY_GOTO(fill_api(l, dl, *path ? path : what.loader[0], err));
    ox_dl_file_of(ox_dl_symbol(dl, "OgaShutdown"), l->about.path, sizeof(l->about.path));
    OX_TRY_GOTO(read_version(l, err));
    memcpy(l->about.providers, l->ort->about.providers, sizeof(l->about.providers));
    *out = l;
    l = NULL;
fail:
    ox_dl_close(&dl);
    ox_free(path);
    ox_oga_lib_close(&l);
    return st;
}

void ox_oga_lib_close(ox_oga_lib **lib)
{
    ox_oga_lib *l = *lib;
    if (!l) return;
    ox_ort_close(&l->ort);
    ox_free(l);
    *lib = NULL;
}

ox_status ox_library_oga(ox_library *out, ox_err *err)
{
    ox_oga_lib *l = NULL;
    *out = (ox_library){.api = 0};
    OX_TRY(ox_oga_lib_open(&l, err));
    *out = l->about;
    ox_oga_lib_close(&l);
    return OX_OK;
}
