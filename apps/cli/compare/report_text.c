/* report_text.c - the comparison as a terminal table and as Markdown. */
#include "cli/compare/compare.h"

#include "oxgen_build.h"

#include <math.h>
#include <stdio.h>

void report_number(ox_buf *out, double v)
{
    const double size = fabs(v);
    ox_buf_printf(out,
                  size >= 1000  ? "%.0f"
                  : size >= 100 ? "%.1f"
                  : size >= 1   ? "%.2f"
                                : "%.3g",
                  v);
}

static void put_summary(ox_buf *out, const metric *m, const arm *a, bool spread)
{
    double v[RUNS_MOST];
    const ox_summary s = ox_stats_summary(v, metric_samples(m, a, v));
    if (!s.n) {
        ox_buf_put_z(out, "-");
        return;
    }
    report_number(out, s.median);
    if (!spread) return;
    ox_buf_put_z(out, " (");
    report_number(out, s.min);
    ox_buf_put_z(out, " to ");
    report_number(out, s.max);
    ox_buf_put_z(out, ", IQR ");
    report_number(out, s.q3 - s.q1);
    ox_buf_put_c(out, ')');
}

void report_ratio_text(ox_buf *out, const metric *m, const arm *a, const arm *b)
{
    const ox_interval i = metric_ratio(m, a, b);
    if (!a->n_runs || !b->n_runs)
        ox_buf_put_z(out, "-");
    else if (!ox_interval_known(i))
        ox_buf_put_z(out, "too few runs");
    else if (ox_interval_holds(i, 1))
        ox_buf_printf(out, "no difference shown (%.2f to %.2f)", i.lo, i.hi);
    else
        ox_buf_printf(out, "%.2f (%.2f to %.2f)", i.middle, i.lo, i.hi);
}

void report_parity_text(ox_buf *out, const comparison *c, const parity *p)
{
    ox_buf_printf(out, "%s", p->verdict);
    if (p->known && !p->same) {
        ox_buf_printf(out, " at token %zu: %d", p->index, p->ids[0]);
        if (p->text[0]) {
            ox_buf_put_c(out, ' ');
            cli_json_str(out, p->text[0], strlen(p->text[0]));
        }
        ox_buf_printf(out, " against %d", p->ids[1]);
        if (p->text[1]) {
            ox_buf_put_c(out, ' ');
            cli_json_str(out, p->text[1], strlen(p->text[1]));
        }
        if (p->has_oracle && p->sides_with)
            ox_buf_printf(out, ", the oracle sides with %s", p->sides_with);
    }
    if (p->why[0]) ox_buf_printf(out, "; %s", p->why);
    (void)c;
}

static void put_share(ox_buf *out, const arm *a, bool decode)
{
    double roof;
    const double share = arm_share(a, decode, &roof);
    if (share > 0)
        ox_buf_printf(out, "%.0f %% of %.0f", 100 * share, roof);
    else
        ox_buf_put_c(out, '-');
}

static void put_library(ox_buf *out, const arm *a)
{
    const arm_facts *f = &a->facts;
    if (f->library_path.n)
        ox_buf_printf(out, "%.*s %.*s (%.*s)", OX_STR_ARGS(f->backend),
                      OX_STR_ARGS(f->library_version), OX_STR_ARGS(f->library_path));
    else
        ox_buf_printf(out, "oxgen %.*s (%.*s)", OX_STR_ARGS(f->version), OX_STR_ARGS(f->commit));
}

static void put_partial(ox_buf *out, const comparison *c)
{
    if (c->context.interrupted)
        ox_buf_printf(out, "interrupted: partial results, %zu of %zu rounds complete\n", c->n_done,
                      c->n_runs);
}

/* ---- the terminal ---- */

