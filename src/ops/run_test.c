/* run_test.c - the interpreter, inference and folding on small graphs built by hand. */
#include "ops/fold.h"
#include "ops/infer.h"
#include "ops/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct fixture {
    ox_arena arena;
    ox_graph *g;
    ox_err err;
} fixture;

static int setup(void **state)
{
    fixture *f = ox_calloc(1, sizeof(*f));
    *state = f;
    return ox_graph_open(&f->g, &f->arena, NULL, &f->err);
}

static int teardown(void **state)
{
    fixture *f = *state;
    ox_graph_close(&f->g);
    ox_arena_deinit(&f->arena);
    ox_free(f);
    return 0;
}

static ox_value_id value(fixture *f, ox_graph *g, const char *name)
{
    ox_value_id v = ox_graph_find(g, ox_str_of(name));
    if (!*name) return OX_NO_VALUE;
    if (v.i < 0) assert_int_equal(ox_graph_add_value(g, ox_str_of(name), &v, &f->err), OX_OK);
    return v;
}

static void input(fixture *f, const char *name, ox_dtype t, int32_t rank, int64_t a, int64_t b)
{
    const ox_value_id v = value(f, f->g, name);
    ox_value *x = ox_graph_value(f->g, v);
    x->kind = OX_VALUE_INPUT;
    x->dtype = t;
    x->rank = rank;
    x->dims[0] = a;
    x->dims[1] = b;
    assert_true(ox_vec_push(&f->g->inputs, v));
}

static void output(fixture *f, ox_graph *g, const char *name)
{
    assert_true(ox_vec_push(&g->outputs, value(f, g, name)));
}

static void constant_i64(fixture *f, const char *name, int32_t rank, int64_t n, const int64_t *data)
{
    const ox_tensor t = {OX_DTYPE_I64, rank, {n}, (void *)data};
    ox_value_id v;
    assert_int_equal(ox_graph_add_constant(f->g, ox_str_of(name), &t, &v, &f->err), OX_OK);
}

/* Names separated by commas; an empty one is absent. */
static uint32_t list(fixture *f, ox_graph *g, const char *names, ox_value_id *ids)
{
    uint32_t n = 0;
    char one[64];
    for (const char *p = names; *names && p; n++) {
        const char *end = strchr(p, ',');
        const size_t len = end ? (size_t)(end - p) : strlen(p);
        memcpy(one, p, len);
        one[len] = 0;
        ids[n] = value(f, g, one);
        p = end ? end + 1 : NULL;
    }
    return n;
}

static ox_node *node(fixture *f, ox_graph *g, const char *op, const char *in, const char *out,
                     ox_attr *attr)
{
    ox_value_id i[8], o[8];
    ox_node_id id;
    ox_node n = {.op_type = ox_str_of(op), .version = 21, .inputs = i, .outputs = o};
    n.n_inputs = list(f, g, in, i);
    n.n_outputs = list(f, g, out, o);
    n.attrs = attr;
    n.n_attrs = attr ? 1 : 0;
    assert_int_equal(ox_graph_add_node(g, &n, &id, &f->err), OX_OK);
    return ox_graph_node(g, id);
}

static float x_data[6] = {1, -2, 3, -4, 5, -6};

static ox_run_input x_input(void)
{
    return (ox_run_input){
        .name = OX_STR("x"), .kind = OX_RT_TENSOR, .t = {OX_DTYPE_F32, 2, {2, 3}, x_data}};
}

static ox_status run(fixture *f, ox_run_results **r, const char *wanted, const ox_run_options *o)
{
    const ox_run_input in = x_input();
    const ox_str name = ox_str_of(wanted);
    return ox_graph_eval(r, f->g, &in, 1, wanted ? &name : NULL, wanted ? 1 : 0, o, &f->err);
}

