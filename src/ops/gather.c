/* gather.c - operators that read or write at places given by index tensors. Elements are opaque
 * cells except where a scatter combines them. */
#include "ops/op_internal.h"

#include <math.h>

/* Index v of a dimension, negative from the end; false outside. */
static bool wrap(int64_t v, int64_t dim, size_t *out)
{
    if (v < 0) v += dim;
    *out = (size_t)v;
    return v >= 0 && v < dim;
}

static ox_status outside(ox_op_ctx *c, int64_t v, int64_t dim)
{
    return OP_FAIL(c, "index %lld is outside of %lld", (long long)v, (long long)dim);
}

ox_status ox_op_eval_gather(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *ix = ox_op_in(c, 1);
    int64_t dims[2 * OX_RANK_MAX], *at;
    int32_t axis, rank = 0;
    size_t width;
    char *from, *to;
    ox_tensor *y;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", 0), x->rank, &axis));
    for (int32_t i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int32_t i = 0; i < ix->rank; i++)
        dims[rank++] = ix->dims[i];
    for (int32_t i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    OX_TRY(ox_op_out(c, 0, x->dtype, rank, dims, &y));
    OX_TRY(ox_op_ints(c, ix, &at));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    const size_t outer = ox_op_product(x->dims, 0, axis), n = ox_op_size(ix);
    const size_t inner = ox_op_product(x->dims, axis + 1, x->rank) * width;
    for (size_t k = 0; k < n; k++) {
        size_t i;
        if (!wrap(at[k], x->dims[axis], &i)) return outside(c, at[k], x->dims[axis]);
        for (size_t o = 0; inner && o < outer; o++)
            memcpy(to + (o * n + k) * inner, from + (o * (size_t)x->dims[axis] + i) * inner, inner);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_gather_elements(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *ix = ox_op_in(c, 1);
    int64_t at[OX_RANK_MAX] = {0}, *index;
    size_t strides[OX_RANK_MAX] = {0}, width;
    int32_t axis;
    char *from, *to;
    ox_tensor *y;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", 0), x->rank, &axis));
    if (ix->rank != x->rank) return OP_FAIL(c, "data and indices differ in rank");
    for (int32_t k = 0; k < x->rank; k++)
        if (k != axis && ix->dims[k] > x->dims[k])
            return OP_FAIL(c, "indices are larger than data in dimension %d", k);
    OX_TRY(ox_op_out(c, 0, x->dtype, ix->rank, ix->dims, &y));
    OX_TRY(ox_op_ints(c, ix, &index));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    ox_op_strides_of(x->dims, x->rank, strides);
    for (size_t i = 0, n = ox_op_size(ix); i < n; i++) {
        size_t p;
        if (!wrap(index[i], x->dims[axis], &p)) return outside(c, index[i], x->dims[axis]);
        const size_t o = ox_op_offset(at, strides, x->rank) - (size_t)at[axis] * strides[axis] +
                         p * strides[axis];
        memcpy(to + i * width, from + o * width, width);
        (void)ox_op_next(at, ix->dims, ix->rank);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

/* Offset of the slice that the tuple names, in elements of x from dimension `first` on. */
static ox_status tuple_offset(ox_op_ctx *c, const ox_tensor *x, int32_t first, const int64_t *tuple,
                              int32_t n, const size_t *strides, size_t *out)
{
    *out = 0;
    for (int32_t k = 0; k < n; k++) {
        size_t i;
        if (!wrap(tuple[k], x->dims[first + k], &i))
            return outside(c, tuple[k], x->dims[first + k]);
        *out += i * strides[first + k];
    }
    return OX_OK;
}

ox_status ox_op_eval_gather_nd(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *ix = ox_op_in(c, 1);
    const int64_t b = ox_node_int(c->node, "batch_dims", 0);
    int64_t dims[2 * OX_RANK_MAX], *index;
    size_t strides[OX_RANK_MAX] = {0}, width;
    int32_t rank = 0;
    char *from, *to;
    ox_tensor *y;
    if (ix->rank < 1 || b < 0 || b >= ix->rank || b >= x->rank)
        return OP_FAIL(c, "batch_dims does not fit the inputs");
    const int32_t tuple =
        (int32_t)(ix->dims[ix->rank - 1] > OX_RANK_MAX ? OX_RANK_MAX + 1 : ix->dims[ix->rank - 1]);
    if (tuple < 1 || b + tuple > x->rank) return OP_FAIL(c, "index tuples do not fit the data");
    for (int32_t k = 0; k < b; k++)
        if (ix->dims[k] != x->dims[k]) return OP_FAIL(c, "batch dimensions differ");
    for (int32_t k = 0; k + 1 < ix->rank; k++)
        dims[rank++] = ix->dims[k];
    for (int32_t k = (int32_t)b + tuple; k < x->rank; k++)
        dims[rank++] = x->dims[k];
    OX_TRY(ox_op_out(c, 0, x->dtype, rank, dims, &y));
    OX_TRY(ox_op_ints(c, ix, &index));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    ox_op_strides_of(x->dims, x->rank, strides);
    const size_t batches = ox_op_product(x->dims, 0, (int32_t)b);
    const size_t per = ox_op_product(ix->dims, (int32_t)b, ix->rank - 1);
    const size_t batch = ox_op_product(x->dims, (int32_t)b, x->rank);
    const size_t inner = ox_op_product(x->dims, (int32_t)b + tuple, x->rank) * width;
    for (size_t i = 0; i < batches * per; i++) {
        size_t o;
        OX_TRY(tuple_offset(c, x, (int32_t)b, index + i * (size_t)tuple, tuple, strides, &o));
        if (inner) memcpy(to + i * inner, from + (i / per * batch + o) * width, inner);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

/* ---- scatter ---- */

typedef enum combine { SET, ADD, MUL, MAX, MIN, BAD } combine;

static combine combine_of(const ox_node *n)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const ox_str s = ox_node_str(n, "reduction", "none");
    for (int i = 0; i < 5; i++)
        if (ox_str_is(s, names[i])) return (combine)i;
    return BAD;
}

static ox_lane combined(combine k, ox_lane_class cls, ox_lane a, ox_lane b)
{
    ox_lane r = b;
    if (cls == OX_LANE_F) {
        if (k == ADD) r.f = a.f + b.f;
        if (k == MUL) r.f = a.f * b.f;
        if (k == MAX) r.f = isnan(a.f) || a.f > b.f ? a.f : b.f;
        if (k == MIN) r.f = isnan(a.f) || a.f < b.f ? a.f : b.f;
        return r;
    }
    const bool more = cls == OX_LANE_U ? a.u > b.u : a.i > b.i;
    if (k == ADD) r.u = a.u + b.u;
    if (k == MUL) r.u = a.u * b.u;
    if (k == MAX) r = more ? a : b;
    if (k == MIN) r = more ? b : a;
    return r;
}

/* to[i_to] op= from[i_from], n elements; both whole-byte cells of type t. */
static void put(combine k, ox_dtype t, char *to, size_t i_to, const char *from, size_t i_from,
                size_t n, size_t width)
{
    if (k == SET) {
        if (n) memcpy(to + i_to * width, from + i_from * width, n * width);
        return;
    }
    const ox_lane_class cls = ox_lane_class_of(t);
    for (size_t i = 0; i < n; i++) {
        ox_lane a, b;
        ox_lane_load(t, to, NULL, i_to + i, 1, &a);
        ox_lane_load(t, from, NULL, i_from + i, 1, &b);
        a = combined(k, cls, a, b);
        ox_lane_store(t, to, i_to + i, 1, &a);
    }
}

/* The output as a copy of input 0, and the cells of the updates. */
static ox_status scatter_begin(ox_op_ctx *c, const ox_tensor *updates, combine k, ox_tensor **y,
                               char **to, char **from, size_t *width)
{
    const ox_tensor *x = ox_op_in(c, 0);
    char *old;
    if (k == BAD) return OP_FAIL(c, "has an unknown reduction");
    if (k != SET && (ox_lane_class_of(x->dtype) == OX_LANE_NONE || ox_dtype_bits(x->dtype) < 8))
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "cannot combine elements of type %s",
                          ox_dtype_name(x->dtype));
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, y));
    OX_TRY(ox_op_cells(c, x, &old, width));
    OX_TRY(ox_op_cells(c, updates, from, width));
    OX_TRY(ox_op_cells_out(c, *y, to, width));
    if (ox_op_size(x)) memcpy(*to, old, ox_op_size(x) * *width);
    return OX_OK;
}

ox_status ox_op_eval_scatter_elements(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *ix = ox_op_in(c, 1), *up = ox_op_in(c, 2);
    const combine k = combine_of(c->node);
    int64_t at[OX_RANK_MAX] = {0}, *index;
    size_t strides[OX_RANK_MAX] = {0}, width;
    int32_t axis;
    char *from, *to;
    ox_tensor *y;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", 0), x->rank, &axis));
    if (ix->rank != x->rank || up->rank != x->rank) return OP_FAIL(c, "the inputs differ in rank");
    for (int32_t i = 0; i < x->rank; i++)
        if (ix->dims[i] != up->dims[i] || (i != axis && ix->dims[i] > x->dims[i]))
            return OP_FAIL(c, "indices and updates do not fit in dimension %d", i);
    OX_TRY(scatter_begin(c, up, k, &y, &to, &from, &width));
    OX_TRY(ox_op_ints(c, ix, &index));
    ox_op_strides_of(x->dims, x->rank, strides);
    for (size_t i = 0, n = ox_op_size(ix); i < n; i++) {
        size_t p;
        if (!wrap(index[i], x->dims[axis], &p)) return outside(c, index[i], x->dims[axis]);
        const size_t o = ox_op_offset(at, strides, x->rank) - (size_t)at[axis] * strides[axis] +
                         p * strides[axis];
        put(k, x->dtype, to, o, from, i, 1, width);
        (void)ox_op_next(at, ix->dims, ix->rank);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_scatter_nd(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *ix = ox_op_in(c, 1), *up = ox_op_in(c, 2);
    const combine k = combine_of(c->node);
    size_t strides[OX_RANK_MAX] = {0}, width;
    int64_t *index;
    char *from, *to;
    ox_tensor *y;
    if (ix->rank < 1 || ix->dims[ix->rank - 1] > x->rank || ix->dims[ix->rank - 1] < 1)
        return OP_FAIL(c, "index tuples do not fit the data");
    const int32_t tuple = (int32_t)ix->dims[ix->rank - 1];
    bool fits = up->rank == ix->rank - 1 + x->rank - tuple;
    for (int32_t i = 0; fits && i < up->rank; i++)
        fits =
            up->dims[i] == (i < ix->rank - 1 ? ix->dims[i] : x->dims[i - (ix->rank - 1) + tuple]);
    if (!fits) return OP_FAIL(c, "the updates do not fit data and indices");
    OX_TRY(scatter_begin(c, up, k, &y, &to, &from, &width));
    OX_TRY(ox_op_ints(c, ix, &index));
    ox_op_strides_of(x->dims, x->rank, strides);
    const size_t inner = ox_op_product(x->dims, tuple, x->rank);
    for (size_t i = 0, n = ox_op_size(ix) / (size_t)tuple; i < n; i++) {
        size_t o;
        OX_TRY(tuple_offset(c, x, 0, index + i * (size_t)tuple, tuple, strides, &o));
        put(k, x->dtype, to, o, from, i * inner, inner, width);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_tensor_scatter(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *up = ox_op_in(c, 1), *where = ox_op_in(c, 2);
    const bool circular = ox_str_is(ox_node_str(c->node, "mode", "linear"), "circular");
    size_t width;
    int64_t *first = NULL;
    int32_t axis;
    char *from, *to;
    ox_tensor *y;
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", -2), x->rank, &axis));
    if (axis == 0 || up->rank != x->rank) return OP_FAIL(c, "cache and update do not fit");
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && x->dims[i] != up->dims[i])
            return OP_FAIL(c, "cache and update differ in dimension %d", i);
    if (where && (where->rank != 1 || where->dims[0] != x->dims[0]))
        return OP_FAIL(c, "write_indices must have one entry for each batch row");
    OX_TRY(scatter_begin(c, up, SET, &y, &to, &from, &width));
    if (where) OX_TRY(ox_op_ints(c, where, &first));
    const size_t inner = ox_op_product(x->dims, axis + 1, x->rank);
    const size_t middle = ox_op_product(x->dims, 1, axis);
    const int64_t most = x->dims[axis], n = up->dims[axis];
    for (size_t o = 0; o < ox_op_product(x->dims, 0, axis); o++) {
        const int64_t begin = first ? first[o / middle] : 0;
        if (begin < 0 || n > most || (circular ? begin >= most && n : begin > most - n))
            return OP_FAIL(c, "writes at %lld of %lld", (long long)begin, (long long)most);
        for (int64_t i = 0; i < n; i++) {
            const size_t row = (size_t)((begin + i) % most);
            put(SET, x->dtype, to, (o * (size_t)most + row) * inner, from,
                (o * (size_t)n + (size_t)i) * inner, inner, width);
        }
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

/* ---- selections whose size depends on values ---- */

ox_status ox_op_eval_compress(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *cond = ox_op_in(c, 1);
    const ox_attr *a = ox_node_attr(c->node, "axis");
    const uint8_t *keep = cond->data;
    int64_t dims[OX_RANK_MAX], total = 0, d = (int64_t)ox_op_size(x);
    size_t outer = 1, inner = 1, width, n = ox_op_size(cond);
    int32_t axis = 0, rank = 1;
    char *from, *to;
    ox_tensor *y;
    if (cond->rank != 1) return OP_FAIL(c, "the condition must have one dimension");
    if (a) {
        OX_TRY(ox_op_axis(c, a->i, x->rank, &axis));
        memcpy(dims, x->dims, sizeof(dims));
        d = x->dims[axis];
        rank = x->rank;
        outer = ox_op_product(x->dims, 0, axis);
        inner = ox_op_product(x->dims, axis + 1, x->rank);
    }
    if (n > (size_t)d) n = (size_t)d;
    for (size_t i = 0; i < n; i++)
        total += keep[i] != 0;
    dims[axis] = total;
    OX_TRY(ox_op_out(c, 0, x->dtype, rank, dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    size_t done = 0;
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < n; i++)
            if (keep[i])
                put(SET, x->dtype, to, done++ * inner, from, (o * (size_t)d + i) * inner, inner,
                    width);
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_non_zero(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t at[OX_RANK_MAX] = {0}, dims[2] = {x->rank, 0};
    const size_t n = ox_op_size(x);
    size_t found = 0;
    ox_tensor *y;
    double *v;
    OX_TRY(ox_op_doubles(c, x, &v));
    for (size_t i = 0; i < n; i++)
        dims[1] += v[i] < 0 || v[i] > 0 || isnan(v[i]);
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_I64, 2, dims, &y));
    for (size_t i = 0; i < n; i++) {
        if (v[i] < 0 || v[i] > 0 || isnan(v[i])) {
            for (int32_t k = 0; k < x->rank; k++)
                ((int64_t *)y->data)[(size_t)k * (size_t)dims[1] + found] = at[k];
            found++;
        }
        (void)ox_op_next(at, x->dims, x->rank);
    }
    return OX_OK;
}

ox_status ox_op_eval_one_hot(ox_op_ctx *c)
{
    const ox_tensor *ix = ox_op_in(c, 0), *depth = ox_op_in(c, 1), *values = ox_op_in(c, 2);
    int64_t dims[2 * OX_RANK_MAX], *d, *index;
    int32_t axis;
    size_t width;
    char *from, *to;
    ox_tensor *y;
    if (ox_op_size(depth) != 1 || ox_op_size(values) != 2)
        return OP_FAIL(c, "needs one depth and two values");
    OX_TRY(ox_op_ints(c, depth, &d));
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", -1), ix->rank + 1, &axis));
    if (d[0] < 0) return OP_FAIL(c, "has a negative depth");
    for (int32_t i = 0, k = 0; i <= ix->rank; i++)
        dims[i] = i == axis ? d[0] : ix->dims[k++];
    OX_TRY(ox_op_out(c, 0, values->dtype, ix->rank + 1, dims, &y));
    OX_TRY(ox_op_ints(c, ix, &index));
    OX_TRY(ox_op_cells(c, values, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    const size_t inner = ox_op_product(ix->dims, axis, ix->rank);
    for (size_t i = 0, n = ox_op_size(y); i < n; i++) {
        const size_t pos = i / inner % (size_t)d[0],
                     k = i / inner / (size_t)d[0] * inner + i % inner;
        const int64_t want = index[k] < 0 ? index[k] + d[0] : index[k];
        memcpy(to + i * width, from + (want >= 0 && (size_t)want == pos ? width : 0), width);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}
