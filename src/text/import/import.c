/* import.c - picks the reader of a tokenizer's file; helpers that the readers share. */
#include "text/import/import.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ox_base64_put(ox_buf *out, ox_str bytes)
{
    for (size_t i = 0; i < bytes.n; i += 3) {
        const size_t n = bytes.n - i < 3 ? bytes.n - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (uint8_t)bytes.p[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            ox_buf_put_c(out, k <= n ? digits[v >> (18 - 6 * k) & 63] : '=');
    }
}

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool ox_base64_read(ox_str text, ox_buf *out)
{
    uint32_t bits = 0, n = 0;
    for (size_t i = 0; i < text.n && text.p[i] != '='; i++) {
        const int d = digit_of(text.p[i]);
        if (d < 0) return false;
        bits = bits << 6 | (uint32_t)d;
        n += 6;
        if (n >= 8) {
            n -= 8;
            ox_buf_put_c(out, (char)(bits >> n & 0xff));
        }
    }
    return true;
}

void ox_tokj_flag(ox_json_writer *w, const char *key, bool on)
{
    ox_json_put_key(w, key);
    ox_json_put_bool(w, on);
}

void ox_tokj_pair(ox_json_writer *w, const char *key, const char *text)
{
    ox_json_put_key(w, key);
    ox_json_put_z(w, text);
}

void ox_tokj_begin(ox_json_writer *w, const char *type)
{
    ox_json_begin_object(w);
    ox_tokj_pair(w, "type", type);
}

void ox_tokj_added(ox_json_writer *w, ox_str content, size_t id, bool special)
{
    ox_json_begin_object(w);
    ox_json_put_key(w, "id");
    ox_json_put_u64(w, id);
    ox_json_put_key(w, "content");
    ox_json_put_str(w, content);
    ox_tokj_flag(w, "special", special);
    ox_tokj_flag(w, "normalized", !special);
    ox_tokj_flag(w, "literal", !special);
    ox_json_end_object(w);
}

ox_status ox_tok_import(ox_str file, ox_str config, ox_buf *json, ox_buf *config_out, ox_err *err)
{
    ox_status st = OX_OK;
    if (ox_tok_is_tiktoken(file))
        st = ox_tok_import_tiktoken(file, config, json, err);
    else if (ox_tok_is_sentencepiece(file))
        st = ox_tok_import_sentencepiece(file, config, json, config_out, err);
    if (!st && (json->failed || config_out->failed))
        st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
    return st;
}
