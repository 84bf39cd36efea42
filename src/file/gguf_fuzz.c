/* gguf_fuzz.c - any bytes as a GGUF file; every byte that a record promises is read. */
#include "file/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_gguf *g = NULL;
    volatile unsigned sum = 0;
    if (ox_gguf_parse(&g, (ox_str){(const char *)data, n}, NULL)) return 0;
    for (size_t k = 0; k < g->n_tensors; k++)
        for (size_t i = 0; i < g->tensors[k].bytes; i++)
            sum += ((const uint8_t *)g->tensors[k].data)[i];
    for (size_t k = 0; k < g->n_values; k++)
        for (size_t i = 0; i < g->values[k].n; i++) {
            const ox_str s = ox_gguf_item_str(&g->values[k], i);
            const double f = ox_gguf_item_f64(&g->values[k], i);
            sum += (unsigned)ox_gguf_item_i64(&g->values[k], i) + (f > 0);
            sum += s.n ? (unsigned char)s.p[s.n - 1] : 0u;
        }
    ox_gguf_close(&g);
    return 0;
}
