/* opt_fuzz.c - any bytes that read as an ONNX graph go through all rules without harm; what the
 * rules accept passes the graph's own checks. */
#include "graph/from_onnx.h"
#include "opt/opt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ox_err err = OX_ERR_INIT;
    ox_arena arena = OX_ARENA_INIT;
    ox_onnx *onnx = NULL;
    ox_graph *g = NULL;
    ox_opt_report report;
    const ox_opt_ports ports = {.n_positions = 256};
    const ox_str bytes = {(const char *)data, size};
    ox_buf text = {0};
    if (!ox_onnx_parse(&onnx, bytes, NULL, &err) && !ox_graph_from_onnx(&g, &arena, onnx, &err) &&
        !ox_opt_run(g, &ports, &arena, &report, &err)) {
        ox_opt_report_print(&report, &text);
        for (size_t i = 0; report.is_terms && i < g->nodes.n; i++) {
            const ox_weight *w = g->nodes.p[i].term->weight;
            if (w && ox_weight_check(w, &err)) __builtin_trap();
        }
    }
    ox_buf_deinit(&text);
    ox_graph_close(&g);
    ox_onnx_close(&onnx);
    ox_arena_deinit(&arena);
    return 0;
}
