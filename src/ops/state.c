/* state.c - operators with a recurrent state: LinearAttention and CausalConvWithState of both
 * domains, and the gates around them. */
#include "ops/op_internal.h"

#include <assert.h>
#include <math.h>

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

typedef struct linear {
    size_t batch, rows, hq, hk, hv, dk, dv;
    double *q, *k, *v, *state, *decay, *beta, *out; /* state [B, Hv, dk, dv] */
    size_t decay_width, beta_width;                 /* channels of a row; 0 = absent */
    double scale;
} linear;

/* One token of one state head: decay, correct, write, read. */
static void linear_step(const linear *l, size_t b, size_t t, size_t h, bool delta)
{
    const size_t row = b * l->rows + t;
    double *s = l->state + (b * l->hv + h) * l->dk * l->dv;
    const double *k = l->k + row * l->hk * l->dk + h / (l->hv / l->hk) * l->dk;
    const double *v = l->v + (row * l->hv + h) * l->dv;
    const double beta =
        l->beta_width ? l->beta[row * l->beta_width + (l->beta_width == 1 ? 0 : h)] : 1;
    for (size_t a = 0; l->decay_width && a < l->dk; a++) {
        const size_t at = l->decay_width == l->hv ? h : h * l->dk + a;
        const double g = exp(l->decay[row * l->decay_width + at]);
        for (size_t j = 0; j < l->dv; j++)
            s[a * l->dv + j] *= g;
    }
    for (size_t j = 0; j < l->dv; j++) {
        double r = 0;
        for (size_t a = 0; delta && a < l->dk; a++)
            r += s[a * l->dv + j] * k[a];
        const double u = delta ? beta * (v[j] - r) : v[j];
        for (size_t a = 0; a < l->dk; a++)
            s[a * l->dv + j] += k[a] * u;
    }
}

static void linear_read(const linear *l, size_t b, size_t t, size_t h, size_t hq, size_t h_out,
                        size_t n_out)
{
    const size_t row = b * l->rows + t;
    const double *s = l->state + (b * l->hv + h) * l->dk * l->dv,
                 *q = l->q + (row * l->hq + hq) * l->dk;
    double *out = l->out + (row * n_out + h_out) * l->dv;
    for (size_t j = 0; j < l->dv; j++) {
        double o = 0;
        for (size_t a = 0; a < l->dk; a++)
            o += s[a * l->dv + j] * q[a];
        out[j] = l->scale * o;
    }
}

