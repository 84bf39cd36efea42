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
/* The same; ask_ort 1: also what ONNX Runtime says, which takes opening the graph with it. */
OX_API ox_status ox_inspect_json_with(const char *path, int32_t with_graph, int32_t ask_ort,
                                      char **json, ox_err *err);

/* Kernel rows. */
typedef struct ox_kernel_report {
    const char *family, *row, *device;
    uint32_t needs;        /* feature bits */
    int32_t runs_here;     /* this machine, after OXGEN_CPU */
    const char *tolerance; /* "exact", "round", "sum", "half" */
} ox_kernel_report;
OX_API size_t ox_kernel_count(void);
OX_API ox_status ox_kernel_at(size_t i, ox_kernel_report *out, ox_err *err);
/* Rows of the CUDA library, at most max of them; needs = lowest compute capability, 90 = 9.0.
 * OX_NO_DEVICE says why there are none. */
OX_API ox_status ox_kernel_cuda_rows(ox_kernel_report *out, size_t max, size_t *n, ox_err *err);

/* The machine. */
OX_API const char *ox_machine_cpu(void);
OX_API ox_status ox_machine_tier(const char **name, ox_err *err);
OX_API int32_t ox_machine_cpus(void);
typedef struct ox_gpu_report {
    char name[96], driver[96]; /* "NVIDIA H200"; "580.159.04, CUDA 13.0" */
    int32_t index, sm;         /* sm 90 = compute capability 9.0 */
    uint64_t memory_bytes;
} ox_gpu_report;
/* What --device cuda can use, at most max; OX_NO_DEVICE says what is missing. */
OX_API ox_status ox_machine_gpus(ox_gpu_report *out, size_t max, size_t *n, ox_err *err);

/* What one token costs: bytes of weights a decode step reads, bytes of cache it reads per position,
 * and operations of its matrix products without and with the logits (a multiply-add is two). */
typedef struct ox_model_cost {
    double weight_bytes, kv_bytes_per_position, ops, ops_with_logits;
} ox_model_cost;
OX_API ox_status ox_model_cost_of(const ox_model *m, ox_model_cost *out, ox_err *err);

/* Roofs, measured now: bytes a second of a read of `bytes` with n_threads (a small read stays in a
 * cache); operations a second of int8 products and of float32 multiply-adds
 * (a multiply-add is two). */
OX_API ox_status ox_roof_read(size_t bytes, int32_t n_threads, double seconds, double *bytes_per_s,
                              ox_err *err);
OX_API ox_status ox_roof_int8(int32_t n_threads, double seconds, double *ops_per_s, ox_err *err);
OX_API ox_status ox_roof_float(int32_t n_threads, double seconds, double *ops_per_s, ox_err *err);

/* Micro-benchmarks: one part of the engine on made-up data. The caller does the timing. Strings are
 * static. */
typedef struct ox_micro {
    const char *name;   /* "matmul/small_generic_f32_threads=1/1x256x256" */
    const char *runs;   /* which code it calls: "kernel gemm" */
    const char *absent; /* NULL, or why the part does not exist or does not run here */
    int32_t few_cpus;   /* it wants more threads than this machine has CPUs */
} ox_micro;
/* What one run does. 0 = does not limit it. */
typedef struct ox_micro_cost {
    const char *unit; /* what `work` counts: "flop", "byte", "token" */
    double work, bytes, float_ops, int8_ops;
    int32_t n_threads; /* threads it runs on; for the roofs */
} ox_micro_cost;
typedef struct ox_micro_case ox_micro_case; /* one owner */
OX_API size_t ox_micro_count(void);
OX_API ox_status ox_micro_at(size_t i, ox_micro *out, ox_err *err);
/* Makes the data of row i; OX_UNSUPPORTED with the reason for an absent one. Where data lies in
 * memory changes the time of small rows by tens of percent: layout k > 0 shifts every operand by a
 * made-up multiple of 64 bytes below 4096, 0 by none. */
OX_API ox_status ox_micro_open(ox_micro_case **out, size_t i, uint32_t layout, ox_err *err);
/* The same work done by ONNX Runtime. OX_UNSUPPORTED when it has no such row, OX_NO_DEVICE when
 * there is no ONNX Runtime. Its cost names the threads only. */
OX_API ox_status ox_micro_open_peer(ox_micro_case **out, size_t i, uint32_t layout, ox_err *err);
OX_API void ox_micro_cost_of(const ox_micro_case *c, ox_micro_cost *out);
/* Runs it n times. OX_FAILED when a run failed: its time means nothing then. */
OX_API ox_status ox_micro_run(ox_micro_case *c, size_t times, ox_err *err);
OX_API void ox_micro_close(ox_micro_case **c); /* NULL allowed */

/* Kernel row i (ox_kernel_at) on the typical shape of its family. */
typedef struct ox_kernel_choice {
    const char *shape; /* the micro-benchmark whose arguments it gets; NULL: there is none */
    int32_t picked;    /* a plan takes this row for that shape */
    const char *why;   /* why it is picked or not: one phrase */
} ox_kernel_choice;
OX_API ox_status ox_kernel_choose(size_t i, ox_kernel_choice *out, ox_err *err);
/* One thread. OX_UNSUPPORTED with the reason when the row cannot run here. */
OX_API ox_status ox_kernel_open(ox_micro_case **out, size_t i, ox_err *err);

#ifdef __cplusplus
}
#endif
#endif
