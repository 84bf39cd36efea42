/* cache_fuzz.c - any bytes as a packed tokenizer, with neither key nor checksum in the way: what
 * the checks let through encodes and decodes within bounds. The corpus holds a whole one. */
#include "text/tok/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "the th\xc3\xa9 <s> other thing \xe4\xbd\xa0 \n";
    ox_tokenizer *tok = NULL;
    ox_ids ids = {0};
    ox_buf out = {0};
    ox_err err = OX_ERR_INIT;
    uint8_t *copy = ox_alloc(n + 16); /* as aligned as a mapping */
    if (!copy) return 0;
    memcpy(copy, data, n);
    if (n > 48) { /* the length is right, so that the rest is looked at */
        const uint64_t length = n;
        memcpy(copy + 40, &length, sizeof(length));
    }
    if (!ox_tok_open_borrowed(&tok, (ox_str){(const char *)copy, n}, &err)) {
        ox_tokenizer_encode(tok, OX_STR(text), 3, &ids, &err);
        ox_tokenizer_encode(tok, OX_STR(text), 0, &ids, &err);
        ox_tokenizer_decode(tok, ids.p, ids.n, false, &out, &err);
    }
    ox_tokenizer_close(&tok);
    ox_vec_deinit(&ids);
    ox_buf_deinit(&out);
    ox_free(copy);
    return 0;
}
