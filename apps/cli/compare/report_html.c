/* report_html.c - the comparison as one page without anything from outside: no scripts, no fonts,
 * no pictures but inline SVG. */
#include "cli/compare/report_html.h"

#include "oxgen_build.h"

void html_text(ox_buf *out, const char *z)
{
    for (; *z; z++) {
        if (*z == '<')
            ox_buf_put_z(out, "&lt;");
        else if (*z == '>')
            ox_buf_put_z(out, "&gt;");
        else if (*z == '&')
            ox_buf_put_z(out, "&amp;");
        else if (*z == '"')
            ox_buf_put_z(out, "&quot;");
        else
            ox_buf_put_c(out, *z);
    }
}

static void put_str(ox_buf *out, ox_str s)
{
    ox_buf text = {0};
    ox_buf_put_str(&text, s);
    html_text(out, text.p ? text.p : "");
    ox_buf_deinit(&text);
}

static const char style[] =
    ":root{--bg:#fff;--fg:#1c2024;--soft:#5b6470;--line:#d9dee4;--card:#f6f8fa;--bad:#b42318;"
    "--c0:#2563a8;--c1:#c2571a;--c2:#2f7d4f;--c3:#7a4fa3;--c4:#a8862a;--c5:#4a6b78}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--soft:#9aa4b0;"
    "--line:#343b43;--card:#1c2126;--bad:#ff8a7a;--c0:#6fa8e6;--c1:#f0955a;--c2:#6cc492;"
    "--c3:#bb94e0;--c4:#d9bb62;--c5:#8fb2c0}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1240px;padding:16px;background:var(--bg);"
    "color:var(--fg);font:15px/1.45 system-ui,sans-serif}h1{font-size:1.4em;margin:.2em 0}"
    "h2{font-size:1.1em;margin:1.6em 0 .5em}p{margin:.4em 0}.soft{color:var(--soft)}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:"
    "12px}"
    "figure{margin:0;padding:12px;background:var(--card);border:1px solid var(--line);"
    "border-radius:6px}figcaption{font-weight:600;margin-bottom:6px}svg{width:100%;max-width:440px;"
    "height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:var(--fg)}\n"
    ".w{stroke:var(--fg);fill:none}.q{stroke:var(--fg);stroke-width:4;fill:none;opacity:.6}"
    ".g{stroke:var(--line);fill:none}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 10px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid "
    "var(--line)}th{font-weight:600}td.n{white-space:nowrap}.bad{color:var(--bad);font-weight:600}"
    "ul{padding-left:1.2em}code{overflow-wrap:anywhere}\n"
    ".legend span{display:inline-block;margin-right:14px;overflow-wrap:anywhere}.legend i{"
    "display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:5px}\n";

static void put_head(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                      "<title>oxgen compare</title>\n<style>\n");
    ox_buf_put_z(out, style);
    for (int i = 0; i < N_COLOURS; i++)
        ox_buf_printf(out,
                      ".f%d{fill:var(--c%d)}.l%d{stroke:var(--c%d);stroke-width:1.5;fill:none}"
                      ".b%d{background:var(--c%d)}\n",
                      i, i, i, i, i, i);
    ox_buf_put_z(out, "</style></head><body>\n<h1>oxgen compare</h1>\n<p>");
    html_text(out, c->context.model);
    ox_buf_printf(
        out,
        "</p>\n<p class=\"soft\">Prompt of %zu tokens, %zu new, greedy, end of text ignored, %d "
        "threads, %zu rounds in turns, a process a run.</p>\n",
        c->n_prompt, c->n_new, c->n_threads, c->n_runs);
    if (c->context.interrupted)
        ox_buf_printf(
            out, "<p class=\"bad\">Interrupted: partial results, %zu of %zu rounds complete.</p>\n",
            c->n_done, c->n_runs);
    ox_buf_put_z(out, "<p class=\"legend\">");
    for (size_t i = 0; i < c->n_arms; i++) {
        ox_buf_printf(out, "<span><i class=\"b%zu\"></i>", i % N_COLOURS);
        html_text(out, c->arms[i].spec.name);
        ox_buf_put_z(out, "</span>");
    }
    ox_buf_put_z(out, "</p>\n");
}

static void put_plots(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "<div class=\"plots\">\n");
    for (size_t k = 0; k < n_metrics; k++) {
        if (!metrics[k].in_ratio) continue;
        ox_buf_printf(out, "<figure><figcaption>%s, %s</figcaption>\n", metrics[k].title,
                      metrics[k].unit);
        svg_bars(out, c, &metrics[k]);
        ox_buf_put_z(out, "</figure>\n");
    }
    for (size_t k = 0; k < 2; k++) {
        ox_buf_printf(out, "<figure><figcaption>%s of every run, %s</figcaption>\n",
                      metrics[k].title, metrics[k].unit);
        svg_scatter(out, c, &metrics[k]);
        ox_buf_put_z(out, "</figure>\n");
    }
    ox_buf_put_z(
        out, "<figure><figcaption>latency of each token, ms, median of the runs</figcaption>\n");
    svg_latency(out, c);
    ox_buf_put_z(
        out, "</figure>\n</div>\n<p class=\"soft\">Bars: median; thin line: least to most; thick "
             "line: quartiles.</p>\n");
}

