/* onnx_fuzz.c - any bytes as a model and as loose tensors; external data is refused. Every byte
 * that a record promises is read. */
#include "file/onnx.h"

#include "tensor/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static unsigned touch(const ox_onnx_tensor *t)
{
    size_t n = 0, bytes = 0;
    unsigned sum = 0;
    if (!ox_tensor_count(&t->t, &n) || !ox_tensor_bytes(&t->t, &bytes)) __builtin_trap();
    if (!t->t.data && bytes) __builtin_trap();
    if (t->t.dtype == OX_DTYPE_STRING) {
        for (size_t i = 0; i < n; i++) {
            const ox_str s = ((const ox_str *)t->t.data)[i];
            sum += s.n ? (unsigned char)s.p[s.n - 1] : 0u;
        }
        return sum;
    }
    for (size_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)t->t.data)[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const ox_str bytes = {(const char *)data, n};
    ox_arena arena = OX_ARENA_INIT;
    ox_onnx *m = NULL;
    ox_onnx_tensor t, *items;
    size_t n_items;
    volatile unsigned sum = 0;

    if (!ox_onnx_parse(&m, bytes, NULL, NULL))
        for (size_t i = 0; i < m->graph->n_initializers; i++)
            sum += touch(&m->graph->initializers[i]);
    ox_onnx_close(&m);
    if (!ox_onnx_tensor_parse(&t, &arena, bytes, NULL)) sum += touch(&t);
    if (!ox_onnx_sequence_parse(&items, &n_items, &arena, bytes, NULL))
        for (size_t i = 0; i < n_items; i++)
            sum += touch(&items[i]);
    ox_arena_deinit(&arena);
    return 0;
}
