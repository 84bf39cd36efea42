/* report_json.c - the comparison for programs; docs/compare.md lists the members. */
#include "cli/compare/compare.h"

static void put_key(ox_json_writer *w, const char *key, double v)
{
    ox_json_put_key(w, key);
    ox_json_put_f64(w, v);
}

static void put_text(ox_json_writer *w, const char *key, ox_str s)
{
    ox_json_put_key(w, key);
    if (s.n)
        ox_json_put_str(w, s);
    else
        ox_json_put_null(w);
}

static void put_metric(ox_json_writer *w, const metric *m, const arm *a)
{
    double v[RUNS_MOST];
    const size_t n = metric_samples(m, a, v);
    const ox_summary s = ox_stats_summary(v, n);
    ox_json_put_key(w, m->key);
    if (!n) {
        ox_json_put_null(w);
        return;
    }
    ox_json_begin_object(w);
    put_text(w, "unit", ox_str_of(m->unit));
    put_key(w, "median", s.median);
    put_key(w, "min", s.min);
    put_key(w, "max", s.max);
    put_key(w, "q1", s.q1);
    put_key(w, "q3", s.q3);
    ox_json_put_key(w, "samples");
    ox_json_begin_array(w);
    for (size_t i = 0; i < n; i++)
        ox_json_put_f64(w, v[i]);
    ox_json_end_array(w);
    ox_json_end_object(w);
}

static void put_roof(ox_json_writer *w, const char *key, const arm *a, bool decode)
{
    double roof;
    const double share = arm_share(a, decode, &roof);
    ox_json_put_key(w, key);
    if (!(share > 0)) {
        ox_json_put_null(w);
        return;
    }
    ox_json_begin_object(w);
    put_key(w, "tps", roof);
    put_key(w, "share", share);
    ox_json_end_object(w);
}

static void put_library(ox_json_writer *w, const arm_facts *f)
{
    ox_json_put_key(w, "library");
    ox_json_begin_object(w);
    put_text(w, "path", f->library_path);
    put_text(w, "version", f->library_path.n ? f->library_version : f->version);
    put_key(w, "api", (double)f->library_api);
    put_text(w, "providers", f->providers);
    ox_json_end_object(w);
    ox_json_put_key(w, "options");
    if (f->session.n)
        ox_json_put_raw(w, f->session);
    else
        ox_json_put_null(w);
}

static void put_tokens(ox_json_writer *w, const arm *a)
{
    ox_json_put_key(w, "ids");
    ox_json_begin_array(w);
    for (size_t i = 0; a->n_runs && i < a->runs[0].n_new; i++)
        ox_json_put_i64(w, a->runs[0].ids[i]);
    ox_json_end_array(w);
    ox_json_put_key(w, "token_ms");
    ox_json_begin_array(w);
    for (size_t i = 1; a->n_runs && i < a->runs[0].n_new; i++)
        ox_json_put_f64(w, arm_token_ms(a, i));
    ox_json_end_array(w);
}

static void put_arm(ox_json_writer *w, const arm *a)
{
    ox_json_begin_object(w);
    put_text(w, "arm", ox_str_of(a->spec.name));
    put_text(w, "reason", ox_str_of(a->reason));
    ox_json_put_key(w, "runs");
    ox_json_put_i64(w, (int64_t)a->n_runs);
    ox_json_put_key(w, "partial");
    ox_json_put_bool(w, a->n_runs && a->reason[0]);
    for (size_t k = 0; k < n_metrics; k++)
        put_metric(w, &metrics[k], a);
    put_roof(w, "decode_roof", a, true);
    put_roof(w, "prefill_roof", a, false);
    ox_json_put_key(w, "memory");
    ox_json_begin_object(w);
    put_key(w, "weights", a->facts.weight_bytes);
    put_key(w, "kv", a->n_runs ? a->runs[0].kv_bytes : 0);
    ox_json_end_object(w);
    put_text(w, "backend", a->facts.backend);
    put_text(w, "device", a->facts.device);
    put_library(w, &a->facts);
    put_tokens(w, a);
    ox_json_end_object(w);
}

static void put_ratio(ox_json_writer *w, const comparison *c, const parity *p, const metric *m)
{
    const arm *a = &c->arms[p->a], *b = &c->arms[p->b];
    const ox_interval i = metric_ratio(m, a, b);
    const bool shown = ox_interval_known(i) && !ox_interval_holds(i, 1);
    ox_json_begin_object(w);
    put_text(w, "a", ox_str_of(a->spec.name));
    put_text(w, "b", ox_str_of(b->spec.name));
    put_text(w, "metric", ox_str_of(m->key));
    put_key(w, "ratio", i.middle);
    ox_json_put_key(w, "interval");
    ox_json_begin_array(w);
    ox_json_put_f64(w, i.lo);
    ox_json_put_f64(w, i.hi);
    ox_json_end_array(w);
    put_text(w, "verdict",
             ox_str_of(!ox_interval_known(i)                 ? "too few runs"
                       : !shown                              ? "no difference shown"
                       : (i.middle > 1) == m->more_is_better ? "a is better"
                                                             : "b is better"));
    ox_json_end_object(w);
}