static void runs_nodes_and_gives_any_value(void **state)
{
    fixture *f = *state;
    ox_run_results *r;
    input(f, "x", OX_DTYPE_F32, 2, 2, 3);
    node(f, f->g, "Abs", "x", "a", NULL);
    node(f, f->g, "Add", "a,x", "b", NULL);
    output(f, f->g, "b");
    assert_int_equal(run(f, &r, NULL, NULL), OX_OK);
    assert_true(((float *)r->values[0]->t.data)[4] == 10 &&
                ((float *)r->values[0]->t.data)[5] == 0);
    ox_run_results_close(&r);
    assert_int_equal(run(f, &r, "a", NULL), OX_OK);
    assert_true(((float *)r->values[0]->t.data)[5] == 6);
    ox_run_results_close(&r);
    assert_int_equal(run(f, &r, "nothing", NULL), OX_BAD_ARGUMENT);
    assert_non_null(strstr(f->err.msg, "nothing"));
}

static void lists_all_operators_that_are_missing(void **state)
{
    fixture *f = *state;
    ox_run_results *r;
    input(f, "x", OX_DTYPE_F32, 2, 2, 3);
    node(f, f->g, "Frobnicate", "x", "a", NULL);
    node(f, f->g, "Frobnicate", "a", "b", NULL);
    node(f, f->g, "Twiddle", "b", "c", NULL);
    output(f, f->g, "c");
    assert_int_equal(run(f, &r, NULL, NULL), OX_UNSUPPORTED);
    assert_non_null(strstr(f->err.msg, "Frobnicate-21 (node \"Frobnicate_0\", 2 in all)"));
    assert_non_null(strstr(f->err.msg, "Twiddle-21"));
}

static void wrong_operands_name_node_and_operator(void **state)
{
    static const struct {
        const char *op, *in, *message;
    } cases[] = {
        {"Add", "x", "input 1 is missing"},
        {"Abs", "x,x", "more than 1"},
        {"And", "x,x", "type float32"},
        {"Add", "x,k", "must agree"},
        {"Reshape", "x,k", "number of elements differs"},
        {"Gather", "x,k", "index 7 is outside of 2"},
        {"MatMul", "x,x", "rows of 3 with columns of 2"},
        {"SequenceLength", "x", "must be a sequence"},
    };
    static const int64_t seven = 7;
    teardown(state); /* every case gets a fixture of its own */
    for (size_t i = 0; i < OX_COUNT(cases); i++) {
        ox_run_results *r;
        assert_int_equal(setup(state), 0);
        fixture *f = *state;
        input(f, "x", OX_DTYPE_F32, 2, 2, 3);
        constant_i64(f, "k", 1, 1, &seven);
        node(f, f->g, cases[i].op, cases[i].in, "y", NULL);
        output(f, f->g, "y");
        assert_int_not_equal(run(f, &r, NULL, NULL), OX_OK);
        if (!strstr(f->err.msg, cases[i].message)) fail_msg("%s: %s", cases[i].op, f->err.msg);
        assert_non_null(strstr(f->err.msg, cases[i].op));
        teardown(state);
    }
    assert_int_equal(setup(state), 0);
}

static void limits_and_cancelling_stop_a_run(void **state)
{
    fixture *f = *state;
    ox_run_results *r;
    static const int64_t big[2] = {1 << 14, 1 << 14};
    const bool yes = true;
    const ox_run_options small = {.memory_limit = 1 << 20}, one = {.node_limit = 1};
    const ox_run_options stop = {.cancel = &yes}, work = {.work_limit = 8};
    input(f, "x", OX_DTYPE_F32, 2, 2, 3);
    constant_i64(f, "shape", 1, 2, big);
    node(f, f->g, "ConstantOfShape", "shape", "c", NULL);
    node(f, f->g, "Transpose", "x", "t", NULL);
    node(f, f->g, "MatMul", "x,t", "m", NULL);
    output(f, f->g, "c");
    assert_int_equal(run(f, &r, NULL, &small), OX_NO_MEMORY);
    f->err = (ox_err)OX_ERR_INIT;
    assert_int_equal(run(f, &r, NULL, &one), OX_LIMIT);
    f->err = (ox_err)OX_ERR_INIT;
    assert_int_equal(run(f, &r, NULL, &stop), OX_CANCELLED);
    f->err = (ox_err)OX_ERR_INIT;
    f->g->outputs.p[0] = value(f, f->g, "m");
    ox_graph_remove_dead(f->g);
    assert_int_equal(run(f, &r, NULL, &work), OX_LIMIT);
}

