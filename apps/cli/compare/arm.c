/* arm.c - the hidden command `oxgen arm`: one run of one arm, in this process. Reads one request
 * (JSON) from standard input, answers with one JSON object a line on standard output:
 *   {"event":"hello",…} {"event":"loaded",…} then for mode "time" {"event":"run",…}, for mode
 *   "logits" {"event":"step",…} a step, then {"event":"done",…}; or {"event":"fail",…} instead.
 * Nothing is printed, measured or profiled inside what is timed. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "cli/compare/compare.h"
#include "oxgen/arm.h"
#include "oxgen_build.h"

#include <math.h>
#include <stdio.h>

enum { REQUEST_MOST = 64 << 20, ORT_MOST = 64 };

typedef struct ids {
    int32_t *p;
    size_t n;
} ids;

typedef struct request {
    ox_arena arena;
    const ox_json *root;
    const char *kind, *mode, *model;
    ids prompt, forced;
    size_t n_new;
    const char *ort[ORT_MOST];
    size_t n_ort;
    int32_t ask[2];
} request;

typedef struct engine {
    ox_model *m;
    ox_oga *g;
    FILE *write;
    ox_mapping against;
    const request *r;
    ox_buf out;
    size_t vocab;
    bool failed_write;
} engine;

typedef struct timed {
    int32_t *ids;
    uint64_t *ns, prompt_ns;
    size_t n;
    uint64_t kv_bytes;
} timed;

/* ---- the request ---- */

static const char *text_at(const request *r, const char *key)
{
    const ox_str s = ox_json_str(ox_json_get(r->root, key));
    return s.n ? s.p : NULL; /* strings of a tree end with a NUL */
}

static ox_status read_ids(ids *out, const request *r, const char *key, ox_err *err)
{
    const ox_json *list = ox_json_get(r->root, key);
    out->n = ox_json_n(list);
    out->p = ox_calloc(out->n ? out->n : 1, sizeof(*out->p));
    if (!out->p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for token ids");
    for (size_t i = 0; i < out->n; i++) {
        const int64_t v = ox_json_i64(ox_json_at(list, i));
        if (v < 0 || v > INT32_MAX) return OX_FAIL(err, OX_BAD_ARGUMENT, "%s: no token id", key);
        out->p[i] = (int32_t)v;
    }
    return OX_OK;
}

static ox_status read_request(request *r, ox_err *err)
{
    ox_buf text = {0};
    int64_t n = 0, ask[2] = {-1, -1};
    ox_status st = ox_file_read(&text, "-", REQUEST_MOST, err);
    if (!st) st = ox_json_parse(&r->root, &r->arena, ox_buf_view(&text), err);
    ox_buf_deinit(&text);
    OX_TRY(st);
    OX_TRY(ox_json_need_i64(r->root, "protocol", ARM_PROTOCOL, ARM_PROTOCOL, &n, err));
    OX_TRY(ox_json_need_i64(r->root, "n_new", 0, 1 << 24, &n, err));
    r->n_new = (size_t)n;
    r->kind = text_at(r, "kind");
    r->mode = text_at(r, "mode");
    r->model = text_at(r, "model");
    if (!r->kind || !r->mode || !r->model)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "a request needs kind, mode and model");
    OX_TRY(read_ids(&r->prompt, r, "prompt", err));
    OX_TRY(read_ids(&r->forced, r, "forced", err));
    for (size_t i = 0; i < 2; i++) {
        const ox_json *id = ox_json_at(ox_json_get(r->root, "ask"), i);
        if (id) ask[i] = ox_json_i64(id);
        r->ask[i] = (int32_t)ask[i];
    }
    const ox_json *ort = ox_json_get(r->root, "ort_options");
    for (size_t i = 0; i < ox_json_n(ort) && i < ORT_MOST; i++)
        r->ort[r->n_ort++] = ox_json_str(ox_json_at(ort, i)).p;
    return OX_OK;
}

static void free_request(request *r)
{
    ox_free(r->prompt.p);
    ox_free(r->forced.p);
    ox_arena_deinit(&r->arena);
}

/* ---- events ---- */

static ox_json_writer begin(engine *e, const char *event)
{
    ox_json_writer w = {.out = &e->out};
    ox_buf_clear(&e->out);
    ox_json_begin_object(&w);
    ox_json_put_key(&w, "event");
    ox_json_put_z(&w, event);
    return w;
}

static void end(engine *e, ox_json_writer *w)
{
    ox_json_end_object(w);
    ox_buf_put_c(&e->out, '\n');
    if (fwrite(e->out.p, 1, e->out.n, stdout) != e->out.n || fflush(stdout)) e->failed_write = true;
}

static void put_z(ox_json_writer *w, const char *key, const char *z)
{
    ox_json_put_key(w, key);
    ox_json_put_z(w, z);
}

