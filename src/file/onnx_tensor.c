/* onnx_tensor.c - TensorProto and SparseTensorProto: dims and type are checked, and whichever way
 * the values are stored - raw bytes, typed fields, another file - they leave as row-major raw bytes
 * of exactly the right size. Raw and external bytes stay where they are
 * unless they lie unaligned. */
#include "file/onnx_internal.h"

#include "base/mem.h"

enum {
    FIELD_DIMS = 1,
    FIELD_TYPE = 2,
    FIELD_SEGMENT = 3,
    FIELD_FLOATS = 4,
    FIELD_INT32S = 5,
    FIELD_STRINGS = 6,
    FIELD_INT64S = 7,
    FIELD_NAME = 8,
    FIELD_RAW = 9,
    FIELD_DOUBLES = 10,
    FIELD_UINT64S = 11,
    FIELD_EXTERNAL = 13,
    FIELD_LOCATION = 14,
};

/* Typed fields: their element wire type and name. */
static const struct {
    int32_t wire;
    const char *name;
} typed[OX_ONNX_FIELDS] = {
    [FIELD_FLOATS] = {OX_PROTO_I32, "float_data"},
    [FIELD_INT32S] = {OX_PROTO_VARINT, "int32_data"},
    [FIELD_STRINGS] = {OX_PROTO_LEN, "string_data"},
    [FIELD_INT64S] = {OX_PROTO_VARINT, "int64_data"},
    [FIELD_DOUBLES] = {OX_PROTO_I64, "double_data"},
    [FIELD_UINT64S] = {OX_PROTO_VARINT, "uint64_data"},
};

/* The typed field for each element type, and the entries an element takes there. */
static const struct {
    uint8_t field, entries;
} home[OX_DTYPE_COUNT] = {
    [OX_DTYPE_F32] = {FIELD_FLOATS, 1},      [OX_DTYPE_C64] = {FIELD_FLOATS, 2},
    [OX_DTYPE_F64] = {FIELD_DOUBLES, 1},     [OX_DTYPE_C128] = {FIELD_DOUBLES, 2},
    [OX_DTYPE_I64] = {FIELD_INT64S, 1},      [OX_DTYPE_U32] = {FIELD_UINT64S, 1},
    [OX_DTYPE_U64] = {FIELD_UINT64S, 1},     [OX_DTYPE_STRING] = {FIELD_STRINGS, 1},
    [OX_DTYPE_I32] = {FIELD_INT32S, 1},      [OX_DTYPE_I16] = {FIELD_INT32S, 1},
    [OX_DTYPE_I8] = {FIELD_INT32S, 1},       [OX_DTYPE_U16] = {FIELD_INT32S, 1},
    [OX_DTYPE_U8] = {FIELD_INT32S, 1},       [OX_DTYPE_BOOL] = {FIELD_INT32S, 1},
    [OX_DTYPE_F16] = {FIELD_INT32S, 1},      [OX_DTYPE_BF16] = {FIELD_INT32S, 1},
    [OX_DTYPE_F8E4M3FN] = {FIELD_INT32S, 1}, [OX_DTYPE_F8E4M3FNUZ] = {FIELD_INT32S, 1},
    [OX_DTYPE_F8E5M2] = {FIELD_INT32S, 1},   [OX_DTYPE_F8E5M2FNUZ] = {FIELD_INT32S, 1},
    [OX_DTYPE_F8E8M0] = {FIELD_INT32S, 1},   [OX_DTYPE_U4] = {FIELD_INT32S, 1},
    [OX_DTYPE_I4] = {FIELD_INT32S, 1},       [OX_DTYPE_F4E2M1] = {FIELD_INT32S, 1},
    [OX_DTYPE_U2] = {FIELD_INT32S, 1},       [OX_DTYPE_I2] = {FIELD_INT32S, 1},
};

/* What the first walk over a TensorProto finds. */
typedef struct parts {
    ox_str message, raw;
    int64_t dtype, location;
    size_t n[OX_ONNX_FIELDS]; /* entries of each typed field */
    ox_str file, offset, length;
} parts;