static ox_status linear_open(ox_op_ctx *c, linear *l)
{
    const ox_tensor *q = ox_op_in(c, 0), *k = ox_op_in(c, 1), *v = ox_op_in(c, 2),
                    *past = ox_op_in(c, 3);
    const ox_tensor *decay = ox_op_in(c, 4), *beta = ox_op_in(c, 5);
    const int64_t hq = ox_node_int(c->node, "q_num_heads", 0),
                  hv = ox_node_int(c->node, "kv_num_heads", 0);
    void *p;
    if (ox_node_int(c->node, "state_window", 0))
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "state_window is not supported");
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || hq < 1 || hv < 1 || q->dims[2] % hq ||
        v->dims[2] % hv || memcmp(q->dims, k->dims, 16) || memcmp(q->dims, v->dims, 16) ||
        !q->dims[2])
        return OP_FAIL(c, "query, key and value do not fit %lld and %lld heads", (long long)hq,
                       (long long)hv);
    *l = (linear){.batch = (size_t)q->dims[0],
                  .rows = (size_t)q->dims[1],
                  .hq = (size_t)hq,
                  .hv = (size_t)hv};
    l->dk = (size_t)(q->dims[2] / hq);
    l->dv = (size_t)(v->dims[2] / hv);
    l->hk = (size_t)k->dims[2] / l->dk;
    if (!l->hk || (size_t)k->dims[2] % l->dk || l->hv % l->hk ||
        (l->hq > l->hv ? l->hq % l->hv : l->hv % l->hq))
        return OP_FAIL(c, "%zu query, %zu key and %zu value heads do not fit", l->hq, l->hk, l->hv);
    OX_TRY(ox_op_doubles(c, q, &l->q));
    OX_TRY(ox_op_doubles(c, k, &l->k));
    OX_TRY(ox_op_doubles(c, v, &l->v));
    const size_t n_state = l->batch * l->hv * l->dk * l->dv;
    if (past && ox_op_size(past) != n_state) return OP_FAIL(c, "the past state does not fit");
    if (past) {
        OX_TRY(ox_op_doubles(c, past, &l->state));
    } else {
        OX_TRY(ox_op_temp(c, n_state, sizeof(double), &p));
        l->state = p;
    }
    const size_t n_rows = l->batch * l->rows;
    if (decay) {
        OX_TRY(ox_op_doubles(c, decay, &l->decay));
        l->decay_width = n_rows ? ox_op_size(decay) / n_rows : l->hv;
        if (ox_op_size(decay) != n_rows * l->decay_width ||
            (l->decay_width != l->hv && l->decay_width != l->hv * l->dk))
            return OP_FAIL(c, "the decay does not fit");
    }
    if (beta) {
        OX_TRY(ox_op_doubles(c, beta, &l->beta));
        l->beta_width = n_rows ? ox_op_size(beta) / n_rows : 1;
        if (ox_op_size(beta) != n_rows * l->beta_width ||
            (l->beta_width != l->hv && l->beta_width != 1))
            return OP_FAIL(c, "beta does not fit");
    }
    return OX_OK;
}

ox_status ox_op_eval_linear_attention(ox_op_ctx *c)
{
    const ox_str rule = ox_node_str(c->node, "update_rule", "gated_delta");
    const ox_tensor *q = ox_op_in(c, 0), *past = ox_op_in(c, 3);
    const bool delta = ox_str_ends(rule, OX_STR("delta")),
               gated = ox_str_starts(rule, OX_STR("gated"));
    linear l;
    ox_tensor *y, *state;
    void *p;
    OX_TRY(linear_open(c, &l));
    assert(l.hq && l.hv);
    if (!gated) l.decay_width = 0;
    if (gated && !l.decay_width) return OP_FAIL(c, "a gated rule needs a decay");
    const double scale = (double)ox_node_float(c->node, "scale", 0);
    l.scale = scale > 0 || scale < 0 ? scale : 1 / sqrt((double)l.dk);
    const size_t n_out = l.hq > l.hv ? l.hq : l.hv;
    const int64_t dims[3] = {q->dims[0], q->dims[1], (int64_t)(n_out * l.dv)};
    const int64_t sdims[4] = {q->dims[0], (int64_t)l.hv, (int64_t)l.dk, (int64_t)l.dv};
    OX_TRY(ox_op_out(c, 0, q->dtype, 3, dims, &y));
    OX_TRY(ox_op_out(c, 1, past ? past->dtype : q->dtype, 4, sdims, &state));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    l.out = p;
    for (size_t b = 0; b < l.batch; b++)
        for (size_t t = 0; t < l.rows; t++) {
            for (size_t h = 0; h < l.hv; h++)
                linear_step(&l, b, t, h, delta);
            for (size_t o = 0; o < n_out; o++)
                linear_read(&l, b, t, o / (n_out / l.hv), o / (n_out / l.hq), o, n_out);
            OX_TRY(ox_op_cancelled(c));
        }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    ox_lane_store(state->dtype, state->data, 0, ox_op_size(state), (const ox_lane *)l.state);
    return OX_OK;
}