static void put_i(ox_json_writer *w, const char *key, int64_t v)
{
    ox_json_put_key(w, key);
    ox_json_put_i64(w, v);
}

static void put_f(ox_json_writer *w, const char *key, double v)
{
    ox_json_put_key(w, key);
    ox_json_put_f64(w, v);
}

/* The largest resident memory so far; that of the process, not of what started it. */
static int64_t peak_rss(void)
{
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    int64_t kb = 0;
    if (!ox_file_read(&b, "/proc/self/status", 1 << 16, &err)) {
        size_t at = ox_str_find(ox_buf_view(&b), OX_STR("VmHWM:"), 0);
        for (at = at == SIZE_MAX ? b.n : at + 6; at < b.n && b.p[at] != 'k'; at++)
            if (b.p[at] >= '0' && b.p[at] <= '9') kb = kb * 10 + (b.p[at] - '0');
    }
    ox_buf_deinit(&b);
    return kb * 1024;
}

static void say_loaded(engine *e, double ms)
{
    ox_json_writer w = begin(e, "loaded");
    ox_library lib;
    ox_model_cost cost = {0};
    ox_err ignored = OX_ERR_INIT;
    put_f(&w, "ms", ms);
    put_z(&w, "backend", e->m ? ox_model_backend(e->m) : "oga");
    if (e->m) {
        put_z(&w, "device", ox_model_device(e->m));
        put_i(&w, "threads", ox_model_n_threads(e->m));
        put_i(&w, "vocab", ox_model_vocab(e->m));
        put_i(&w, "context", ox_model_context(e->m));
        if (!ox_model_cost_of(e->m, &cost, &ignored)) {
            put_f(&w, "weight_bytes", cost.weight_bytes);
            put_f(&w, "kv_bytes_per_position", cost.kv_bytes_per_position);
            put_f(&w, "ops", cost.ops);
        }
    }
    ox_json_put_key(&w, "session");
    ox_json_put_raw(&w, ox_str_of(e->m ? ox_model_session_json(e->m) : ox_oga_session_json(e->g)));
    ignored = (ox_err)OX_ERR_INIT;
    if (!(e->m ? ox_model_library(e->m, &lib, &ignored) : ox_oga_library(e->g, &lib, &ignored))) {
        put_z(&w, "library_path", lib.path);
        put_z(&w, "library_version", lib.version);
        put_i(&w, "library_api", lib.api);
        put_z(&w, "providers", lib.providers);
    }
    end(e, &w);
}

static int say_failed(engine *e, const ox_err *err)
{
    static const struct {
        ox_status status;
        int code;
    } codes[] = {
#define X(name, value, text, code) {OX_##name, code},
        OX_STATUS_LIST(X)
#undef X
    };
    int code = 1;
    ox_json_writer w = begin(e, "fail");
    for (size_t i = 0; i < OX_COUNT(codes); i++)
        if (codes[i].status == err->status) code = codes[i].code;
    put_i(&w, "code", code);
    put_z(&w, "message", err->msg[0] ? err->msg : ox_status_text(err->status));
    end(e, &w);
    return code;
}

/* ---- logits ---- */

typedef struct best {
    int64_t first, second;
} best;

static best two_best(const float *x, size_t n)
{
    best b = {-1, -1};
    for (size_t i = 0; i < n; i++) {
        if (b.second >= 0 && !(x[i] > x[b.second])) continue;
        if (b.first < 0 || x[i] > x[b.first]) {
            b.second = b.first;
            b.first = (int64_t)i;
        } else {
            b.second = (int64_t)i;
        }
    }
    return b;
}

static double at(const float *x, size_t n, int64_t i)
{
    return i >= 0 && (size_t)i < n ? (double)x[i] : (double)NAN;
}

/* Row `step` of the file of another arm's logits: a header of one row's floats, then rows. */
static const float *row_of(const engine *e, size_t step, size_t *vocab)
{
    const float *f = (const float *)(const void *)e->against.bytes;
    if (e->against.n < sizeof(float)) return NULL;
    *vocab = (size_t)f[0];
    const size_t end_bytes = (step + 1) * *vocab * sizeof(float) + sizeof(float);
    return *vocab && end_bytes <= e->against.n ? f + 1 + step * *vocab : NULL;
}

static void put_against(ox_json_writer *w, const engine *e, size_t step, const float *x, size_t n)
{
    size_t m = 0;
    const float *y = row_of(e, step, &m);
    double most = 0, sum = 0, squares = 0, wrong = 0;
    if (!y) return;
    if (n < m) m = n;
    for (size_t i = 0; i < m; i++) {
        const double d = fabs((double)x[i] - (double)y[i]);
        if (!(d <= most)) most = d; /* a NaN stays */
        wrong += d * d;
        sum += (double)y[i];
        squares += (double)y[i] * (double)y[i];
    }
    const double spread = squares - sum * sum / (double)m; /* times m */
    const best b = two_best(y, m);
    put_f(w, "difference", most);
    put_f(w, "relative", spread > 0 ? sqrt(wrong / spread) : (double)NAN);
    put_i(w, "ref_first", b.first);
    put_f(w, "ref_margin", at(y, m, b.first) - at(y, m, b.second));
}

