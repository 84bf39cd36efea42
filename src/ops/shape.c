/* shape.c - operators that read or change a shape without moving data, and that make tensors from
 * shapes: Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze, ConstantOfShape, Range, EyeLike. */
#include "ops/op_internal.h"

#include <math.h>

ox_status ox_op_eval_shape(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t start = ox_node_int(c->node, "start", 0), end = ox_node_int(c->node, "end", x->rank);
    ox_tensor *y;
    if (start < 0) start += x->rank;
    if (end < 0) end += x->rank;
    start = start < 0 ? 0 : start > x->rank ? x->rank : start;
    end = end < start ? start : end > x->rank ? x->rank : end;
    const int64_t n = end - start;
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_I64, 1, &n, &y));
    memcpy(y->data, x->dims + start, (size_t)n * sizeof(int64_t));
    return OX_OK;
}

ox_status ox_op_eval_size(ox_op_ctx *c)
{
    ox_tensor *y;
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_I64, 0, NULL, &y));
    *(int64_t *)y->data = (int64_t)ox_op_size(ox_op_in(c, 0));
    return OX_OK;
}

ox_status ox_op_eval_reshape(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool allow_zero = ox_node_int(c->node, "allowzero", 0) != 0;
    int64_t list[OX_OP_LIST], dims[OX_RANK_MAX];
    int n, hole = -1;
    size_t known = 1;
    OX_TRY(ox_op_list(c, 1, "shape", list, &n));
    if (n < 0) return OP_FAIL(c, "has no shape");
    if (n > OX_RANK_MAX)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "makes %d dimensions, more than %d", n, OX_RANK_MAX);
    for (int i = 0; i < n; i++) {
        dims[i] = list[i];
        if (list[i] == 0 && !allow_zero) {
            if (i >= x->rank) return OP_FAIL(c, "copies dimension %d, which the input lacks", i);
            dims[i] = x->dims[i];
        }
        if (dims[i] < -1 || (dims[i] == -1 && hole >= 0))
            return OP_FAIL(c, "has a malformed shape");
        if (dims[i] == -1)
            hole = i;
        else if (!ox_size_mul(known, (size_t)dims[i], &known))
            return OP_FAIL(c, "has a shape that is too large");
    }
    if (hole >= 0) {
        const size_t size = ox_op_size(x);
        if (known ? size % known : size != 0)
            return OP_FAIL(c, "cannot work out dimension %d", hole);
        dims[hole] = known ? (int64_t)(size / known) : 0;
    }
    return ox_op_out_view(c, 0, 0, n, dims);
}

ox_status ox_op_eval_flatten(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t axis = ox_node_int(c->node, "axis", 1), dims[2];
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > x->rank) return OP_FAIL(c, "axis is outside of %d dimensions", x->rank);
    dims[0] = (int64_t)ox_op_product(x->dims, 0, (int32_t)axis);
    dims[1] = (int64_t)ox_op_product(x->dims, (int32_t)axis, x->rank);
    return ox_op_out_view(c, 0, 0, 2, dims);
}

ox_status ox_op_eval_squeeze(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    bool marked[OX_RANK_MAX] = {false};
    int64_t list[OX_OP_LIST], dims[OX_RANK_MAX];
    int32_t rank = 0;
    int n;
    OX_TRY(ox_op_list(c, 1, "axes", list, &n));
    if (n >= 0)
        OX_TRY(ox_op_axes(c, list, n, x->rank, marked));
    else
        for (int32_t i = 0; i < x->rank; i++)
            marked[i] = x->dims[i] == 1;
    for (int32_t i = 0; i < x->rank; i++) {
        if (!marked[i])
            dims[rank++] = x->dims[i];
        else if (x->dims[i] != 1)
            return OP_FAIL(c, "removes dimension %d, which is %lld", i, (long long)x->dims[i]);
    }
    return ox_op_out_view(c, 0, 0, rank, dims);
}

ox_status ox_op_eval_unsqueeze(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    bool marked[OX_RANK_MAX] = {false};
    int64_t list[OX_OP_LIST], dims[OX_RANK_MAX];
    int n;
    OX_TRY(ox_op_list(c, 1, "axes", list, &n));
    if (n < 0) return OP_FAIL(c, "has no axes");
    if (x->rank + n > OX_RANK_MAX)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "makes %d dimensions, more than %d", x->rank + n,
                          OX_RANK_MAX);
    const int32_t rank = x->rank + n;
    OX_TRY(ox_op_axes(c, list, n, rank, marked));
    for (int32_t i = 0, k = 0; i < rank; i++)
        dims[i] = marked[i] ? 1 : x->dims[k++];
    return ox_op_out_view(c, 0, 0, rank, dims);
}

/* A shape given as an integer tensor. */
static ox_status shape_in(ox_op_ctx *c, size_t i, int64_t *dims, int32_t *rank)
{
    int64_t list[OX_OP_LIST];
    int n;
    OX_TRY(ox_op_list(c, i, NULL, list, &n));
    if (n > OX_RANK_MAX)
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "makes %d dimensions, more than %d", n, OX_RANK_MAX);
    for (int k = 0; k < n; k++) {
        if (list[k] < 0) return OP_FAIL(c, "has the negative dimension %lld", (long long)list[k]);
        dims[k] = list[k];
    }
    *rank = n;
    return OX_OK;
}

