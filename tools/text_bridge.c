/* text_bridge.c - a tokenizer behind a pipe, for tests that compare it with another library.
 *
 * Requests on standard input, one byte each, then fields; a text field is a 32-bit length and its
 * bytes, all numbers are little endian:
 *   O tokenizer.json, tokenizer_config.json      opens (and closes the one before)
 *   C the same                                   opens by way of the cache folder
 *   E flags (32 bits), text                      encodes
 *   R flags (32 bits), text                      encodes: ids and ranges
 *   M flags (32 bits), texts as one text field   encodes many
 *   D skip_special (32 bits), ids (as bytes)     decodes
 *   B flags (32 bits), text                      encodes and decodes five times
 *   G path                                       the tokenizer of a GGUF file
 * Answers: a 32-bit status; when it is not 0 a text with the message, else for O the milliseconds
 * it took as text, the ids
 * as bytes for E, the text for D; for B ids, MB/s and million ids/s as text; for G two texts,
 * tokenizer.json and tokenizer_config.json. */
#include "base/mem.h"
#include "base/vec.h"
#include "convert/gguf_vocab.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <time.h>

static bool read_text(ox_buf *b)
{
    uint32_t n = 0;
    ox_buf_clear(b);
    if (fread(&n, 4, 1, stdin) != 1 || !ox_buf_reserve(b, n)) return false;
    b->n = fread(b->p, 1, n, stdin);
    return b->n == n;
}

static void write_text(const void *p, size_t n)
{
    const uint32_t n32 = (uint32_t)n;
    fwrite(&n32, 4, 1, stdout);
    if (n) fwrite(p, 1, n, stdout);
}

static void write_status(ox_status st, const ox_err *err)
{
    const uint32_t code = (uint32_t)st;
    fwrite(&code, 4, 1, stdout);
    if (st) write_text(err->msg, strlen(err->msg));
}

/* Of this process: other work on the machine does not count. */
static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static bool open_one(ox_tokenizer **tok, bool cached)
{
    ox_buf json = {0}, config = {0};
    ox_err err = OX_ERR_INIT;
    const bool ok = read_text(&json) && read_text(&config);
    ox_tokenizer_close(tok);
    if (ok) {
        ox_buf line = {0};
        const double t0 = cpu_seconds();
        const ox_status st = (cached ? ox_tokenizer_open_cached : ox_tokenizer_open)(
            tok, ox_buf_view(&json), ox_buf_view(&config), &err);
        ox_buf_printf(&line, "%.3f", 1e3 * (cpu_seconds() - t0));
        write_status(st, &err);
        if (!st) write_text(line.p, line.n);
        ox_buf_deinit(&line);
    }
    ox_buf_deinit(&json);
    ox_buf_deinit(&config);
    return ok;
}

static bool encode_one(const ox_tokenizer *tok)
{
    ox_buf text = {0};
    ox_ids ids = {0};
    ox_err err = OX_ERR_INIT;
    uint32_t flags = 0;
    const bool ok = fread(&flags, 4, 1, stdin) == 1 && read_text(&text) && tok;
    if (ok) {
        const ox_status st = ox_tokenizer_encode(tok, ox_buf_view(&text), flags, &ids, &err);
        write_status(st, &err);
        if (!st) write_text(ids.p, ids.n * sizeof(*ids.p));
    }
    ox_buf_deinit(&text);
    ox_vec_deinit(&ids);
    return ok;
}

static bool encode_ranges(const ox_tokenizer *tok)
{
    ox_buf text = {0};
    ox_ids ids = {0};
    ox_ranges ranges = {0};
    ox_err err = OX_ERR_INIT;
    uint32_t flags = 0;
    const bool ok = fread(&flags, 4, 1, stdin) == 1 && read_text(&text) && tok;
    if (ok) {
        const ox_status st =
            ox_tokenizer_encode_ranges(tok, ox_buf_view(&text), flags, &ids, &ranges, &err);
        write_status(st, &err);
        if (!st) write_text(ids.p, ids.n * sizeof(*ids.p));
        if (!st) write_text(ranges.p, ranges.n * sizeof(*ranges.p));
    }
    ox_buf_deinit(&text);
    ox_vec_deinit(&ids);
    ox_vec_deinit(&ranges);
    return ok;
}

static ox_status encode_many(const ox_tokenizer *tok, ox_str texts, uint32_t flags, ox_buf *out,
                             ox_err *err)
{
    ox_ids ids = {0};
    ox_status st = OX_OK;
    uint32_t n = 0;
    for (size_t at = 0; !st && at + 4 <= texts.n; at += n) {
        memcpy(&n, texts.p + at, 4);
        at += 4;
        ids.n = 0;
        st = ox_tokenizer_encode(tok, (ox_str){texts.p + at, n}, flags, &ids, err);
        const uint32_t n_ids = (uint32_t)ids.n;
        ox_buf_put(out, &n_ids, 4);
        ox_buf_put(out, ids.p ? (const void *)ids.p : "", ids.n * sizeof(*ids.p));
    }
    ox_vec_deinit(&ids);
    return st;
}

