/* compare.h - the inside of `oxgen compare` and `oxgen probe`: arms, the processes they run in,
 * what they say, and the comparison that the reports show.
 *
 * An arm is one way to run a model. Each of its runs is a process of its own (`oxgen arm`, arm.c)
 * that gets one JSON request on standard input and answers with one JSON object a line on standard
 * output; no two are ever alive at once. docs/compare.md describes both. */
#ifndef OX_CLI_COMPARE_H
#define OX_CLI_COMPARE_H
#include "cli/cli.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/stats.h"

enum { ARM_PROTOCOL = 1, ARMS_MOST = 12, RUNS_MOST = 100, REASON_MOST = 640, STEADY_FROM = 8 };

/* ---- arms.c: "native:cpu@numerics=exact@threads=1" ---- */

typedef struct arm_spec {
    char *text, *copy; /* as given; in pieces: the members below point into it */
    const char *name;  /* the text, numbered when there are several */
    const char *kind;  /* a row of arms.def */
    const char *device, *numerics, *kv, *threads, *exe, *tier, *lib, *model;
    cli_list ort; /* ort=K=V, each "K=V" */
} arm_spec;

/* ---- child.c: one process ---- */

typedef struct child {
    int pid, from;     /* process id; its standard output, -1 = closed */
    void *errors;      /* FILE of its standard error */
    ox_buf line, rest; /* the line handed out; bytes behind it */
    int status;        /* of waitpid, once ended */
} child;

/* env: "NAME=VALUE" strings that are added, NULL ends. input becomes its standard input. */
ox_status child_start(child *c, const char *exe, const char *const *argv, const char *const *env,
                      ox_str input, ox_err *err);
typedef enum child_news { CHILD_LINE, CHILD_END, CHILD_LATE, CHILD_INTERRUPTED } child_news;
/* The next line into c->line; waits until `deadline` (ox_clock_seconds). */
child_news child_next(child *c, double deadline);
/* Kills its whole process group, at once or after a moment to leave by itself, waits, frees. Keeps
 * status. *last_error gets its last line on standard error. */
void child_end(child *c, bool at_once, ox_buf *last_error);

/* ---- run.c: one run of an arm ---- */

/* Facts that an arm reports when its model is loaded. Strings belong to the comparison's arena. */
typedef struct arm_facts {
    bool known;
    ox_str version, commit, backend, device, library_path, library_version, providers, session;
    int64_t library_api, threads, vocab, context;
    double weight_bytes, kv_bytes_per_position, ops; /* 0 = not known */
} arm_facts;

typedef struct arm_run {
    double load_ms, first_ms; /* first_ms: of the first, cold request */
    double ttft_ms, prefill_tps, decode_tps, peak_rss, kv_bytes;
    double roof_decode, roof_prefill; /* tokens/s, measured right after; 0 = not known */
    int32_t *ids;                     /* [n_new], arena */
    double *ms;                       /* [n_new]: when each was known, arena */
    size_t n_new;
} arm_run;

typedef struct arm {
    arm_spec spec;
    char reason[REASON_MOST]; /* why it does not run, or not to the end; empty = it does */
    arm_facts facts;
    arm_run runs[RUNS_MOST];
    size_t n_runs;
} arm;

/* Texts separated by commas. An arm that this build never has gets a reason. *arms is to be freed,
 * also after a failure. */
ox_status arm_list_parse(arm **arms, size_t *n, const char *text, ox_err *err);
void arm_list_free(arm *arms, size_t n);

typedef struct arm_request {
    const char *mode; /* "time", "logits", "load" */
    const int32_t *prompt, *forced;
    size_t n_prompt, n_new, n_forced;
    const char *write, *against; /* logits: files */
    int32_t ask[2];              /* logits of these two ids are reported; -1 = none */
} arm_request;

typedef struct arm_context {
    const cli_options *o;
    const char *model;
    double limit; /* seconds a process may take */
    ox_arena *arena;
    bool interrupted;
} arm_context;

