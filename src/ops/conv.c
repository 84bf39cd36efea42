/* conv.c - convolutions: Conv, ConvInteger, QLinearConv, ConvTranspose, DeformConv, Col2Im. */
#include "ops/window.h"

#include <math.h>

typedef struct conv {
    ox_window w;
    size_t batch, in_ch, out_ch, groups, in_space, out_space, taps;
} conv;

static ox_status conv_open(ox_op_ctx *c, const ox_tensor *x, const ox_tensor *w, conv *k)
{
    const int64_t groups = ox_node_int(c->node, "group", 1);
    if (x->rank < 3 || w->rank != x->rank)
        return OP_FAIL(c, "needs an input [N, C, ...] and a weight of the same rank");
    OX_TRY(ox_window_open(c, x, w->dims + 2, &k->w));
    if (memcmp(k->w.size, w->dims + 2, sizeof(int64_t) * (size_t)k->w.n))
        return OP_FAIL(c, "kernel_shape is not the weight's");
    OX_TRY(ox_window_forward(c, &k->w));
    if (groups < 1 || w->dims[1] < 1 || x->dims[1] % groups || w->dims[0] % groups ||
        x->dims[1] / groups != w->dims[1])
        return OP_FAIL(c, "%lld input channels do not fit the weight in %lld groups",
                       (long long)x->dims[1], (long long)groups);
    k->batch = (size_t)x->dims[0];
    k->in_ch = (size_t)x->dims[1];
    k->out_ch = (size_t)w->dims[0];
    k->groups = (size_t)groups;
    k->in_space = ox_op_product(x->dims, 2, x->rank);
    k->out_space = ox_op_product(k->w.out, 0, k->w.n);
    k->taps = ox_op_product(k->w.size, 0, k->w.n);
    return OX_OK;
}

static void conv_dims(const conv *k, int64_t *dims)
{
    dims[0] = (int64_t)k->batch;
    dims[1] = (int64_t)k->out_ch;
    memcpy(dims + 2, k->w.out, sizeof(int64_t) * (size_t)k->w.n);
}

/* out [N, M, ...] += conv(x [N, C, ...], w [M, C/g, ...]); doubles hold integers up to 2^53
 * exactly. */
static ox_status conv_run(ox_op_ctx *c, const conv *k, const double *x, const double *w,
                          double *out)
{
    int64_t at[OX_SPACE_MAX] = {0};
    const size_t per = k->in_ch / k->groups, out_per = k->out_ch / k->groups;
    OX_TRY(ox_op_work(c, k->batch * k->out_ch * k->out_space, k->taps, per));
    for (size_t o = 0; o < k->out_space; o++) {
        int64_t tap[OX_SPACE_MAX] = {0};
        for (size_t t = 0; t < k->taps; t++) {
            const int64_t i = ox_window_index(&k->w, at, tap);
            (void)ox_op_next(tap, k->w.size, k->w.n);
            if (i < 0) continue;
            for (size_t b = 0; b < k->batch; b++)
                for (size_t m = 0; m < k->out_ch; m++) {
                    const double *from =
                        x + (b * k->in_ch + m / out_per * per) * k->in_space + (size_t)i;
                    double s = 0;
                    for (size_t ch = 0; ch < per; ch++)
                        s += from[ch * k->in_space] * w[(m * per + ch) * k->taps + t];
                    out[(b * k->out_ch + m) * k->out_space + o] += s;
                }
        }
        (void)ox_op_next(at, k->w.out, k->w.n);
        OX_TRY(ox_op_cancelled(c));
    }
    return OX_OK;
}

