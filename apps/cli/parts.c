/* parts.c - an answer's content, reasoning and tool calls on the terminal and in JSON. */
#include "cli/cli.h"

#include "base/fs.h"

#include <string.h>
#include <unistd.h>

enum { PROMPT_TAIL = 32 }; /* tokens of the prompt that may hold a mark of reasoning */

static ox_status read_mode(cli_parts *p, const cli_options *o, ox_err *err)
{
    const char *mode = o->reasoning ? o->reasoning : "show";
    p->hides = !strcmp(mode, "hide");
    if (!p->hides && strcmp(mode, "show") != 0)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--reasoning expects show or hide, found '%s'", mode);
    return OX_OK;
}

ox_status cli_parts_open(cli_parts *p, const cli_options *o, const ox_model *m, const int32_t *ids,
                         size_t n_ids, const char *tools_json, ox_err *err)
{
    ox_parser_options po;
    char *prompt = NULL;
    const size_t tail = n_ids < PROMPT_TAIL ? n_ids : PROMPT_TAIL;
    *p = (cli_parts){0};
    OX_TRY(read_mode(p, o, err));
    if (!ox_model_has_template(m) || !ox_model_has_tokenizer(m)) return OX_OK;
    ox_parser_options_init(&po);
    OX_TRY(ox_model_decode(m, ids + n_ids - tail, tail, 0, &prompt, &po.n_prompt, err));
    po.prompt = prompt;
    po.tools_json = tools_json;
    po.no_calls = !tools_json;
    const ox_status st = ox_model_parser_open(&p->parser, m, &po, err);
    ox_release(prompt);
    if (st) return st;
    if (!strcmp(ox_parser_format(p->parser), "plain")) ox_parser_close(&p->parser);
    const char *no_color = ox_env("NO_COLOR");
    const int terminal = isatty(STDOUT_FILENO) && !(no_color && *no_color);
    p->shows = p->parser && !o->json && (p->hides || terminal);
    return OX_OK;
}

static void print(cli_parts *p, const char *text, size_t n)
{
    if (p->shows && n && cli_stdout((ox_str){text, n})) p->failed_write = 1;
}

static void set_dim(cli_parts *p, int dim)
{
    if (!p->shows || p->dim == dim) return;
    const char *code = dim ? "\033[2m" : "\033[0m";
    if (!p->hides) print(p, code, strlen(code));
    p->dim = dim;
}

static void begin_call(cli_parts *p, const ox_parser_event *e)
{
    ox_buf_put_z(&p->calls, p->n_calls++ ? ",{\"name\":" : "{\"name\":");
    cli_json_str(&p->calls, e->text, e->n);
    ox_buf_clear(&p->arguments);
}

/* An incomplete call's arguments are what came of them. */
static void end_call(cli_parts *p)
{
    if (!p->n_calls || !p->calls.n || p->calls.p[p->calls.n - 1] == '}') return;
    ox_buf_put_z(&p->calls, ",\"arguments\":");
    cli_json_str(&p->calls, p->arguments.p ? p->arguments.p : "", p->arguments.n);
    ox_buf_put_c(&p->calls, '}');
}

void cli_parts_event(cli_parts *p, const ox_parser_event *e)
{
    switch (e->part) {
    case OX_PART_CONTENT:
        set_dim(p, 0);
        print(p, e->text, e->n);
        ox_buf_put(&p->content, e->text, e->n);
        return;
    case OX_PART_REASONING:
        set_dim(p, 1);
        if (!p->hides) print(p, e->text, e->n);
        ox_buf_put(&p->reasoning, e->text, e->n);
        return;
    case OX_PART_CALL:
        end_call(p);
        begin_call(p, e);
        set_dim(p, 0);
        print(p, e->text, e->n);
        print(p, " ", 1);
        return;
    case OX_PART_CALL_ID:
        ox_buf_put_z(&p->calls, ",\"id\":");
        cli_json_str(&p->calls, e->text, e->n);
        return;
    case OX_PART_ARGUMENTS:
        print(p, e->text, e->n);
        ox_buf_put(&p->arguments, e->text, e->n);
        return;
    case OX_PART_CALL_END:
        end_call(p);
        print(p, "\n", 1);
        return;
    }
}

void cli_parts_done(cli_parts *p)
{
    set_dim(p, 0);
    end_call(p);
}

void cli_parts_json(const cli_parts *p, ox_buf *out)
{
    if (!p->parser) return;
    ox_buf_put_z(out, ",\"content\":");
    cli_json_str(out, p->content.p ? p->content.p : "", p->content.n);
    if (p->reasoning.n) {
        ox_buf_put_z(out, ",\"reasoning\":");
        cli_json_str(out, p->reasoning.p, p->reasoning.n);
    }
    if (p->n_calls) {
        ox_buf_put_z(out, ",\"tool_calls\":[");
        ox_buf_put_str(out, ox_buf_view(&p->calls));
        ox_buf_put_c(out, ']');
    }
}

void cli_parts_close(cli_parts *p)
{
    ox_parser_close(&p->parser);
    ox_buf_deinit(&p->content);
    ox_buf_deinit(&p->reasoning);
    ox_buf_deinit(&p->calls);
    ox_buf_deinit(&p->arguments);
}
