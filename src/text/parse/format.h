/* format.h - one row of formats.def: the marks of a family's tool calls and reasoning. */
#ifndef OX_TEXT_PARSE_FORMAT_H
#define OX_TEXT_PARSE_FORMAT_H
#include "base/str.h"

typedef enum ox_body {
    OX_BODY_NONE,
    OX_BODY_JSON,   /* {"name": N, "arguments": {..}}, or an array of them */
    OX_BODY_NAMED,  /* N name_end {..} */
    OX_BODY_TAGS,   /* fn_open N fn_name_end, then key_open K key_end V value_close …, fn_close */
    OX_BODY_PYTHON, /* [f(a=1), g(b="x")] */
    OX_BODY_BRACES, /* call:N{k:v,..}, strings between quote marks */
    OX_BODY_CHANNELS, /* messages with a header that says what they are */
} ox_body;

typedef struct ox_tool_format {
    const char *name;
    const char *detect[2]; /* all stand in the template; none: only by name */
    const char *think[2];  /* open and close of reasoning */
    const char *open[2];   /* begins calls */
    const char *close[2];  /* ends them; says nothing more than their own syntax does */
    const char *drop[4];   /* say nothing */
    ox_body body;
    bool bare; /* JSON at the beginning of the answer is a call */
    /* NAMED */
    const char *name_end[2], *name_skip, *id_mark;
    bool name_plain;       /* a name is letters, digits, _ - . only; else the text is content */
    const char *text_name; /* what follows this name is content */
    bool starts_named;     /* the prompt ends with `open` */
    /* TAGS */
    const char *fn_open; /* NULL: `open` stands for it */
    const char *fn_name_end, *fn_close;
    const char *key_open, *key_end, *key_end_text,
        *key_end_json; /* the latter tell the value's type */
    const char *value_open, *value_close;
    bool value_lines; /* one newline behind key_end and before value_close is not the value's */
    /* BRACES */
    const char *quote;
} ox_tool_format;

extern const ox_tool_format ox_tool_formats[]; /* a row with name NULL ends it */
const ox_tool_format *ox_tool_format_of(ox_str source);
const ox_tool_format *ox_tool_format_named(ox_str name); /* NULL: there is none */
/* Whether the text of a special token is (part of) a mark of the format. */
bool ox_tool_format_mentions(const ox_tool_format *f, ox_str token);
#endif
