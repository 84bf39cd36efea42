/* Every row against the reference, over pages whose unused memory is NaN; then bit for bit: all
 * rows in one call, row by row, unit by unit, and on the other tiers. */
#include "kernel/attend/attend.h"

#include "kernel/kv_append/kv_append.h"
#include "tests/ktest/ktest.h"

#include <math.h>
#include <string.h>

enum { SEQS = 2, PAGES = 4, K_OFFSET = 64 };

typedef struct shape {
    int32_t n_heads, n_kv_heads, head_size, v_head_size;
    float softcap;
    int32_t window;
    bool sinks;
} shape;

typedef struct cache {
    ktest_buf page[SEQS][PAGES];
    void *table[SEQS][PAGES];
    void *const *tables[SEQS];
    ox_kv_view view;
} cache;

static void cache_open(cache *c, const shape *s, ox_dtype t, const int32_t *length)
{
    const size_t k_bytes = ox_kv_bytes(s->n_kv_heads, s->head_size, t);
    const size_t bytes = K_OFFSET + k_bytes + ox_kv_bytes(s->n_kv_heads, s->v_head_size, t);
    const size_t ldk = (size_t)(s->n_kv_heads * s->head_size);
    const size_t ldv = (size_t)(s->n_kv_heads * s->v_head_size);
    c->view =
        (ox_kv_view){c->tables,     NULL,         NULL,          t, K_OFFSET, K_OFFSET + k_bytes,
                     s->n_kv_heads, s->head_size, s->v_head_size};
    for (int32_t q = 0; q < SEQS; q++) {
        c->tables[q] = c->table[q];
        for (size_t p = 0; p < PAGES; p++) {
            c->page[q][p] = ktest_bytes(bytes);
            c->table[q][p] = memset(c->page[q][p].p, 0xff, bytes);
        }
        for (int32_t pos = 0; pos < length[q]; pos++) {
            ktest_buf k = ktest_floats(ldk), v = ktest_floats(ldv);
            ktest_fill(k.p, ldk, -1.0f, 1.0f);
            ktest_fill(v.p, ldv, -1.0f, 1.0f);
            ox_kv_append_args a = {k.p, v.p, 1, ldk, ldv, c->view};
            a.view.seq = &q;
            a.view.pos = &pos;
            ox_kv_append_ref(&a, 0, 1);
            ktest_free(&k);
            ktest_free(&v);
        }
    }
}

static void cache_close(cache *c)
{
    for (size_t q = 0; q < SEQS; q++)
        for (size_t p = 0; p < PAGES; p++)
            ktest_free(&c->page[q][p]);
}

static void same_bits(const ox_attend_args *a, const float *got, const float *want,
                      const char *what)
{
    if (memcmp(got, want, a->rows * a->ldo * sizeof(float)))
        ktest_fail("%s: other bits; rows=%zu heads=%d/%d size=%d", what, a->rows, a->n_heads,
                   a->view.n_kv_heads, a->view.head_size);
}

/* The same rows by other ways of splitting, and by the other tiers. */
static void check_splits(const ox_kernel_row *row, ox_attend_args a, const float *want)
{
    const ox_machine m = {.cpu_features = ox_cpu_detected()};
    ktest_buf got = ktest_floats(a.rows * a.ldo);
    const ox_attend_args all = a;
    float *out = a.out = got.p;
    memcpy(out, want, got.n);
    for (size_t u = ox_attend_units(&a); u-- > 0;)
        ((ox_attend_fn *)row->fn)(&a, u, u + 1);
    same_bits(&a, out, want, "unit by unit");
    for (size_t r = 0; r < all.rows; r++) {
        const int32_t seq = all.view.seq[r], pos = all.view.pos[r];
        a = all;
        a.rows = 1;
        a.q += r * all.ldq;
        a.out = out + r * all.ldo;
        a.view.seq = &seq;
        a.view.pos = &pos;
        ((ox_attend_fn *)row->fn)(&a, 0, ox_attend_units(&a));
    }
    same_bits(&all, out, want, "row by row");
    a = all;
    a.out = out;
    for (const ox_kernel_row *other = ox_attend_rows; other->needs; other++) {
        if (!ox_kernel_runs_on(other, &m)) continue;
        ((ox_attend_fn *)other->fn)(&a, 0, ox_attend_units(&a));
        same_bits(&a, out, want, other->name);
    }
    ktest_free(&got);
}

