/* tensor.h - element types, and a contiguous row-major tensor view.
 *
 * Types below 8 bits are packed over the whole tensor, first element in the lowest bits (ONNX
 * rule). A string tensor's data is an array of ox_str (128 bits each). */
#ifndef OX_TENSOR_TENSOR_H
#define OX_TENSOR_TENSOR_H
#include "base/status.h"
#include "base/str.h"

typedef enum ox_dtype {
#define OX_DTYPE(suffix, code, name, bits) OX_DTYPE_##suffix = code,
#include "tensor/dtypes.def"
#undef OX_DTYPE
    OX_DTYPE_COUNT
} ox_dtype;

const char *ox_dtype_name(ox_dtype t); /* "invalid" when out of range */
int ox_dtype_bits(ox_dtype t);         /* 0 when undefined or out of range */

enum { OX_RANK_MAX = 8 };

/* Borrowed or owned data according to the holder; dims[i] >= 0. */
typedef struct ox_tensor {
    ox_dtype dtype;
    int32_t rank; /* 0 = scalar */
    int64_t dims[OX_RANK_MAX];
    void *data;
} ox_tensor;

/* Number of elements / bytes; false on overflow, negative dimension or bad type. */
bool ox_dims_count(const int64_t *dims, int32_t rank, size_t *n);
bool ox_dtype_bytes(ox_dtype t, size_t n_elements, size_t *bytes);
bool ox_tensor_count(const ox_tensor *t, size_t *n);
bool ox_tensor_bytes(const ox_tensor *t, size_t *bytes);
#endif
