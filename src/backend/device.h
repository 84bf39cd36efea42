/* device.h - devices beyond the CPU: finds the CUDA library and opens its backend. */
#ifndef OX_BACKEND_DEVICE_H
#define OX_BACKEND_DEVICE_H
#include "backend/plugin.h"
#include "base/dl.h"

typedef struct ox_device_library {
    ox_dl *dl;
    const ox_plugin *plugin;
} ox_device_library;

/* OXGEN_CUDA_LIB, or liboxgen_cuda.so beside this library or program, in the install folder, or on
 * the loader's path. OX_NO_DEVICE says which is missing. Zero is closed. */
ox_status ox_device_library_open(ox_device_library *out, ox_err *err);
void ox_device_library_close(ox_device_library *l);

/* "cuda" or "cuda:N". False: not of that form. */
bool ox_device_parse(const char *text, int32_t *index);
/* Device `index` of the library: is it there? Fills *info. */
ox_status ox_device_find(const ox_device_library *l, int32_t index, ox_device_info *info,
                         ox_err *err);
#endif
