/* value.h - run-time values of the node-by-node interpreter: tensors, sequences, and nothing.
 *
 * Values are counted references: whoever makes or keeps one gives it back with ox_rt_unref. All
 * bytes are charged to one ox_rt_memory with a limit; strings of string tensors live in its arena
 * until it is closed, or are views of inputs and constants, which must outlive the values.
 * Owned by one thread. */
#ifndef OX_OPS_VALUE_H
#define OX_OPS_VALUE_H
#include "base/arena.h"
#include "tensor/tensor.h"

typedef enum ox_rt_kind {
    OX_RT_NONE, /* an optional without a value */
    OX_RT_TENSOR,
    OX_RT_SEQUENCE
} ox_rt_kind;

typedef struct ox_rt_memory {
    size_t limit, used; /* bytes; limit 0 = none */
    ox_arena strings;
} ox_rt_memory;

typedef struct ox_rt_value ox_rt_value;
struct ox_rt_value {
    ox_rt_kind kind;
    ox_dtype dtype;      /* of the tensor or of the sequence's elements; NONE = any */
    ox_tensor t;         /* TENSOR */
    ox_rt_value **items; /* SEQUENCE: [n_items] tensors */
    size_t n_items;
    /* internal: */
    ox_rt_memory *mem;
    int32_t refs;
    ox_rt_value *base; /* owner of t.data when this is a view of another value */
    size_t bytes;      /* charged for t.data */
    void *owned;
};

/* NULL when memory is short or the limit is passed. New tensors are zeroed. */
ox_rt_value *ox_rt_tensor_new(ox_rt_memory *m, ox_dtype t, int32_t rank, const int64_t *dims);
/* A tensor whose data is somebody else's and outlives the value. */
ox_rt_value *ox_rt_tensor_view(ox_rt_memory *m, const ox_tensor *t);
/* The same data under another shape of as many elements. */
ox_rt_value *ox_rt_tensor_share(ox_rt_value *of, int32_t rank, const int64_t *dims);
ox_rt_value *ox_rt_sequence_new(ox_rt_memory *m, ox_dtype t, size_t n_items); /* items NULL */
ox_rt_value *ox_rt_none_new(ox_rt_memory *m);
ox_rt_value *ox_rt_ref(ox_rt_value *v);
void ox_rt_unref(ox_rt_value **v); /* NULL allowed; sets NULL */

/* A copy of bytes in the string arena; p NULL = no memory or limit. */
ox_str ox_rt_string(ox_rt_memory *m, const char *p, size_t n);
bool ox_rt_charge(ox_rt_memory *m, size_t bytes);
void ox_rt_release(ox_rt_memory *m, size_t bytes);
/* Frees the string arena; every value must be given back before. */
void ox_rt_memory_close(ox_rt_memory *m);
#endif
