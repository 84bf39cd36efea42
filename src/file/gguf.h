/* gguf.h - a GGUF file (version 2 or 3, little-endian) as checked records: views into the mapping.
 *
 * After ox_gguf_open every key, value, name and tensor lies inside the file; names and keys are
 * unique; tensors of known types have exactly the bytes that shape and type ask for and rows that
 * are whole blocks. Tensors of unknown types keep their number and no size: refuse them when used
 * (ox_gguf_tensor_need). Immutable after open; any number of readers. */
#ifndef OX_FILE_GGUF_H
#define OX_FILE_GGUF_H
#include "base/arena.h"
#include "base/fs.h"
#include "base/hash.h"
#include "tensor/weight.h"

enum {
    OX_GGUF_MAX_KEYS = 1 << 16,
    OX_GGUF_MAX_TENSORS = 1 << 17,
    OX_GGUF_MAX_NAME = 65535, /* bytes of a key or a tensor's name */
    OX_GGUF_MAX_DIMS = 4,
};

typedef enum ox_gguf_type {
    OX_GGUF_U8 = 0,
    OX_GGUF_I8 = 1,
    OX_GGUF_U16 = 2,
    OX_GGUF_I16 = 3,
    OX_GGUF_U32 = 4,
    OX_GGUF_I32 = 5,
    OX_GGUF_F32 = 6,
    OX_GGUF_BOOL = 7,
    OX_GGUF_STRING = 8,
    OX_GGUF_ARRAY = 9,
    OX_GGUF_U64 = 10,
    OX_GGUF_I64 = 11,
    OX_GGUF_F64 = 12,
    OX_GGUF_TYPE_COUNT
} ox_gguf_type;

typedef struct ox_gguf_value {
    ox_str key;
    ox_gguf_type type; /* of the value, or of the items of an array */
    bool is_array;
    size_t n;              /* items; 1 for a scalar */
    const uint8_t *bytes;  /* items back to back, little-endian, not aligned; not for strings */
    const ox_str *strings; /* [n] for strings */
} ox_gguf_value;

typedef struct ox_gguf_tensor {
    ox_str name;
    int32_t rank;                   /* 1..4 */
    int64_t dims[OX_GGUF_MAX_DIMS]; /* file order: dims[0] is the contiguous one (columns) */
    int32_t ggml_type;
    bool known;       /* format, data and bytes are valid */
    ox_format format; /* of known types */
    const void *data; /* NULL when not known */
    size_t bytes;
} ox_gguf_tensor;

typedef struct ox_gguf {
    uint32_t version;
    size_t n_values, n_tensors;
    ox_gguf_value *values;
    ox_gguf_tensor *tensors;
    /* internal: */
    ox_arena arena;
    ox_mapping file;
    ox_map value_map, tensor_map;
} ox_gguf;

/* Maps path. Split files and version 1 are refused with OX_UNSUPPORTED. Close frees everything. */
ox_status ox_gguf_open(ox_gguf **out, const char *path, ox_err *err);
/* The same from memory that outlives the result, aligned to 8 bytes. */
ox_status ox_gguf_parse(ox_gguf **out, ox_str bytes, ox_err *err);
void ox_gguf_close(ox_gguf **g);

const ox_gguf_value *ox_gguf_find(const ox_gguf *g, const char *key); /* NULL = absent */
const ox_gguf_tensor *ox_gguf_tensor_find(const ox_gguf *g, const char *name);
/* The tensor, or a failure that names it: OX_BAD_FILE when absent, OX_UNSUPPORTED for its type. */
ox_status ox_gguf_tensor_need(const ox_gguf *g, const char *name, const ox_gguf_tensor **out,
                              ox_err *err);

/* Scalars with defaults. A value of another kind, or out of the result's range, reads as absent;
 * any integer type, bool included, reads as integer; integers read as floats too. */
int64_t ox_gguf_i64(const ox_gguf *g, const char *key, int64_t otherwise);
uint32_t ox_gguf_u32(const ox_gguf *g, const char *key, uint32_t otherwise);
double ox_gguf_f64(const ox_gguf *g, const char *key, double otherwise);
float ox_gguf_f32(const ox_gguf *g, const char *key, float otherwise);
bool ox_gguf_bool(const ox_gguf *g, const char *key, bool otherwise);
ox_str ox_gguf_str(const ox_gguf *g, const char *key); /* empty = absent */

/* Item i of a value (arrays, or i = 0 of a scalar); 0 or empty when out of
 * range or another kind. */
int64_t ox_gguf_item_i64(const ox_gguf_value *v, size_t i);
double ox_gguf_item_f64(const ox_gguf_value *v, size_t i);
ox_str ox_gguf_item_str(const ox_gguf_value *v, size_t i);

const char *ox_gguf_type_name(ox_gguf_type t);
/* The name of a tensor type by its number, known or not ("iq2_xs"); "unknown" beyond the list. */
const char *ox_ggml_type_name(int32_t ggml_type);
#endif
