/* options.c - the option table at work: parsing, help, man page, shell completion. */
#include "cli/cli.h"

#include <stddef.h>
#include <string.h>

typedef enum option_kind { K_FLAG, K_INT, K_FLOAT, K_STRING, K_LIST, K_MAYBE } option_kind;

typedef struct option_row {
    const char *name;
    char letter;
    option_kind kind;
    size_t member, has; /* offsets in cli_options */
    const char *value, *help;
    int groups;
} option_row;

static const option_row rows[] = {
#define OX_OPTION(name, letter, kind, member, value, groups, help)                                 \
    {name,  letter, K_##kind, offsetof(cli_options, member), offsetof(cli_options, has_##member),  \
     value, help,   groups},
#include "cli/options.def"
#undef OX_OPTION
};

static int takes(const cli_command *c, const option_row *r)
{
    return (r->groups & (c->groups | G_ALL)) != 0;
}

static const option_row *find_long(const cli_command *c, ox_str name)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (takes(c, &rows[i]) && ox_str_is(name, rows[i].name)) return &rows[i];
    return NULL;
}

static const option_row *find_letter(const cli_command *c, char letter)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (takes(c, &rows[i]) && rows[i].letter == letter) return &rows[i];
    return NULL;
}

static int unknown(const cli_command *c, const char *arg, ox_str name)
{
    const char *best = NULL;
    size_t least = 4;
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        const size_t d = ox_str_distance(name, ox_str_of(rows[i].name));
        if (takes(c, &rows[i]) && d < least) {
            least = d;
            best = rows[i].name;
        }
    }
    if (best) return cli_usage("%s has no option %s; did you mean --%s?", c->name, arg, best);
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (ox_str_is(name, rows[i].name))
            return cli_usage("%s does not take %s; see oxgen help %s", c->name, arg, c->name);
    return cli_usage("%s has no option %s; see oxgen help %s", c->name, arg, c->name);
}

static int store(cli_options *o, const option_row *r, const char *value)
{
    char *at = (char *)o + r->member;
    *(int *)(void *)((char *)o + r->has) = 1;
    int64_t i;
    double f;
    switch (r->kind) {
    case K_FLAG:
        *(int *)(void *)at = 1;
        return 0;
    case K_INT:
        if (!ox_str_to_i64(ox_str_of(value), &i))
            return cli_usage("--%s expects a whole number, found '%s'", r->name, value);
        *(long long *)(void *)at = i;
        return 0;
    case K_FLOAT:
        if (!ox_str_to_f64(ox_str_of(value), &f) || f != f)
            return cli_usage("--%s expects a number, found '%s'", r->name, value);
        *(double *)(void *)at = f;
        return 0;
    case K_STRING:
    case K_MAYBE:
        *(const char **)(void *)at = value;
        return 0;
    case K_LIST:
        if (!ox_vec_push((cli_list *)(void *)at, value)) return cli_usage("out of memory");
        return 0;
    }
    return 0;
}

static int parse_one(cli_options *o, const cli_command *c, int argc, char **argv, int *i)
{
    const char *arg = argv[*i], *value = NULL;
    const option_row *r;
    if (arg[1] == '-') {
        const char *eq = strchr(arg, '=');
        const ox_str name = {arg + 2, eq ? (size_t)(eq - arg - 2) : strlen(arg + 2)};
        r = find_long(c, name);
        if (!r) return unknown(c, arg, name);
        if (eq && r->kind == K_FLAG) return cli_usage("--%s takes no value", r->name);
        value = eq ? eq + 1 : NULL;
    } else {
        r = find_letter(c, arg[1]);
        if (!r) return unknown(c, arg, ox_str_of(arg + 1));
        if (arg[2] && r->kind == K_FLAG) return cli_usage("-%c takes no value", r->letter);
        value = arg[2] ? arg + 2 : NULL;
    }
    if (r->kind == K_MAYBE && !value) value = "";
    if (r->kind != K_FLAG && !value) {
        if (*i + 1 >= argc) return cli_usage("--%s needs a value: %s", r->name, r->value);
        value = argv[++*i];
    }
    return store(o, r, value);
}

int cli_parse(cli_options *o, const cli_command *c, int argc, char **argv)
{
    int only_args = 0;
    for (int i = 0; i < argc; i++) {
        if (!only_args && !strcmp(argv[i], "--")) {
            only_args = 1;
            continue;
        }
        if (only_args || argv[i][0] != '-' || !argv[i][1]) {
            if (!ox_vec_push(&o->args, argv[i])) return cli_usage("out of memory");
            continue;
        }
        const int code = parse_one(o, c, argc, argv, &i);
        if (code) return code;
    }
    return 0;
}

void cli_options_free(cli_options *o)
{
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (rows[i].kind == K_LIST) {
            cli_list *l = (cli_list *)(void *)((char *)o + rows[i].member);
            ox_vec_deinit(l);
        }
    ox_vec_deinit(&o->args);
    for (size_t i = 0; i < o->found.n; i++)
        ox_free(o->found.p[i]);
    ox_vec_deinit(&o->found);
}

