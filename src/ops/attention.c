/* attention.c - RotaryEmbedding and the attention operators: the standard Attention, and the second
 * domain's GroupQueryAttention, MultiHeadAttention and RotaryEmbedding. All share one core: scores
 * of one query row over the keys it may see, softmax, weighted values, in double. */
#include "ops/op_internal.h"

#include <math.h>

/* Heads of q, k or v: element [b][head][row][channel] at these strides. */
typedef struct heads {
    double *p;
    size_t n, rows, size; /* heads, rows, channels */
    size_t sb, sh, sr;
} heads;

static double *at(const heads *h, size_t b, size_t head, size_t row)
{
    return h->p + b * h->sb + head * h->sh + row * h->sr;
}

/* [B, N, S, H] */
static heads bnsh(double *p, size_t n, size_t rows, size_t size)
{
    return (heads){p, n, rows, size, n * rows * size, rows * size, size};
}

/* [B, S, N * H], maybe a part of wider rows. */
static heads bsnh(double *p, size_t n, size_t rows, size_t size, size_t width)
{
    return (heads){p, n, rows, size, rows * width, size, width};
}

static ox_status heads_of(ox_op_ctx *c, const ox_tensor *t, int64_t n, heads *h)
{
    const bool split = t->rank == 4;
    double *p;
    if (t->rank != 3 && !split) return OP_FAIL(c, "heads need 3 or 4 dimensions, not %d", t->rank);
    if (!split && (n < 1 || t->dims[2] % n))
        return OP_FAIL(c, "%lld channels are no %lld heads", (long long)t->dims[2], (long long)n);
    OX_TRY(ox_op_doubles(c, t, &p));
    *h = split
             ? bnsh(p, (size_t)t->dims[1], (size_t)t->dims[2], (size_t)t->dims[3])
             : bsnh(p, (size_t)n, (size_t)t->dims[1], (size_t)(t->dims[2] / n), (size_t)t->dims[2]);
    return OX_OK;
}

/* ---- rotary positions ---- */

/* Turns the first `rotary` channels of x by row `pos` of the tables [positions, rotary/2]. */
static void turn(double *x, size_t rotary, bool interleaved, const double *cos_row,
                 const double *sin_row)
{
    const size_t half = rotary / 2;
    for (size_t i = 0; i < half; i++) {
        const size_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
        const double u = x[a], v = x[b];
        x[a] = u * cos_row[i] - v * sin_row[i];
        x[b] = v * cos_row[i] + u * sin_row[i];
    }
}

/* RotaryEmbedding of both domains: they differ in the order of inputs and in how positions come. */
ox_status ox_op_eval_rotary(ox_op_ctx *c)
{
    const bool ms = c->node->domain.n != 0;
    const ox_tensor *x = ox_op_in(c, 0), *pos = ox_op_in(c, ms ? 1 : 3);
    const ox_tensor *cs = ox_op_in(c, ms ? 2 : 1), *sn = ox_op_in(c, ms ? 3 : 2);
    int64_t rotary = ox_node_int(c->node, "rotary_embedding_dim", 0),
            n = ox_node_int(c->node, "num_heads", 0);
    const bool interleaved = ox_node_int(c->node, "interleaved", 0) != 0;
    double *cos_table, *sin_table;
    int64_t *ids = NULL;
    ox_tensor *y;
    heads h;
    if (cs->rank < 2 || cs->rank != sn->rank ||
        memcmp(cs->dims, sn->dims, sizeof(int64_t) * (size_t)cs->rank))
        return OP_FAIL(c, "the cosine and sine tables differ");
    const size_t half = (size_t)cs->dims[cs->rank - 1];
    if (x->rank == 3 && !n && ms && half) n = x->dims[2] / (int64_t)(2 * half);
    OX_TRY(heads_of(c, x, n, &h));
    if (!rotary) rotary = ms ? (int64_t)(2 * half) : (int64_t)h.size;
    if (rotary < 0 || (size_t)rotary > h.size || (size_t)rotary != 2 * half)
        return OP_FAIL(c, "turns %lld channels of %zu with tables of %zu", (long long)rotary,
                       h.size, half);
    const size_t batch = (size_t)x->dims[0], n_pos = pos ? ox_op_size(pos) : 0;
    const size_t table = cs->rank == 2 ? (size_t)cs->dims[0] : (size_t)(cs->dims[0] * cs->dims[1]);
    if (pos) OX_TRY(ox_op_ints(c, pos, &ids));
    const bool offset = ms && n_pos == 1 && !(batch * h.rows == 1 && pos->rank == 2);
    if (pos ? !offset && n_pos != batch * h.rows : table != batch * h.rows)
        return OP_FAIL(c, "positions do not fit %zu x %zu rows", batch, h.rows);
    OX_TRY(ox_op_doubles(c, cs, &cos_table));
    OX_TRY(ox_op_doubles(c, sn, &sin_table));
    for (size_t b = 0; b < batch; b++) {
        for (size_t r = 0; r < h.rows; r++) {
            int64_t p = (int64_t)(b * h.rows + r);
            if (pos) p = offset ? ids[0] + (int64_t)r : ids[b * h.rows + r];
            if (p < 0 || (size_t)p >= table)
                return OP_FAIL(c, "position %lld is outside of %zu", (long long)p, table);
            for (size_t k = 0; k < h.n; k++)
                turn(at(&h, b, k, r), (size_t)rotary, interleaved, cos_table + (size_t)p * half,
                     sin_table + (size_t)p * half);
        }
    }
    OX_TRY(ox_op_out(c, 0, x->dtype, x->rank, x->dims, &y));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(x), (const ox_lane *)h.p);
    return OX_OK;
}

