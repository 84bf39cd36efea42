/* bench_model.c - prompt processing and decoding speed of a model, with the roof measured in the
 * same run: operations for prompts, bytes for decoding. The first repetition warms up and is not
 * counted. Token ids are made up: speed does not depend on them. */
#include "cli/bench.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LIST = 16, MAX_BATCH = 64 };

typedef struct list {
    int64_t v[MAX_LIST];
    size_t n;
} list;

typedef struct measurement {
    int64_t n_prompt, n_new, depth, batch;
    bench_samples samples, roofs;
} measurement;

typedef struct bench {
    const cli_options *o;
    ox_model *m;
    ox_model_cost cost;
    OX_VEC(measurement) rows;
} bench;

static ox_status read_list(list *l, const char *text, const char *otherwise, const char *flag,
                           int64_t least, ox_err *err)
{
    const char *at = text ? text : otherwise;
    l->n = 0;
    while (*at) {
        const size_t n = strcspn(at, ",");
        if (l->n == MAX_LIST || !ox_str_to_i64((ox_str){at, n}, &l->v[l->n]) || l->v[l->n] < least)
            return OX_FAIL(err, OX_BAD_ARGUMENT,
                           "%s expects numbers >= %lld such as 128,512, found '%s'", flag,
                           (long long)least, text ? text : otherwise);
        l->n++;
        at += n + (at[n] != 0);
    }
    return OX_OK;
}

static int32_t made_up_id(const ox_model *m, int64_t i)
{
    return (int32_t)((i * 7919 + 13) % (ox_model_vocab(m) > 20100 ? 20000 : ox_model_vocab(m)));
}

enum { FILL = 2048 }; /* the largest chunk of any device */

static ox_status fill(ox_session *s, const ox_model *m, int64_t n, ox_err *err)
{
    int32_t ids[FILL];
    for (int64_t at = 0; at < n;) {
        const int64_t k = n - at < FILL ? n - at : FILL;
        for (int64_t i = 0; i < k; i++)
            ids[i] = made_up_id(m, at + i);
        OX_TRY(ox_session_append(s, ids, (size_t)k, 0, NULL, NULL, err));
        at += k;
        if (cli_interrupted()) return OX_FAIL(err, OX_CANCELLED, "interrupted");
    }
    return OX_OK;
}

/* Decoding one sequence on a device goes through its own loop, as in oxgen generate: greedy, end of
 * text ignored. The first WARM_TOKENS do not count. */
enum { WARM_TOKENS = 8 };

typedef struct token_clock {
    int64_t n;
    double first_counted, last;
} token_clock;

static int on_bench_token(void *user, const char *text, size_t n, int32_t id)
{
    token_clock *c = user;
    (void)text, (void)n;
    if (id < 0) return 0;
    c->last = ox_clock_seconds();
    if (++c->n == WARM_TOKENS) c->first_counted = c->last;
    return cli_interrupted();
}

static ox_status time_stream(ox_session *s, const ox_model *m, int64_t n_new, double *speed,
                             ox_err *err)
{
    ox_sampler_options so;
    ox_generate_options go;
    token_clock clock = {0};
    ox_finish why;
    if (!ox_session_logits(s)) OX_TRY(fill(s, m, 1, err));
    ox_sampler_options_init(&so);
    ox_generate_options_init(&go);
    go.sampler = &so;
    go.max_new = n_new;
    go.ignore_eos = 1;
    go.on_text = on_bench_token;
    go.user = &clock;
    OX_TRY(ox_generate(s, &go, &why, err));
    if (why == OX_FINISH_CANCELLED) return OX_FAIL(err, OX_CANCELLED, "interrupted");
    *speed = (double)(clock.n - WARM_TOKENS) / (clock.last - clock.first_counted);
    return OX_OK;
}

