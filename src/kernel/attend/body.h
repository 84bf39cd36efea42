/* body.h - attention in the vector vocabulary. An ISA file includes its simd header, defines
 * ATTEND_NAME, ATTEND_LANES (rows of a register tile) and ATTEND_VECTORS(n) (vectors of a tile of n
 * rows), then includes this.
 *
 * A "lane" is one (row, query head). The lanes of one kv head that see the same sequence walk its
 * pages together in tiles: a register holds 16 keys (scores) or 16 channels (values) and serves all
 * lanes of the tile. `out` is the accumulator. Per lane and page, in this order:
 *
 *   score of key j      one chain of fma over the channels, ascending; times scale; soft cap
 *   maximum             grown: accumulator and sum shrink by e^(old - new)
 *   weights             e^(score - maximum), summed in 16 virtual lanes (key modulo 16)
 *   out                 one chain of fma over the keys of the page, ascending
 *
 * Nothing in it refers to other lanes, so tiling never changes a bit. Memory of keys beyond a
 * lane's own is read (inside the page) but never reaches its result. */
#include "base/compiler.h"
#include "kernel/attend/attend.h"
#include "simd/math.h"

#include <math.h>

enum {
    PAGE = OX_KV_PAGE,
    BLOCKS = OX_KV_PAGE / VF_N,
    LANES = ATTEND_LANES,
    LANES_MAX = 256, /* lanes that walk together */
    WIDE_MAX = 256,  /* head sizes up to here are widened once per page on prompts */
};

/* WIDE: float32 made by widen(), near already; the others fetch the next page while they work. */
typedef enum kind { KIND_F32, KIND_F16, KIND_BF16, KIND_WIDE, KINDS } kind;

typedef struct lane {
    const float *q;
    float *out;
    int32_t first, end; /* keys [first, end) */
    float max;
    float sum[VF_N]; /* partial sums of the weights */
} lane;

typedef struct walk {
    const ox_attend_args *a;
    size_t nk, nv;               /* head_size, v_head_size */
    kind type;                   /* of the page the tiles read */
    const char *k, *v;           /* this head's part of the page */
    const char *next_k, *next_v; /* and of the page after it */
} walk;

OX_INLINE vf load_narrow(kind t, const char *p, size_t i)
{
    if (t == KIND_F16) return vf_load_f16((const uint16_t *)(const void *)p + i);
    if (t == KIND_BF16) return vf_load_bf16((const uint16_t *)(const void *)p + i);
    return vf_load((const float *)(const void *)p + i);
}

OX_INLINE vf load_narrow_n(kind t, const char *p, size_t i, size_t n)
{
    if (t == KIND_F16) return vf_load_f16_n((const uint16_t *)(const void *)p + i, n);
    if (t == KIND_BF16) return vf_load_bf16_n((const uint16_t *)(const void *)p + i, n);
    return vf_load_n((const float *)(const void *)p + i, n);
}

OX_INLINE void fetch(kind t, const char *next, size_t i)
{
    if (t != KIND_WIDE) __builtin_prefetch(next + i * (t == KIND_F32 ? 4 : 2), 0, 3);
}

