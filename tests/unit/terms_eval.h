/* terms_eval.h - the slow and obvious meaning of graph/terms.h: one prompt, no cache, doubles.
 *
 * Oracle for opt/ and plan/: every term is a loop that reads like its line in terms.h. Supports one
 * sequence that starts at position 0. Header-only; tests include it. */
#ifndef OX_TESTS_TERMS_EVAL_H
#define OX_TESTS_TERMS_EVAL_H
#include "base/mem.h"
#include "graph/terms.h"

#include <math.h>

typedef struct terms_eval {
    const ox_graph *g;
    const int32_t *ids;
    size_t n_rows;
    double **values; /* [values][n_rows * width] */
} terms_eval;

static size_t terms_width(const ox_graph *g, ox_value_id v)
{
    const ox_value *x = ox_graph_value(g, v);
    return x->rank == 2 ? (size_t)x->dims[1] : 1;
}

static double terms_act(ox_act act, double x)
{
    switch (act) {
    case OX_ACT_SILU:
        return x / (1 + exp(-x));
    case OX_ACT_GELU:
        return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    case OX_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case OX_ACT_QUICK_GELU:
        return x / (1 + exp(-1.702 * x));
    case OX_ACT_RELU:
        return x > 0 ? x : 0;
    default:
        return x > 0 ? x * x : 0;
    }
}

static double terms_capped(const ox_term *t, double x)
{
    x *= (double)t->scale;
    return t->softcap > 0 ? (double)t->softcap * tanh(x / (double)t->softcap) : x;
}

static void terms_norm(const ox_term *t, const double *x, size_t width, double *y)
{
    const size_t group = t->group ? (size_t)t->group : width;
    float *gamma = ox_calloc(group, sizeof(float)), *beta = ox_calloc(group, sizeof(float));
    for (size_t i = 0; i < group; i++)
        gamma[i] = 1;
    if (t->weight) ox_weight_row_f32(t->weight, 0, gamma);
    if (t->bias) ox_weight_row_f32(t->bias, 0, beta);
    for (size_t g = 0; g < width; g += group) {
        double mean = 0, square = 0;
        for (size_t i = 0; i < group && t->centre; i++)
            mean += x[g + i] / (double)group;
        for (size_t i = 0; i < group; i++)
            square += (x[g + i] - mean) * (x[g + i] - mean) / (double)group;
        for (size_t i = 0; i < group; i++)
            y[g + i] = (x[g + i] - mean) / sqrt(square + (double)t->epsilon) * (double)gamma[i] +
                       (double)beta[i];
    }
    ox_free(gamma);
    ox_free(beta);
}

static void terms_linear(const ox_term *t, const double *x, size_t n_rows, double *y)
{
    const size_t n = (size_t)t->weight->rows, k = (size_t)t->weight->cols;
    float *w = ox_calloc(k, sizeof(float)), *bias = ox_calloc(n, sizeof(float));
    if (t->bias) ox_weight_row_f32(t->bias, 0, bias);
    for (size_t i = 0; i < n; i++) {
        ox_weight_row_f32(t->weight, (int64_t)i, w);
        for (size_t r = 0; r < n_rows; r++) {
            double sum = 0;
            for (size_t j = 0; j < k; j++)
                sum += x[r * k + j] * (double)w[j];
            y[r * n + i] = sum + (double)bias[i];
            if (t->kind == OX_TERM_HEAD) y[r * n + i] = terms_capped(t, y[r * n + i]);
        }
    }
    ox_free(w);
    ox_free(bias);
}

static void terms_rotate(const ox_term *t, const double *x, size_t position, size_t total,
                         double *y)
{
    const ox_rotary *r = t->rotary;
    const size_t half = (size_t)r->rotary / 2, head = (size_t)t->head_size;
    const bool use_long = r->long_cos && total > (size_t)r->switch_length;
    const float *c = (use_long ? r->long_cos : r->cos_table) + position * half;
    const float *s = (use_long ? r->long_sin : r->sin_table) + position * half;
    memcpy(y, x, (size_t)t->n_heads * head * sizeof(*y));
    for (size_t h = 0; h < (size_t)t->n_heads; h++) {
        for (size_t i = 0; i < half; i++) {
            const size_t a = h * head + (r->interleaved ? 2 * i : i);
            const size_t b = h * head + (r->interleaved ? 2 * i + 1 : i + half);
            y[a] = x[a] * (double)c[i] - x[b] * (double)s[i];
            y[b] = x[b] * (double)c[i] + x[a] * (double)s[i];
        }
    }
}