ox_status ox_op_eval_conv(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *w = ox_op_in(c, 1), *bias = ox_op_in(c, 2);
    int64_t dims[OX_RANK_MAX];
    double *v, *u, *b = NULL;
    ox_tensor *y;
    void *p;
    conv k;
    OX_TRY(conv_open(c, x, w, &k));
    if (bias && ox_op_size(bias) != k.out_ch)
        return OP_FAIL(c, "the bias does not fit %zu channels", k.out_ch);
    conv_dims(&k, dims);
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, w, &u));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &b));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    double *out = p;
    for (size_t i = 0; b && i < ox_op_size(y); i++)
        out[i] = b[i / k.out_space % k.out_ch];
    OX_TRY(conv_run(c, &k, v, u, out));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

/* Doubles of x minus its zero point: one, or one for each channel of dimension `axis`. */
static ox_status centred(ox_op_ctx *c, const ox_tensor *x, const ox_tensor *zero, int32_t axis,
                         double **out)
{
    double *z;
    OX_TRY(ox_op_doubles(c, x, out));
    if (!zero) return OX_OK;
    OX_TRY(ox_op_doubles(c, zero, &z));
    const size_t n = ox_op_size(zero), inner = ox_op_product(x->dims, axis + 1, x->rank);
    if (n != 1 && n != (size_t)x->dims[axis]) return OP_FAIL(c, "zero points do not fit");
    for (size_t i = 0; i < ox_op_size(x); i++)
        (*out)[i] -= z[n == 1 ? 0 : i / inner % n];
    return OX_OK;
}

