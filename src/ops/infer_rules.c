/* infer_rules.c - type and shape rules of elementwise, reducing, indexing and multiplying
 * operators. Rules of shape and movement are in infer_shapes.c, of the decoder operators in
 * infer_nn.c. */
#include "ops/infer_internal.h"

ox_status ox_op_infer_none(ox_infer_ctx *c)
{
    (void)c;
    return OX_OK;
}

/* Output 0 like input 0, elements too. */
ox_status ox_op_infer_same(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    if (!x || !c->n_out) return OX_OK;
    ox_infer_like(c, 0, x, x->dtype);
    if (!ox_str_is(c->node->op_type, "Identity")) return OX_OK;
    c->out[0].type = x->type;
    c->out[0].constant = x->constant;
    c->out[0].n_elems = x->n_elems;
    memcpy(c->out[0].elems, x->elems, sizeof(x->elems));
    return OX_OK;
}

ox_status ox_op_infer_bool_like(ox_infer_ctx *c)
{
    ox_infer_like(c, 0, ox_infer_in(c, 0), OX_DTYPE_BOOL);
    return OX_OK;
}

ox_status ox_op_infer_dropout(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    OX_TRY(ox_op_infer_same(c));
    if (x) ox_infer_like(c, 1, x, c->node->version >= 10 ? OX_DTYPE_BOOL : x->dtype);
    return OX_OK;
}

ox_status ox_op_infer_cast(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *like = ox_infer_in(c, 1);
    ox_op_elem e[OX_OP_ELEMS];
    const int64_t to = like ? (int64_t)like->dtype : ox_node_int(c->node, "to", 0);
    if (!x || to < 0 || to >= OX_DTYPE_COUNT) return OX_OK;
    ox_infer_like(c, 0, x, (ox_dtype)to);
    if ((to == OX_DTYPE_I64 || to == OX_DTYPE_I32) && ox_lane_class_of(x->dtype) == OX_LANE_I)
        ox_infer_set_elems(c, 0, e, ox_infer_elems(x, e));
    return OX_OK;
}

static void broadcast(ox_infer_ctx *c, size_t first, ox_dtype t)
{
    const ox_op_info *in[OX_OP_LIST];
    int64_t dims[OX_RANK_MAX];
    int32_t rank;
    size_t n = 0;
    for (size_t i = first; i < c->n_in && n < OX_OP_LIST; i++)
        in[n++] = ox_infer_in(c, i);
    ox_infer_broadcast(in, n, &rank, dims);
    ox_infer_set(c, 0, t, rank, dims);
}

static ox_dtype first_type(const ox_infer_ctx *c)
{
    for (size_t i = 0; i < c->n_in; i++)
        if (c->in[i].present && c->in[i].dtype) return c->in[i].dtype;
    return OX_DTYPE_NONE;
}

/* Integer arithmetic on shapes is followed element by element. */
static void arithmetic(ox_infer_ctx *c)
{
    static const struct {
        const char *name;
        char op;
    } ops[] = {{"Add", '+'}, {"Sub", '-'}, {"Mul", '*'}, {"Div", '/'}};
    ox_op_elem a[OX_OP_ELEMS], b[OX_OP_ELEMS], r[OX_OP_ELEMS];
    char op = 0;
    for (size_t i = 0; i < OX_COUNT(ops); i++)
        if (ox_str_is(c->node->op_type, ops[i].name)) op = ops[i].op;
    if (!op || c->n_in != 2 || ox_lane_class_of(c->out[0].dtype) != OX_LANE_I) return;
    const int na = ox_infer_elems(&c->in[0], a), nb = ox_infer_elems(&c->in[1], b);
    if (na < 1 || nb < 1 || (na != nb && na != 1 && nb != 1)) return;
    const int n = na > nb ? na : nb;
    bool any = false;
    for (int i = 0; i < n; i++) {
        r[i] = ox_infer_calc(c->g, a[na == 1 ? 0 : i], b[nb == 1 ? 0 : i], op);
        any |= r[i].kind != OX_ELEM_UNKNOWN;
    }
    if (any && c->out[0].rank >= 0 && c->out[0].rank <= 1) ox_infer_set_elems(c, 0, r, n);
}

ox_status ox_op_infer_broadcast(ox_infer_ctx *c)
{
    const bool pow = ox_str_is(c->node->op_type, "Pow");
    if (!c->n_out || !c->n_in || c->node->version < 7) return OX_OK;
    broadcast(c, 0, pow ? c->in[0].dtype : first_type(c));
    arithmetic(c);
    return OX_OK;
}

ox_status ox_op_infer_compare(ox_infer_ctx *c)
{
    if (c->node->version >= 7) broadcast(c, 0, OX_DTYPE_BOOL);
    return OX_OK;
}

ox_status ox_op_infer_where(ox_infer_ctx *c)
{
    if (c->n_in != 3) return OX_OK;
    broadcast(c, 0, c->in[1].dtype ? c->in[1].dtype : c->in[2].dtype);
    return OX_OK;
}

