/* cli.h - what the commands share: parsed options, opening a model, progress, JSON on stdout.
 *
 * Streams: generated text and results on stdout, everything else on stderr. A command returns the
 * process's exit code (see oxgen/status.h for the codes of failures). */
#ifndef OX_CLI_CLI_H
#define OX_CLI_CLI_H
#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"
#include "base/vec.h"
#include "oxgen/ox_experimental.h"
#include "oxgen/oxgen.h"

typedef struct cli_list {
    const char **p;
    size_t n, cap;
} cli_list;

/* Groups of options; a command takes the groups of its row in commands.def. */
enum {
    G_MODEL = 1 << 0,
    G_GENERATE = 1 << 1,
    G_ANSWER = 1 << 2,
    G_IDS = 1 << 3,
    G_CONVERT = 1 << 4,
    G_OUTPUT = 1 << 5,
    G_INSPECT = 1 << 6,
    G_FILE = 1 << 7,
    G_TOKENIZE = 1 << 8,
    G_TEMPLATE = 1 << 9,
    G_FORWARD = 1 << 10,
    G_BENCH = 1 << 11,
    G_KERNELS = 1 << 12,
    G_PLAN = 1 << 13,
    G_LOGITS = 1 << 14,
    G_JSON = 1 << 15,
    G_PROFILE = 1 << 16,
    G_COMPARE = 1 << 17,
    G_SAMPLER = 1 << 18, /* a number whose member is the sampler option of that name */
    G_HIDDEN = 1 << 29,  /* not in help: one part of oxgen talks to another */
    G_ALL = 1 << 30,
};

typedef struct cli_options {
#define T_FLAG int
#define T_INT long long
#define T_FLOAT double
#define T_STRING const char *
#define T_LIST cli_list
#define T_MAYBE const char *
#define OX_OPTION(name, letter, kind, member, value, groups, help)                                 \
    T_##kind member;                                                                               \
    int has_##member;
#include "cli/options.def"
#undef OX_OPTION
    cli_list args;        /* what is not an option */
    OX_VEC(char *) found; /* paths of models that `args` points to */
} cli_options;

typedef struct cli_command {
    const char *name;
    int (*fn)(const cli_options *o);
    int groups;
    const char *args, *summary, *example;
} cli_command;

extern const cli_command cli_commands[]; /* a row with name NULL ends it */

#define OX_COMMAND(name, fn, groups, args, summary, example) int fn(const cli_options *o);
#include "cli/commands.def"
#undef OX_COMMAND

/* options.c: parses argv behind the command's name; reports usage errors itself (exit code 2). */
int cli_parse(cli_options *o, const cli_command *command, int argc, char **argv);
void cli_options_free(cli_options *o);
void cli_help(const cli_command *command, ox_buf *out); /* NULL: the whole program */
const cli_command *cli_find(const char *name);
const char *cli_nearest_command(const char *name); /* NULL: nothing is near */
void cli_man(ox_buf *out);
void cli_completion(ox_buf *out, const char *shell); /* "bash" or "zsh" */

/* report.c */
int cli_fail(const ox_err *err); /* prints "oxgen: …" and returns the exit code */
int cli_usage(const char *fmt, ...) OX_PRINTF(1, 2); /* prints "oxgen: …" and returns 2 */
void cli_note(const cli_options *o, const char *fmt, ...) OX_PRINTF(2, 3); /* unless --quiet */
/* Keeps a note of the model until there is output (at once with --verbose): a command that fails
 * says one line, its failure. */
void cli_note_later(const cli_options *o, const char *text);
void cli_notes_now(void);
/* Refuses what would not reach the model unchanged: NUL bytes and ill-formed UTF-8. */
ox_status cli_check_text(ox_str text, const char *what, ox_err *err);
int cli_stopped(void); /* says that Ctrl-C ended the command; exit code 130 */
/* Progress bar on stderr when it is a terminal; also polls for Ctrl-C. user = cli_options. */
int cli_progress(void *user, const char *what, uint64_t done, uint64_t total);
void cli_progress_end(void);
/* A second Ctrl-C ends the program whatever it does; at_once: the first one does. */
void cli_catch_interrupt(int at_once);
int cli_interrupted(void); /* Ctrl-C was pressed */
void cli_interrupt_clear(void);
int cli_stdout(ox_str text); /* writes all; 0, or the exit code of a failed write */