static ox_status external_entry(ox_onnx_reader *r, ox_str entry, parts *p)
{
    ox_proto w = ox_proto_of(entry);
    ox_proto_field f;
    ox_str key = {"", 0}, value = {"", 0};
    while (ox_proto_next(&w, &f)) {
        if (f.number == 1 && ox_proto_is_len(&f)) key = f.bytes;
        if (f.number == 2 && ox_proto_is_len(&f)) value = f.bytes;
    }
    if (w.bad) return ox_onnx_damaged(r, &w, "external_data");
    if (ox_str_is(key, "location")) p->file = value;
    if (ox_str_is(key, "offset")) p->offset = value;
    if (ox_str_is(key, "length")) p->length = value;
    return OX_OK;
}

static ox_status one_dim(ox_onnx_reader *r, ox_tensor *t, uint64_t v)
{
    if (t->rank == OX_RANK_MAX)
        return OX_FAIL(r->err, OX_UNSUPPORTED, "more than %d dimensions", OX_RANK_MAX);
    if (v > INT64_MAX)
        return OX_FAIL(r->err, OX_BAD_FILE, "dimension %d is %lld; expected zero or more",
                       (int)t->rank, (long long)v);
    t->dims[t->rank++] = (int64_t)v;
    return OX_OK;
}

static ox_status read_dims(ox_onnx_reader *r, const ox_proto_field *f, ox_tensor *t)
{
    uint64_t v;
    if (ox_proto_is_varint(f)) return one_dim(r, t, f->value);
    OX_TRY(ox_onnx_want(r, f, OX_PROTO_LEN));
    ox_proto w = ox_proto_of(f->bytes);
    while (w.p != w.end) {
        if (!ox_proto_varint(&w, &v)) return ox_onnx_damaged(r, &w, "dims");
        OX_TRY(one_dim(r, t, v));
    }
    return OX_OK;
}

static ox_status read_part(ox_onnx_reader *r, const ox_proto_field *f, parts *p,
                           ox_onnx_tensor *out)
{
    switch (f->number) {
    case FIELD_DIMS:
        return read_dims(r, f, &out->t);
    case FIELD_TYPE:
        p->dtype = (int64_t)f->value;
        return ox_onnx_want(r, f, OX_PROTO_VARINT);
    case FIELD_SEGMENT:
        return OX_FAIL(r->err, OX_UNSUPPORTED, "stored in segments; expected whole tensors");
    case FIELD_NAME:
        out->name = f->bytes;
        return ox_onnx_want(r, f, OX_PROTO_LEN);
    case FIELD_RAW:
        p->raw = f->bytes;
        return ox_onnx_want(r, f, OX_PROTO_LEN);
    case FIELD_EXTERNAL:
        OX_TRY(ox_onnx_want(r, f, OX_PROTO_LEN));
        return external_entry(r, f->bytes, p);
    case FIELD_LOCATION:
        p->location = (int64_t)f->value;
        return ox_onnx_want(r, f, OX_PROTO_VARINT);
    default:
        break;
    }
    if (f->number >= OX_ONNX_FIELDS || !typed[f->number].name) return OX_OK;
    const size_t n = ox_proto_count(f, typed[f->number].wire);
    if (n == SIZE_MAX || !ox_size_add(p->n[f->number], n, &p->n[f->number]))
        return OX_FAIL(r->err, OX_BAD_FILE, "damaged %s", typed[f->number].name);
    return OX_OK;
}

static size_t alignment(ox_dtype t)
{
    if (t == OX_DTYPE_C64) return 4;
    const int bits = ox_dtype_bits(t);
    return bits <= 8 ? 1 : bits >= 64 ? 8 : (size_t)bits / 8;
}

/* Views src as the tensor's data, or copies it when an element would lie across its alignment. */
static ox_status place(ox_onnx_reader *r, ox_tensor *t, const void *src, size_t bytes)
{
    if ((uintptr_t)src % alignment(t->dtype) == 0) {
        t->data = (void *)(uintptr_t)src;
        return OX_OK;
    }
    OX_TRY(ox_onnx_take_plain(r, bytes, 1, &t->data));
    memcpy(t->data, src, bytes);
    return OX_OK;
}

