/* norm.c - normalisations. Statistics in double; where an operator rounds between its stages, so
 * does this. */
#include "ops/op_internal.h"

#include <math.h>

/* Rounds to the type and back. */
static double rounded(ox_dtype t, double x)
{
    char cell[16] = {0};
    ox_lane l = {.f = x};
    ox_lane_store(t, cell, 0, 1, &l);
    ox_lane_load(t, cell, NULL, 0, 1, &l);
    return l.f;
}

typedef struct stats {
    double mean, inv_std;
} stats;

static stats stats_of(const double *x, size_t n, size_t step, double epsilon, bool centre)
{
    stats s = {0, 0};
    double sum = 0;
    for (size_t i = 0; centre && i < n; i++)
        s.mean += x[i * step] / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (x[i * step] - s.mean) * (x[i * step] - s.mean);
    s.inv_std = 1 / sqrt(sum / (double)n + epsilon);
    return s;
}

/* Doubles of a parameter broadcast (from the right) to the shape of x. */
static ox_status spread(ox_op_ctx *c, const ox_tensor *p, const ox_tensor *x, double **out)
{
    int64_t at[OX_RANK_MAX] = {0}, dims[OX_RANK_MAX];
    const ox_tensor *both[2] = {x, p};
    size_t s[OX_RANK_MAX];
    int32_t rank;
    double *v;
    void *q;
    *out = NULL;
    if (!p) return OX_OK;
    if (!ox_op_broadcast(both, 2, &rank, dims) || rank != x->rank ||
        memcmp(dims, x->dims, (size_t)rank * sizeof(*dims)))
        return OP_FAIL(c, "a parameter does not broadcast to the input");
    OX_TRY(ox_op_doubles(c, p, &v));
    OX_TRY(ox_op_temp(c, ox_op_size(x), sizeof(double), &q));
    *out = q;
    ox_op_strides(p, rank, s);
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        (*out)[i] = v[ox_op_offset(at, s, rank)];
        (void)ox_op_next(at, dims, rank);
    }
    return OX_OK;
}

/* LayerNormalization, RMSNormalization, SimplifiedLayerNormalization. */
ox_status ox_op_eval_layer_norm(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *scale = ox_op_in(c, 1), *bias = ox_op_in(c, 2);
    const bool centre = ox_str_is(c->node->op_type, "LayerNormalization");
    const bool round_first = ox_str_is(c->node->op_type, "RMSNormalization");
    const double epsilon = (double)ox_node_float(c->node, "epsilon", 1e-5f);
    int64_t dims[OX_RANK_MAX];
    double *v, *g, *b;
    int32_t axis;
    ox_tensor *y, *mean, *inv;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", -1), x->rank, &axis));
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : 1;
    OX_TRY(ox_op_out(c, 0, round_first ? scale->dtype : x->dtype, x->rank, x->dims, &y));
    const ox_dtype stat = (ox_dtype)ox_node_int(c->node, "stash_type", OX_DTYPE_F32);
    if (!ox_dtype_is_float(stat)) return OP_FAIL(c, "stash_type must be a float type");
    OX_TRY(ox_op_out(c, centre ? 1 : c->n_out, stat, x->rank, dims, &mean));
    OX_TRY(ox_op_out(c, centre ? 2 : 1, stat, x->rank, dims, &inv));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(spread(c, scale, x, &g));
    OX_TRY(spread(c, bias, x, &b));
    const size_t n = ox_op_product(x->dims, axis, x->rank), rows = ox_op_product(x->dims, 0, axis);
    for (size_t r = 0; r < rows; r++) {
        const stats s = stats_of(v + r * n, n, 1, epsilon, centre);
        const ox_lane m = {.f = s.mean}, i_s = {.f = s.inv_std};
        for (size_t i = r * n; i < (r + 1) * n; i++) {
            double u = (v[i] - s.mean) * s.inv_std;
            if (round_first) u = rounded(x->dtype, u);
            v[i] = u * g[i] + (b ? b[i] : 0);
        }
        ox_lane_store(stat, mean->data, r, 1, &m);
        ox_lane_store(stat, inv->data, r, 1, &i_s);
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), (const ox_lane *)v);
    return OX_OK;
}

