/* report_svg.c - the plots of the HTML report, drawn for a width of 360 units so that text stays
 * readable when a narrow screen shows them one below the other. Colours are classes c0, c1, ... of
 * the page. */
#include "cli/compare/report_html.h"

#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 360,
    LEFT = 44,
    RIGHT = 8,
    TOP = 10,
    PLOT = 170,
    BOTTOM = 24,
    TICKS = 4,
    POINTS_MOST = 400
};

static void open_svg(ox_buf *out, int height, const char *label)
{
    ox_buf_printf(out,
                  "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\" "
                  "xmlns=\"http://www.w3.org/2000/svg\">\n",
                  WIDTH, height, label);
}

/* ---- bars ---- */

static double x_of(double v, double most)
{
    return v / most * (WIDTH - 2);
}

static void put_bar(ox_buf *out, const comparison *c, size_t i, const metric *m, double most, int y)
{
    double v[RUNS_MOST];
    const arm *a = &c->arms[i];
    const ox_summary s = ox_stats_summary(v, metric_samples(m, a, v));
    char name[48];
    snprintf(name, sizeof(name), "%s", a->spec.name);
    ox_buf_printf(out, "<text x=\"0\" y=\"%d\">", y + 11);
    html_text(out, name);
    ox_buf_printf(out, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH, y + 11);
    if (!s.n) {
        ox_buf_put_z(out, "no result</text>\n");
        return;
    }
    report_number(out, s.median);
    const int mid = y + 24;
    ox_buf_printf(
        out, "</text><rect class=\"f%zu\" x=\"0\" y=\"%d\" width=\"%.1f\" height=\"14\" rx=\"2\"/>",
        i % N_COLOURS, mid - 7, x_of(s.median, most));
    ox_buf_printf(out,
                  "<path class=\"w\" d=\"M%.1f %dH%.1fM%.1f %dV%dM%.1f %dV%d\"/>"
                  "<path class=\"q\" d=\"M%.1f %dH%.1f\"/>\n",
                  x_of(s.min, most), mid, x_of(s.max, most), x_of(s.min, most), mid - 5, mid + 5,
                  x_of(s.max, most), mid - 5, mid + 5, x_of(s.q1, most), mid, x_of(s.q3, most));
}

void svg_bars(ox_buf *out, const comparison *c, const metric *m)
{
    double most = 0, v[RUNS_MOST];
    for (size_t i = 0; i < c->n_arms; i++) {
        const ox_summary s = ox_stats_summary(v, metric_samples(m, &c->arms[i], v));
        if (s.max > most) most = s.max;
    }
    open_svg(out, (int)c->n_arms * 40 + 4, m->title);
    for (size_t i = 0; i < c->n_arms; i++)
        put_bar(out, c, i, m, most > 0 ? most : 1, (int)i * 40);
    ox_buf_put_z(out, "</svg>\n");
}

/* ---- axes ---- */

typedef struct axes {
    double x0, x1, y0, y1;
} axes;

static double px(const axes *a, double x)
{
    const double span = a->x1 > a->x0 ? a->x1 - a->x0 : 1;
    return LEFT + (x - a->x0) / span * (WIDTH - LEFT - RIGHT);
}

static double py(const axes *a, double y)
{
    const double span = a->y1 > a->y0 ? a->y1 - a->y0 : 1, at = (y - a->y0) / span;
    return TOP + (1 - (at > 1 ? 1 : at < 0 ? 0 : at)) * PLOT;
}

