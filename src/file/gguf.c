/* gguf.c - opening and checking a GGUF file; look-ups are in gguf_get.c.
 *
 *     "GGUF" version:u32 n_tensors:u64 n_keys:u64
 *     n_keys times     key:string type:u32 value
 *     n_tensors times  name:string n_dims:u32 dims:u64[n_dims] type:u32 offset:u64
 *     padding to general.alignment, then the tensors' bytes; offsets count from here
 *
 * string = length:u64 and bytes; array = item type:u32, n:u64 and the items. Arrays of arrays are
 * refused: nothing writes them. */
#include "file/gguf.h"

#include "base/mem.h"

enum { DEFAULT_ALIGNMENT = 32, MIN_ALIGNMENT = 8, MAX_ALIGNMENT = 1 << 20 };
enum { MIN_KEY_BYTES = 8 + 1 + 4 + 1, MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8 };

typedef struct cursor {
    const uint8_t *p, *begin, *end;
    ox_err *err;
} cursor;

static ox_status cut_short(const cursor *c, const char *what)
{
    return OX_FAIL(c->err, OX_BAD_FILE, "%s runs past the end of the file (byte %zu of %zu)", what,
                   (size_t)(c->p - c->begin), (size_t)(c->end - c->begin));
}

static ox_status take(cursor *c, size_t n, const char *what, const uint8_t **out)
{
    if (n > (size_t)(c->end - c->p)) return cut_short(c, what);
    *out = c->p;
    c->p += n;
    return OX_OK;
}

static ox_status take_u32(cursor *c, const char *what, uint32_t *out)
{
    const uint8_t *p = NULL;
    OX_TRY(take(c, 4, what, &p));
    memcpy(out, p, 4);
    return OX_OK;
}

static ox_status take_u64(cursor *c, const char *what, uint64_t *out)
{
    const uint8_t *p = NULL;
    OX_TRY(take(c, 8, what, &p));
    memcpy(out, p, 8);
    return OX_OK;
}

static ox_status take_str(cursor *c, const char *what, ox_str *out)
{
    uint64_t n;
    OX_TRY(take_u64(c, what, &n));
    if (n > (uint64_t)(c->end - c->p)) return cut_short(c, what);
    *out = (ox_str){(const char *)c->p, (size_t)n};
    c->p += n;
    return OX_OK;
}

static ox_status take_name(cursor *c, const char *what, ox_str *out)
{
    OX_TRY(take_str(c, what, out));
    if (!out->n || out->n > OX_GGUF_MAX_NAME)
        return OX_FAIL(c->err, OX_BAD_FILE, "%s of %zu bytes; expected 1 to %d", what, out->n,
                       OX_GGUF_MAX_NAME);
    return OX_OK;
}

static const uint8_t item_bytes[OX_GGUF_TYPE_COUNT] = {
    [OX_GGUF_U8] = 1,  [OX_GGUF_I8] = 1,  [OX_GGUF_BOOL] = 1, [OX_GGUF_U16] = 2,
    [OX_GGUF_I16] = 2, [OX_GGUF_U32] = 4, [OX_GGUF_I32] = 4,  [OX_GGUF_F32] = 4,
    [OX_GGUF_U64] = 8, [OX_GGUF_I64] = 8, [OX_GGUF_F64] = 8,
};

static ox_status read_strings(ox_gguf *g, cursor *c, ox_gguf_value *v)
{
    /* Every string takes at least its eight bytes of length: n is bounded by the file. */
    if (v->n > (size_t)(c->end - c->p) / 8) return cut_short(c, "an array of strings");
    ox_str *s = v->n ? ox_arena_take_n(&g->arena, v->n, sizeof(*s)) : NULL;
    if (v->n && !s) return OX_FAIL(c->err, OX_NO_MEMORY, "no memory for %zu strings", v->n);
    for (size_t i = 0; i < v->n; i++)
        OX_TRY(take_str(c, "a string", &s[i]));
    v->strings = s;
    return OX_OK;
}

static ox_status read_value(ox_gguf *g, cursor *c, ox_gguf_value *v)
{
    uint32_t type;
    uint64_t n = 1;
    size_t bytes;
    OX_TRY(take_u32(c, "a value", &type));
    if (type == OX_GGUF_ARRAY) {
        v->is_array = true;
        OX_TRY(take_u32(c, "an array", &type));
        OX_TRY(take_u64(c, "an array", &n));
        if (type == OX_GGUF_ARRAY)
            return OX_FAIL(c->err, OX_UNSUPPORTED, "an array of arrays; expected plain items");
    }
    if (type >= OX_GGUF_TYPE_COUNT)
        return OX_FAIL(c->err, OX_BAD_FILE, "value type %u; expected 0 to %d", type,
                       OX_GGUF_TYPE_COUNT - 1);
    v->type = (ox_gguf_type)type;
    if (n > SIZE_MAX) return cut_short(c, "an array");
    v->n = (size_t)n;
    if (type == OX_GGUF_STRING) return read_strings(g, c, v);
    if (!ox_size_mul(v->n, item_bytes[type], &bytes)) return cut_short(c, "an array");
    return take(c, bytes, "a value", &v->bytes);
}

