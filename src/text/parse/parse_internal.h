/* parse_internal.h - the parser's state: one byte changes it, nothing looks ahead, so how a text
 * was cut into pieces cannot matter. */
#ifndef OX_TEXT_PARSE_PARSE_INTERNAL_H
#define OX_TEXT_PARSE_PARSE_INTERNAL_H
#include "base/json.h"
#include "base/status.h"
#include "base/str.h"
#include "text/parse/format.h"
#include "text/parse/parse.h"

/* Named limits of docs/tool-formats.md. */
enum { OX_PARSE_NAME = 256, OX_PARSE_KEY = 1024, OX_PARSE_HELD = 4 << 20, OX_PARSE_CALLS = 4096 };

typedef enum where {
    AT_CONTENT,
    AT_REASONING,
    AT_HEADER, /* channels: between messages */
    AT_RAW,    /* channels: arguments as they come */
    /* inside a call */
    AT_JSON,
    AT_NAME, /* NAMED */
    AT_ID,
    AT_ARGS,
    AT_TAGS, /* before a function's name */
    AT_TAG_NAME,
    AT_TAG_BODY,
    AT_TAG_KEY,
    AT_TAG_GAP,
    AT_TAG_VALUE,
    AT_PYTHON,
    AT_BRACES,
    AT_LOST, /* a call went wrong after its name was given out: until a mark of the format */
} where;

/* Where one JSON value ends. */
typedef struct value {
    int32_t depth;
    bool started, in_string, escaped, scalar;
} value;

typedef enum value_step { VALUE_MORE, VALUE_LAST, VALUE_BEHIND } value_step;

/* The escapes of a JSON string that is read as text. */
typedef struct unescape {
    bool escaped;
    int32_t n_hex; /* hexadecimal digits still to come */
    uint32_t code, high;
} unescape;

typedef enum json_at {
    JSON_VALUE0, /* before the object or the array */
    JSON_ITEM,   /* in the array, before an object */
    JSON_KEY,    /* before a key or the end */
    JSON_IN_KEY,
    JSON_COLON,
    JSON_VALUE, /* before a value */
    JSON_IN_NAME,
    JSON_IN_ID,
    JSON_IN_ARGS,      /* passed on as they are */
    JSON_IN_ARGS_TEXT, /* JSON inside a string */
    JSON_IN_OTHER,
} json_at;

struct ox_parse {
    const ox_tool_format *f;
    ox_part_fn *fn; /* during a feed */
    void *user;
    bool no_memory, too_large;
    ox_arena arena;
    const ox_json *tools; /* array, or NULL */
    bool no_calls;

    where at;
    ox_buf held; /* may become a mark */
    ox_buf out;  /* not handed over yet, of one kind */
    ox_part out_part;
    size_t n_calls;

    bool at_start;      /* nothing but white space so far */
    bool skip_space;    /* behind a call */
    size_t n_newlines;  /* newlines that are not given out yet */
    int32_t skip_lines; /* newlines that belong to the mark before */

    /* the call that runs */
    bool in_call, named, has_args,
        tagged;             /* named: its name was given out; tagged: a mark began it */
    ox_buf raw;             /* its text until then */
    ox_buf name, id, early; /* early: arguments that came before the name */
    value v;
    unescape u;
    json_at json;
    bool is_array;
    int32_t nested; /* objects around the keys, for {"function": {…}} */
    ox_buf key, val;
    int32_t n_keys;
    char type;      /* of a tag's value: 's' text, 'j' JSON, '?' not known */
    bool streaming; /* its text is given out as it comes */
    /* python, braces */
    int32_t depth;
    char quote;
    bool escaped;
};

/* parse.c */
void ox_parse_put(struct ox_parse *p, ox_part part, const char *text, size_t n);
void ox_parse_content(struct ox_parse *p, char c); /* behind a call */
void ox_parse_args(struct ox_parse *p, const char *text, size_t n);
/* Keeps at most `most` bytes; false: too many. */
bool ox_parse_keep(struct ox_parse *p, ox_buf *b, const char *text, size_t n, size_t most);
/* Gives out name and id (and arguments that were early); false: the name is none that may be. */
bool ox_parse_commit(struct ox_parse *p);
void ox_parse_end_call(struct ox_parse *p); /* the call is complete; content follows */
void ox_parse_give_up(struct ox_parse *p);  /* it is none: content if its name was not given out */
void ox_parse_begin_call(struct ox_parse *p);
/* The declared type of an argument: 's', 'j', 'b' (boolean) or '?'. */
char ox_parse_type(const struct ox_parse *p, ox_str name, ox_str key);

/* json.c */
value_step ox_value_step(value *v, char c);
/* Appends what c adds to the text; true: c closed the string. */
bool ox_unescape(unescape *u, char c, ox_buf *out);
void ox_parse_json_start(struct ox_parse *p);
void ox_parse_json(struct ox_parse *p, char c);

/* tags.c */
void ox_parse_tag_name(struct ox_parse *p);
void ox_parse_tag_key(struct ox_parse *p, char type);
void ox_parse_tag_value(struct ox_parse *p, const char *text, size_t n);
void ox_parse_tag_value_end(struct ox_parse *p);

/* literals.c */
void ox_parse_python(struct ox_parse *p, char c);
void ox_parse_braces(struct ox_parse *p); /* p->val holds all between the marks */
#endif
