/* The planner on a small decoder: which terms become one call, that buffers alive at the same time
 * never overlap, and that switching a fusion off splits its calls. */
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { HIDDEN = 64, VOCAB = 96, HEADS = 4, SIZE = 16, FFN = 128 };

/* A backend that accepts everything and computes nothing. */
static ox_status bind(ox_backend *b, ox_call *c, const ox_buffer *buffers, ox_err *err)
{
    (void)b, (void)buffers, (void)err;
    c->rows[0] = c->rows[1] = c->rows[2] = "none";
    return OX_OK;
}

static void unbind(ox_backend *b, ox_call *c)
{
    (void)b, (void)c;
}

static size_t buffer_bytes(const ox_backend *b, const ox_buffer *buffer, size_t rows)
{
    (void)b;
    return rows * (size_t)buffer->width * sizeof(float);
}

static const ox_backend_ops ops = {
    .name = "none", .bind = bind, .unbind = unbind, .buffer_bytes = buffer_bytes};
static ox_backend backend = {&ops};

typedef struct decoder {
    ox_arena arena;
    ox_graph *g;
    ox_weight weights[16];
    float bytes[VOCAB * FFN];
    float table[64 * SIZE];
    ox_rotary rotary;
} decoder;

static const ox_weight *weight(decoder *d, int i, int64_t rows, int64_t cols)
{
    d->weights[i] = (ox_weight){.name = OX_STR("w"),
                                .format = OX_FORMAT_Q8_0,
                                .rows = rows,
                                .cols = cols,
                                .data = d->bytes,
                                .bytes = sizeof(d->bytes)};
    if (rows == 1) d->weights[i].format = OX_FORMAT_F32;
    return &d->weights[i];
}

static ox_value_id add(decoder *d, ox_term t, ox_value_id a, ox_value_id b, ox_value_id c)
{
    const ox_value_id in[3] = {a, b, c};
    ox_value_id out;
    ox_err err = OX_ERR_INIT;
    const size_t n = !ox_value_is(b) ? 1 : !ox_value_is(c) ? 2 : 3;
    if (t.kind == OX_TERM_LINEAR) t.accuracy_level = 4;
    if (ox_graph_add_term(d->g, &t, OX_STR(""), in, n, &out, &err)) fail_msg("%s", err.msg);
    return out;
}

#define ADD1(d, a, ...) add(d, (ox_term){__VA_ARGS__}, a, OX_NO_VALUE, OX_NO_VALUE)
#define ADD2(d, a, b, ...) add(d, (ox_term){__VA_ARGS__}, a, b, OX_NO_VALUE)

