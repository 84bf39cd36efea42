/* parser.c - the public parser: which format, where the prompt left off. */
#include "engine/engine_internal.h"

#include "text/parse/parse.h"

#include <string.h>

struct ox_parser {
    ox_parse *parse;
};

void ox_parser_options_init(ox_parser_options *o)
{
    *o = (ox_parser_options){.struct_size = sizeof(*o)};
}

const char *ox_parser_format_name(size_t i)
{
    const ox_tool_format *f = ox_tool_formats;
    while (i && f->name)
        i--, f++;
    return f->name;
}

const char *ox_parser_find(const char *template_source, size_t n)
{
    return ox_tool_format_of((ox_str){template_source, n})->name;
}

static ox_status pick_format(const ox_tool_format **out, const ox_parser_options *o, ox_err *err)
{
    *out = o->format ? ox_tool_format_named(ox_str_of(o->format))
                     : ox_tool_format_of((ox_str){o->template_source, o->n_template});
    if (*out) return OX_OK;
    ox_buf names = {0};
    for (const ox_tool_format *f = ox_tool_formats; f->name; f++)
        ox_buf_printf(&names, "%s%s", f == ox_tool_formats ? "" : ", ", f->name);
    ox_fail_at(err, __func__, OX_BAD_ARGUMENT,
               "the format of tool calls '%.60s' is not known; expected one of %s", o->format,
               names.p ? names.p : "");
    ox_buf_deinit(&names);
    return OX_BAD_ARGUMENT;
}

ox_status ox_parser_open(ox_parser **out, const ox_parser_options *options, ox_err *err)
{
    ox_parser_options o;
    const ox_tool_format *f;
    *out = NULL;
    ox_parser_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    OX_TRY(pick_format(&f, &o, err));
    ox_parser *p = ox_calloc(1, sizeof(*p));
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a parser");
    const ox_status st = ox_parse_open(&p->parse, f, (ox_str){o.prompt, o.prompt ? o.n_prompt : 0},
                                       ox_str_of(o.tools_json), o.no_calls != 0, err);
    if (st) {
        ox_free(p);
        return st;
    }
    *out = p;
    return OX_OK;
}

ox_status ox_model_parser_open(ox_parser **out, const ox_model *m, const ox_parser_options *options,
                               ox_err *err)
{
    ox_parser_options o;
    const ox_facts *f = &m->source->facts;
    ox_parser_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    const ox_str t = o.tools_json && f->tool_template.n ? f->tool_template : f->chat_template;
    if (!o.format && !o.template_source) {
        o.template_source = t.p;
        o.n_template = t.n;
    }
    return ox_parser_open(out, &o, err);
}

void ox_parser_close(ox_parser **parser)
{
    ox_parser *p = *parser;
    if (!p) return;
    ox_parse_close(&p->parse);
    ox_free(p);
    *parser = NULL;
}

ox_status ox_parser_feed(ox_parser *p, const char *text, size_t n, ox_parser_fn *fn, void *user,
                         ox_err *err)
{
    return ox_parse_feed(p->parse, (ox_str){text, n}, fn, user, err);
}

ox_status ox_parser_finish(ox_parser *p, ox_parser_fn *fn, void *user, ox_err *err)
{
    return ox_parse_finish(p->parse, fn, user, err);
}

const char *ox_parser_format(const ox_parser *p)
{
    return ox_parse_format(p->parse)->name;
}

bool ox_parser_mentions(const ox_parser *p, ox_str token)
{
    return ox_tool_format_mentions(ox_parse_format(p->parse), token);
}