/* Dots of n lanes with the keys of blocks [b, b + nb) of the page; n, nb and t are constants. */
OX_INLINE void dots(int n, size_t nb, kind t, const walk *w, const lane *l, size_t b,
                    float (*s)[PAGE])
{
    const size_t nk = w->nk;
    vf acc[LANES][BLOCKS];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < nb; j++)
            acc[i][j] = vf_zero();
    for (size_t d = 0; d < nk; d++) {
        vf k[BLOCKS];
#pragma GCC unroll 4
        for (size_t j = 0; j < nb; j++) {
            k[j] = load_narrow(t, w->k, ((b + j) * nk + d) * VF_N);
            fetch(t, w->next_k, ((b + j) * nk + d) * VF_N);
        }
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            const vf q = vf_set1(l[i].q[d]);
#pragma GCC unroll 4
            for (size_t j = 0; j < nb; j++)
                acc[i][j] = vf_fma(q, k[j], acc[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < nb; j++)
            vf_store(s[i] + (b + j) * VF_N, acc[i][j]);
}

/* out[i][c..] += sum over keys [lo, hi) of weight * value, for nv vectors of channels. */
OX_INLINE void blend(int n, size_t nv, kind t, const walk *w, const lane *l, size_t c, size_t lo,
                     size_t hi, float (*s)[PAGE])
{
    vf acc[LANES][BLOCKS];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < nv; j++)
            acc[i][j] = vf_load(l[i].out + c + j * VF_N);
    for (size_t p = lo; p < hi; p++) {
        vf v[BLOCKS];
#pragma GCC unroll 4
        for (size_t j = 0; j < nv; j++) {
            v[j] = load_narrow(t, w->v, p * w->nv + c + j * VF_N);
            fetch(t, w->next_v, p * w->nv + c + j * VF_N);
        }
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            const vf e = vf_set1(s[i][p]);
#pragma GCC unroll 4
            for (size_t j = 0; j < nv; j++)
                acc[i][j] = vf_fma(e, v[j], acc[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < nv; j++)
            vf_store(l[i].out + c + j * VF_N, acc[i][j]);
}

/* The last, incomplete vector of channels. */
OX_INLINE void blend_rest(int n, kind t, const walk *w, const lane *l, size_t c, size_t lo,
                          size_t hi, float (*s)[PAGE])
{
    const size_t rest = w->nv - c;
    for (int i = 0; i < n; i++) {
        vf acc = vf_load_n(l[i].out + c, rest);
        for (size_t p = lo; p < hi; p++)
            acc = vf_fma(vf_set1(s[i][p]), load_narrow_n(t, w->v, p * w->nv + c, rest), acc);
        vf_store_n(l[i].out + c, acc, rest);
    }
}

typedef void dots_fn(const walk *w, const lane *l, size_t b0, size_t b1, float (*s)[PAGE]);
typedef void blend_fn(const walk *w, const lane *l, size_t lo, size_t hi, float (*s)[PAGE]);

#define TILE(n, t)                                                                                 \
    static void dots_##n##_##t(const walk *w, const lane *l, size_t b0, size_t b1,                 \
                               float(*s)[PAGE])                                                    \
    {                                                                                              \
        enum { NB = ATTEND_VECTORS(n) };                                                           \
        for (size_t b = b0 / NB * NB; b < b1; b += NB)                                             \
            dots(n, NB, t, w, l, b, s);                                                            \
    }                                                                                              \
    static void blend_##n##_##t(const walk *w, const lane *l, size_t lo, size_t hi,                \
                                float(*s)[PAGE])                                                   \
    {                                                                                              \
        enum { NV = ATTEND_VECTORS(n) };                                                           \
        size_t c = 0;                                                                              \
        for (; c + NV * VF_N <= w->nv; c += NV * VF_N)                                             \
            blend(n, NV, t, w, l, c, lo, hi, s);                                                   \
        for (; c + VF_N <= w->nv; c += VF_N)                                                       \
            blend(n, 1, t, w, l, c, lo, hi, s);                                                    \
        if (c < w->nv) blend_rest(n, t, w, l, c, lo, hi, s);                                       \
    }
#define TILES(t)                                                                                   \
    TILE(1, t) TILE(2, t) TILE(3, t) TILE(4, t) TILE(5, t) TILE(6, t) ATTEND_MORE(TILE, t)
#define DOTS(n, t) dots_##n##_##t,
#define BLEND(n, t) blend_##n##_##t,
#define LIST(X, t) X(1, t) X(2, t) X(3, t) X(4, t) X(5, t) X(6, t) ATTEND_MORE(X, t)
TILES(KIND_F32)
TILES(KIND_F16)
TILES(KIND_BF16)
TILES(KIND_WIDE)
static dots_fn *const dots_of[KINDS][LANES] = {{LIST(DOTS, KIND_F32)},
                                               {LIST(DOTS, KIND_F16)},
                                               {LIST(DOTS, KIND_BF16)},
                                               {LIST(DOTS, KIND_WIDE)}};
static blend_fn *const blend_of[KINDS][LANES] = {{LIST(BLEND, KIND_F32)},
                                                 {LIST(BLEND, KIND_F16)},
                                                 {LIST(BLEND, KIND_BF16)},
                                                 {LIST(BLEND, KIND_WIDE)}};

static void shrink(float *out, size_t n, vf by)
{
    for (size_t c = 0; c < n; c += VF_N) {
        const size_t m = n - c < VF_N ? n - c : VF_N;
        vf_store_n(out + c, vf_mul(vf_load_n(out + c, m), by), m);
    }
}

