/* cmd_compare.c - the fairness benchmark: all arms in turns, a process a run, then what they said.
 *
 * Order of the work: cards; a warm-up of every arm; rounds A B C, A B C, ...; parity; reports.
 * Ctrl-C and arms that fail leave what was measured so far, marked as partial. */
#include "cli/compare/compare.h"

#include "base/fs.h"
#include "cli/bench.h"

#include <stdio.h>

enum { PROMPT = 128, NEW = 128, ROUNDS = 7, LEAST_ROUNDS = 5, TEXT_MOST = 4 << 20 };
static const double LIMIT_SECONDS = 300, ROOF_SECONDS = 0.05, ROOF_BYTES = 512e6;

/* ---- what is asked for ---- */

static ox_status list_arms(comparison *c, ox_err *err)
{
    OX_TRY(arm_list_parse(&c->arms, &c->n_arms, c->o->arms ? c->o->arms : "native,ort,oga", err));
    const size_t n = c->n_arms * (c->n_arms - 1) / 2;
    c->pairs = ox_calloc(n + 1, sizeof(*c->pairs));
    if (!c->pairs) return OX_FAIL(err, OX_NO_MEMORY, "no memory for pairs");
    for (size_t a = 0; a < c->n_arms; a++)
        for (size_t b = a + 1; b < c->n_arms; b++)
            c->pairs[c->n_pairs++] = (parity){.a = a, .b = b, .ids = {-1, -1}};
    return OX_OK;
}

/* Arms of the same text get a number, so that reports can tell them apart. */
static ox_status tell_apart(comparison *c, ox_err *err)
{
    for (size_t i = 1; i < c->n_arms; i++) {
        size_t n = 1;
        char text[32];
        ox_buf name = {0};
        for (size_t k = 0; k < i; k++)
            n += !strncmp(c->arms[k].spec.name, c->arms[i].spec.name,
                          strlen(c->arms[i].spec.name)) &&
                 (!c->arms[k].spec.name[strlen(c->arms[i].spec.name)] ||
                  c->arms[k].spec.name[strlen(c->arms[i].spec.name)] == '#');
        if (n == 1) continue;
        snprintf(text, sizeof(text), "#%zu", n);
        ox_buf_put_z(&name, c->arms[i].spec.name);
        ox_buf_put_z(&name, text);
        c->arms[i].spec.name = ox_arena_copy(&c->arena, name.p ? name.p : "", name.n);
        ox_buf_deinit(&name);
        if (!c->arms[i].spec.name) return OX_FAIL(err, OX_NO_MEMORY, "no memory for arms");
    }
    return OX_OK;
}

/* Ids that do not depend on a tokenizer: speed does not depend on them, parity is as strict. */
static ox_status make_prompt(comparison *c, int64_t vocab, ox_err *err)
{
    const int64_t top = vocab > 20100 ? 20000 : vocab > 0 ? vocab : 256;
    c->prompt = ox_calloc(c->n_prompt, sizeof(*c->prompt));
    if (!c->prompt) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a prompt");
    for (size_t i = 0; i < c->n_prompt; i++)
        c->prompt[i] = (int32_t)(((int64_t)i * 7919 + 13) % top);
    return OX_OK;
}

static ox_status read_prompt(comparison *c, ox_err *err)
{
    const cli_options *o = c->o;
    ox_buf text = {0};
    int64_t length = PROMPT;
    if (o->bench_prompt &&
        (!ox_str_to_i64(ox_str_of(o->bench_prompt), &length) || length < 1 || length > 1 << 20))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "-p expects one length of 1 or more, found '%s'",
                       o->bench_prompt);
    if (o->ids) return cli_parse_ids(&c->prompt, &c->n_prompt, o->ids, err);
    c->n_prompt = (size_t)length;
    if (!o->file) return make_prompt(c, c->text ? ox_model_vocab(c->text) : 0, err);
    if (!c->text)
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "--file needs a tokenizer; %s has none that can be read", c->context.model);
    ox_status st = ox_file_read(&text, o->file, TEXT_MOST, err);
    if (!st)
        st = ox_model_encode(c->text, text.p ? text.p : "", text.n, OX_TEXT_ADD_SPECIAL, &c->prompt,
                             &c->n_prompt, err);
    ox_buf_deinit(&text);
    if (!st && !c->n_prompt) st = OX_FAIL(err, OX_BAD_ARGUMENT, "%s holds no token", o->file);
    if (!st && o->bench_prompt && c->n_prompt > (size_t)length) c->n_prompt = (size_t)length;
    return st;
}