static ox_status on_logits(void *user, size_t step, const float *x, size_t n)
{
    engine *e = user;
    const request *r = e->r;
    const best b = two_best(x, n);
    const float header = (float)n;
    ox_json_writer w = begin(e, "step");
    put_i(&w, "i", (int64_t)step);
    put_i(&w, "first", b.first);
    put_i(&w, "second", b.second);
    put_f(&w, "margin", at(x, n, b.first) - at(x, n, b.second));
    if (step < r->forced.n) put_f(&w, "gap", at(x, n, b.first) - at(x, n, r->forced.p[step]));
    put_f(&w, "largest", fmax(fabs(at(x, n, b.first)), fabs(at(x, n, b.second))));
    put_f(&w, "ask0", at(x, n, r->ask[0]));
    put_f(&w, "ask1", at(x, n, r->ask[1]));
    if (e->against.n) put_against(&w, e, step, x, n);
    end(e, &w);
    if (e->write && ((!step && fwrite(&header, sizeof(header), 1, e->write) != 1) ||
                     fwrite(x, sizeof(*x), n, e->write) != n))
        e->failed_write = true;
    return e->failed_write ? OX_IO : OX_OK;
}

/* ---- running ---- */

/* Its positions count from the beginning of the sequence. */
static ox_status on_oga_logits(void *user, size_t position, const float *x, size_t n)
{
    const engine *e = user;
    return on_logits(user, position + 1 - e->r->prompt.n, x, n);
}

/* The same request as ox_oga_run takes, by a session and a sampler of this engine. */
static ox_status run_session(engine *e, bool want_logits, size_t n_new, timed *t, ox_err *err)
{
    const request *r = e->r;
    ox_session *s = NULL;
    ox_sampler *sampler = NULL;
    ox_sampler_options so;
    ox_status st = OX_OK;
    ox_sampler_options_init(&so);
    so.temperature = 0;
    const double start = ox_clock_seconds();
    OX_TRY_GOTO(ox_sampler_open(&sampler, &so, err));
    OX_TRY_GOTO(ox_session_open(&s, e->m, err));
    OX_TRY_GOTO(ox_session_append(s, r->prompt.p, r->prompt.n, 0, NULL, NULL, err));
    t->prompt_ns = (uint64_t)((ox_clock_seconds() - start) * 1e9);
    for (t->n = 0; t->n < n_new;) {
        const float *x = ox_session_logits(s);
        int32_t id = want_logits && t->n < r->forced.n ? r->forced.p[t->n] : 0;
        if (want_logits)
            OX_TRY_GOTO(on_logits(e, t->n, x, (size_t)ox_model_vocab(e->m)));
        else
            OX_TRY_GOTO(ox_sampler_pick(sampler, x, (size_t)ox_model_vocab(e->m),
                                        r->prompt.n + t->n, &id, err));
        t->ns[t->n] = (uint64_t)((ox_clock_seconds() - start) * 1e9);
        t->ids[t->n++] = id;
        if (t->n < n_new) OX_TRY_GOTO(ox_sessions_step(&s, &id, 1, err));
    }
    t->kv_bytes = ox_session_kv_bytes(s);
fail:
    ox_session_close(&s);
    ox_sampler_close(&sampler);
    if (st == OX_IO && !err->status) return OX_FAIL(err, OX_IO, "cannot write logits");
    return st;
}

static ox_status run_oga(engine *e, bool want_logits, size_t n_new, timed *t, ox_err *err)
{
    const request *r = e->r;
    ox_oga_request q;
    ox_oga_times times = {0};
    ox_oga_request_init(&q);
    q.prompt = r->prompt.p;
    q.n_prompt = r->prompt.n;
    q.n_new = n_new;
    if (want_logits) {
        q.forced = r->forced.n >= n_new ? r->forced.p : NULL;
        q.on_logits = on_oga_logits;
        q.user = e;
    }
    t->n = 0;
    OX_TRY(ox_oga_run(e->g, &q, t->ids, t->ns, &t->n, &times, err));
    t->prompt_ns = times.prompt;
    return OX_OK;
}

static ox_status run_once(engine *e, bool want_logits, size_t n_new, timed *t, ox_err *err)
{
    if (!e->r->prompt.n) return OX_FAIL(err, OX_BAD_ARGUMENT, "the prompt is empty");
    return e->m ? run_session(e, want_logits, n_new, t, err)
                : run_oga(e, want_logits, n_new, t, err);
}

