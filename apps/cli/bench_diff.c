/* bench_diff.c - `oxgen bench diff A.json B.json`: two results row by row. The change is that of
 * the median; its 95 % interval comes from drawing anew, with a fixed seed, so that a report can be
 * repeated. Rows that were measured in rounds are drawn in two steps, rounds and then samples
 * within them: samples of one round are no independent witnesses. A row whose interval holds zero
 * shows no difference, and is said to. Two files whose "paired" is true hold rounds that were
 * measured side by side (tools/regress writes such): their medians are compared pair by pair. */
#include "cli/bench.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 64 << 20 };

/* The samples of a row; one round when the file knows of none. */
typedef struct sampled {
    double v[OX_STATS_MOST];
    size_t n, end[OX_STATS_ROUNDS], n_rounds; /* round k is [end[k-1], end[k]) */
} sampled;

typedef struct side {
    const char *path;
    ox_arena arena;
    const ox_json *root, *rows; /* rows or measurements */
} side;

typedef struct settings {
    double confidence; /* 0.95 */
    double threshold;  /* relative; a row is beyond it when its whole interval is */
    bool paired;
} settings;

typedef struct change {
    ox_str name, unit;
    double a, b;           /* medians */
    double middle, lo, hi; /* relative changes */
    bool beyond;           /* slower, the whole interval by more than the threshold */
    const char *verdict;
} change;

/* Cuts the samples where the file says that rounds end; anything odd makes one round of all. */
static void read_rounds(const ox_json *row, sampled *s)
{
    const ox_json *list = ox_json_get(row, "rounds");
    size_t at = 0;
    s->n_rounds = 0;
    for (size_t i = 0; i < ox_json_n(list) && i < OX_STATS_ROUNDS; i++) {
        const int64_t n = ox_json_i64(ox_json_at(list, i));
        if (n < 1 || (uint64_t)n > s->n - at) break;
        s->end[s->n_rounds++] = at += (size_t)n;
    }
    if (at == s->n && s->n_rounds) return;
    s->end[0] = s->n;
    s->n_rounds = 1;
}

static void read_samples(const ox_json *row, sampled *s)
{
    const ox_json *list = ox_json_get(row, "samples");
    s->n = 0;
    for (size_t i = 0; i < ox_json_n(list) && s->n < OX_STATS_MOST; i++) {
        const double v = ox_json_f64(ox_json_at(list, i));
        if (v > 0 && isfinite(v)) s->v[s->n++] = v;
    }
    read_rounds(row, s);
}

static int is_time(ox_str unit)
{
    return ox_str_is(unit, "ms");
}

static ox_rounds rounds_of(const sampled *s)
{
    return (ox_rounds){.v = s->v, .n = s->n, .end = s->end, .n_rounds = s->n_rounds};
}

static void round_medians(double out[OX_STATS_ROUNDS], const sampled *s)
{
    for (size_t k = 0, begin = 0; k < s->n_rounds; begin = s->end[k++])
        out[k] = ox_stats_median(s->v + begin, s->end[k] - begin);
}

static void compare(change *c, const sampled *a, const sampled *b, const settings *set)
{
    const uint64_t seed = ox_hash64(c->name.p, c->name.n);
    ox_interval i;
    c->a = ox_stats_median(a->v, a->n);
    c->b = ox_stats_median(b->v, b->n);
    if (set->paired && a->n_rounds == b->n_rounds && a->n_rounds >= OX_STATS_LEAST) {
        double x[OX_STATS_ROUNDS], y[OX_STATS_ROUNDS];
        round_medians(x, a);
        round_medians(y, b);
        i = ox_stats_ratio_paired(y, x, a->n_rounds, set->confidence, seed);
    } else {
        i = ox_stats_ratio(rounds_of(b), rounds_of(a), set->confidence, seed);
    }
    c->middle = i.middle - 1;
    c->lo = i.lo - 1;
    c->hi = i.hi - 1;
    c->beyond = is_time(c->unit) ? c->lo > set->threshold : c->hi < -set->threshold;
    if (!ox_interval_known(i))
        c->verdict = "too few samples";
    else if (ox_interval_holds(i, 1))
        c->verdict = "no difference shown";
    else
        c->verdict = (c->middle > 0) == is_time(c->unit) ? "slower" : "faster";
}

