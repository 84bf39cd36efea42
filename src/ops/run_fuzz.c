/* run_fuzz.c - any bytes as a model: read, built, inferred, folded and run
 * on small made-up inputs. */
#include "ops/fold.h"
#include "ops/infer.h"
#include "ops/run.h"

#include "base/mem.h"
#include "file/onnx.h"
#include "graph/from_onnx.h"

enum { INPUTS = 8, SIDE = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const ox_graph *g, ox_err *err)
{
    ox_run_input in[INPUTS] = {{.kind = OX_RT_TENSOR}};
    static char bytes[1 << 16];
    ox_run_results *r = NULL;
    size_t n = 0, need;
    for (size_t i = 0; i < g->inputs.n && n < INPUTS; i++) {
        const ox_value *v = ox_graph_value(g, g->inputs.p[i]);
        ox_tensor t = {.dtype = v->dtype ? v->dtype : OX_DTYPE_F32,
                       .rank = v->rank < 0 ? 1 : v->rank,
                       .data = bytes};
        for (int32_t k = 0; k < t.rank; k++)
            t.dims[k] = v->rank >= 0 && v->dims[k] >= 0 ? v->dims[k] : SIDE;
        if (!ox_tensor_bytes(&t, &need) || need > sizeof(bytes)) return;
        in[n] =
            (ox_run_input){.name = v->name, .kind = OX_RT_TENSOR, .t = t, .item_dtype = v->dtype};
        if (v->type != OX_TYPE_TENSOR)
            in[n].kind = v->type == OX_TYPE_SEQUENCE ? OX_RT_SEQUENCE : OX_RT_NONE;
        n++;
    }
    const ox_run_options o = {.memory_limit = 1 << 24, .node_limit = 1000, .work_limit = 1 << 20};
    if (ox_graph_eval(&r, g, in, n, NULL, 0, &o, err) == OX_OK) ox_run_results_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_err err = OX_ERR_INIT, quiet = OX_ERR_INIT;
    ox_onnx *o = NULL;
    ox_graph *g = NULL;
    const ox_from_onnx_options keep = {.keep = ox_op_keep};
    if (ox_onnx_parse(&o, (ox_str){(const char *)data, size}, NULL, &err) == OX_OK &&
        ox_graph_from_onnx_with(&g, &arena, o, &keep, &err) == OX_OK) {
        run(g, &quiet);
        quiet = (ox_err)OX_ERR_INIT;
        if (ox_graph_infer(g, &quiet) == OX_OK && ox_graph_fold(g, 1 << 16, &quiet) == OX_OK) {
            ox_graph_remove_dead(g);
            quiet = (ox_err)OX_ERR_INIT;
            if (ox_graph_sort(g, &quiet) == OX_OK) run(g, &quiet);
        }
    }
    ox_graph_close(&g);
    ox_onnx_close(&o);
    ox_arena_deinit(&arena);
    return 0;
}
