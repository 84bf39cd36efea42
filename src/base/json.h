/* json.h - the one JSON reader and writer: strict RFC 8259 text, a compact immutable tree in an
 * arena, typed access with key paths in messages, and a writer onto ox_buf.
 *
 * The tree copies the bytes it keeps: the caller may free the text after parsing. Everything lives
 * until ox_arena_deinit. A finished tree is immutable: any number of threads may read it.
 * Limits: 64 MiB of text, 512 levels. A leading byte order mark is skipped. Duplicate keys are all
 * kept in order; lookup finds the last. */
#ifndef OX_BASE_JSON_H
#define OX_BASE_JSON_H
#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

enum { OX_JSON_MAX_BYTES = 64 << 20, OX_JSON_MAX_DEPTH = 512 };

typedef enum ox_json_kind {
    OX_JSON_NULL,
    OX_JSON_BOOL,
    OX_JSON_NUMBER,
    OX_JSON_STRING,
    OX_JSON_ARRAY,
    OX_JSON_OBJECT
} ox_json_kind;

typedef struct ox_json ox_json;
typedef struct ox_json_member ox_json_member;

/* 16 bytes. Read it through the functions below; kind and n may be read directly. */
struct ox_json {
    uint8_t kind;   /* ox_json_kind */
    uint8_t is_int; /* number written without fraction and exponent that fits int64 */
    uint8_t truth;  /* of a bool */
    uint8_t unused;
    uint32_t n; /* bytes of a string, items of an array, members of an object */
    union {
        const char *text; /* UTF-8, NUL-terminated, may hold NULs inside */
        const ox_json *items;
        const ox_json_member *members;
        int64_t i; /* is_int */
        double f;  /* otherwise */
    } u;
};

struct ox_json_member {
    ox_json key, value; /* key is a string */
};

/* Parses the whole text. *root belongs to the arena. Messages give line, column and byte offset.
 * Fails with OX_BAD_FILE, OX_LIMIT or OX_NO_MEMORY; the arena may then hold garbage. */
ox_status ox_json_parse(const ox_json **root, ox_arena *arena, ox_str bytes, ox_err *err);

enum { OX_JSON_NONFINITE = 1 }; /* also take NaN, Infinity and -Infinity, as Python writes them */
ox_status ox_json_parse_with(const ox_json **root, ox_arena *arena, ox_str bytes, unsigned flags,
                             ox_err *err);

/* Reading: all accept NULL nodes and nodes of another kind and then answer NULL, 0 or empty, so
 * that lookups chain. Lookup is O(1) in large objects. */
const ox_json *ox_json_get(const ox_json *object, const char *key);
const ox_json *ox_json_get_str(const ox_json *object, ox_str key);
/* "model.decoder.inputs.0.name": members and array positions, NULL when any step is missing. */
const ox_json *ox_json_path(const ox_json *root, const char *path);
const char *ox_json_kind_name(const ox_json *node); /* "missing" for NULL */

static inline bool ox_json_is(const ox_json *node, ox_json_kind kind)
{
    return node && node->kind == kind;
}

static inline bool ox_json_is_null(const ox_json *node) /* missing counts as null */
{
    return !node || node->kind == OX_JSON_NULL;
}

/* Items of an array, members of an object, else 0. */
static inline size_t ox_json_n(const ox_json *node)
{
    return node && node->kind >= OX_JSON_ARRAY ? node->n : 0;
}

static inline const ox_json *ox_json_at(const ox_json *array, size_t i)
{
    return ox_json_is(array, OX_JSON_ARRAY) && i < array->n ? &array->u.items[i] : NULL;
}

/* for (size_t i = 0; i < ox_json_n(o); i++) { const ox_json_member *m = ox_json_member_at(o, i); */
static inline const ox_json_member *ox_json_member_at(const ox_json *object, size_t i)
{
    return ox_json_is(object, OX_JSON_OBJECT) && i < object->n ? &object->u.members[i] : NULL;
}

static inline ox_str ox_json_str(const ox_json *node) /* empty unless a string */
{
    return ox_json_is(node, OX_JSON_STRING) ? (ox_str){node->u.text, node->n} : (ox_str){"", 0};
}

