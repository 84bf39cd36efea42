/* infer_shapes.c - rules of the operators that read, make and change shapes or move elements. */
#include "ops/infer_internal.h"

ox_status ox_op_infer_shape(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    ox_op_elem e[OX_RANK_MAX];
    int n = 0;
    int64_t dim = OX_DIM_UNKNOWN;
    ox_infer_set(c, 0, OX_DTYPE_I64, 1, &dim);
    if (!x || x->rank < 0) return OX_OK;
    int64_t start = ox_node_int(c->node, "start", 0), end = ox_node_int(c->node, "end", x->rank);
    if (start < 0) start += x->rank;
    if (end < 0) end += x->rank;
    for (int64_t i = start < 0 ? 0 : start; i < end && i < x->rank; i++)
        e[n++] = ox_elem_of_dim(x->dims[i]);
    dim = n;
    ox_infer_set(c, 0, OX_DTYPE_I64, 1, &dim);
    ox_infer_set_elems(c, 0, e, n);
    return OX_OK;
}

ox_status ox_op_infer_size(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    ox_op_elem n = {1, OX_ELEM_VALUE};
    ox_infer_set(c, 0, OX_DTYPE_I64, 0, NULL);
    if (!x || x->rank < 0) return OX_OK;
    for (int32_t i = 0; i < x->rank; i++)
        n = ox_infer_calc(c->g, n, ox_elem_of_dim(x->dims[i]), '*');
    ox_infer_set_elems(c, 0, &n, 1);
    return OX_OK;
}

/* The dimension that -1 stands for: input over the other outputs, symbols cancelled. */
static int64_t missing_dim(ox_graph *g, const ox_op_info *x, const int64_t *dims, int n, int hole)
{
    bool used[OX_RANK_MAX] = {false};
    int64_t up = 1, down = 1, left = 0;
    int n_left = 0;
    for (int i = 0; i < n; i++) {
        bool found = false;
        if (i == hole) continue;
        if (dims[i] == OX_DIM_UNKNOWN) return OX_DIM_UNKNOWN;
        if (dims[i] >= 0) {
            if (__builtin_mul_overflow(down, dims[i], &down)) return OX_DIM_UNKNOWN;
            continue;
        }
        for (int32_t k = 0; k < x->rank && !found; k++) {
            if (used[k] || x->dims[k] != dims[i]) continue;
            used[k] = found = true;
        }
        if (!found) return OX_DIM_UNKNOWN;
    }
    for (int32_t k = 0; k < x->rank; k++) {
        if (used[k]) continue;
        if (x->dims[k] == OX_DIM_UNKNOWN) return OX_DIM_UNKNOWN;
        if (x->dims[k] >= 0) {
            if (__builtin_mul_overflow(up, x->dims[k], &up)) return OX_DIM_UNKNOWN;
            continue;
        }
        left = n_left++ ? ox_infer_dim(g, left, x->dims[k], '*') : x->dims[k];
    }
    if (down <= 0 || up % down) return OX_DIM_UNKNOWN;
    if (!n_left) return up / down;
    return left == OX_DIM_UNKNOWN ? left : ox_infer_dim(g, left, up / down, '*');
}

ox_status ox_op_infer_reshape(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *shape = ox_infer_in(c, 1);
    const bool allow_zero = ox_node_int(c->node, "allowzero", 0) != 0;
    ox_op_elem e[OX_OP_ELEMS];
    int64_t list[OX_OP_ELEMS], dims[OX_RANK_MAX];
    int n, hole = -1;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (shape) {
        n = ox_infer_elems(shape, e);
    } else {
        if (!ox_infer_list(c, 1, "shape", list, &n)) return OX_OK;
        for (int i = 0; i < n; i++)
            e[i] = (ox_op_elem){list[i], OX_ELEM_VALUE};
    }
    if (n < 0 || n > OX_RANK_MAX) return OX_OK;
    for (int i = 0; i < n; i++) {
        dims[i] = ox_dim_of_elem(e[i]);
        if (e[i].kind != OX_ELEM_VALUE) continue;
        if (e[i].v == 0 && !allow_zero) dims[i] = i < x->rank ? x->dims[i] : OX_DIM_UNKNOWN;
        if (e[i].v == -1) hole = i;
    }
    if (hole >= 0) dims[hole] = x->rank >= 0 ? missing_dim(c->g, x, dims, n, hole) : OX_DIM_UNKNOWN;
    ox_infer_set(c, 0, x->dtype, n, dims);
    if (x->n_elems >= 0 && n <= 1) ox_infer_set_elems(c, 0, x->elems, x->n_elems);
    return OX_OK;
}

