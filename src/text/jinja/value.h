/* value.h - what a template computes with: values with Python's semantics, strings that remember
 * which of their bytes came from the caller's messages, and the builder that puts such strings
 * together.
 *
 * Every value lives in the arena of one render (or of the template, for its literals) and is freed
 * with it. A value is 16 bytes and copied freely; strings and tuples never change, lists, dicts
 * and namespaces do. Strings are UTF-8 bytes, counted and indexed by code point; a byte that is
 * not UTF-8 counts as one code point. Read state.h next. */
#ifndef OX_TEXT_JINJA_VALUE_H
#define OX_TEXT_JINJA_VALUE_H
#include "base/status.h"
#include "base/str.h"

typedef struct ox_jstate ox_jstate;
typedef struct ox_jnode ox_jnode;
typedef struct ox_jval ox_jval;
typedef struct ox_jbuiltin ox_jbuiltin;

/* kind, the name that messages use */
#define OX_JKIND_LIST(X)                                                                           \
    X(MISSING, "missing")                                                                          \
    X(UNDEFINED, "undefined")                                                                      \
    X(NONE, "none")                                                                                \
    X(BOOL, "bool")                                                                                \
    X(INT, "int")                                                                                  \
    X(FLOAT, "float")                                                                              \
    X(STR, "str")                                                                                  \
    X(LIST, "list")                                                                                \
    X(TUPLE, "tuple")                                                                              \
    X(RANGE, "range")                                                                              \
    X(VIEW, "dict view")                                                                           \
    X(ITER, "iterator")                                                                            \
    X(DICT, "dict")                                                                                \
    X(NAMESPACE, "namespace")                                                                      \
    X(MACRO, "macro")                                                                              \
    X(BUILTIN, "function")                                                                         \
    X(BOUND, "method")                                                                             \
    X(LOOP, "loop")                                                                                \
    X(CYCLER, "cycler")                                                                            \
    X(JOINER, "joiner")

typedef enum ox_jkind {
#define X(name, text) OX_JKIND_##name,
    OX_JKIND_LIST(X)
#undef X
        OX_JKIND_COUNT
} ox_jkind;

/* One stretch of a string, ending at byte `end`. */
typedef struct ox_jrun {
    size_t end;
    bool input; /* these bytes came from the caller's messages, tools or documents */
} ox_jrun;

typedef enum ox_jfrom { OX_JFROM_TEMPLATE, OX_JFROM_INPUT, OX_JFROM_MIXED } ox_jfrom;

/* Room behind a string that grew by concatenation, so that building text step by step is linear. */
typedef struct ox_jroom {
    char *base;
    size_t used, cap;
} ox_jroom;

typedef struct ox_jstr {
    const char *p; /* [n] */
    size_t n;
    const ox_jrun *runs; /* [n_runs], only when from is MIXED; the last one ends at n */
    size_t n_runs;
    ox_jroom *room;
    ox_jfrom from;
} ox_jstr;

struct ox_jval {
    uint8_t kind;   /* ox_jkind */
    uint8_t detail; /* TUPLE: 1 = a row of groupby; ITER: unused */
    union {
        bool b;
        int64_t i;
        double f;
        const ox_jstr *str;
        struct ox_jseq *seq;   /* LIST TUPLE RANGE VIEW ITER */
        struct ox_jdict *dict; /* DICT NAMESPACE */
        struct ox_jmacro *macro;
        const ox_jbuiltin *builtin;
        struct ox_jbound *bound;
        struct ox_jloop *loop;
        struct ox_jcycler *cycler; /* CYCLER JOINER */
        const ox_jnode *node;      /* UNDEFINED: the expression that had no value, or NULL */
    } u;
};

typedef struct ox_jseq {
    ox_jval *p; /* [n] */
    size_t n, cap;
    size_t pos;                /* ITER: what was already consumed */
    const char *label;         /* VIEW: what Python prints in front; RANGE and others NULL */
    int64_t start, stop, step; /* RANGE */
} ox_jseq;

typedef struct ox_jentry {
    ox_jval key, value;
    uint64_t hash;
} ox_jentry;