/* A graph input of a subgraph. */
static void sub_input(fixture *f, ox_graph *g, const char *name, ox_dtype t)
{
    const ox_value_id v = value(f, g, name);
    ox_graph_value(g, v)->kind = OX_VALUE_INPUT;
    ox_graph_value(g, v)->dtype = t;
    assert_true(ox_vec_push(&g->inputs, v));
}

static void a_loop_carries_stacks_and_captures(void **state)
{
    fixture *f = *state;
    ox_run_results *r;
    ox_graph *body;
    ox_attr attr;
    static const int64_t three = 3;
    input(f, "x", OX_DTYPE_F32, 2, 2, 3);
    constant_i64(f, "n", 0, 1, &three);
    node(f, f->g, "Abs", "x", "a", NULL);
    assert_int_equal(ox_graph_open(&body, &f->arena, f->g, &f->err), OX_OK);
    sub_input(f, body, "i", OX_DTYPE_I64);
    sub_input(f, body, "cond", OX_DTYPE_BOOL);
    sub_input(f, body, "carried", OX_DTYPE_F32);
    ox_value *cap = ox_graph_value(body, value(f, body, "a"));
    cap->kind = OX_VALUE_CAPTURE;
    cap->outer = value(f, f->g, "a");
    node(f, body, "Add", "carried,a", "sum", NULL);
    output(f, body, "cond");
    output(f, body, "sum");
    output(f, body, "i");
    attr = (ox_attr){.name = OX_STR("body"), .type = OX_ATTR_GRAPH, .g = body};
    node(f, f->g, "Loop", "n,,x", "last,all", &attr);
    output(f, f->g, "last");
    output(f, f->g, "all");
    assert_int_equal(run(f, &r, NULL, NULL), OX_OK);
    assert_true(((float *)r->values[0]->t.data)[1] == -2 + 3 * 2);
    assert_int_equal(r->values[1]->t.rank, 1);
    assert_int_equal(r->values[1]->t.dims[0], 3);
    assert_int_equal(((int64_t *)r->values[1]->t.data)[2], 2);
    ox_run_results_close(&r);
    assert_int_equal(ox_graph_infer(f->g, &f->err), OX_OK);
    assert_int_equal(ox_graph_value(f->g, value(f, f->g, "all"))->dtype, OX_DTYPE_I64);
    assert_int_equal(ox_graph_value(f->g, value(f, f->g, "all"))->rank, 1);
}

static void shapes_are_followed_with_symbols(void **state)
{
    fixture *f = *state;
    static const int64_t zero = 0, heads[3] = {0, -1, 4}, minus = -1;
    ox_attr axis = {.name = OX_STR("axis"), .type = OX_ATTR_INT, .i = 0};
    const int64_t batch = ox_graph_symbol(f->g, OX_STR("batch"));
    const int64_t past = ox_graph_symbol(f->g, OX_STR("past"));
    input(f, "x", OX_DTYPE_F32, 2, batch, 24);
    input(f, "p", OX_DTYPE_F32, 2, past, 24);
    constant_i64(f, "zero", 1, 1, &zero);
    constant_i64(f, "heads", 1, 3, heads);
    constant_i64(f, "minus", 1, 1, &minus);
    node(f, f->g, "Concat", "p,x", "all", &axis);
    node(f, f->g, "Shape", "x", "s", NULL);
    node(f, f->g, "Gather", "s,zero", "b", NULL);
    node(f, f->g, "Concat", "b,minus,minus", "bad", &axis);
    node(f, f->g, "Concat", "b,minus", "shape", &axis);
    node(f, f->g, "Unsqueeze", "x,zero", "u", NULL);
    node(f, f->g, "Reshape", "x,heads", "h", NULL);
    node(f, f->g, "Reshape", "x,shape", "same", NULL);
    assert_int_equal(ox_graph_infer(f->g, &f->err), OX_OK);
    const ox_value *all = ox_graph_value(f->g, value(f, f->g, "all"));
    assert_int_equal(all->dims[0], ox_graph_symbol(f->g, OX_STR("batch + past")));
    const ox_value *h = ox_graph_value(f->g, value(f, f->g, "h"));
    assert_int_equal(h->rank, 3);
    assert_int_equal(h->dims[0], batch);
    assert_int_equal(h->dims[1], 6);
    const ox_value *same = ox_graph_value(f->g, value(f, f->g, "same"));
    assert_int_equal(same->dims[0], batch);
    assert_int_equal(same->dims[1], 24);
    const ox_value *u = ox_graph_value(f->g, value(f, f->g, "u"));
    assert_int_equal(u->dims[0], 1);
    assert_int_equal(u->dims[1], batch);
}

