/* export_test.c - the written folder read back: the graph opens, weights mean what they meant, and
 * the folder is whole or absent whatever happens in between. */
#include "convert/export.h"

#include "convert/import.h"
#include "file/onnx.h"
#include "graph/terms.h"
#include "tests/tiny_gguf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char work[64], source[96], out[96];

static int setup(void **state)
{
    (void)state;
    snprintf(work, sizeof work, "/tmp/oxgen_export_%ld", (long)getpid());
    if (mkdir(work, 0700)) return 1;
    snprintf(source, sizeof source, "%s/a.gguf", work);
    snprintf(out, sizeof out, "%s/out", work);
    return 0;
}

static void remove_inside(const char *dir)
{
    char **names = NULL, path[512];
    size_t n = 0;
    if (ox_dir_list(&names, &n, dir, NULL)) return;
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        if (ox_path_is_dir(path)) remove_inside(path);
        unlink(path);
    }
    ox_dir_list_free(names, n);
    rmdir(dir);
}

static int teardown(void **state)
{
    (void)state;
    remove_inside(work);
    return 0;
}

static size_t n_entries(void)
{
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(ox_dir_list(&names, &n, work, NULL), OX_OK);
    ox_dir_list_free(names, n);
    return n;
}

static ox_source *import(const tiny_gguf *t)
{
    ox_err err = OX_ERR_INIT;
    ox_source *s = NULL;
    assert_true(tiny_gguf_write(t, source));
    if (ox_import_gguf(&s, source, &err)) fail_msg("%s", err.msg);
    return s;
}

static const ox_onnx_tensor *tensor(const ox_onnx *o, const char *name)
{
    for (size_t i = 0; i < o->graph->n_initializers; i++)
        if (ox_str_is(o->graph->initializers[i].name, name)) return &o->graph->initializers[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static size_t n_nodes(const ox_onnx *o, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < o->graph->n_nodes; i++)
        n += ox_str_is(o->graph->nodes[i].op_type, op);
    return n;
}

static ox_onnx *reopen(void)
{
    ox_err err = OX_ERR_INIT;
    ox_onnx *o = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/model.onnx", out);
    if (ox_onnx_open(&o, path, &err)) fail_msg("%s", err.msg);
    return o;
}

static const ox_weight *weight_of(const ox_source *s, const char *node)
{
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        if (ox_str_is(s->graph->nodes.p[i].name, node)) return s->graph->nodes.p[i].term->weight;
    fail_msg("no term %s", node);
    return NULL;
}

/* The written codes of `base` mean the same floats as rows of w, up to `error` relative. */
static void same_rows(const ox_onnx *o, const char *base, const ox_weight *w, double error)
{
    char name[128];
    float got[TINY_FF], want[TINY_FF];
    snprintf(name, sizeof name, "%s.qweight", base);
    const ox_tensor *codes = &tensor(o, name)->t;
    snprintf(name, sizeof name, "%s.scales", base);
    const ox_tensor *scales = &tensor(o, name)->t;
    ox_weight back = {.format = OX_FORMAT_NBITS, .rows = w->rows, .cols = w->cols};
    back.nbits = (ox_nbits){.bits = (int32_t)(codes->dims[2] * 8 / 32),
                            .block = 32,
                            .codes = codes->data,
                            .scales = scales->data,
                            .scale_dtype = scales->dtype};
    if (w->format == OX_FORMAT_Q4_1) {
        snprintf(name, sizeof name, "%s.qzeros", base);
        back.nbits.zeros = tensor(o, name)->t.data;
        back.nbits.zeros_dtype = tensor(o, name)->t.dtype;
    }
    for (int64_t r = 0; r < w->rows; r++) {
        ox_weight_row_f32(w, r, want);
        ox_weight_row_f32(&back, r, got);
        for (int64_t i = 0; i < w->cols; i++)
            if (fabs((double)got[i] - (double)want[i]) > error * fabs((double)want[i]) + error)
                fail_msg("%s row %lld: %g, expected %g", base, (long long)r, (double)got[i],
                         (double)want[i]);
    }
}

static void codes_are_written_as_they_are(void **state)
{
    (void)state;
    static const ox_format formats[] = {OX_FORMAT_Q4_0, OX_FORMAT_Q4_1, OX_FORMAT_Q5_0,
                                        OX_FORMAT_Q8_0};
    ox_export_options o = OX_EXPORT_OPTIONS_INIT;
    o.quant.kind = OX_QUANT_KEEP;
    for (size_t i = 0; i < OX_COUNT(formats); i++) {
        const tiny_gguf t = {
            .arch = "qwen2", .n_layers = 2, .format = formats[i], .qkv_bias = true};
        ox_source *s = import(&t);
        ox_err err = OX_ERR_INIT;
        ox_buf report = {0};
        if (ox_export_genai(s, out, &o, &report, &err)) fail_msg("%s", err.msg);
        ox_onnx *m = reopen();
        same_rows(m, "model.layers.1.mlp.down_proj.MatMul",
                  weight_of(s, "/model/layers.1/mlp/down_proj/MatMul"),
                  formats[i] == OX_FORMAT_Q4_1 ? 3e-7 : 0);
        assert_int_equal(n_nodes(m, "GroupQueryAttention"), 2);
        assert_int_equal(n_nodes(m, "SkipSimplifiedLayerNormalization"), 4);
        assert_int_equal(n_nodes(m, "SimplifiedLayerNormalization"), 1);
        assert_int_equal(n_nodes(m, "MatMulNBits"), 11); /* qkv, o, gate, up, down; head */
        assert_int_equal(n_nodes(m, "Add"), 2);
        assert_non_null(strstr(report.p, "down_proj"));
        ox_buf_deinit(&report);
        ox_onnx_close(&m);
        ox_source_close(&s);
    }
    assert_int_equal(n_entries(), 2);
}

static void pairs_of_rows_are_put_in_halves(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_F32};
    ox_export_options o = OX_EXPORT_OPTIONS_INIT;
    float row[TINY_HIDDEN];
    o.quant.kind = OX_QUANT_F32;
    ox_source *s = import(&t);
    assert_int_equal(ox_export_genai(s, out, &o, NULL, NULL), OX_OK);
    ox_onnx *m = reopen();
    const ox_tensor *packed = &tensor(m, "model.layers.0.attn.qkv_proj.MatMul.weight")->t;
    const ox_weight *q = weight_of(s, "/model/layers.0/attn/q_proj/MatMul");
    const ox_weight *v = weight_of(s, "/model/layers.0/attn/v_proj/MatMul");
    const int64_t n = packed->dims[1], half = TINY_HEAD / 2;
    assert_int_equal(packed->dims[0], TINY_HIDDEN);
    assert_int_equal(n, (TINY_HEADS + 2 * TINY_KV) * TINY_HEAD);
    for (int64_t c = 0; c < TINY_HEADS * TINY_HEAD; c++) { /* column c of the file = which row? */
        const int64_t i = c % TINY_HEAD;
        ox_weight_row_f32(q, c - i + (i < half ? 2 * i : 2 * (i - half) + 1), row);
        for (int64_t k = 0; k < TINY_HIDDEN; k++)
            assert_true(((const float *)packed->data)[k * n + c] == row[k]);
    }
    for (int64_t c = 0; c < TINY_HEAD; c++) { /* values don't turn */
        ox_weight_row_f32(v, c, row);
        assert_true(((const float *)packed->data)[n - TINY_HEAD + c] == row[0]);
    }
    ox_onnx_close(&m);
    ox_source_close(&s);
}