static void terms_attend_head(const ox_term *t, size_t h, size_t row, double *const in[3],
                              double *p, double *out)
{
    const size_t d = (size_t)t->head_size, dv = (size_t)t->v_head_size;
    const size_t kv = h / (size_t)(t->n_heads / t->n_kv_heads);
    const size_t first = t->window && row + 1 > (size_t)t->window ? row + 1 - (size_t)t->window : 0;
    const double *q = in[0] + (row * (size_t)t->n_heads + h) * d;
    double max = -INFINITY, sum = 0;
    if (t->sinks) {
        float *sinks = ox_calloc((size_t)t->n_heads, sizeof(float));
        ox_weight_row_f32(t->sinks, 0, sinks);
        max = (double)sinks[h];
        sum = 1;
        ox_free(sinks);
    }
    const double sink = max;
    for (size_t j = first; j <= row; j++) {
        const double *k = in[1] + (j * (size_t)t->n_kv_heads + kv) * d;
        p[j] = 0;
        for (size_t i = 0; i < d; i++)
            p[j] += q[i] * k[i];
        p[j] = terms_capped(t, p[j]);
        if (p[j] > max) max = p[j];
    }
    if (t->sinks) sum = exp(sink - max);
    for (size_t j = first; j <= row; j++)
        sum += p[j] = exp(p[j] - max);
    for (size_t i = 0; i < dv; i++) {
        out[i] = 0;
        for (size_t j = first; j <= row; j++)
            out[i] += p[j] / sum * in[2][(j * (size_t)t->n_kv_heads + kv) * dv + i];
    }
}

static void terms_row(const terms_eval *e, const ox_term *t, size_t row, size_t width,
                      double *const in[3], const size_t *in_width, double *y)
{
    const double *x = in[0] ? in[0] + row * in_width[0] : NULL;
    const double *b = in[1] ? in[1] + row * in_width[1] : NULL;
    switch (t->kind) {
    case OX_TERM_EMBED: {
        float *w = ox_calloc(width, sizeof(float));
        ox_weight_row_f32(t->weight, e->ids[row], w);
        for (size_t i = 0; i < width; i++)
            y[i] = (double)w[i] * (double)t->scale;
        ox_free(w);
        break;
    }
    case OX_TERM_NORM:
        terms_norm(t, x, width, y);
        break;
    case OX_TERM_SLICE:
        memcpy(y, x + t->first, width * sizeof(*y));
        break;
    case OX_TERM_ROTATE:
        terms_rotate(t, x, row, e->n_rows, y);
        break;
    case OX_TERM_ATTEND: {
        double *p = ox_calloc(e->n_rows, sizeof(*p));
        for (size_t h = 0; h < (size_t)t->n_heads; h++)
            terms_attend_head(t, h, row, in, p, y + h * (size_t)t->v_head_size);
        ox_free(p);
        break;
    }
    default:
        for (size_t i = 0; i < width; i++) {
            if (t->kind == OX_TERM_GLU) y[i] = terms_act(t->act, x[i]) * b[i];
            if (t->kind == OX_TERM_ACT) y[i] = terms_act(t->act, x[i]);
            if (t->kind == OX_TERM_ADD) y[i] = x[i] + b[i];
            if (t->kind == OX_TERM_SCALE) y[i] = terms_capped(t, x[i]);
        }
    }
}

/* Logits of every row of one prompt into out [n_rows, vocab]. */
static void terms_logits(const ox_graph *g, const int32_t *ids, size_t n_rows, float *out)
{
    terms_eval e = {.g = g, .ids = ids, .n_rows = n_rows};
    e.values = ox_calloc(g->values.n, sizeof(*e.values));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        double *in[3] = {NULL};
        size_t in_width[3] = {0};
        if (n->dead) continue;
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            in[k] = e.values[n->inputs[k].i];
            in_width[k] = terms_width(g, n->inputs[k]);
        }
        const size_t width = terms_width(g, n->outputs[0]);
        double *y = ox_calloc(n_rows * width, sizeof(*y));
        e.values[n->outputs[0].i] = y;
        if (n->term->kind == OX_TERM_LINEAR || n->term->kind == OX_TERM_HEAD) {
            terms_linear(n->term, in[0], n_rows, y);
            continue;
        }
        for (size_t r = 0; r < n_rows; r++)
            terms_row(&e, n->term, r, width, in, in_width, y + r * width);
    }
    const ox_value_id last = g->outputs.p[0];
    for (size_t i = 0; i < n_rows * terms_width(g, last); i++)
        out[i] = (float)e.values[last.i][i];
    for (size_t i = 0; i < g->values.n; i++)
        ox_free(e.values[i]);
    ox_free(e.values);
}
#endif
