/* onnx_write_test.c - what is written is what the reader reads (onnx_test.c holds the reader
 * against the onnx package); memory failures are reported. */
#include "file/onnx_write.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define FILES OXGEN_SOURCE_DIR "/tests/data/files/"

static void put_body(ox_onnx_graph_writer *body)
{
    ox_onnx_begin_node(body, OX_STR("Identity"), OX_STR(""), OX_STR("inner"));
    ox_onnx_put_operand(body, OX_STR("x"));
    ox_onnx_put_result(body, OX_STR("b"));
    ox_onnx_end_node(body);
    ox_onnx_put_output(body, OX_STR("b"), OX_DTYPE_F32, -1, NULL);
}

static ox_status write_model(ox_buf *out, ox_err *err)
{
    ox_onnx_graph_writer g = {0}, body = {0};
    const ox_onnx_dim dims[] = {{-1, OX_STR("batch")}, {-1, {NULL, 0}}, {64, {NULL, 0}}};
    const ox_str words[] = {OX_STR("a"), OX_STR(""), OX_STR("c")};
    float floats[] = {1.5f, -2.0f};
    const ox_tensor t = {OX_DTYPE_F32, 1, {2}, floats};
    const ox_tensor s = {OX_DTYPE_STRING, 1, {3}, (void *)(uintptr_t)words};
    ox_onnx_put_input(&g, OX_STR("x"), OX_DTYPE_F32, 3, dims);
    ox_onnx_put_output(&g, OX_STR("y"), OX_DTYPE_F16, 0, NULL);
    ox_onnx_put_value(&g, OX_STR("v"), OX_DTYPE_I64, -1, NULL);
    ox_onnx_put_tensor(&g, OX_STR("w"), &t);
    ox_onnx_put_tensor(&g, OX_STR("s"), &s);
    ox_onnx_put_external(&g, OX_STR("e"), OX_DTYPE_F32, 2, (int64_t[]){2, 2},
                         OX_STR("external.data"), 16, 16);
    put_body(&body);
    ox_onnx_begin_node(&g, OX_STR("Every"), OX_STR("com.test"), OX_STR("n"));
    ox_onnx_put_operand(&g, OX_STR("x"));
    ox_onnx_put_operand(&g, OX_STR(""));
    ox_onnx_put_operand(&g, OX_STR("w"));
    ox_onnx_put_result(&g, OX_STR("y"));
    ox_onnx_attr_int(&g, "i", -7);
    ox_onnx_attr_float(&g, "f", 0.1f);
    ox_onnx_attr_str(&g, "s", OX_STR("text"));
    ox_onnx_attr_ints(&g, "is", (int64_t[]){1, -2, INT64_MAX}, 3);
    ox_onnx_attr_floats(&g, "fs", floats, 2);
    ox_onnx_attr_strs(&g, "ss", words, 3);
    ox_onnx_attr_tensor(&g, "t", &t);
    ox_onnx_attr_graph(&g, "g", &body, OX_STR("body"));
    ox_onnx_end_node(&g);
    const ox_onnx_opset opsets[] = {{OX_STR(""), 21}, {OX_STR("com.test"), 1}};
    const ox_str metadata[] = {OX_STR("key"), OX_STR("value")};
    const ox_onnx_model_info info = {.producer = OX_STR("oxgen"),
                                     .producer_version = OX_STR("1"),
                                     .graph_name = OX_STR("main"),
                                     .opsets = opsets,
                                     .n_opsets = 2,
                                     .metadata = metadata,
                                     .n_metadata = 1};
    const ox_status st = ox_onnx_model_write(out, &g, &info, err);
    ox_onnx_graph_writer_deinit(&g);
    ox_onnx_graph_writer_deinit(&body);
    return st;
}

static void check_node(const ox_onnx_node *n)
{
    assert_true(ox_str_is(n->op_type, "Every") && ox_str_is(n->domain, "com.test"));
    assert_int_equal(n->n_inputs, 3);
    assert_int_equal(n->inputs[1].n, 0);
    assert_true(ox_str_is(n->inputs[2], "w"));
    assert_int_equal(n->n_attrs, 8);
    assert_int_equal(n->attrs[0].i, -7);
    assert_true(n->attrs[1].f == 0.1f);
    assert_true(ox_str_is(n->attrs[2].s, "text"));
    assert_int_equal(n->attrs[3].ints[2], INT64_MAX);
    assert_true(n->attrs[4].n == 2 && n->attrs[4].floats[1] == -2.0f);
    assert_true(n->attrs[5].n == 3 && ox_str_is(n->attrs[5].strings[2], "c"));
    assert_true(((float *)n->attrs[6].t->t.data)[0] == 1.5f);
    assert_true(ox_str_is(n->attrs[7].g->name, "body"));
    assert_true(ox_str_is(n->attrs[7].g->nodes[0].name, "inner"));
}

static void reads_back_what_was_written(void **state)
{
    (void)state;
    ox_buf bytes = {0};
    ox_onnx *m = NULL;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(write_model(&bytes, &err), OX_OK);
    if (ox_onnx_parse(&m, ox_buf_view(&bytes), FILES, &err)) fail_msg("%s", err.msg);
    const ox_onnx_graph *g = m->graph;
    assert_int_equal(m->ir_version, 10);
    assert_true(ox_str_is(m->producer, "oxgen"));
    assert_true(m->n_opsets == 2 && m->opsets[0].version == 21);
    assert_int_equal(g->inputs[0].rank, 3);
    assert_true(ox_str_is(g->inputs[0].dims[0].symbol, "batch"));
    assert_int_equal(g->inputs[0].dims[1].value, -1);
    assert_int_equal(g->inputs[0].dims[2].value, 64);
    assert_int_equal(g->outputs[0].rank, 0);
    assert_int_equal(g->values[0].rank, -1);
    assert_int_equal(g->n_initializers, 3);
    assert_true(ox_str_is(((ox_str *)g->initializers[1].t.data)[2], "c"));
    assert_true(g->initializers[2].external);
    assert_true(((float *)g->initializers[2].t.data)[0] == 4.0f);
    check_node(&g->nodes[0]);
    ox_onnx_close(&m);
    ox_buf_deinit(&bytes);
}

static void reports_failing_memory(void **state)
{
    (void)state;
    for (long n = 1;; n++) {
        ox_buf bytes = {0};
        ox_err err = OX_ERR_INIT;
        ox_mem_fail_after(n);
        const ox_status st = write_model(&bytes, &err);
        ox_mem_fail_after(0);
        ox_buf_deinit(&bytes);
        if (!st) break;
        assert_int_equal(st, OX_NO_MEMORY);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_what_was_written),
        cmocka_unit_test(reports_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
