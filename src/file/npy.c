/* npy.c - see npy.h.
 *
 *     "\x93NUMPY" major:u8 minor:u8, header length u16 (version 1) or u32 (2, 3), header, data
 *     header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } padded with blanks */
#include "file/npy.h"

#include "base/fs.h"
#include "base/mem.h"

#define MAGIC "\x93NUMPY"
enum { MAGIC_BYTES = 6, HEADER_ALIGN = 64 };

static const struct {
    const char *name; /* without the byte order mark */
    ox_dtype dtype;
} types[] = {
    {"b1", OX_DTYPE_BOOL}, {"u1", OX_DTYPE_U8},    {"i1", OX_DTYPE_I8},   {"u2", OX_DTYPE_U16},
    {"i2", OX_DTYPE_I16},  {"u4", OX_DTYPE_U32},   {"i4", OX_DTYPE_I32},  {"u8", OX_DTYPE_U64},
    {"i8", OX_DTYPE_I64},  {"f2", OX_DTYPE_F16},   {"f4", OX_DTYPE_F32},  {"f8", OX_DTYPE_F64},
    {"c8", OX_DTYPE_C64},  {"c16", OX_DTYPE_C128}, {"V2", OX_DTYPE_BF16},
};

typedef struct scan {
    const char *p, *end;
} scan;

static void skip_blanks(scan *s)
{
    while (s->p != s->end && (*s->p == ' ' || *s->p == '\n'))
        s->p++;
}

static bool eat(scan *s, char c)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != c) return false;
    s->p++;
    return true;
}

static bool quoted(scan *s, ox_str *out)
{
    skip_blanks(s);
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"')) return false;
    const char quote = *s->p++, *begin = s->p;
    while (s->p != s->end && *s->p != quote)
        s->p++;
    *out = (ox_str){begin, (size_t)(s->p - begin)};
    if (s->p == s->end) return false;
    s->p++;
    return true;
}

static ox_str word(scan *s)
{
    skip_blanks(s);
    const char *begin = s->p;
    while (s->p != s->end && ((*s->p >= 'a' && *s->p <= 'z') || (*s->p >= 'A' && *s->p <= 'Z') ||
                              (*s->p >= '0' && *s->p <= '9')))
        s->p++;
    return (ox_str){begin, (size_t)(s->p - begin)};
}

static ox_status read_descr(scan *s, ox_tensor *t, ox_err *err)
{
    ox_str descr;
    if (!quoted(s, &descr))
        return OX_FAIL(err, OX_UNSUPPORTED, "a .npy file of records; expected plain numbers");
    const char order = descr.n ? descr.p[0] : '?';
    const ox_str name = {descr.p + 1, descr.n ? descr.n - 1 : 0};
    for (size_t i = 0; i < OX_COUNT(types); i++) {
        if (!ox_str_is(name, types[i].name)) continue;
        if (order == '>' && ox_dtype_bits(types[i].dtype) > 8)
            return OX_FAIL(err, OX_UNSUPPORTED, "a big-endian .npy file; expected little-endian");
        t->dtype = types[i].dtype;
        return OX_OK;
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "a .npy file of type '%.*s'; expected numbers",
                   OX_STR_ARGS(descr));
}

static ox_status read_shape(scan *s, ox_tensor *t, ox_err *err)
{
    if (!eat(s, '(')) return OX_FAIL(err, OX_BAD_FILE, "damaged .npy shape");
    while (!eat(s, ')')) {
        if (t->rank == OX_RANK_MAX)
            return OX_FAIL(err, OX_UNSUPPORTED, "a .npy file of more than %d dimensions",
                           OX_RANK_MAX);
        if (!ox_str_to_i64(word(s), &t->dims[t->rank]) || t->dims[t->rank] < 0)
            return OX_FAIL(err, OX_BAD_FILE, "damaged .npy shape: dimension %d", (int)t->rank);
        t->rank++;
        if (!eat(s, ',')) {
            if (eat(s, ')')) break;
            return OX_FAIL(err, OX_BAD_FILE, "damaged .npy shape");
        }
    }
    return OX_OK;
}

static ox_status read_header(ox_str header, ox_tensor *t, ox_err *err)
{
    scan s = {header.p, header.p + header.n};
    bool has_descr = false, has_shape = false, fortran = false;
    ox_str key;
    if (!eat(&s, '{')) return OX_FAIL(err, OX_BAD_FILE, "damaged .npy header");
    while (!eat(&s, '}')) {
        if (!quoted(&s, &key) || !eat(&s, ':'))
            return OX_FAIL(err, OX_BAD_FILE, "damaged .npy header");
        if (ox_str_is(key, "descr") && !has_descr) {
            OX_TRY(read_descr(&s, t, err));
            has_descr = true;
        } else if (ox_str_is(key, "shape") && !has_shape) {
            OX_TRY(read_shape(&s, t, err));
            has_shape = true;
        } else if (ox_str_is(key, "fortran_order")) {
            fortran = ox_str_is(word(&s), "True");
        } else {
            return OX_FAIL(err, OX_BAD_FILE, "damaged .npy header: key '%.*s'", OX_STR_ARGS(key));
        }
        eat(&s, ',');
    }
    if (!has_descr || !has_shape)
        return OX_FAIL(err, OX_BAD_FILE, "a .npy header without %s", has_descr ? "shape" : "descr");
    if (fortran && t->rank > 1)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "a Fortran-ordered .npy file; save numpy.ascontiguousarray(x)");
    return OX_OK;
}

