/* pool.c - MaxPool, AveragePool, LpPool, their global forms, MaxUnpool. */
#include "ops/window.h"

#include <assert.h>
#include <math.h>

typedef enum kind { MAX, AVERAGE, LP } kind;

static kind kind_of(ox_str name)
{
    if (ox_str_ends(name, OX_STR("MaxPool"))) return MAX;
    return ox_str_ends(name, OX_STR("AveragePool")) ? AVERAGE : LP;
}

/* Places of the window at `at` that lie in the input or its padding (ceil_mode reaches further). */
static size_t padded_count(const ox_window *w, const int64_t *at)
{
    size_t n = 1;
    for (int32_t a = 0; a < w->n; a++) {
        size_t m = 0;
        for (int64_t k = 0; k < w->size[a]; k++)
            m += at[a] * w->stride[a] + k * w->dilation[a] < w->in[a] + w->begin[a] + w->end[a];
        n *= m;
    }
    return n;
}

typedef struct pool {
    kind k;
    bool include_pad;
    double p;
    const double *x;
    size_t space;
} pool;

static double pool_window(const pool *k, const ox_window *w, const int64_t *at, const double *plane,
                          int64_t *index)
{
    int64_t tap[OX_SPACE_MAX] = {0};
    double acc = k->k == MAX ? -(double)INFINITY : 0;
    size_t n = 0;
    *index = -1;
    do {
        const int64_t i = ox_window_index(w, at, tap);
        if (i < 0) continue;
        const double x = plane[i];
        n++;
        if (k->k == MAX && (x > acc || isnan(x) || *index < 0)) {
            acc = x;
            *index = i;
        }
        if (k->k == AVERAGE) acc += x;
        if (k->k == LP) acc += pow(fabs(x), k->p);
    } while (ox_op_next(tap, w->size, w->n));
    if (k->k == AVERAGE) acc /= (double)(k->include_pad ? padded_count(w, at) : n);
    if (k->k == LP) acc = pow(acc, 1 / k->p);
    return acc;
}

/* Row-major index as column-major when asked for. */
static int64_t stored_index(const ox_window *w, int64_t i, bool column_major)
{
    int64_t at[OX_SPACE_MAX], r = 0;
    if (!column_major) return i;
    for (int32_t a = w->n - 1; a >= 0; a--) {
        at[a] = i % w->in[a];
        i /= w->in[a];
    }
    for (int32_t a = w->n - 1; a >= 0; a--)
        r = r * w->in[a] + at[a];
    return r;
}

ox_status ox_op_eval_pool(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool global = ox_str_starts(c->node->op_type, OX_STR("Global"));
    const bool column_major = ox_node_int(c->node, "storage_order", 0) != 0;
    int64_t dims[OX_RANK_MAX], index;
    ox_tensor *y, *where = NULL;
    ox_window w;
    double *v;
    pool k = {.k = kind_of(c->node->op_type),
              .include_pad = ox_node_int(c->node, "count_include_pad", 0) != 0};
    if (global) {
        if (x->rank < 3) return OP_FAIL(c, "needs an input [N, C, ...]");
        w = (ox_window){.n = x->rank - 2};
        for (int32_t i = 0; i < w.n; i++) {
            w.in[i] = w.size[i] = x->dims[2 + i];
            w.stride[i] = w.dilation[i] = w.out[i] = 1;
            if (w.size[i] < 1) return OP_FAIL(c, "has an empty input");
        }
    } else {
        OX_TRY(ox_window_open(c, x, NULL, &w));
        OX_TRY(ox_window_forward(c, &w));
    }
    k.p = ox_node_attr(c->node, "p") && ox_node_attr(c->node, "p")->type == OX_ATTR_FLOAT
              ? (double)ox_node_float(c->node, "p", 2)
              : (double)ox_node_int(c->node, "p", 2);
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    memcpy(dims + 2, w.out, sizeof(int64_t) * (size_t)w.n);
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, dims, &y));
    if (ox_op_wants(c, 1)) OX_TRY(ox_op_out(c, 1, OX_DTYPE_I64, x->rank, dims, &where));
    OX_TRY(ox_op_doubles(c, x, &v));
    const size_t space = ox_op_product(x->dims, 2, x->rank), out = ox_op_product(w.out, 0, w.n);
    const bool is_float = ox_dtype_is_float(x->dtype);
    size_t taps = 1;
    for (int32_t i = 0; i < w.n; i++)
        if (!ox_size_mul(taps, (size_t)w.size[i], &taps))
            return OP_FAIL_AS(c, OX_LIMIT, "is too large");
    OX_TRY(ox_op_work(c, ox_op_size(y), taps, 1));
    for (size_t plane = 0; plane < (size_t)(dims[0] * dims[1]); plane++) {
        int64_t at[OX_SPACE_MAX] = {0};
        for (size_t o = 0; o < out; o++) {
            ox_lane r = {.f = pool_window(&k, &w, at, v + plane * space, &index)};
            if (!is_float) r.i = ox_lane_int(r.f);
            ox_lane_store(y->dtype, y->data, plane * out + o, 1, &r);
            if (where)
                ((int64_t *)where->data)[plane * out + o] =
                    (int64_t)(plane * space) + stored_index(&w, index, column_major);
            (void)ox_op_next(at, w.out, w.n);
        }
        OX_TRY(ox_op_cancelled(c));
    }
    return OX_OK;
}

ox_status ox_op_eval_max_unpool(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *ix = ox_op_in(c, 1);
    int64_t want[OX_OP_LIST], dims[OX_RANK_MAX], natural[OX_RANK_MAX], *index;
    ox_tensor *y;
    ox_window w;
    const int32_t rank = x->rank;
    int n;
    assert(rank >= 0 && rank <= OX_RANK_MAX);
    OX_TRY(ox_window_open(c, x, NULL, &w));
    OX_TRY(ox_op_list(c, 2, NULL, want, &n));
    if (ox_op_size(ix) != ox_op_size(x) || (n >= 0 && n != rank))
        return OP_FAIL(c, "indices or output_shape do not fit");
    for (int32_t i = 0; i < rank; i++) {
        natural[i] = x->dims[i];
        if (i >= 2)
            natural[i] =
                (x->dims[i] - 1) * w.stride[i - 2] - w.begin[i - 2] - w.end[i - 2] + w.size[i - 2];
        dims[i] = n < 0 ? natural[i] : want[i];
        if (dims[i] < 0 || natural[i] < 1) return OP_FAIL(c, "has an impossible output shape");
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, rank, dims, &y));
    OX_TRY(ox_op_ints(c, ix, &index));
    const size_t width = (size_t)ox_dtype_bits(x->dtype) / 8;
    for (size_t i = 0; i < ox_op_size(x); i++) {
        int64_t at = index[i], p[OX_RANK_MAX];
        size_t o = 0;
        bool inside = at >= 0;
        for (int32_t k = rank - 1; k >= 0; k--) { /* indices count in the natural shape */
            p[k] = at % natural[k];
            at /= natural[k];
        }
        for (int32_t k = 0; k < rank; k++) {
            inside &= p[k] >= 0 && p[k] < dims[k];
            o = o * (size_t)dims[k] + (size_t)p[k];
        }
        if (!inside || at) return OP_FAIL(c, "index %zu is outside of the output", i);
        memcpy((char *)y->data + o * width, (const char *)x->data + i * width, width);
    }
    return OX_OK;
}
