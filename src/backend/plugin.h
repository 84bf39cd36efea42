/* plugin.h - what a device library (liboxgen_cuda.so) exports: one function, whose table carries a
 * version. Core and library are built from the same sources; anything else is refused. */
#ifndef OX_BACKEND_PLUGIN_H
#define OX_BACKEND_PLUGIN_H
#include "backend/backend.h"
#include "kernel/kernel.h"

enum { OX_PLUGIN_VERSION = 1, OX_DEVICE_NAME = 96 };

typedef struct ox_device_info {
    char name[OX_DEVICE_NAME];   /* "NVIDIA H200" */
    char driver[OX_DEVICE_NAME]; /* "580.159.04, CUDA 13.0" */
    int32_t index, sm;           /* sm: 90 = compute capability 9.0 */
    uint64_t total_bytes, free_bytes;
} ox_device_info;

typedef struct ox_device_options {
    int32_t index;
    ox_dtype activations; /* of buffers: F16, BF16 or F32 */
    ox_dtype kv_dtype;    /* of the cache */
    bool exact;           /* float weights keep their type; else they become the activations' */
    bool profile;         /* time every call: slower */
    int64_t context;      /* positions that the cache holds at once; 0 = grows by need */
} ox_device_options;

typedef struct ox_device_row { /* one kernel row of the library */
    const char *family;
    ox_kernel_row row;
} ox_device_row;

typedef struct ox_plugin {
    uint32_t version;
    uint32_t layout;   /* OX_PLUGIN_LAYOUT of the sources */
    const char *oxgen; /* their version */
    /* Devices there are, at most max; OX_NO_DEVICE says in one sentence what is missing. */
    ox_status (*devices)(ox_device_info *out, int32_t max, int32_t *n, ox_err *err);
    /* The team (borrowed) helps to prepare weights. */
    ox_status (*open)(ox_backend **out, const ox_device_options *o, ox_team *team, ox_err *err);
    const ox_device_row *rows; /* ends with family NULL */
} ox_plugin;

#define OX_PLUGIN_LAYOUT                                                                           \
    ((uint32_t)(sizeof(ox_call) * 1009 + sizeof(ox_buffer) * 101 + sizeof(ox_term) * 17 +          \
                sizeof(ox_weight) * 7 + sizeof(ox_step) * 3 + sizeof(ox_backend_ops) +             \
                sizeof(ox_decode_request)))

typedef const ox_plugin *ox_plugin_fn(void); /* the exported ox_cuda_plugin */
#endif
