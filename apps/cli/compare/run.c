/* run.c - one run of an arm from the outside: the request, the events, and in one sentence why it
 * did not finish. */
#define _GNU_SOURCE
#include "cli/compare/compare.h"

#include "base/clock.h"
#include "base/fs.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void put_ids(ox_json_writer *w, const char *key, const int32_t *ids, size_t n)
{
    ox_json_put_key(w, key);
    ox_json_begin_array(w);
    for (size_t i = 0; i < n; i++)
        ox_json_put_i64(w, ids[i]);
    ox_json_end_array(w);
}

static void put_text(ox_json_writer *w, const char *key, const char *z)
{
    if (!z) return;
    ox_json_put_key(w, key);
    ox_json_put_z(w, z);
}

static void put_number(ox_json_writer *w, const char *key, int64_t v)
{
    ox_json_put_key(w, key);
    ox_json_put_i64(w, v);
}

static void put_options(ox_json_writer *w, const cli_list *first, const cli_list *second)
{
    ox_json_put_key(w, "ort_options");
    ox_json_begin_array(w);
    for (size_t i = 0; i < first->n; i++)
        ox_json_put_z(w, first->p[i]);
    for (size_t i = 0; i < second->n; i++)
        ox_json_put_z(w, second->p[i]);
    ox_json_end_array(w);
}

/* What the arm says itself beats the command's flags. */
static void put_request(ox_buf *out, const arm_context *c, const arm *a, const arm_request *r)
{
    const cli_options *o = c->o;
    const arm_spec *s = &a->spec;
    ox_json_writer w = {.out = out};
    int64_t threads = o->has_threads ? o->threads : 0;
    const cli_list none = {0};
    if (s->threads) ox_str_to_i64(ox_str_of(s->threads), &threads);
    ox_json_begin_object(&w);
    put_number(&w, "protocol", ARM_PROTOCOL);
    put_text(&w, "kind", s->kind);
    put_text(&w, "mode", r->mode);
    put_text(&w, "model", s->model ? s->model : c->model);
    put_text(&w, "device", s->device ? s->device : o->device);
    put_text(&w, "numerics", s->numerics ? s->numerics : o->numerics);
    put_text(&w, "kv", s->kv ? s->kv : o->kv);
    put_text(&w, "quant", o->quant);
    put_number(&w, "threads", threads);
    put_number(&w, "context", o->has_context ? o->context : 0);
    put_options(&w, strcmp(s->kind, "native") ? &o->ort_option : &none, &s->ort);
    put_number(&w, "n_new", (int64_t)r->n_new);
    put_ids(&w, "prompt", r->prompt, r->n_prompt);
    put_ids(&w, "forced", r->forced, r->n_forced);
    put_ids(&w, "ask", r->ask, 2);
    put_text(&w, "write", r->write);
    put_text(&w, "against", r->against);
    ox_json_end_object(&w);
    ox_buf_put_c(out, '\n');
}

static bool own_program(char path[4096])
{
    const ssize_t n = readlink("/proc/self/exe", path, 4095);
    path[n > 0 ? n : 0] = 0;
    return n > 0;
}

static bool start(child *p, const arm_context *c, const arm *a, const arm_request *r, ox_err *err)
{
    const arm_spec *s = &a->spec;
    char self[4096], tier[64], lib[4200];
    const char *env[4] = {0};
    size_t n = 0;
    ox_buf input = {0};
    if (!s->exe && !own_program(self)) {
        OX_FAIL(err, OX_IO, "cannot find this program's own file");
        return false;
    }
    const char *exe = s->exe ? s->exe : self, *const argv[] = {exe, "arm", NULL};
    if (s->tier) {
        snprintf(tier, sizeof(tier), "OXGEN_CPU=%s", s->tier);
        env[n++] = tier;
    }
    if (s->lib) {
        snprintf(lib, sizeof(lib), "%s=%s",
                 strcmp(s->kind, "oga") ? "OXGEN_ORT_LIB" : "OXGEN_OGA_LIB", s->lib);
        env[n++] = lib;
    }
    put_request(&input, c, a, r);
    const ox_status st = input.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for a request")
                                      : child_start(p, exe, argv, env, ox_buf_view(&input), err);
    ox_buf_deinit(&input);
    return !st;
}