static ox_status load(side *s, const char *path, ox_err *err)
{
    ox_buf text = {0};
    s->path = path;
    ox_status st = ox_file_read(&text, path, MAX_FILE, err);
    if (!st) {
        st = ox_json_parse(&s->root, &s->arena, ox_buf_view(&text), err);
        if (st) ox_err_prefix(err, "%s", path);
    }
    ox_buf_deinit(&text);
    OX_TRY(st);
    s->rows = ox_json_get(s->root, "rows");
    if (!s->rows) s->rows = ox_json_get(s->root, "measurements");
    if (!ox_json_is(s->rows, OX_JSON_ARRAY))
        return OX_FAIL(
            err, OX_BAD_FILE,
            "%s: neither rows nor measurements in it; expected what 'oxgen bench --json' writes",
            path);
    return OX_OK;
}

static ox_str name_of(const ox_json *row)
{
    return ox_json_str(ox_json_get(row, "name"));
}

static const ox_json *find(const side *s, ox_str name)
{
    for (size_t i = 0; i < ox_json_n(s->rows); i++)
        if (ox_str_eq(name_of(ox_json_at(s->rows, i)), name)) return ox_json_at(s->rows, i);
    return NULL;
}

/* The row of A against B's of the same name; false when there is nothing to compare. */
static int compare_row(change *c, const ox_json *row, const side *b, const settings *set)
{
    sampled sa, sb;
    const ox_json *other = find(b, name_of(row));
    *c = (change){.name = name_of(row), .unit = ox_json_str(ox_json_get(row, "unit"))};
    c->lo = c->hi = c->middle = NAN;
    read_samples(row, &sa);
    sb.n = 0;
    if (other) read_samples(other, &sb);
    c->verdict = !other ? "only in the first" : !sa.n && !sb.n ? "absent in both" : NULL;
    if (!c->verdict && (!sa.n || !sb.n))
        c->verdict = sa.n ? "absent in the second" : "absent in the first";
    if (!c->verdict && !ox_str_eq(c->unit, ox_json_str(ox_json_get(other, "unit"))))
        c->verdict = "different units";
    if (!c->verdict) compare(c, &sa, &sb, set);
    return c->verdict != NULL;
}

static void put_line(ox_buf *out, const change *c)
{
    char a[32] = "-", b[32] = "-";
    ox_buf_printf(out, "%-60.*s ", OX_STR_ARGS(c->name));
    if (c->middle == c->middle && is_time(c->unit)) {
        bench_ms_text(c->a, a);
        bench_ms_text(c->b, b);
    } else if (c->middle == c->middle) {
        snprintf(a, sizeof(a), "%.2f", c->a);
        snprintf(b, sizeof(b), "%.2f", c->b);
    }
    ox_buf_printf(out, "%11s %11s", a, b);
    if (c->lo == c->lo)
        ox_buf_printf(out, " %+7.1f%%  [%+.1f%%, %+.1f%%]  ", 100 * c->middle, 100 * c->lo,
                      100 * c->hi);
    else if (c->middle == c->middle)
        ox_buf_printf(out, " %+7.1f%%  ", 100 * c->middle);
    else
        ox_buf_put_z(out, "  ");
    ox_buf_printf(out, "%s%s\n", c->verdict, c->beyond ? ", beyond the threshold" : "");
}

static void put_number(ox_json_writer *w, const char *key, double v, int known)
{
    ox_json_put_key(w, key);
    if (known)
        ox_json_put_f64(w, v);
    else
        ox_json_put_null(w);
}