/* ---- the core ---- */

typedef struct core {
    heads q, k, v, y;
    size_t batch, total; /* keys */
    double scale, softcap;
    const double *mask; /* additive, [B|1, N|1, S|1, T] by strides; NULL = none */
    size_t mb, mh, ms, mt;
    const double *sinks; /* [N] or NULL */
    /* key j is seen by row s of batch b iff first(b, s) <= j < last(b, s) */
    void (*range)(const void *user, size_t b, size_t s, int64_t *first, int64_t *last);
    const void *user;
    double *qk;    /* [B, N, S, T] or NULL: what `mode` asks for */
    int mode;      /* 0 scaled, 1 after softcap, 2 after mask, 3 after softmax */
    ox_dtype soft; /* type the softmax is rounded to; F64 = not at all */
} core;

static double rounded(ox_dtype t, double x)
{
    char cell[16] = {0};
    ox_lane l = {.f = x};
    if (t == OX_DTYPE_F64) return x;
    ox_lane_store(t, cell, 0, 1, &l);
    ox_lane_load(t, cell, NULL, 0, 1, &l);
    return l.f;
}

static void attend_row(const core *a, size_t b, size_t h, size_t s, double *score)
{
    const size_t kv = h / (a->q.n / a->k.n);
    const double *q = at(&a->q, b, h, s), inf = (double)INFINITY;
    double *qk = a->qk ? a->qk + ((b * a->q.n + h) * a->q.rows + s) * a->total : NULL;
    double max = a->sinks ? a->sinks[h] : -inf, sum = 0, *y = at(&a->y, b, h, s);
    int64_t first, last;
    a->range(a->user, b, s, &first, &last);
    for (size_t j = 0; j < a->total; j++) {
        const double *k = at(&a->k, b, kv, j);
        double x = 0;
        for (size_t i = 0; i < a->q.size; i++)
            x += q[i] * k[i];
        x *= a->scale;
        if (qk && a->mode == 0) qk[j] = x;
        if (a->softcap > 0) x = a->softcap * tanh(x / a->softcap);
        if (qk && a->mode == 1) qk[j] = x;
        if (a->mask) x += a->mask[b * a->mb + h * a->mh + s * a->ms + j * a->mt];
        if ((int64_t)j < first || (int64_t)j >= last) x = -inf;
        if (qk && a->mode == 2) qk[j] = x;
        score[j] = x;
        if (x > max) max = x;
    }
    if (max > -inf) {
        for (size_t j = 0; j < a->total; j++)
            sum += score[j] = exp(score[j] - max);
        if (a->sinks) sum += exp(a->sinks[h] - max);
    } else {
        for (size_t j = 0; j < a->total; j++)
            score[j] = 0;
        sum = 1;
    }
    for (size_t i = 0; i < a->v.size; i++)
        y[i] = 0;
    for (size_t j = 0; j < a->total; j++) {
        const double p = rounded(a->soft, score[j] / sum);
        const double *v = at(&a->v, b, kv, j);
        if (qk && a->mode == 3) qk[j] = p;
        for (size_t i = 0; p > 0 && i < a->v.size; i++)
            y[i] += p * v[i];
    }
}

static ox_status attend(ox_op_ctx *c, const core *a)
{
    void *score;
    OX_TRY(ox_op_work(c, a->batch * a->q.n * a->q.rows, a->total, a->q.size + a->v.size));
    OX_TRY(ox_op_temp(c, a->total, sizeof(double), &score));
    for (size_t b = 0; b < a->batch; b++)
        for (size_t h = 0; h < a->q.n; h++)
            for (size_t s = 0; s < a->q.rows; s++) {
                attend_row(a, b, h, s, score);
                if (!(s & 63)) OX_TRY(ox_op_cancelled(c));
            }
    return OX_OK;
}