ox_status ox_op_infer_flatten(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    int64_t dims[2] = {1, 1}, axis = ox_node_int(c->node, "axis", 1);
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0) return OX_OK;
    if (axis < 0) axis += x->rank;
    for (int32_t i = 0; i < x->rank; i++)
        dims[i >= axis] = ox_infer_dim(c->g, dims[i >= axis], x->dims[i], '*');
    ox_infer_set(c, 0, x->dtype, 2, dims);
    return OX_OK;
}

static void keep_elems(ox_infer_ctx *c, const ox_op_info *x)
{
    ox_op_elem e[OX_OP_ELEMS];
    if (c->n_out && c->out[0].rank >= 0 && c->out[0].rank <= 1 &&
        ox_lane_class_of(x->dtype) == OX_LANE_I)
        ox_infer_set_elems(c, 0, e, ox_infer_elems(x, e));
}

ox_status ox_op_infer_squeeze(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    bool marked[OX_RANK_MAX] = {false};
    int64_t list[OX_OP_ELEMS], dims[OX_RANK_MAX];
    int32_t rank = 0, a;
    int n;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0 || !ox_infer_list(c, 1, "axes", list, &n)) return OX_OK;
    for (int i = 0; i < n; i++) {
        if (!ox_infer_axis(list[i], x->rank, &a)) return OX_OK;
        marked[a] = true;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        if (n < 0 && x->dims[i] < 0) return OX_OK;
        if (n < 0 ? x->dims[i] != 1 : !marked[i]) dims[rank++] = x->dims[i];
    }
    ox_infer_set(c, 0, x->dtype, rank, dims);
    keep_elems(c, x);
    return OX_OK;
}

ox_status ox_op_infer_unsqueeze(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    bool marked[OX_RANK_MAX] = {false};
    int64_t list[OX_OP_ELEMS], dims[OX_RANK_MAX];
    int32_t a;
    int n;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0 || !ox_infer_list(c, 1, "axes", list, &n) || n < 0 || x->rank + n > OX_RANK_MAX)
        return OX_OK;
    for (int i = 0; i < n; i++) {
        if (!ox_infer_axis(list[i], x->rank + n, &a) || marked[a]) return OX_OK;
        marked[a] = true;
    }
    for (int32_t i = 0, k = 0; i < x->rank + n; i++)
        dims[i] = marked[i] ? 1 : x->dims[k++];
    ox_infer_set(c, 0, x->dtype, x->rank + n, dims);
    keep_elems(c, x);
    return OX_OK;
}

/* Dimensions given by the elements of input i; rank -1 when not even their number is known. */
static int shape_of(ox_infer_ctx *c, size_t i, int64_t *dims)
{
    ox_op_elem e[OX_OP_ELEMS];
    const int n = ox_infer_elems(ox_infer_in(c, i), e);
    if (n < 0 || n > OX_RANK_MAX) return -1;
    for (int k = 0; k < n; k++)
        dims[k] = ox_dim_of_elem(e[k]);
    return n;
}

ox_status ox_op_infer_constant_of_shape(ox_infer_ctx *c)
{
    const ox_attr *a = ox_node_attr(c->node, "value");
    const ox_tensor *v = a && a->type == OX_ATTR_TENSOR ? a->t : NULL;
    int64_t dims[OX_RANK_MAX];
    const int n = shape_of(c, 0, dims);
    ox_op_elem e[OX_OP_ELEMS];
    ox_lane x;
    ox_infer_set(c, 0, v ? v->dtype : OX_DTYPE_F32, n, dims);
    if (!v || n != 1 || dims[0] < 0 || dims[0] > OX_OP_ELEMS ||
        ox_lane_class_of(v->dtype) != OX_LANE_I)
        return OX_OK;
    ox_lane_load(v->dtype, v->data, NULL, 0, 1, &x);
    for (int64_t i = 0; i < dims[0]; i++)
        e[i] = (ox_op_elem){x.i, OX_ELEM_VALUE};
    ox_infer_set_elems(c, 0, e, (int)dims[0]);
    return OX_OK;
}