static void store(uint8_t **at, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++)
        *(*at)++ = (uint8_t)(v >> (8 * i));
}

/* Numbers of one occurrence of a typed field, each as `width` bytes. */
static void unpack(const ox_proto_field *f, int32_t wire, size_t width, uint8_t **at)
{
    uint64_t v;
    if (f->wire != OX_PROTO_LEN) {
        store(at, f->value, width);
        return;
    }
    if (wire == OX_PROTO_VARINT) {
        ox_proto w = ox_proto_of(f->bytes);
        while (w.p != w.end && ox_proto_varint(&w, &v))
            store(at, v, width);
        return;
    }
    if (f->bytes.n) memcpy(*at, f->bytes.p, f->bytes.n); /* fixed widths are raw already */
    *at += f->bytes.n;
}

static ox_status packed_is_sound(ox_onnx_reader *r, const ox_proto_field *f, int32_t wire)
{
    uint64_t v;
    if (f->wire != OX_PROTO_LEN || wire != OX_PROTO_VARINT) return OX_OK;
    ox_proto w = ox_proto_of(f->bytes);
    while (w.p != w.end)
        if (!ox_proto_varint(&w, &v)) return ox_onnx_damaged(r, &w, typed[f->number].name);
    return OX_OK;
}

static ox_status read_typed(ox_onnx_reader *r, const parts *p, ox_tensor *t, size_t n)
{
    const uint32_t field = home[t->dtype].field;
    const int bits = ox_dtype_bits(t->dtype);
    size_t want = bits < 8 ? 0 : n, bytes;
    if (bits < 8 && !ox_dtype_bytes(t->dtype, n, &want)) want = 0;
    if (!ox_size_mul(want, home[t->dtype].entries, &want) || p->n[field] != want)
        return OX_FAIL(r->err, OX_BAD_FILE,
                       "%zu values in %s where its shape and type %s ask for %zu", p->n[field],
                       typed[field].name, ox_dtype_name(t->dtype), want);
    if (!ox_dtype_bytes(t->dtype, n, &bytes))
        return OX_FAIL(r->err, OX_BAD_FILE, "its shape overflows");
    OX_TRY(ox_onnx_take_plain(r, bytes, 1, &t->data));
    const size_t width = bits < 8 ? 1 : (size_t)bits / 8 / home[t->dtype].entries;
    uint8_t *at = t->data;
    ox_str *s = t->data;
    ox_proto w = ox_proto_of(p->message);
    for (ox_proto_field f; ox_proto_next(&w, &f);) {
        if (f.number != field) continue;
        OX_TRY(packed_is_sound(r, &f, typed[field].wire));
        if (field == FIELD_STRINGS)
            *s++ = f.bytes;
        else
            unpack(&f, typed[field].wire, width, &at);
    }
    return OX_OK;
}

static ox_status external_file(ox_onnx_reader *r, ox_str name, const ox_mapping **out)
{
    ox_onnx *m = r->model;
    ox_mapping map = {0};
    char *path = NULL;
    for (size_t i = m->locations.n; i-- > 0;) {
        if (!ox_str_eq(m->locations.p[i], name)) continue;
        *out = &m->external.p[i];
        return OX_OK;
    }
    if (m->external.n == OX_ONNX_MAX_FILES)
        return OX_FAIL(r->err, OX_LIMIT, "more than %d external data files", OX_ONNX_MAX_FILES);
    OX_TRY(ox_path_beneath(&path, r->dir, name, r->err));
    ox_status st = ox_mapping_open(&map, path, r->err);
    ox_free(path);
    if (st) return st;
    if (!ox_vec_reserve(&m->external, m->external.n + 1) ||
        !ox_vec_reserve(&m->locations, m->locations.n + 1)) {
        ox_mapping_close(&map);
        return OX_FAIL(r->err, OX_NO_MEMORY, "no memory for external data");
    }
    ox_vec_push(&m->external, map);
    ox_vec_push(&m->locations, name);
    *out = &m->external.p[m->external.n - 1];
    return OX_OK;
}

