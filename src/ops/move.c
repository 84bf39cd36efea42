/* move.c - operators that move elements by regular patterns: Transpose, Slice, Concat, Split, Pad,
 * Tile, Trilu, depth and space, reversed sequences. Elements are opaque cells of a fixed width. */
#include "ops/op_internal.h"

/* out cell i = from[offset + sum at[k] * strides[k]] over the out shape;
 * strides may be negative. */
static void gather_cells(char *to, const char *from, size_t width, const ox_tensor *out,
                         int64_t offset, const int64_t *strides)
{
    int64_t at[OX_RANK_MAX] = {0};
    for (size_t i = 0, n = ox_op_size(out); i < n; i++) {
        int64_t o = offset;
        for (int32_t k = 0; k < out->rank; k++)
            o += at[k] * strides[k];
        memcpy(to + i * width, from + (size_t)o * width, width);
        (void)ox_op_next(at, out->dims, out->rank);
    }
}

/* Output 0 of shape dims gathered that way from input 0. */
static ox_status strided(ox_op_ctx *c, size_t i_out, const ox_tensor *x, int32_t rank,
                         const int64_t *dims, int64_t offset, const int64_t *strides)
{
    ox_tensor *y;
    char *from, *to;
    size_t width;
    OX_TRY(ox_op_out(c, i_out, x->dtype, rank, dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    gather_cells(to, from, width, y, offset, strides);
    ox_op_cells_done(y, to);
    return OX_OK;
}

static void dense_strides(const ox_tensor *x, int64_t *s)
{
    int64_t n = 1;
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        s[i] = n;
        n *= x->dims[i];
    }
}

ox_status ox_op_eval_transpose(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t perm[OX_OP_LIST], dims[OX_RANK_MAX], from[OX_RANK_MAX], strides[OX_RANK_MAX];
    bool seen[OX_RANK_MAX] = {false};
    int n;
    OX_TRY(ox_op_attr_list(c, "perm", perm, &n));
    if (n < 0)
        for (n = 0; n < x->rank; n++)
            perm[n] = x->rank - 1 - n;
    if (n != x->rank) return OP_FAIL(c, "perm has %d entries for %d dimensions", n, x->rank);
    OX_TRY(ox_op_axes(c, perm, n, x->rank, seen));
    dense_strides(x, from);
    for (int i = 0; i < n; i++) {
        const int64_t p = perm[i] < 0 ? perm[i] + x->rank : perm[i];
        dims[i] = x->dims[p];
        strides[i] = from[p];
    }
    return strided(c, 0, x, n, dims, 0, strides);
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

ox_status ox_op_eval_slice(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t starts[OX_OP_LIST], ends[OX_OP_LIST], axes[OX_OP_LIST], steps[OX_OP_LIST];
    int64_t dims[OX_RANK_MAX], strides[OX_RANK_MAX], offset = 0;
    bool marked[OX_RANK_MAX] = {false};
    int n, n_ends, n_axes, n_steps;
    OX_TRY(ox_op_list(c, 1, "starts", starts, &n));
    OX_TRY(ox_op_list(c, 2, "ends", ends, &n_ends));
    OX_TRY(ox_op_list(c, 3, "axes", axes, &n_axes));
    OX_TRY(ox_op_list(c, 4, NULL, steps, &n_steps));
    for (int i = 0; n_axes < 0 && i < n; i++)
        axes[i] = i;
    for (int i = 0; n_steps < 0 && i < n; i++)
        steps[i] = 1;
    if (n < 0 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        return OP_FAIL(c, "starts, ends, axes and steps must have the same length");
    OX_TRY(ox_op_axes(c, axes, n, x->rank, marked));
    dense_strides(x, strides);
    memcpy(dims, x->dims, sizeof(dims));
    for (int i = 0; i < n; i++) {
        const int32_t a = (int32_t)(axes[i] < 0 ? axes[i] + x->rank : axes[i]);
        const int64_t d = x->dims[a], step = steps[i];
        int64_t b = starts[i], e = ends[i], len = 0;
        if (!step) return OP_FAIL(c, "has step 0");
        if (b < 0) b += d; /* cannot overflow: d >= 0 */
        if (e < 0) e += d;
        b = step > 0 ? clamp(b, 0, d) : clamp(b, 0, d - 1);
        e = step > 0 ? clamp(e, 0, d) : clamp(e, -1, d - 1);
        if (!d) b = e = 0;
        if (step > 0 && e > b) len = (e - b - 1) / step + 1;
        if (step < 0 && e < b) len = step < -d ? 1 : (b - e - 1) / -step + 1;
        dims[a] = len;
        offset += len ? b * strides[a] : 0;
        strides[a] = len > 1 ? strides[a] * step : 0;
    }
    return strided(c, 0, x, x->rank, dims, offset, strides);
}

/* Copies of blocks between [outer, n * inner] tensors along one axis. */
static void copy_blocks(char *to, size_t to_row, const char *from, size_t from_row, size_t outer,
                        size_t bytes)
{
    for (size_t o = 0; bytes && o < outer; o++)
        memcpy(to + o * to_row, from + o * from_row, bytes);
}

ox_status ox_op_eval_concat(ox_op_ctx *c)
{
    const ox_tensor *first = ox_op_in(c, 0);
    int64_t dims[OX_RANK_MAX];
    int32_t axis;
    ox_tensor *y;
    char *from, *to;
    size_t width, done = 0;
    const int64_t a = ox_node_int(c->node, "axis", c->node->version < 4 ? 1 : INT64_MIN);
    OX_TRY(ox_op_axis(c, a, first->rank, &axis));
    memcpy(dims, first->dims, sizeof(dims));
    dims[axis] = 0;
    for (size_t i = 0; i < c->n_in; i++) {
        const ox_tensor *x = ox_op_in(c, i);
        bool fits = x->rank == first->rank;
        for (int32_t k = 0; fits && k < x->rank; k++)
            fits = k == axis || x->dims[k] == dims[k];
        if (!fits) return OP_FAIL(c, "input %zu does not fit the shape of input 0", i);
        if (x->dims[axis] > INT64_MAX - dims[axis]) return OP_FAIL(c, "is too large");
        dims[axis] += x->dims[axis];
    }
    OX_TRY(ox_op_out(c, 0, first->dtype, first->rank, dims, &y));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    const size_t outer = ox_op_product(dims, 0, axis),
                 inner = ox_op_product(dims, axis + 1, y->rank);
    const size_t row = (size_t)dims[axis] * inner * width;
    for (size_t i = 0; i < c->n_in; i++) {
        const ox_tensor *x = ox_op_in(c, i);
        const size_t bytes = (size_t)x->dims[axis] * inner * width;
        OX_TRY(ox_op_cells(c, x, &from, &width));
        copy_blocks(to + done, row, from, bytes, outer, bytes);
        done += bytes;
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

/* Sizes of the parts: given, or num_outputs equal chunks with a smaller last one. */
static ox_status split_sizes(ox_op_ctx *c, int64_t dim, const int64_t *given, int n_given,
                             int64_t *size)
{
    const int64_t n_out = (int64_t)c->n_out;
    int64_t sum = 0;
    if (n_given >= 0 && n_given != n_out)
        return OP_FAIL(c, "split names %d parts for %lld outputs", n_given, (long long)n_out);
    const int64_t parts = ox_node_int(c->node, "num_outputs", n_out);
    if (n_given < 0 && parts != n_out)
        return OP_FAIL(c, "num_outputs is %lld for %lld outputs", (long long)parts,
                       (long long)n_out);
    const int64_t chunk = n_out ? (dim + n_out - 1) / n_out : 0;
    for (int64_t i = 0; i < n_out; i++) {
        const int64_t left = dim - sum;
        size[i] = n_given >= 0 ? given[i] : left < chunk ? left : chunk;
        if (size[i] < 0 || size[i] > left)
            return OP_FAIL(c, "the parts do not fit %lld", (long long)dim);
        sum += size[i];
    }
    return sum == dim
               ? OX_OK
               : OP_FAIL(c, "the parts add up to %lld of %lld", (long long)sum, (long long)dim);
}

ox_status ox_op_eval_split(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t given[OX_OP_LIST], size[OX_OP_LIST] = {0}, dims[OX_RANK_MAX];
    int32_t axis;
    size_t width, done = 0;
    char *from, *to;
    int n;
    if (c->n_out > OX_OP_LIST) return OP_FAIL_AS(c, OX_UNSUPPORTED, "has %zu outputs", c->n_out);
    OX_TRY(ox_op_axis(c, ox_node_int(c->node, "axis", 0), x->rank, &axis));
    OX_TRY(ox_op_list(c, 1, "split", given, &n));
    OX_TRY(split_sizes(c, x->dims[axis], given, n, size));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    memcpy(dims, x->dims, sizeof(dims));
    const size_t outer = ox_op_product(dims, 0, axis),
                 inner = ox_op_product(dims, axis + 1, x->rank);
    const size_t row = (size_t)x->dims[axis] * inner * width;
    for (size_t i = 0; i < c->n_out; i++) {
        ox_tensor *y;
        dims[axis] = size[i];
        const size_t bytes = (size_t)size[i] * inner * width;
        OX_TRY(ox_op_out(c, i, x->dtype, x->rank, dims, &y));
        OX_TRY(ox_op_cells_out(c, y, &to, &width));
        copy_blocks(to, bytes, from + done, row, outer, bytes);
        ox_op_cells_done(y, to);
        done += bytes;
    }
    return OX_OK;
}

ox_status ox_op_eval_tile(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t list[OX_OP_LIST], dims[OX_RANK_MAX], at[OX_RANK_MAX] = {0};
    size_t strides[OX_RANK_MAX], width;
    ox_tensor *y;
    char *from, *to;
    int n;
    OX_TRY(ox_op_list(c, 1, NULL, list, &n));
    if (n != x->rank) return OP_FAIL(c, "has %d repeats for %d dimensions", n, x->rank);
    for (int i = 0; i < n; i++) {
        size_t d;
        if (list[i] < 0 || !ox_size_mul((size_t)list[i], (size_t)x->dims[i], &d) || d > INT64_MAX)
            return OP_FAIL(c, "has the repeat %lld", (long long)list[i]);
        dims[i] = (int64_t)d;
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, n, dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    ox_op_strides_of(x->dims, x->rank, strides);
    for (size_t i = 0, size = ox_op_size(y); i < size; i++) {
        size_t o = 0;
        for (int k = 0; k < n; k++)
            o += (size_t)(at[k] % x->dims[k]) * strides[k];
        memcpy(to + i * width, from + o * width, width);
        (void)ox_op_next(at, dims, n);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

/* Source index of a padded position; -1 = the constant. */
static int64_t pad_source(char mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) return i;
    if (mode == 'c' || n <= 0) return -1;
    if (mode == 'e') return i < 0 ? 0 : n - 1;
    if (mode == 'w') return (i % n + n) % n;
    const int64_t period = n > 1 ? 2 * (n - 1) : 1;
    const int64_t k = (i % period + period) % period;
    return k < n ? k : period - k;
}

ox_status ox_op_eval_pad(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *value = ox_op_in(c, 2);
    const ox_str mode = ox_node_str(c->node, "mode", "constant");
    int64_t pads[OX_OP_LIST], axes[OX_OP_LIST], begin[OX_RANK_MAX] = {0};
    int64_t dims[OX_RANK_MAX], at[OX_RANK_MAX] = {0};
    bool marked[OX_RANK_MAX] = {false};
    size_t strides[OX_RANK_MAX], width;
    char fill[16] = {0}, *from, *to;
    int n, n_axes;
    ox_tensor *y;
    OX_TRY(ox_op_list(c, 1, c->node->version < 2 ? "paddings" : "pads", pads, &n));
    OX_TRY(ox_op_list(c, 3, NULL, axes, &n_axes));
    for (int i = 0; n_axes < 0 && i < x->rank; i++)
        axes[i] = i;
    if (n_axes < 0) n_axes = x->rank;
    if (n != 2 * n_axes) return OP_FAIL(c, "has %d pads for %d axes", n, n_axes);
    OX_TRY(ox_op_axes(c, axes, n_axes, x->rank, marked));
    memcpy(dims, x->dims, sizeof(dims));
    for (int i = 0; i < n_axes; i++) {
        const int64_t a = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        const int64_t lo = pads[i], hi = pads[i + n_axes], most = (int64_t)1 << 40;
        if (lo > most || hi > most || lo < -most || hi < -most || dims[a] + lo + hi < 0)
            return OP_FAIL(c, "has impossible pads");
        begin[a] = lo;
        dims[a] += lo + hi;
    }
    if (value && value->dtype != x->dtype) return OP_FAIL(c, "the value has another type");
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    if (value && ox_op_size(value) == 1) {
        char *v;
        OX_TRY(ox_op_cells(c, value, &v, &width));
        memcpy(fill, v, width);
    } else if (!value && ox_node_attr(c->node, "value")) {
        const ox_lane f = {.f = (double)ox_node_float(c->node, "value", 0)};
        if (ox_dtype_is_float(x->dtype)) ox_lane_store(x->dtype, fill, 0, 1, &f);
    }
    ox_op_strides_of(x->dims, x->rank, strides);
    for (size_t i = 0, size = ox_op_size(y); i < size; i++) {
        size_t o = 0;
        bool inside = true;
        for (int32_t k = 0; k < x->rank; k++) {
            const int64_t s = pad_source(mode.n ? mode.p[0] : 'c', at[k] - begin[k], x->dims[k]);
            inside &= s >= 0;
            o += s >= 0 ? (size_t)s * strides[k] : 0;
        }
        memcpy(to + i * width, inside ? from + o * width : fill, width);
        (void)ox_op_next(at, dims, x->rank);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_trilu(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool upper = ox_node_int(c->node, "upper", 1) != 0;
    int64_t k;
    ox_tensor *y;
    char *from, *to;
    size_t width;
    if (x->rank < 2) return OP_FAIL(c, "the input must have two dimensions or more");
    OX_TRY(ox_op_int_in(c, 1, 0, &k));
    k = clamp(k, -((int64_t)1 << 40), (int64_t)1 << 40);
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    const int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1];
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        const int64_t row = (int64_t)i / cols % rows, col = (int64_t)i % cols;
        if (upper ? col - row >= k : col - row <= k)
            memcpy(to + i * width, from + i * width, width);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_depth_space(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    const bool to_space = ox_str_is(c->node->op_type, "DepthToSpace");
    const bool crd = ox_str_is(ox_node_str(c->node, "mode", "DCR"), "CRD");
    const int64_t b = ox_node_int(c->node, "blocksize", 0);
    int64_t s[4], at[4] = {0};
    ox_tensor *y;
    char *from, *to;
    size_t width;
    if (x->rank != 4 || b < 1 || b > 1 << 20)
        return OP_FAIL(c, "needs four dimensions and a block size");
    const int64_t depth = x->dims[1], h = x->dims[2], w = x->dims[3];
    if (to_space ? depth % (b * b) != 0 : h % b || w % b)
        return OP_FAIL(c, "the blocks do not fit");
    const int64_t dims[4] = {x->dims[0], to_space ? depth / b / b : depth * b * b,
                             to_space ? h * b : h / b, to_space ? w * b : w / b};
    OX_TRY(ox_op_out(c, 0, x->dtype, 4, dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    dense_strides(x, s);
    for (size_t i = 0, n = ox_op_size(y); i < n; i++) {
        int64_t ch, row, col;
        if (to_space) {
            const int64_t cell = at[2] % b * b + at[3] % b;
            ch = crd ? at[1] * b * b + cell : cell * dims[1] + at[1];
            row = at[2] / b;
            col = at[3] / b;
        } else {
            const int64_t cell = crd ? at[1] % (b * b) : at[1] / depth;
            ch = crd ? at[1] / (b * b) : at[1] % depth;
            row = at[2] * b + cell / b;
            col = at[3] * b + cell % b;
        }
        memcpy(to + i * width,
               from + (size_t)(at[0] * s[0] + ch * s[1] + row * s[2] + col * s[3]) * width, width);
        (void)ox_op_next(at, dims, 4);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_reverse_sequence(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *lens = ox_op_in(c, 1);
    const int64_t batch = ox_node_int(c->node, "batch_axis", 1),
                  time = ox_node_int(c->node, "time_axis", 0);
    int64_t at[OX_RANK_MAX] = {0}, s[OX_RANK_MAX], *len_of;
    ox_tensor *y;
    char *from, *to;
    size_t width;
    if (x->rank < 2 || batch == time || batch < 0 || batch > 1 || time < 0 || time > 1 ||
        lens->rank != 1 || lens->dims[0] != x->dims[batch])
        return OP_FAIL(c, "needs one length for each batch row");
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    OX_TRY(ox_op_ints(c, lens, &len_of));
    dense_strides(x, s);
    for (size_t i = 0, n = ox_op_size(x); i < n; i++) {
        const int64_t len = len_of[at[batch]], t = at[time];
        const int64_t t2 = len > 0 && len <= x->dims[time] && t < len ? len - 1 - t : t;
        memcpy(to + i * width, from + (size_t)((int64_t)i + (t2 - t) * s[time]) * width, width);
        (void)ox_op_next(at, x->dims, x->rank);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}

ox_status ox_op_eval_center_crop_pad(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t want[OX_OP_LIST], axes[OX_OP_LIST], dims[OX_RANK_MAX], shift[OX_RANK_MAX] = {0};
    int64_t at[OX_RANK_MAX] = {0}, s[OX_RANK_MAX];
    bool marked[OX_RANK_MAX] = {false};
    ox_tensor *y;
    char *from, *to;
    size_t width;
    int n, n_axes;
    OX_TRY(ox_op_list(c, 1, NULL, want, &n));
    OX_TRY(ox_op_attr_list(c, "axes", axes, &n_axes));
    for (int i = 0; n_axes < 0 && i < x->rank; i++)
        axes[i] = i;
    if (n_axes < 0) n_axes = x->rank;
    if (n != n_axes) return OP_FAIL(c, "names %d sizes for %d axes", n, n_axes);
    OX_TRY(ox_op_axes(c, axes, n, x->rank, marked));
    memcpy(dims, x->dims, sizeof(dims));
    for (int i = 0; i < n; i++) {
        const int64_t a = axes[i] < 0 ? axes[i] + x->rank : axes[i], d = x->dims[a];
        if (want[i] < 0) return OP_FAIL(c, "has a negative size");
        shift[a] = d > want[i] ? (d - want[i]) / 2 : -((want[i] - d) / 2);
        dims[a] = want[i];
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, dims, &y));
    OX_TRY(ox_op_cells(c, x, &from, &width));
    OX_TRY(ox_op_cells_out(c, y, &to, &width));
    dense_strides(x, s);
    for (size_t i = 0, size = ox_op_size(y); i < size; i++) {
        int64_t o = 0;
        bool inside = true;
        for (int32_t k = 0; k < x->rank; k++) {
            const int64_t p = at[k] + shift[k];
            inside &= p >= 0 && p < x->dims[k];
            o += p * s[k];
        }
        if (inside) memcpy(to + i * width, from + (size_t)o * width, width);
        (void)ox_op_next(at, dims, x->rank);
    }
    ox_op_cells_done(y, to);
    return OX_OK;
}
