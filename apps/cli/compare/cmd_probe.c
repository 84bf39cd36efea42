/* cmd_probe.c - which arm can do what: every model with every arm, a process each, a few tokens. A
 * cell is "runs", "loads" (opened, but no tokens came) or "no", the last two with the reason in one
 * sentence. */
#include "cli/compare/compare.h"

#include <stdio.h>

enum { TOKENS = 8, PROMPT = 4 };
static const double LIMIT_SECONDS = 60;

typedef struct cell {
    bool loaded, ran;
    double load_ms;
    size_t n;
    char reason[REASON_MOST];
} cell;

typedef struct probe {
    const cli_options *o;
    arm_context context;
    ox_arena arena;
    arm *arms;
    size_t n_arms;
    ox_buf out;
    ox_json_writer w;
} probe;

static void on_event(void *user, ox_str kind, const ox_json *e)
{
    cell *c = user;
    if (ox_str_is(kind, "loaded")) {
        c->loaded = true;
        c->load_ms = ox_json_f64(ox_json_get(e, "ms"));
    } else if (ox_str_is(kind, "run")) {
        c->n = ox_json_n(ox_json_get(e, "ids"));
    } else if (ox_str_is(kind, "done")) {
        c->ran = true;
    }
}

static const char *state(const cell *c)
{
    return c->ran ? "runs" : c->loaded ? "loads" : "no";
}

static void put_cell(probe *p, const char *model, const arm *a, const cell *c)
{
    if (!p->o->json) {
        ox_buf_printf(&p->out, "%-40s %-12s %-6s ", model, a->spec.name, state(c));
        if (c->ran)
            ox_buf_printf(&p->out, "%zu tokens\n", c->n);
        else
            ox_buf_printf(&p->out, "%s\n", c->reason);
        return;
    }
    ox_json_begin_object(&p->w);
    ox_json_put_key(&p->w, "model");
    ox_json_put_z(&p->w, model);
    ox_json_put_key(&p->w, "arm");
    ox_json_put_z(&p->w, a->spec.name);
    ox_json_put_key(&p->w, "state");
    ox_json_put_z(&p->w, state(c));
    ox_json_put_key(&p->w, "tokens");
    ox_json_put_i64(&p->w, (int64_t)c->n);
    ox_json_put_key(&p->w, "load_ms");
    ox_json_put_f64(&p->w, c->load_ms);
    ox_json_put_key(&p->w, "reason");
    ox_json_put_z(&p->w, c->ran ? NULL : c->reason);
    ox_json_end_object(&p->w);
}

static void run_cell(probe *p, const char *model, const arm *a)
{
    static const int32_t prompt[PROMPT] = {3, 4, 5, 6};
    cell c = {0};
    const arm_request r = {
        .mode = "load", .prompt = prompt, .n_prompt = PROMPT, .n_new = TOKENS, .ask = {-1, -1}};
    p->context.model = model;
    if (a->reason[0])
        memcpy(c.reason, a->reason, sizeof(c.reason));
    else if (!arm_execute(&p->context, a, &r, on_event, &c, c.reason))
        c.ran = false;
    put_cell(p, model, a, &c);
}

static int run_all(probe *p)
{
    const size_t n = p->o->args.n * p->n_arms;
    if (p->o->json) {
        ox_json_begin_object(&p->w);
        ox_json_put_key(&p->w, "rows");
        ox_json_begin_array(&p->w);
    }
    for (size_t i = 0; i < n && !p->context.interrupted; i++) {
        cli_progress((void *)(uintptr_t)p->o, "probe", i, n);
        run_cell(p, p->o->args.p[i / p->n_arms], &p->arms[i % p->n_arms]);
        ox_arena_deinit(&p->arena);
        if (p->o->json) continue;
        cli_progress_end();
        const int code = cli_stdout(ox_buf_view(&p->out)); /* a row as soon as it is known */
        ox_buf_clear(&p->out);
        if (code) return code;
    }
    cli_progress_end();
    if (p->o->json) {
        ox_json_end_array(&p->w);
        ox_json_end_object(&p->w);
        ox_buf_put_c(&p->out, '\n');
    }
    return p->out.failed ? 4 : cli_stdout(ox_buf_view(&p->out));
}

int cmd_probe(const cli_options *o)
{
    probe p = {.o = o, .arena = OX_ARENA_INIT, .context = {.o = o, .limit = LIMIT_SECONDS}};
    ox_err err = OX_ERR_INIT;
    int code;
    if (!o->args.n) return cli_usage("a MODEL is missing: oxgen probe MODEL... [--arms A,B]");
    if (o->has_time_limit && !(o->time_limit > 0))
        return cli_usage("--time-limit expects seconds, found %g", o->time_limit);
    if (o->has_time_limit) p.context.limit = o->time_limit;
    p.context.arena = &p.arena;
    p.w.out = &p.out;
    if (arm_list_parse(&p.arms, &p.n_arms, o->arms ? o->arms : "native,ort,oga", &err))
        code = cli_fail(&err);
    else
        code = run_all(&p);
    if (p.context.interrupted) code = cli_stopped();
    arm_list_free(p.arms, p.n_arms);
    ox_buf_deinit(&p.out);
    ox_arena_deinit(&p.arena);
    return code;
}
