/* safetensors.c - see safetensors.h.
 *
 *     n:u64 little-endian, n bytes of JSON, then the tensors' bytes without holes
 *     {"__metadata__": {...}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
 *
 * An index file maps tensor names to shards: {"weight_map": {"name":
 * "model-00001-of-2.safetensors"}}.
 */
#include "file/safetensors.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>

#define INDEX_NAME "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"

static const struct {
    const char *name;
    ox_dtype dtype;
} types[] = {
    {"BOOL", OX_DTYPE_BOOL},      {"U8", OX_DTYPE_U8},          {"I8", OX_DTYPE_I8},
    {"U16", OX_DTYPE_U16},        {"I16", OX_DTYPE_I16},        {"U32", OX_DTYPE_U32},
    {"I32", OX_DTYPE_I32},        {"U64", OX_DTYPE_U64},        {"I64", OX_DTYPE_I64},
    {"F16", OX_DTYPE_F16},        {"BF16", OX_DTYPE_BF16},      {"F32", OX_DTYPE_F32},
    {"F64", OX_DTYPE_F64},        {"C64", OX_DTYPE_C64},        {"F8_E4M3", OX_DTYPE_F8E4M3FN},
    {"F8_E5M2", OX_DTYPE_F8E5M2}, {"F8_E8M0", OX_DTYPE_F8E8M0}, {"F4", OX_DTYPE_F4E2M1},
};

/* One file being read: where its data is, and where in it tensors were seen. */
typedef struct shard {
    const uint8_t *data;
    size_t n; /* bytes of data */
    int32_t i_file;
    const ox_json *weight_map; /* NULL = take every tensor */
    ox_str name;               /* as the weight map calls it */
} shard;

typedef struct range {
    uint64_t begin, end;
} range;

static ox_dtype type_of(ox_str name)
{
    for (size_t i = 0; i < OX_COUNT(types); i++)
        if (ox_str_is(name, types[i].name)) return types[i].dtype;
    return OX_DTYPE_NONE;
}

static ox_status keep_str(ox_safetensors *s, ox_str *str, ox_err *err)
{
    const char *copy = ox_arena_copy(&s->arena, str->p, str->n);
    if (!copy) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a name");
    str->p = copy;
    return OX_OK;
}

static ox_status read_shape(const ox_json *node, ox_tensor *t, ox_err *err)
{
    const ox_json *shape = NULL;
    OX_TRY(ox_json_need(node, "shape", OX_JSON_ARRAY, &shape, err));
    if (shape->n > OX_RANK_MAX)
        return OX_FAIL(err, OX_UNSUPPORTED, "%u dimensions; expected at most %d", shape->n,
                       OX_RANK_MAX);
    t->rank = (int32_t)shape->n;
    for (uint32_t i = 0; i < shape->n; i++) {
        const ox_json *dim = ox_json_at(shape, i);
        if (!ox_json_is_i64(dim) || ox_json_i64(dim) < 0)
            return OX_FAIL(err, OX_BAD_FILE, "dimension %u is not a number from 0 to 2^63-1", i);
        t->dims[i] = ox_json_i64(dim);
    }
    return OX_OK;
}

static ox_status read_offsets(const ox_json *node, const shard *f, range *out, ox_err *err)
{
    const ox_json *at = NULL;
    OX_TRY(ox_json_need(node, "data_offsets", OX_JSON_ARRAY, &at, err));
    const ox_json *a = ox_json_at(at, 0), *b = ox_json_at(at, 1);
    if (at->n != 2 || !ox_json_is_i64(a) || !ox_json_is_i64(b) || ox_json_i64(a) < 0 ||
        ox_json_i64(b) < ox_json_i64(a))
        return OX_FAIL(err, OX_BAD_FILE, "data_offsets are not two growing numbers");
    *out = (range){(uint64_t)ox_json_i64(a), (uint64_t)ox_json_i64(b)};
    if (out->end > f->n)
        return OX_FAIL(err, OX_BAD_FILE,
                       "data_offsets end at %llu of %zu bytes; is the download complete?",
                       (unsigned long long)out->end, f->n);
    return OX_OK;
}

static size_t alignment(ox_dtype t)
{
    if (t == OX_DTYPE_C64) return 4;
    return ox_dtype_bits(t) <= 8 ? 1 : (size_t)ox_dtype_bits(t) / 8;
}

