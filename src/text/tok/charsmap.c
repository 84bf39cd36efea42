/* charsmap.c - the "Precompiled" normalizer: a double-array trie from byte strings to replacement
 * strings, base64 in the file. Layout: uint32 size of the trie in bytes, the trie's units, then
 * NUL-terminated replacements. Whole grapheme clusters below 6 bytes are tried first, then single
 * characters. As the oracle does, the shortest key that begins the text decides. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

#include <utf8proc.h>

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool decode_base64(ox_str in, ox_buf *out)
{
    uint32_t bits = 0, n = 0;
    for (size_t i = 0; i < in.n && in.p[i] != '='; i++) {
        const int d = base64_digit(in.p[i]);
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

ox_status ox_tok_read_charsmap(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json,
                               ox_err *err)
{
    ox_str text;
    ox_status st = OX_OK;
    ox_buf bytes = {0};
    uint32_t trie_bytes = 0;
    OX_TRY(ox_json_need_str(json, "precompiled_charsmap", &text, err));
    if (!text.n) return OX_OK;
    if (!ox_buf_reserve(&bytes, text.n))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a normalizer");
    const bool legal = decode_base64(text, &bytes) && bytes.n >= 4;
    if (legal) memcpy(&trie_bytes, bytes.p, 4);
    if (!legal || trie_bytes % 4 || trie_bytes > bytes.n - 4) {
        st = OX_FAIL(err, OX_BAD_FILE, "\"precompiled_charsmap\" is damaged");
        goto fail;
    }
    uint32_t *units = ox_arena_take(&tok->arena, trie_bytes);
    if (!units) {
        st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for a normalizer");
        goto fail;
    }
    memcpy(units, bytes.p + 4, trie_bytes);
    n->units = units;
    n->n_units = trie_bytes / 4;
    OX_TRY_GOTO(ox_tok_copy(tok, (ox_str){bytes.p + 4 + trie_bytes, bytes.n - 4 - trie_bytes},
                            &n->content, err));
fail:
    ox_buf_deinit(&bytes);
    return st;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* Position of the replacement for the shortest key that begins s; false when there is none. */
static bool shortest_key(const ox_normalizer *n, ox_str s, size_t *value)
{
    if (!n->n_units) return false;
    size_t at = offset_of(n->units[0]);
    for (size_t i = 0; i < s.n && s.p[i]; i++) {
        const uint8_t byte = (uint8_t)s.p[i];
        at ^= byte;
        if (at >= n->n_units) return false;
        const uint32_t unit = n->units[at];
        if ((unit & ((1u << 31) | 0xff)) != byte) return false;
        at ^= offset_of(unit);
        if (unit >> 8 & 1) {
            if (at >= n->n_units) return false;
            *value = n->units[at] & 0x7fffffff;
            return true;
        }
    }
    return false;
}

static bool put_replacement(const ox_normalizer *n, ox_str s, ox_buf *out)
{
    size_t value;
    if (!shortest_key(n, s, &value) || value > n->content.n) return false;
    const ox_str rest = {n->content.p + value, n->content.n - value};
    const char *end = rest.n ? memchr(rest.p, 0, rest.n) : NULL;
    /* Text is checked once more: a damaged table must not bring in ill-formed bytes. */
    ox_utf8_put_lossy(out, (ox_str){rest.p, end ? (size_t)(end - rest.p) : rest.n});
    return true;
}

static void put_cluster(const ox_normalizer *n, ox_str cluster, ox_buf *out)
{
    if (cluster.n < 6 && put_replacement(n, cluster, out)) return;
    for (const char *p = cluster.p, *end = p + cluster.n; p < end;) {
        const char *at = p;
        ox_utf8_next(&p);
        const ox_str c = {at, (size_t)(p - at)};
        if (!put_replacement(n, c, out)) ox_buf_put_str(out, c);
    }
}

ox_status ox_tok_run_charsmap(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    utf8proc_int32_t state = 0, before = -1;
    const char *begin = in.p, *end = in.p + in.n;
    (void)w;
    for (const char *p = in.p; p < end;) {
        const char *at = p;
        const utf8proc_int32_t c = (utf8proc_int32_t)ox_utf8_next(&p);
        if (before >= 0 && utf8proc_grapheme_break_stateful(before, c, &state)) {
            put_cluster(n, (ox_str){begin, (size_t)(at - begin)}, out);
            begin = at;
        }
        before = c;
    }
    if (begin < end) put_cluster(n, (ox_str){begin, (size_t)(end - begin)}, out);
    return OX_OK;
}