/* Broadcast strides of a mask whose shape is aligned right with [B, N, S, T]; a bool mask becomes
 * 0 and minus infinity, columns that a shorter mask lacks become minus infinity. */
static ox_status mask_of(ox_op_ctx *c, const ox_tensor *m, core *a)
{
    int64_t dims[4] = {1, 1, 1, 1};
    const size_t want[3] = {a->batch, a->q.n, a->q.rows};
    double *v;
    void *p;
    if (m->rank > 4 || m->rank < 1) return OP_FAIL(c, "the mask has %d dimensions", m->rank);
    for (int32_t i = 0; i < m->rank; i++)
        dims[4 - m->rank + i] = m->dims[i];
    for (int i = 0; i < 3; i++)
        if (dims[i] != 1 && (size_t)dims[i] != want[i])
            return OP_FAIL(c, "the mask does not fit dimension %d", i);
    const size_t t = (size_t)dims[3], rows = (size_t)(dims[0] * dims[1] * dims[2]);
    if (t > a->total && t != 1)
        return OP_FAIL(c, "the mask has %zu columns for %zu keys", t, a->total);
    OX_TRY(ox_op_doubles(c, m, &v));
    OX_TRY(ox_op_temp(c, rows * a->total, sizeof(double), &p));
    double *full = p;
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < a->total; j++) {
            double x = -(double)INFINITY;
            if (j < t || t == 1) x = v[r * t + (t == 1 ? 0 : j)];
            if (m->dtype == OX_DTYPE_BOOL && (j < t || t == 1)) x = x > 0 ? 0 : -(double)INFINITY;
            full[r * a->total + j] = x;
        }
    a->mask = full;
    a->mt = 1;
    a->ms = dims[2] == 1 ? 0 : a->total;
    a->mh = dims[1] == 1 ? 0 : (size_t)dims[2] * a->total;
    a->mb = dims[0] == 1 ? 0 : (size_t)(dims[1] * dims[2]) * a->total;
    return OX_OK;
}

