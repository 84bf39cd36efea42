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
/* A call's status as ours: phrase is like ("cannot open X"), the library's own first line
 * follows. Frees status; NULL is success. */
ox_status ox_ort_check(const ox_ort *o, ox_ort_status *status, const char *phrase, ox_err *err);

/* How a session is made; strings are borrowed. */
typedef struct ox_ort_settings {
    int32_t n_threads;            /* inside operators; 0 = ONNX Runtime's choice */
    const struct ox_json *folder; /* session_options of the model's own files, or NULL */
    const char *device;           /* NULL, "auto", "cpu", "cuda" */
    const char *const *options;   /* [n_options] "K=V" */
    size_t n_options;
    const char *profile; /* prefix of the profile's file, or NULL */
} ox_ort_settings;

/* --- decoder ----------------------------------------------------------------------------------
 * A decoder graph and its ports; immutable once open. States of one decoder may be used from
 * different threads one at a time. */
typedef struct ox_ort_decoder ox_ort_decoder;
typedef struct ox_ort_state ox_ort_state; /* one sequence's cache */

/* Gives the logits of one position to the caller. */
typedef ox_status ox_ort_logits_fn(void *user, size_t position, const float *logits, size_t vocab);

/* Opens the library and the graph; port names and the width of the logits go into s, which must
 * outlive the decoder. */
ox_status ox_ort_decoder_open(ox_ort_decoder **out, ox_source *s, const char *onnx,
                              const ox_ort_settings *settings, ox_err *err);
void ox_ort_decoder_close(ox_ort_decoder **d);
const ox_library *ox_ort_decoder_library(const ox_ort_decoder *d);
const char *ox_ort_decoder_settings(const ox_ort_decoder *d);  /* JSON */
uint64_t ox_ort_decoder_weight_bytes(const ox_ort_decoder *d); /* 0 = not known */
/* What a token costs; zeros = not known. */
typedef struct ox_ort_cost {
    double weight_bytes; /* read by a decode step: all but the rows of embeddings */
    double ops;          /* of matrix products, logits among them; a multiply-add is two */
} ox_ort_cost;
ox_ort_cost ox_ort_decoder_cost(const ox_ort_decoder *d);
uint64_t ox_ort_decoder_kv_bytes(const ox_ort_decoder *d); /* per position */
bool ox_ort_decoder_on_cuda(const ox_ort_decoder *d);
size_t ox_ort_decoder_rows(const ox_ort_decoder *d); /* most ids of one append */
/* A profile's file as a table of times per operator type and per node. */
ox_status ox_ort_profile_table(ox_buf *out, const char *path, ox_err *err);
/* Ends the profile and gives its file's path, the caller's; *path NULL when none was asked for. */
ox_status ox_ort_decoder_end_profile(ox_ort_decoder *d, char **path, ox_err *err);

ox_status ox_ort_state_open(ox_ort_state **out, const ox_ort_decoder *d, ox_err *err);
void ox_ort_state_close(ox_ort_state **s);
ox_status ox_ort_state_fork(ox_ort_state **out, const ox_ort_state *s, ox_err *err);
/* Keeps the first n positions, or none when the graph has a state that cannot go back. */
void ox_ort_state_truncate(ox_ort_state *s, size_t n);
/* Before an append that makes the sequence total positions long: a cache that the library keeps
 * cannot grow where it is and is emptied instead, to be made again. */
void ox_ort_state_make_room(ox_ort_state *s, size_t total);
size_t ox_ort_state_length(const ox_ort_state *s);
uint64_t ox_ort_state_bytes(const ox_ort_state *s);
/* Runs n ids (at most ox_ort_decoder_rows) behind the state's positions; logits of the last
 * n_wanted to fn. On failure the state holds what it held. */
ox_status ox_ort_append(ox_ort_state *s, const int32_t *ids, size_t n, size_t n_wanted,
                        ox_ort_logits_fn *fn, void *user, ox_err *err);

/* --- plain graph ------------------------------------------------------------------------------ */
typedef struct ox_ort_graph ox_ort_graph;

ox_status ox_ort_graph_open(ox_ort_graph **out, const char *onnx, const ox_ort_settings *settings,
                            ox_err *err);
void ox_ort_graph_close(ox_ort_graph **g);
size_t ox_ort_graph_n_inputs(const ox_ort_graph *g);
size_t ox_ort_graph_n_outputs(const ox_ort_graph *g);
const char *ox_ort_graph_input(const ox_ort_graph *g, size_t i);
const char *ox_ort_graph_output(const ox_ort_graph *g, size_t i);
/* out [n_outputs]: data is the graph's until its next run or close. */
ox_status ox_ort_graph_run(ox_ort_graph *g, const char *const *names, const ox_tensor *in,
                           size_t n_in, ox_tensor *out, ox_err *err);
/* For timing: binds operands that the caller keeps, then runs on them again and again. */
ox_status ox_ort_graph_bind(ox_ort_graph *g, const char *const *names, const ox_tensor *in,
                            size_t n_in, ox_err *err);
ox_status ox_ort_graph_repeat(ox_ort_graph *g, ox_err *err);
#endif