static ox_status read_external(ox_onnx_reader *r, const parts *p, ox_onnx_tensor *t, size_t bytes)
{
    uint64_t offset = 0, length = bytes;
    const ox_mapping *file = NULL;
    size_t end;
    if (!r->model || !r->dir)
        return OX_FAIL(r->err, OX_UNSUPPORTED,
                       "its values lie in the file '%.*s'; expected them inside the message",
                       OX_STR_ARGS(p->file));
    if (!p->file.n) return OX_FAIL(r->err, OX_BAD_FILE, "external data without a location");
    if (p->offset.n && !ox_str_to_u64(p->offset, &offset))
        return OX_FAIL(r->err, OX_BAD_FILE, "external offset '%.*s'; expected a number",
                       OX_STR_ARGS(p->offset));
    if (p->length.n && !ox_str_to_u64(p->length, &length))
        return OX_FAIL(r->err, OX_BAD_FILE, "external length '%.*s'; expected a number",
                       OX_STR_ARGS(p->length));
    if (length != bytes)
        return OX_FAIL(r->err, OX_BAD_FILE,
                       "%llu bytes of external data where its shape and type ask for %zu",
                       (unsigned long long)length, bytes);
    OX_TRY(external_file(r, p->file, &file));
    if (offset > SIZE_MAX || !ox_size_add((size_t)offset, bytes, &end) || end > file->n)
        return OX_FAIL(r->err, OX_BAD_FILE,
                       "bytes %llu to %llu+%zu of %.*s, which has %zu; is the file complete?",
                       (unsigned long long)offset, (unsigned long long)offset, bytes,
                       OX_STR_ARGS(p->file), file->n);
    t->external = true;
    return place(r, &t->t, file->bytes + offset, bytes);
}

static ox_status read_values(ox_onnx_reader *r, const parts *p, ox_onnx_tensor *out)
{
    ox_tensor *t = &out->t;
    size_t n, bytes, n_typed = 0;
    if (p->dtype <= 0 || p->dtype >= OX_DTYPE_COUNT)
        return OX_FAIL(r->err, p->dtype ? OX_UNSUPPORTED : OX_BAD_FILE,
                       "element type %lld; expected 1 to %d", (long long)p->dtype,
                       OX_DTYPE_COUNT - 1);
    t->dtype = (ox_dtype)p->dtype;
    if (!ox_tensor_count(t, &n) || !ox_tensor_bytes(t, &bytes))
        return OX_FAIL(r->err, OX_BAD_FILE, "the product of its dimensions overflows");
    for (uint32_t i = 0; i < OX_ONNX_FIELDS; i++) {
        n_typed += p->n[i] != 0;
        if (p->n[i] && i != home[t->dtype].field && p->location != 1)
            return OX_FAIL(r->err, OX_BAD_FILE, "values of type %s in %s", ox_dtype_name(t->dtype),
                           typed[i].name);
    }
    if (p->location == 1) {
        if (t->dtype == OX_DTYPE_STRING)
            return OX_FAIL(r->err, OX_BAD_FILE, "strings in external data");
        return bytes ? read_external(r, p, out, bytes) : OX_OK;
    }
    if (p->location)
        return OX_FAIL(r->err, OX_UNSUPPORTED, "data location %lld; expected 0 or 1",
                       (long long)p->location);
    if (p->raw.n && n_typed)
        return OX_FAIL(r->err, OX_BAD_FILE, "values both as raw bytes and as numbers");
    if (n_typed) return read_typed(r, p, t, n);
    if (!bytes && !p->raw.n) return OX_OK;
    if (t->dtype == OX_DTYPE_STRING)
        return OX_FAIL(r->err, OX_BAD_FILE, "no values; expected %zu strings", n);
    if (p->raw.n != bytes)
        return OX_FAIL(r->err, OX_BAD_FILE, "%zu bytes where its shape and type %s ask for %zu",
                       p->raw.n, ox_dtype_name(t->dtype), bytes);
    return place(r, t, p->raw.p, bytes);
}

