/* graph_test.c - building, editing, sorting, checking and printing small graphs. */
#include "graph/graph.h"
#include "graph/terms.h"

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

static ox_value_id value(fixture *f, const char *name)
{
    ox_value_id v;
    assert_int_equal(ox_graph_add_value(f->g, ox_str_of(name), &v, &f->err), OX_OK);
    return v;
}

static ox_value_id input(fixture *f, const char *name)
{
    const ox_value_id v = value(f, name);
    ox_graph_value(f->g, v)->kind = OX_VALUE_INPUT;
    assert_true(ox_vec_push(&f->g->inputs, v));
    return v;
}

static ox_node_id node(fixture *f, const char *op, ox_value_id a, ox_value_id b, ox_value_id out)
{
    ox_value_id in[2] = {a, b};
    ox_node_id id;
    ox_node n = {.op_type = ox_str_of(op),
                 .n_inputs = b.i >= 0 ? 2u : 1u,
                 .inputs = in,
                 .n_outputs = 1,
                 .outputs = &out};
    assert_int_equal(ox_graph_add_node(f->g, &n, &id, &f->err), OX_OK);
    return id;
}

static void values_are_found_by_name_and_defined_once(void **state)
{
    fixture *f = *state;
    const ox_value_id a = value(f, "a");
    ox_value_id again, made;
    assert_int_equal(ox_graph_find(f->g, OX_STR("a")).i, a.i);
    assert_int_equal(ox_graph_find(f->g, OX_STR("b")).i, -1);
    assert_int_equal(ox_graph_add_value(f->g, OX_STR("a"), &again, &f->err), OX_BAD_FILE);
    assert_non_null(strstr(f->err.msg, "\"a\""));
    assert_int_equal(ox_graph_add_value(f->g, (ox_str){0}, &made, &f->err), OX_OK);
    assert_true(ox_graph_value(f->g, made)->name.n > 0);
}

static void symbols_are_shared_with_subgraphs(void **state)
{
    fixture *f = *state;
    ox_graph *sub;
    assert_int_equal(ox_graph_open(&sub, &f->arena, f->g, &f->err), OX_OK);
    const int64_t a = ox_graph_symbol(f->g, OX_STR("batch")),
                  b = ox_graph_symbol(sub, OX_STR("seq"));
    assert_int_equal(a, -2);
    assert_int_equal(b, -3);
    assert_int_equal(ox_graph_symbol(sub, OX_STR("batch")), a);
    assert_int_not_equal(ox_graph_symbol(sub, (ox_str){0}), ox_graph_symbol(sub, (ox_str){0}));
    ox_graph_close(&sub);
}

static void sort_is_stable_and_finds_cycles(void **state)
{
    fixture *f = *state;
    const ox_value_id x = input(f, "x"), a = value(f, "a"), b = value(f, "b"), c = value(f, "c");
    node(f, "C", b, a, c);
    node(f, "B", a, OX_NO_VALUE, b);
    node(f, "A", x, OX_NO_VALUE, a);
    assert_true(ox_vec_push(&f->g->outputs, c));
    assert_int_equal(ox_graph_verify(f->g, NULL), OX_FAILED);
    assert_int_equal(ox_graph_sort(f->g, &f->err), OX_OK);
    assert_int_equal(ox_graph_verify(f->g, &f->err), OX_OK);
    assert_string_equal(f->g->nodes.p[0].op_type.p, "A");
    assert_string_equal(f->g->nodes.p[1].op_type.p, "B");
    assert_string_equal(f->g->nodes.p[2].op_type.p, "C");
    assert_int_equal(ox_graph_value(f->g, a)->producer.i, 0);
    f->g->nodes.p[0].inputs[0] = c;
    assert_int_equal(ox_graph_sort(f->g, &f->err), OX_BAD_FILE);
    assert_non_null(strstr(f->err.msg, "depends on its own output"));
}

static void a_second_producer_is_refused(void **state)
{
    fixture *f = *state;
    ox_value_id x = input(f, "x"), a = value(f, "a");
    ox_node_id id;
    node(f, "A", x, OX_NO_VALUE, a);
    const ox_node n = {.name = OX_STR("late"),
                       .op_type = OX_STR("B"),
                       .n_inputs = 1,
                       .inputs = &x,
                       .n_outputs = 1,
                       .outputs = &a};
    assert_int_equal(ox_graph_add_node(f->g, &n, &id, &f->err), OX_BAD_FILE);
    assert_non_null(strstr(f->err.msg, "late"));
    assert_non_null(strstr(f->err.msg, "\"a\""));
}

