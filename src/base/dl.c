/* dl.c - dlopen behind the project's error type. */
#define _GNU_SOURCE /* dladdr */
#include "base/dl.h"

#include "base/fs.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

struct ox_dl {
    void *handle;
};

static ox_status open_with(ox_dl **out, const char *path, int flags, ox_err *err)
{
    *out = ox_calloc(1, sizeof(**out));
    if (!*out) return OX_FAIL(err, OX_NO_MEMORY, "no memory to open %s", path);
    (*out)->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if ((*out)->handle) return OX_OK;
    const char *why = dlerror();
    ox_free(*out);
    *out = NULL;
    return OX_FAIL(err, OX_NO_DEVICE, "cannot open library %s: %s", path, why ? why : "unknown");
}

ox_status ox_dl_open(ox_dl **out, const char *path, ox_err *err)
{
    return open_with(out, path, 0, err);
}

ox_status ox_dl_open_kept(ox_dl **out, const char *path, ox_err *err)
{
    return open_with(out, path, RTLD_NODELETE, err);
}

void ox_dl_file_of(const void *symbol, char *path, size_t size)
{
    Dl_info info;
    *path = 0;
    if (!symbol || !dladdr(symbol, &info) || !info.dli_fname) return;
    const size_t n = strlen(info.dli_fname);
    if (n < size) memcpy(path, info.dli_fname, n + 1);
}

void *ox_dl_symbol(ox_dl *dl, const char *name)
{
    return dlsym(dl->handle, name);
}

void ox_dl_close(ox_dl **dl)
{
    if (!*dl) return;
    dlclose((*dl)->handle);
    ox_free(*dl);
    *dl = NULL;
}

char *ox_dl_own_folder(void)
{
    Dl_info info;
    char path[4096];
    static const char here = 0; /* an address inside this library or program */
    const bool known = dladdr(&here, &info) && info.dli_fname && strstr(info.dli_fname, ".so");
    if (known) return ox_path_dir(info.dli_fname);
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0) return NULL;
    path[n] = 0;
    return ox_path_dir(path);
}