/* Splits the file into header and data. */
static ox_status split(ox_str bytes, ox_str *header, ox_str *data, ox_err *err)
{
    const uint8_t *p = (const uint8_t *)bytes.p;
    if (bytes.n < MAGIC_BYTES + 4 || memcmp(p, MAGIC, MAGIC_BYTES))
        return OX_FAIL(err, OX_BAD_FILE, "not a .npy file: it does not begin with \"\\x93NUMPY\"");
    const uint8_t major = p[6];
    const size_t width = major == 1 ? 2 : 4;
    if (major < 1 || major > 3)
        return OX_FAIL(err, OX_UNSUPPORTED, ".npy version %d; expected 1 to 3", (int)major);
    if (bytes.n < 8 + width) return OX_FAIL(err, OX_BAD_FILE, "a .npy file that ends early");
    size_t n = 0;
    for (size_t i = 0; i < width; i++)
        n |= (size_t)p[8 + i] << (8 * i);
    if (n > OX_NPY_MAX_HEADER || n > bytes.n - 8 - width)
        return OX_FAIL(err, OX_BAD_FILE, "a .npy header of %zu bytes in a file of %zu", n, bytes.n);
    *header = (ox_str){bytes.p + 8 + width, n};
    *data = (ox_str){header->p + n, bytes.n - 8 - width - n};
    return OX_OK;
}

static size_t alignment(ox_dtype t)
{
    const size_t bytes = (size_t)ox_dtype_bits(t) / 8;
    return t == OX_DTYPE_C64 ? 4 : bytes > 8 ? 8 : bytes;
}

ox_status ox_npy_parse(ox_tensor *out, ox_arena *arena, ox_str bytes, ox_err *err)
{
    ox_str header = {"", 0}, data = {"", 0};
    size_t want;
    *out = (ox_tensor){.rank = 0};
    OX_TRY(split(bytes, &header, &data, err));
    OX_TRY(read_header(header, out, err));
    if (!ox_tensor_bytes(out, &want))
        return OX_FAIL(err, OX_BAD_FILE, "a .npy shape whose product overflows");
    if (data.n != want)
        return OX_FAIL(err, OX_BAD_FILE,
                       "a .npy file with %zu bytes of data; its shape asks for %zu", data.n, want);
    if (!want) return OX_OK;
    out->data = (void *)(uintptr_t)data.p;
    if ((uintptr_t)data.p % alignment(out->dtype) == 0) return OX_OK;
    out->data = ox_arena_take(arena, want);
    if (!out->data) return OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu bytes", want);
    memcpy(out->data, data.p, want);
    return OX_OK;
}

ox_status ox_npy_read(ox_tensor *out, ox_arena *arena, const char *path, size_t max_bytes,
                      ox_err *err)
{
    ox_buf text = {0};
    *out = (ox_tensor){.rank = 0};
    ox_status st = ox_file_read(&text, path, max_bytes, err);
    if (!st) {
        st = ox_npy_parse(out, arena, ox_buf_view(&text), err);
        if (st) ox_err_prefix(err, "%s", path);
    }
    /* A view of the buffer must outlive it. */
    const char *data = out->data;
    size_t bytes = 0;
    if (!st && data && data >= text.p && data < text.p + text.n) {
        ox_tensor_bytes(out, &bytes);
        out->data = ox_arena_take(arena, bytes);
        if (out->data)
            memcpy(out->data, data, bytes);
        else
            st = OX_FAIL(err, OX_NO_MEMORY, "%s: no memory for %zu bytes", path, bytes);
    }
    ox_buf_deinit(&text);
    return st;
}

ox_status ox_npy_put(ox_buf *out, const ox_tensor *t, ox_err *err)
{
    ox_buf header = {0};
    const char *name = NULL;
    size_t bytes;
    for (size_t i = 0; i < OX_COUNT(types); i++)
        if (types[i].dtype == t->dtype) name = types[i].name;
    if (!name || !ox_tensor_bytes(t, &bytes))
        return OX_FAIL(err, OX_UNSUPPORTED, "NumPy has no type for %s", ox_dtype_name(t->dtype));
    ox_buf_printf(&header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                  ox_dtype_bits(t->dtype) == 8 ? '|' : '<', name);
    for (int32_t i = 0; i < t->rank; i++)
        ox_buf_printf(&header, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    ox_buf_put_z(&header, t->rank == 1 ? ",), }" : "), }");
    while ((MAGIC_BYTES + 4 + header.n + 1) % HEADER_ALIGN && !header.failed)
        ox_buf_put_c(&header, ' ');
    ox_buf_put_c(&header, '\n');
    ox_buf_put(out, MAGIC "\x01\x00", MAGIC_BYTES + 2);
    ox_buf_put_c(out, (char)(header.n & 0xff));
    ox_buf_put_c(out, (char)(header.n >> 8));
    ox_buf_put_str(out, ox_buf_view(&header));
    ox_buf_put(out, t->data, bytes);
    const bool failed = out->failed || header.failed;
    ox_buf_deinit(&header);
    return failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for a .npy file") : OX_OK;
}

ox_status ox_npy_write(const char *path, const ox_tensor *t, ox_err *err)
{
    ox_buf bytes = {0};
    ox_status st = ox_npy_put(&bytes, t, err);
    if (!st) st = ox_file_write_atomic(path, ox_buf_view(&bytes), err);
    ox_buf_deinit(&bytes);
    return st;
}