static void help_option(const option_row *r, ox_buf *out)
{
    char left[64];
    ox_buf b = {0};
    if (r->letter)
        ox_buf_printf(&b, "-%c, --%s", r->letter, r->name);
    else
        ox_buf_printf(&b, "    --%s", r->name);
    if (r->kind == K_MAYBE)
        ox_buf_printf(&b, "[=%s]", r->value);
    else if (r->kind != K_FLAG)
        ox_buf_printf(&b, " %s", r->value);
    const size_t n = b.n < sizeof(left) - 1 ? b.n : sizeof(left) - 1;
    if (n) memcpy(left, b.p, n);
    left[n] = 0;
    ox_buf_printf(out, "  %-32s %s\n", left, r->help);
    ox_buf_deinit(&b);
}

void cli_help(const cli_command *c, ox_buf *out)
{
    if (!c) {
        ox_buf_put_z(out, "usage: oxgen COMMAND [OPTIONS]\n\nRuns language models that are ONNX "
                          "files, GGUF files or safetensors folders.\n\n");
        for (c = cli_commands; c->name; c++)
            if (!(c->groups & G_HIDDEN)) ox_buf_printf(out, "  %-12s %s\n", c->name, c->summary);
        ox_buf_put_z(out,
                     "\nexample: oxgen run model.gguf\n\nhelp COMMAND shows its options; help man "
                     "prints the manual page; help bash and help zsh print shell completion.\n");
        return;
    }
    ox_buf_printf(out, "usage: oxgen %s %s [OPTIONS]\n\n%s\n\nexample: %s\n\noptions:\n", c->name,
                  c->args, c->summary, c->example);
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (takes(c, &rows[i])) help_option(&rows[i], out);
}

static void man_text(ox_buf *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '-' || *s == '\\') ox_buf_put_c(out, '\\');
        ox_buf_put_c(out, *s);
    }
}

void cli_man(ox_buf *out)
{
    ox_buf_printf(
        out,
        ".TH OXGEN 1 \"\" \"oxgen %s\" \"User Commands\"\n.SH NAME\noxgen \\- run language "
        "models that are ONNX files\n.SH SYNOPSIS\n.B oxgen\nCOMMAND [OPTIONS]\n",
        ox_version());
    ox_buf_put_z(out, ".SH COMMANDS\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        if (c->groups & G_HIDDEN) continue;
        ox_buf_printf(out, ".TP\n.B %s ", c->name);
        man_text(out, c->args);
        ox_buf_put_z(out, "\n");
        man_text(out, c->summary);
        ox_buf_put_z(out, ".\nExample: ");
        man_text(out, c->example);
        ox_buf_put_z(out, "\n");
    }
    ox_buf_put_z(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        ox_buf_put_z(out, ".TP\n.B ");
        if (rows[i].letter) ox_buf_printf(out, "\\-%c, ", rows[i].letter);
        ox_buf_put_z(out, "\\-\\-");
        man_text(out, rows[i].name);
        ox_buf_printf(out, " %s\n", rows[i].value);
        man_text(out, rows[i].help);
        ox_buf_put_z(out, "\n");
    }
    ox_buf_put_z(out,
                 ".SH EXIT STATUS\n0 done, 1 the work failed, 2 usage, 3 the model is refused, 4 "
                 "not enough memory, 5 a backend, device or library is missing, 130 "
                 "interrupted.\n");
}

static void bash_completion(ox_buf *out)
{
    ox_buf_put_z(out, "_oxgen()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]}\n"
                      "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (const cli_command *c = cli_commands; c->name; c++)
        if (!(c->groups & G_HIDDEN)) ox_buf_printf(out, "%s ", c->name);
    ox_buf_put_z(out, "\" -- \"$cur\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        if (c->groups & G_HIDDEN) continue;
        ox_buf_printf(out, "    %s) opts=\"", c->name);
        for (size_t i = 0; i < OX_COUNT(rows); i++)
            if (takes(c, &rows[i])) ox_buf_printf(out, "--%s ", rows[i].name);
        ox_buf_put_z(out, "\" ;;\n");
    }
    ox_buf_put_z(out,
                 "    *) opts= ;;\n    esac\n    case $cur in\n    -*) COMPREPLY=($(compgen -W "
                 "\"$opts\" -- \"$cur\")) ;;\n    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
                 "    esac\n}\ncomplete -o filenames -F _oxgen oxgen\n");
}

static void zsh_completion(ox_buf *out)
{
    ox_buf_put_z(out,
                 "#compdef oxgen\n_oxgen() {\n  if (( CURRENT == 2 )); then\n    local -a c=(\n");
    for (const cli_command *c = cli_commands; c->name; c++)
        if (!(c->groups & G_HIDDEN)) ox_buf_printf(out, "      '%s:%s'\n", c->name, c->summary);
    ox_buf_put_z(out, "    )\n    _describe command c\n    return\n  fi\n  case $words[2] in\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        if (c->groups & G_HIDDEN) continue;
        ox_buf_printf(out, "  %s) compadd -- ", c->name);
        for (size_t i = 0; i < OX_COUNT(rows); i++)
            if (takes(c, &rows[i])) ox_buf_printf(out, "--%s ", rows[i].name);
        ox_buf_put_z(out, ";;\n");
    }
    ox_buf_put_z(out, "  esac\n  _files\n}\n_oxgen \"$@\"\n");
}

void cli_completion(ox_buf *out, const char *shell)
{
    if (!strcmp(shell, "bash"))
        bash_completion(out);
    else
        zsh_completion(out);
}