ox_status ox_op_eval_constant_of_shape(ox_op_ctx *c)
{
    const ox_attr *a = ox_node_attr(c->node, "value");
    const ox_tensor *v = a && a->type == OX_ATTR_TENSOR ? a->t : NULL;
    int64_t dims[OX_RANK_MAX];
    ox_lane x = {.f = 0};
    int32_t rank;
    ox_tensor *y;
    if (v && (ox_op_size(v) != 1 || ox_lane_class_of(v->dtype) == OX_LANE_NONE))
        return OP_FAIL(c, "value must be one number");
    OX_TRY(shape_in(c, 0, dims, &rank));
    OX_TRY(ox_op_out(c, 0, v ? v->dtype : OX_DTYPE_F32, rank, dims, &y));
    if (!v) return OX_OK;
    ox_lane_load(v->dtype, v->data, NULL, 0, 1, &x);
    for (size_t i = 0, n = ox_op_size(y); i < n && x.u; i++)
        ox_lane_store(y->dtype, y->data, i, 1, &x);
    return OX_OK;
}

ox_status ox_op_eval_expand(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t at[OX_RANK_MAX] = {0}, dims[OX_RANK_MAX];
    size_t strides[OX_RANK_MAX], width;
    ox_tensor want = {.dtype = x->dtype}, *y;
    const ox_tensor *both[2] = {x, &want};
    char *from, *to;
    int32_t rank;
    OX_TRY(shape_in(c, 1, want.dims, &want.rank));
    if (!ox_op_broadcast(both, 2, &rank, dims)) return OP_FAIL(c, "the shapes do not broadcast");
    OX_TRY(ox_op_out(c, 0, x->dtype, rank, dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    ox_op_strides(x, rank, strides);
    for (size_t i = 0, n = ox_op_size(y); i < n; i++) {
        memcpy(to + i * width, from + ox_op_offset(at, strides, rank) * width, width);
        (void)ox_op_next(at, dims, rank);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_range(ox_op_ctx *c)
{
    const ox_tensor *t = ox_op_in(c, 0);
    ox_lane v[3];
    ox_tensor *y;
    double count;
    for (size_t i = 0; i < 3; i++) {
        const ox_tensor *x = ox_op_in(c, i);
        if (ox_op_size(x) != 1) return OP_FAIL(c, "input %zu must be one number", i);
        ox_lane_load(x->dtype, x->data, NULL, 0, 1, &v[i]);
    }
    const bool is_float = ox_lane_class_of(t->dtype) == OX_LANE_F;
    if (is_float ? !(v[2].f < 0 || v[2].f > 0) : !v[2].i) return OP_FAIL(c, "the step is zero");
    if (is_float)
        count = ceil((v[1].f - v[0].f) / v[2].f);
    else
        count = ceil(((double)v[1].i - (double)v[0].i) / (double)v[2].i);
    if (!(count >= 0)) count = 0;
    if (count > 1e12) return OP_FAIL_AS(c, OX_LIMIT, "makes %g elements", count);
    const int64_t n = (int64_t)count;
    OX_TRY(ox_op_out(c, 0, t->dtype, 1, &n, &y));
    for (int64_t i = 0; i < n; i++) {
        ox_lane x;
        if (is_float)
            x.f = v[0].f + (double)i * v[2].f;
        else
            x.u = v[0].u + (uint64_t)i * v[2].u;
        ox_lane_store(y->dtype, y->data, (size_t)i, 1, &x);
    }
    return OX_OK;
}

ox_status ox_op_eval_eye_like(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const int64_t k = ox_node_int(c->node, "k", 0), t = ox_node_int(c->node, "dtype", x->dtype);
    ox_tensor *y;
    if (x->rank != 2) return OP_FAIL(c, "the input must have two dimensions");
    if (t <= 0 || t >= OX_DTYPE_COUNT || ox_lane_class_of((ox_dtype)t) == OX_LANE_NONE)
        return OP_FAIL(c, "cannot make type %lld", (long long)t);
    OX_TRY(ox_op_out(c, 0, (ox_dtype)t, 2, x->dims, &y));
    ox_lane one;
    if (ox_lane_class_of(y->dtype) == OX_LANE_F)
        one.f = 1;
    else
        one.i = 1;
    for (int64_t i = 0; i < x->dims[0]; i++) {
        if (k > INT32_MAX || k < INT32_MIN || i + k < 0 || i + k >= x->dims[1]) continue;
        ox_lane_store(y->dtype, y->data, (size_t)(i * x->dims[1] + i + k), 1, &one);
    }
    return OX_OK;
}

ox_status ox_op_eval_constant(ox_op_ctx *c)
{
    return OP_FAIL_AS(c, OX_UNSUPPORTED, "is no constant of a known form");
}
