/* device.c - see device.h. */
#include "backend/device.h"

#include "base/fs.h"
#include "base/mem.h"
#include "oxgen_build.h"

#include <string.h>

enum { MAX_DEVICES = 64 };

static const char library_name[] = "liboxgen_cuda.so";

/* dir/more/liboxgen_cuda.so when that is a file, else NULL. Owned by the caller. */
static char *candidate(const char *dir, const char *more)
{
    char *folder = ox_path_join(dir, more), *path = NULL;
    if (folder) path = ox_path_join(folder, library_name);
    ox_free(folder);
    if (path && ox_path_is_file(path)) return path;
    ox_free(path);
    return NULL;
}

static char *find_library(void)
{
    static const char *const places[] = {".", "../lib", "../lib64", "../" OXGEN_LIBDIR};
    char *own = ox_dl_own_folder(), *path = NULL;
    for (size_t i = 0; own && !path && i < OX_COUNT(places); i++)
        path = candidate(own, places[i]);
    ox_free(own);
    return path;
}

static ox_status check_plugin(ox_device_library *l, const char *path, ox_err *err)
{
    ox_plugin_fn *entry = (ox_plugin_fn *)(uintptr_t)ox_dl_symbol(l->dl, "ox_cuda_plugin");
    l->plugin = entry ? entry() : NULL;
    if (!l->plugin || l->plugin->version != OX_PLUGIN_VERSION ||
        l->plugin->layout != OX_PLUGIN_LAYOUT || strcmp(l->plugin->oxgen, OXGEN_VERSION) != 0)
        return OX_FAIL(err, OX_NO_DEVICE,
                       "%s was built from other sources of oxgen (%s, expected %s); install both "
                       "together",
                       path, l->plugin ? l->plugin->oxgen : "unknown", OXGEN_VERSION);
    return OX_OK;
}

ox_status ox_device_library_open(ox_device_library *out, ox_err *err)
{
    ox_err why = OX_ERR_INIT;
    *out = (ox_device_library){0};
    const char *asked = ox_env("OXGEN_CUDA_LIB");
    char *found = asked && *asked ? NULL : find_library();
    const char *path = asked && *asked ? asked : found ? found : library_name;
    ox_status st = ox_dl_open(&out->dl, path, &why);
    if (st && !found && !(asked && *asked))
        OX_FAIL(err, st,
                "the CUDA backend is not installed: %s is neither beside oxgen nor in its library "
                "folder, and OXGEN_CUDA_LIB does not name it",
                library_name);
    else if (st)
        OX_FAIL(err, st, "the CUDA backend cannot be used: %s", why.msg);
    else
        st = check_plugin(out, path, err);
    ox_free(found);
    if (st) ox_device_library_close(out);
    return st;
}

void ox_device_library_close(ox_device_library *l)
{
    ox_dl_close(&l->dl);
    l->plugin = NULL;
}

bool ox_device_parse(const char *text, int32_t *index)
{
    int64_t n = 0;
    if (strncmp(text, "cuda", 4) != 0) return false;
    if (text[4] && (text[4] != ':' || !ox_str_to_i64(ox_str_of(text + 5), &n))) return false;
    *index = n < 0 || n > INT32_MAX ? INT32_MAX : (int32_t)n;
    return true;
}

ox_status ox_device_find(const ox_device_library *l, int32_t index, ox_device_info *info,
                         ox_err *err)
{
    ox_device_info all[MAX_DEVICES];
    int32_t n = 0;
    OX_TRY(l->plugin->devices(all, MAX_DEVICES, &n, err));
    if (index >= n)
        return OX_FAIL(err, OX_NO_DEVICE,
                       "there is no device cuda:%d: this machine has %d (cuda:0%s)", index, n,
                       n > 1 ? " and on" : "");
    *info = all[index];
    return OX_OK;
}