static void why_it_ended(char reason[REASON_MOST], const child *p, const char *phase, ox_str said)
{
    const int st = p->status;
    if (WIFSIGNALED(st))
        snprintf(reason, REASON_MOST, "crashed while %s: signal %d (%s)%s", phase, WTERMSIG(st),
                 strsignal(WTERMSIG(st)), WTERMSIG(st) == SIGKILL ? "; was memory short?" : "");
    else
        snprintf(reason, REASON_MOST, "ended while %s with exit code %d%s%.*s", phase,
                 WIFEXITED(st) ? WEXITSTATUS(st) : -1, said.n ? ": " : "", OX_STR_ARGS(said));
}

/* One line of the arm; false: it has failed, reason says why. */
static bool hear(arm_context *c, ox_buf *line, const char **phase, arm_event_fn *fn, void *user,
                 char reason[REASON_MOST])
{
    const ox_json *event = NULL;
    ox_err err = OX_ERR_INIT;
    if (ox_json_parse(&event, c->arena, ox_buf_view(line), &err)) {
        snprintf(reason, REASON_MOST, "said something that is not an event: %.*s",
                 OX_STR_ARGS(((ox_str){line->p, line->n < 80 ? line->n : 80})));
        return false;
    }
    const ox_str kind = ox_json_str(ox_json_get(event, "event"));
    if (ox_str_is(kind, "fail")) {
        snprintf(reason, REASON_MOST, "%.*s",
                 OX_STR_ARGS(ox_json_str(ox_json_get(event, "message"))));
        return false;
    }
    if (ox_str_is(kind, "hello")) {
        const int64_t n = ox_json_i64(ox_json_get(event, "protocol"));
        *phase = "loading";
        if (n != ARM_PROTOCOL) {
            snprintf(reason, REASON_MOST, "speaks protocol %lld, expected %d", (long long)n,
                     ARM_PROTOCOL);
            return false;
        }
    }
    if (ox_str_is(kind, "loaded")) *phase = "running";
    fn(user, kind, event);
    return true;
}

bool arm_execute(arm_context *c, const arm *a, const arm_request *r, arm_event_fn *fn, void *user,
                 char reason[REASON_MOST])
{
    child p = {.from = -1};
    ox_err err = OX_ERR_INIT;
    ox_buf said = {0};
    const char *phase = "starting";
    reason[0] = 0;
    if (!start(&p, c, a, r, &err)) {
        snprintf(reason, REASON_MOST, "%.*s", REASON_MOST - 1, err.msg);
        return false;
    }
    const double deadline = ox_clock_seconds() + c->limit;
    child_news news;
    while ((news = child_next(&p, deadline)) == CHILD_LINE &&
           hear(c, &p.line, &phase, fn, user, reason))
        continue;
    const bool failed = news == CHILD_LINE;
    child_end(&p, news == CHILD_LATE || news == CHILD_INTERRUPTED, &said);
    c->interrupted |= news == CHILD_INTERRUPTED;
    if (news == CHILD_INTERRUPTED)
        snprintf(reason, REASON_MOST, "interrupted while %s", phase);
    else if (news == CHILD_LATE)
        snprintf(reason, REASON_MOST, "no answer within %g s while %s; stopped", c->limit, phase);
    else if (!failed && p.status)
        why_it_ended(reason, &p, phase, ox_buf_view(&said));
    ox_buf_deinit(&said);
    return !reason[0];
}

/* ---- a timed run ---- */

typedef struct timing {
    arm_context *c;
    arm_facts *facts;
    arm_run *run;
    size_t n_prompt;
    bool has_run, has_end;
} timing;

