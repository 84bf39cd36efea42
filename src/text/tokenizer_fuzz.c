/* tokenizer_fuzz.c - tokenizer.json, a NUL, tokenizer_config.json, a NUL, text: reading ends, and
 * what can be read encodes and decodes the text to an end, too. */
#include "text/tokenizer.h"

#include "base/vec.h"
#include "text/detok.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static ox_str take_part(ox_str *rest)
{
    const char *end = rest->n ? memchr(rest->p, 0, rest->n) : NULL;
    const ox_str part = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    const size_t used = part.n + (end != NULL);
    *rest = (ox_str){rest->p + used, rest->n - used};
    return part;
}

static void run_text(const ox_tokenizer *tok, ox_str text)
{
    ox_ids ids = {0};
    ox_buf out = {0};
    ox_detok d;
    ox_err err = OX_ERR_INIT;
    ox_detok_init(&d, tok, true, true);
    for (unsigned flags = 0; flags < 4; flags++)
        ox_tokenizer_encode(tok, text, flags, &ids, &err);
    for (size_t i = 0; i < ids.n; i++) {
        if (!ox_tokenizer_token(tok, ids.p[i]).p)
            continue; /* a template may name what is no token */
        ox_detok_push(&d, ids.p[i], &out);
    }
    ox_detok_flush(&d, &out);
    ox_tokenizer_decode(tok, ids.p, ids.n, false, &out, &err);
    ox_vec_deinit(&ids);
    ox_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ox_str rest = {(const char *)data, n};
    const ox_str json = take_part(&rest), config = take_part(&rest);
    ox_tokenizer *tok = NULL;
    ox_err err = OX_ERR_INIT;
    if (ox_tokenizer_open(&tok, json, config, &err) == OX_OK) run_text(tok, rest);
    ox_tokenizer_close(&tok);
    return 0;
}
