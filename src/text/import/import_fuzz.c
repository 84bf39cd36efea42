/* import_fuzz.c - any bytes as SentencePiece model or tiktoken file: reading ends, and what can be
 * read encodes and decodes a text. */
#include "base/vec.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] =
        " The  caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd <s> ab 12\n\xf0\x9f\x98\x80 ";
    ox_tokenizer *tok = NULL;
    ox_ids ids = {0};
    ox_buf out = {0};
    ox_err err = OX_ERR_INIT;
    if (!n || data[0] == '{') return 0; /* tokenizer.json has a target of its own */
    if (!ox_tokenizer_open(&tok, (ox_str){(const char *)data, n}, (ox_str){"", 0}, &err)) {
        for (unsigned flags = 0; flags < 4; flags++)
            ox_tokenizer_encode(tok, OX_STR(text), flags, &ids, &err);
        ox_tokenizer_decode(tok, ids.p, ids.n, false, &out, &err);
    }
    ox_tokenizer_close(&tok);
    ox_vec_deinit(&ids);
    ox_buf_deinit(&out);
    return 0;
}