static ox_status read_values(ox_gguf *g, cursor *c)
{
    for (size_t i = 0; i < g->n_values; i++) {
        ox_gguf_value *v = &g->values[i];
        OX_TRY(take_name(c, "a key", &v->key));
        const ox_status st = read_value(g, c, v);
        if (st) {
            ox_err_prefix(c->err, "key %.*s", OX_STR_ARGS(v->key));
            return st;
        }
        if (ox_map_get(&g->value_map, v->key, NULL))
            return OX_FAIL(c->err, OX_BAD_FILE, "the key %.*s occurs twice", OX_STR_ARGS(v->key));
        if (!ox_map_put(&g->value_map, v->key, i))
            return OX_FAIL(c->err, OX_NO_MEMORY, "no memory for the keys");
    }
    return OX_OK;
}

/* Bytes of a tensor of a known type. */
static ox_status tensor_bytes(const ox_gguf_tensor *t, size_t *bytes, ox_err *err)
{
    const size_t block = (size_t)ox_format_block(t->format);
    size_t n;
    if ((size_t)t->dims[0] % block)
        return OX_FAIL(err, OX_BAD_FILE, "rows of %lld elements; %s needs a multiple of %zu",
                       (long long)t->dims[0], ox_format_name(t->format), block);
    if (!ox_dims_count(t->dims, t->rank, &n) ||
        !ox_size_mul(n / block, ox_format_block_bytes(t->format), bytes))
        return OX_FAIL(err, OX_BAD_FILE, "the product of its dimensions overflows");
    return OX_OK;
}

static ox_status read_tensor(cursor *c, ox_gguf_tensor *t, uint64_t *offset)
{
    uint32_t rank, type;
    OX_TRY(take_u32(c, "a tensor record", &rank));
    if (!rank || rank > OX_GGUF_MAX_DIMS)
        return OX_FAIL(c->err, OX_BAD_FILE, "%u dimensions; expected 1 to %d", rank,
                       OX_GGUF_MAX_DIMS);
    t->rank = (int32_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim;
        OX_TRY(take_u64(c, "a tensor record", &dim));
        if (dim > INT64_MAX)
            return OX_FAIL(c->err, OX_BAD_FILE, "dimension %u is %llu; expected less than 2^63", i,
                           (unsigned long long)dim);
        t->dims[i] = (int64_t)dim;
    }
    OX_TRY(take_u32(c, "a tensor record", &type));
    OX_TRY(take_u64(c, "a tensor record", offset));
    if (type > INT32_MAX)
        return OX_FAIL(c->err, OX_BAD_FILE, "tensor type %u; the file is damaged", type);
    t->ggml_type = (int32_t)type;
    t->known = ox_format_of_ggml(t->ggml_type, &t->format);
    return t->known ? tensor_bytes(t, &t->bytes, c->err) : OX_OK;
}

static ox_status read_tensors(ox_gguf *g, cursor *c, uint64_t *offsets)
{
    for (size_t i = 0; i < g->n_tensors; i++) {
        ox_gguf_tensor *t = &g->tensors[i];
        OX_TRY(take_name(c, "a tensor's name", &t->name));
        const ox_status st = read_tensor(c, t, &offsets[i]);
        if (st) {
            ox_err_prefix(c->err, "tensor %.*s", OX_STR_ARGS(t->name));
            return st;
        }
        if (ox_map_get(&g->tensor_map, t->name, NULL))
            return OX_FAIL(c->err, OX_BAD_FILE, "two tensors are called %.*s",
                           OX_STR_ARGS(t->name));
        if (!ox_map_put(&g->tensor_map, t->name, i))
            return OX_FAIL(c->err, OX_NO_MEMORY, "no memory for the tensors' names");
    }
    return OX_OK;
}

static ox_status place_tensors(ox_gguf *g, cursor *c, const uint64_t *offsets)
{
    const int64_t alignment = ox_gguf_i64(g, "general.alignment", DEFAULT_ALIGNMENT);
    if (alignment < MIN_ALIGNMENT || alignment > MAX_ALIGNMENT || alignment & (alignment - 1))
        return OX_FAIL(c->err, OX_BAD_FILE,
                       "general.alignment is %lld; expected a power of two from %d to %d",
                       (long long)alignment, MIN_ALIGNMENT, MAX_ALIGNMENT);
    const size_t align = (size_t)alignment, head = (size_t)(c->p - c->begin);
    const size_t file = (size_t)(c->end - c->begin);
    const size_t base = head + (align - head % align) % align;
    for (size_t i = 0; i < g->n_tensors; i++) {
        ox_gguf_tensor *t = &g->tensors[i];
        size_t end;
        if (!t->known) continue;
        if (offsets[i] % align)
            return OX_FAIL(c->err, OX_BAD_FILE, "tensor %.*s: offset %llu is not a multiple of %zu",
                           OX_STR_ARGS(t->name), (unsigned long long)offsets[i], align);
        if (!ox_size_add(base, (size_t)offsets[i], &end) || !ox_size_add(end, t->bytes, &end) ||
            (end > file && t->bytes))
            return OX_FAIL(c->err, OX_BAD_FILE,
                           "tensor %.*s: %zu bytes at offset %llu run past the end of the file "
                           "(%zu bytes); is the download complete?",
                           OX_STR_ARGS(t->name), t->bytes, (unsigned long long)offsets[i], file);
        t->data = t->bytes ? c->begin + base + offsets[i] : NULL;
    }
    return OX_OK;
}

