/* dl.c - dlopen behind the project's error type. */
#include "base/dl.h"

#include "base/mem.h"

#include <dlfcn.h>

struct ox_dl {
    void *handle;
};

ox_status ox_dl_open(ox_dl **out, const char *path, ox_err *err)
{
    *out = ox_calloc(1, sizeof(**out));
    if (!*out) return OX_FAIL(err, OX_NO_MEMORY, "no memory to open %s", path);
    (*out)->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if ((*out)->handle) return OX_OK;
    const char *why = dlerror();
    ox_free(*out);
    *out = NULL;
    return OX_FAIL(err, OX_NO_DEVICE, "cannot open library %s: %s", path, why ? why : "unknown");
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
