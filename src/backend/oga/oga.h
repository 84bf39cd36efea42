/* oga.h - ONNX Runtime GenAI's C API, declared here as far as it is used, and the library opened at
 * run time. Its own loop is driven in oga.c; the public side is oxgen/arm.h. */
#ifndef OX_BACKEND_OGA_OGA_H
#define OX_BACKEND_OGA_OGA_H
#include "backend/ort/ort.h"

#include <stdbool.h>

typedef struct ox_oga_result ox_oga_result; /* NULL = success; owned by the caller */
typedef struct ox_oga_config ox_oga_config;
typedef struct ox_oga_model ox_oga_model;
typedef struct ox_oga_params ox_oga_params;
typedef struct ox_oga_generator ox_oga_generator;
typedef struct ox_oga_tensor ox_oga_tensor;

typedef struct ox_oga_api {
#define OX_OGA_FN(result, name, args) result(*name) args;
#include "backend/oga/api.def"
#undef OX_OGA_FN
} ox_oga_api;

typedef struct ox_oga_lib {
    ox_oga_api api;
    ox_ort *ort; /* opened first: the library takes the one that is loaded */
    ox_library about;
} ox_oga_lib;

ox_status ox_oga_lib_open(ox_oga_lib **out, ox_err *err);
void ox_oga_lib_close(ox_oga_lib **l);
/* A call's result as a status: "phrase: the library's words". Frees r. */
ox_status ox_oga_check(const ox_oga_lib *l, ox_oga_result *r, ox_status st, const char *phrase,
                       ox_err *err);
/* The session options of o and the only end-of-text id as the overlay for genai_config.json,
 * appended to *json. */
ox_status ox_oga_overlay(ox_buf *json, int32_t end_id, const ox_oga_options *o, ox_err *err);
#endif