static bool encode_batch(const ox_tokenizer *tok)
{
    ox_buf texts = {0}, out = {0};
    ox_err err = OX_ERR_INIT;
    uint32_t flags = 0;
    const bool ok = fread(&flags, 4, 1, stdin) == 1 && read_text(&texts) && tok;
    if (ok) {
        const ox_status st = encode_many(tok, ox_buf_view(&texts), flags, &out, &err);
        write_status(st, &err);
        if (!st) write_text(out.p, out.n);
    }
    ox_buf_deinit(&texts);
    ox_buf_deinit(&out);
    return ok;
}

static bool decode_one(const ox_tokenizer *tok)
{
    ox_buf bytes = {0}, text = {0};
    ox_ids ids = {0};
    ox_err err = OX_ERR_INIT;
    uint32_t skip = 0;
    bool ok = fread(&skip, 4, 1, stdin) == 1 && read_text(&bytes) && tok;
    ok = ok && ox_vec_reserve(&ids, bytes.n / 4 + 1);
    if (ok) {
        ids.n = bytes.n / 4;
        memcpy(ids.p, bytes.p, ids.n * 4);
        const ox_status st = ox_tokenizer_decode(tok, ids.p, ids.n, skip != 0, &text, &err);
        write_status(st, &err);
        if (!st) write_text(text.p, text.n);
    }
    ox_buf_deinit(&bytes);
    ox_buf_deinit(&text);
    ox_vec_deinit(&ids);
    return ok;
}

static bool bench_one(const ox_tokenizer *tok)
{
    ox_buf text = {0}, back = {0}, line = {0};
    ox_ids ids = {0};
    ox_err err = OX_ERR_INIT;
    uint32_t flags = 0;
    double encode = 1e9, decode = 1e9;
    ox_status st = OX_OK;
    const bool ok = fread(&flags, 4, 1, stdin) == 1 && read_text(&text) && tok;
    for (int i = 0; ok && !st && i < 5; i++) {
        const double t0 = cpu_seconds();
        ids.n = 0;
        st = ox_tokenizer_encode(tok, ox_buf_view(&text), flags, &ids, &err);
        const double t1 = cpu_seconds();
        ox_buf_clear(&back);
        if (!st) st = ox_tokenizer_decode(tok, ids.p, ids.n, false, &back, &err);
        const double t2 = cpu_seconds();
        encode = t1 - t0 < encode ? t1 - t0 : encode;
        decode = t2 - t1 < decode ? t2 - t1 : decode;
    }
    if (ok) {
        write_status(st, &err);
        ox_buf_printf(&line, "%zu %.3f %.3f", ids.n, (double)text.n / encode / 1e6,
                      (double)ids.n / decode / 1e6);
        if (!st) write_text(line.p, line.n);
    }
    ox_buf_deinit(&text);
    ox_buf_deinit(&back);
    ox_buf_deinit(&line);
    ox_vec_deinit(&ids);
    return ok;
}

static bool convert_one(void)
{
    ox_buf path = {0}, json = {0}, config = {0};
    ox_err err = OX_ERR_INIT;
    ox_gguf *g = NULL;
    const bool ok = read_text(&path);
    if (ok) {
        ox_buf_put(&path, "", 1);
        ox_status st = ox_gguf_open(&g, path.p, &err);
        if (!st) st = ox_gguf_tokenizer(g, &json, &config, &err);
        write_status(st, &err);
        if (!st) write_text(json.p, json.n);
        if (!st) write_text(config.p, config.n);
    }
    ox_gguf_close(&g);
    ox_buf_deinit(&path);
    ox_buf_deinit(&json);
    ox_buf_deinit(&config);
    return ok;
}

int main(void)
{
    ox_tokenizer *tok = NULL;
    bool ok = true;
    for (int c; ok && (c = getchar()) != EOF; fflush(stdout))
        ok = c == 'O'   ? open_one(&tok, false)
             : c == 'C' ? open_one(&tok, true)
             : c == 'E' ? encode_one(tok)
             : c == 'R' ? encode_ranges(tok)
             : c == 'M' ? encode_batch(tok)
             : c == 'D' ? decode_one(tok)
             : c == 'B' ? bench_one(tok)
             : c == 'G' ? convert_one()
                        : false;
    ox_tokenizer_close(&tok);
    return ok ? 0 : 1;
}
