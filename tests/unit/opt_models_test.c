/* opt_models_test.c - whole files: tests/data/opt/NAME.onnx, brought to terms, must give the logits
 * that ONNX Runtime gave (NAME.logits; tools/make_opt_models.py made both). Half precision files
 * were computed in half precision there, hence their tolerance. */
#include "base/fs.h"
#include "graph/from_onnx.h"
#include "opt/opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/terms_eval.h"

enum { ROWS = 20, VOCAB = 64 };

typedef struct model {
    const char *name;
    float tolerance;
} model;

static const model models[] = {
    {"plain-fp32", 2e-5f},          {"plain-int4-fp16", 3e-2f}, {"plain-qdq", 2e-5f},
    {"plain-gateup", 2e-5f},        {"biased-int4", 2e-5f},     {"biased-fp16", 3e-2f},
    {"biased-nodes", 3e-2f},        {"biased-split", 2e-5f},    {"headnorm-int8", 2e-5f},
    {"softcap-int4", 2e-5f},        {"long-int4", 2e-5f},       {"layernorm-int4", 2e-5f},
    {"scaled-int4", 2e-5f},         {"export-eager-17", 2e-5f}, {"export-partial-18", 2e-5f},
    {"export-attention-23", 2e-5f},
};

static void compare(const model *m, const float *want, const ox_graph *g)
{
    int32_t ids[ROWS];
    float got[ROWS * VOCAB];
    for (int i = 0; i < ROWS; i++)
        ids[i] = i * 7 % VOCAB;
    terms_logits(g, ids, ROWS, got);
    for (int i = 0; i < ROWS * VOCAB; i++)
        if (!isnan(want[i]) && !(fabsf(got[i] - want[i]) <= m->tolerance))
            fail_msg("%s, row %d, token %d: %g, expected %g", m->name, i / VOCAB, i % VOCAB,
                     (double)got[i], (double)want[i]);
}

static void check(const model *m)
{
    ox_err err = OX_ERR_INIT;
    ox_arena arena = OX_ARENA_INIT;
    ox_onnx *onnx = NULL;
    ox_graph *g = NULL;
    ox_opt_report report;
    ox_buf logits = {0}, text = {0};
    char path[512];
    snprintf(path, sizeof(path), OXGEN_SOURCE_DIR "/tests/data/opt/%s.onnx", m->name);
    if (ox_onnx_open(&onnx, path, &err) || ox_graph_from_onnx(&g, &arena, onnx, &err) ||
        ox_opt_run(g, NULL, &arena, &report, &err))
        fail_msg("%s: %s", m->name, err.msg);
    ox_opt_report_print(&report, &text);
    if (!report.is_terms) fail_msg("%s: %s", m->name, text.p);
    assert_int_equal(g->caches.n, 2);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_weight *w = g->nodes.p[i].term->weight;
        if (w && ox_weight_check(w, &err)) fail_msg("%s: %s", m->name, err.msg);
    }
    snprintf(path, sizeof(path), OXGEN_SOURCE_DIR "/tests/data/opt/%s.logits", m->name);
    assert_int_equal(ox_file_read(&logits, path, 1 << 20, &err), OX_OK);
    assert_int_equal(logits.n, ROWS * VOCAB * sizeof(float));
    compare(m, (const float *)(const void *)logits.p, g);
    ox_buf_deinit(&logits);
    ox_buf_deinit(&text);
    ox_graph_close(&g);
    ox_onnx_close(&onnx);
    ox_arena_deinit(&arena);
}

static void terms_give_the_logits_of_the_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        check(&models[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(terms_give_the_logits_of_the_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