/* past ++ now along the rows, as [B, N, rows, size]; also stored as output i. */
static ox_status joined(ox_op_ctx *c, const heads *now, const heads *past, size_t batch, ox_dtype t,
                        size_t i_out, heads *out)
{
    const size_t n_past = past ? past->rows : 0, rows = n_past + now->rows;
    const int64_t dims[4] = {(int64_t)batch, (int64_t)now->n, (int64_t)rows, (int64_t)now->size};
    ox_tensor *y;
    void *p;
    OX_TRY(ox_op_temp(c, batch * now->n * rows * now->size, sizeof(double), &p));
    *out = bnsh(p, now->n, rows, now->size);
    for (size_t b = 0; b < batch; b++)
        for (size_t h = 0; h < now->n; h++)
            for (size_t r = 0; r < rows; r++)
                memcpy(at(out, b, h, r), r < n_past ? at(past, b, h, r) : at(now, b, h, r - n_past),
                       now->size * sizeof(double));
    if (!ox_op_wants(c, i_out)) return OX_OK;
    OX_TRY(ox_op_out(c, i_out, t, 4, dims, &y));
    ox_lane_store(t, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

/* ---- Attention, standard domain ---- */

typedef struct standard {
    bool causal;
    int64_t offset, left, right, total;
    const int64_t *valid; /* [B] rows of a static cache, or NULL */
    int64_t rows;
} standard;

static void standard_range(const void *user, size_t b, size_t s, int64_t *first, int64_t *last)
{
    const standard *x = user;
    const int64_t p = (int64_t)s + (x->valid ? x->valid[b] - x->rows : x->offset);
    *first = 0;
    *last = x->valid && x->valid[b] < x->total ? x->valid[b] : x->total;
    if (x->causal && p + 1 < *last) *last = p + 1;
    if (x->left >= 0 && p - x->left > 0) *first = p - x->left;
    if (x->right >= 0 && p + x->right + 1 < *last) *last = p + x->right + 1;
}

ox_status ox_op_eval_attention(ox_op_ctx *c)
{
    const ox_tensor *q = ox_op_in(c, 0), *k = ox_op_in(c, 1), *v = ox_op_in(c, 2),
                    *mask = ox_op_in(c, 3);
    const ox_tensor *pk = ox_op_in(c, 4), *pv = ox_op_in(c, 5), *valid = ox_op_in(c, 6);
    core a = {.batch = (size_t)(q->rank ? q->dims[0] : 0)};
    heads kn, vn, kp, vp;
    ox_tensor *y;
    void *p, *qk = NULL;
    OX_TRY(heads_of(c, q, ox_node_int(c->node, "q_num_heads", 0), &a.q));
    OX_TRY(heads_of(c, k, ox_node_int(c->node, "kv_num_heads", 0), &kn));
    OX_TRY(heads_of(c, v, ox_node_int(c->node, "kv_num_heads", 0), &vn));
    if (!pk != !pv) return OP_FAIL(c, "needs past keys and values together");
    if (pk) {
        if (pk->rank != 4 || pv->rank != 4)
            return OP_FAIL(c, "past keys and values need 4 dimensions");
        OX_TRY(heads_of(c, pk, 0, &kp));
        OX_TRY(heads_of(c, pv, 0, &vp));
        if (kp.n != kn.n || kp.size != kn.size || vp.n != vn.n || vp.size != vn.size ||
            vp.rows != kp.rows || pk->dims[0] != q->dims[0] || pv->dims[0] != q->dims[0])
            return OP_FAIL(c, "past and present keys or values differ");
    }
    if (k->dims[0] != q->dims[0] || v->dims[0] != q->dims[0] || kn.rows != vn.rows ||
        kn.n != vn.n || kn.size != a.q.size || !kn.n || a.q.n % kn.n)
        return OP_FAIL(c, "query, key and value do not fit each other");
    OX_TRY(joined(c, &kn, pk ? &kp : NULL, a.batch, k->dtype, 1, &a.k));
    OX_TRY(joined(c, &vn, pk ? &vp : NULL, a.batch, v->dtype, 2, &a.v));
    a.total = a.k.rows;
    a.scale = ox_node_attr(c->node, "scale") ? (double)ox_node_float(c->node, "scale", 0)
                                             : 1 / sqrt((double)a.q.size);
    a.softcap = (double)ox_node_float(c->node, "softcap", 0);
    a.mode = (int)ox_node_int(c->node, "qk_matmul_output_mode", 0);
    a.soft = OX_DTYPE_F64;
    if (mask) OX_TRY(mask_of(c, mask, &a));
    standard r = {.causal = ox_node_int(c->node, "is_causal", 0) != 0,
                  .offset = pk ? (int64_t)kp.rows : 0,
                  .left = ox_node_int(c->node, "left_window_size", -1),
                  .right = ox_node_int(c->node, "right_window_size", -1),
                  .total = (int64_t)a.total,
                  .rows = (int64_t)a.q.rows};
    if (valid) {
        int64_t *n;
        if (ox_op_size(valid) != a.batch)
            return OP_FAIL(c, "nonpad_kv_seqlen must have %zu entries", a.batch);
        OX_TRY(ox_op_ints(c, valid, &n));
        r.valid = n;
    }
    a.range = standard_range;
    a.user = &r;
    const int64_t y3[3] = {(int64_t)a.batch, (int64_t)a.q.rows, (int64_t)(a.q.n * a.v.size)};
    const int64_t y4[4] = {(int64_t)a.batch, (int64_t)a.q.n, (int64_t)a.q.rows, (int64_t)a.v.size};
    OX_TRY(ox_op_out(c, 0, q->dtype, q->rank, q->rank == 3 ? y3 : y4, &y));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    a.y = q->rank == 3 ? bsnh(p, a.q.n, a.q.rows, a.v.size, a.q.n * a.v.size)
                       : bnsh(p, a.q.n, a.q.rows, a.v.size);
    if (ox_op_wants(c, 3)) {
        OX_TRY(ox_op_temp(c, a.batch * a.q.n * a.q.rows * a.total, sizeof(double), &qk));
        a.qk = qk;
    }
    OX_TRY(attend(c, &a));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    if (!qk) return OX_OK;
    const int64_t qk4[4] = {(int64_t)a.batch, (int64_t)a.q.n, (int64_t)a.q.rows, (int64_t)a.total};
    OX_TRY(ox_op_out(c, 3, q->dtype, 4, qk4, &y));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), qk);
    return OX_OK;
}

/* ---- GroupQueryAttention ---- */

typedef struct grouped {
    const int64_t *last_index; /* [B] total length of each row of the batch, minus one */
    int64_t window, total, rows;
    bool first_prompt, causal;
} grouped;

static int64_t length_of(const grouped *g, size_t b)
{
    const int64_t n = g->last_index[b] + 1;
    return n < 0 ? 0 : n > g->total ? g->total : n;
}

static int64_t past_of(const grouped *g, size_t b)
{
    const int64_t past = g->first_prompt ? 0 : length_of(g, b) - g->rows;
    return past < 0 ? 0 : past;
}

static void grouped_range(const void *user, size_t b, size_t s, int64_t *first, int64_t *last)
{
    const grouped *g = user;
    const int64_t p = past_of(g, b) + (int64_t)s;
    *first = g->window > 0 && p - g->window + 1 > 0 ? p - g->window + 1 : 0;
    *last = length_of(g, b);
    if (g->causal && p + 1 < *last) *last = p + 1;
}