static void a_type_that_contradicts_the_file_is_refused(void **state)
{
    fixture *f = *state;
    input(f, "x", OX_DTYPE_F32, 2, 2, 3);
    node(f, f->g, "Abs", "x", "y", NULL);
    ox_graph_value(f->g, value(f, f->g, "y"))->dtype = OX_DTYPE_I64;
    assert_int_equal(ox_graph_infer(f->g, &f->err), OX_BAD_FILE);
    assert_non_null(strstr(f->err.msg, "Abs_0"));
}

static void constants_and_known_dimensions_fold(void **state)
{
    fixture *f = *state;
    ox_run_results *r;
    static const int64_t two = 2, big[2] = {1000, 1000};
    input(f, "x", OX_DTYPE_F32, 2, 2, 3);
    constant_i64(f, "two", 1, 1, &two);
    constant_i64(f, "big", 1, 2, big);
    node(f, f->g, "Add", "two,two", "four", NULL);
    node(f, f->g, "Shape", "x", "s", NULL);
    node(f, f->g, "Mul", "s,two", "s2", NULL);
    node(f, f->g, "ConstantOfShape", "big", "c", NULL);
    node(f, f->g, "Tile", "x,s2", "y", NULL);
    node(f, f->g, "Gather", "x,four", "fails_later", NULL);
    output(f, f->g, "y");
    output(f, f->g, "c");
    assert_int_equal(ox_graph_fold(f->g, 1 << 12, &f->err), OX_OK);
    assert_int_equal(ox_graph_sort(f->g, &f->err), OX_OK);
    assert_int_equal(ox_graph_verify(f->g, &f->err), OX_OK);
    assert_int_equal(f->g->nodes.n, 3); /* too large, Tile and Gather stay */
    const ox_value *s2 = ox_graph_value(f->g, value(f, f->g, "s2"));
    assert_int_equal(s2->kind, OX_VALUE_CONSTANT);
    assert_int_equal(((const int64_t *)s2->constant->data)[1], 6);
    ox_graph_remove_dead(f->g);
    assert_int_equal(run(f, &r, NULL, NULL), OX_OK);
    assert_int_equal(r->values[0]->t.dims[1], 18);
    ox_run_results_close(&r);
}

static void the_catalogue_resolves_versions(void **state)
{
    (void)state;
    assert_null(ox_op_find(OX_STR(""), OX_STR("Trilu"), 13));
    assert_non_null(ox_op_find(OX_STR("ai.onnx"), OX_STR("Trilu"), 21));
    assert_null(ox_op_find(OX_STR("com.microsoft"), OX_STR("Trilu"), 1));
    for (size_t i = 0; i < ox_op_count(); i++) {
        const ox_op *o = ox_op_at(i);
        assert_ptr_equal(ox_op_find(ox_str_of(o->domain), ox_str_of(o->name), o->since), o);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(runs_nodes_and_gives_any_value),
        T(lists_all_operators_that_are_missing),
        T(wrong_operands_name_node_and_operator),
        T(limits_and_cancelling_stop_a_run),
        T(a_loop_carries_stacks_and_captures),
        T(shapes_are_followed_with_symbols),
        T(a_type_that_contradicts_the_file_is_refused),
        T(constants_and_known_dimensions_fold),
        T(the_catalogue_resolves_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
