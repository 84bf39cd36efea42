/* from_onnx_test.c - records built by hand: order, captures, constants, functions, refusals. */
#include "graph/from_onnx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define S(lit)                                                                                     \
    {                                                                                              \
        (lit), sizeof(lit) - 1                                                                     \
    }
#define NODE(op, in, out)                                                                          \
    {                                                                                              \
        .op_type = S(op), .n_inputs = OX_COUNT(in), .n_outputs = OX_COUNT(out), .inputs = (in),    \
        .outputs = (out)                                                                           \
    }

static ox_arena arena;
static ox_err err;
static ox_str x_name[] = {S("x")}, y_name[] = {S("y")}, t_name[] = {S("t")}, u_name[] = {S("u")};
static ox_onnx_opset opsets[] = {{S(""), 21}, {S("my"), 3}};
static ox_onnx_value x_value[] = {
    {.name = S("x"), .dtype = OX_DTYPE_F32, .rank = 2, .dims = {{-1, S("batch")}, {4, {0}}}}};
static ox_onnx_value y_value[] = {{.name = S("y"), .dtype = OX_DTYPE_F32, .rank = -1}};

static int teardown(void **state)
{
    (void)state;
    ox_arena_deinit(&arena);
    err = (ox_err)OX_ERR_INIT;
    return 0;
}

static ox_graph *build(ox_onnx_node *nodes, size_t n, ox_onnx_function *f, size_t n_f,
                       ox_status want)
{
    ox_onnx_graph g = {.name = S("main"),
                       .n_nodes = n,
                       .nodes = nodes,
                       .n_inputs = 1,
                       .inputs = x_value,
                       .n_outputs = 1,
                       .outputs = y_value};
    const ox_onnx o = {
        .n_opsets = 2, .opsets = opsets, .graph = &g, .functions = f, .n_functions = n_f};
    ox_graph *out = NULL;
    const ox_status st = ox_graph_from_onnx(&out, &arena, &o, &err);
    if (st != want) fail_msg("status %d: %s", (int)st, err.msg);
    return out;
}

static void prints(ox_graph *g, const char *text)
{
    ox_buf b = {0};
    ox_graph_print(g, &b);
    assert_string_equal(b.p, text);
    ox_buf_deinit(&b);
    ox_graph_close(&g);
}

static void nodes_in_any_order_are_sorted(void **state)
{
    (void)state;
    ox_onnx_node nodes[] = {NODE("Abs", t_name, y_name), NODE("Neg", x_name, t_name)};
    ox_graph *g = build(nodes, 2, NULL, 0, OX_OK);
    assert_int_equal(g->nodes.p[0].version, 21);
    prints(g, "graph main(%x[float32 batchx4]) -> (%y)\n"
              "  %t[? *] = Neg(%x)\n"
              "  %y[float32 *] = Abs(%t)\n");
}

static void missing_and_repeated_names_are_refused(void **state)
{
    (void)state;
    ox_onnx_node lost[] = {NODE("Abs", t_name, y_name)};
    assert_null(build(lost, 1, NULL, 0, OX_BAD_FILE));
    assert_non_null(strstr(err.msg, "\"t\""));
    err = (ox_err)OX_ERR_INIT;
    ox_onnx_node twice[] = {NODE("Abs", x_name, y_name), NODE("Neg", x_name, y_name)};
    assert_null(build(twice, 2, NULL, 0, OX_BAD_FILE));
    assert_non_null(strstr(err.msg, "\"y\" is defined twice"));
    err = (ox_err)OX_ERR_INIT;
    ox_str in[] = {S("y"), S("x")};
    ox_onnx_node loop[] = {NODE("Add", in, y_name)};
    assert_null(build(loop, 1, NULL, 0, OX_BAD_FILE));
}

static void constants_of_all_forms_become_values(void **state)
{
    (void)state;
    int64_t ints[] = {3, 1};
    float dense[] = {7};
    int64_t where[] = {2};
    ox_onnx_sparse sparse = {.rank = 1,
                             .dims = {4},
                             .values.t = {OX_DTYPE_F32, 1, {1}, dense},
                             .indices.t = {OX_DTYPE_I64, 1, {1}, where}};
    ox_onnx_attr a = {.name = S("value_ints"), .type = OX_ATTR_INTS, .n = 2, .ints = ints};
    ox_onnx_attr b = {.name = S("sparse_value"), .type = OX_ONNX_ATTR_SPARSE, .sparse = &sparse};
    ox_str in[] = {S("x"), S("t"), S("u")};
    ox_onnx_node nodes[] = {
        {.op_type = S("Constant"), .n_outputs = 1, .outputs = t_name, .n_attrs = 1, .attrs = &a},
        {.op_type = S("Constant"), .n_outputs = 1, .outputs = u_name, .n_attrs = 1, .attrs = &b},
        NODE("Thing", in, y_name)};
    ox_graph *g = build(nodes, 3, NULL, 0, OX_OK);
    const ox_value *t = ox_graph_value(g, ox_graph_find(g, OX_STR("t")));
    const ox_value *u = ox_graph_value(g, ox_graph_find(g, OX_STR("u")));
    assert_int_equal(g->nodes.n, 1);
    assert_int_equal(t->kind, OX_VALUE_CONSTANT);
    assert_int_equal(((const int64_t *)t->constant->data)[0], 3);
    assert_int_equal(u->dims[0], 4);
    assert_true(((const float *)u->constant->data)[2] == 7);
    ox_graph_close(&g);
}