/* Root-mean-square normalisation of every head. */
static void norm_heads(const heads *h, size_t batch, const double *w, double epsilon)
{
    for (size_t b = 0; b < batch; b++)
        for (size_t k = 0; k < h->n; k++)
            for (size_t r = 0; r < h->rows; r++) {
                double *x = at(h, b, k, r), sum = 0;
                for (size_t i = 0; i < h->size; i++)
                    sum += x[i] * x[i];
                const double f = 1 / sqrt(sum / (double)h->size + epsilon);
                for (size_t i = 0; i < h->size; i++)
                    x[i] *= f * w[i];
            }
}

static ox_status grouped_rotate(ox_op_ctx *c, const grouped *g, const heads *h, size_t batch)
{
    const ox_tensor *cs = ox_op_in(c, 7), *sn = ox_op_in(c, 8), *pos = ox_op_in(c, 9);
    const bool interleaved = ox_node_int(c->node, "rotary_interleaved", 0) != 0;
    double *cos_table, *sin_table;
    int64_t *ids = NULL;
    if (!cs || !sn || cs->rank != 2 || sn->rank != 2 || ox_op_size(cs) != ox_op_size(sn))
        return OP_FAIL(c, "needs cosine and sine tables");
    const size_t half = (size_t)cs->dims[1];
    if (2 * half > h->size) return OP_FAIL(c, "turns %zu channels of %zu", 2 * half, h->size);
    if (pos && ox_op_size(pos) != batch * h->rows) return OP_FAIL(c, "position_ids do not fit");
    if (pos) OX_TRY(ox_op_ints(c, pos, &ids));
    OX_TRY(ox_op_doubles(c, cs, &cos_table));
    OX_TRY(ox_op_doubles(c, sn, &sin_table));
    for (size_t b = 0; b < batch; b++)
        for (size_t r = 0; r < h->rows; r++) {
            int64_t p = ids ? ids[b * h->rows + r] : past_of(g, b) + (int64_t)r;
            const bool padding = past_of(g, b) + (int64_t)r >= length_of(g, b);
            if (padding && (p < 0 || p >= cs->dims[0])) p = 0;
            if (p < 0 || p >= cs->dims[0])
                return OP_FAIL(c, "position %lld is outside of %lld", (long long)p,
                               (long long)cs->dims[0]);
            for (size_t k = 0; k < h->n; k++)
                turn(at(h, b, k, r), 2 * half, interleaved, cos_table + (size_t)p * half,
                     sin_table + (size_t)p * half);
        }
    return OX_OK;
}

/* present [B, N, rows, H]: past rows below each row's past length, then the
 * new ones, zeros above. */
static ox_status grouped_append(ox_op_ctx *c, const grouped *g, const heads *now,
                                const ox_tensor *past, size_t batch, size_t rows, size_t i_out,
                                ox_dtype t, heads *out)
{
    const int64_t dims[4] = {(int64_t)batch, (int64_t)now->n, (int64_t)rows, (int64_t)now->size};
    heads old = {0};
    ox_tensor *y;
    void *p;
    if (past) {
        if (past->rank != 4 || past->dims[0] != dims[0] || past->dims[1] != dims[1] ||
            past->dims[3] != dims[3] || past->dtype != t)
            return OP_FAIL(c, "the past does not fit");
        OX_TRY(heads_of(c, past, 0, &old));
    }
    OX_TRY(ox_op_temp(c, batch * now->n * rows * now->size, sizeof(double), &p));
    *out = bnsh(p, now->n, rows, now->size);
    for (size_t b = 0; b < batch; b++) {
        const size_t n_past = now->rows ? (size_t)past_of(g, b) : (size_t)length_of(g, b);
        for (size_t h = 0; h < now->n; h++)
            for (size_t r = 0; r < rows; r++) {
                const double *from = NULL;
                if (r < n_past && r < old.rows) from = at(&old, b, h, r);
                if (r >= n_past && r - n_past < now->rows) from = at(now, b, h, r - n_past);
                if (from) memcpy(at(out, b, h, r), from, now->size * sizeof(double));
            }
    }
    OX_TRY(ox_op_out(c, i_out, t, 4, dims, &y));
    ox_lane_store(t, y->data, 0, ox_op_size(y), p);
    /* Attention reads what was stored. */
    ox_lane_load(t, y->data, NULL, 0, ox_op_size(y), p);
    return OX_OK;
}