ox_status ox_op_infer_reduce(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    const bool keep = ox_node_int(c->node, "keepdims", 1) != 0;
    const bool noop = ox_node_int(c->node, "noop_with_empty_axes", 0) != 0;
    int64_t axes[OX_OP_ELEMS], dims[OX_RANK_MAX];
    bool marked[OX_RANK_MAX] = {false};
    int32_t rank = 0, a;
    int n;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0) return OX_OK;
    if (!ox_infer_list(c, 1, "axes", axes, &n)) {
        for (int32_t i = 0; i < x->rank; i++)
            dims[i] = OX_DIM_UNKNOWN;
        if (keep) ox_infer_set(c, 0, x->dtype, x->rank, dims);
        return OX_OK;
    }
    for (int i = 0; i < n; i++) {
        if (!ox_infer_axis(axes[i], x->rank, &a)) return OX_OK;
        marked[a] = true;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        if (n <= 0 && !noop) marked[i] = true;
        if (!marked[i] || keep) dims[rank++] = marked[i] ? 1 : x->dims[i];
    }
    ox_infer_set(c, 0, x->dtype, rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_arg(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    const bool keep = ox_node_int(c->node, "keepdims", 1) != 0;
    int64_t dims[OX_RANK_MAX];
    int32_t rank = 0, axis;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, OX_DTYPE_I64, -1, NULL);
    if (x->rank < 0 || !ox_infer_axis(ox_node_int(c->node, "axis", 0), x->rank, &axis))
        return OX_OK;
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis || keep) dims[rank++] = i == axis ? 1 : x->dims[i];
    ox_infer_set(c, 0, OX_DTYPE_I64, rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_top_k(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    ox_op_elem k[OX_OP_ELEMS];
    int64_t dims[OX_RANK_MAX];
    int32_t axis;
    if (!x) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    ox_infer_set(c, 1, OX_DTYPE_I64, -1, NULL);
    if (x->rank < 0 || !ox_infer_axis(ox_node_int(c->node, "axis", -1), x->rank, &axis))
        return OX_OK;
    memcpy(dims, x->dims, sizeof(dims));
    dims[axis] = ox_node_int(c->node, "k", OX_DIM_UNKNOWN);
    if (ox_infer_elems(ox_infer_in(c, 1), k) == 1) dims[axis] = ox_dim_of_elem(k[0]);
    ox_infer_set(c, 0, x->dtype, x->rank, dims);
    ox_infer_set(c, 1, OX_DTYPE_I64, x->rank, dims);
    return OX_OK;
}

/* ---- by index ---- */

ox_status ox_op_infer_gather(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *ix = ox_infer_in(c, 1);
    ox_op_elem from[OX_OP_ELEMS], at[OX_OP_ELEMS], r[OX_OP_ELEMS];
    int64_t dims[2 * OX_RANK_MAX];
    int32_t axis, rank = 0;
    if (!x || !ix) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 0 || ix->rank < 0) return OX_OK;
    if (!ox_infer_axis(ox_node_int(c->node, "axis", 0), x->rank, &axis)) return OX_OK;
    for (int32_t i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int32_t i = 0; i < ix->rank; i++)
        dims[rank++] = ix->dims[i];
    for (int32_t i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    ox_infer_set(c, 0, x->dtype, rank, dims);
    if (x->rank != 1 || ix->rank > 1 || ox_lane_class_of(x->dtype) != OX_LANE_I) return OX_OK;
    const int n = ox_infer_elems(x, from), k = ox_infer_elems(ix, at);
    if (n < 0 || k < 0) return OX_OK;
    for (int i = 0; i < k; i++) {
        const int64_t p = at[i].v < 0 ? at[i].v + n : at[i].v;
        if (at[i].kind != OX_ELEM_VALUE || p < 0 || p >= n) return OX_OK;
        r[i] = from[p];
    }
    ox_infer_set_elems(c, 0, r, k);
    return OX_OK;
}

ox_status ox_op_infer_gather_elements(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    if (x) ox_infer_like(c, 0, ox_infer_in(c, 1), x->dtype);
    return OX_OK;
}

ox_status ox_op_infer_gather_nd(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *ix = ox_infer_in(c, 1);
    const int64_t b = ox_node_int(c->node, "batch_dims", 0);
    int64_t dims[2 * OX_RANK_MAX];
    int32_t rank = 0;
    if (!x || !ix) return OX_OK;
    ox_infer_set(c, 0, x->dtype, -1, NULL);
    if (x->rank < 1 || ix->rank < 1 || b < 0) return OX_OK;
    const int64_t tuple = ix->dims[ix->rank - 1];
    if (tuple < 1 || tuple > x->rank || b + tuple > x->rank) return OX_OK;
    for (int32_t k = 0; k + 1 < ix->rank; k++)
        dims[rank++] = ix->dims[k];
    for (int32_t k = (int32_t)(b + tuple); k < x->rank; k++)
        dims[rank++] = x->dims[k];
    ox_infer_set(c, 0, x->dtype, rank, dims);
    return OX_OK;
}

ox_status ox_op_infer_non_zero(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0);
    if (!x) return OX_OK;
    const int64_t dims[2] = {x->rank < 0 ? OX_DIM_UNKNOWN : x->rank, OX_DIM_UNKNOWN};
    ox_infer_set(c, 0, OX_DTYPE_I64, 2, dims);
    return OX_OK;
}

