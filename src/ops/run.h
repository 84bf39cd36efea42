/* run.h - the node-by-node interpreter: runs the IR as the file wrote it, one operator at a time on
 * reference code. It is what everything faster is compared with. Values are freed after their last
 * use. One thread. */
#ifndef OX_OPS_RUN_H
#define OX_OPS_RUN_H
#include "ops/op.h"

/* A tensor, or a sequence of n_items tensors (kind SEQUENCE), or nothing; data is borrowed and must
 * outlive the results. */
typedef struct ox_run_input {
    ox_str name;
    ox_rt_kind kind;
    ox_tensor t;
    const ox_tensor *items;
    size_t n_items;
    ox_dtype item_dtype;
} ox_run_input;

typedef struct ox_run_options {
    size_t memory_limit; /* bytes of values and scratch at one time; 0 = none */
    uint64_t node_limit; /* operators executed in all; 0 = none */
    uint64_t work_limit; /* multiplications that one node may cost; 0 = any number */
    const bool *cancel;  /* NULL, or set by another thread to stop: OX_CANCELLED */
    uint64_t seed;       /* of random operators */
} ox_run_options;

typedef struct ox_run_results {
    size_t n;
    ox_rt_value **values; /* [n] as wanted */
    ox_rt_memory mem;
} ox_run_results;

/* wanted: names of values of g, of any node; n_wanted 0 = the graph's outputs. options NULL = no
 * limits. *out is the caller's. */
ox_status ox_graph_eval(ox_run_results **out, const ox_graph *g, const ox_run_input *in,
                        size_t n_in, const ox_str *wanted, size_t n_wanted,
                        const ox_run_options *options, ox_err *err);
void ox_run_results_close(ox_run_results **r);
#endif
