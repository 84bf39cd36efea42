/* experts.c - MoE and QMoE of the second domain: routing, then the chosen experts' two or three
 * matrices. Quantised weights are read code by code. */
#include "ops/op_internal.h"

#include <math.h>

typedef enum act { RELU, GELU, SILU, SWIGLU, IDENTITY } act;

/* One matrix for each expert: [E, rows, cols]. */
typedef struct matrix {
    const ox_tensor *w;
    double *plain, *scale, *bias;
    const uint8_t *codes, *zero;
    size_t rows, cols, bits, block, blocks, zero_bytes; /* of one expert */
} matrix;

typedef struct moe {
    act act;
    size_t n_experts, width, inner, k, tokens;
    double alpha, beta, limit;
    int64_t fusion;
    bool normalize, quantised;
    matrix fc1, fc2, fc3;
} moe;

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double activate(const moe *m, double x)
{
    switch (m->act) {
    case RELU:
        return x > 0 ? x : 0;
    case GELU:
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case SILU:
        return x * sigmoid(x);
    default:
        return x;
    }
}

static double glu(const moe *m, double g, double l)
{
    if (g > m->limit) g = m->limit;
    l = l > m->limit ? m->limit : l < -m->limit ? -m->limit : l;
    return g * sigmoid(m->alpha * g) * (l + m->beta);
}

static unsigned code_at(const uint8_t *p, size_t i, size_t bits)
{
    return (uint32_t)p[i * bits / 8] >> i * bits % 8 & ((1u << bits) - 1);
}

static double weight_at(const matrix *x, size_t e, size_t r, size_t c)
{
    const size_t row = e * x->rows + r;
    if (x->plain) return x->plain[row * x->cols + c];
    const size_t b = x->block ? c / x->block : 0;
    double z = (double)(1u << (x->bits - 1));
    if (x->zero && x->block)
        z = (double)code_at(x->zero + e * x->zero_bytes + r * (x->zero_bytes / x->rows), b,
                            x->bits);
    if (x->zero && !x->block) z = (double)code_at(x->zero + e * x->zero_bytes, r, x->bits);
    const unsigned q = code_at(x->codes + row * (x->cols * x->bits / 8), c, x->bits);
    return ((double)q - z) * x->scale[row * x->blocks + b];
}

static void apply(const matrix *x, size_t e, const double *in, double *out)
{
    for (size_t r = 0; r < x->rows; r++) {
        double s = x->bias ? x->bias[e * x->rows + r] : 0;
        for (size_t c = 0; c < x->cols; c++)
            s += in[c] * weight_at(x, e, r, c);
        out[r] = s;
    }
}

/* Reads matrix operands; scale and zero are input numbers, 0 = there are none. */
static ox_status matrix_open(ox_op_ctx *c, matrix *x, size_t i_w, size_t i_scale, size_t i_bias,
                             size_t i_zero, const moe *m)
{
    const ox_tensor *w = ox_op_in(c, i_w), *bias = ox_op_in(c, i_bias);
    if (!w) return OX_OK;
    if (w->rank != 3 || (size_t)w->dims[0] != m->n_experts || !w->dims[1])
        return OP_FAIL(c, "input %zu is not one matrix for each of %zu experts", i_w, m->n_experts);
    x->w = w;
    x->rows = (size_t)w->dims[1];
    x->cols = (size_t)w->dims[2];
    if (bias && ox_op_size(bias) != m->n_experts * x->rows)
        return OP_FAIL(c, "the bias of input %zu does not fit", i_w);
    if (bias) OX_TRY(ox_op_doubles(c, bias, &x->bias));
    if (!m->quantised) {
        if (!ox_dtype_is_float(w->dtype)) return OP_FAIL(c, "input %zu must be float", i_w);
        return ox_op_doubles(c, w, &x->plain);
    }
    const int64_t bits = ox_node_int(c->node, "expert_weight_bits", 4),
                  block = ox_node_int(c->node, "block_size", 0);
    const ox_tensor *scale = ox_op_in(c, i_scale), *zero = ox_op_in(c, i_zero);
    if ((bits != 2 && bits != 4 && bits != 8) || block < 0 || w->dtype != OX_DTYPE_U8 || !scale ||
        !ox_dtype_is_float(scale->dtype))
        return OP_FAIL(c, "input %zu must be codes of 2, 4 or 8 bits with scales", i_w);
    x->bits = (size_t)bits;
    x->cols *= 8 / x->bits;
    x->block = (size_t)block;
    x->blocks = block ? (x->cols + x->block - 1) / x->block : 1;
    if (ox_op_size(scale) != m->n_experts * x->rows * x->blocks)
        return OP_FAIL(c, "the scales of input %zu do not fit", i_w);
    x->codes = w->data;
    OX_TRY(ox_op_doubles(c, scale, &x->scale));
    if (!zero) return OX_OK;
    const size_t packed =
        block ? x->rows * ((x->blocks * x->bits + 7) / 8) : (x->rows * x->bits + 7) / 8;
    if (zero->dtype != OX_DTYPE_U8 || ox_op_size(zero) != m->n_experts * packed)
        return OP_FAIL(c, "the zero points of input %zu do not fit", i_w);
    x->zero = zero->data;
    x->zero_bytes = packed;
    return OX_OK;
}