static void build(decoder *d)
{
    ox_value_id ids;
    ox_cache_id cache;
    const ox_cache c = {.n_kv_heads = HEADS, .head_size = SIZE, .v_head_size = SIZE};
    memset(d, 0, sizeof(*d));
    d->rotary = (ox_rotary){
        .rotary = SIZE, .n_positions = 64, .cos_table = d->table, .sin_table = d->table};
    assert_int_equal(ox_graph_open(&d->g, &d->arena, NULL, NULL), OX_OK);
    assert_int_equal(ox_graph_add_value(d->g, OX_STR("ids"), &ids, NULL), OX_OK);
    ox_graph_value(d->g, ids)->kind = OX_VALUE_INPUT;
    assert_true(ox_vec_push(&d->g->inputs, ids));
    assert_int_equal(ox_graph_add_cache(d->g, &c, &cache, NULL), OX_OK);
    const ox_weight *g = weight(d, 0, 1, HIDDEN);
    const ox_value_id x =
        ADD1(d, ids, .kind = OX_TERM_EMBED, .weight = weight(d, 1, VOCAB, HIDDEN), .scale = 1);
    const ox_value_id n = ADD1(d, x, .kind = OX_TERM_NORM, .weight = g, .epsilon = 1e-5f);
    const ox_value_id q =
        ADD1(d, n, .kind = OX_TERM_LINEAR, .weight = weight(d, 2, HIDDEN, HIDDEN));
    const ox_value_id k =
        ADD1(d, n, .kind = OX_TERM_LINEAR, .weight = weight(d, 3, HIDDEN, HIDDEN));
    const ox_value_id v =
        ADD1(d, n, .kind = OX_TERM_LINEAR, .weight = weight(d, 4, HIDDEN, HIDDEN));
    const ox_value_id qr = ADD1(d, q, .kind = OX_TERM_ROTATE, .n_heads = HEADS, .head_size = SIZE,
                                .rotary = &d->rotary);
    const ox_value_id kr = ADD1(d, k, .kind = OX_TERM_ROTATE, .n_heads = HEADS, .head_size = SIZE,
                                .rotary = &d->rotary);
    const ox_value_id a = add(d,
                              (ox_term){.kind = OX_TERM_ATTEND,
                                        .n_heads = HEADS,
                                        .n_kv_heads = HEADS,
                                        .head_size = SIZE,
                                        .v_head_size = SIZE,
                                        .scale = 0.25f,
                                        .cache = cache},
                              qr, kr, v);
    const ox_value_id o =
        ADD1(d, a, .kind = OX_TERM_LINEAR, .weight = weight(d, 5, HIDDEN, HIDDEN));
    const ox_value_id y = ADD2(d, x, o, .kind = OX_TERM_ADD);
    const ox_value_id m = ADD1(d, y, .kind = OX_TERM_NORM, .weight = g, .epsilon = 1e-5f);
    const ox_value_id gate =
        ADD1(d, m, .kind = OX_TERM_LINEAR, .weight = weight(d, 6, FFN, HIDDEN));
    const ox_value_id up = ADD1(d, m, .kind = OX_TERM_LINEAR, .weight = weight(d, 7, FFN, HIDDEN));
    const ox_value_id h = ADD2(d, gate, up, .kind = OX_TERM_GLU, .act = OX_ACT_SILU);
    const ox_value_id w = ADD1(d, h, .kind = OX_TERM_LINEAR, .weight = weight(d, 8, HIDDEN, FFN));
    const ox_value_id z = ADD2(d, y, w, .kind = OX_TERM_ADD);
    const ox_value_id f = ADD1(d, z, .kind = OX_TERM_NORM, .weight = g, .epsilon = 1e-5f);
    const ox_value_id l = ADD1(d, f, .kind = OX_TERM_HEAD, .weight = weight(d, 9, VOCAB, HIDDEN),
                               .scale = 1, .accuracy_level = 4);
    assert_true(ox_vec_push(&d->g->outputs, l));
}

static void release(decoder *d)
{
    ox_graph_close(&d->g);
    ox_arena_deinit(&d->arena);
}

static ox_plan *plan_of(decoder *d, const char *switches)
{
    ox_plan *p;
    ox_err err = OX_ERR_INIT;
    const ox_plan_options o = {.switches = switches};
    if (ox_plan_open(&p, d->g, &backend, &o, &err)) fail_msg("%s", err.msg);
    return p;
}

static size_t count(const ox_plan *p, ox_call_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < p->calls.n; i++)
        n += p->calls.p[i].kind == kind;
    return n;
}

static void fusions_make_few_calls(void **state)
{
    (void)state;
    static decoder d;
    build(&d);
    ox_plan *p = plan_of(&d, NULL);
    assert_int_equal(count(p, OX_CALL_LINEAR_INT), 5); /* qkv, o+add, gate*up, down+add, head */
    assert_int_equal(count(p, OX_CALL_ADD), 0);
    assert_int_equal(count(p, OX_CALL_GLU), 0);
    assert_int_equal(count(p, OX_CALL_SCALE), 0);
    assert_int_equal(count(p, OX_CALL_QUANTIZE), 5); /* one per input */
    assert_int_equal(p->vocab, VOCAB);
    ox_plan_close(&p);
    release(&d);
}

static void a_switched_off_fusion_splits(void **state)
{
    (void)state;
    static decoder d;
    build(&d);
    ox_plan *p = plan_of(&d, "-linear*2+glu,-linear+add,-linear*n,-rotate in place,-head");
    assert_int_equal(count(p, OX_CALL_LINEAR_INT), 8);
    assert_int_equal(count(p, OX_CALL_ADD), 2);
    assert_int_equal(count(p, OX_CALL_GLU), 1);
    assert_int_equal(count(p, OX_CALL_QUANTIZE), 5); /* still one per input */
    ox_plan_close(&p);
    release(&d);
}

