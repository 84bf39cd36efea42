/* engine_internal.h - what a model and a session are made of. */
#ifndef OX_ENGINE_INTERNAL_H
#define OX_ENGINE_INTERNAL_H
#include "backend/device.h"
#include "backend/ort/ort.h"
#include "base/team.h"
#include "exec/exec.h"
#include "kv/kv.h"
#include "model/source.h"
#include "opt/opt.h"
#include "oxgen/beam.h"
#include "oxgen/ox_experimental.h"
#include "oxgen/parser.h"
#include "text/detok.h"
#include "text/template.h"
#include "text/tokenizer.h"

/* How a model's graph is run: planned calls, or operator by operator (interp.c). */
typedef struct ox_interp ox_interp;

struct ox_model {
    ox_source *source;
    ox_team *team;
    int32_t n_threads;
    /* planned */
    char *profile;             /* where a device's trace goes; NULL = none asked for */
    ox_device_library library; /* of a device other than the CPU */
    ox_backend *backend;
    ox_plan *plan;
    ox_exec *exec;
    ox_kv_pool *kv;
    /* or not */
    ox_interp *interp;
    /* or by ONNX Runtime; the source has no graph then */
    ox_ort_decoder *ort;
    ox_opt_report opt;

    ox_tokenizer *tokenizer; /* NULL: the model has none */
    ox_template *chat, *tools;
    int64_t context;
    int64_t switch_length; /* total length from which other rotary tables hold; 0 = none */
    char *name, *type, *search_json; /* NUL-terminated facts */
    struct ox_model_search *search;
};

struct ox_session {
    ox_model *model;
    ox_kv_seq kv;
    struct ox_interp_state *interp; /* of models that run operator by operator */
    ox_ort_state *ort;              /* of models that ONNX Runtime runs */
    OX_VEC(int32_t) ids;
    float *logits;       /* [vocab]; valid when has_logits and not on_device: ox_session_logits */
    void *device_logits; /* the exec's slot */
    bool on_device;      /* the newest logits are there only */
    bool has_logits;
    bool long_keys; /* the cache was made with the rotary tables of long sequences */
};

/* parser.c: whether a special token's text is (part of) a mark of the parser's format. */
bool ox_parser_mentions(const ox_parser *p, ox_str token);

/* search.c: what the model's files say about searching; into m->search. */
ox_status ox_model_search_open(ox_model *m, ox_err *err);
void ox_model_search_close(ox_model *m);

/* open.c: recognises which form MODEL is and opens it. */
/* What a file asks beyond a limit is a refusal of the file: OX_LIMIT becomes OX_UNSUPPORTED. */
ox_status ox_refused(ox_status st, ox_err *err);
/* OX_NOT_FOUND with advice unless there is such a file or folder. */
ox_status ox_engine_want_path(const char *path, ox_err *err);
ox_status ox_source_open(ox_source **out, const char *path, const ox_model_options *o, ox_err *err);
/* The same for a backend that reads ONNX files itself: no graph; *onnx is the decoder's path, the
 * caller's. Forms that are no ONNX files are refused. */
ox_status ox_source_open_file(ox_source **out, char **onnx, const char *path, ox_err *err);
/* model.c: the settings of another backend out of a model's options. */
ox_status ox_engine_ort_settings(ox_ort_settings *out, const ox_model_options *o, ox_err *err);
/* text.c: gives a text to the caller, NUL-terminated, even when empty; n NULL = not wanted. */
ox_status ox_engine_hand_over(ox_buf *b, char **text, size_t *n, ox_err *err);
/* What a missing tokenizer means, as an error. */
ox_status ox_model_need_tokenizer(const ox_model *m, ox_err *err);

/* interp.c */
ox_status ox_interp_open(ox_interp **out, ox_source *s, ox_err *err);
void ox_interp_close(ox_interp **p);
ox_status ox_interp_state_open(struct ox_interp_state **out, ox_interp *p, ox_err *err);
void ox_interp_state_close(struct ox_interp_state **s);
void ox_interp_state_truncate(struct ox_interp_state *s, size_t n_positions);
/* Runs n ids behind the state's positions; logits of the last n_wanted rows to fn. */
ox_status ox_interp_append(ox_interp *p, struct ox_interp_state *s, const int32_t *ids, size_t n,
                           size_t n_wanted, ox_logits_fn *fn, void *user, ox_err *err);
uint64_t ox_interp_state_bytes(const struct ox_interp_state *s);
#endif
