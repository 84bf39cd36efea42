/* bench_micro.c - `oxgen bench micro`: parts of the engine on made-up data, each beside the roof
 * measured right before it. Rows whose part does not exist are listed with the reason.
 *
 * Samples of one stretch resemble each other more than they resemble those of another run: memory
 * lies differently, a neighbour comes or goes. So all rows are measured in turn, ROUNDS times over,
 * each time with new data elsewhere; `bench diff` compares rounds. */
#include "cli/bench.h"

#include "base/arena.h"
#include "base/fs.h"
#include "base/json.h"
#include "oxgen/arm.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 5, COMPARATORS_MOST = 4 << 20 };

typedef struct result {
    size_t i;
    ox_micro row;
    ox_micro_cost cost;
    bench_samples ms;      /* round after round */
    size_t rounds[ROUNDS]; /* samples of each */
    size_t per_sample;
    double roof; /* ms, the best of the rounds: a slow moment raises it; 0 = none */
    const char *roof_kind;
    bench_samples peer; /* the same by another engine, round after round */
    bool no_peer;
} result;

typedef struct micro {
    const cli_options *o;
    size_t n_rounds;
    ox_library library;
    ox_arena arena;
    const ox_json *others; /* rows of --comparators */
    bench_limits limits;   /* of a round */
    double roof_seconds;
    OX_VEC(result) rows;
} micro;

static int wanted(const cli_options *o, const char *name)
{
    for (size_t i = 1; i < o->args.n; i++)
        if (strstr(name, o->args.p[i])) return 1;
    return o->args.n < 2;
}

static ox_status measure(const micro *m, result *r, size_t round, ox_err *err)
{
    ox_micro_case *c = NULL;
    bench_samples ms = {.n = 0};
    double roof = 0;
    const char *kind = NULL;
    OX_TRY(ox_micro_open(&c, r->i, (uint32_t)round + 1, err));
    ox_micro_cost_of(c, &r->cost);
    ox_status st = OX_OK;
    if (!m->o->no_roof) st = bench_roof(&r->cost, m->roof_seconds, &roof, &kind, err);
    if (!st) st = bench_time(c, &m->limits, &ms, &r->per_sample, err);
    ox_micro_close(&c);
    if (!r->roof || roof < r->roof) {
        r->roof = roof;
        r->roof_kind = kind;
    }
    memcpy(r->ms.v + r->ms.n, ms.v, ms.n * sizeof(ms.v[0]));
    r->ms.n += ms.n;
    r->rounds[round] = ms.n;
    return st;
}

/* The row by ONNX Runtime, right after ours; a row that it does not have stays without. */
static ox_status measure_peer(const micro *m, result *r, size_t round, ox_err *err)
{
    ox_micro_case *c = NULL;
    bench_samples ms = {.n = 0};
    size_t per_sample;
    ox_err refused = OX_ERR_INIT;
    if (!m->o->comparator || r->no_peer) return OX_OK;
    r->no_peer = ox_micro_open_peer(&c, r->i, (uint32_t)round + 1, &refused) != OX_OK;
    if (r->no_peer) return OX_OK;
    const ox_status st = bench_time(c, &m->limits, &ms, &per_sample, err);
    ox_micro_close(&c);
    memcpy(r->peer.v + r->peer.n, ms.v, ms.n * sizeof(ms.v[0]));
    r->peer.n += ms.n;
    return st;
}

static double iqr(const bench_samples *s)
{
    return bench_quantile(s, 0.75) - bench_quantile(s, 0.25);
}

/* What another engine needs for the row, measured here or by a helper. */
static const ox_json *other_row(const micro *m, const result *r)
{
    for (size_t i = 0; i < ox_json_n(m->others); i++) {
        const ox_json *row = ox_json_at(m->others, i);
        if (ox_str_is(ox_json_str(ox_json_get(row, "name")), r->row.name)) return row;
    }
    return NULL;
}

static void read_other(const micro *m, result *r)
{
    const ox_json *list = ox_json_get(other_row(m, r), "samples");
    for (size_t i = 0; i < ox_json_n(list) && r->peer.n < BENCH_SAMPLES; i++)
        r->peer.v[r->peer.n++] = ox_json_f64(ox_json_at(list, i));
}