static void table_arm(const comparison *c, const arm *a, ox_buf *out)
{
    ox_buf_printf(out, "%s\n", a->spec.name);
    if (a->reason[0])
        ox_buf_printf(out, "  %s: %s\n", a->n_runs ? "partial" : "does not run", a->reason);
    if (!a->n_runs) return;
    for (size_t k = 0; k < n_metrics; k++) {
        ox_buf_printf(out, "  %-18s ", metrics[k].title);
        put_summary(out, &metrics[k], a, true);
        ox_buf_printf(out, " %s\n", metrics[k].unit);
    }
    ox_buf_put_z(out, "  share of roof      decode ");
    put_share(out, a, true);
    ox_buf_put_z(out, " tok/s, prefill ");
    put_share(out, a, false);
    ox_buf_put_z(out, " tok/s\n  library            ");
    put_library(out, a);
    if (a->facts.providers.n) ox_buf_printf(out, ", %.*s", OX_STR_ARGS(a->facts.providers));
    ox_buf_printf(out, "\n  options            %.*s\n", OX_STR_ARGS(a->facts.session));
    (void)c;
}

void report_table(const comparison *c, ox_buf *out)
{
    put_partial(out, c);
    ox_buf_printf(
        out,
        "%s: prompt of %zu tokens, %zu new, %d threads, %zu rounds in turns; median (least to "
        "most, interquartile range)\n\n",
        c->context.model, c->n_prompt, c->n_new, c->n_threads, c->n_runs);
    for (size_t i = 0; i < c->n_arms; i++)
        table_arm(c, &c->arms[i], out);
    ox_buf_put_z(out, "\nratios, with intervals of 99.9 %\n");
    for (size_t i = 0; i < c->n_pairs; i++) {
        const parity *p = &c->pairs[i];
        const arm *a = &c->arms[p->a], *b = &c->arms[p->b];
        if (!a->n_runs || !b->n_runs) continue;
        ox_buf_printf(out, "  %s / %s\n", a->spec.name, b->spec.name);
        for (size_t k = 0; k < n_metrics; k++) {
            if (!metrics[k].in_ratio) continue;
            ox_buf_printf(out, "    %-16s ", metrics[k].title);
            report_ratio_text(out, &metrics[k], a, b);
            ox_buf_put_c(out, '\n');
        }
        ox_buf_put_z(out, "    tokens           ");
        report_parity_text(out, c, p);
        ox_buf_put_c(out, '\n');
    }
    ox_buf_printf(
        out, "\nmachine: %s, %d CPUs, load average %.1f, other programs %.0f %%, stolen %.1f %%\n",
        ox_machine_cpu(), ox_machine_cpus(), c->machine.load, 100 * c->machine.others,
        100 * c->machine.steal);
    for (size_t i = 0; i < c->machine.n_warnings; i++)
        ox_buf_printf(out, "warning: %s\n", c->machine.warnings[i]);
}

/* ---- Markdown ---- */

/* A cell: no bars, no line breaks. */
static void put_cell(ox_buf *out, const ox_buf *text)
{
    for (size_t i = 0; i < text->n; i++) {
        if (text->p[i] == '|') ox_buf_put_c(out, '\\');
        ox_buf_put_c(out, text->p[i] == '\n' ? ' ' : text->p[i]);
    }
}