/* Scores of keys [lo, hi) of the page become weights; the lane's maximum and sum follow. */
static void weigh(const walk *w, lane *l, float *s, int lo, int hi)
{
    const vf none = vf_set1(-INFINITY), scale = vf_set1(w->a->scale);
    const vf cap = vf_set1(w->a->softcap);
    const int b0 = lo / VF_N, b1 = (hi + VF_N - 1) / VF_N;
    vf top = none, sum = vf_load(l->sum);
    for (int b = b0; b < b1; b++) {
        vf x = vf_mul(vf_load(s + b * VF_N), scale);
        if (w->a->softcap > 0.0f) x = vf_mul(vf_tanh(vf_div(x, cap)), cap);
        if (b * VF_N < lo || (b + 1) * VF_N > hi)
            x = vf_range(x, none, lo - b * VF_N, hi - b * VF_N);
        top = vf_max(x, top); /* this order ignores NaN; it comes back below */
        vf_store(s + b * VF_N, x);
    }
    const float max = vf_max_lane(top);
    if (max > l->max) {
        if (l->max > -INFINITY) {
            const vf by = vf_exp(vf_set1(l->max - max));
            shrink(l->out, w->nv, by);
            sum = vf_mul(sum, by);
        }
        l->max = max;
    }
    const vf from = vf_set1(l->max > -INFINITY ? l->max : 0.0f);
    for (int b = b0; b < b1; b++) {
        const vf e = vf_exp(vf_sub(vf_load(s + b * VF_N), from));
        sum = vf_add(sum, e);
        vf_store(s + b * VF_N, e);
    }
    vf_store(l->sum, sum);
}

static int clamp(int32_t x)
{
    return x < 0 ? 0 : x > PAGE ? PAGE : (int)x;
}

/* Keys that all lanes of a tile see are blended together, those before and after lane by lane. */
static void blend_tile(const walk *w, const lane *l, size_t n, const int *lo, const int *hi,
                       float (*s)[PAGE])
{
    int from = 0, to = PAGE;
    for (size_t i = 0; i < n; i++) {
        from = lo[i] > from ? lo[i] : from;
        to = hi[i] < to ? hi[i] : to;
    }
    if (from >= to) from = to = 0;
    blend_fn *const one = blend_of[w->type][0];
    for (size_t i = 0; i < n; i++)
        if (lo[i] < from) one(w, l + i, (size_t)lo[i], (size_t)from, s + i);
    if (from < to) blend_of[w->type][n - 1](w, l, (size_t)from, (size_t)to, s);
    for (size_t i = 0; i < n; i++) {
        const int begin = from < to && lo[i] < to ? to : lo[i];
        if (begin < hi[i]) one(w, l + i, (size_t)begin, (size_t)hi[i], s + i);
    }
}

static void attend_tile(const walk *w, lane *l, size_t n, int32_t start)
{
    float OX_ALIGNED(64) s[LANES][PAGE];
    int lo[LANES], hi[LANES], from = PAGE, to = 0;
    for (size_t i = 0; i < n; i++) {
        lo[i] = clamp(l[i].first - start);
        hi[i] = clamp(l[i].end - start);
        if (lo[i] >= hi[i]) {
            lo[i] = hi[i] = 0;
            continue;
        }
        from = lo[i] < from ? lo[i] : from;
        to = hi[i] > to ? hi[i] : to;
    }
    if (from >= to) return;
    dots_of[w->type][n - 1](w, l, (size_t)from / VF_N, ((size_t)to + VF_N - 1) / VF_N, s);
    for (size_t i = 0; i < n; i++)
        if (lo[i] < hi[i]) weigh(w, l + i, s[i], lo[i], hi[i]);
    blend_tile(w, l, n, lo, hi, s);
}

static void widen(kind t, float *to, const char *from, size_t n)
{
    if (t == KIND_F16)
        for (size_t i = 0; i < n; i += VF_N)
            vf_store(to + i, load_narrow(KIND_F16, from, i));
    else
        for (size_t i = 0; i < n; i += VF_N)
            vf_store(to + i, load_narrow(KIND_BF16, from, i));
}