static void put_comparator(const micro *m, ox_buf *out, const result *r)
{
    const ox_json *other = other_row(m, r);
    ox_buf_put_z(out, ",\"comparator\":");
    if (!r->peer.n) {
        ox_buf_put_z(out, "null");
        return;
    }
    const ox_str name = ox_json_str(ox_json_get(other, "comparator"));
    ox_buf_put_z(out, "{\"name\":");
    if (name.n)
        cli_json_str(out, name.p, name.n);
    else
        ox_buf_printf(out, "\"ONNX Runtime %s\"", m->library.version);
    ox_buf_put_z(out, ",\"samples\":");
    bench_put_samples(out, &r->peer);
    const double theirs = bench_quantile(&r->peer, 0.5);
    ox_buf_printf(out, ",\"median\":%.9g,\"iqr\":%.6g,\"ratio\":%.6g}", theirs, iqr(&r->peer),
                  theirs / bench_quantile(&r->ms, 0.5));
}

static void put_line(const micro *m, ox_buf *out, const result *r)
{
    char median[32], least[32], roof[32], peer[32];
    if (r->row.absent) {
        ox_buf_printf(out, "%-60s absent: %s\n", r->row.name, r->row.absent);
        return;
    }
    const double ours = bench_quantile(&r->ms, 0.5), theirs = bench_quantile(&r->peer, 0.5);
    ox_buf_printf(out, "%-60s %11s %11s %5.1f%%", r->row.name, bench_ms_text(ours, median),
                  bench_ms_text(bench_quantile(&r->ms, 0), least), 100 * iqr(&r->ms) / ours);
    if (r->roof > 0)
        ox_buf_printf(out, " %11s %-5s %6.3f", bench_ms_text(r->roof, roof), r->roof_kind,
                      r->roof / ours);
    else
        ox_buf_printf(out, " %11s %-5s %6s", "-", "", "-");
    if (r->peer.n)
        ox_buf_printf(out, " %11s %6.2f", bench_ms_text(theirs, peer), theirs / ours);
    else if (m->o->comparator)
        ox_buf_printf(out, " %11s %6s", "-", "-");
    ox_buf_put_c(out, '\n');
}

static void put_row(const micro *m, ox_buf *out, const result *r)
{
    ox_buf_put_z(out, "{\"name\":");
    cli_json_str(out, r->row.name, strlen(r->row.name));
    if (r->row.absent) {
        ox_buf_put_z(out,
                     ",\"unit\":\"ms\",\"samples\":[],\"median\":null,\"iqr\":null,\"roof\":null,"
                     "\"share\":null,\"comparator\":null,\"absent\":");
        cli_json_str(out, r->row.absent, strlen(r->row.absent));
        ox_buf_put_c(out, '}');
        return;
    }
    const double ours = bench_quantile(&r->ms, 0.5);
    ox_buf_put_z(out, ",\"unit\":\"ms\",\"samples\":");
    bench_put_samples(out, &r->ms);
    ox_buf_put_z(out, ",\"rounds\":[");
    for (size_t i = 0; i < ROUNDS && r->rounds[i]; i++)
        ox_buf_printf(out, "%s%zu", i ? "," : "", r->rounds[i]);
    ox_buf_put_c(out, ']');
    ox_buf_printf(out, ",\"median\":%.9g,\"iqr\":%.6g,\"min\":%.9g", ours, iqr(&r->ms),
                  bench_quantile(&r->ms, 0));
    if (r->roof > 0)
        ox_buf_printf(out, ",\"roof\":%.9g,\"share\":%.6g,\"roof_kind\":\"%s\"", r->roof,
                      r->roof / ours, r->roof_kind);
    else
        ox_buf_put_z(out, ",\"roof\":null,\"share\":null,\"roof_kind\":null");
    put_comparator(m, out, r);
    ox_buf_printf(out,
                  ",\"absent\":null,\"threads\":%d,\"runs_per_sample\":%zu,"
                  "\"work\":%.9g,\"work_unit\":\"%s\",\"runs\":",
                  r->cost.n_threads, r->per_sample, r->cost.work, r->cost.unit);
    cli_json_str(out, r->row.runs, strlen(r->row.runs));
    ox_buf_put_c(out, '}');
}

static ox_status choose_rows(micro *m, ox_err *err)
{
    for (size_t i = 0; i < ox_micro_count(); i++) {
        result r = {.i = i};
        OX_TRY(ox_micro_at(i, &r.row, err));
        if (wanted(m->o, r.row.name) && !ox_vec_push(&m->rows, r))
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for results");
    }
    return OX_OK;
}

static ox_status run_rounds(micro *m, ox_err *err)
{
    const size_t n = m->rows.n;
    for (size_t round = 0; round < m->n_rounds; round++)
        for (size_t i = 0; i < n; i++) {
            result *r = &m->rows.p[i];
            cli_progress((void *)(uintptr_t)m->o, "bench micro", round * n + i, m->n_rounds * n);
            if (r->row.absent) continue;
            ox_status st = measure(m, r, round, err);
            if (!st) st = measure_peer(m, r, round, err);
            if (st) ox_err_prefix(err, "%s", r->row.name);
            if (st) return st;
        }
    cli_progress_end();
    return OX_OK;
}

