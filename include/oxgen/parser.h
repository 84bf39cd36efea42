/* parser.h - an answer taken apart while it arrives: content, reasoning and tool calls.
 *
 * A parser reads each byte once, holds back only what may be the beginning of a mark, and gives the
 * same events however the text was cut into pieces. Formats: docs/tool-formats.md. One owner. */
#ifndef OXGEN_PARSER_H
#define OXGEN_PARSER_H
#include "oxgen/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ox_parser ox_parser;

typedef enum ox_part {
    OX_PART_CONTENT,   /* text for the user */
    OX_PART_REASONING, /* text between the marks of reasoning */
    OX_PART_CALL,      /* a tool call begins: text = its name */
    OX_PART_CALL_ID,   /* the id that the model gave to the call, where a format has one */
    OX_PART_ARGUMENTS, /* the next bytes of the call's arguments, a JSON object in all */
    OX_PART_CALL_END   /* the call is complete */
} ox_part;

typedef struct ox_parser_event {
    ox_part part;
    size_t call;      /* number of the tool call, from 0; 0 for content and reasoning */
    const char *text; /* [n] UTF-8 as it came; valid during the callback */
    size_t n;
} ox_parser_event;

typedef void ox_parser_fn(void *user, const ox_parser_event *event);

typedef struct ox_parser_options {
    uint32_t struct_size;
    const char *format; /* a name of ox_parser_format_name, or NULL: found from the template */
    const char *template_source; /* [n_template] Jinja source, or NULL */
    size_t n_template;
    const char *prompt; /* [n_prompt] the rendered prompt: it may end inside reasoning; or NULL */
    size_t n_prompt;
    const char *tools_json; /* tools as the template got them: types of arguments; or NULL */
    int32_t no_calls;       /* 1: text that looks like a tool call is content */
} ox_parser_options;

OX_API void ox_parser_options_init(ox_parser_options *o);
/* OX_BAD_ARGUMENT: a format of that name is not known, or tools_json is not an array. */
OX_API ox_status ox_parser_open(ox_parser **out, const ox_parser_options *o, ox_err *err);
OX_API void ox_parser_close(ox_parser **p);
/* Takes n bytes; events go to fn at once. OX_LIMIT: a name or a call beyond the limits of
 * docs/tool-formats.md. */
OX_API ox_status ox_parser_feed(ox_parser *p, const char *text, size_t n, ox_parser_fn *fn,
                                void *user, ox_err *err);
/* The end of the answer: gives out what was held back, ends a call that is complete. */
OX_API ox_status ox_parser_finish(ox_parser *p, ox_parser_fn *fn, void *user, ox_err *err);
OX_API const char *ox_parser_format(const ox_parser *p); /* the format it reads */
OX_API const char *ox_parser_format_name(size_t i);      /* every format; NULL behind the last */
/* The name of the format that the template source suggests; "plain" when none does. */
OX_API const char *ox_parser_find(const char *template_source, size_t n);
/* ox_parser_open with the model's own chat template (the tools one when tools_json is given). */
OX_API ox_status ox_model_parser_open(ox_parser **out, const ox_model *m,
                                      const ox_parser_options *o, ox_err *err);

#ifdef __cplusplus
}
#endif
#endif