static ox_status read_counts(comparison *c, ox_err *err)
{
    const cli_options *o = c->o;
    int64_t n = NEW;
    if (o->bench_new && (!ox_str_to_i64(ox_str_of(o->bench_new), &n) || n < 2 || n > 100000))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "-n expects one number from 2 to 100000, found '%s'",
                       o->bench_new);
    c->n_new = (size_t)n;
    c->n_runs = o->has_bench_repeat ? (size_t)o->bench_repeat : ROUNDS;
    if (o->has_bench_repeat && (o->bench_repeat < LEAST_ROUNDS || o->bench_repeat > RUNS_MOST))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "-r expects %d to %d, found %lld", LEAST_ROUNDS,
                       RUNS_MOST, o->bench_repeat);
    if (o->has_time_limit && !(o->time_limit > 0))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--time-limit expects seconds, found %g",
                       o->time_limit);
    c->context.limit = o->has_time_limit ? o->time_limit : LIMIT_SECONDS;
    c->n_threads = o->has_threads ? (int32_t)o->threads : ox_machine_cpus();
    return OX_OK;
}

/* The tokenizer; a folder without is no failure. */
static void open_text(comparison *c)
{
    ox_model_options mo;
    ox_err ignored = OX_ERR_INIT;
    ox_model_options_init(&mo);
    mo.text_only = 1;
    if (ox_model_open(&c->text, c->context.model, &mo, &ignored)) c->text = NULL;
}

/* ---- measuring ---- */

/* The roofs are those of this machine's CPUs: they say nothing of an arm that runs elsewhere. */
static bool on_device(const comparison *c, const arm *a)
{
    const char *asked = a->spec.device ? a->spec.device : c->o->device;
    return ox_str_starts(a->facts.device, OX_STR("cuda")) ||
           (!a->facts.device.n && asked && !strncmp(asked, "cuda", 4));
}

/* The roof of the moment: how fast the bytes and operations of a token go on this machine right
 * after the run. The work is that of the native arm's plan when it is known, whatever the arm. */
static void measure_roof(const comparison *c, const arm *a, arm_run *r)
{
    const arm_facts *f = NULL;
    double rate;
    ox_err ignored = OX_ERR_INIT;
    for (size_t i = 0; i < c->n_arms && !f; i++)
        if (c->arms[i].facts.weight_bytes > 0) f = &c->arms[i].facts;
    const double bytes = f ? f->weight_bytes : c->model_bytes;
    const double depth = (double)c->n_prompt + (double)c->n_new / 2;
    if (bytes < 1024 || on_device(c, a)) return;
    if (!ox_roof_read((size_t)(bytes < ROOF_BYTES ? bytes : ROOF_BYTES), c->n_threads, ROOF_SECONDS,
                      &rate, &ignored))
        r->roof_decode = rate / (bytes + depth * (f ? f->kv_bytes_per_position : 0));
    if (f && f->ops > 0 && !ox_roof_int8(c->n_threads, ROOF_SECONDS, &rate, &ignored))
        r->roof_prefill = rate / f->ops;
}

static void say_why(arm *a, const char *reason, size_t round)
{
    if (round)
        snprintf(a->reason, sizeof(a->reason), "round %zu: %.*s", round, REASON_MOST - 40, reason);
    else
        snprintf(a->reason, sizeof(a->reason), "%s", reason);
}