/* Chooses k experts of one token; lower index first among equals. */
static void choose(const double *logits, size_t n, size_t k, size_t *chosen)
{
    for (size_t i = 0; i < k; i++) {
        size_t best = SIZE_MAX;
        for (size_t e = 0; e < n; e++) {
            bool taken = false;
            for (size_t j = 0; j < i; j++)
                taken |= chosen[j] == e;
            if (!taken && (best == SIZE_MAX || logits[e] > logits[best])) best = e;
        }
        chosen[i] = best;
    }
}

/* Two experts, each by a softmax over the logits near its own maximum; not renormalised. */
static void sparse_mixer(const double *logits, size_t n, size_t *chosen, double *weight)
{
    for (size_t r = 0; r < 2; r++) {
        size_t best = SIZE_MAX;
        double sum = 0;
        for (size_t e = 0; e < n; e++)
            if (!(r && e == chosen[0]) && (best == SIZE_MAX || logits[e] > logits[best])) best = e;
        const double max = logits[best];
        for (size_t e = 0; e < n; e++) {
            if (r && e == chosen[0]) continue;
            if ((max - logits[e]) / fmax(fabs(logits[e]), max) <= 0.02) sum += exp(logits[e] - max);
        }
        chosen[r] = best;
        weight[r] = 1 / sum;
    }
}

static void route(const moe *m, const double *logits, const double *given, size_t *chosen,
                  double *weight)
{
    double max = logits[0], all = 0, sum = 0;
    choose(logits, m->n_experts, m->k, chosen);
    for (size_t e = 0; e < m->n_experts; e++)
        max = fmax(max, logits[e]);
    for (size_t e = 0; e < m->n_experts; e++)
        all += exp(logits[e] - max);
    for (size_t i = 0; i < m->k; i++) {
        weight[i] = given ? given[chosen[i]] : exp(logits[chosen[i]] - max) / all;
        sum += weight[i];
    }
    for (size_t i = 0; m->normalize && sum > 0 && i < m->k; i++)
        weight[i] /= sum;
}

/* out += weight * fc2(act(fc1 x) [* fc3 x]) */
static void expert(const moe *m, size_t e, double weight, const double *x, double *tmp, double *out)
{
    double *h = tmp, *g = h + m->fc1.rows, *y = g + m->fc1.rows;
    apply(&m->fc1, e, x, h);
    if (m->fc3.w) apply(&m->fc3, e, x, g);
    for (size_t i = 0; i < m->inner; i++) {
        if (m->fusion == 1)
            h[i] = glu(m, h[2 * i], h[2 * i + 1]);
        else if (m->fusion == 2)
            h[i] = glu(m, h[i], h[m->inner + i]);
        else if (m->act == SWIGLU)
            h[i] = glu(m, h[i], g[i]);
        else
            h[i] = activate(m, h[i]) * (m->fc3.w ? g[i] : 1);
    }
    apply(&m->fc2, e, h, y);
    for (size_t i = 0; i < m->width; i++)
        out[i] += weight * y[i];
}