/* One timed repetition: tokens per second. */
static ox_status time_once(const bench *b, const measurement *r, ox_session *const *sessions,
                           double *speed, ox_err *err)
{
    const size_t n = (size_t)r->batch;
    int32_t ids[MAX_BATCH];
    for (size_t i = 0; i < n; i++)
        OX_TRY(ox_session_rewind(sessions[i], (size_t)r->depth, err));
    if (n == 1 && !r->n_prompt && r->n_new > 2 * WARM_TOKENS &&
        strcmp(ox_model_device(b->m), "cpu"))
        return time_stream(sessions[0], b->m, r->n_new, speed, err);
    const double start = ox_clock_seconds();
    for (size_t i = 0; i < n && r->n_prompt; i++)
        OX_TRY(fill(sessions[i], b->m, r->n_prompt, err));
    for (int64_t k = 0; k < r->n_new; k++) {
        for (size_t i = 0; i < n; i++)
            ids[i] = made_up_id(b->m, k + (int64_t)i * 31);
        OX_TRY(ox_sessions_step(sessions, ids, n, err));
        if (cli_interrupted()) return OX_FAIL(err, OX_CANCELLED, "interrupted");
    }
    *speed = (double)((r->n_prompt + r->n_new) * r->batch) / (ox_clock_seconds() - start);
    return OX_OK;
}

static ox_status roof_of(const bench *b, const measurement *r, double *roof, ox_err *err)
{
    const int32_t threads = ox_model_n_threads(b->m);
    double rate;
    if (r->n_prompt) {
        OX_TRY(ox_roof_int8(threads, 0.05, &rate, err));
        *roof = rate / b->cost.ops;
        return OX_OK;
    }
    const double most = 512e6, bytes = b->cost.weight_bytes;
    OX_TRY(ox_roof_read((size_t)(bytes < most ? bytes : most), threads, 0.1, &rate, err));
    const double batch = (double)r->batch, depth = (double)r->depth + (double)r->n_new / 2;
    *roof = batch * rate / (bytes + batch * depth * b->cost.kv_bytes_per_position);
    return OX_OK;
}

static ox_status run_row(bench *b, measurement *r, ox_err *err)
{
    ox_session *sessions[MAX_BATCH] = {0};
    const long long repeat = b->o->has_bench_repeat ? b->o->bench_repeat : 5;
    ox_status st = OX_OK;
    for (int64_t i = 0; !st && i < r->batch; i++) {
        st = ox_session_open(&sessions[i], b->m, err);
        if (!st) st = fill(sessions[i], b->m, r->depth, err);
    }
    for (long long k = -1; !st && k < repeat; k++) {
        double speed = 0, roof = 0;
        st = time_once(b, r, sessions, &speed, err);
        if (!st) st = roof_of(b, r, &roof, err);
        if (st || k < 0) continue;
        r->samples.v[r->samples.n++] = speed;
        r->roofs.v[r->roofs.n++] = roof;
        cli_progress((void *)(uintptr_t)b->o, "bench", (uint64_t)k + 1, (uint64_t)repeat);
    }
    cli_progress_end();
    for (int64_t i = 0; i < r->batch; i++)
        ox_session_close(&sessions[i]);
    return st;
}

static void row_name(const measurement *r, char *text, size_t size)
{
    int n = r->n_prompt ? snprintf(text, size, "pp%lld", (long long)r->n_prompt)
                        : snprintf(text, size, "tg%lld", (long long)r->n_new);
    if (r->depth) n += snprintf(text + n, size - (size_t)n, "@d%lld", (long long)r->depth);
    if (r->batch > 1) snprintf(text + n, size - (size_t)n, " b%lld", (long long)r->batch);
}

static ox_status run_all(bench *b, ox_err *err)
{
    const cli_options *o = b->o;
    list prompts, news, depths, batches;
    OX_TRY(read_list(&prompts, o->bench_prompt, "128,512", "-p", 1, err));
    OX_TRY(read_list(&news, o->bench_new, "128", "-n", 1, err));
    OX_TRY(read_list(&depths, o->bench_depth, "0", "-d", 0, err));
    OX_TRY(read_list(&batches, o->bench_batch, "1", "-b", 1, err));
    for (size_t d = 0; d < depths.n; d++)
        for (size_t k = 0; k < batches.n; k++)
            for (size_t i = 0; i < prompts.n + news.n; i++) {
                measurement r = {.depth = depths.v[d], .batch = batches.v[k]};
                if (r.batch > MAX_BATCH)
                    return OX_FAIL(err, OX_BAD_ARGUMENT, "-b %lld: at most %d sequences at once",
                                   (long long)r.batch, MAX_BATCH);
                if (i < prompts.n)
                    r.n_prompt = prompts.v[i];
                else
                    r.n_new = news.v[i - prompts.n];
                OX_TRY(run_row(b, &r, err));
                if (!ox_vec_push(&b->rows, r)) return OX_FAIL(err, OX_NO_MEMORY, "no memory");
            }
    return OX_OK;
}

