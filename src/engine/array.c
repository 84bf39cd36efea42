/* array.c - arrays of the public interface to and from files. */
#include "engine/engine_internal.h"
#include "file/npy.h"
#include "file/onnx.h"

#include <string.h>

static const size_t MAX_FILE = (size_t)4 << 30;

static ox_status read_tensor(ox_tensor *t, ox_arena *arena, const char *path, ox_err *err)
{
    ox_buf bytes = {0};
    ox_onnx_tensor pb;
    if (!ox_str_ends(ox_str_of(path), OX_STR(".pb")))
        return ox_npy_read(t, arena, path, MAX_FILE, err);
    ox_status st = ox_file_read(&bytes, path, MAX_FILE, err);
    /* The tensor may view the bytes: they move into the arena first. */
    char *kept = st ? NULL : ox_arena_copy(arena, bytes.p ? bytes.p : "", bytes.n);
    if (!st && !kept) st = OX_FAIL(err, OX_NO_MEMORY, "%s: no memory to read it", path);
    if (!st) {
        st = ox_onnx_tensor_parse(&pb, arena, (ox_str){kept, bytes.n}, err);
        if (st) ox_err_prefix(err, "%s", path);
    }
    if (!st) *t = pb.t;
    ox_buf_deinit(&bytes);
    return st;
}

ox_status ox_array_read(ox_array *out, const char *name, const char *path, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_tensor t = {0};
    size_t bytes = 0;

    *out = (ox_array){0};
    ox_status st = read_tensor(&t, &arena, path, err);
    if (!st && t.dtype == OX_DTYPE_STRING)
        st = OX_FAIL(err, OX_UNSUPPORTED, "%s: string tensors cannot be given as files", path);
    if (!st && !ox_tensor_bytes(&t, &bytes)) st = OX_FAIL(err, OX_BAD_FILE, "%s: bad shape", path);
    char *copy = st ? NULL : ox_alloc(bytes), *kept = st ? NULL : ox_strdup_n(name, strlen(name));
    if (!st && (!copy || !kept)) st = OX_FAIL(err, OX_NO_MEMORY, "%s: no memory to read it", path);
    if (st) {
        ox_free(copy);
        ox_free(kept);
    } else {
        if (bytes) memcpy(copy, t.data, bytes);
        *out = (ox_array){
            .name = kept, .dtype = (int32_t)t.dtype, .rank = t.rank, .data = copy, .bytes = bytes};
        memcpy(out->dims, t.dims, sizeof(out->dims));
    }
    ox_arena_deinit(&arena);
    return st;
}

ox_status ox_array_write(const ox_array *a, const char *npy_path, ox_err *err)
{
    ox_tensor t = {
        .dtype = (ox_dtype)a->dtype, .rank = a->rank, .data = (void *)(uintptr_t)a->data};
    memcpy(t.dims, a->dims, sizeof(t.dims));
    return ox_npy_write(npy_path, &t, err);
}

void ox_array_free(ox_array *a)
{
    ox_free((void *)(uintptr_t)a->name);
    ox_free((void *)(uintptr_t)a->data);
    *a = (ox_array){0};
}

const char *ox_array_type_name(int32_t dtype)
{
    return ox_dtype_name((ox_dtype)dtype);
}