static ox_status place(ox_safetensors *s, ox_safetensors_tensor *t, const uint8_t *src, ox_err *err)
{
    if (!t->bytes) return OX_OK;
    if ((uintptr_t)src % alignment(t->t.dtype) == 0) {
        t->t.data = (void *)(uintptr_t)src;
        return OX_OK;
    }
    t->t.data = ox_arena_take(&s->arena, t->bytes);
    if (!t->t.data) return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu bytes", t->bytes);
    memcpy(t->t.data, src, t->bytes);
    return OX_OK;
}

static ox_status read_tensor(const shard *f, const ox_json *node, ox_safetensors_tensor *t,
                             range *at, ox_err *err)
{
    size_t want = 0;
    if (!ox_json_is(node, OX_JSON_OBJECT))
        return OX_FAIL(err, OX_BAD_FILE, "expected an object, found %s", ox_json_kind_name(node));
    OX_TRY(ox_json_need_str(node, "dtype", &t->type, err));
    OX_TRY(read_shape(node, &t->t, err));
    OX_TRY(read_offsets(node, f, at, err));
    t->t.dtype = type_of(t->type);
    t->bytes = (size_t)(at->end - at->begin);
    t->i_file = f->i_file;
    if (t->t.dtype && (!ox_tensor_bytes(&t->t, &want) || want != t->bytes))
        return OX_FAIL(err, OX_BAD_FILE,
                       "%zu bytes of data, which is not what its shape and type %.*s ask for",
                       t->bytes, OX_STR_ARGS(t->type));
    return OX_OK;
}

static ox_status add_tensor(ox_safetensors *s, const shard *f, ox_safetensors_tensor *t,
                            const range *at, ox_err *err)
{
    if (f->weight_map) {
        const ox_json *home = ox_json_get_str(f->weight_map, t->name);
        if (!ox_str_eq(ox_json_str(home), f->name)) return OX_OK;
    }
    if (ox_map_get(&s->by_name, t->name, NULL)) return OX_FAIL(err, OX_BAD_FILE, "it occurs twice");
    if (s->tensors.n == OX_SAFETENSORS_MAX_TENSORS)
        return OX_FAIL(err, OX_LIMIT, "more than %d tensors", OX_SAFETENSORS_MAX_TENSORS);
    OX_TRY(keep_str(s, &t->name, err));
    OX_TRY(keep_str(s, &t->type, err));
    OX_TRY(place(s, t, f->data + at->begin, err));
    if (!ox_map_put(&s->by_name, t->name, s->tensors.n) || !ox_vec_push(&s->tensors, *t))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for its record");
    return OX_OK;
}