ox_status ox_op_eval_conv_integer(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *w = ox_op_in(c, 1);
    int64_t dims[OX_RANK_MAX];
    double *v, *u;
    ox_tensor *y;
    void *p;
    conv k;
    OX_TRY(conv_open(c, x, w, &k));
    conv_dims(&k, dims);
    OX_TRY(ox_op_out(c, 0, OX_DTYPE_I32, x->rank, dims, &y));
    OX_TRY(centred(c, x, ox_op_in(c, 2), 1, &v));
    OX_TRY(centred(c, w, ox_op_in(c, 3), 0, &u));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    OX_TRY(conv_run(c, &k, v, u, p));
    ox_lane *l = p;
    for (size_t i = 0; i < ox_op_size(y); i++)
        l[i].i = ox_lane_int(l[i].f);
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

/* x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias */
ox_status ox_op_eval_qlinear_conv(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *w = ox_op_in(c, 3), *zero = ox_op_in(c, 7),
                    *bias = ox_op_in(c, 8);
    int64_t dims[OX_RANK_MAX];
    double *v, *u, *sx, *sw, *sy, *zy, *b = NULL;
    ox_tensor *y;
    void *p;
    conv k;
    OX_TRY(conv_open(c, x, w, &k));
    conv_dims(&k, dims);
    const size_t nw = ox_op_size(ox_op_in(c, 4));
    if (ox_op_size(ox_op_in(c, 1)) != 1 || ox_op_size(ox_op_in(c, 6)) != 1 ||
        ox_op_size(zero) != 1 || (nw != 1 && nw != k.out_ch) ||
        (bias && ox_op_size(bias) != k.out_ch))
        return OP_FAIL(c, "scales, zero points or bias do not fit");
    OX_TRY(ox_op_out(c, 0, zero->dtype, x->rank, dims, &y));
    OX_TRY(centred(c, x, ox_op_in(c, 2), 1, &v));
    OX_TRY(centred(c, w, ox_op_in(c, 5), 0, &u));
    OX_TRY(ox_op_doubles(c, ox_op_in(c, 1), &sx));
    OX_TRY(ox_op_doubles(c, ox_op_in(c, 4), &sw));
    OX_TRY(ox_op_doubles(c, ox_op_in(c, 6), &sy));
    OX_TRY(ox_op_doubles(c, zero, &zy));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &b));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    OX_TRY(conv_run(c, &k, v, u, p));
    ox_lane *l = p;
    const double lo = y->dtype == OX_DTYPE_I8 ? -128 : 0, hi = y->dtype == OX_DTYPE_I8 ? 127 : 255;
    for (size_t i = 0; i < ox_op_size(y); i++) {
        const size_t ch = i / k.out_space % k.out_ch;
        const double q =
            nearbyint((l[i].f + (b ? b[ch] : 0)) * sx[0] * sw[nw == 1 ? 0 : ch] / sy[0]) + zy[0];
        l[i].i = ox_lane_int(q < lo ? lo : q > hi ? hi : q);
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

/* Output lengths and padding of a transposed convolution. */
static ox_status transpose_shape(ox_op_ctx *c, ox_window *w)
{
    const ox_str pad = ox_node_str(c->node, "auto_pad", "NOTSET");
    const bool lower = ox_str_is(pad, "SAME_LOWER"), same = lower || ox_str_is(pad, "SAME_UPPER");
    int64_t extra[OX_OP_LIST] = {0}, want[OX_OP_LIST];
    int n_extra, n_want;
    OX_TRY(ox_op_attr_list(c, "output_padding", extra, &n_extra));
    OX_TRY(ox_op_attr_list(c, "output_shape", want, &n_want));
    if ((n_extra >= 0 && n_extra != w->n) || (n_want >= 0 && n_want != w->n))
        return OP_FAIL(c, "output_padding or output_shape does not fit");
    for (int32_t i = 0; i < w->n; i++) {
        if (extra[i] < 0 || extra[i] > INT32_MAX)
            return OP_FAIL(c, "has a negative output_padding");
        const int64_t full =
            (w->in[i] - 1) * w->stride[i] + extra[i] + (w->size[i] - 1) * w->dilation[i] + 1;
        if (n_want >= 0 || same) {
            w->out[i] = n_want >= 0 ? want[i] : w->in[i] * w->stride[i];
            const int64_t all = full - w->out[i] > 0 ? full - w->out[i] : 0;
            w->begin[i] = lower || !same ? all - all / 2 : all / 2;
            if (!same) w->begin[i] = all / 2;
            w->end[i] = all - w->begin[i];
        } else {
            w->out[i] = full - w->begin[i] - w->end[i];
        }
        if (w->out[i] < 0 || w->out[i] > INT32_MAX)
            return OP_FAIL(c, "would make %lld elements on axis %d", (long long)w->out[i], i);
    }
    return OX_OK;
}

ox_status ox_op_eval_conv_transpose(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *w = ox_op_in(c, 1), *bias = ox_op_in(c, 2);
    const int64_t groups = ox_node_int(c->node, "group", 1);
    int64_t dims[OX_RANK_MAX], at[OX_SPACE_MAX] = {0};
    double *v, *u, *b = NULL;
    ox_tensor *y;
    ox_window k, back;
    void *p;
    if (x->rank < 3 || w->rank != x->rank)
        return OP_FAIL(c, "needs an input [N, C, ...] and a weight of the same rank");
    OX_TRY(ox_window_open(c, x, w->dims + 2, &k));
    if (memcmp(k.size, w->dims + 2, sizeof(int64_t) * (size_t)k.n))
        return OP_FAIL(c, "kernel_shape is not the weight's");
    OX_TRY(transpose_shape(c, &k));
    if (groups < 1 || x->dims[1] % groups || w->dims[0] != x->dims[1] || w->dims[1] > INT32_MAX ||
        groups > INT32_MAX)
        return OP_FAIL(c, "channels do not fit");
    const size_t in_ch = (size_t)x->dims[1], out_per = (size_t)w->dims[1],
                 out_ch = out_per * (size_t)groups;
    if (bias && ox_op_size(bias) != out_ch)
        return OP_FAIL(c, "the bias does not fit %zu channels", out_ch);
    dims[0] = x->dims[0];
    dims[1] = (int64_t)out_ch;
    memcpy(dims + 2, k.out, sizeof(int64_t) * (size_t)k.n);
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, w, &u));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &b));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    double *out = p;
    back = k; /* the forward pass whose gradient this is reads the output */
    memcpy(back.in, k.out, sizeof(back.in));
    const size_t in_space = ox_op_product(x->dims, 2, x->rank),
                 out_space = ox_op_product(k.out, 0, k.n);
    const size_t taps = ox_op_product(k.size, 0, k.n), in_per = in_ch / (size_t)groups;
    for (size_t i = 0; b && i < ox_op_size(y); i++)
        out[i] = b[i / out_space % out_ch];
    for (size_t i = 0; i < in_space; i++) {
        int64_t tap[OX_SPACE_MAX] = {0};
        for (size_t t = 0; t < taps; t++) {
            const int64_t o = ox_window_index(&back, at, tap);
            (void)ox_op_next(tap, k.size, k.n);
            if (o < 0) continue;
            for (size_t n = 0; n < (size_t)x->dims[0] * in_ch; n++) {
                const size_t ch = n % in_ch, first = ch / in_per * out_per;
                const double a = v[n * in_space + i];
                for (size_t m = 0; m < out_per; m++)
                    out[(n / in_ch * out_ch + first + m) * out_space + (size_t)o] +=
                        a * u[(ch * out_per + m) * taps + t];
            }
        }
        (void)ox_op_next(at, k.in, k.n);
        OX_TRY(ox_op_cancelled(c));
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

ox_status ox_op_eval_col2im(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0);
    int64_t image[OX_OP_LIST], block[OX_OP_LIST], dims[OX_RANK_MAX], at[OX_SPACE_MAX] = {0};
    ox_tensor shape = {.dtype = x->dtype}, *y;
    int n, n_block;
    double *v;
    ox_window w;
    void *p;
    OX_TRY(ox_op_list(c, 1, NULL, image, &n));
    OX_TRY(ox_op_list(c, 2, NULL, block, &n_block));
    if (x->rank != 3 || n < 1 || n > OX_SPACE_MAX || n_block != n)
        return OP_FAIL(c, "needs an input [N, C, L] and two shapes");
    shape.rank = n + 2;
    for (int i = 0; i < n; i++) {
        if (image[i] < 1 || image[i] > INT32_MAX || block[i] < 1 || block[i] > INT32_MAX)
            return OP_FAIL(c, "has an empty shape");
        shape.dims[2 + i] = image[i];
    }
    OX_TRY(ox_window_open(c, &shape, block, &w));
    OX_TRY(ox_window_forward(c, &w));
    const size_t taps = ox_op_product(block, 0, n), windows = ox_op_product(w.out, 0, n);
    if ((size_t)x->dims[2] != windows || (size_t)x->dims[1] % taps)
        return OP_FAIL(c, "its columns do not fit the image");
    const size_t ch = (size_t)x->dims[1] / taps, space = ox_op_product(image, 0, n);
    dims[0] = x->dims[0];
    dims[1] = (int64_t)ch;
    memcpy(dims + 2, image, sizeof(int64_t) * (size_t)n);
    OX_TRY(ox_op_out(c, 0, x->dtype, n + 2, dims, &y));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    for (size_t o = 0; o < windows; o++) {
        int64_t tap[OX_SPACE_MAX] = {0};
        for (size_t t = 0; t < taps; t++) {
            const int64_t i = ox_window_index(&w, at, tap);
            (void)ox_op_next(tap, block, n);
            for (size_t k = 0; i >= 0 && k < (size_t)x->dims[0] * ch; k++)
                ((double *)p)[k * space + (size_t)i] += v[(k * taps + t) * windows + o];
        }
        (void)ox_op_next(at, w.out, n);
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

/* Value of a plane [h, w] between its points; outside counts as zero. */
static double bilinear(const double *plane, int64_t h, int64_t w, double y, double x)
{
    const double fy = floor(y), fx = floor(x);
    double sum = 0;
    if (!(y > -1 && x > -1 && y < (double)h && x < (double)w)) return 0;
    for (int64_t i = (int64_t)fy; i <= (int64_t)fy + 1; i++)
        for (int64_t j = (int64_t)fx; j <= (int64_t)fx + 1; j++) {
            if (i < 0 || j < 0 || i >= h || j >= w) continue;
            sum += plane[i * w + j] * (1 - fabs(y - (double)i)) * (1 - fabs(x - (double)j));
        }
    return sum;
}

/* X, W, offset, B?, mask?; two spatial axes. */
ox_status ox_op_eval_deform_conv(ox_op_ctx *c)
{
    const ox_tensor *x = ox_op_in(c, 0), *w = ox_op_in(c, 1), *offset = ox_op_in(c, 2),
                    *bias = ox_op_in(c, 3), *mask = ox_op_in(c, 4);
    const int64_t og = ox_node_int(c->node, "offset_group", 1);
    int64_t dims[OX_RANK_MAX];
    double *v, *u, *d, *b = NULL, *m = NULL;
    ox_tensor *y;
    void *p;
    conv k;
    if (x->rank != 4) return OP_FAIL_AS(c, OX_UNSUPPORTED, "needs two spatial axes");
    OX_TRY(conv_open(c, x, w, &k));
    if (og < 1 || k.in_ch % (size_t)og ||
        ox_op_size(offset) != k.batch * (size_t)og * k.taps * 2 * k.out_space ||
        (mask && ox_op_size(mask) != k.batch * (size_t)og * k.taps * k.out_space) ||
        (bias && ox_op_size(bias) != k.out_ch))
        return OP_FAIL(c, "offsets, mask or bias do not fit");
    conv_dims(&k, dims);
    OX_TRY(ox_op_out(c, 0, x->dtype, 4, dims, &y));
    OX_TRY(ox_op_work(c, ox_op_size(y), k.taps, k.in_ch / k.groups));
    OX_TRY(ox_op_doubles(c, x, &v));
    OX_TRY(ox_op_doubles(c, w, &u));
    OX_TRY(ox_op_doubles(c, offset, &d));
    if (bias) OX_TRY(ox_op_doubles(c, bias, &b));
    if (mask) OX_TRY(ox_op_doubles(c, mask, &m));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    double *out = p;
    const size_t per = k.in_ch / k.groups, out_per = k.out_ch / k.groups,
                 og_per = k.in_ch / (size_t)og;
    const int64_t h = k.w.in[0], wd = k.w.in[1];
    for (size_t i = 0; i < ox_op_size(y); i++) {
        const size_t o = i % k.out_space, ch = i / k.out_space % k.out_ch,
                     n = i / k.out_space / k.out_ch;
        const int64_t oy = (int64_t)o / k.w.out[1], ox = (int64_t)o % k.w.out[1];
        double s = b ? b[ch] : 0;
        for (size_t e = 0; e < per; e++) {
            const size_t in = ch / out_per * per + e, g = in / og_per;
            for (size_t t = 0; t < k.taps; t++) {
                const size_t at = ((n * (size_t)og + g) * k.taps + t) * k.out_space + o;
                const size_t ay = (((n * (size_t)og + g) * k.taps + t) * 2) * k.out_space + o;
                const int64_t ky = (int64_t)t / k.w.size[1], kx = (int64_t)t % k.w.size[1];
                const double py =
                    (double)(oy * k.w.stride[0] - k.w.begin[0] + ky * k.w.dilation[0]) + d[ay];
                const double px =
                    (double)(ox * k.w.stride[1] - k.w.begin[1] + kx * k.w.dilation[1]) +
                    d[ay + k.out_space];
                s += u[(ch * per + e) * k.taps + t] * (m ? m[at] : 1) *
                     bilinear(v + (n * k.in_ch + in) * k.in_space, h, wd, py, px);
            }
        }
        out[i] = s;
        if (!(i & 1023)) OX_TRY(ox_op_cancelled(c));
    }
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}