/* Depthwise causal convolution over past ++ input; the last tap meets the present sample. */
ox_status ox_op_eval_causal_conv(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *w = ox_op_in(c, 1), *bias = ox_op_in(c, 2),
                    *past = ox_op_in(c, 3);
    const ox_str act = ox_node_str(c->node, "activation", "none");
    const int64_t dilation = ox_node_int(c->node, "dilation", 1);
    const bool last = ox_node_int(c->node, "channels_last", 0) != 0;
    double *v, *taps, *add = NULL, *old = NULL, *ext, *out;
    ox_tensor *y, *state;
    void *p;
    if (ox_node_int(c->node, "state_window", 0) || ox_node_int(c->node, "ndim", 1) != 1)
        return OP_FAIL_AS(c, OX_UNSUPPORTED,
                          "state_window and more than one dimension are not supported");
    if (x->rank != 3 || w->rank != 3 || w->dims[1] != 1 || dilation < 1 || dilation > 1 << 20 ||
        w->dims[2] < 1)
        return OP_FAIL(c, "needs an input [B, C, L] and a weight [C, 1, k]");
    const size_t batch = (size_t)x->dims[0], ch = (size_t)x->dims[last ? 2 : 1],
                 len = (size_t)x->dims[last ? 1 : 2];
    const size_t k = (size_t)w->dims[2], d = (size_t)dilation, keep = (k - 1) * d, all = keep + len;
    if ((size_t)w->dims[0] != ch || (bias && ox_op_size(bias) != ch) ||
        (past && ox_op_size(past) != batch * ch * keep))
        return OP_FAIL(c, "weight, bias or past do not fit %zu channels", ch);
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, w, &taps));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &add));
    if (past) OX_TRY(ox_op_doubles(c, past, &old));
    const int64_t sdims[3] = {x->dims[0], (int64_t)ch, (int64_t)keep};
    OX_TRY(ox_op_out(c, 0, x->dtype, 3, x->dims, &y));
    OX_TRY(ox_op_out(c, 1, past ? past->dtype : x->dtype, 3, sdims, &state));
    OX_TRY(ox_op_temp(c, all, sizeof(double), &p));
    ext = p;
    OX_TRY(ox_op_temp(c, batch * ch * len, sizeof(double), &p));
    out = p;
    const bool silu = ox_str_is(act, "silu") || ox_str_is(act, "swish");
    for (size_t r = 0; r < batch * ch; r++) {
        const size_t b = r / ch, e = r % ch;
        for (size_t t = 0; t < keep; t++)
            ext[t] = old ? old[r * keep + t] : 0;
        for (size_t t = 0; t < len; t++)
            ext[keep + t] = v[last ? (b * len + t) * ch + e : r * len + t];
        for (size_t t = 0; t < len; t++) {
            double s = add ? add[e] : 0;
            for (size_t j = 0; j < k; j++)
                s += taps[e * k + j] * ext[t + j * d];
            out[last ? (b * len + t) * ch + e : r * len + t] = silu ? s * sigmoid(s) : s;
        }
        ox_lane_store(state->dtype, state->data, r * keep, keep, (const ox_lane *)(ext + len));
    }
    ox_lane_store(y->dtype, y->data, 0, batch * ch * len, (const ox_lane *)out);
    return OX_OK;
}