static int by_begin(const void *a, const void *b)
{
    const range *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static ox_status has_no_holes(const shard *f, range *at, size_t n, ox_err *err)
{
    uint64_t end = 0;
    if (n) qsort(at, n, sizeof(*at), by_begin);
    for (size_t i = 0; i < n; i++) {
        if (at[i].begin != end)
            return OX_FAIL(err, OX_BAD_FILE, "its tensors %s at byte %llu of the data",
                           at[i].begin < end ? "overlap" : "leave a hole",
                           (unsigned long long)at[i].begin);
        end = at[i].end;
    }
    if (end != f->n)
        return OX_FAIL(err, OX_BAD_FILE, "%zu bytes of data of which its tensors use %llu", f->n,
                       (unsigned long long)end);
    return OX_OK;
}

static ox_status read_header(ox_safetensors *s, const shard *f, const ox_json *root, ox_err *err)
{
    const size_t n = ox_json_n(root);
    size_t n_ranges = 0, bytes;
    ox_status st = OX_OK;
    range *at = ox_size_mul(n, sizeof(*at), &bytes) ? ox_alloc(bytes) : NULL;
    if (!at) return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu tensors", n);
    for (size_t i = 0; !st && i < n; i++) {
        const ox_json_member *m = ox_json_member_at(root, i);
        ox_safetensors_tensor t = {.name = ox_json_str(&m->key)};
        if (ox_str_is(t.name, "__metadata__")) continue;
        st = read_tensor(f, &m->value, &t, &at[n_ranges++], err);
        if (!st) st = add_tensor(s, f, &t, &at[n_ranges - 1], err);
        if (st) ox_err_prefix(err, "tensor %.*s", OX_STR_ARGS(t.name));
    }
    if (!st) st = has_no_holes(f, at, n_ranges, err);
    ox_free(at);
    return st;
}

static ox_status read_file(ox_safetensors *s, ox_str bytes, int32_t i_file,
                           const ox_json *weight_map, ox_str name, ox_err *err)
{
    ox_arena json = OX_ARENA_INIT;
    const ox_json *root = NULL;
    uint64_t n = 0;
    if (ox_str_starts(bytes, OX_STR("version https://git-lfs")))
        return OX_FAIL(err, OX_BAD_FILE,
                       "a Git LFS pointer, not the model; fetch the real file (git lfs pull)");
    if (bytes.n >= 8) memcpy(&n, bytes.p, 8);
    if (bytes.n < 8 || n > bytes.n - 8)
        return OX_FAIL(err, OX_BAD_FILE,
                       "a header of %llu bytes in a file of %zu; expected a safetensors file",
                       (unsigned long long)n, bytes.n);
    if (n > OX_SAFETENSORS_MAX_HEADER)
        return OX_FAIL(err, OX_LIMIT, "a header of %llu bytes; at most %d are read",
                       (unsigned long long)n, OX_SAFETENSORS_MAX_HEADER);
    const shard f = {(const uint8_t *)bytes.p + 8 + n, bytes.n - 8 - (size_t)n, i_file, weight_map,
                     name};
    ox_status st = ox_json_parse(&root, &json, (ox_str){bytes.p + 8, (size_t)n}, err);
    if (!st && !ox_json_is(root, OX_JSON_OBJECT))
        st = OX_FAIL(err, OX_BAD_FILE, "the header is not a JSON object");
    else if (st)
        ox_err_prefix(err, "header");
    if (!st) st = read_header(s, &f, root, err);
    ox_arena_deinit(&json);
    return st;
}

static ox_status read_path(ox_safetensors *s, const char *path, const ox_json *weight_map,
                           ox_str name, ox_err *err)
{
    ox_mapping file = {0};
    OX_TRY(ox_mapping_open(&file, path, err));
    if (!ox_vec_push(&s->files, file)) {
        ox_mapping_close(&file);
        return OX_FAIL(err, OX_NO_MEMORY, "%s: no memory for its record", path);
    }
    const ox_str bytes = {(const char *)file.bytes, file.n};
    const ox_status st = read_file(s, bytes, (int32_t)s->files.n - 1, weight_map, name, err);
    if (st) ox_err_prefix(err, "%s", ox_path_base(path));
    return st;
}

/* Opens each shard when the weight map first names it; afterwards every name must be there. */
static ox_status read_shards(ox_safetensors *s, const char *dir, const ox_json *map, ox_err *err)
{
    ox_map seen = {0};
    ox_status st = OX_OK;
    for (size_t i = 0; !st && i < ox_json_n(map); i++) {
        const ox_str name = ox_json_str(&ox_json_member_at(map, i)->value);
        char *path = NULL;
        if (name.n && ox_map_get(&seen, name, NULL)) continue;
        if (!name.n)
            st = OX_FAIL(err, OX_BAD_FILE, "weight_map: a shard that is not named by a string");
        else if (s->files.n == OX_SAFETENSORS_MAX_SHARDS)
            st = OX_FAIL(err, OX_LIMIT, "more than %d shards", OX_SAFETENSORS_MAX_SHARDS);
        else if (!ox_map_put(&seen, name, i))
            st = OX_FAIL(err, OX_NO_MEMORY, "no memory for shards");
        if (!st) st = ox_path_beneath(&path, dir, name, err);
        if (!st) st = read_path(s, path, map, name, err);
        ox_free(path);
    }
    for (size_t i = 0; !st && i < ox_json_n(map); i++) {
        const ox_json_member *m = ox_json_member_at(map, i);
        if (!ox_map_get(&s->by_name, ox_json_str(&m->key), NULL))
            st = OX_FAIL(err, OX_BAD_FILE, "tensor %.*s is not in %.*s, where the index puts it",
                         OX_STR_ARGS(ox_json_str(&m->key)), OX_STR_ARGS(ox_json_str(&m->value)));
    }
    ox_map_deinit(&seen);
    return st;
}

static ox_status read_index(ox_safetensors *s, const char *path, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_buf text = {0};
    const ox_json *root = NULL, *map = NULL;
    char *dir = ox_path_dir(path);
    ox_status st = dir ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    if (!st) st = ox_file_read(&text, path, OX_SAFETENSORS_MAX_HEADER, err);
    if (!st) {
        st = ox_json_parse(&root, &arena, ox_buf_view(&text), err);
        if (!st) st = ox_json_need(root, "weight_map", OX_JSON_OBJECT, &map, err);
        if (!st) st = read_shards(s, dir, map, err);
        if (st) ox_err_prefix(err, "%s", ox_path_base(path));
    }
    ox_arena_deinit(&arena);
    ox_buf_deinit(&text);
    ox_free(dir);
    return st;
}

/* The index, else model.safetensors, else the only *.safetensors file of the folder. */
static ox_status find_in_folder(char **out, const char *dir, ox_err *err)
{
    const char *const usual[] = {INDEX_NAME, SINGLE_NAME};
    char **names = NULL;
    size_t n = 0, n_found = 0;
    const char *found = NULL;
    for (size_t i = 0; i < OX_COUNT(usual); i++) {
        *out = ox_path_join(dir, usual[i]);
        if (!*out) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
        if (ox_path_is_file(*out)) return OX_OK;
        ox_free(*out);
        *out = NULL;
    }
    OX_TRY(ox_dir_list(&names, &n, dir, err));
    for (size_t i = 0; i < n; i++) {
        if (!ox_str_ends(ox_str_of(names[i]), OX_STR(".safetensors"))) continue;
        found = names[i];
        n_found++;
    }
    ox_status st = OX_OK;
    if (n_found == 1) {
        *out = ox_path_join(dir, found);
        if (!*out) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    } else {
        st = OX_FAIL(err, OX_NOT_FOUND,
                     "%s: %zu .safetensors files and no %s; expected a model in one file or with "
                     "its index",
                     dir, n_found, INDEX_NAME);
    }
    ox_dir_list_free(names, n);
    return st;
}

static ox_status open_path(ox_safetensors *s, const char *path, ox_err *err)
{
    char *inside = NULL;
    if (ox_path_is_dir(path)) OX_TRY(find_in_folder(&inside, path, err));
    const char *file = inside ? inside : path;
    const ox_status st = ox_str_ends(ox_str_of(file), OX_STR(".json"))
                             ? read_index(s, file, err)
                             : read_path(s, file, NULL, (ox_str){"", 0}, err);
    ox_free(inside);
    return st;
}

ox_status ox_safetensors_open(ox_safetensors **out, const char *path, ox_err *err)
{
    *out = NULL;
    ox_safetensors *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    const ox_status st = open_path(s, path, err);
    if (st)
        ox_safetensors_close(&s);
    else
        *out = s;
    return st;
}

ox_status ox_safetensors_parse(ox_safetensors **out, ox_str bytes, ox_err *err)
{
    *out = NULL;
    ox_safetensors *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    const ox_status st = read_file(s, bytes, 0, NULL, (ox_str){"", 0}, err);
    if (st)
        ox_safetensors_close(&s);
    else
        *out = s;
    return st;
}

void ox_safetensors_close(ox_safetensors **s)
{
    if (!*s) return;
    for (size_t i = 0; i < (*s)->files.n; i++)
        ox_mapping_close(&(*s)->files.p[i]);
    ox_vec_deinit(&(*s)->files);
    ox_vec_deinit(&(*s)->tensors);
    ox_map_deinit(&(*s)->by_name);
    ox_arena_deinit(&(*s)->arena);
    ox_free(*s);
    *s = NULL;
}

const ox_safetensors_tensor *ox_safetensors_find(const ox_safetensors *s, const char *name)
{
    uint64_t i;
    return ox_map_get(&s->by_name, ox_str_of(name), &i) ? &s->tensors.p[i] : NULL;
}

ox_status ox_safetensors_need(const ox_safetensors *s, const char *name,
                              const ox_safetensors_tensor **out, ox_err *err)
{
    const ox_safetensors_tensor *t = ox_safetensors_find(s, name);
    *out = NULL;
    if (!t) return OX_FAIL(err, OX_BAD_FILE, "tensor %s is missing", name);
    if (!t->t.dtype)
        return OX_FAIL(err, OX_UNSUPPORTED, "tensor %s has type %.*s, which oxgen does not read",
                       name, OX_STR_ARGS(t->type));
    *out = t;
    return OX_OK;
}
