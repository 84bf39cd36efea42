/* parse.h - an answer taken apart: content, reasoning, tool calls. The engine behind ox_parser. */
#ifndef OX_TEXT_PARSE_PARSE_H
#define OX_TEXT_PARSE_PARSE_H
#include "base/status.h"
#include "base/str.h"
#include "oxgen/parser.h"
#include "text/parse/format.h"

typedef struct ox_parse ox_parse;
typedef ox_parser_fn ox_part_fn;

/* tools_json empty: types of arguments are not known. prompt: see ox_parser_options. */
ox_status ox_parse_open(ox_parse **out, const ox_tool_format *f, ox_str prompt, ox_str tools_json,
                        bool no_calls, ox_err *err);
void ox_parse_close(ox_parse **p);
ox_status ox_parse_feed(ox_parse *p, ox_str text, ox_part_fn *fn, void *user, ox_err *err);
ox_status ox_parse_finish(ox_parse *p, ox_part_fn *fn, void *user, ox_err *err);
const ox_tool_format *ox_parse_format(const ox_parse *p);
#endif
