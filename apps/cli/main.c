/* main.c - finds the command, parses its options, runs it. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

const cli_command cli_commands[] = {
#define OX_COMMAND(name, fn, groups, args, summary, example)                                       \
    {name, fn, groups, args, summary, example},
#include "cli/commands.def"
#undef OX_COMMAND
    {0},
};

const cli_command *cli_find(const char *name)
{
    for (const cli_command *c = cli_commands; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

const char *cli_nearest_command(const char *name)
{
    const char *best = NULL;
    size_t least = 4;
    for (const cli_command *c = cli_commands; c->name; c++) {
        const size_t d = ox_str_distance(ox_str_of(name), ox_str_of(c->name));
        if (d < least && !(c->groups & G_HIDDEN)) {
            least = d;
            best = c->name;
        }
    }
    return best;
}

static int print_help(const cli_command *c)
{
    ox_buf b = {0};
    cli_help(c, &b);
    const int code = cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}

int cmd_help(const cli_options *o)
{
    if (!o->args.n) return print_help(NULL);
    const cli_command *c = cli_find(o->args.p[0]);
    ox_buf b = {0};
    int code = 0;
    if (c) return print_help(c);
    if (!strcmp(o->args.p[0], "man"))
        cli_man(&b);
    else if (!strcmp(o->args.p[0], "bash") || !strcmp(o->args.p[0], "zsh"))
        cli_completion(&b, o->args.p[0]);
    else
        code = cli_usage("there is no command '%s'; see oxgen help", o->args.p[0]);
    if (!code) code = cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}

static void on_log(void *user, ox_log_level level, const char *line)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    (void)user;
    fprintf(stderr, "oxgen: %s: %s\n", names[level], line);
}

/* OXGEN_LOG=error|warn|info|debug; when unset warn, info with --verbose. 0, or the exit code of an
 * unknown word. */
static int open_log(const cli_options *o)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *word = ox_env("OXGEN_LOG");
    int level = word && *word ? -1 : o->verbose && !o->quiet ? OX_LOG_INFO : OX_LOG_WARN;
    for (int i = 0; level < 0 && i < (int)OX_COUNT(names); i++)
        if (!strcmp(word, names[i])) level = i;
    if (level < 0)
        return cli_usage("OXGEN_LOG=%s is not known; expected error, warn, info or debug", word);
    ox_log_set(on_log, NULL, (ox_log_level)level);
    return 0;
}

/* How many arguments a usage such as "MODEL [PROMPT] --file F" allows: its words, options with
 * their values left out; alternatives ("|") and dots allow any number. */
static size_t most_args(const char *usage)
{
    size_t n = 0;
    if (strchr(usage, '|') || strstr(usage, "...")) return SIZE_MAX;
    for (const char *at = usage; *at;) {
        const size_t word = strcspn(at, " ");
        const int is_option = at[0] == '-' || (at[0] == '[' && at[1] == '-');
        at += word + (at[word] != 0);
        if (!is_option) {
            n++;
            continue;
        }
        const size_t value = strcspn(at, " ");
        at += value + (at[value] != 0);
    }
    return n;
}

static int check_args(const cli_command *c, const cli_options *o)
{
    const size_t most = most_args(c->args);
    if (o->help || o->args.n <= most) return 0;
    return cli_usage("%s takes %s; '%s' is one argument too many (quote a text that holds spaces)",
                     c->name, *c->args ? c->args : "no arguments", o->args.p[most]);
}

static int is_word_of(const char *usage, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = usage; *at;) {
        const size_t len = strcspn(at, " ");
        if (len == n && !memcmp(at, word, n)) return 1;
        at += len + (at[len] != 0);
    }
    return 0;
}

/* Names of models below $OXGEN_MODELS become their paths. A word of the usage itself ("micro") is
 * no name. */
static int find_models(const cli_command *c, cli_options *o)
{
    const int all = strstr(c->args, "...") != NULL;
    if (strncmp(c->args, "MODEL", 5) && strncmp(c->args, "SRC", 3)) return 0;
    for (size_t i = 0; i < o->args.n && (all || !i); i++) {
        char *path = is_word_of(c->args, o->args.p[i]) ? NULL : cli_find_model(o->args.p[i]);
        if (path && !ox_vec_push(&o->found, path)) {
            ox_free(path);
            return cli_usage("no memory for the path of a model");
        }
        if (path) o->args.p[i] = path;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const double start = ox_clock_seconds();
    cli_options o = {0};
    if (argc < 2) {
        print_help(NULL);
        return 2;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    const cli_command *c = cli_find(name);
    if (!c) {
        const char *near = cli_nearest_command(name);
        return near ? cli_usage("there is no command '%s'; did you mean '%s'?", name, near)
                    : cli_usage("there is no command '%s'; see oxgen help", name);
    }
    cli_catch_interrupt(!(c->groups & (G_MODEL | G_CONVERT)));
    int code = cli_parse(&o, c, argc - 2, argv + 2);
    if (!code) code = open_log(&o);
    if (!code) code = check_args(c, &o);
    if (!code) code = find_models(c, &o);
    if (!code && !o.help) cli_verbose_begin(&o);
    if (!code) code = o.help ? print_help(c) : c->fn(&o);
    cli_notes_now();
    if (fflush(stdout) && !code) code = 1;
    if (!o.help) cli_verbose_end(&o, ox_clock_seconds() - start);
    cli_options_free(&o);
    return code;
}