static void run_round(comparison *c, const arm_request *r, size_t round)
{
    char reason[REASON_MOST];
    arm_run run;
    for (size_t i = 0; i < c->n_arms && !c->context.interrupted; i++) {
        arm *a = &c->arms[i];
        cli_progress((void *)(uintptr_t)c->o, "compare", round * c->n_arms + i,
                     (c->n_runs + 1) * c->n_arms);
        if (a->reason[0]) continue;
        if (!arm_time(&c->context, a, r, &run, reason)) {
            say_why(a, reason, round);
            continue;
        }
        if (!round) continue; /* the warm-up */
        measure_roof(c, a, &run);
        a->runs[a->n_runs++] = run;
    }
}

static void measure(comparison *c)
{
    const arm_request r = {.mode = "time",
                           .prompt = c->prompt,
                           .n_prompt = c->n_prompt,
                           .n_new = c->n_new,
                           .ask = {-1, -1}};
    for (size_t round = 0; round <= c->n_runs && !c->context.interrupted; round++) {
        run_round(c, &r, round);
        if (!c->context.interrupted) c->n_done = round;
    }
    cli_progress_end();
}

/* ---- reports ---- */

typedef void report_fn(const comparison *c, ox_buf *out);

static ox_status write_report(const comparison *c, report_fn *fn, const char *path, ox_err *err)
{
    ox_buf b = {0};
    if (!path) return OX_OK;
    fn(c, &b);
    const ox_status st = b.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for a report")
                                  : ox_file_write_atomic(path, ox_buf_view(&b), err);
    ox_buf_deinit(&b);
    return st;
}

/* 0 everything ran and agrees; 1 a fault, or an arm that ended half way; 130 interrupted. An arm
 * that cannot run here is a row, not a failure, unless none can. */
static int verdict_code(const comparison *c)
{
    size_t complete = 0;
    int code = 0;
    for (size_t i = 0; i < c->n_arms; i++) {
        complete += c->arms[i].n_runs == c->n_runs;
        if (c->arms[i].n_runs && c->arms[i].reason[0]) code = 1;
    }
    for (size_t i = 0; i < c->n_pairs; i++)
        if (!strcmp(c->pairs[i].verdict, "fault")) code = 1;
    if (!complete) code = 1;
    return c->context.interrupted ? 130 : code;
}

static int report(const comparison *c)
{
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    int code;
    (c->o->json ? report_json : report_table)(c, &b);
    code = b.failed ? 4 : cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    if (write_report(c, report_markdown, c->o->markdown, &err) ||
        write_report(c, report_html, c->o->html, &err))
        return cli_fail(&err);
    return code ? code : verdict_code(c);
}

static void close_all(comparison *c)
{
    arm_list_free(c->arms, c->n_arms);
    for (size_t i = 0; i < c->n_pairs; i++)
        for (int k = 0; k < 2; k++)
            ox_release(c->pairs[i].text[k]);
    ox_free(c->pairs);
    ox_free(c->prompt);
    ox_model_close(&c->text);
    ox_arena_deinit(&c->arena);
}

int cmd_compare(const cli_options *o)
{
    comparison c = {.o = o, .arena = OX_ARENA_INIT, .context = {.o = o}};
    ox_err err = OX_ERR_INIT;
    int code;
    if (o->args.n != 1)
        return cli_usage("one MODEL is needed: oxgen compare MODEL --arms native,ort,oga");
    c.context.model = o->args.p[0];
    c.context.arena = &c.arena;
    ox_status st = read_counts(&c, &err);
    if (!st) st = list_arms(&c, &err);
    if (!st) st = tell_apart(&c, &err);
    if (!st && !ox_path_is_dir(c.context.model) && !ox_path_is_file(c.context.model))
        st = OX_FAIL(&err, OX_NOT_FOUND, "%s: there is no such file or folder", c.context.model);
    if (!st) open_text(&c);
    if (!st) st = read_prompt(&c, &err);
    if (!st) {
        card_begin(&c);
        measure(&c);
        parity_judge(&c);
        card_end(&c);
        code = report(&c);
        if (c.context.interrupted) cli_stopped();
    } else {
        code = cli_fail(&err);
    }
    close_all(&c);
    return code;
}