/* SkipLayerNormalization(input, skip, gamma, beta?, bias?) and its simplified form (no beta). */
ox_status ox_op_eval_skip_layer_norm(ox_op_ctx *c)
{
    const bool simple = ox_str_is(c->node->op_type, "SkipSimplifiedLayerNormalization");
    const ox_tensor *x = ox_op_in(c, 0), *skip = ox_op_in(c, 1), *gamma = ox_op_in(c, 2);
    const ox_tensor *beta = simple ? NULL : ox_op_in(c, 3), *bias = ox_op_in(c, simple ? 3 : 4);
    const double epsilon = (double)ox_node_float(c->node, "epsilon", 1e-12f);
    double *v, *s, *g, *b, *add;
    int64_t dims[OX_RANK_MAX];
    ox_tensor *y, *mean, *inv, *sum;
    if (x->rank < 1) return OP_FAIL(c, "the input must have dimensions");
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(spread(c, skip, x, &s));
    OX_TRY(spread(c, gamma, x, &g));
    OX_TRY(spread(c, beta, x, &b));
    OX_TRY(spread(c, bias, x, &add));
    memcpy(dims, x->dims, sizeof(dims));
    dims[x->rank - 1] = 1;
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_out(c, 1, OX_DTYPE_F32, x->rank, dims, &mean));
    OX_TRY(ox_op_out(c, 2, OX_DTYPE_F32, x->rank, dims, &inv));
    OX_TRY(ox_op_out(c, 3, x->dtype, x->rank, x->dims, &sum));
    const size_t n = (size_t)x->dims[x->rank - 1], total = ox_op_size(x);
    for (size_t i = 0; i < total; i++)
        v[i] += s[i] + (add ? add[i] : 0);
    ox_lane_store(sum->dtype, sum->data, 0, total, (const ox_lane *)v);
    for (size_t r = 0; n && r < total / n; r++) {
        const stats t = stats_of(v + r * n, n, 1, epsilon, !simple);
        const ox_lane m = {.f = t.mean}, i_s = {.f = t.inv_std};
        for (size_t i = r * n; i < (r + 1) * n; i++)
            v[i] = (v[i] - t.mean) * t.inv_std * g[i] + (b ? b[i] : 0);
        ox_lane_store(OX_DTYPE_F32, mean->data, r, 1, &m);
        ox_lane_store(OX_DTYPE_F32, inv->data, r, 1, &i_s);
    }
    ox_lane_store(y->dtype, y->data, 0, total, (const ox_lane *)v);
    return OX_OK;
}

ox_status ox_op_eval_lp_norm(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const int64_t p = ox_node_int(c->node, "p", 2);
    int32_t axis;
    ox_tensor *y;
    double *v;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", -1), x->rank, &axis));
    if (p != 1 && p != 2) return OP_FAIL(c, "p must be 1 or 2");
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    const size_t n = (size_t)x->dims[axis], inner = ox_op_product(x->dims, axis + 1, x->rank);
    for (size_t o = 0; o < ox_op_product(x->dims, 0, axis) * inner; o++) {
        double *line = v + o / inner * n * inner + o % inner, sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += p == 1 ? fabs(line[i * inner]) : line[i * inner] * line[i * inner];
        if (p == 2) sum = sqrt(sum);
        for (size_t i = 0; i < n; i++)
            line[i * inner] = sum > 0 || isnan(sum) ? line[i * inner] / sum : 0;
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), (const ox_lane *)v);
    return OX_OK;
}

/* InstanceNormalization and GroupNormalization: [N, C, ...] with groups of channels. */
ox_status ox_op_eval_group_norm(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *scale = ox_op_in(c, 1), *bias = ox_op_in(c, 2);
    const bool instance = ox_str_is(c->node->op_type, "InstanceNormalization");
    const double epsilon = (double)ox_node_float(c->node, "epsilon", 1e-5f);
    double *v, *g, *b;
    ox_tensor *y;
    if (x->rank < 2) return OP_FAIL(c, "the input must have two dimensions or more");
    const int64_t channels = x->dims[1],
                  groups = instance ? channels : ox_node_int(c->node, "num_groups", 0);
    if (groups < 1 || channels % groups)
        return OP_FAIL(c, "its groups do not divide %lld", (long long)channels);
    const size_t per = ox_op_size(scale);
    if (per != ox_op_size(bias) || (per != (size_t)channels && per != (size_t)groups))
        return OP_FAIL(c, "scale and bias do not fit %lld channels", (long long)channels);
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, scale, &g));
    OX_TRY(ox_op_doubles(c, bias, &b));
    const size_t space = ox_op_product(x->dims, 2, x->rank), in_group = (size_t)(channels / groups);
    for (size_t k = 0; k < (size_t)(x->dims[0] * groups); k++) {
        double *group = v + k * in_group * space;
        const stats s = stats_of(group, in_group * space, 1, epsilon, true);
        for (size_t i = 0; i < in_group * space; i++) {
            const size_t ch = k % (size_t)groups * in_group + i / space;
            const size_t p = per == (size_t)channels ? ch : k % (size_t)groups;
            group[i] = (group[i] - s.mean) * s.inv_std * g[p] + b[p];
        }
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), (const ox_lane *)v);
    return OX_OK;
}

static ox_status store_running(ox_op_ctx *c, size_t i, const ox_tensor *like, const double *old,
                               const double *now, double momentum)
{
    ox_tensor *y;
    OX_TRY(ox_op_out(c, i, like->dtype, like->rank, like->dims, &y));
    for (size_t k = 0, n = ox_op_size(like); k < n; k++) {
        const ox_lane x = {.f = old[k] * momentum + now[k] * (1 - momentum)};
        ox_lane_store(y->dtype, y->data, k, 1, &x);
    }
    return OX_OK;
}