/* decay = decay_scale * softplus(a + dt_bias), beta = sigmoid(b). */
ox_status ox_op_eval_linear_attention_gate(ox_op_ctx *c)
{
    const ox_tensor *a = ox_op_in(c, 0), *dt = ox_op_in(c, 1), *scale = ox_op_in(c, 2),
                    *b = ox_op_in(c, 3);
    double *v, *bias, *s;
    ox_tensor *y;
    const size_t h = a->rank ? (size_t)a->dims[a->rank - 1] : 0, n = ox_op_size(a);
    if (!h || ox_op_size(dt) != h || ox_op_size(scale) != h)
        return OP_FAIL(c, "biases and scales do not fit %zu heads", h);
    OX_TRY(ox_op_doubles(c, a, &v));
    OX_TRY(ox_op_doubles(c, dt, &bias));
    OX_TRY(ox_op_doubles(c, scale, &s));
    for (size_t i = 0; i < n; i++)
        v[i] = s[i % h] * softplus(v[i] + bias[i % h]);
    OX_TRY(ox_op_out(c, 0, a->dtype, a->rank, a->dims, &y));
    ox_lane_store(y->dtype, y->data, 0, n, (const ox_lane *)v);
    if (!b) return OX_OK;
    OX_TRY(ox_op_doubles(c, b, &v));
    for (size_t i = 0; i < ox_op_size(b); i++)
        v[i] = sigmoid(v[i]);
    OX_TRY(ox_op_out(c, 1, b->dtype, b->rank, b->dims, &y));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(b), (const ox_lane *)v);
    return OX_OK;
}

/* Root-mean-square over each trailing group of the scale's length,
 * times scale, times silu(gate). */
ox_status ox_op_eval_gated_rms_norm(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *scale = ox_op_in(c, 1), *gate = ox_op_in(c, 2);
    const double epsilon = (double)ox_node_float(c->node, "epsilon", 1e-5f);
    double *v, *w, *g;
    ox_tensor *y;
    const size_t n = ox_op_size(scale), total = ox_op_size(x);
    if (!n || !x->rank || (size_t)x->dims[x->rank - 1] % n || ox_op_size(gate) != total)
        return OP_FAIL(c, "scale and gate do not fit");
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, scale, &w));
    OX_TRY(ox_op_doubles(c, gate, &g));
    for (size_t r = 0; r < total; r += n) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += v[r + i] * v[r + i];
        const double f = 1 / sqrt(sum / (double)n + epsilon);
        for (size_t i = 0; i < n; i++)
            v[r + i] *= f * w[i] * g[r + i] * sigmoid(g[r + i]);
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    ox_lane_store(y->dtype, y->data, 0, total, (const ox_lane *)v);
    return OX_OK;
}

/* X + Y * gate, the gate one for each row; the product is rounded first. */
ox_status ox_op_eval_gated_add(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *y = ox_op_in(c, 1), *gate = ox_op_in(c, 2);
    const size_t n = ox_op_size(x), rows = ox_op_size(gate);
    double *a, *b, *g;
    ox_tensor *out;
    if (ox_op_size(y) != n || (n && (!rows || n % rows)))
        return OP_FAIL(c, "its inputs do not fit");
    OX_TRY(ox_op_doubles(c, x, &a));
    OX_TRY(ox_op_doubles(c, y, &b));
    OX_TRY(ox_op_doubles(c, gate, &g));
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &out));
    for (size_t i = 0; i < n; i++)
        b[i] *= g[i / (n / rows)];
    ox_lane_store(out->dtype, out->data, 0, n, (const ox_lane *)b);
    ox_lane_load(out->dtype, out->data, NULL, 0, n, (ox_lane *)b);
    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
    ox_lane_store(out->dtype, out->data, 0, n, (const ox_lane *)a);
    return OX_OK;
}

/* swish_alpha(A) * B */
ox_status ox_op_eval_swiglu(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *y = ox_op_in(c, 1);
    const double alpha = (double)ox_node_float(c->node, "alpha", 1);
    const size_t n = ox_op_size(x);
    double *a, *b;
    ox_tensor *out;
    if (x->rank != y->rank || memcmp(x->dims, y->dims, sizeof(int64_t) * (size_t)x->rank))
        return OP_FAIL(c, "its inputs differ in shape");
    OX_TRY(ox_op_doubles(c, x, &a));
    OX_TRY(ox_op_doubles(c, y, &b));
    for (size_t i = 0; i < n; i++)
        a[i] *= sigmoid(alpha * a[i]) * b[i];
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &out));
    ox_lane_store(out->dtype, out->data, 0, n, (const ox_lane *)a);
    return OX_OK;
}