static ox_status grouped_split(ox_op_ctx *c, core *a, heads *k, heads *v)
{
    const ox_tensor *q = ox_op_in(c, 0), *kt = ox_op_in(c, 1), *vt = ox_op_in(c, 2);
    const int64_t nq = ox_node_int(c->node, "num_heads", 0),
                  nkv = ox_node_int(c->node, "kv_num_heads", 0);
    double *p;
    if (q->rank != 3 || nq < 1 || nkv < 1 || nq > INT32_MAX || nkv > nq || nq % nkv || !kt != !vt)
        return OP_FAIL(c, "needs a query [B, S, N*H] and %lld heads", (long long)nq);
    a->batch = (size_t)q->dims[0];
    if (kt) {
        OX_TRY(heads_of(c, q, nq, &a->q));
        if (kt->dims[0] != q->dims[0] || vt->dims[0] != q->dims[0])
            return OP_FAIL(c, "query and key differ in batch");
        OX_TRY(heads_of(c, kt, nkv, k));
        OX_TRY(heads_of(c, vt, nkv, v));
        if (k->n != (size_t)nkv || v->n != k->n || k->rows != v->rows || k->size != a->q.size ||
            (k->rows && k->rows != a->q.rows))
            return OP_FAIL(c, "query, key and value do not fit each other");
        return OX_OK;
    }
    const int64_t all = nq + 2 * nkv;
    if (q->dims[2] % all)
        return OP_FAIL(c, "%lld channels are no %lld heads", (long long)q->dims[2], (long long)all);
    const size_t size = (size_t)(q->dims[2] / all), rows = (size_t)q->dims[1],
                 width = (size_t)q->dims[2];
    OX_TRY(ox_op_doubles(c, q, &p));
    a->q = bsnh(p, (size_t)nq, rows, size, width);
    *k = bsnh(p + (size_t)nq * size, (size_t)nkv, rows, size, width);
    *v = bsnh(p + (size_t)(nq + nkv) * size, (size_t)nkv, rows, size, width);
    return OX_OK;
}

static ox_status grouped_refuse(ox_op_ctx *c)
{
    if (!ox_str_is(ox_node_str(c->node, "k_quant_type", "NONE"), "NONE") ||
        !ox_str_is(ox_node_str(c->node, "v_quant_type", "NONE"), "NONE") || ox_op_in(c, 12) ||
        ox_op_in(c, 13))
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "quantised caches are not supported");
    if (ox_node_int(c->node, "sliding_window_cache", 0))
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "sliding_window_cache is not supported");
    return OX_OK;
}

ox_status ox_op_eval_group_query_attention(ox_op_ctx *c)
{
    const ox_tensor *q = ox_op_in(c, 0), *past = ox_op_in(c, 3), *lens = ox_op_in(c, 5),
                    *bias = ox_op_in(c, 10);
    const ox_tensor *sink = ox_op_in(c, 11), *qn = ox_op_in(c, 14), *kn = ox_op_in(c, 15);
    core a = {.soft = OX_DTYPE_F64};
    heads k, v;
    int64_t *last, total;
    double *w, epsilon = (double)ox_node_float(c->node, "qk_norm_epsilon", 1e-6f);
    ox_tensor *y;
    void *p;
    OX_TRY(grouped_refuse(c));
    OX_TRY(grouped_split(c, &a, &k, &v));
    OX_TRY(ox_op_ints(c, lens, &last));
    OX_TRY(ox_op_int_in(c, 6, 0, &total));
    if (ox_op_size(lens) != a.batch || total < 0 || total > INT32_MAX)
        return OP_FAIL(c, "lengths do not fit");
    const int64_t past_rows = past && past->rank == 4 ? past->dims[2] : 0;
    grouped g = {.last_index = last,
                 .rows = (int64_t)a.q.rows,
                 .window = ox_node_int(c->node, "local_window_size", -1)};
    g.total = total > past_rows ? total : past_rows;
    g.first_prompt = (int64_t)a.q.rows == total && k.rows;
    g.causal = ox_node_int(c->node, "causal", 1) != 0;
    if (!qn != !kn) return OP_FAIL(c, "needs both norm weights or none");
    if (qn) {
        if (ox_op_size(qn) != a.q.size || ox_op_size(kn) != a.q.size)
            return OP_FAIL(c, "norm weights do not fit");
        OX_TRY(ox_op_doubles(c, qn, &w));
        norm_heads(&a.q, a.batch, w, epsilon);
        OX_TRY(ox_op_doubles(c, kn, &w));
        norm_heads(&k, a.batch, w, epsilon);
    }
    if (ox_node_int(c->node, "do_rotary", 0)) {
        OX_TRY(grouped_rotate(c, &g, &a.q, a.batch));
        if (k.rows) OX_TRY(grouped_rotate(c, &g, &k, a.batch));
    }
    const ox_dtype t = past ? past->dtype : q->dtype;
    OX_TRY(grouped_append(c, &g, &k, past, a.batch, (size_t)g.total, 1, t, &a.k));
    OX_TRY(grouped_append(c, &g, &v, ox_op_in(c, 4), a.batch, (size_t)g.total, 2, t, &a.v));
    a.total = (size_t)g.total;
    const double scale = (double)ox_node_float(c->node, "scale", 0);
    a.scale = scale > 0 || scale < 0 ? scale : 1 / sqrt((double)a.q.size);
    a.softcap = (double)ox_node_float(c->node, "softcap", 0);
    if (bias) OX_TRY(mask_of(c, bias, &a));
    if (sink) {
        if (ox_op_size(sink) != a.q.n) return OP_FAIL(c, "head_sink does not fit");
        OX_TRY(ox_op_doubles(c, sink, &w));
        a.sinks = w;
    } else if (ox_node_int(c->node, "smooth_softmax", -1) == 1) {
        OX_TRY(ox_op_temp(c, a.q.n, sizeof(double), &p));
        a.sinks = p;
    }
    a.range = grouped_range;
    a.user = &g;
    const int64_t dims[3] = {(int64_t)a.batch, (int64_t)a.q.rows, (int64_t)(a.q.n * a.v.size)};
    OX_TRY(ox_op_out(c, 0, q->dtype, 3, dims, &y));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    a.y = bsnh(p, a.q.n, a.q.rows, a.v.size, a.q.n * a.v.size);
    OX_TRY(attend(c, &a));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}