static void put_object(ox_json_writer *w, const change *c)
{
    const int known = c->middle == c->middle;
    ox_json_begin_object(w);
    ox_json_put_key(w, "name");
    ox_json_put_str(w, c->name);
    ox_json_put_key(w, "unit");
    ox_json_put_str(w, c->unit);
    put_number(w, "a", c->a, known);
    put_number(w, "b", c->b, known);
    put_number(w, "change", c->middle, known);
    ox_json_put_key(w, "interval");
    if (c->lo == c->lo) {
        ox_json_begin_array(w);
        ox_json_put_f64(w, c->lo);
        ox_json_put_f64(w, c->hi);
        ox_json_end_array(w);
    } else {
        ox_json_put_null(w);
    }
    ox_json_put_key(w, "verdict");
    ox_json_put_z(w, c->verdict);
    ox_json_put_key(w, "beyond");
    ox_json_put_bool(w, c->beyond);
    ox_json_end_object(w);
}

/* What would make the two incomparable. */
static void note_machines(const cli_options *o, const side *a, const side *b)
{
    static const char *const keys[] = {"machine.cpu", "machine.tier", "machine.cores"};
    for (size_t i = 0; i < OX_COUNT(keys); i++) {
        const ox_json *x = ox_json_path(a->root, keys[i]), *y = ox_json_path(b->root, keys[i]);
        if (!ox_str_eq(ox_json_str(x), ox_json_str(y)) || ox_json_i64(x) != ox_json_i64(y))
            cli_note(o, "%s differs: times of the two files may not be comparable", keys[i]);
    }
}

static int report(const cli_options *o, const side *a, const side *b, const settings *set)
{
    ox_buf out = {0};
    ox_json_writer w = {.out = &out};
    change c;
    if (o->json) {
        ox_json_begin_object(&w);
        ox_json_put_key(&w, "a");
        ox_json_put_z(&w, a->path);
        ox_json_put_key(&w, "b");
        ox_json_put_z(&w, b->path);
        ox_json_put_key(&w, "rows");
        ox_json_begin_array(&w);
    } else {
        ox_buf_printf(&out, "%-60s %11s %11s %8s  %s\n", "", "first", "second", "change",
                      "interval of the change of the median");
    }
    for (int second = 0; second < 2; second++) {
        const side *from = second ? b : a;
        for (size_t i = 0; i < ox_json_n(from->rows); i++) {
            const ox_json *row = ox_json_at(from->rows, i);
            if (second && find(a, name_of(row))) continue;
            if (!compare_row(&c, row, b, set)) continue;
            if (second) {
                c = (change){.name = c.name, .unit = c.unit, .middle = NAN, .lo = NAN, .hi = NAN};
                c.verdict = "only in the second";
            }
            if (o->json)
                put_object(&w, &c);
            else
                put_line(&out, &c);
        }
    }
    if (o->json) {
        ox_json_end_array(&w);
        ox_json_end_object(&w);
        ox_buf_put_c(&out, '\n');
    }
    const int code = cli_stdout(ox_buf_view(&out));
    ox_buf_deinit(&out);
    return code;
}

int bench_diff(const cli_options *o)
{
    side a = {.arena = OX_ARENA_INIT}, b = {.arena = OX_ARENA_INIT};
    ox_err err = OX_ERR_INIT;
    settings set = {.confidence = o->has_confidence ? o->confidence / 100 : 0.95,
                    .threshold = o->threshold / 100};
    int code;
    if (!(set.confidence >= 0.5 && set.confidence <= 0.999))
        return cli_usage("--confidence expects 50 to 99.9 percent, found %g", o->confidence);
    if (!(set.threshold >= 0 && set.threshold < 100))
        return cli_usage("--threshold expects a percentage, found %g", o->threshold);
    if (o->args.n != 3) return cli_usage("two files are needed: oxgen bench diff A.json B.json");
    if (load(&a, o->args.p[1], &err) || load(&b, o->args.p[2], &err)) {
        code = cli_fail(&err);
    } else {
        note_machines(o, &a, &b);
        set.paired = ox_json_true(ox_json_get(a.root, "paired")) &&
                     ox_json_true(ox_json_get(b.root, "paired"));
        code = report(o, &a, &b, &set);
    }
    ox_arena_deinit(&a.arena);
    ox_arena_deinit(&b.arena);
    return code;
}
