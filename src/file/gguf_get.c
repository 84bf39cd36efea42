/* gguf_get.c - look-ups in an open GGUF file: keys with defaults, items of arrays, tensors. */
#include "file/gguf.h"

static const char *const value_names[OX_GGUF_TYPE_COUNT] = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

static const struct {
    int32_t number;
    const char *name;
} tensor_types[] = {
#define OX_GGML_TYPE(number, name) {number, name},
#include "file/ggml_types.def"
#undef OX_GGML_TYPE
};

const char *ox_gguf_type_name(ox_gguf_type t)
{
    return (unsigned)t < OX_GGUF_TYPE_COUNT ? value_names[t] : "unknown";
}

const char *ox_ggml_type_name(int32_t ggml_type)
{
    for (size_t i = 0; i < OX_COUNT(tensor_types); i++)
        if (tensor_types[i].number == ggml_type) return tensor_types[i].name;
    return "unknown";
}

const ox_gguf_value *ox_gguf_find(const ox_gguf *g, const char *key)
{
    uint64_t i;
    return ox_map_get(&g->value_map, ox_str_of(key), &i) ? &g->values[i] : NULL;
}

const ox_gguf_tensor *ox_gguf_tensor_find(const ox_gguf *g, const char *name)
{
    uint64_t i;
    return ox_map_get(&g->tensor_map, ox_str_of(name), &i) ? &g->tensors[i] : NULL;
}

ox_status ox_gguf_tensor_need(const ox_gguf *g, const char *name, const ox_gguf_tensor **out,
                              ox_err *err)
{
    const ox_gguf_tensor *t = ox_gguf_tensor_find(g, name);
    *out = NULL;
    if (!t) return OX_FAIL(err, OX_BAD_FILE, "tensor %s is missing", name);
    if (!t->known)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "tensor %s has type %s (number %d), which oxgen does not read; quantise the "
                       "model to another type",
                       name, ox_ggml_type_name(t->ggml_type), (int)t->ggml_type);
    *out = t;
    return OX_OK;
}

/* Item i as an integer; false for floats, strings and values beyond int64. */
static bool as_i64(const ox_gguf_value *v, size_t i, int64_t *out)
{
    const uint8_t *p = v->bytes;
    union {
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
    } x = {.u64 = 0};
    if (i >= v->n || !p) return false;
    switch (v->type) {
    case OX_GGUF_U8:
    case OX_GGUF_BOOL:
        *out = p[i];
        return true;
    case OX_GGUF_I8:
        *out = (int8_t)p[i];
        return true;
    case OX_GGUF_U16:
        memcpy(&x, p + 2 * i, 2);
        *out = x.u16;
        return true;
    case OX_GGUF_I16:
        memcpy(&x, p + 2 * i, 2);
        *out = x.i16;
        return true;
    case OX_GGUF_U32:
        memcpy(&x, p + 4 * i, 4);
        *out = x.u32;
        return true;
    case OX_GGUF_I32:
        memcpy(&x, p + 4 * i, 4);
        *out = x.i32;
        return true;
    case OX_GGUF_U64:
    case OX_GGUF_I64:
        memcpy(&x, p + 8 * i, 8);
        *out = (int64_t)x.u64;
        return v->type == OX_GGUF_I64 || x.u64 <= INT64_MAX;
    default:
        return false;
    }
}

static bool as_f64(const ox_gguf_value *v, size_t i, double *out)
{
    int64_t n;
    float f;
    if (as_i64(v, i, &n)) {
        *out = (double)n;
        return true;
    }
    if (i >= v->n || !v->bytes) return false;
    if (v->type == OX_GGUF_F32) {
        memcpy(&f, v->bytes + 4 * i, 4);
        *out = (double)f;
        return true;
    }
    if (v->type == OX_GGUF_F64) memcpy(out, v->bytes + 8 * i, 8);
    return v->type == OX_GGUF_F64;
}

int64_t ox_gguf_i64(const ox_gguf *g, const char *key, int64_t otherwise)
{
    const ox_gguf_value *v = ox_gguf_find(g, key);
    int64_t n;
    return v && !v->is_array && as_i64(v, 0, &n) ? n : otherwise;
}

uint32_t ox_gguf_u32(const ox_gguf *g, const char *key, uint32_t otherwise)
{
    const int64_t n = ox_gguf_i64(g, key, otherwise);
    return n >= 0 && n <= UINT32_MAX ? (uint32_t)n : otherwise;
}

double ox_gguf_f64(const ox_gguf *g, const char *key, double otherwise)
{
    const ox_gguf_value *v = ox_gguf_find(g, key);
    double f;
    return v && !v->is_array && as_f64(v, 0, &f) ? f : otherwise;
}

float ox_gguf_f32(const ox_gguf *g, const char *key, float otherwise)
{
    return (float)ox_gguf_f64(g, key, (double)otherwise);
}

bool ox_gguf_bool(const ox_gguf *g, const char *key, bool otherwise)
{
    return ox_gguf_i64(g, key, otherwise) != 0;
}

ox_str ox_gguf_str(const ox_gguf *g, const char *key)
{
    const ox_gguf_value *v = ox_gguf_find(g, key);
    return v && !v->is_array ? ox_gguf_item_str(v, 0) : (ox_str){"", 0};
}

int64_t ox_gguf_item_i64(const ox_gguf_value *v, size_t i)
{
    int64_t n;
    return v && as_i64(v, i, &n) ? n : 0;
}

double ox_gguf_item_f64(const ox_gguf_value *v, size_t i)
{
    double f;
    return v && as_f64(v, i, &f) ? f : 0;
}

ox_str ox_gguf_item_str(const ox_gguf_value *v, size_t i)
{
    return v && v->strings && i < v->n ? v->strings[i] : (ox_str){"", 0};
}