/* sampling.c: options of the sampler, with the lists they point to. */
typedef struct cli_sampling {
    ox_sampler_options o;
    OX_VEC(ox_logit_bias) bias;
    OX_VEC(ox_token_list) words; /* [0, n_own) are the caller's to release */
    size_t n_own;
    OX_VEC(int32_t) breakers;
} cli_sampling;

ox_status cli_sampling_open(cli_sampling *s, const cli_options *o, const ox_model *m, ox_err *err);
void cli_sampling_close(cli_sampling *s);

/* answers.c: several answers to one prompt, by beams or by draws. */
typedef struct cli_answer {
    OX_VEC(int32_t) ids;
    ox_buf text;
    float score; /* of a beam */
    const char *finish;
} cli_answer;
typedef OX_VEC(cli_answer) cli_answers;
/* Whether the options, or the model's own files, ask for more than one answer or beam. */
int cli_wants_several(const cli_options *o, const ox_model *m, const ox_sampler_options *so);
ox_status cli_several(cli_answers *out, ox_session *s, const cli_options *o,
                      const ox_sampler_options *so, int *code, ox_err *err);
void cli_answers_free(cli_answers *a);

/* verbose.c: lines on standard error with --verbose, nothing without. Times in seconds. */
typedef struct cli_stages {
    size_t n_prompt, n_reused, n_new; /* tokens */
    double prefill, decode;
} cli_stages;
void cli_verbose_begin(const cli_options *o);
void cli_verbose_model(const cli_options *o, const ox_model *m, double seconds);
void cli_verbose_answer(const cli_options *o, const ox_session *s, const cli_stages *t);
void cli_verbose_end(const cli_options *o, double seconds);

/* parts.c: the answer taken apart, as commands show it. */
typedef struct cli_parts {
    ox_parser *parser; /* NULL: the model's format has no parts */
    int shows;         /* parts are printed as they come, instead of the text */
    int hides;         /* reasoning is not */
    int dim;           /* the terminal's state */
    int failed_write;
    ox_buf content, reasoning, calls; /* calls: JSON objects, a comma before each but the first */
    ox_buf arguments;                 /* of the call that runs */
    size_t n_calls;
} cli_parts;

ox_status cli_parts_open(cli_parts *p, const cli_options *o, const ox_model *m, const int32_t *ids,
                         size_t n_ids, const char *tools_json, ox_err *err);
void cli_parts_event(cli_parts *p, const ox_parser_event *e);
void cli_parts_done(cli_parts *p); /* the answer has ended */
/* ,"content":…,"reasoning":…,"tool_calls":[…] for what there is */
void cli_parts_json(const cli_parts *p, ox_buf *out);
void cli_parts_close(cli_parts *p);

/* shared.c */
/* A MODEL that is no path here but one below $OXGEN_MODELS: that path, the caller's (ox_free).
 * NULL: take the name as it is. */
char *cli_find_model(const char *name);
ox_status cli_model_options(ox_model_options *mo, const cli_options *o, ox_err *err);
ox_status cli_open_model(ox_model **out, const cli_options *o, const char *path, int text_only,
                         ox_err *err);
/* profile.c. The prefix for --profile's file, the caller's (ox_free); NULL = no memory. */
char *cli_profile_prefix(const cli_options *o);
/* Shows the profile that --profile asked for, then closes. Returns code, or the exit code of a
 * failed profile when code is 0. */
int cli_close_model(ox_model **m, const cli_options *o, int code);
ox_status cli_parse_ids(int32_t **ids, size_t *n, const char *text, ox_err *err);
ox_status cli_read_text(ox_buf *out, const char *path, ox_err *err); /* file or "-" */
/* [{"role":"system",…}?, {"role":"user","content":prompt}] */
void cli_messages(ox_buf *out, const char *system, const char *prompt);
void cli_json_str(ox_buf *out, const char *s, size_t n); /* quoted and escaped */
const char *cli_finish_name(ox_finish f);
#endif