static void subgraphs_capture_outer_values(void **state)
{
    (void)state;
    ox_str r_name[] = {S("r")}, cond[] = {S("c")};
    ox_onnx_value r_value[] = {{.name = S("r"), .dtype = OX_DTYPE_F32, .rank = -1}};
    ox_onnx_node inner_nodes[] = {NODE("Neg", t_name, r_name)};
    ox_onnx_graph inner = {
        .name = S("inner"), .n_nodes = 1, .nodes = inner_nodes, .n_outputs = 1, .outputs = r_value};
    ox_onnx_attr inner_attr = {.name = S("then_branch"), .type = OX_ATTR_GRAPH, .g = &inner};
    ox_str k_name[] = {S("k")};
    ox_onnx_value k_value[] = {{.name = S("k"), .dtype = OX_DTYPE_F32, .rank = -1}};
    ox_onnx_node middle_nodes[] = {NODE("If", cond, k_name)};
    middle_nodes[0].n_attrs = 1;
    middle_nodes[0].attrs = &inner_attr;
    ox_onnx_graph middle = {.name = S("middle"),
                            .n_nodes = 1,
                            .nodes = middle_nodes,
                            .n_outputs = 1,
                            .outputs = k_value};
    ox_onnx_attr middle_attr = {.name = S("then_branch"), .type = OX_ATTR_GRAPH, .g = &middle};
    ox_onnx_node nodes[] = {NODE("If", cond, y_name), NODE("Abs", x_name, t_name),
                            NODE("Any", x_name, cond)};
    nodes[0].n_attrs = 1;
    nodes[0].attrs = &middle_attr;
    ox_graph *g = build(nodes, 3, NULL, 0, OX_OK);
    assert_int_equal(ox_graph_uses(g, ox_graph_find(g, OX_STR("t"))), 1);
    prints(g, "graph main(%x[float32 batchx4]) -> (%y)\n"
              "  %c[? *] = Any(%x)\n"
              "  %t[? *] = Abs(%x)\n"
              "  %y[float32 *] = If(%c) {then_branch=<graph>}\n"
              "    graph middle() -> (%k)\n"
              "      %k[float32 *] = If(%c) {then_branch=<graph>}\n"
              "        graph inner() -> (%r)\n"
              "          %r[float32 *] = Neg(%t)\n");
}

static void functions_are_inlined_with_their_attributes(void **state)
{
    (void)state;
    ox_str f_in[] = {S("a"), S("b")}, f_out[] = {S("r")}, a_in[] = {S("a")}, m_out[] = {S("m")};
    ox_str names[] = {S("alpha")};
    ox_onnx_attr ref = {.name = S("slope"), .ref_name = S("alpha"), .type = OX_ATTR_FLOAT};
    ox_onnx_node body[] = {NODE("Scale", a_in, m_out), NODE("Abs", m_out, f_out)};
    body[0].n_attrs = 1;
    body[0].attrs = &ref;
    ox_onnx_function f[] = {{.name = S("F"),
                             .domain = S("my"),
                             .n_inputs = 2,
                             .inputs = f_in,
                             .n_outputs = 1,
                             .outputs = f_out,
                             .n_attr_names = 1,
                             .attr_names = names,
                             .n_nodes = 2,
                             .nodes = body}};
    ox_onnx_attr half = {.name = S("alpha"), .type = OX_ATTR_FLOAT, .f = 0.5f};
    ox_onnx_node nodes[] = {NODE("F", x_name, t_name), NODE("F", t_name, y_name)};
    for (int i = 0; i < 2; i++)
        nodes[i].domain = (ox_str)S("my");
    nodes[0].n_attrs = 1;
    nodes[0].attrs = &half;
    nodes[0].name = (ox_str)S("one");
    ox_graph *g = build(nodes, 2, f, 1, OX_OK);
    prints(g, "graph main(%x[float32 batchx4]) -> (%y)\n"
              "  %one/m[? *] = Scale(%x) {slope=0.5}\n"
              "  %t[? *] = Abs(%one/m)\n"
              "  %F/m[? *] = Scale(%t)\n"
              "  %y[float32 *] = Abs(%F/m)\n");
    body[0].domain = (ox_str)S("my");
    body[0].op_type = (ox_str)S("F");
    body[0].n_attrs = 0;
    assert_null(build(nodes, 2, f, 1, OX_BAD_FILE));
    assert_non_null(strstr(err.msg, "calls itself"));
}

static void a_function_may_return_its_input(void **state)
{
    (void)state;
    ox_str a[] = {S("a")};
    ox_onnx_function f[] = {{.name = S("F"),
                             .domain = S("my"),
                             .n_inputs = 1,
                             .inputs = a,
                             .n_outputs = 1,
                             .outputs = a}};
    ox_onnx_node nodes[] = {NODE("F", x_name, y_name)};
    nodes[0].domain = (ox_str)S("my");
    prints(build(nodes, 1, f, 1, OX_OK), "graph main(%x[float32 batchx4]) -> (%y)\n"
                                         "  %y[float32 *] = Identity(%x)\n");
}

#define T(name) cmocka_unit_test_teardown(name, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nodes_in_any_order_are_sorted),
        T(missing_and_repeated_names_are_refused),
        T(constants_of_all_forms_become_values),
        T(subgraphs_capture_outer_values),
        T(functions_are_inlined_with_their_attributes),
        T(a_function_may_return_its_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