static void put_table(const bench *b, ox_buf *out)
{
    const char *line =
        b->o->csv ? "%s,%.2f,%.2f,%.2f,%.2f,%.3f\n" : "%-18s %10.2f %10.2f %10.2f %12.2f %7.3f\n";
    if (b->o->csv)
        ox_buf_put_z(out, "name,median,min,max,roof,share\n");
    else
        ox_buf_put_z(out, "tokens per second; ppN: a prompt of N tokens, tgN: N new tokens one by "
                          "one, @dN: behind N in the cache, bN: N sequences at once; roof: what "
                          "the machine could do, measured in the same run; share: median / roof\n");
    if (!b->o->csv)
        ox_buf_printf(out, "%-18s %10s %10s %10s %12s %7s\n", "", "median", "min", "max", "roof",
                      "share");
    for (size_t i = 0; i < b->rows.n; i++) {
        const measurement *r = &b->rows.p[i];
        char name[64];
        row_name(r, name, sizeof(name));
        const double median = bench_quantile(&r->samples, 0.5),
                     roof = bench_quantile(&r->roofs, 0.5);
        char text[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), line, name, median, bench_quantile(&r->samples, 0),
                 bench_quantile(&r->samples, 1), roof, median / roof);
#pragma GCC diagnostic pop
        ox_buf_put_z(out, text);
    }
}

static ox_status put_json(const bench *b, ox_buf *out, ox_err *err)
{
    char hash[65];
    const char *path = b->o->args.p[0];
    OX_TRY(ox_sha256_path(hash, path, err));
    ox_buf_put_z(out, "{\"machine\":");
    bench_put_machine(out);
    ox_buf_put_z(out, ",\"model\":{\"path\":");
    cli_json_str(out, path, strlen(path));
    ox_buf_printf(out,
                  ",\"sha256\":\"%s\",\"weight_bytes\":%.0f},\"settings\":{\"threads\":%d},"
                  "\"measurements\":[",
                  hash, b->cost.weight_bytes, ox_model_n_threads(b->m));
    for (size_t i = 0; i < b->rows.n; i++) {
        const measurement *r = &b->rows.p[i];
        char name[64];
        row_name(r, name, sizeof(name));
        const double median = bench_quantile(&r->samples, 0.5),
                     roof = bench_quantile(&r->roofs, 0.5);
        ox_buf_printf(
            out,
            "%s{\"name\":\"%s\",\"n_prompt\":%lld,\"n_new\":%lld,\"depth\":%lld,\"batch\":%lld,"
            "\"unit\":\"tok/s\",\"samples\":",
            i ? "," : "", name, (long long)r->n_prompt, (long long)r->n_new, (long long)r->depth,
            (long long)r->batch);
        bench_put_samples(out, &r->samples);
        ox_buf_printf(
            out, ",\"median\":%.9g,\"min\":%.9g,\"max\":%.9g,\"roof\":%.9g,\"share\":%.6g}", median,
            bench_quantile(&r->samples, 0), bench_quantile(&r->samples, 1), roof, median / roof);
    }
    ox_buf_put_z(out, "]}\n");
    return OX_OK;
}

int bench_model(const cli_options *o)
{
    bench b = {.o = o};
    ox_err err = OX_ERR_INIT;
    ox_buf out = {0};

    if (bench_check_repeat(o)) return 2;
    ox_status st = cli_open_model(&b.m, o, o->args.p[0], 0, &err);
    if (!st) st = ox_model_cost_of(b.m, &b.cost, &err);
    if (!st) st = run_all(&b, &err);
    if (!st && o->json) st = put_json(&b, &out, &err);
    if (!st && !o->json) put_table(&b, &out);
    const int code = st ? cli_fail(&err) : cli_stdout(ox_buf_view(&out));
    ox_vec_deinit(&b.rows);
    ox_buf_deinit(&out);
    return cli_close_model(&b.m, o, code);
}
