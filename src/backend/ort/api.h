/* api.h - the part of ONNX Runtime's C API that is used, declared here: opaque objects, numbers of
 * its enumerations, and the table of api.def as typed pointers. Nothing of ONNX Runtime is compiled
 * in; the library is opened at run time (library.c). */
#ifndef OX_BACKEND_ORT_API_H
#define OX_BACKEND_ORT_API_H
#include <stddef.h>
#include <stdint.h>

typedef struct ox_ort_env ox_ort_env;
typedef struct ox_ort_status ox_ort_status; /* NULL = success; owned by the caller */
typedef struct ox_ort_session ox_ort_session;
typedef struct ox_ort_options ox_ort_options;
typedef struct ox_ort_run_options ox_ort_run_options;
typedef struct ox_ort_binding ox_ort_binding;
typedef struct ox_ort_value ox_ort_value;
typedef struct ox_ort_type ox_ort_type;
typedef struct ox_ort_shape ox_ort_shape; /* element type and dimensions */
typedef struct ox_ort_memory ox_ort_memory;
typedef struct ox_ort_allocator ox_ort_allocator;
typedef struct ox_ort_cuda ox_ort_cuda;

typedef void ox_ort_log_fn(void *user, int severity, const char *category, const char *id,
                           const char *where, const char *message);

enum {
    OX_ORT_API_VERSION = 20, /* the table that is asked for: ONNX Runtime 1.20 */
    OX_ORT_SEVERITY_WARNING = 2,
    OX_ORT_SEVERITY_ERROR = 3,
    OX_ORT_TYPE_TENSOR = 1, /* ONNXType */
    OX_ORT_DEVICE_ALLOCATOR = 0,
    OX_ORT_ARENA_ALLOCATOR = 1,
    OX_ORT_MEMORY_DEFAULT = 0,
};

/* OrtErrorCode */
enum {
    OX_ORT_NO_SUCHFILE = 3,
    OX_ORT_INVALID_PROTOBUF = 7,
    OX_ORT_NOT_IMPLEMENTED = 9,
    OX_ORT_INVALID_GRAPH = 10,
};

/* What OrtGetApiBase gives. */
typedef struct ox_ort_api_base {
    const void *(*get_api)(uint32_t version);
    const char *(*version)(void);
} ox_ort_api_base;

typedef struct ox_ort_api {
#define OX_ORT_FN(index, result, name, args) result(*name) args;
#include "backend/ort/api.def"
#undef OX_ORT_FN
} ox_ort_api;
#endif