/* Insertion order. Small ones are searched, larger ones have an index of entry numbers + 1. */
typedef struct ox_jdict {
    ox_jentry *p; /* [n] */
    size_t n, cap;
    uint32_t *index; /* [n_index], a power of two, or NULL */
    size_t n_index;
} ox_jdict;

typedef struct ox_jbound {
    const ox_jbuiltin *method;
    ox_jval self;
} ox_jbound;

typedef struct ox_jcycler {
    const ox_jval *items; /* CYCLER: [n]; JOINER: the separator */
    size_t n, pos;
    bool used;
} ox_jcycler;

static inline ox_jval ox_jnone(void)
{
    return (ox_jval){.kind = OX_JKIND_NONE};
}
static inline ox_jval ox_jundefined(const ox_jnode *node)
{
    return (ox_jval){.kind = OX_JKIND_UNDEFINED, .u.node = node};
}
static inline ox_jval ox_jbool(bool b)
{
    return (ox_jval){.kind = OX_JKIND_BOOL, .u.b = b};
}
static inline ox_jval ox_jint(int64_t i)
{
    return (ox_jval){.kind = OX_JKIND_INT, .u.i = i};
}
static inline ox_jval ox_jfloat(double f)
{
    return (ox_jval){.kind = OX_JKIND_FLOAT, .u.f = f};
}
static inline ox_jval ox_jstrval(const ox_jstr *s)
{
    return (ox_jval){.kind = OX_JKIND_STR, .u.str = s};
}
static inline ox_jval ox_jseqval(ox_jkind kind, ox_jseq *s)
{
    return (ox_jval){.kind = (uint8_t)kind, .u.seq = s};
}
static inline ox_jval ox_jdictval(ox_jdict *d)
{
    return (ox_jval){.kind = OX_JKIND_DICT, .u.dict = d};
}
static inline bool ox_jis(ox_jval v, ox_jkind kind)
{
    return v.kind == kind;
}
static inline bool ox_jis_seq(ox_jval v)
{
    return v.kind >= OX_JKIND_LIST && v.kind <= OX_JKIND_ITER;
}
/* int, or a bool counted as one */
static inline bool ox_jis_int(ox_jval v)
{
    return v.kind == OX_JKIND_INT || v.kind == OX_JKIND_BOOL;
}
static inline int64_t ox_jas_int(ox_jval v)
{
    return v.kind == OX_JKIND_BOOL ? (int64_t)v.u.b : v.u.i;
}
static inline ox_str ox_jview(ox_jval v) /* of a STR */
{
    return (ox_str){v.u.str->p, v.u.str->n};
}
const char *ox_jkind_name(ox_jval v);

/* ---- value.c: truth, order, containers ---- */
bool ox_jtruth(ox_jval v);
/* -1 when the value has no length. */
int64_t ox_jlength(ox_jval v);
/* Equality never fails but for nesting beyond the limit. */
ox_status ox_jequal(ox_jstate *j, ox_jval a, ox_jval b, bool *out);
/* Sets *out to -1, 0 or 1; fails for kinds that Python refuses to order. op is for the message. */
ox_status ox_jcompare(ox_jstate *j, ox_jval a, ox_jval b, const char *op, int *out);
ox_status ox_jcontains(ox_jstate *j, ox_jval item, ox_jval in, bool *out);
/* The items to loop over: sequences share their array (an ITER is consumed), strings become
 * characters, dicts their keys. Fails for what Python can't iterate. */
ox_status ox_jiterate(ox_jstate *j, ox_jval v, ox_jseq **out);

ox_status ox_jseq_new(ox_jstate *j, size_t cap, ox_jseq **out);
ox_status ox_jseq_push(ox_jstate *j, ox_jseq *s, ox_jval v);
ox_status ox_jdict_new(ox_jstate *j, ox_jdict **out);
ox_status ox_jdict_put(ox_jstate *j, ox_jdict *d, ox_jval key, ox_jval value);
/* *out is NULL when absent; fails for keys that can't be hashed. */
ox_status ox_jdict_find(ox_jstate *j, const ox_jdict *d, ox_jval key, ox_jentry **out);
const ox_jval *ox_jdict_get_z(const ox_jdict *d, const char *key);
ox_status ox_jdict_remove(ox_jstate *j, ox_jdict *d, ox_jentry *e);

