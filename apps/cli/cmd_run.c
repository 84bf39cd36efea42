/* cmd_run.c - chat in the terminal: a line editor when stdin is one, else one prompt per line. */
#define _GNU_SOURCE
#include "cli/chat.h"

#include <editline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An interrupted turn is not an error of the conversation. */
static int turn(chat *c, const char *line)
{
    ox_err err = OX_ERR_INIT;
    cli_interrupt_clear();
    const ox_status st = chat_turn(c, line, &err);
    if (c->leave) return c->code;
    if (st && st != OX_CANCELLED) return cli_fail(&err);
    return cli_stdout(OX_STR("\n"));
}

static int chat_at_terminal(chat *c)
{
    fprintf(stderr,
            "%s, context %lld. /help lists commands, Ctrl-C stops an answer, Ctrl-D leaves.\n",
            ox_model_name(c->model), (long long)ox_model_context(c->model));
    while (!c->leave) {
        char *line = readline("> ");
        if (!line) {
            if (!cli_interrupted()) break;
            cli_interrupt_clear();
            fprintf(stderr, "\n");
            continue;
        }
        if (*line) add_history(line);
        if (*line && !chat_command(c, line)) turn(c, line); /* its message is already out: go on */
        free(line);
    }
    return c->code;
}

static int chat_from_pipe(chat *c)
{
    char *line = NULL;
    size_t cap = 0;
    int code = 0;
    for (ssize_t n;
         !code && !c->leave && !cli_interrupted() && (n = getline(&line, &cap, stdin)) >= 0;) {
        if (n && line[n - 1] == '\n') line[--n] = 0;
        if (n && line[n - 1] == '\r') line[--n] = 0;
        if (!n) continue;
        if (memchr(line, 0, (size_t)n)) {
            code = cli_usage("standard input holds a NUL byte; expected one prompt per line");
            break;
        }
        if (!chat_command(c, line)) code = turn(c, line);
    }
    free(line);
    if (!code && cli_interrupted()) code = cli_stopped();
    return code ? code : c->code;
}

int cmd_run(const cli_options *o)
{
    chat c;
    ox_err err = OX_ERR_INIT;
    if (!o->args.n) return cli_usage("a MODEL is missing: oxgen run MODEL");
    int code;
    if (chat_open(&c, o, o->args.p[0], &err))
        code = cli_fail(&err);
    else
        code = isatty(STDIN_FILENO) ? chat_at_terminal(&c) : chat_from_pipe(&c);
    chat_close(&c);
    return code;
}
