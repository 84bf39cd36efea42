/* oxgen.h - run language models that are ONNX files. Include this one.
 *
 * Every call that can fail returns ox_status and fills ox_err; nothing prints, exits or aborts. */
#ifndef OXGEN_OXGEN_H
#define OXGEN_OXGEN_H
#include "oxgen/beam.h"
#include "oxgen/model.h"
#include "oxgen/parser.h"
#include "oxgen/sampler.h"
#include "oxgen/session.h"
#include "oxgen/status.h"
#include "oxgen/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

OX_API const char *ox_version(void); /* "0.1.0" */

/* Why a generation ended. */
typedef enum ox_finish {
    OX_FINISH_STOP,   /* end-of-text token */
    OX_FINISH_LENGTH, /* max_new tokens or the context is full */
    OX_FINISH_STOP_STRING,
    OX_FINISH_CANCELLED,
} ox_finish;

/* Receives text as it becomes whole characters; id is the token just chosen. Non-zero cancels. */
typedef int ox_text_fn(void *user, const char *text, size_t n, int32_t id);

typedef struct ox_generate_options {
    uint32_t struct_size;
    const ox_sampler_options *sampler; /* NULL: the model's own search settings, else greedy */
    int64_t max_new;                   /* -1: until end of text, at most 2,048 */
    const char *const *stops;          /* [n_stops] */
    size_t n_stops;
    int32_t ignore_eos;
    ox_text_fn *on_text;
    void *user;
    int32_t
        keep_logits; /* 1: on_text looks at the session's logits (devices then go token by token) */
    ox_session *guide; /* with the sampler's guidance_scale: a session of the same model that holds
                          the prompt to move away from; it gets every new token too */
    int32_t show_special;  /* 1: on_text gets the text of special tokens too */
    ox_parser *parser;     /* takes the answer apart: its events go to on_part; on_text as ever */
    ox_parser_fn *on_part; /* with `user` */
} ox_generate_options;

OX_API void ox_generate_options_init(ox_generate_options *o);
/* Continues a session that holds a prompt. New tokens end up in the session's history. */
OX_API ox_status ox_generate(ox_session *s, const ox_generate_options *o, ox_finish *why,
                             ox_err *err);

/* --- plain ONNX graphs: named tensors in,
 * named tensors out ------------------------------------ */

typedef struct ox_graph_run ox_graph_run;

/* Row-major contiguous data; dtype is the ONNX TensorProto.DataType number. */
typedef struct ox_array {
    const char *name;
    int32_t dtype;
    int32_t rank;
    int64_t dims[8];
    const void *data;
    size_t bytes;
} ox_array;

OX_API ox_status ox_graph_run_open(ox_graph_run **out, const char *onnx_path, ox_err *err);
/* The same with a backend and its settings: backend, n_threads, ort_options of o. */
OX_API ox_status ox_graph_run_open_with(ox_graph_run **out, const char *onnx_path,
                                        const ox_model_options *o, ox_err *err);
OX_API size_t ox_graph_run_n_inputs(const ox_graph_run *g);
OX_API size_t ox_graph_run_n_outputs(const ox_graph_run *g);
OX_API const char *ox_graph_run_input(const ox_graph_run *g, size_t i);
OX_API const char *ox_graph_run_output(const ox_graph_run *g, size_t i);
/* Runs once; outputs [n_outputs] are owned by the object until its next run or close. */
OX_API ox_status ox_graph_run_once(ox_graph_run *g, const ox_array *inputs, size_t n_inputs,
                                   ox_array *outputs, ox_err *err);
OX_API void ox_graph_run_close(ox_graph_run **g);
/* Reads a .npy file or a serialized TensorProto (.pb) into memory that ox_array_free gives back. */
OX_API ox_status ox_array_read(ox_array *out, const char *name, const char *path, ox_err *err);
OX_API ox_status ox_array_write(const ox_array *a, const char *npy_path, ox_err *err);
OX_API void ox_array_free(ox_array *a);               /* only what ox_array_read filled */
OX_API const char *ox_array_type_name(int32_t dtype); /* "float32" */

/* --- checkpoints
 * to ORT-GenAI folders ----------------------------------------------------------- */

typedef struct ox_convert_options {
    uint32_t struct_size;
    const char
        *quant; /* "keep" (default for .gguf) "int4" (default for safetensors) "int8" "f16" … */
    int32_t block, asym, head_bits, accuracy, dry_run; /* 0: 32, no, 8, (-1: 4), no */
    const char *io;                                    /* "f32" (default) "f16" "bf16" */
    ox_progress_fn *progress;
    void *user;
    int32_t each; /* the report has a line for every matrix, too */
} ox_convert_options;

OX_API void ox_convert_options_init(ox_convert_options *o);
/* *report (freed with ox_release) says what the matrices became and whether it is exact. */
OX_API ox_status ox_convert(const char *src, const char *dir, const ox_convert_options *o,
                            char **report, ox_err *err);

#ifdef __cplusplus
}
#endif
#endif