/* ---- MultiHeadAttention ---- */

static ox_status multi_heads(ox_op_ctx *c, core *a, heads *k, heads *v)
{
    const ox_tensor *q = ox_op_in(c, 0), *kt = ox_op_in(c, 1), *vt = ox_op_in(c, 2);
    const int64_t n = ox_node_int(c->node, "num_heads", 0);
    double *p;
    if (n < 1 || n > INT32_MAX || (q->rank != 3 && q->rank != 5))
        return OP_FAIL(c, "needs heads and a query of 3 or 5 dimensions");
    a->batch = (size_t)q->dims[0];
    if (q->rank == 5) { /* [B, S, N, 3, H] */
        if (q->dims[2] != n || q->dims[3] != 3 || kt || vt)
            return OP_FAIL(c, "packed queries do not fit");
        OX_TRY(ox_op_doubles(c, q, &p));
        const size_t size = (size_t)q->dims[4], rows = (size_t)q->dims[1],
                     width = (size_t)n * 3 * size;
        a->q = (heads){p, (size_t)n, rows, size, rows * width, 3 * size, width};
        *k = *v = a->q;
        k->p += size;
        v->p += 2 * size;
        return OX_OK;
    }
    OX_TRY(heads_of(c, q, n, &a->q));
    if (!kt) return OP_FAIL(c, "needs keys");
    if (kt->rank == 5) { /* [B, L, N, 2, H] */
        if (kt->dims[2] != n || kt->dims[3] != 2 || vt) return OP_FAIL(c, "packed keys do not fit");
        OX_TRY(ox_op_doubles(c, kt, &p));
        const size_t size = (size_t)kt->dims[4], rows = (size_t)kt->dims[1],
                     width = (size_t)n * 2 * size;
        *k = (heads){p, (size_t)n, rows, size, rows * width, 2 * size, width};
        *v = *k;
        v->p += size;
    } else {
        if (!vt) return OP_FAIL(c, "needs values");
        OX_TRY(heads_of(c, kt, n, k));
        OX_TRY(heads_of(c, vt, n, v));
        if (vt->dims[0] != q->dims[0]) return OP_FAIL(c, "query and value differ in batch");
    }
    if (kt->dims[0] != q->dims[0] || k->n != (size_t)n || v->n != (size_t)n || k->rows != v->rows ||
        k->size != a->q.size)
        return OP_FAIL(c, "query, key and value do not fit each other");
    return OX_OK;
}

static void add_bias(const heads *h, size_t batch, const double *bias)
{
    for (size_t b = 0; b < batch; b++)
        for (size_t k = 0; k < h->n; k++)
            for (size_t r = 0; r < h->rows; r++)
                for (size_t i = 0; i < h->size; i++)
                    at(h, b, k, r)[i] += bias[k * h->size + i];
}