static void put_all(const micro *m, ox_buf *out)
{
    size_t n_few = 0;
    if (m->o->json) {
        ox_buf_put_z(out, "{\"machine\":");
        bench_put_machine(out);
        ox_buf_put_z(out, ",\"rows\":[");
    } else {
        ox_buf_put_z(out, "time of one run; roof: what memory, integer or float units could do at "
                          "best, measured beside it; share: roof / median\n");
        ox_buf_printf(out, "%-60s %11s %11s %6s %11s %-5s %6s", "one run", "median", "min", "IQR",
                      "roof", "", "share");
        if (m->o->comparator) ox_buf_printf(out, " %11s %6s", "comparator", "ratio");
        ox_buf_put_c(out, '\n');
    }
    for (size_t i = 0; i < m->rows.n; i++) {
        if (m->o->json && i) ox_buf_put_c(out, ',');
        n_few += m->rows.p[i].row.few_cpus != 0;
        if (m->o->json)
            put_row(m, out, &m->rows.p[i]);
        else if (!m->rows.p[i].row.few_cpus)
            put_line(m, out, &m->rows.p[i]);
    }
    if (m->o->json) ox_buf_put_z(out, "]}\n");
    if (n_few && !m->o->json)
        ox_buf_printf(out, "left out: %zu row%s of more threads than this machine's %d CPUs\n",
                      n_few, n_few == 1 ? "" : "s", ox_machine_cpus());
}

/* -r N: at most N samples a row, in at most ROUNDS rounds. */
static void set_limits(micro *m)
{
    const size_t n = m->o->has_bench_repeat ? (size_t)m->o->bench_repeat : BENCH_SAMPLES;
    m->n_rounds = n < ROUNDS ? n : ROUNDS;
    m->limits = (bench_limits){.samples = n / m->n_rounds,
                               .join = !m->o->has_bench_repeat,
                               .seconds = 1.0 / ROUNDS,
                               .width = 0.01};
    m->roof_seconds = m->o->has_bench_repeat ? 0.002 : 0.01;
}

/* --runs N: no clock, no calibration, the same instructions every time. */
static ox_status run_only(const micro *m, ox_err *err)
{
    for (size_t i = 0; i < m->rows.n; i++) {
        const result *r = &m->rows.p[i];
        ox_micro_case *c = NULL;
        if (r->row.absent) continue;
        OX_TRY(ox_micro_open(&c, r->i, 1, err));
        const ox_status st = ox_micro_run(c, (size_t)m->o->bench_runs, err);
        ox_micro_close(&c);
        if (st) ox_err_prefix(err, "%s", r->row.name);
        OX_TRY(st);
    }
    return OX_OK;
}

/* --comparator: ONNX Runtime must be there; --comparators FILE: what tools/micro-comparators wrote.
 */
static ox_status open_comparators(micro *m, ox_err *err)
{
    const ox_json *root = NULL;
    ox_buf text = {0};
    if (m->o->comparator) OX_TRY(ox_library_ort(&m->library, err));
    if (!m->o->comparators) return OX_OK;
    ox_status st = ox_file_read(&text, m->o->comparators, COMPARATORS_MOST, err);
    if (!st) st = ox_json_parse(&root, &m->arena, ox_buf_view(&text), err);
    if (!st) m->others = ox_json_get(root, "rows");
    for (size_t i = 0; i < m->rows.n && !st; i++)
        read_other(m, &m->rows.p[i]);
    ox_buf_deinit(&text);
    return st;
}

int bench_micro(const cli_options *o)
{
    micro m = {.o = o, .arena = OX_ARENA_INIT};
    ox_buf out = {0};
    ox_err err = OX_ERR_INIT;
    int code = bench_check_repeat(o);
    if (code) return code;
    if (o->has_bench_runs && (o->bench_runs < 1 || o->bench_runs > 1000000))
        return cli_usage("--runs expects 1 to 1000000, found %lld", o->bench_runs);
    set_limits(&m);
    ox_status st = choose_rows(&m, &err);
    if (!st && !m.rows.n) code = cli_usage("no micro-benchmark has '%s' in its name", o->args.p[1]);
    if (!st && !code) st = open_comparators(&m, &err);
    if (!st && !code) st = o->has_bench_runs ? run_only(&m, &err) : run_rounds(&m, &err);
    if (!st && !code && !o->has_bench_runs) put_all(&m, &out);
    if (st) code = cli_fail(&err);
    if (!code) code = cli_stdout(ox_buf_view(&out));
    ox_vec_deinit(&m.rows);
    ox_arena_deinit(&m.arena);
    ox_buf_deinit(&out);
    return code;
}
