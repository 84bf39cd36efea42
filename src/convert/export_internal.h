/* export_internal.h - the parts of an export: the form each matrix takes (export_form.c), the jobs
 * that stream bytes into model.onnx.data (export_jobs.c), the graph that refers to them
 * (export_emit.c, export_matrix.c, export_attend.c, export_graph.c), and the folder's other files
 * (export_files.c). */
#ifndef OX_CONVERT_EXPORT_INTERNAL_H
#define OX_CONVERT_EXPORT_INTERNAL_H
#include "base/outfile.h"
#include "base/vec.h"
#include "convert/export.h"
#include "file/onnx_write.h"
#include "graph/terms.h"

#define OX_EXPORT_DATA "model.onnx.data"

typedef enum ox_zero_form {
    OX_ZEROS_NONE,   /* 2^(bits-1) */
    OX_ZEROS_PACKED, /* integer codes */
    OX_ZEROS_FLOAT,  /* of the scales' type */
} ox_zero_form;

/* How a matrix is written. */
typedef struct ox_form {
    bool nbits; /* codes and scales; otherwise floats of type `stored` */
    int32_t bits, block;
    ox_zero_form zeros;
    bool remade;      /* by the quantiser, not by copying codes */
    ox_dtype stored;  /* floats: type in the file (a Cast follows when it isn't the graph's) */
    bool exact;       /* the written values equal the source's */
    bool keeps;       /* not exact, but up to the rounding of a float32 */
    const char *note; /* why not exact, or NULL */
} ox_form;

ox_form ox_form_matrix(const ox_weight *w, const ox_export_options *o, bool is_head);
/* An embedding that is not tied: never re-quantised. Zero points, if any, packed. */
ox_form ox_form_table(const ox_weight *w, const ox_export_options *o);
bool ox_form_same(const ox_form *a, const ox_form *b);
/* The written values are the source's, if only up to the rounding of a float32. */
bool ox_form_keeps(const ox_form *f);
/* "int4 block 32, float zero points; exact" */
void ox_form_print(const ox_form *f, ox_buf *out);

/* Rows of heads that a file ordered for pairs (2i, 2i+1) are written for pairs (i, i + rotary/2):
 * the same rows in another order, so every format stays exact and the graph keeps its usual form
 * (rotary_interleaved 0, which every execution provider has). rotary 0 = rows stay. */
typedef struct ox_pairs {
    int32_t head_size, rotary;
} ox_pairs;

typedef enum ox_job_kind {
    OX_JOB_NBITS,   /* codes [N, blocks, blob], scales [N, blocks], zeros */
    OX_JOB_COLUMNS, /* floats [K, N] */
    OX_JOB_ROWS,    /* floats [N, K] */
    OX_JOB_VECTOR,  /* floats [N], parts one after the other */
    OX_JOB_FLOATS,  /* an array that is in memory */
} ox_job_kind;

enum { OX_PARTS_MAX = 3, OX_DATA_ALIGN = 4096 };

typedef struct ox_job {
    ox_job_kind kind;
    ox_form form;
    ox_dtype dtype; /* of floats and scales */
    int32_t n_parts;
    const ox_weight *parts[OX_PARTS_MAX];
    ox_pairs pairs[OX_PARTS_MAX];
    const float *floats;
    size_t n_floats;
    uint64_t at, scales_at, zeros_at, bytes; /* bytes: of all arrays together */
} ox_job;

typedef OX_VEC(ox_job) ox_jobs;

/* Rows and columns of a job's matrix. */
int64_t ox_job_rows(const ox_job *j);
int64_t ox_job_cols(const ox_job *j);
/* Sets the offsets from *end on, moves *end. False: sizes overflow. */
bool ox_job_place(ox_job *j, uint64_t *end);

typedef struct ox_stream {
    const ox_outfile *file;
    const ox_export_options *o;
    uint64_t done, total;
} ox_stream;

ox_status ox_job_run(const ox_job *j, ox_stream *s, ox_err *err);

/* Matrices of the same source formats that took the same form; from[n_from..] stay 0. */
typedef struct ox_kind {
    ox_form form;
    ox_format from[OX_PARTS_MAX];
    int32_t n_from, n;
    size_t n_roles;
    ox_str roles[8]; /* "down_proj", each once; the ninth and later are not named */
} ox_kind;