static ox_status moe_open(ox_op_ctx *c, moe *m)
{
    static const char *const names[] = {"relu", "gelu", "silu", "swiglu", "identity"};
    const ox_tensor *x = ox_op_in(c, 0), *logits = ox_op_in(c, 1);
    const ox_str a = ox_node_str(c->node, "activation_type", "relu");
    const int64_t k = ox_node_int(c->node, "k", 1);
    int found = -1;
    for (int i = 0; i < 5; i++)
        if (ox_str_is(a, names[i])) found = i;
    if (found < 0)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "activation \"%.*s\" is not known", OX_STR_ARGS(a));
    if (m->quantised && !ox_str_is(ox_node_str(c->node, "quant_type", "int"), "int"))
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "only integer weights are supported");
    if (m->quantised && ox_node_int(c->node, "weights_prepacked", 0) > 0)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "its weights are prepacked for one device");
    if (x->rank < 2 || logits->rank != 2 || logits->dims[1] < 1 || x->dims[x->rank - 1] < 1)
        return OP_FAIL(c, "needs an input [tokens, D] and logits [tokens, E]");
    m->act = (act)found;
    m->width = (size_t)x->dims[x->rank - 1];
    m->tokens = ox_op_size(x) / m->width;
    m->n_experts = (size_t)logits->dims[1];
    if ((size_t)logits->dims[0] != m->tokens || k < 1 || (size_t)k > m->n_experts)
        return OP_FAIL(c, "cannot choose %lld of %zu experts", (long long)k, m->n_experts);
    m->k = (size_t)k;
    m->alpha = (double)ox_node_float(c->node, "activation_alpha", 1);
    m->beta = (double)ox_node_float(c->node, "activation_beta", 0);
    m->limit = (double)ox_node_float(c->node, "swiglu_limit", INFINITY);
    m->fusion = m->act == SWIGLU ? ox_node_int(c->node, "swiglu_fusion", 0) : 0;
    m->normalize = ox_node_int(c->node, "normalize_routing_weights", 0) != 0;
    const bool q = m->quantised;
    OX_TRY(matrix_open(c, &m->fc1, 2, 3, q ? 4 : 3, 11, m));
    OX_TRY(matrix_open(c, &m->fc2, q ? 5 : 4, 6, q ? 7 : 5, 12, m));
    OX_TRY(matrix_open(c, &m->fc3, q ? 8 : 6, 9, q ? 10 : 7, 13, m));
    m->inner = m->fusion ? m->fc1.rows / 2 : m->fc1.rows;
    if (m->fc1.cols < m->width || m->fc2.rows != m->width || m->fc2.cols < m->inner ||
        (m->fc3.w && (m->fc3.rows != m->inner || m->fc3.cols < m->width)) ||
        (m->act == SWIGLU && !m->fusion && !m->fc3.w))
        return OP_FAIL(c, "its matrices do not fit %zu channels", m->width);
    m->fc1.cols = m->fc1.cols == m->width ? m->width : m->fc1.cols;
    if (m->fc1.cols != m->width || m->fc2.cols != m->inner || (m->fc3.w && m->fc3.cols != m->width))
        return OP_FAIL(c, "its matrices do not fit %zu channels", m->width);
    return OX_OK;
}

ox_status ox_op_eval_moe(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *given = NULL;
    const bool sparse = ox_node_int(c->node, "use_sparse_mixer", 0) != 0;
    moe m = {.quantised = ox_str_is(c->node->op_type, "QMoE")};
    double *v, *logits, *weights = NULL, *weight;
    size_t *chosen;
    ox_tensor *y;
    void *p, *tmp, *out;
    OX_TRY(moe_open(c, &m));
    if (m.quantised) given = ox_op_in(c, 14);
    if (sparse && (m.k != 2 || m.n_experts < 2))
        return OP_FAIL(c, "the sparse mixer chooses two experts");
    if (given && ox_op_size(given) != m.tokens * m.n_experts)
        return OP_FAIL(c, "router_weights do not fit");
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, ox_op_in(c, 1), &logits));
    if (given) OX_TRY(ox_op_doubles(c, given, &weights));
    OX_TRY(ox_op_temp(c, m.k, sizeof(double), &p));
    weight = p;
    OX_TRY(ox_op_temp(c, m.k, sizeof(size_t), &p));
    chosen = p;
    OX_TRY(ox_op_temp(c, 2 * m.fc1.rows + m.width, sizeof(double), &tmp));
    OX_TRY(ox_op_temp(c, m.tokens * m.width, sizeof(double), &out));
    for (size_t t = 0; t < m.tokens; t++) {
        const double *row = logits + t * m.n_experts;
        if (sparse)
            sparse_mixer(row, m.n_experts, chosen, weight);
        else
            route(&m, row, weights ? weights + t * m.n_experts : NULL, chosen, weight);
        for (size_t i = 0; i < m.k; i++)
            expert(&m, chosen[i], weight[i], v + t * m.width, tmp, (double *)out + t * m.width);
        OX_TRY(ox_op_cancelled(c));
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), out);
    return OX_OK;
}