/* Meetings of the team up to call i. */
static int interval(const ox_plan *p, int k, int32_t i)
{
    int n = 0;
    for (int32_t j = 1; j <= i; j++)
        n += k == OX_CLASS_ONE ? p->calls.p[j].barrier_one : p->calls.p[j].barrier;
    return n;
}

static bool reads(const ox_call *c, int32_t buffer)
{
    for (int i = 0; i < OX_CALL_INPUTS; i++)
        if (c->in[i].buffer.i == buffer) return true;
    return c->add.buffer.i == buffer;
}

/* Steps of one row: between a call of the whole team and a reader of its output the team meets;
 * what workers repeat is written by repeated calls alone. */
static void one_row_meets_where_it_must(void **state)
{
    (void)state;
    static decoder d;
    build(&d);
    ox_plan *p = plan_of(&d, NULL);
    int several = 0, one = 0;
    for (size_t i = 0; i < p->calls.n; i++) {
        const ox_call *w = &p->calls.p[i];
        several += w->barrier;
        one += w->barrier_one;
        const int32_t out = w->out.buffer.i;
        if (out < 0) continue;
        assert_int_equal(w->repeat, p->buffers.p[out].repeated);
        for (size_t j = i + 1; j < p->calls.n && !w->repeat; j++)
            if (w->kind != OX_CALL_ROTATE && reads(&p->calls.p[j], out))
                assert_true(interval(p, OX_CLASS_ONE, (int32_t)j) >
                            interval(p, OX_CLASS_ONE, (int32_t)i));
    }
    assert_false(p->buffers.p[p->logits.buffer.i].repeated);
    assert_true(one < several);
    ox_plan_close(&p);
    release(&d);
}

static void live_buffers_do_not_overlap(void **state)
{
    (void)state;
    static decoder d;
    build(&d);
    ox_plan *p = plan_of(&d, NULL);
    for (int k = 0; k < OX_CLASS_COUNT; k++)
        for (size_t i = 0; i < p->buffers.n; i++)
            for (size_t j = 0; j < i; j++) {
                const ox_buffer *a = &p->buffers.p[i], *b = &p->buffers.p[j];
                if (interval(p, k, a->first_call) > interval(p, k, b->last_call) ||
                    interval(p, k, b->first_call) > interval(p, k, a->last_call))
                    continue;
                const size_t rows = (size_t)p->max_rows[k],
                             wanted = rows > OX_WANTED_ROWS ? OX_WANTED_ROWS : rows;
                const size_t na = buffer_bytes(&backend, a, a->wanted ? wanted : rows);
                const size_t nb = buffer_bytes(&backend, b, b->wanted ? wanted : rows);
                const size_t oa = p->offsets[k][i], ob = p->offsets[k][j];
                assert_true(oa + na <= ob || ob + nb <= oa);
            }
    assert_true(p->arena_bytes[OX_CLASS_ONE] < p->arena_bytes[OX_CLASS_MANY]);
    ox_plan_close(&p);
    release(&d);
}

static void attention_waits_for_the_cache(void **state)
{
    (void)state;
    static decoder d;
    build(&d);
    ox_plan *p = plan_of(&d, NULL);
    for (size_t i = 1; i < p->calls.n; i++)
        if (p->calls.p[i].kind == OX_CALL_ATTEND) {
            assert_int_equal(p->calls.p[i - 1].kind, OX_CALL_APPEND);
            assert_true(p->calls.p[i].barrier);
            assert_true(p->calls.p[i].barrier_one);
        }
    ox_plan_close(&p);
    release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fusions_make_few_calls),
        cmocka_unit_test(a_switched_off_fusion_splits),
        cmocka_unit_test(one_row_meets_where_it_must),
        cmocka_unit_test(live_buffers_do_not_overlap),
        cmocka_unit_test(attention_waits_for_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