/* Walks n lanes of one sequence and kv head through the pages that any of them sees. */
static void walk_pages(const ox_attend_args *a, int32_t seq, size_t kv_head, lane *l, size_t n)
{
    const ox_kv_view *v = &a->view;
    const size_t element = ox_kv_element(v->dtype), tiles = (n + LANES - 1) / LANES;
    const kind type = v->dtype == OX_DTYPE_F16    ? KIND_F16
                      : v->dtype == OX_DTYPE_BF16 ? KIND_BF16
                                                  : KIND_F32;
    walk w = {a, (size_t)v->head_size, (size_t)v->v_head_size, type, NULL, NULL, NULL, NULL};
    float OX_ALIGNED(64) k_wide[PAGE * WIDE_MAX], v_wide[PAGE * WIDE_MAX];
    const bool wide = type != KIND_F32 && tiles > 2 && w.nk <= WIDE_MAX && w.nv <= WIDE_MAX;
    int32_t first = INT32_MAX, end = 0;
    for (size_t i = 0; i < n; i++) {
        first = l[i].first < first ? l[i].first : first;
        end = l[i].end > end ? l[i].end : end;
    }
    for (int32_t p = first / PAGE; p * PAGE < end; p++) {
        const char *page = v->tables[seq][p];
        const char *next = (p + 1) * PAGE < end ? v->tables[seq][p + 1] : page;
        const size_t k_at = v->k_offset + kv_head * PAGE * w.nk * element;
        const size_t v_at = v->v_offset + kv_head * PAGE * w.nv * element;
        w.k = page + k_at;
        w.v = page + v_at;
        w.next_k = next + k_at;
        w.next_v = next + v_at;
        if (wide) {
            widen(type, k_wide, w.k, PAGE * w.nk);
            widen(type, v_wide, w.v, PAGE * w.nv);
            w.type = KIND_WIDE;
            w.k = (const char *)k_wide;
            w.v = (const char *)v_wide;
        }
        for (size_t t = 0; t < tiles; t++) {
            const size_t i = t * n / tiles;
            attend_tile(&w, l + i, (t + 1) * n / tiles - i, p * PAGE);
        }
    }
}

static lane lane_of(const ox_attend_args *a, size_t r, size_t head)
{
    const ox_kv_view *v = &a->view;
    const int32_t pos = v->pos[r], window = a->window;
    lane l = {.q = a->q + r * a->ldq + head * (size_t)v->head_size,
              .out = a->out + r * a->ldo + head * (size_t)v->v_head_size,
              .first = window > 0 && pos >= window ? pos - window + 1 : 0,
              .end = pos < 0 ? 0 : pos + 1,
              .max = a->sinks ? a->sinks[head] : -INFINITY,
              .sum = {a->sinks ? 1.0f : 0.0f}};
    for (int32_t c = 0; c < v->v_head_size; c++)
        l.out[c] = 0.0f;
    return l;
}

static void finish(const lane *l, size_t n_lanes, size_t n)
{
    for (size_t i = 0; i < n_lanes; i++) {
        const vf sum = vf_set1(vf_sum(vf_load(l[i].sum)));
        if (l[i].end == 0) continue; /* no keys: zeros */
        for (size_t c = 0; c < n; c += VF_N) {
            const size_t m = n - c < VF_N ? n - c : VF_N;
            vf_store_n(l[i].out + c, vf_div(vf_load_n(l[i].out + c, m), sum), m);
        }
    }
}

/* Rows [begin, end) of one sequence, in runs of at most LANES_MAX lanes. */
static void attend_rows(const ox_attend_args *a, size_t begin, size_t end, size_t kv_head)
{
    const size_t group = (size_t)(a->n_heads / a->view.n_kv_heads);
    const int32_t seq = a->view.seq ? a->view.seq[begin] : 0;
    lane l[LANES_MAX];
    size_t n = 0;
    for (size_t i = begin * group; i < end * group; i++) {
        l[n++] = lane_of(a, i / group, kv_head * group + i % group);
        if (n < LANES_MAX && i + 1 < end * group) continue;
        walk_pages(a, seq, kv_head, l, n);
        finish(l, n, (size_t)a->view.v_head_size);
        n = 0;
    }
}

void ATTEND_NAME(const ox_attend_args *a, size_t begin, size_t end)
{
    const int32_t *seq = a->view.seq;
    for (size_t u = begin; u < end; u++) {
        size_t r, last;
        const size_t kv_head = (size_t)ox_attend_unit(a, u, &r, &last);
        while (r < last) {
            size_t next = r + 1;
            while (next < last && (!seq || seq[next] == seq[r]))
                next++;
            attend_rows(a, r, next, kv_head);
            r = next;
        }
    }
}