/* The graph under construction. */
typedef struct ox_emitter {
    ox_onnx_graph_writer w;
    const ox_graph *g;
    const ox_export_options *o;
    ox_arena arena;
    ox_str *names;  /* [values] what the value is called in the file; empty = not emitted yet */
    bool *absorbed; /* [nodes] emitted as part of a later node */
    ox_map constants, tensors; /* names that exist already */
    ox_jobs jobs;
    uint64_t end; /* bytes of data so far */
    ox_buf *report;
    OX_VEC(ox_kind) kinds; /* of matrices, for the report */
    bool failed;           /* out of memory somewhere: checked at the end */
    /* the embedding's weight when the head shares it */
    const ox_weight *tied;
    ox_str tied_codes, tied_scales, tied_zeros;
    ox_form tied_form;
    const ox_rotary *rotary[2]; /* tables that have names already */
} ox_emitter;

/* A formatted string in the emitter's arena; "" and failed without memory. */
ox_str ox_emit_name(ox_emitter *e, const char *fmt, ...) OX_PRINTF(2, 3);
/* One node with one result; returns the result's name. attrs follow until ox_onnx_end_node. */
void ox_emit_begin(ox_emitter *e, const char *op, bool microsoft, ox_str name, const ox_str *in,
                   size_t n_in);
ox_str ox_emit_end(ox_emitter *e, ox_str result);
ox_str ox_emit(ox_emitter *e, const char *op, ox_str name, const ox_str *in, size_t n_in);
/* Two operands, and a name for the result; "" = by the node. */
ox_str ox_emit_as(ox_emitter *e, const char *op, ox_str name, const ox_str in[2], ox_str result);
/* Constants by value, made once. */
ox_str ox_emit_i64(ox_emitter *e, int64_t v);
ox_str ox_emit_i64s(ox_emitter *e, const int64_t *v, size_t n);
ox_str ox_emit_float(ox_emitter *e, double v);
/* export_report.c: a matrix for the report, and its lines; the last one has no newline yet. */
void ox_emit_count(ox_emitter *e, ox_str name, const ox_job *job);
void ox_emit_report(const ox_emitter *e);
/* Tensors in the data file; a job that has been placed is remembered. */
void ox_emit_job(ox_emitter *e, const ox_job *job);
void ox_emit_external(ox_emitter *e, ox_str name, ox_dtype dtype, int32_t rank, const int64_t *dims,
                      uint64_t at);
ox_str ox_emit_vector(ox_emitter *e, ox_str name, ox_job *job);
ox_str ox_emit_floats(ox_emitter *e, ox_str name, const float *data, int64_t rows, int64_t cols);
/* x * W^T (+ bias) with the parts' rows one after the other; base is "/model/.../q_proj". */
typedef struct ox_matmul {
    ox_str base, x;
    int32_t n_parts;
    const ox_term *terms[OX_PARTS_MAX];
    ox_pairs pairs[OX_PARTS_MAX];
    ox_form form;
    ox_str result; /* name of what comes out; "" = by the node */
} ox_matmul;
ox_status ox_emit_matmul(ox_emitter *e, const ox_matmul *m, ox_str *y, ox_err *err);
ox_str ox_emit_embed(ox_emitter *e, const ox_term *t);
ox_status ox_emit_norm(ox_emitter *e, const ox_node *n, ox_err *err);
ox_status ox_emit_attend(ox_emitter *e, const ox_node *n, ox_err *err);
void ox_emit_lengths(ox_emitter *e);
/* Marks what attend nodes will emit themselves. */
void ox_emit_absorb(ox_emitter *e);
const ox_node *ox_emit_producer(const ox_emitter *e, ox_value_id v); /* NULL = an input */
/* "/a/b/MatMul" -> "/a/b" */
ox_str ox_emit_parent(ox_str path);
/* "/model/x/y" -> "model.x.y" */
ox_str ox_emit_dotted(ox_emitter *e, ox_str path);

ox_status ox_emit_graph(ox_emitter *e, ox_err *err);

/* genai_config.json and the tokenizer's files into folder dir. */
ox_status ox_export_files(const ox_source *s, const char *dir, ox_buf *report, ox_err *err);
#endif
