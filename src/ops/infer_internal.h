/* infer_internal.h - what the shape rules share. A rule says what it is sure of and leaves the rest
 * unknown; it never fails on operands that do not fit (running them does). */
#ifndef OX_OPS_INFER_INTERNAL_H
#define OX_OPS_INFER_INTERNAL_H
#include "ops/op_internal.h"

static inline const ox_op_info *ox_infer_in(const ox_infer_ctx *c, size_t i)
{
    return i < c->n_in && c->in[i].present ? &c->in[i] : NULL;
}

/* Output i: its type and shape. */
void ox_infer_set(ox_infer_ctx *c, size_t i, ox_dtype t, int32_t rank, const int64_t *dims);
void ox_infer_like(ox_infer_ctx *c, size_t i, const ox_op_info *x, ox_dtype t);
/* Elements known of a small integer tensor; n -1 when nothing is. */
int ox_infer_elems(const ox_op_info *x, ox_op_elem *e);
/* Gives output i those elements (nothing when n is -1 or too many). */
void ox_infer_set_elems(ox_infer_ctx *c, size_t i, const ox_op_elem *e, int n);
/* Numbers of input i or of the attribute: false when there but not known. n -1 when absent. */
bool ox_infer_list(ox_infer_ctx *c, size_t i, const char *attr, int64_t *list, int *n);
bool ox_infer_axis(int64_t axis, int32_t rank, int32_t *out);

/* a+b, a-b, a*b, a/b of elements; expressions of symbols become symbols named after them. */
ox_op_elem ox_infer_calc(ox_graph *g, ox_op_elem a, ox_op_elem b, char op);
static inline ox_op_elem ox_elem_of_dim(int64_t d)
{
    if (d == OX_DIM_UNKNOWN) return (ox_op_elem){0, OX_ELEM_UNKNOWN};
    return (ox_op_elem){d, d >= 0 ? OX_ELEM_VALUE : OX_ELEM_DIM};
}
static inline int64_t ox_dim_of_elem(ox_op_elem e)
{
    if (e.kind == OX_ELEM_DIM) return e.v;
    return e.kind == OX_ELEM_VALUE && e.v >= 0 ? e.v : OX_DIM_UNKNOWN;
}
int64_t ox_infer_dim(ox_graph *g, int64_t a, int64_t b, char op);

/* Numpy broadcasting with symbols; rank -1 when an input's rank is unknown. */
void ox_infer_broadcast(const ox_op_info *const *in, size_t n, int32_t *rank, int64_t *dims);
#endif
