/* arm.h - what a comparison of engines drives beside this engine's own kernels.
 *
 * The `ort` arm needs nothing of its own: ox_model_open with backend "ort", then sessions as usual.
 * The `oga` arm is ONNX Runtime GenAI with its own loop, driven through ox_oga below. Both
 * libraries are opened at run time. May change with any release. */
#ifndef OXGEN_ARM_H
#define OXGEN_ARM_H
#include "oxgen/oxgen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A library that was found and can be used. */
typedef struct ox_library {
    char path[1024];     /* the file that was loaded */
    char version[64];    /* its own word: "1.32.0" */
    int32_t api;         /* number of the interface asked for; 0 = it has no numbers */
    char providers[512]; /* execution providers, "CPUExecutionProvider, ..."; "" = not known */
} ox_library;

/* Opens libonnxruntime (OXGEN_ORT_LIB, the active Python environment, the loader's path) or
 * libonnxruntime-genai (OXGEN_OGA_LIB, ...) and reports it. OX_NO_DEVICE with one sentence when it
 * is missing, too old, too new, damaged, for another machine or there twice. Any thread. */
OX_API ox_status ox_library_ort(ox_library *out, ox_err *err);
OX_API ox_status ox_library_oga(ox_library *out, ox_err *err);
/* The library that runs this model; OX_UNSUPPORTED for the native backend. */
OX_API ox_status ox_model_library(const ox_model *m, ox_library *out, ox_err *err);
/* Settings that the model's session was made with, a JSON object; "{}" for the native backend.
 * Owned by the model. */
OX_API const char *ox_model_session_json(const ox_model *m);

/* Ends the profile that ox_model_options.profile began: *table says what time each operator type
 * and node took, *trace is the path of the library's own file, a Chrome trace, now the caller's.
 * Both are given back with ox_release. OX_BAD_ARGUMENT when the model has no profile. */
OX_API ox_status ox_model_end_profile(ox_model *m, char **table, char **trace, ox_err *err);

/* An opened folder; one owner, one call at a time. A process has at most one at a time: closing it
 * shuts the library down. */
typedef struct ox_oga ox_oga;

typedef struct ox_oga_options {
    uint32_t struct_size;
    int32_t n_threads;              /* 0: as a model's: OXGEN_THREADS, else every CPU */
    const char *device;             /* "auto" (default: as the folder says), "cpu", "cuda" */
    const char *const *ort_options; /* [n_ort_options] "K=V", the keys of --ort-option */
    size_t n_ort_options;
} ox_oga_options;

OX_API void ox_oga_options_init(ox_oga_options *o);
/* folder: an ORT-GenAI folder (genai_config.json). o NULL = defaults. OX_NO_DEVICE when a library
 * is missing, OX_UNSUPPORTED with the library's own words when it refuses the model. */
OX_API ox_status ox_oga_open(ox_oga **out, const char *folder, const ox_oga_options *o,
                             ox_err *err);
OX_API void ox_oga_close(ox_oga **g); /* NULL allowed */
OX_API ox_status ox_oga_library(const ox_oga *g, ox_library *out, ox_err *err);
OX_API const char *ox_oga_session_json(const ox_oga *g); /* owned by g */

/* One run: a fresh generator, the prompt, n_new tokens whatever end of text says. */
typedef struct ox_oga_request {
    uint32_t struct_size;
    const int32_t *prompt; /* [n_prompt] */
    size_t n_prompt, n_new;
    const int32_t *forced; /* NULL: greedy; [n_new]: these tokens follow instead of the best ones */
    ox_logits_fn *on_logits;  /* NULL, or called before each choice with the logits it is made from;
                                 position is that of the token before it */
    ox_progress_fn *progress; /* NULL, or called after each token; non-zero cancels */
    void *user;               /* of both */
} ox_oga_request;

/* Times in nanoseconds since the run began, on the monotonic clock. */
typedef struct ox_oga_times {
    uint64_t prompt; /* the prompt is in the cache (its logits exist) */
    uint64_t end;    /* the last token is known */
} ox_oga_times;

OX_API void ox_oga_request_init(ox_oga_request *r);
/* ids [n_new] and ns [n_new] (NULL: not wanted): each new token and when it was known. As many as
 * *n_done are valid, also after a failure. times NULL = not wanted. */
OX_API ox_status ox_oga_run(ox_oga *g, const ox_oga_request *r, int32_t *ids, uint64_t *ns,
                            size_t *n_done, ox_oga_times *times, ox_err *err);

#ifdef __cplusplus
}
#endif
#endif