ox_status ox_op_eval_batch_norm(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const double epsilon = (double)ox_node_float(c->node, "epsilon", 1e-5f);
    const bool training = ox_node_int(c->node, "training_mode", 0) != 0;
    double *v, *p[4], *mean, *var;
    ox_tensor *y;
    void *q;
    const size_t channels = x->rank > 1 ? (size_t)x->dims[1] : 1;
    for (size_t i = 0; i < 4; i++) {
        if (ox_op_size(ox_op_in(c, 1 + i)) != channels)
            return OP_FAIL(c, "input %zu must have %zu elements", i + 1, channels);
        OX_TRY(ox_op_doubles(c, ox_op_in(c, 1 + i), &p[i]));
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    mean = p[2];
    var = p[3];
    const size_t space = x->rank > 2 ? ox_op_product(x->dims, 2, x->rank) : 1, n = ox_op_size(x);
    if (training) {
        const double count = (double)n / (double)channels;
        OX_TRY(ox_op_temp(c, 2 * channels, sizeof(double), &q));
        mean = q;
        var = mean + channels;
        for (size_t i = 0; i < n; i++)
            mean[i / space % channels] += v[i] / count;
        for (size_t i = 0; i < n; i++) {
            const double d = v[i] - mean[i / space % channels];
            var[i / space % channels] += d * d / count;
        }
        const double m = (double)ox_node_float(c->node, "momentum", 0.9f);
        OX_TRY(store_running(c, 1, ox_op_in(c, 3), p[2], mean, m));
        OX_TRY(store_running(c, 2, ox_op_in(c, 4), p[3], var, m));
    }
    for (size_t i = 0; i < n; i++) {
        const size_t k = i / space % channels;
        v[i] = (v[i] - mean[k]) / sqrt(var[k] + epsilon) * p[0][k] + p[1][k];
    }
    ox_lane_store(y->dtype, y->data, 0, n, (const ox_lane *)v);
    return OX_OK;
}

ox_status ox_op_eval_lrn(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const int64_t size = ox_node_int(c->node, "size", 0);
    const double alpha = (double)ox_node_float(c->node, "alpha", 0.0001f);
    const double beta = (double)ox_node_float(c->node, "beta", 0.75f);
    const double bias = (double)ox_node_float(c->node, "bias", 1);
    double *v;
    ox_tensor *y;
    void *q;
    if (x->rank < 2 || size < 1) return OP_FAIL(c, "needs channels and a size");
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_temp(c, ox_op_size(x), sizeof(double), &q));
    double *out = q;
    const size_t space = ox_op_product(x->dims, 2, x->rank);
    const int64_t channels = x->dims[1];
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        const int64_t ch = (int64_t)(i / space) % channels;
        const int64_t half = size > 2 * channels ? channels : size;
        const int64_t lo = ch - (half - 1) / 2, hi = ch + half / 2;
        double sum = 0;
        for (int64_t k = lo < 0 ? 0 : lo; k <= hi && k < channels; k++) {
            const double e = v[i + (size_t)(k - ch) * space];
            sum += e * e;
        }
        out[i] = v[i] / pow(bias + alpha / (double)size * sum, beta);
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), q);
    return OX_OK;
}

ox_status ox_op_eval_mean_variance_norm(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t axes[OX_OP_LIST] = {0, 2, 3}, at[OX_RANK_MAX] = {0};
    bool marked[OX_RANK_MAX] = {false};
    size_t s[OX_RANK_MAX], count = 1;
    ox_tensor kept = {.rank = x->rank}, *y;
    double *v, *mean, *square;
    void *q;
    int n;
    OX_TRY(ox_op_attr_list(c, "axes", axes, &n));
    OX_TRY(ox_op_axes(c, axes, n < 0 ? 3 : n, x->rank, marked));
    for (int32_t i = 0; i < x->rank; i++) {
        kept.dims[i] = marked[i] ? 1 : x->dims[i];
        if (marked[i]) count *= (size_t)x->dims[i];
    }
    ox_op_strides(&kept, x->rank, s);
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_temp(c, 2 * ox_op_size(&kept), sizeof(double), &q));
    mean = q;
    square = mean + ox_op_size(&kept);
    for (size_t i = 0, size = ox_op_size(x); i < size; i++) {
        const size_t o = ox_op_offset(at, s, x->rank);
        mean[o] += v[i] / (double)count;
        square[o] += v[i] * v[i] / (double)count;
        (void)ox_op_next(at, x->dims, x->rank);
    }
    for (size_t i = 0, size = ox_op_size(x); i < size; i++) {
        const size_t o = ox_op_offset(at, s, x->rank);
        v[i] = (v[i] - mean[o]) / (sqrt(square[o] - mean[o] * mean[o]) + 1e-9);
        (void)ox_op_next(at, x->dims, x->rank);
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), (const ox_lane *)v);
    return OX_OK;
}
