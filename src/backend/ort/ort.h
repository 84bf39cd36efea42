/* ort.h - ONNX Runtime opened at run time: the library, and what runs on it (a decoder with its
 * cache, a plain graph). Nothing here knows sessions, sampling or text. */
#ifndef OX_BACKEND_ORT_ORT_H
#define OX_BACKEND_ORT_ORT_H
#include "backend/ort/api.h"
#include "model/source.h"
#include "oxgen/arm.h"

/* --- library ----------------------------------------------------------------------------------
 * One per model; the shared library stays loaded until the process ends. */
typedef struct ox_ort {
    ox_ort_api api;
    ox_ort_env *env;
    ox_ort_memory *cpu;          /* describes memory of ours */
    ox_ort_allocator *allocator; /* of strings that the library gives; its own */
    ox_library about;
} ox_ort;

/* OX_NO_DEVICE with one sentence when there is no usable library. */
ox_status ox_ort_open(ox_ort **out, ox_err *err);
void ox_ort_close(ox_ort **o);
/* A call's status as ours: what is a phrase ("cannot open X"), the library's own first line
 * follows. Frees status; NULL is success. */
ox_status ox_ort_check(const ox_ort *o, ox_ort_status *status, const char *what, ox_err *err);
#endif