static void check(const ox_kernel_row *row, const shape *s, cache *c, size_t rows,
                  const int32_t *seq, const int32_t *pos)
{
    const size_t ldq = (size_t)(s->n_heads * s->head_size) + 5;
    const size_t ldo = (size_t)(s->n_heads * s->v_head_size) + 3;
    ktest_buf q = ktest_floats(rows * ldq), want = ktest_floats(rows * ldo);
    ktest_buf got = ktest_floats(rows * ldo), sinks = ktest_floats((size_t)s->n_heads);
    ktest_fill(q.p, rows * ldq, -1.0f, 1.0f);
    ktest_fill(sinks.p, (size_t)s->n_heads, -2.0f, 4.0f);
    ktest_fill(want.p, rows * ldo, 0.0f, 1.0f);
    memcpy(got.p, want.p, want.n);
    ox_attend_args a = {q.p,        want.p, rows,       ldq,       ldo,
                        s->n_heads, 0.3f,   s->softcap, s->window, s->sinks ? sinks.p : NULL,
                        c->view};
    a.view.seq = seq;
    a.view.pos = pos;
    ox_attend_ref(&a, 0, ox_attend_units(&a));
    a.out = got.p;
    ((ox_attend_fn *)row->fn)(&a, 0, ox_attend_units(&a));
    ktest_same(row, got.p, want.p, rows * ldo, 200, 2.0f, "rows=%zu heads=%d/%d size=%d/%d type=%d",
               rows, s->n_heads, s->n_kv_heads, s->head_size, s->v_head_size, (int)c->view.dtype);
    if (row->needs) check_splits(row, a, got.p);
    ktest_free(&q);
    ktest_free(&want);
    ktest_free(&got);
    ktest_free(&sinks);
}

static void check_shape(const ox_kernel_row *row, const shape *s, ox_dtype t)
{
    enum { ROWS = 75 };
    const int32_t length[SEQS] = {203, 66};
    int32_t seq[ROWS] = {0}, pos[ROWS];
    cache c;
    cache_open(&c, s, t, length);
    for (int32_t i = 0; i < ROWS; i++) /* a prompt's end, then the other sequence's rows */
        pos[i] = i < 60 ? 202 - 59 + i : i - 60 + 51, seq[i] = i < 60 ? 0 : 1;
    check(row, s, &c, ROWS, seq, pos);
    check(row, s, &c, 17, seq, pos);
    const int32_t few_seq[] = {0, 1, 0, 1}, few_pos[] = {0, 65, 202, -1}; /* a batch of decodes */
    check(row, s, &c, 4, few_seq, few_pos);
    check(row, s, &c, 1, few_seq + 2, few_pos + 2);
    for (int32_t i = 0; i < ROWS; i++)
        pos[i] = i;
    memset(seq, 0, sizeof(seq));
    check(row, s, &c, ROWS, seq, pos);
    cache_close(&c);
}

void ktest_attend(void);
void ktest_attend(void)
{
    static const shape shapes[] = {
        {9, 3, 64, 64, 0.0f, 0, false},   {7, 1, 64, 64, 0.0f, 33, true},
        {2, 2, 128, 128, 50.0f, 0, true}, {16, 2, 96, 96, 0.0f, 64, false},
        {5, 1, 80, 80, 0.0f, 100, false}, {8, 2, 256, 256, 30.0f, 65, true},
        {6, 1, 40, 24, 0.0f, 1, false},   {12, 1, 72, 17, 0.0f, 0, true},
        {40, 1, 16, 33, 0.0f, 7, false},  {2, 1, 8, 8, 0.0f, 0, false},
    };
    static const ox_dtype types[] = {OX_DTYPE_F32, OX_DTYPE_F16, OX_DTYPE_BF16};
    for (const ox_kernel_row *row = ox_attend_rows; row->device; row++) {
        if (!ktest_begin(row)) continue;
        for (size_t i = 0; i < OX_COUNT(shapes); i++)
            for (size_t t = 0; t < OX_COUNT(types); t++)
                if (row->needs || t == i % OX_COUNT(types)) check_shape(row, &shapes[i], types[t]);
        ktest_end(row);
    }
}