ox_status ox_op_infer_expand(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    ox_op_info want = {.present = true};
    int64_t dims[OX_RANK_MAX];
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    want.rank = shape_of(c, 1, want.dims);
    const ox_op_info *both[2] = {x, &want};
    int32_t rank;
    ox_infer_broadcast(both, 2, &rank, dims);
    ox_infer_set(c, 0, x->dtype, rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_range(ox_infer_ctx *c)
{
    ox_op_elem e[3][OX_OP_ELEMS];
    int64_t dim = OX_DIM_UNKNOWN;
    const ox_op_info *x = ox_infer_in(c, 0);
    if (!x) return OX_OK;
    bool known = ox_lane_class_of(x->dtype) == OX_LANE_I;
    for (size_t i = 0; i < 3 && known; i++)
        known = ox_infer_elems(ox_infer_in(c, i), e[i]) == 1;
    if (known && e[2][0].kind == OX_ELEM_VALUE && e[2][0].v == 1) {
        dim = ox_dim_of_elem(ox_infer_calc(c->g, e[1][0], e[0][0], '-'));
    } else if (known && e[0][0].kind == OX_ELEM_VALUE && e[1][0].kind == OX_ELEM_VALUE &&
               e[2][0].kind == OX_ELEM_VALUE && e[2][0].v) {
        const double n = ((double)e[1][0].v - (double)e[0][0].v) / (double)e[2][0].v;
        dim = n > 0 && n < 1e12 ? (int64_t)n + ((double)(int64_t)n < n) : 0;
    }
    ox_infer_set(c, 0, x->dtype, 1, &dim);
    return OX_OK;
}

ox_status ox_op_infer_eye_like(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    if (x) ox_infer_like(c, 0, x, (ox_dtype)ox_node_int(c->node, "dtype", x->dtype));
    return OX_OK;
}

/* ---- movement ---- */

ox_status ox_op_infer_transpose(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    int64_t perm[OX_OP_ELEMS], dims[OX_RANK_MAX];
    int n;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0 || !ox_infer_list(c, SIZE_MAX, "perm", perm, &n)) return OX_OK;
    if (n >= 0 && n != x->rank) return OX_OK;
    for (int32_t i = 0; i < x->rank; i++) {
        const int64_t p = n < 0 ? x->rank - 1 - i : perm[i];
        if (p < 0 || p >= x->rank) return OX_OK;
        dims[i] = x->dims[p];
    }
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    return OX_OK;
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* Length of a slice of a known dimension; the first element in *first. */
static int64_t slice_length(int64_t d, int64_t b, int64_t e, int64_t step, int64_t *first)
{
    if (b < 0) b += d;
    if (e < 0) e += d;
    b = step > 0 ? clamp(b, 0, d) : clamp(b, 0, d - 1);
    e = step > 0 ? clamp(e, 0, d) : clamp(e, -1, d - 1);
    *first = b;
    if (step > 0 && e > b) return (e - b - 1) / step + 1;
    if (step < 0 && e < b && d) return step < -d ? 1 : (b - e - 1) / -step + 1;
    return 0;
}

/* Length of x[b:e] of a dimension that is a symbol or unknown. */
static int64_t symbolic_length(ox_graph *g, int64_t d, ox_op_elem b, ox_op_elem e)
{
    const ox_op_elem dim = ox_elem_of_dim(d);
    if (b.kind == OX_ELEM_VALUE && e.kind == OX_ELEM_VALUE) {
        if (e.v >= INT32_MAX && b.v == 0) return d;
        if (e.v >= INT32_MAX && b.v < 0) return OX_DIM_UNKNOWN;
        if (e.v >= INT32_MAX) return ox_dim_of_elem(ox_infer_calc(g, dim, b, '-'));
        if (e.v < 0 && b.v == 0)
            return ox_dim_of_elem(ox_infer_calc(g, dim, (ox_op_elem){-e.v, OX_ELEM_VALUE}, '-'));
        return OX_DIM_UNKNOWN;
    }
    if (b.kind == OX_ELEM_VALUE && b.v == 0) return ox_dim_of_elem(e); /* x[:n] of at least n */
    return OX_DIM_UNKNOWN;
}

static int elems_or_attr(ox_infer_ctx *c, size_t i, const char *attr, ox_op_elem *e)
{
    int64_t list[OX_OP_ELEMS];
    int n;
    if (ox_infer_in(c, i)) return ox_infer_elems(ox_infer_in(c, i), e);
    if (!ox_infer_list(c, i, attr, list, &n)) return -1;
    for (int k = 0; k < n; k++)
        e[k] = (ox_op_elem){list[k], OX_ELEM_VALUE};
    return n;
}

ox_status ox_op_infer_slice(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    ox_op_elem b[OX_OP_ELEMS], e[OX_OP_ELEMS], from[OX_OP_ELEMS], r[OX_OP_ELEMS];
    int64_t axes[OX_OP_ELEMS], steps[OX_OP_ELEMS], dims[OX_RANK_MAX], first = 0;
    int n_axes, n_steps;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0) return OX_OK;
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = OX_DIM_UNKNOWN;
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    const int n = elems_or_attr(c, 1, "starts", b);
    if (n < 0 || elems_or_attr(c, 2, "ends", e) != n ||
        !ox_infer_list(c, 3, "axes", axes, &n_axes) ||
        !ox_infer_list(c, 4, NULL, steps, &n_steps) || (n_axes >= 0 && n_axes != n) ||
        (n_steps >= 0 && n_steps != n))
        return OX_OK;
    memcpy(dims, x->dims, sizeof(dims));
    for (int i = 0; i < n; i++) {
        int32_t a;
        const int64_t step = n_steps < 0 ? 1 : steps[i];
        if (!ox_infer_axis(n_axes < 0 ? i : axes[i], x->rank, &a) || !step) return OX_OK;
        const bool known = b[i].kind == OX_ELEM_VALUE && e[i].kind == OX_ELEM_VALUE && dims[a] >= 0;
        if (known)
            dims[a] = slice_length(dims[a], b[i].v, e[i].v, step, &first);
        else
            dims[a] = step == 1 ? symbolic_length(c->g, dims[a], b[i], e[i]) : OX_DIM_UNKNOWN;
    }
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    if (x->rank != 1 || n != 1 || dims[0] < 0 || dims[0] > OX_OP_ELEMS ||
        ox_lane_class_of(x->dtype) != OX_LANE_I)
        return OX_OK;
    const int have = ox_infer_elems(x, from);
    for (int64_t k = 0; k < dims[0]; k++) {
        const int64_t p = first + k * (n_steps < 0 ? 1 : steps[0]);
        if (p < 0 || p >= have) return OX_OK;
        r[k] = from[p];
    }
    ox_infer_set_elems(c, 0, r, (int)dims[0]);
    return OX_OK;
}

ox_status ox_op_infer_concat(ox_infer_ctx *c)
{
    int64_t dims[OX_RANK_MAX];
    ox_op_elem e[OX_OP_ELEMS], r[OX_OP_ELEMS];
    int32_t axis, rank = -1;
    ox_dtype t = OX_DTYPE_NONE;
    int total = 0;
    for (size_t i = 0; i < c->n_in; i++) {
        if (c->in[i].dtype) t = c->in[i].dtype;
        if (c->in[i].rank >= 0) rank = c->in[i].rank;
    }
    ox_infer_set(c, 0, t, -1, NULL);
    if (rank < 0 || !ox_infer_axis(ox_node_int(c->node, "axis", 0), rank, &axis)) return OX_OK;
    for (int32_t k = 0; k < rank; k++)
        dims[k] = OX_DIM_UNKNOWN;
    dims[axis] = 0;
    for (size_t i = 0; i < c->n_in; i++) {
        const ox_op_info *x = &c->in[i];
        for (int32_t k = 0; k < rank; k++) {
            const int64_t d = x->rank == rank ? x->dims[k] : OX_DIM_UNKNOWN;
            if (k == axis)
                dims[k] = ox_infer_dim(c->g, dims[k], d, '+');
            else if (d >= 0 || (dims[k] == OX_DIM_UNKNOWN && d != OX_DIM_UNKNOWN))
                dims[k] = d;
        }
    }
    ox_infer_set(c, 0, t, rank, dims);
    if (rank != 1 || ox_lane_class_of(t) != OX_LANE_I) return OX_OK;
    for (size_t i = 0; i < c->n_in; i++) {
        const int n = ox_infer_elems(&c->in[i], e);
        if (n < 0 || total + n > OX_OP_ELEMS) return OX_OK;
        memcpy(r + total, e, (size_t)n * sizeof(*e));
        total += n;
    }
    ox_infer_set_elems(c, 0, r, total);
    return OX_OK;
}

ox_status ox_op_infer_split(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    int64_t given[OX_OP_ELEMS], dims[OX_RANK_MAX];
    int32_t axis;
    int n;
    if (!x) return OX_OK;
    for (size_t i = 0; i < c->n_out; i++)
        ox_infer_set(c, i, x->dtype, -1, NULL);
    if (x->rank < 0 || !ox_infer_axis(ox_node_int(c->node, "axis", 0), x->rank, &axis))
        return OX_OK;
    const bool known = ox_infer_list(c, 1, "split", given, &n) && (n < 0 || (size_t)n == c->n_out);
    const int64_t parts = (int64_t)c->n_out, d = x->dims[axis],
                  chunk = d >= 0 ? (d + parts - 1) / parts : 0;
    memcpy(dims, x->dims, sizeof(dims));
    for (int64_t i = 0; i < parts; i++) {
        dims[axis] = OX_DIM_UNKNOWN;
        if (known && n >= 0) dims[axis] = given[i] >= 0 ? given[i] : OX_DIM_UNKNOWN;
        if (known && n < 0 && d >= 0) dims[axis] = clamp(d - i * chunk, 0, chunk);
        if (known && n < 0 && d < 0) dims[axis] = ox_infer_dim(c->g, d, parts, '/');
        ox_infer_set(c, (size_t)i, x->dtype, x->rank, dims);
    }
    return OX_OK;
}

ox_status ox_op_infer_tile(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    ox_op_elem e[OX_OP_ELEMS];
    int64_t dims[OX_RANK_MAX];
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0) return OX_OK;
    const int n = ox_infer_elems(ox_infer_in(c, 1), e);
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = n == x->rank
                      ? ox_dim_of_elem(ox_infer_calc(c->g, ox_elem_of_dim(x->dims[i]), e[i], '*'))
                      : OX_DIM_UNKNOWN;
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_pad(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    int64_t pads[OX_OP_ELEMS], axes[OX_OP_ELEMS], dims[OX_RANK_MAX];
    int n, n_axes;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0) return OX_OK;
    for (int32_t i = 0; i < x->rank; i++)
        dims[i] = OX_DIM_UNKNOWN;
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    if (!ox_infer_list(c, 1, "pads", pads, &n) || !ox_infer_list(c, 3, NULL, axes, &n_axes))
        return OX_OK;
    const int k = n_axes < 0 ? x->rank : n_axes;
    if (n != 2 * k) return OX_OK;
    memcpy(dims, x->dims, sizeof(dims));
    for (int i = 0; i < k; i++) {
        int32_t a;
        if (!ox_infer_axis(n_axes < 0 ? i : axes[i], x->rank, &a)) return OX_OK;
        dims[a] = ox_infer_dim(c->g, dims[a], pads[i], '+');
        dims[a] = ox_infer_dim(c->g, dims[a], pads[i + k], '+');
    }
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    return OX_OK;
}

/* ---- sequences ---- */

static void sequence(ox_infer_ctx *c, ox_dtype t)
{
    if (!c->n_out) return;
    c->out[0].type = OX_TYPE_SEQUENCE;
    c->out[0].dtype = t;
}

ox_status ox_op_infer_sequence(ox_infer_ctx *c)
{
    ox_dtype t = OX_DTYPE_NONE;
    for (size_t i = 0; i < c->n_in; i++)
        if (!t && c->in[i].present) t = c->in[i].dtype;
    if (!c->n_in) t = (ox_dtype)ox_node_int(c->node, "dtype", OX_DTYPE_F32);
    sequence(c, t);
    return OX_OK;
}

ox_status ox_op_infer_sequence_item(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    if (x) ox_infer_set(c, 0, x->dtype, -1, NULL);
    return OX_OK;
}

ox_status ox_op_infer_int_scalar(ox_infer_ctx *c)
{
    ox_infer_set(c, 0, OX_DTYPE_I64, 0, NULL);
    return OX_OK;
}

ox_status ox_op_infer_bool_scalar(ox_infer_ctx *c)
{
    ox_infer_set(c, 0, OX_DTYPE_BOOL, 0, NULL);
    return OX_OK;
}