typedef void arm_event_fn(void *user, ox_str kind, const ox_json *event);
/* Starts the arm, hands every event on, ends it. False: `reason` says why it did not finish. */
bool arm_execute(arm_context *c, const arm *a, const arm_request *r, arm_event_fn *fn, void *user,
                 char reason[REASON_MOST]);
/* One timed run into *run (facts too when they are not known yet). */
bool arm_time(arm_context *c, arm *a, const arm_request *r, arm_run *run, char reason[REASON_MOST]);

/* ---- parity.c ---- */

typedef struct parity_step {
    int64_t first, second; /* best and second best id of this arm */
    double margin;         /* between their logits */
    double gap;            /* best minus the token that the timed run took */
    double difference,
        relative; /* against the reference: largest, and that over its largest logit */
    double ref_margin, asked[2];
    int64_t ref_first;
} parity_step;

/* What a teacher-forced run of an arm over a stream shows. */
typedef struct parity_side {
    bool known;
    char reason[REASON_MOST];
    parity_step last;  /* the step in question */
    double difference; /* largest over the steps before it */
    double relative;   /* largest over all of them */
    size_t odd_step;   /* first step whose token is not the arm's own best */
    double odd_gap;    /* 0 = none */
} parity_side;

typedef struct parity {
    size_t a, b; /* arms */
    bool known, same;
    size_t n, index; /* compared tokens; first different one */
    int32_t ids[2];
    char *text[2];
    parity_side side[2];
    double bound; /* on the relative difference of the two, from their classes */
    bool has_oracle;
    const char *sides_with; /* with an oracle: the arm whose token it takes; "neither" */
    const char *verdict;    /* "same", "near tie", "fault", "not known" */
    char why[REASON_MOST];
} parity;

/* ---- the whole ---- */

typedef struct comparison {
    const cli_options *o;
    arm_context context;
    ox_arena arena;
    arm *arms;
    size_t n_arms, n_runs, n_done; /* n_done: rounds that every arm tried */
    int32_t *prompt;
    size_t n_prompt, n_new;
    int32_t n_threads;
    ox_model *text; /* tokenizer only; NULL when the folder has none */
    parity *pairs;
    size_t n_pairs;
    struct {
        ox_str json; /* object without the closing brace's warnings */
        char *warnings[8];
        size_t n_warnings;
        double load, steal, others;
    } machine;
    char hash[65];
    double model_bytes;
    int64_t n_products, n_caches; /* matrix products and attentions a token passes through */
    bool float16, bfloat16, int8_products;
} comparison;

/* parity.c: bounds that a class of numerics keeps, and the verdicts of all pairs. */
double parity_bound(const comparison *c, const arm *a);
void parity_judge(comparison *c);

/* card.c */
void card_begin(comparison *c); /* the machine before the work, the model's files */
void card_end(comparison *c);   /* what disturbed it, as warnings */

/* Metrics: rows of metrics.def. */
typedef struct metric {
    const char *key, *title, *unit;
    size_t member; /* of arm_run */
    bool more_is_better, in_ratio;
    double scale; /* shown = value * scale */
} metric;
extern const metric metrics[];
extern const size_t n_metrics;
size_t metric_samples(const metric *m, const arm *a, double out[RUNS_MOST]); /* in shown units */
ox_interval metric_ratio(const metric *m, const arm *a, const arm *b);
double arm_share(const arm *a, bool decode, double *roof); /* medians; 0 = not known */
/* Median over the runs of the time between token i-1 and i, ms. */
double arm_token_ms(const arm *a, size_t i);

/* report_*.c: append to out. */
void report_table(const comparison *c, ox_buf *out);
void report_json(const comparison *c, ox_buf *out);
void report_markdown(const comparison *c, ox_buf *out);
void report_html(const comparison *c, ox_buf *out);
void report_ratio_text(ox_buf *out, const metric *m, const arm *a, const arm *b);
void report_parity_text(ox_buf *out, const comparison *c, const parity *p);
void report_number(ox_buf *out, double v); /* three or four digits that matter */
#endif