/* Limits that are multiples of a round step. */
static double round_limits(axes *a)
{
    const double raw = (a->y1 - a->y0) / TICKS, ten = pow(10, floor(log10(raw))), part = raw / ten;
    const double step = (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * ten;
    a->y0 = floor(a->y0 / step) * step;
    a->y1 = ceil(a->y1 / step) * step;
    return step;
}

static void put_tick(ox_buf *out, double v)
{
    if (v >= 1e6)
        ox_buf_printf(out, "%.4gM", v / 1e6);
    else if (v >= 1e4)
        ox_buf_printf(out, "%.4gk", v / 1e3);
    else
        ox_buf_printf(out, "%.4g", v);
}

static void put_axes(ox_buf *out, axes *a, const char *x_title)
{
    const double step = round_limits(a);
    for (int k = 0; k <= 2 * TICKS && a->y0 + step * k <= a->y1 * (1 + 1e-9); k++) {
        const double y = a->y0 + step * k;
        ox_buf_printf(out,
                      "<path class=\"g\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
                      "text-anchor=\"end\">",
                      LEFT, py(a, y), WIDTH - RIGHT, LEFT - 5, py(a, y) + 4);
        put_tick(out, y);
        ox_buf_put_z(out, "</text>\n");
    }
    ox_buf_printf(
        out,
        "<text x=\"%d\" y=\"%d\">%.0f</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.0f"
        "</text>",
        LEFT, TOP + PLOT + 16, a->x0, WIDTH - RIGHT, TOP + PLOT + 16, a->x1);
    ox_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                  (LEFT + WIDTH - RIGHT) / 2, TOP + PLOT + 16, x_title);
}

/* ---- every repetition ---- */

void svg_scatter(ox_buf *out, const comparison *c, const metric *m)
{
    axes a = {.x0 = 1, .x1 = (double)(c->n_runs > 1 ? c->n_runs : 2), .y0 = INFINITY, .y1 = 0};
    double v[RUNS_MOST];
    for (size_t i = 0; i < c->n_arms; i++)
        for (size_t k = metric_samples(m, &c->arms[i], v); k--;) {
            a.y0 = fmin(a.y0, v[k]);
            a.y1 = fmax(a.y1, v[k]);
        }
    if (!(a.y1 > 0)) return;
    /* From zero unless all lie close together: then the spread is what is to be seen. */
    a.y0 = a.y0 > 0.7 * a.y1 ? a.y0 - 0.2 * (a.y1 - a.y0) : 0;
    open_svg(out, TOP + PLOT + BOTTOM, m->title);
    put_axes(out, &a, "round");
    for (size_t i = 0; i < c->n_arms; i++)
        for (size_t k = 0, n = metric_samples(m, &c->arms[i], v); k < n; k++)
            ox_buf_printf(out, "<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                          i % N_COLOURS, px(&a, (double)k + 1), py(&a, v[k]));
    ox_buf_put_z(out, "</svg>\n");
}

/* ---- latency of each token ---- */

static size_t tokens_of(const arm *a)
{
    return a->n_runs ? a->runs[0].n_new : 0;
}

void svg_latency(ox_buf *out, const comparison *c)
{
    axes a = {.x0 = 1, .x1 = 2};
    for (size_t i = 0; i < c->n_arms; i++) {
        double v[OX_STATS_MOST];
        size_t n = 0;
        for (size_t k = 1; k < tokens_of(&c->arms[i]) && n < OX_STATS_MOST; k++)
            v[n++] = arm_token_ms(&c->arms[i], k);
        a.x1 = fmax(a.x1, (double)n);
        a.y1 = fmax(a.y1, 1.25 * ox_stats_quantile(v, n, 0.97));
    }
    if (!(a.y1 > 0)) return;
    open_svg(out, TOP + PLOT + BOTTOM, "latency of each token");
    put_axes(out, &a, "new token");
    for (size_t i = 0; i < c->n_arms; i++) {
        const size_t n = tokens_of(&c->arms[i]), step = 1 + n / POINTS_MOST;
        if (n < 2) continue;
        ox_buf_printf(out, "<path class=\"l%zu\" d=\"", i % N_COLOURS);
        for (size_t k = 1; k < n; k += step)
            ox_buf_printf(out, "%c%.1f %.1f", k == 1 ? 'M' : 'L', px(&a, (double)k),
                          py(&a, arm_token_ms(&c->arms[i], k)));
        ox_buf_put_z(out, "\"/>\n");
    }
    ox_buf_put_z(out, "</svg>\n");
}