/* key_padding_mask and attention_bias as one additive mask [B, N|1, S|1, T]. */
static ox_status multi_mask(ox_op_ctx *c, core *a)
{
    const ox_tensor *pad = ox_op_in(c, 4), *bias = ox_op_in(c, 5);
    const double filter = (double)ox_node_float(c->node, "mask_filter_value", -10000);
    const size_t t = a->total, s = a->q.rows, n = a->q.n;
    int64_t *m;
    void *p;
    if (bias) OX_TRY(mask_of(c, bias, a));
    if (!pad) return OX_OK;
    OX_TRY(ox_op_ints(c, pad, &m));
    const size_t count = ox_op_size(pad);
    const bool lengths = pad->rank == 1 && (count == a->batch || count == 3 * a->batch + 2);
    const bool keys = pad->rank == 2 && count == a->batch * t,
               rows = pad->rank == 3 && count == a->batch * s * t;
    if (!lengths && !keys && !rows) return OP_FAIL(c, "the padding mask does not fit");
    OX_TRY(ox_op_temp(c, a->batch * n * s * t, sizeof(double), &p));
    double *full = p;
    for (size_t b = 0; b < a->batch; b++)
        for (size_t h = 0; h < n; h++)
            for (size_t i = 0; i < s; i++)
                for (size_t j = 0; j < t; j++) {
                    const bool yes = lengths ? (int64_t)j < m[b]
                                     : keys  ? m[b * t + j] != 0
                                             : m[(b * s + i) * t + j] != 0;
                    const double old =
                        a->mask ? a->mask[b * a->mb + h * a->mh + i * a->ms + j * a->mt] : 0;
                    full[((b * n + h) * s + i) * t + j] = old + (yes ? 0 : filter);
                }
    a->mask = full;
    a->mt = 1;
    a->ms = t;
    a->mh = s * t;
    a->mb = n * s * t;
    return OX_OK;
}

ox_status ox_op_eval_multi_head_attention(ox_op_ctx *c)
{
    const ox_tensor *q = ox_op_in(c, 0), *bias = ox_op_in(c, 3), *pk = ox_op_in(c, 6),
                    *pv = ox_op_in(c, 7);
    core a = {.soft = OX_DTYPE_F64};
    heads k, v, kp, vp;
    ox_tensor *y;
    double *b;
    void *p;
    if (ox_op_in(c, 8) || ox_op_in(c, 9))
        return OP_FAIL_AS(c, OX_UNSUPPORTED, "shared buffers and beams are not supported");
    OX_TRY(multi_heads(c, &a, &k, &v));
    if (bias) {
        const size_t d = a.q.n * a.q.size, dv = v.n * v.size;
        if (ox_op_size(bias) != 2 * d + dv) return OP_FAIL(c, "the bias does not fit");
        OX_TRY(ox_op_doubles(c, bias, &b));
        add_bias(&a.q, a.batch, b);
        add_bias(&k, a.batch, b + d);
        add_bias(&v, a.batch, b + 2 * d);
    }
    if (!pk != !pv) return OP_FAIL(c, "needs past keys and values together");
    if (pk) {
        if (pk->rank != 4 || pv->rank != 4)
            return OP_FAIL(c, "past keys and values need 4 dimensions");
        OX_TRY(heads_of(c, pk, 0, &kp));
        OX_TRY(heads_of(c, pv, 0, &vp));
        if (kp.n != k.n || kp.size != k.size || vp.n != v.n || vp.size != v.size ||
            kp.rows != vp.rows || pk->dims[0] != q->dims[0] || pv->dims[0] != q->dims[0])
            return OP_FAIL(c, "past and present keys or values differ");
    }
    OX_TRY(joined(c, &k, pk ? &kp : NULL, a.batch, q->dtype, 1, &a.k));
    OX_TRY(joined(c, &v, pk ? &vp : NULL, a.batch, q->dtype, 2, &a.v));
    a.total = a.k.rows;
    const double scale = (double)ox_node_float(c->node, "scale", 0);
    a.scale = scale > 0 || scale < 0 ? scale : 1 / sqrt((double)a.q.size);
    OX_TRY(multi_mask(c, &a));
    const standard r = {.causal = ox_node_int(c->node, "unidirectional", 0) != 0,
                        .offset = pk ? (int64_t)kp.rows : 0,
                        .left = -1,
                        .right = -1,
                        .total = (int64_t)a.total,
                        .rows = (int64_t)a.q.rows};
    a.range = standard_range;
    a.user = &r;
    const int64_t dims[3] = {(int64_t)a.batch, (int64_t)a.q.rows, (int64_t)(a.q.n * a.v.size)};
    OX_TRY(ox_op_out(c, 0, q->dtype, 3, dims, &y));
    OX_TRY(ox_op_temp(c, ox_op_size(y), sizeof(double), &p));
    a.y = bsnh(p, a.q.n, a.q.rows, a.v.size, a.q.n * a.v.size);
    OX_TRY(attend(c, &a));
    ox_lane_store(y->dtype, y->data, 0, ox_op_size(y), p);
    return OX_OK;
}
