/* op_internal.h - what the operators' files share: failing, operands, outputs, scratch, shapes.
 *
 * After ox_op_eval's checks an operator may rely on the number and the element types of its inputs
 * as its row of ops.def says, and on nothing else. */
#ifndef OX_OPS_OP_INTERNAL_H
#define OX_OPS_OP_INTERNAL_H
#include "base/mem.h"
#include "ops/lane.h"
#include "ops/op.h"

/* Fails with `node "x" (Op): ` in front of the message. */
ox_status ox_op_fail_at(const ox_node *n, ox_err *err, const char *where, ox_status st,
                        const char *fmt, ...) OX_PRINTF(5, 6) OX_COLD;
#define OP_FAIL_AS(c, st, ...)                                                                     \
    OX_MAKES((st), ox_op_fail_at((c)->node, (c)->err, __func__, (st), __VA_ARGS__))
#define OP_FAIL(c, ...) OP_FAIL_AS(c, OX_BAD_FILE, __VA_ARGS__)
#define OP_NO_MEMORY(c) OX_MAKES(OX_NO_MEMORY, ox_op_no_memory(c, __func__))
ox_status ox_op_no_memory(ox_op_ctx *c, const char *where) OX_COLD;
/* OX_CANCELLED when the caller wants to stop; long loops ask now and then. */
ox_status ox_op_cancelled(ox_op_ctx *c);

/* OX_LIMIT when a * b * c multiplications are more than the caller allows. */
ox_status ox_op_work(ox_op_ctx *x, size_t a, size_t b, size_t c);

/* Input i as a tensor; NULL when absent. */
static inline const ox_tensor *ox_op_in(const ox_op_ctx *c, size_t i)
{
    return i < c->n_in && c->in[i] && c->in[i]->kind == OX_RT_TENSOR ? &c->in[i]->t : NULL;
}
static inline size_t ox_op_size(const ox_tensor *t)
{
    size_t n = 0;
    (void)ox_tensor_count(t, &n); /* run-time tensors always have a valid shape */
    return n;
}
static inline bool ox_op_wants(const ox_op_ctx *c, size_t i)
{
    return i < c->n_out && ox_value_is(c->node->outputs[i]);
}

/* Makes output i (a throw-away when the node has no such output); zeroed. */
ox_status ox_op_out(ox_op_ctx *c, size_t i, ox_dtype t, int32_t rank, const int64_t *dims,
                    ox_tensor **out);
/* Output i shares the data of input k under a new shape. */
ox_status ox_op_out_view(ox_op_ctx *c, size_t i, size_t k, int32_t rank, const int64_t *dims);
/* Gives value v (a reference that moves) to output i. */
ox_status ox_op_out_value(ox_op_ctx *c, size_t i, ox_rt_value *v);

/* Zeroed scratch that lives until eval returns; charged to the limit. *p NULL never on OX_OK. */
ox_status ox_op_temp(ox_op_ctx *c, size_t n, size_t size, void **p);
/* The whole tensor as doubles, as int64 (uint64 bits for uint64), in scratch. */
ox_status ox_op_doubles(ox_op_ctx *c, const ox_tensor *t, double **p);
ox_status ox_op_ints(ox_op_ctx *c, const ox_tensor *t, int64_t **p);
/* The tensor with one element per `width` bytes: types below 8 bits are unpacked to bytes. */
ox_status ox_op_cells(ox_op_ctx *c, const ox_tensor *t, char **p, size_t *width);
/* Where to write such cells of output t; ox_op_cells_done packs them. */
ox_status ox_op_cells_out(ox_op_ctx *c, ox_tensor *t, char **p, size_t *width);
void ox_op_cells_done(ox_tensor *t, const char *p);

/* Scalar or one-element integer input; absent = otherwise. */
ox_status ox_op_int_in(ox_op_ctx *c, size_t i, int64_t otherwise, int64_t *out);
/* A short list of integers from input i, or from the attribute when there is no such input. *n is
 * -1 when both are absent. */
enum { OX_OP_LIST = 64 };
ox_status ox_op_list(ox_op_ctx *c, size_t i, const char *attr, int64_t *list, int *n);
ox_status ox_op_attr_list(ox_op_ctx *c, const char *attr, int64_t *list, int *n);
/* axis in [-rank, rank) made non-negative. */
ox_status ox_op_axis(ox_op_ctx *c, int64_t axis, int32_t rank, int32_t *out);
/* Marks the axes of a list; duplicates fail. */
ox_status ox_op_axes(ox_op_ctx *c, const int64_t *list, int n, int32_t rank, bool *marked);

/* Numpy broadcasting of shapes; false when they disagree. */
bool ox_op_broadcast(const ox_tensor *const *in, size_t n, int32_t *rank, int64_t *dims);
/* Element strides of t seen through the broadcast shape: 0 on repeated axes. */
void ox_op_strides(const ox_tensor *t, int32_t rank, size_t *strides);
static inline void ox_op_strides_of(const int64_t *dims, int32_t rank, size_t *strides)
{
    size_t s = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        strides[i] = s;
        s *= (size_t)dims[i];
    }
}
static inline size_t ox_op_product(const int64_t *dims, int32_t from, int32_t to)
{
    size_t n = 1;
    for (int32_t i = from; i < to; i++)
        n *= (size_t)dims[i];
    return n;
}
/* Next index of an odometer over dims; false after the last. */
static inline bool ox_op_next(int64_t *at, const int64_t *dims, int32_t rank)
{
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (++at[i] < dims[i]) return true;
        at[i] = 0;
    }
    return false;
}
static inline size_t ox_op_offset(const int64_t *at, const size_t *strides, int32_t rank)
{
    size_t o = 0;
    for (int32_t i = 0; i < rank; i++)
        o += (size_t)at[i] * strides[i];
    return o;
}

static inline bool ox_dtype_is_float(ox_dtype t)
{
    return t == OX_DTYPE_F32 || t == OX_DTYPE_F16 || t == OX_DTYPE_BF16 || t == OX_DTYPE_F64;
}

/* x[.., first .. first+n, ..] along an axis, which goes away unless kept (then n is 1). */
ox_status ox_op_cut(ox_op_ctx *c, const ox_tensor *x, int32_t axis, int64_t first, int64_t n,
                    bool keep, ox_rt_value **out);
ox_status ox_op_take(ox_op_ctx *c, const ox_tensor *x, int32_t axis, int64_t i, bool keep,
                     ox_rt_value **out);
/* Tensors joined along an axis, which is new or theirs. */
ox_status ox_op_stack(ox_op_ctx *c, ox_rt_value *const *items, size_t n, int64_t axis, bool reverse,
                      bool new_axis, ox_rt_value **out);

/* Every function that ops.def names. */
#define OX_OP(domain, name, since, types, n_out, infer, eval, flags)                               \
    ox_status ox_op_infer_##infer(ox_infer_ctx *c);                                                \
    ox_status ox_op_eval_##eval(ox_op_ctx *c);
#include "ops/ops.def"
#undef OX_OP
#endif