static ox_status read_head(cursor *c, uint32_t *version, uint64_t *n_tensors, uint64_t *n_values)
{
    const uint8_t *magic = NULL;
    const size_t n = (size_t)(c->end - c->p);
    if (ox_str_starts((ox_str){(const char *)c->p, n}, OX_STR("version https://git-lfs")))
        return OX_FAIL(c->err, OX_BAD_FILE,
                       "a Git LFS pointer, not the model; fetch the real file (git lfs pull)");
    if (n < 4 || memcmp(c->p, "GGUF", 4))
        return OX_FAIL(c->err, OX_BAD_FILE, "not a GGUF file: it does not begin with \"GGUF\"");
    OX_TRY(take(c, 4, "the header", &magic));
    OX_TRY(take_u32(c, "the header", version));
    if (*version && !(*version & 0xffffu))
        return OX_FAIL(c->err, OX_UNSUPPORTED,
                       "a big-endian GGUF file; expected little-endian (gguf-convert-endian)");
    if (*version != 2 && *version != 3)
        return OX_FAIL(c->err, OX_UNSUPPORTED,
                       "GGUF version %u; expected 2 or 3 (convert the model again)", *version);
    OX_TRY(take_u64(c, "the header", n_tensors));
    OX_TRY(take_u64(c, "the header", n_values));
    if (*n_values > OX_GGUF_MAX_KEYS)
        return OX_FAIL(c->err, OX_LIMIT, "%llu keys; at most %d are read",
                       (unsigned long long)*n_values, OX_GGUF_MAX_KEYS);
    if (*n_tensors > OX_GGUF_MAX_TENSORS)
        return OX_FAIL(c->err, OX_LIMIT, "%llu tensors; at most %d are read",
                       (unsigned long long)*n_tensors, OX_GGUF_MAX_TENSORS);
    if (*n_values * MIN_KEY_BYTES + *n_tensors * MIN_TENSOR_BYTES > (uint64_t)(c->end - c->p))
        return cut_short(c, "the list of keys and tensors");
    return OX_OK;
}

static ox_status read_file(ox_gguf *g, ox_str bytes, ox_err *err)
{
    const uint8_t *p = (const uint8_t *)(bytes.p ? bytes.p : "");
    cursor c = {p, p, p + bytes.n, err};
    uint64_t n_tensors = 0, n_values = 0;
    OX_TRY(read_head(&c, &g->version, &n_tensors, &n_values));
    g->n_values = (size_t)n_values;
    g->n_tensors = (size_t)n_tensors;
    g->values = ox_arena_take_n(&g->arena, g->n_values, sizeof(*g->values));
    g->tensors = ox_arena_take_n(&g->arena, g->n_tensors, sizeof(*g->tensors));
    uint64_t *offsets = ox_arena_take_n(&g->arena, g->n_tensors, sizeof(*offsets));
    if (!g->values || !g->tensors || !offsets)
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu keys and %zu tensors", g->n_values,
                       g->n_tensors);
    OX_TRY(read_values(g, &c));
    const int64_t n_splits = ox_gguf_i64(g, "split.count", 1);
    if (n_splits > 1)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "one of %lld parts of a split model; merge them into one file first "
                       "(gguf-split --merge)",
                       (long long)n_splits);
    OX_TRY(read_tensors(g, &c, offsets));
    return place_tensors(g, &c, offsets);
}

ox_status ox_gguf_parse(ox_gguf **out, ox_str bytes, ox_err *err)
{
    *out = NULL;
    ox_gguf *g = ox_calloc(1, sizeof(*g));
    if (!g) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a GGUF file");
    const ox_status st = read_file(g, bytes, err);
    if (st)
        ox_gguf_close(&g);
    else
        *out = g;
    return st;
}

ox_status ox_gguf_open(ox_gguf **out, const char *path, ox_err *err)
{
    ox_mapping file = {0};
    *out = NULL;
    OX_TRY(ox_mapping_open(&file, path, err));
    const ox_status st = ox_gguf_parse(out, (ox_str){(const char *)file.bytes, file.n}, err);
    if (st) {
        ox_err_prefix(err, "%s", ox_path_base(path));
        ox_mapping_close(&file);
    } else {
        (*out)->file = file;
    }
    return st;
}

void ox_gguf_close(ox_gguf **g)
{
    if (!*g) return;
    ox_map_deinit(&(*g)->value_map);
    ox_map_deinit(&(*g)->tensor_map);
    ox_mapping_close(&(*g)->file);
    ox_arena_deinit(&(*g)->arena);
    ox_free(*g);
    *g = NULL;
}
