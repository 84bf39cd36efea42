/* ox_experimental.h - views into the engine for tools: plans, kernel rows, model reports. May
 * change with any release. */
#ifndef OXGEN_EXPERIMENTAL_H
#define OXGEN_EXPERIMENTAL_H
#include "oxgen/oxgen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are NUL-terminated, owned by the caller (ox_release). */
OX_API ox_status ox_model_plan_text(const ox_model *m, char **text, ox_err *err);
/* Compares the planned run with the node-by-node run of the graph as written. */
OX_API ox_status ox_model_bisect_text(ox_model *m, char **text, ox_err *err);
/* What the files hold: JSON object with files, ports, operators, weights, kv, context, backends. */
OX_API ox_status ox_inspect_json(const char *path, int32_t with_graph, char **json, ox_err *err);

/* Kernel rows. */
typedef struct ox_kernel_report {
    const char *family, *row, *device;
    uint32_t needs;        /* feature bits */
    int32_t runs_here;     /* this machine, after OXGEN_CPU */
    const char *tolerance; /* "exact", "round", "sum" */
} ox_kernel_report;
OX_API size_t ox_kernel_count(void);
OX_API ox_status ox_kernel_at(size_t i, ox_kernel_report *out, ox_err *err);

/* The machine. */
OX_API const char *ox_machine_cpu(void);
OX_API ox_status ox_machine_tier(const char **name, ox_err *err);
OX_API int32_t ox_machine_cpus(void);

/* What one token costs: bytes of weights a decode step reads, bytes of cache it reads per position,
 * and operations of its matrix products without and with the logits (a multiply-add is two). */
typedef struct ox_model_cost {
    double weight_bytes, kv_bytes_per_position, ops, ops_with_logits;
} ox_model_cost;
OX_API ox_status ox_model_cost_of(const ox_model *m, ox_model_cost *out, ox_err *err);

/* Roofs, measured now: bytes a second of a read of `bytes` with n_threads; int8 operations a
 * second. */
OX_API ox_status ox_roof_read(size_t bytes, int32_t n_threads, double seconds, double *bytes_per_s,
                              ox_err *err);
OX_API ox_status ox_roof_int8(int32_t n_threads, double seconds, double *ops_per_s, ox_err *err);

/* One micro-benchmark: rows of specs by name; run() is timed by the caller. */
typedef struct ox_micro {
    const char *name;   /* "matmul/small_f32_threads=1/1x256x256" */
    const char *unit;   /* what `work` counts: "bytes", "flop", "tokens" … */
    double work;        /* per run */
    const char *absent; /* NULL, or why the part does not exist yet */
} ox_micro;
OX_API size_t ox_micro_count(void);
OX_API ox_status ox_micro_at(size_t i, ox_micro *out, ox_err *err);
typedef struct ox_micro_case ox_micro_case;
OX_API ox_status ox_micro_open(ox_micro_case **out, size_t i, ox_err *err); /* makes its data */
OX_API void ox_micro_run(ox_micro_case *c, size_t times);
OX_API void ox_micro_close(ox_micro_case **c);

#ifdef __cplusplus
}
#endif
#endif
