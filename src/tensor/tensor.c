/* tensor.c - see tensor.h. */
#include "tensor/tensor.h"

#include "base/mem.h"

static const struct {
    const char *name;
    int bits;
} rows[OX_DTYPE_COUNT] = {
#define OX_DTYPE(suffix, code, name, bits) [code] = {name, bits},
#include "tensor/dtypes.def"
#undef OX_DTYPE
};

const char *ox_dtype_name(ox_dtype t)
{
    return (unsigned)t < OX_DTYPE_COUNT ? rows[t].name : "invalid";
}

int ox_dtype_bits(ox_dtype t)
{
    return (unsigned)t < OX_DTYPE_COUNT ? rows[t].bits : 0;
}

bool ox_dims_count(const int64_t *dims, int32_t rank, size_t *n)
{
    size_t total = 1;
    bool empty = false;
    if (rank < 0 || rank > OX_RANK_MAX) return false;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (!dims[i]) empty = true;
        if (dims[i] && !ox_size_mul(total, (size_t)dims[i], &total)) return false;
    }
    *n = empty ? 0 : total;
    return true;
}

bool ox_dtype_bytes(ox_dtype t, size_t n_elements, size_t *bytes)
{
    const int bits = ox_dtype_bits(t);
    size_t total;
    if (!bits || !ox_size_mul(n_elements, (size_t)bits, &total)) return false;
    *bytes = total / 8 + (total % 8 != 0);
    return true;
}

bool ox_tensor_count(const ox_tensor *t, size_t *n)
{
    return ox_dims_count(t->dims, t->rank, n);
}

bool ox_tensor_bytes(const ox_tensor *t, size_t *bytes)
{
    size_t n;
    return ox_tensor_count(t, &n) && ox_dtype_bytes(t->dtype, n, bytes);
}
