/* builtin.h - filters, tests, functions and methods: one row in a .def table and one C function
 * each.
 *
 * A row names its parameters after the value it works on, separated by spaces, in Python's order;
 * the first `n_required` must be given; a leading "/" forbids
 * giving them by name, a final "*" takes any further ones raw. The function finds
 * them bound in call->arg (kind MISSING when not given). See docs/templates.md for an example. */
#ifndef OX_TEXT_JINJA_BUILTIN_H
#define OX_TEXT_JINJA_BUILTIN_H
#include "text/jinja/state.h"

enum { OX_JPARAMS_MAX = 6 };

typedef struct ox_jbuiltin_call {
    const ox_jbuiltin *row;
    ox_jval self;                /* value before | or is or the dot; MISSING for functions */
    ox_jval arg[OX_JPARAMS_MAX]; /* by parameter */
    const ox_jargs *raw;         /* all arguments as written; for rows with "*" */
} ox_jbuiltin_call;

typedef ox_status (*ox_jbuiltin_fn)(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out);

struct ox_jbuiltin {
    const char *name;
    ox_jbuiltin_fn fn;
    uint8_t n_required;
    const char *params;
    uint8_t receiver; /* methods: ox_jkind of the object */
};

/* Rows by name; NULL when there is none. */
const ox_jbuiltin *ox_jfilter_find(ox_str name);
const ox_jbuiltin *ox_jtest_find(ox_str name);
const ox_jbuiltin *ox_jfunction_find(ox_str name);
const ox_jbuiltin *ox_jmethod_find(ox_jkind receiver, ox_str name);

/* Prototypes of every row's function. */
#define OX_JROW(name, fn, n_required, params)                                                      \
    ox_status ox_jf_##fn(ox_jstate *j, const ox_jbuiltin_call *c, ox_jval *out);
#define OX_JMETHOD(receiver, name, fn, n_required, params) OX_JROW(name, fn, n_required, params)
#include "text/jinja/filters.def"
#include "text/jinja/functions.def"
#include "text/jinja/methods.def"
#include "text/jinja/tests.def"
#undef OX_JMETHOD
#undef OX_JROW

/* ---- helpers for row functions ---- */
static inline bool ox_jgiven(ox_jval v) /* an optional parameter that is neither absent nor none */
{
    return v.kind != OX_JKIND_MISSING && v.kind != OX_JKIND_NONE;
}
/* The parameter as an int (absent: the default); fails with its name otherwise. */
ox_status ox_jarg_int(ox_jstate *j, const ox_jbuiltin_call *c, int i, int64_t absent, int64_t *out);
/* The parameter as a string; none and absent give *out = NULL. */
ox_status ox_jarg_str(ox_jstate *j, const ox_jbuiltin_call *c, int i, const ox_jstr **out);
/* str(self) */
ox_status ox_jself_str(ox_jstate *j, const ox_jbuiltin_call *c, const ox_jstr **out);

/* Attribute path "a.b.0" (a string or an int) of an item. */
ox_status ox_jattr_path(ox_jstate *j, ox_jval item, ox_jval path, ox_jval *out);
ox_status ox_jlower_value(ox_jstate *j, ox_jval v,
                          ox_jval *out); /* strings lowered, others as is */
/* Upper, lower, title, capitalize, swapcase of a string. */
typedef enum ox_jcase {
    OX_JCASE_UPPER,
    OX_JCASE_LOWER,
    OX_JCASE_TITLE, /* the method: a letter behind a non-letter begins a word */
    OX_JCASE_WORDS, /* the filter: words end at white space and - ( { [ < */
    OX_JCASE_CAPITALIZE,
    OX_JCASE_SWAP
} ox_jcase;
ox_status ox_jrecase(ox_jstate *j, const ox_jstr *s, ox_jcase how, ox_jval *out);
ox_status ox_jreplace(ox_jstate *j, const ox_jstr *s, const ox_jstr *old, const ox_jstr *with,
                      int64_t count, ox_jval *out);
ox_status ox_jjoin(ox_jstate *j, const ox_jstr *between, const ox_jseq *items, ox_jval *out);
/* Byte range of the line at `at` (without its end), and where the next one begins. */
size_t ox_jline(ox_str s, size_t at, size_t *end);
/* s in spaces (or `fill`) up to `width` code points. */
ox_status ox_jpad(ox_jstate *j, const ox_jstr *s, int64_t left, int64_t right, ox_str fill,
                  ox_jval *out);
bool ox_jis_lower(ox_str s);
bool ox_jis_upper(ox_str s);
bool ox_jis_alnum(uint32_t cp);
/* int(text, base) of Python; false when it isn't one (or needs more than 64 bits). */
bool ox_jparse_int(ox_str s, int64_t base, int64_t *out);
bool ox_jparse_float(ox_str s, double *out);
/* Stable; keys[i] belongs to s->p[i]. */
ox_status ox_jsort(ox_jstate *j, ox_jseq *s, ox_jval *keys, bool reverse);
ox_status ox_jpercent(ox_jstate *j, const ox_jstr *fmt, const ox_jargs *args, ox_jval *out);
ox_status ox_jformat(ox_jstate *j, const ox_jstr *fmt, const ox_jargs *args, ox_jval *out);
ox_status ox_jstrftime(ox_jstate *j, ox_jbuf *b, const ox_jstr *fmt);
/* JSON text to a value whose strings are marked as `from`. */
ox_status ox_jfrom_json(ox_jstate *j, const ox_jstr *text, ox_jval *out);
#endif