static ox_status read_tensor(ox_onnx_reader *r, ox_str bytes, ox_onnx_tensor *out)
{
    parts p = {.message = bytes};
    ox_proto w = ox_proto_of(bytes);
    ox_status st = OX_OK;
    *out = (ox_onnx_tensor){.name = {"", 0}};
    for (ox_proto_field f; !st && ox_proto_next(&w, &f);)
        st = read_part(r, &f, &p, out);
    if (!st && w.bad) st = ox_onnx_damaged(r, &w, "TensorProto");
    return st ? st : read_values(r, &p, out);
}

ox_status ox_onnx_read_tensor(ox_onnx_reader *r, ox_str bytes, ox_onnx_tensor *out)
{
    const ox_status st = read_tensor(r, bytes, out);
    ox_proto w = ox_proto_of(bytes);
    for (ox_proto_field f; st && !out->name.n && ox_proto_next(&w, &f);)
        if (f.number == FIELD_NAME && ox_proto_is_len(&f)) out->name = f.bytes;
    if (st && out->name.n) ox_err_prefix(r->err, "tensor %.*s", OX_STR_ARGS(out->name));
    return st;
}

static ox_status indices_inside(ox_onnx_reader *r, const ox_onnx_sparse *s)
{
    const ox_tensor *v = &s->values.t, *ix = &s->indices.t;
    size_t n, total;
    if (s->rank < 1 || v->rank != 1 || ix->dtype != OX_DTYPE_I64 || ix->rank < 1 || ix->rank > 2 ||
        ix->dims[0] != v->dims[0] || (ix->rank == 2 && ix->dims[1] != s->rank))
        return OX_FAIL(r->err, OX_BAD_FILE,
                       "a sparse tensor whose values and indices disagree; expected n values and n "
                       "or n x rank int64 indices");
    if (!ox_dims_count(s->dims, s->rank, &total) || !ox_tensor_count(ix, &n))
        return OX_FAIL(r->err, OX_BAD_FILE, "the product of its dimensions overflows");
    const int64_t *at = ix->data;
    for (size_t i = 0; i < n; i++) {
        const int64_t limit =
            ix->rank == 2 ? s->dims[i % (size_t)s->rank] : (int64_t)(total & INT64_MAX);
        if (at[i] < 0 || at[i] >= limit)
            return OX_FAIL(r->err, OX_BAD_FILE, "sparse index %lld is outside 0..%lld",
                           (long long)at[i], (long long)limit - 1);
    }
    return OX_OK;
}

static ox_status read_sparse_field(ox_onnx_reader *r, const ox_proto_field *f, ox_onnx_sparse *out,
                                   ox_tensor *shape)
{
    switch (f->number) {
    case 1:
        OX_TRY(ox_onnx_want(r, f, OX_PROTO_LEN));
        return ox_onnx_read_tensor(r, f->bytes, &out->values);
    case 2:
        OX_TRY(ox_onnx_want(r, f, OX_PROTO_LEN));
        return ox_onnx_read_tensor(r, f->bytes, &out->indices);
    case 3:
        return read_dims(r, f, shape);
    default:
        return OX_OK;
    }
}

ox_status ox_onnx_read_sparse(ox_onnx_reader *r, ox_str bytes, ox_onnx_sparse *out)
{
    ox_proto w = ox_proto_of(bytes);
    ox_tensor shape = {.rank = 0};
    ox_status st = OX_OK;
    for (ox_proto_field f; !st && ox_proto_next(&w, &f);)
        st = read_sparse_field(r, &f, out, &shape);
    if (!st && w.bad) st = ox_onnx_damaged(r, &w, "SparseTensorProto");
    out->rank = shape.rank;
    memcpy(out->dims, shape.dims, sizeof(out->dims));
    if (!st) st = indices_inside(r, out);
    if (st && out->values.name.n)
        ox_err_prefix(r->err, "sparse tensor %.*s", OX_STR_ARGS(out->values.name));
    return st;
}
