/* source.h - what opening a MODEL yields, whichever of the five forms it has: a graph, the facts
 * about text and generation, and the files behind both. model/ fills it from ONNX folders, convert/
 * from GGUF and safetensors; nothing after this point knows which. Immutable once open. */
#ifndef OX_MODEL_SOURCE_H
#define OX_MODEL_SOURCE_H
#include "base/fs.h"
#include "graph/graph.h"

/* Search settings that a model's own files state; has_* false = not stated. */
typedef struct ox_search {
    bool do_sample;
    bool has_temperature, has_top_k, has_top_p, has_min_p, has_repetition;
    float temperature, top_p, min_p, repetition;
    int32_t top_k;
    int32_t max_length;           /* 0 = not stated; prompt and answer together */
    const struct ox_json *stated; /* the object that holds them, in the source's arena; or NULL */
    bool is_genai; /* it is genai_config.json's: other defaults than a model card's */
} ox_search;

enum { OX_EOS_MAX = 32 };

typedef struct ox_facts {
    ox_str type;            /* the file's own word for its architecture; for display only */
    ox_str name;            /* display name */
    int64_t context_length; /* declared; 0 = unknown */
    int64_t vocab_size;     /* width of the logits */
    const struct ox_json *session_options; /* of genai_config.json, for ONNX Runtime; NULL = none */
    int64_t head_size; /* width of a cache's heads where the graph leaves it open; 0 = not stated */
    int32_t eos[OX_EOS_MAX];
    int32_t n_eos;
    int32_t bos; /* -1 = none */
    ox_search search;
    ox_str tokenizer_json;   /* bytes of tokenizer.json or of another kind of file; empty = none */
    ox_str tokenizer_config; /* bytes of tokenizer_config.json; empty = none */
    ox_str chat_template;    /* Jinja source that wins; empty = none */
    ox_str tool_template;    /* the "tool_use" variant when there is one */
} ox_facts;

/* A file of the model and its role, for inspect and for dropping pages after packing. */
typedef struct ox_source_file {
    char *path;
    uint64_t bytes;
} ox_source_file;

typedef enum ox_source_form {
    OX_FORM_GENAI, /* folder with genai_config.json */
    OX_FORM_ONNX,  /* folder or file with one decoder graph */
    OX_FORM_GGUF,
    OX_FORM_SAFETENSORS,
} ox_source_form;

typedef struct ox_source {
    ox_source_form form;
    char *path;
    ox_arena arena;
    ox_graph *graph; /* ONNX operators (forms GENAI, ONNX) or terms (GGUF, SAFETENSORS) */
    ox_facts facts;
    OX_VEC(ox_source_file) files;
    /* Names of graph ports; only for graphs of ONNX operators. "%d" stands for the layer. */
    ox_str in_ids, in_mask, in_positions, in_past_k, in_past_v, out_logits, out_present_k,
        out_present_v;
    OX_VEC(ox_mapping) mappings; /* every mapped weight file, so that pages can be dropped */
    void *onnx;                  /* struct ox_onnx that owns an ONNX file's mappings, or NULL */
    OX_VEC(char *) warnings;     /* sentences the user should see; owned */
} ox_source;

void ox_source_close(ox_source **s);
ox_status ox_source_warn(ox_source *s, const char *fmt, ...) OX_PRINTF(2, 3);

/* Forms GENAI and ONNX: path is the folder, its genai_config.json, or a .onnx file. */
ox_status ox_source_open_onnx(ox_source **out, const char *path, ox_err *err);
/* The same without the graph, for backends that read the file themselves: *onnx is the decoder's
 * path, the caller's (ox_free). The port names are those that a config states. */
ox_status ox_source_open_texts(ox_source **out, char **onnx, const char *path, ox_err *err);
/* Checks or derives the names of ports from the inputs and outputs of g. */
struct ox_onnx_graph;
ox_status ox_source_find_ports(ox_source *s, const struct ox_onnx_graph *g, ox_err *err);
#endif