static void say_run(engine *e, const timed *t, double first_ms)
{
    ox_json_writer w = begin(e, "run");
    put_f(&w, "first_ms", first_ms);
    put_f(&w, "prompt_ms", (double)t->prompt_ns / 1e6);
    ox_json_put_key(&w, "ids");
    ox_json_begin_array(&w);
    for (size_t i = 0; i < t->n; i++)
        ox_json_put_i64(&w, t->ids[i]);
    ox_json_end_array(&w);
    ox_json_put_key(&w, "ms");
    ox_json_begin_array(&w);
    for (size_t i = 0; i < t->n; i++)
        ox_json_put_f64(&w, (double)t->ns[i] / 1e6);
    ox_json_end_array(&w);
    end(e, &w);
}

/* A cold first request of one token warms up what runs once a process, then the timed one. */
static ox_status run_mode(engine *e, ox_err *err)
{
    const request *r = e->r;
    const size_t n = r->n_new ? r->n_new : 1;
    timed t = {.ids = ox_calloc(n, sizeof(*t.ids)), .ns = ox_calloc(n, sizeof(*t.ns))};
    ox_status st = OX_OK;
    if (!t.ids || !t.ns) {
        st = OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu tokens", n);
        goto fail;
    }
    if (!strcmp(r->mode, "time")) {
        OX_TRY_GOTO(run_once(e, false, 1, &t, err));
        const double first_ms = (double)t.ns[0] / 1e6;
        OX_TRY_GOTO(run_once(e, false, n, &t, err));
        say_run(e, &t, first_ms);
    } else if (!strcmp(r->mode, "logits")) {
        OX_TRY_GOTO(run_once(e, true, n, &t, err));
    } else {
        OX_TRY_GOTO(run_once(e, false, n, &t, err));
        say_run(e, &t, (double)t.ns[0] / 1e6);
    }
    ox_json_writer w = begin(e, "done");
    put_i(&w, "peak_rss", peak_rss());
    put_i(&w, "kv_bytes", (int64_t)t.kv_bytes);
    end(e, &w);
fail:
    ox_free(t.ids);
    ox_free(t.ns);
    return st;
}

/* ---- opening ---- */

static ox_status open_files(engine *e, ox_err *err)
{
    const char *write = text_at(e->r, "write"), *against = text_at(e->r, "against");
    if (against) OX_TRY(ox_mapping_open(&e->against, against, err));
    if (write) {
        e->write = fopen(write, "wb");
        if (!e->write) return OX_FAIL(err, OX_IO, "%s: cannot be written", write);
    }
    return OX_OK;
}

static ox_status open_engine(engine *e, ox_err *err)
{
    const request *r = e->r;
    const int64_t threads = ox_json_i64(ox_json_get(r->root, "threads"));
    if (!strcmp(r->kind, "oga")) {
        ox_oga_options o;
        ox_oga_options_init(&o);
        o.n_threads = (int32_t)threads;
        o.device = text_at(r, "device");
        o.ort_options = r->ort;
        o.n_ort_options = r->n_ort;
        return ox_oga_open(&e->g, r->model, &o, err);
    }
    ox_model_options o;
    ox_model_options_init(&o);
    o.backend = r->kind;
    o.n_threads = (int32_t)threads;
    o.context = ox_json_i64(ox_json_get(r->root, "context"));
    o.device = text_at(r, "device");
    o.numerics = text_at(r, "numerics");
    o.kv = text_at(r, "kv");
    o.quant = text_at(r, "quant");
    o.ort_options = r->ort;
    o.n_ort_options = r->n_ort;
    return ox_model_open(&e->m, r->model, &o, err);
}

int cmd_arm(const cli_options *o)
{
    request r = {.arena = OX_ARENA_INIT};
    engine e = {.r = &r};
    ox_err err = OX_ERR_INIT;
    int code = 0;
    (void)o;
    ox_json_writer w = begin(&e, "hello");
    put_i(&w, "protocol", ARM_PROTOCOL);
    put_z(&w, "version", ox_version());
    put_z(&w, "commit", OXGEN_COMMIT);
    end(&e, &w);
    ox_status st = read_request(&r, &err);
    if (!st) st = open_files(&e, &err);
    const double start = ox_clock_seconds();
    if (!st) st = open_engine(&e, &err);
    if (!st) {
        say_loaded(&e, (ox_clock_seconds() - start) * 1e3);
        st = run_mode(&e, &err);
    }
    if (e.write && fclose(e.write) && !st) st = OX_FAIL(&err, OX_IO, "cannot write logits");
    if (st) code = say_failed(&e, &err);
    ox_oga_close(&e.g);
    ox_model_close(&e.m);
    ox_mapping_close(&e.against);
    ox_buf_deinit(&e.out);
    free_request(&r);
    return code;
}
