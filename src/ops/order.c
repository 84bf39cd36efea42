/* order.c - TopK and Unique: operators that sort. */
#include "ops/op_internal.h"

#include <math.h>

typedef struct entry {
    ox_lane x;
    size_t i;
} entry;

/* a before b: by value (NaN largest), then by index. */
static bool before(const entry *a, const entry *b, ox_lane_class k, bool largest)
{
    int order;
    if (k == OX_LANE_F) {
        const bool na = isnan(a->x.f), nb = isnan(b->x.f);
        order = na || nb ? na - nb : (a->x.f > b->x.f) - (a->x.f < b->x.f);
    } else if (k == OX_LANE_U) {
        order = (a->x.u > b->x.u) - (a->x.u < b->x.u);
    } else {
        order = (a->x.i > b->x.i) - (a->x.i < b->x.i);
    }
    if (order) return largest ? order > 0 : order < 0;
    return a->i < b->i;
}

/* Merge sort: stable in time whatever the data. */
static void sort(entry *x, entry *tmp, size_t n, ox_lane_class k, bool largest)
{
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * run) {
            const size_t mid = lo + run < n ? lo + run : n,
                         hi = lo + 2 * run < n ? lo + 2 * run : n;
            size_t a = lo, b = mid;
            for (size_t o = lo; o < hi; o++) {
                const bool left = b >= hi || (a < mid && before(&x[a], &x[b], k, largest));
                tmp[o] = left ? x[a++] : x[b++];
            }
        }
        memcpy(x, tmp, n * sizeof(*x));
    }
}

ox_status ox_op_eval_top_k(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool largest = ox_node_int(c->node, "largest", 1) != 0;
    const ox_lane_class cls = ox_lane_class_of(x->dtype);
    int64_t k, dims[OX_RANK_MAX];
    int32_t axis;
    ox_tensor *values, *indices;
    void *p, *q, *all;
    OX_TRY(ox_op_int_in(c, 1, ox_node_int(c->node, "k", -1), &k));
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", -1), x->rank, &axis));
    const size_t n = (size_t)x->dims[axis];
    if (k < 0 || (size_t)k > n) return OP_FAIL(c, "takes %lld of %zu", (long long)k, n);
    memcpy(dims, x->dims, sizeof(dims));
    dims[axis] = k;
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, dims, &values));
    OX_TRY(ox_op_out(c, 1, OX_DTYPE_I64, x->rank, dims, &indices));
    OX_TRY(ox_op_temp(c, n, sizeof(entry), &p));
    OX_TRY(ox_op_temp(c, n, sizeof(entry), &q));
    OX_TRY(ox_op_temp(c, ox_op_size(x), sizeof(ox_lane), &all));
    entry *e = p;
    const ox_lane *v = all;
    ox_lane_load(x->dtype, x->data, NULL, 0, ox_op_size(x), all);
    const size_t inner = ox_op_product(x->dims, axis + 1, x->rank),
                 outer = ox_op_product(x->dims, 0, axis);
    for (size_t o = 0; o < outer * inner; o++) {
        const size_t base = o / inner * n * inner + o % inner;
        for (size_t i = 0; i < n; i++)
            e[i] = (entry){v[base + i * inner], i};
        sort(e, q, n, cls, largest);
        for (size_t i = 0; i < (size_t)k; i++) {
            const size_t to = o / inner * (size_t)k * inner + o % inner + i * inner;
            ox_lane_store(values->dtype, values->data, to, 1, &e[i].x);
            ((int64_t *)indices->data)[to] = (int64_t)e[i].i;
        }
    }
    return OX_OK;
}

/* ---- Unique: slices along an axis, or single elements ---- */

typedef struct slices {
    const ox_lane *v;
    size_t outer, n, inner;
    ox_lane_class cls;
} slices;

static int compare(const slices *s, size_t a, size_t b)
{
    for (size_t o = 0; o < s->outer; o++) {
        for (size_t i = 0; i < s->inner; i++) {
            const ox_lane x = s->v[(o * s->n + a) * s->inner + i],
                          y = s->v[(o * s->n + b) * s->inner + i];
            const int k = s->cls == OX_LANE_F   ? (x.f > y.f) - (x.f < y.f)
                          : s->cls == OX_LANE_U ? (x.u > y.u) - (x.u < y.u)
                                                : (x.i > y.i) - (x.i < y.i);
            if (k) return k;
        }
    }
    return 0;
}