static void read_facts(arm_facts *f, const ox_json *e)
{
    const struct {
        const char *key;
        ox_str *to;
    } texts[] = {{"backend", &f->backend},
                 {"device", &f->device},
                 {"library_path", &f->library_path},
                 {"library_version", &f->library_version},
                 {"providers", &f->providers}};
    for (size_t i = 0; i < OX_COUNT(texts); i++)
        *texts[i].to = ox_json_str(ox_json_get(e, texts[i].key));
    f->library_api = ox_json_i64(ox_json_get(e, "library_api"));
    f->threads = ox_json_i64(ox_json_get(e, "threads"));
    f->vocab = ox_json_i64(ox_json_get(e, "vocab"));
    f->context = ox_json_i64(ox_json_get(e, "context"));
    f->weight_bytes = ox_json_f64(ox_json_get(e, "weight_bytes"));
    f->kv_bytes_per_position = ox_json_f64(ox_json_get(e, "kv_bytes_per_position"));
    f->ops = ox_json_f64(ox_json_get(e, "ops"));
    f->known = true;
}

static void read_session(arm_context *c, arm_facts *f, const ox_json *e)
{
    ox_buf text = {0};
    ox_json_writer w = {.out = &text};
    ox_json_put_node(&w, ox_json_get(e, "session"));
    char *copy = ox_arena_take(c->arena, text.n + 1);
    if (copy && text.n) {
        memcpy(copy, text.p, text.n);
        f->session = (ox_str){copy, text.n};
    }
    ox_buf_deinit(&text);
}

static void read_run(timing *t, const ox_json *e)
{
    arm_run *run = t->run;
    const ox_json *ids = ox_json_get(e, "ids"), *ms = ox_json_get(e, "ms");
    const size_t n = ox_json_n(ids) < ox_json_n(ms) ? ox_json_n(ids) : ox_json_n(ms);
    run->ids = ox_arena_take(t->c->arena, (n + 1) * sizeof(*run->ids));
    run->ms = ox_arena_take(t->c->arena, (n + 1) * sizeof(*run->ms));
    if (!run->ids || !run->ms || !n) return;
    for (size_t i = 0; i < n; i++) {
        run->ids[i] = (int32_t)ox_json_i64(ox_json_at(ids, i));
        run->ms[i] = ox_json_f64(ox_json_at(ms, i));
    }
    const double prompt_ms = ox_json_f64(ox_json_get(e, "prompt_ms"));
    const size_t from = n > 2 * STEADY_FROM ? STEADY_FROM : 1;
    const double window = n > from ? run->ms[n - 1] - run->ms[from - 1] : 0;
    run->n_new = n;
    run->first_ms = ox_json_f64(ox_json_get(e, "first_ms"));
    run->ttft_ms = run->ms[0];
    run->prefill_tps = prompt_ms > 0 ? (double)t->n_prompt / prompt_ms * 1e3 : 0;
    run->decode_tps = window > 0 ? (double)(n - from) / window * 1e3 : 0;
    t->has_run = true;
}

static void on_event(void *user, ox_str kind, const ox_json *e)
{
    timing *t = user;
    if (ox_str_is(kind, "hello") && !t->facts->known) {
        t->facts->version = ox_json_str(ox_json_get(e, "version"));
        t->facts->commit = ox_json_str(ox_json_get(e, "commit"));
    } else if (ox_str_is(kind, "loaded")) {
        t->run->load_ms = ox_json_f64(ox_json_get(e, "ms"));
        if (!t->facts->known) {
            read_facts(t->facts, e);
            read_session(t->c, t->facts, e);
        }
    } else if (ox_str_is(kind, "run")) {
        read_run(t, e);
    } else if (ox_str_is(kind, "done")) {
        t->run->peak_rss = ox_json_f64(ox_json_get(e, "peak_rss"));
        t->run->kv_bytes = ox_json_f64(ox_json_get(e, "kv_bytes"));
        t->has_end = true;
    }
}

bool arm_time(arm_context *c, arm *a, const arm_request *r, arm_run *run, char reason[REASON_MOST])
{
    timing t = {.c = c, .facts = &a->facts, .run = run, .n_prompt = r->n_prompt};
    *run = (arm_run){0};
    if (!arm_execute(c, a, r, on_event, &t, reason)) return false;
    if (t.has_run && t.has_end) return true;
    snprintf(reason, REASON_MOST, "ended without a result");
    return false;
}