static void markdown_arms(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "| |");
    for (size_t i = 0; i < c->n_arms; i++)
        ox_buf_printf(out, " %s |", c->arms[i].spec.name);
    ox_buf_put_z(out, "\n|---|");
    for (size_t i = 0; i < c->n_arms; i++)
        ox_buf_put_z(out, "---|");
    for (size_t k = 0; k < n_metrics; k++) {
        ox_buf_printf(out, "\n| %s, %s |", metrics[k].title, metrics[k].unit);
        for (size_t i = 0; i < c->n_arms; i++) {
            ox_buf_put_c(out, ' ');
            put_summary(out, &metrics[k], &c->arms[i], true);
            ox_buf_put_z(out, " |");
        }
    }
    for (int decode = 1; decode >= 0; decode--) {
        ox_buf_printf(out, "\n| share of the %s roof, tok/s |", decode ? "decode" : "prefill");
        for (size_t i = 0; i < c->n_arms; i++) {
            ox_buf_put_c(out, ' ');
            put_share(out, &c->arms[i], decode);
            ox_buf_put_z(out, " |");
        }
    }
    ox_buf_put_z(out, "\n| runs | ");
    for (size_t i = 0; i < c->n_arms; i++) {
        ox_buf reason = {0};
        ox_buf_put_z(&reason, c->arms[i].reason);
        ox_buf_printf(out, "%zu%s", c->arms[i].n_runs, reason.n ? ": " : "");
        put_cell(out, &reason);
        ox_buf_put_z(out, " | ");
        ox_buf_deinit(&reason);
    }
    ox_buf_put_z(out, "\n\n");
}

static void markdown_pairs(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "| ratio (99.9 % interval) |");
    for (size_t k = 0; k < n_metrics; k++)
        if (metrics[k].in_ratio) ox_buf_printf(out, " %s |", metrics[k].title);
    ox_buf_put_z(out, " tokens |\n|---|");
    for (size_t k = 0; k < n_metrics; k++)
        if (metrics[k].in_ratio) ox_buf_put_z(out, "---|");
    ox_buf_put_z(out, "---|\n");
    for (size_t i = 0; i < c->n_pairs; i++) {
        const parity *p = &c->pairs[i];
        ox_buf text = {0};
        if (!c->arms[p->a].n_runs || !c->arms[p->b].n_runs) continue;
        ox_buf_printf(out, "| %s / %s |", c->arms[p->a].spec.name, c->arms[p->b].spec.name);
        for (size_t k = 0; k < n_metrics; k++) {
            if (!metrics[k].in_ratio) continue;
            ox_buf_put_c(out, ' ');
            report_ratio_text(out, &metrics[k], &c->arms[p->a], &c->arms[p->b]);
            ox_buf_put_z(out, " |");
        }
        report_parity_text(&text, c, p);
        ox_buf_put_c(out, ' ');
        put_cell(out, &text);
        ox_buf_put_z(out, " |\n");
        ox_buf_deinit(&text);
    }
}

void report_markdown(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "## Comparison\n\n");
    put_partial(out, c);
    ox_buf_printf(
        out,
        "Prompt of %zu tokens, %zu new, greedy, end of text ignored, %d threads, %zu rounds in "
        "turns, a process a run; median (least to most, interquartile range).\n\n",
        c->n_prompt, c->n_new, c->n_threads, c->n_runs);
    markdown_arms(c, out);
    markdown_pairs(c, out);
    ox_buf_printf(
        out,
        "\nMachine: %s, %d CPUs, oxgen %s (%s); load average %.1f at the start, other programs "
        "%.0f %% and the host %.1f %% of the CPU time.\n",
        ox_machine_cpu(), ox_machine_cpus(), ox_version(), OXGEN_COMMIT, c->machine.load,
        100 * c->machine.others, 100 * c->machine.steal);
    for (size_t i = 0; i < c->machine.n_warnings; i++)
        ox_buf_printf(out, "\n**Warning:** %s.\n", c->machine.warnings[i]);
    for (size_t i = 0; i < c->n_arms; i++) {
        if (!c->arms[i].facts.known) continue;
        ox_buf_printf(out, "\n- %s: ", c->arms[i].spec.name);
        put_library(out, &c->arms[i]);
        ox_buf_printf(out, "; %.*s; options `%.*s`", OX_STR_ARGS(c->arms[i].facts.providers),
                      OX_STR_ARGS(c->arms[i].facts.session));
    }
    ox_buf_printf(out, "\n\nModel: SHA-256 `%s`, %.1f MB.\n", c->hash[0] ? c->hash : "not known",
                  c->model_bytes / 1e6);
}