ox_status ox_op_infer_one_hot(ox_infer_ctx *c)
{
    const ox_op_info *x = ox_infer_in(c, 0), *v = ox_infer_in(c, 2);
    ox_op_elem d[OX_OP_ELEMS];
    int64_t dims[OX_RANK_MAX + 1];
    int32_t axis;
    if (!x || !v) return OX_OK;
    ox_infer_set(c, 0, v->dtype, -1, NULL);
    if (x->rank < 0 || !ox_infer_axis(ox_node_int(c->node, "axis", -1), x->rank + 1, &axis))
        return OX_OK;
    const int n = ox_infer_elems(ox_infer_in(c, 1), d);
    for (int32_t i = 0, k = 0; i <= x->rank; i++)
        dims[i] = i == axis ? (n == 1 ? ox_dim_of_elem(d[0]) : OX_DIM_UNKNOWN) : x->dims[k++];
    ox_infer_set(c, 0, v->dtype, x->rank + 1, dims);
    return OX_OK;
}

/* ---- matrix products ---- */

static void matmul(ox_infer_ctx *c, const ox_op_info *a, const ox_op_info *b, ox_dtype t)
{
    ox_op_info x = *a, y = *b;
    const ox_op_info *both[2] = {&x, &y};
    int64_t dims[OX_RANK_MAX];
    int32_t rank;
    ox_infer_set(c, 0, t, -1, NULL);
    if (a->rank < 1 || b->rank < 1) return;
    x.rank = a->rank > 1 ? a->rank - 2 : 0;
    y.rank = b->rank > 1 ? b->rank - 2 : 0;
    ox_infer_broadcast(both, 2, &rank, dims);
    if (a->rank > 1) dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1) dims[rank++] = b->dims[b->rank - 1];
    ox_infer_set(c, 0, t, rank, dims);
}

ox_status ox_op_infer_matmul(ox_infer_ctx *c)
{
    const ox_op_info *a = ox_infer_in(c, 0), *b = ox_infer_in(c, 1);
    if (a && b) matmul(c, a, b, a->dtype ? a->dtype : b->dtype);
    return OX_OK;
}

ox_status ox_op_infer_matmul_integer(ox_infer_ctx *c)
{
    const ox_op_info *a = ox_infer_in(c, 0), *b = ox_infer_in(c, 1);
    if (a && b) matmul(c, a, b, OX_DTYPE_I32);
    return OX_OK;
}

ox_status ox_op_infer_qlinear_matmul(ox_infer_ctx *c)
{
    const ox_op_info *a = ox_infer_in(c, 0), *b = ox_infer_in(c, 3), *z = ox_infer_in(c, 7);
    if (a && b && z) matmul(c, a, b, z->dtype);
    return OX_OK;
}

static void swap_last(ox_op_info *x)
{
    if (x->rank < 2) return;
    const int64_t t = x->dims[x->rank - 1];
    x->dims[x->rank - 1] = x->dims[x->rank - 2];
    x->dims[x->rank - 2] = t;
}

ox_status ox_op_infer_fused_matmul(ox_infer_ctx *c)
{
    const ox_op_info *a = ox_infer_in(c, 0), *b = ox_infer_in(c, 1);
    if (!a || !b) return OX_OK;
    if (ox_node_int(c->node, "transBatchA", 0) || ox_node_int(c->node, "transBatchB", 0)) {
        ox_infer_set(c, 0, a->dtype, -1, NULL);
        return OX_OK;
    }
    ox_op_info x = *a, y = *b;
    if (ox_node_int(c->node, "transA", 0)) swap_last(&x);
    if (ox_node_int(c->node, "transB", 0)) swap_last(&y);
    matmul(c, &x, &y, a->dtype);
    return OX_OK;
}

ox_status ox_op_infer_gemm(ox_infer_ctx *c)
{
    const ox_op_info *a = ox_infer_in(c, 0), *b = ox_infer_in(c, 1);
    if (!a || !b) return OX_OK;
    ox_infer_set(c, 0, a->dtype, -1, NULL);
    if (a->rank != 2 || b->rank != 2) return OX_OK;
    const int64_t dims[2] = {a->dims[ox_node_int(c->node, "transA", 0) ? 1 : 0],
                             b->dims[ox_node_int(c->node, "transB", 0) ? 0 : 1]};
    ox_infer_set(c, 0, a->dtype, 2, dims);
    return OX_OK;
}