static void uses_move_and_dead_nodes_go(void **state)
{
    fixture *f = *state;
    const ox_value_id x = input(f, "x"), a = value(f, "a"), b = value(f, "b"), c = value(f, "c");
    node(f, "A", x, OX_NO_VALUE, a);
    const ox_node_id dies = node(f, "B", a, OX_NO_VALUE, b);
    const ox_node_id holder = node(f, "C", b, b, c);
    assert_true(ox_vec_push(&f->g->outputs, c));
    /* a subgraph of C captures b */
    ox_graph *sub;
    ox_value_id cap;
    assert_int_equal(ox_graph_open(&sub, &f->arena, f->g, &f->err), OX_OK);
    assert_int_equal(ox_graph_add_value(sub, OX_STR("b"), &cap, &f->err), OX_OK);
    ox_graph_value(sub, cap)->kind = OX_VALUE_CAPTURE;
    ox_graph_value(sub, cap)->outer = b;
    ox_attr attr = {.name = OX_STR("body"), .type = OX_ATTR_GRAPH, .g = sub};
    ox_graph_node(f->g, holder)->attrs = &attr;
    ox_graph_node(f->g, holder)->n_attrs = 1;
    assert_int_equal(ox_graph_uses(f->g, b), 2);
    ox_graph_replace_uses(f->g, b, a);
    assert_int_equal(ox_graph_uses(f->g, b), 0);
    assert_int_equal(ox_graph_uses(f->g, a), 3);
    ox_graph_remove_dead(f->g);
    assert_true(ox_graph_node(f->g, dies)->dead);
    assert_int_equal(ox_graph_sort(f->g, &f->err), OX_OK);
    assert_int_equal(f->g->nodes.n, 2);
    assert_int_equal(ox_graph_verify(f->g, &f->err), OX_OK);
    for (size_t i = 0; i < f->g->nodes.n; i++)
        f->g->nodes.p[i].n_attrs = 0; /* attr and sub are this function's */
    ox_graph_close(&sub);
}

static void attributes_have_defaults(void **state)
{
    fixture *f = *state;
    ox_value_id x = input(f, "x"), y = value(f, "y");
    ox_node_id id;
    const int64_t ints[2] = {3, 4};
    ox_attr attrs[3] = {{.name = OX_STR("axis"), .type = OX_ATTR_INT, .i = 7},
                        {.name = OX_STR("alpha"), .type = OX_ATTR_FLOAT, .f = 0.5f},
                        {.name = OX_STR("perm"), .type = OX_ATTR_INTS, .n = 2, .ints = ints}};
    const ox_node n = {.op_type = OX_STR("T"),
                       .n_inputs = 1,
                       .inputs = &x,
                       .n_outputs = 1,
                       .outputs = &y,
                       .n_attrs = 3,
                       .attrs = attrs};
    assert_int_equal(ox_graph_add_node(f->g, &n, &id, &f->err), OX_OK);
    const ox_node *m = ox_graph_node(f->g, id);
    assert_int_equal(ox_node_int(m, "axis", 1), 7);
    assert_int_equal(ox_node_int(m, "alpha", 1), 1); /* wrong type reads as absent */
    assert_true(ox_node_float(m, "alpha", 0) == 0.5f);
    assert_true(ox_str_is(ox_node_str(m, "mode", "linear"), "linear"));
    assert_int_equal(ox_node_attr(m, "perm")->ints[1], 4);
    assert_string_equal(m->name.p, "T_0");
}

static void terms_work_out_their_width(void **state)
{
    fixture *f = *state;
    const float table[8] = {0};
    const ox_weight w = {.name = OX_STR("w"),
                         .format = OX_FORMAT_F32,
                         .rows = 4,
                         .cols = 2,
                         .data = table,
                         .bytes = sizeof(table)};
    const ox_value_id ids = input(f, "ids");
    ox_value_id e, l, bad;
    ox_graph_value(f->g, ids)->rank = 1;
    ox_graph_value(f->g, ids)->dims[0] = ox_graph_symbol(f->g, OX_STR("rows"));
    ox_term t = {.kind = OX_TERM_EMBED, .weight = &w, .scale = 1};
    assert_int_equal(ox_graph_add_term(f->g, &t, OX_STR("e"), &ids, 1, &e, &f->err), OX_OK);
    assert_int_equal(ox_graph_value(f->g, e)->dims[1], 2);
    t.kind = OX_TERM_LINEAR;
    assert_int_equal(ox_graph_add_term(f->g, &t, OX_STR("l"), &e, 1, &l, &f->err), OX_OK);
    assert_int_equal(ox_graph_value(f->g, l)->dims[1], 4);
    assert_int_equal(ox_graph_add_term(f->g, &t, OX_STR("bad"), &l, 1, &bad, &f->err), OX_BAD_FILE);
    assert_true(ox_vec_push(&f->g->outputs, l));
    assert_int_equal(ox_graph_verify(f->g, NULL), OX_OK);
    assert_true(ox_graph_is_terms(f->g));
    ox_buf out = {0};
    ox_graph_print(f->g, &out);
    assert_string_equal(out.p, "graph (%ids[? rows]) -> (%l)\n"
                               "  %e[float32 rowsx2] = embed(%ids) weight=w:f32 4x2 scale=1\n"
                               "  %l[float32 rowsx4] = linear(%e) weight=w:f32 4x2\n");
    ox_buf_deinit(&out);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(values_are_found_by_name_and_defined_once),
        T(symbols_are_shared_with_subgraphs),
        T(sort_is_stable_and_finds_cycles),
        T(a_second_producer_is_refused),
        T(uses_move_and_dead_nodes_go),
        T(attributes_have_defaults),
        T(terms_work_out_their_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