static inline double ox_json_f64(const ox_json *node) /* 0 unless a number */
{
    if (!node || !ox_json_is(node, OX_JSON_NUMBER)) return 0;
    return node->is_int ? (double)node->u.i : node->u.f;
}

static inline bool ox_json_is_i64(const ox_json *node)
{
    return node && ox_json_is(node, OX_JSON_NUMBER) && node->is_int;
}

static inline int64_t ox_json_i64(const ox_json *node) /* 0 unless an integer */
{
    return ox_json_is_i64(node) ? node->u.i : 0;
}

static inline bool ox_json_true(const ox_json *node) /* false unless the bool true */
{
    return ox_json_is(node, OX_JSON_BOOL) && node->truth;
}

/* Typed reading with messages: `root` is searched by path (see ox_json_path). The need_ forms fail
 * with OX_BAD_FILE when the value is missing, null or of another kind; the opt_ forms leave *out as
 * it is when missing or null, and fail when of another kind. Integers outside lo..hi fail too. */
ox_status ox_json_need_str(const ox_json *root, const char *path, ox_str *out, ox_err *err);
ox_status ox_json_need_i64(const ox_json *root, const char *path, int64_t lo, int64_t hi,
                           int64_t *out, ox_err *err);
ox_status ox_json_need_f64(const ox_json *root, const char *path, double *out, ox_err *err);
ox_status ox_json_need_bool(const ox_json *root, const char *path, bool *out, ox_err *err);
ox_status ox_json_need(const ox_json *root, const char *path, ox_json_kind kind,
                       const ox_json **out, ox_err *err);
ox_status ox_json_opt_str(const ox_json *root, const char *path, ox_str *out, ox_err *err);
ox_status ox_json_opt_i64(const ox_json *root, const char *path, int64_t lo, int64_t hi,
                          int64_t *out, ox_err *err);
ox_status ox_json_opt_f64(const ox_json *root, const char *path, double *out, ox_err *err);
ox_status ox_json_opt_bool(const ox_json *root, const char *path, bool *out, ox_err *err);
ox_status ox_json_opt(const ox_json *root, const char *path, ox_json_kind kind, const ox_json **out,
                      ox_err *err);

/* Writing. Zero plus `out` is a writer of compact text; the buffer's `failed` flag reports memory.
 * Calls follow the grammar: key before every value inside an object. */
typedef struct ox_json_writer {
    ox_buf *out;
    int indent;  /* spaces per level, 0 = one line */
    bool spaced; /* ", " and ": " on one line, as Python's json.dumps */
    int depth;
    bool after_item, after_key;
} ox_json_writer;

void ox_json_begin_object(ox_json_writer *w);
void ox_json_end_object(ox_json_writer *w);
void ox_json_begin_array(ox_json_writer *w);
void ox_json_end_array(ox_json_writer *w);
void ox_json_put_key(ox_json_writer *w, const char *key);
void ox_json_put_key_str(ox_json_writer *w, ox_str key);
void ox_json_put_str(ox_json_writer *w, ox_str s);
void ox_json_put_z(ox_json_writer *w, const char *z); /* NULL writes null */
void ox_json_put_i64(ox_json_writer *w, int64_t v);
void ox_json_put_u64(ox_json_writer *w, uint64_t v);
void ox_json_put_f64(ox_json_writer *w, double v); /* shortest that reads back; not finite = null */
void ox_json_put_bool(ox_json_writer *w, bool v);
void ox_json_put_null(ox_json_writer *w);
void ox_json_put_raw(ox_json_writer *w, ox_str json_text); /* trusted to be one value */
void ox_json_put_node(ox_json_writer *w, const ox_json *node);

/* Bytes before the first that is not well-formed UTF-8; s.n when all are. */
size_t ox_json_utf8_check(ox_str s);
/* The quoted, escaped string: " \ and bytes below 0x20. Ill-formed UTF-8 becomes U+FFFD. */
void ox_json_quote(ox_buf *out, ox_str s);
/* Shortest decimal that reads back as v, laid out as Python's repr: 0.1, 1.0, 1e-07, 1e+16. */
void ox_json_print_f64(ox_buf *out, double v);
#endif
