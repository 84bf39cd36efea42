/* model.h - a model opened for running. Immutable once open and shareable between threads. */
#ifndef OXGEN_MODEL_H
#define OXGEN_MODEL_H
#include "oxgen/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ox_model ox_model;

/* Called now and then while a long operation runs. done and total are bytes or tokens, total 0 =
 * unknown; what is a short noun ("load", "convert", "prefill"). Return non-zero to cancel. */
typedef int ox_progress_fn(void *user, const char *what, uint64_t done, uint64_t total);

/* Options start with struct_size and are filled by their initializer; NULL strings mean default. */
typedef struct ox_model_options {
    uint32_t struct_size;
    int32_t n_threads;    /* 0: OXGEN_THREADS, else every CPU this process may use */
    int64_t context;      /* positions a session may hold; 0: what the model declares */
    const char *backend;  /* "native" (default) or "ort" */
    const char *device;   /* "auto" (default), "cpu", "cuda", "cuda:N" */
    const char *numerics; /* "fast" (default), "faster" or "exact": docs/numerics.md */
    const char *kv;      /* "f32", "f16", "bf16"; default: f16, or what the graph declares if f32 */
    const char *quant;   /* safetensors only: "int4" (default) "int8" "f16" "bf16" "f32" "keep" */
    int32_t quant_block; /* 16 to 256; 0: 32 */
    int32_t quant_asym;  /* 1: with zero points */
    int32_t head_bits;   /* 4, 8, 16; 0: 8 */
    int32_t text_only;   /* 1: tokenizer and template only, no weights are prepared */
    ox_progress_fn *progress;
    void *progress_user;
    const char *const *ort_options; /* backend "ort": [n_ort_options] "K=V", see docs/ort.md */
    size_t n_ort_options;
    const char *profile; /* backend "ort", device "cuda": NULL, or a prefix of the trace's file */
    int32_t allow_cpu;   /* 1: what the device cannot do may run on the CPU */
} ox_model_options;

OX_API void ox_model_options_init(ox_model_options *o);

/* Opens MODEL: an ORT-GenAI folder, a folder with one decoder .onnx, a file inside either, a .gguf
 * file, or a Hugging Face folder with safetensors. o NULL = defaults. */
OX_API ox_status ox_model_open(ox_model **out, const char *path, const ox_model_options *o,
                               ox_err *err);
OX_API void ox_model_close(ox_model **model);

/* Facts. Strings are owned by the model. */
OX_API const char *ox_model_name(const ox_model *m);
OX_API const char *ox_model_architecture(const ox_model *m); /* the files' own word */
OX_API const char *ox_model_backend(const ox_model *m);      /* "native", "ort" */
OX_API const char *ox_model_device(const ox_model *m);       /* "cpu", "cuda:0" */
OX_API int64_t ox_model_context(const ox_model *m);          /* positions a session may hold */
OX_API int64_t ox_model_vocab(const ox_model *m);            /* width of the logits */
OX_API size_t ox_model_n_eos(const ox_model *m);
OX_API int32_t ox_model_eos(const ox_model *m, size_t i);
OX_API int32_t ox_model_is_eos(const ox_model *m, int32_t id);
OX_API int32_t ox_model_has_template(const ox_model *m);
OX_API int32_t ox_model_has_tokenizer(const ox_model *m);
OX_API size_t ox_model_n_warnings(const ox_model *m); /* sentences the user should see */
OX_API const char *ox_model_warning(const ox_model *m, size_t i);
OX_API uint64_t ox_model_weight_bytes(const ox_model *m); /* prepared weights in memory */
OX_API uint64_t ox_model_kv_bytes_per_token(const ox_model *m);
OX_API int32_t ox_model_n_threads(const ox_model *m);
/* Search settings from the model's own files, as a JSON object with only the stated keys:
 * do_sample, temperature, top_k, top_p, min_p, repetition_penalty, max_length. */
OX_API const char *ox_model_search_json(const ox_model *m);

#ifdef __cplusplus
}
#endif
#endif
