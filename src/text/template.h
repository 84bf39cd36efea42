/* template.h - chat templates: parsed once, rendered to the prompt of a conversation.
 *
 * The language is the subset of Jinja that chat templates are written in, in the environment that
 * they expect: trim_blocks and lstrip_blocks on, one final newline of the source dropped, break
 * and continue, {% generation %}, raise_exception, strftime_now, tojson that keeps the order of
 * keys and escapes nothing for HTML. There is no HTML escaping anywhere: `|safe` returns its
 * string unchanged. Lists and dicts may be changed by templates (append, pop), which some need.
 * docs/templates.md lists what is there and how to add a filter.
 *
 * A template never reads files, the clock or the environment: whatever it may see
 * is in the input. */
#ifndef OX_TEXT_TEMPLATE_H
#define OX_TEXT_TEMPLATE_H
#include "base/json.h"
#include "base/status.h"
#include "base/str.h"
#include "base/vec.h"

typedef struct ox_template ox_template;

/* A name and what it stands for. */
typedef struct ox_template_token {
    ox_str name; /* "bos_token" */
    ox_str text; /* "<s>" */
} ox_template_token;

typedef struct ox_template_limits {
    size_t output_bytes;  /* default 16 MiB */
    size_t memory_bytes;  /* everything one render holds, default 512 MiB */
    uint64_t steps;       /* evaluated nodes and items touched, default 10 million */
    uint32_t macro_depth; /* macros inside macros, default 100 */
} ox_template_limits;

/* Zero-initialise, then fill; everything is borrowed and must outlive the call only. */
typedef struct ox_template_input {
    const ox_json *messages;  /* array of objects */
    const ox_json *tools;     /* array, or NULL: the template sees none */
    const ox_json *documents; /* array, or NULL: none */
    const ox_json *extra;     /* object whose members become variables (they win), or NULL */
    bool add_generation_prompt;
    const ox_template_token *tokens; /* [n_tokens] special tokens by variable name */
    size_t n_tokens;
    int64_t now_seconds;        /* for strftime_now: seconds since 1970-01-01 UTC */
    int32_t utc_offset_seconds; /* added to it, so that the caller decides on the time zone */
    ox_template_limits limits;  /* a zero member takes its default */
} ox_template_input;

/* Bytes [begin, end) of the output came out of messages, tools, documents or extra. Text in there
 * that looks like a special token is not one. Sorted, not touching. */
typedef struct ox_template_span {
    size_t begin, end;
} ox_template_span;

typedef OX_VEC(ox_template_span) ox_template_spans;

/* Parses `source` (copied). Fails with OX_BAD_FILE for wrong syntax and OX_UNSUPPORTED for what
 * this subset lacks; the message names the line. Immutable afterwards: any number of threads may
 * render at once. */
ox_status ox_template_open(ox_template **out, ox_str source, ox_err *err);
void ox_template_close(ox_template **t);

/* Whether the template mentions the variable: "tools", "enable_thinking". */
bool ox_template_uses(const ox_template *t, ox_str name);

/* Appends the rendered text to *out, and to *spans (NULL: not wanted) which bytes are the
 * caller's. OX_FAILED: the template raised or computed something impossible; OX_UNSUPPORTED: it
 * went beyond a limit. *out is unchanged on failure. */
ox_status ox_template_render(const ox_template *t, const ox_template_input *in, ox_buf *out,
                             ox_template_spans *spans, ox_err *err);
#endif