/* What a reader must see before any number. */
static void put_warnings(const comparison *c, ox_buf *out)
{
    for (size_t i = 0; i < c->machine.n_warnings; i++) {
        ox_buf_put_z(out, "<p class=\"bad\">");
        html_text(out, c->machine.warnings[i]);
        ox_buf_put_z(out, "</p>\n");
    }
    for (size_t i = 0; i < c->n_arms; i++) {
        const arm *a = &c->arms[i];
        if (!a->reason[0]) continue;
        ox_buf_put_z(out, "<p class=\"bad\">");
        html_text(out, a->spec.name);
        ox_buf_printf(out, " %s: ", a->n_runs ? "ended half way" : "does not run");
        html_text(out, a->reason);
        ox_buf_put_z(out, "</p>\n");
    }
}

static void put_ratios(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(
        out, "<h2>Ratios</h2><div class=\"scroll\"><table><tr><th>with intervals of 99.9 %</th>");
    for (size_t k = 0; k < n_metrics; k++)
        if (metrics[k].in_ratio) ox_buf_printf(out, "<th>%s</th>", metrics[k].title);
    ox_buf_put_z(out, "</tr>\n");
    for (size_t i = 0; i < c->n_pairs; i++) {
        const arm *a = &c->arms[c->pairs[i].a], *b = &c->arms[c->pairs[i].b];
        if (!a->n_runs || !b->n_runs) continue;
        ox_buf_put_z(out, "<tr><th>");
        html_text(out, a->spec.name);
        ox_buf_put_z(out, " / ");
        html_text(out, b->spec.name);
        ox_buf_put_z(out, "</th>");
        for (size_t k = 0; k < n_metrics; k++) {
            if (!metrics[k].in_ratio) continue;
            ox_buf_put_z(out, "<td>");
            report_ratio_text(out, &metrics[k], a, b);
            ox_buf_put_z(out, "</td>");
        }
        ox_buf_put_z(out, "</tr>\n");
    }
    ox_buf_put_z(out, "</table></div>\n");
}

static void put_tokens(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "<h2>Tokens</h2><ul>\n");
    for (size_t i = 0; i < c->n_pairs; i++) {
        const parity *p = &c->pairs[i];
        ox_buf text = {0};
        if (!c->arms[p->a].n_runs || !c->arms[p->b].n_runs) continue;
        report_parity_text(&text, c, p);
        ox_buf_printf(out, "<li%s>", strcmp(p->verdict, "fault") ? "" : " class=\"bad\"");
        html_text(out, c->arms[p->a].spec.name);
        ox_buf_put_z(out, " and ");
        html_text(out, c->arms[p->b].spec.name);
        ox_buf_put_z(out, ": ");
        html_text(out, text.p ? text.p : "");
        ox_buf_put_z(out, "</li>\n");
        ox_buf_deinit(&text);
    }
    ox_buf_put_z(out, "</ul>\n");
}

static void put_arms(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "<h2>Arms</h2><div class=\"scroll\"><table><tr><th>arm</th><th>runs</th>"
                      "<th>share of decode roof</th><th>share of prefill roof</th><th>library</th>"
                      "<th>providers</th><th>options</th></tr>\n");
    for (size_t i = 0; i < c->n_arms; i++) {
        const arm *a = &c->arms[i];
        const double decode = arm_share(a, true, NULL), prefill = arm_share(a, false, NULL);
        ox_buf_put_z(out, "<tr><td>");
        html_text(out, a->spec.name);
        ox_buf_printf(out, "</td><td>%zu</td><td>", a->n_runs);
        ox_buf_printf(out, decode > 0 ? "%.0f %%" : "-", 100 * decode);
        ox_buf_printf(out, prefill > 0 ? "</td><td>%.0f %%</td><td>" : "</td><td>-</td><td>",
                      100 * prefill);
        put_str(out, a->facts.library_path.n ? a->facts.library_version : a->facts.version);
        ox_buf_put_c(out, ' ');
        put_str(out, a->facts.library_path);
        ox_buf_put_z(out, "</td><td>");
        put_str(out, a->facts.providers);
        ox_buf_put_z(out, "</td><td><code>");
        put_str(out, a->facts.session);
        ox_buf_put_z(out, "</code></td></tr>\n");
    }
    ox_buf_put_z(out, "</table></div>\n");
}

static void put_cards(const comparison *c, ox_buf *out)
{
    ox_buf_put_z(out, "<h2>Machine and model</h2>\n");
    ox_buf_put_z(out, "<p>");
    html_text(out, ox_machine_cpu());
    ox_buf_printf(
        out,
        ", %d CPUs, oxgen %s (%s); load average %.1f at the start, other programs %.0f %% and the "
        "host %.1f %% of the CPU time.</p>\n<p>Model: SHA-256 <code>%s</code>, %.1f MB.</p>\n",
        ox_machine_cpus(), ox_version(), OXGEN_COMMIT, c->machine.load, 100 * c->machine.others,
        100 * c->machine.steal, c->hash[0] ? c->hash : "not known", c->model_bytes / 1e6);
}

void report_html(const comparison *c, ox_buf *out)
{
    put_head(c, out);
    put_warnings(c, out);
    put_plots(c, out);
    put_ratios(c, out);
    put_tokens(c, out);
    put_arms(c, out);
    put_cards(c, out);
    ox_buf_put_z(out, "</body></html>\n");
}