static void sort_slices(const slices *s, size_t *x, size_t *tmp)
{
    for (size_t run = 1; run < s->n; run *= 2) {
        for (size_t lo = 0; lo < s->n; lo += 2 * run) {
            const size_t mid = lo + run < s->n ? lo + run : s->n;
            const size_t hi = lo + 2 * run < s->n ? lo + 2 * run : s->n;
            size_t a = lo, b = mid;
            for (size_t o = lo; o < hi; o++) {
                const bool left = b >= hi || (a < mid && compare(s, x[a], x[b]) <= 0);
                tmp[o] = left ? x[a++] : x[b++];
            }
        }
        memcpy(x, tmp, s->n * sizeof(*x));
    }
}

ox_status ox_op_eval_unique(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const ox_attr *a = ox_node_attr(c->node, "axis");
    const bool sorted = ox_node_int(c->node, "sorted", 1) != 0;
    const size_t size = ox_op_size(x);
    slices s = {.outer = 1, .n = size, .inner = 1, .cls = ox_lane_class_of(x->dtype)};
    int64_t dims[OX_RANK_MAX], *first, *group;
    int32_t axis = 0, rank = 1;
    ox_tensor *y, *where, *inverse, *counts;
    void *p;
    if (a) {
        OX_TRY(ox_op_axis(c, a->i, x->rank, &axis));
        memcpy(dims, x->dims, sizeof(dims));
        rank = x->rank;
        s.outer = ox_op_product(x->dims, 0, axis);
        s.n = (size_t)x->dims[axis];
        s.inner = ox_op_product(x->dims, axis + 1, x->rank);
    }
    OX_TRY(ox_op_temp(c, size, sizeof(ox_lane), &p));
    ox_lane_load(x->dtype, x->data, NULL, 0, size, p);
    s.v = p;
    OX_TRY(ox_op_temp(c, 5 * s.n + 1, sizeof(size_t), &p));
    size_t *order = p, *tmp = order + s.n;
    first = (int64_t *)(tmp + s.n);     /* [groups] first index of each group */
    group = (int64_t *)(tmp + 2 * s.n); /* [n] group of each slice */
    size_t *rank_of = tmp + 3 * s.n;    /* [groups] place in the output */
    for (size_t i = 0; i < s.n; i++)
        order[i] = i;
    sort_slices(&s, order, tmp);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!i || compare(&s, order[i - 1], order[i]))
            first[n++] = (int64_t)order[i]; /* stable: the least */
        group[order[i]] = (int64_t)n - 1;
    }
    for (size_t i = 0; i < n; i++)
        rank_of[i] = i;
    if (!sorted) {
        size_t next = 0;
        for (size_t i = 0; i < s.n; i++)
            if (first[group[i]] == (int64_t)i) rank_of[group[i]] = next++;
    }
    const int64_t n_out = (int64_t)n, n_all = (int64_t)s.n;
    dims[axis] = n_out;
    OX_TRY(ox_op_out(c, 0, x->dtype, rank, dims, &y));
    OX_TRY(ox_op_out(c, 1, OX_DTYPE_I64, 1, &n_out, &where));
    OX_TRY(ox_op_out(c, 2, OX_DTYPE_I64, 1, &n_all, &inverse));
    OX_TRY(ox_op_out(c, 3, OX_DTYPE_I64, 1, &n_out, &counts));
    for (size_t g = 0; g < n; g++) {
        ((int64_t *)where->data)[rank_of[g]] = first[g];
        for (size_t o = 0; o < s.outer; o++)
            ox_lane_store(y->dtype, y->data, (o * n + rank_of[g]) * s.inner, s.inner,
                          s.v + (o * s.n + (size_t)first[g]) * s.inner);
    }
    for (size_t i = 0; i < s.n; i++) {
        ((int64_t *)inverse->data)[i] = (int64_t)rank_of[group[i]];
        ((int64_t *)counts->data)[rank_of[group[i]]]++;
    }
    return OX_OK;
}