static void a_foreign_folder_is_left_alone(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_Q8_0};
    ox_export_options o = OX_EXPORT_OPTIONS_INIT;
    ox_err err = OX_ERR_INIT;
    char file[128];
    ox_source *s = import(&t);
    assert_int_equal(mkdir(out, 0777), 0);
    snprintf(file, sizeof file, "%s/precious.txt", out);
    assert_int_equal(ox_file_write_atomic(file, OX_STR("x"), NULL), OX_OK);
    assert_int_equal(ox_export_genai(s, out, &o, NULL, &err), OX_BAD_ARGUMENT);
    assert_non_null(strstr(err.msg, "not empty"));
    assert_true(ox_path_is_file(file));
    assert_int_equal(n_entries(), 2);
    ox_source_close(&s);
}

static void an_earlier_result_is_replaced(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_Q8_0};
    ox_export_options o = OX_EXPORT_OPTIONS_INIT;
    ox_source *s = import(&t);
    assert_int_equal(ox_export_genai(s, out, &o, NULL, NULL), OX_OK);
    o.quant.kind = OX_QUANT_F32;
    assert_int_equal(ox_export_genai(s, out, &o, NULL, NULL), OX_OK);
    ox_onnx *m = reopen();
    assert_int_equal(n_nodes(m, "MatMulNBits"), 0);
    assert_int_equal(n_entries(), 2);
    ox_onnx_close(&m);
    ox_source_close(&s);
}

static volatile int stop;

static void stop_half_way(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    if (done * 2 > total) stop = 1;
}

static void stopping_leaves_nothing(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 2, .format = OX_FORMAT_Q8_0};
    ox_export_options o = OX_EXPORT_OPTIONS_INIT;
    ox_source *s = import(&t);
    o.progress = stop_half_way;
    o.cancel = &stop;
    stop = 0;
    assert_int_equal(ox_export_genai(s, out, &o, NULL, NULL), OX_CANCELLED);
    assert_int_equal(n_entries(), 1);
    ox_source_close(&s);
}

static void a_dry_run_writes_nothing(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_Q5_1};
    ox_export_options o = OX_EXPORT_OPTIONS_INIT;
    ox_buf report = {0};
    ox_source *s = import(&t);
    o.dry_run = true;
    o.quant.kind = OX_QUANT_KEEP;
    assert_int_equal(ox_export_genai(s, out, &o, &report, NULL), OX_OK);
    assert_non_null(strstr(report.p, "no 8-bit form with minima"));
    assert_non_null(strstr(report.p, "warning: 7 block-quantised matrices became floats"));
    assert_int_equal(n_entries(), 1);
    ox_buf_deinit(&report);
    ox_source_close(&s);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_Q4_0, .tied = true};
    ox_export_options o = OX_EXPORT_OPTIONS_INIT;
    ox_source *s = import(&t);
    o.quant.kind = OX_QUANT_KEEP;
    for (long n = 1;; n += n < 200 ? 1 : 7) {
        ox_err err = OX_ERR_INIT;
        ox_buf report = {0};
        ox_mem_fail_after(n);
        const ox_status st = ox_export_genai(s, out, &o, &report, &err);
        ox_mem_fail_after(0);
        ox_buf_deinit(&report);
        if (!st) break;
        assert_int_not_equal(err.msg[0], 0);
        assert_false(ox_path_is_dir(out));
        assert_true(n < 100000);
    }
    assert_int_equal(n_entries(), 2);
    ox_source_close(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(codes_are_written_as_they_are),  TEST(pairs_of_rows_are_put_in_halves),
        TEST(a_foreign_folder_is_left_alone), TEST(an_earlier_result_is_replaced),
        TEST(stopping_leaves_nothing),        TEST(a_dry_run_writes_nothing),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