/* ---- string.c: strings with origin ---- */
ox_status ox_jstr_new(ox_jstate *j, const char *p, size_t n, ox_jfrom from, ox_jval *out);
/* A borrowed view, not copied: p outlives the render. */
ox_status ox_jstr_borrow(ox_jstate *j, const char *p, size_t n, ox_jfrom from, ox_jval *out);
ox_status ox_jstr_sub(ox_jstate *j, const ox_jstr *s, size_t begin, size_t end, ox_jval *out);
ox_status ox_jstr_concat(ox_jstate *j, const ox_jstr *a, const ox_jstr *b, ox_jval *out);
/* Bytes of the code point at s[at], at < s.n; always at least 1. */
size_t ox_jutf8_size(ox_str s, size_t at);
/* The same, with its number; U+DC80 + (byte & 0x7F) for a byte that is not UTF-8. */
size_t ox_jutf8_read(ox_str s, size_t at, uint32_t *cp);
size_t ox_jutf8_write(char out[4], uint32_t cp);
size_t ox_jutf8_count(ox_str s);
/* Byte offset of code point number i (i <= count). */
size_t ox_jutf8_offset(ox_str s, size_t i);
bool ox_jspace(uint32_t cp);     /* str.isspace */
bool ox_jprintable(uint32_t cp); /* str.isprintable */
/* Byte range of s without leading and trailing white space (or without the code points in
 * `chars` when its p is not NULL). */
void ox_jstrip(ox_str s, ox_str chars, bool left, bool right, size_t *begin, size_t *end);

/* Grows in the arena of a render. Zero-initialise. */
typedef struct ox_jbuf {
    char *p;
    size_t n, cap;
    ox_jrun *runs;
    size_t n_runs, cap_runs;
} ox_jbuf;

ox_status ox_jbuf_put(ox_jstate *j, ox_jbuf *b, const char *p, size_t n, bool input);
ox_status ox_jbuf_put_z(ox_jstate *j, ox_jbuf *b, const char *z);
ox_status ox_jbuf_put_cp(ox_jstate *j, ox_jbuf *b, uint32_t cp, bool input);
ox_status ox_jbuf_put_sub(ox_jstate *j, ox_jbuf *b, const ox_jstr *s, size_t begin, size_t end);
ox_status ox_jbuf_put_str(ox_jstate *j, ox_jbuf *b, const ox_jstr *s);
ox_status ox_jbuf_take(ox_jstate *j, ox_jbuf *b, ox_jval *out); /* as a STR; b is spent */
/* Calls fn for each stretch of one origin. */
typedef ox_status (*ox_jpiece_fn)(ox_jstate *j, ox_jbuf *b, ox_str piece, bool input, void *ctx);
ox_status ox_jstr_pieces(ox_jstate *j, ox_jbuf *b, const ox_jstr *s, ox_jpiece_fn fn, void *ctx);

/* ---- repr.c and json.c: values as text ---- */
ox_status ox_jput_str(ox_jstate *j, ox_jbuf *b, ox_jval v);  /* str(v) */
ox_status ox_jput_repr(ox_jstate *j, ox_jbuf *b, ox_jval v); /* repr(v) */
ox_status ox_jto_str(ox_jstate *j, ox_jval v, ox_jval *out); /* str(v); a STR is returned as is */
enum { OX_JNUMBER_MAX = 40 };
size_t ox_jfloat_repr(char out[OX_JNUMBER_MAX], double v);

typedef struct ox_jdump {
    bool ascii, sort;
    bool pretty;
    ox_str indent;                                 /* one level, when pretty */
    const ox_jstr *item_separator, *key_separator; /* NULL = the defaults */
} ox_jdump;
ox_status ox_jput_json(ox_jstate *j, ox_jbuf *b, ox_jval v, const ox_jdump *d);
#endif
