/* safetensors_fuzz.c - any bytes as a safetensors file; every promised byte is read. */
#include "file/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_safetensors *s = NULL;
    volatile unsigned sum = 0;
    if (ox_safetensors_parse(&s, (ox_str){(const char *)data, n}, NULL)) return 0;
    for (size_t k = 0; k < s->tensors.n; k++)
        for (size_t i = 0; i < s->tensors.p[k].bytes; i++)
            sum += ((const uint8_t *)s->tensors.p[k].t.data)[i];
    ox_safetensors_close(&s);
    return 0;
}