static void put_parity(ox_json_writer *w, const comparison *c, const parity *p)
{
    ox_json_begin_object(w);
    put_text(w, "a", ox_str_of(c->arms[p->a].spec.name));
    put_text(w, "b", ox_str_of(c->arms[p->b].spec.name));
    put_text(w, "verdict", ox_str_of(p->verdict));
    put_text(w, "why", ox_str_of(p->why));
    put_key(w, "tokens", (double)p->n);
    ox_json_put_key(w, "index");
    if (p->known && !p->same)
        ox_json_put_i64(w, (int64_t)p->index);
    else
        ox_json_put_null(w);
    ox_json_put_key(w, "ids");
    ox_json_begin_array(w);
    for (int k = 0; k < 2 && p->known && !p->same; k++)
        ox_json_put_i64(w, p->ids[k]);
    ox_json_end_array(w);
    ox_json_put_key(w, "texts");
    ox_json_begin_array(w);
    for (int k = 0; k < 2 && p->known && !p->same; k++)
        ox_json_put_z(w, p->text[k]);
    ox_json_end_array(w);
    ox_json_put_key(w, "margins");
    ox_json_begin_array(w);
    for (int k = 0; k < 2 && p->known && !p->same; k++)
        ox_json_put_f64(w, p->side[k].last.asked[k] - p->side[k].last.asked[!k]);
    ox_json_end_array(w);
    put_key(w, "difference", p->has_oracle ? p->side[0].relative : p->side[1].relative);
    put_key(w, "bound", p->bound);
    put_text(w, "oracle_sides_with", ox_str_of(p->sides_with));
    ox_json_end_object(w);
}

static void put_machine(const comparison *c, ox_json_writer *w)
{
    ox_buf *out = w->out;
    ox_json_put_key(w, "machine");
    ox_buf text = {0};
    ox_buf_put_str(&text, c->machine.json);
    ox_buf_printf(&text,
                  ",\"load_average\":%.2f,\"stolen\":%.4f,\"other_programs\":%.4f,\"warnings\":[",
                  c->machine.load, c->machine.steal, c->machine.others);
    for (size_t i = 0; i < c->machine.n_warnings; i++) {
        if (i) ox_buf_put_c(&text, ',');
        cli_json_str(&text, c->machine.warnings[i], strlen(c->machine.warnings[i]));
    }
    ox_buf_put_z(&text, "]}");
    ox_json_put_raw(w, ox_buf_view(&text));
    out->failed |= text.failed;
    ox_buf_deinit(&text);
}

static void put_settings(const comparison *c, ox_json_writer *w)
{
    ox_json_put_key(w, "model");
    ox_json_begin_object(w);
    put_text(w, "path", ox_str_of(c->context.model));
    put_text(w, "sha256", ox_str_of(c->hash));
    put_key(w, "bytes", c->model_bytes);
    ox_json_end_object(w);
    ox_json_put_key(w, "settings");
    ox_json_begin_object(w);
    put_key(w, "threads", c->n_threads);
    put_key(w, "n_new", (double)c->n_new);
    put_key(w, "rounds", (double)c->n_runs);
    put_key(w, "rounds_complete", (double)c->n_done);
    ox_json_put_key(w, "interrupted");
    ox_json_put_bool(w, c->context.interrupted);
    ox_json_put_key(w, "oracle");
    ox_json_put_bool(w, c->o->oracle);
    ox_json_put_key(w, "prompt_ids");
    ox_json_begin_array(w);
    for (size_t i = 0; i < c->n_prompt; i++)
        ox_json_put_i64(w, c->prompt[i]);
    ox_json_end_array(w);
    ox_json_end_object(w);
}

void report_json(const comparison *c, ox_buf *out)
{
    ox_json_writer w = {.out = out};
    ox_json_begin_object(&w);
    put_machine(c, &w);
    put_settings(c, &w);
    ox_json_put_key(&w, "arms");
    ox_json_begin_array(&w);
    for (size_t i = 0; i < c->n_arms; i++)
        put_arm(&w, &c->arms[i]);
    ox_json_end_array(&w);
    ox_json_put_key(&w, "ratios");
    ox_json_begin_array(&w);
    for (size_t i = 0; i < c->n_pairs; i++)
        for (size_t k = 0; k < n_metrics; k++)
            if (metrics[k].in_ratio && c->arms[c->pairs[i].a].n_runs &&
                c->arms[c->pairs[i].b].n_runs)
                put_ratio(&w, c, &c->pairs[i], &metrics[k]);
    ox_json_end_array(&w);
    ox_json_put_key(&w, "parity");
    ox_json_begin_array(&w);
    for (size_t i = 0; i < c->n_pairs; i++)
        put_parity(&w, c, &c->pairs[i]);
    ox_json_end_array(&w);
    ox_json_end_object(&w);
    ox_buf_put_c(out, '\n');
}
