/* charsmap.c - the "Precompiled" normalizer: a double-array trie from byte strings to replacement
 * strings, base64 in the file. Layout: uint32 size of the trie in bytes, the trie's units, then
 * NUL-terminated replacements. Whole grapheme clusters below 6 bytes are tried first, then single
 * characters. As the oracle does, the shortest key that begins the text decides. */
#include "text/import/import.h"
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

#include <utf8proc.h>

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
    const bool legal = ox_base64_read(text, &bytes) && bytes.n >= 4;
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

/* The longest key that begins s: its bytes, 0 when there is none. */
static size_t longest_key(const ox_normalizer *n, ox_str s, size_t *value)
{
    size_t best = 0;
    if (!n->n_units) return 0;
    size_t at = offset_of(n->units[0]);
    for (size_t i = 0; i < s.n && s.p[i]; i++) {
        const uint8_t byte = (uint8_t)s.p[i];
        at ^= byte;
        if (at >= n->n_units) break;
        const uint32_t unit = n->units[at];
        if ((unit & ((1u << 31) | 0xff)) != byte) break;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= n->n_units) break;
        *value = n->units[at] & 0x7fffffff;
        best = i + 1;
    }
    return best;
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

static void put_cluster(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_str cluster,
                        ox_buf *out)
{
    if (cluster.n < 6 && put_replacement(n, cluster, out)) {
        ox_tok_made(w, out, in, cluster.p, cluster.p + cluster.n);
        return;
    }
    for (const char *p = cluster.p, *end = p + cluster.n; p < end;) {
        const char *at = p;
        ox_utf8_next(&p);
        const ox_str c = {at, (size_t)(p - at)};
        if (!put_replacement(n, c, out)) ox_buf_put_str(out, c);
        ox_tok_made(w, out, in, at, p);
    }
}

ox_status ox_tok_run_charsmap(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    utf8proc_int32_t state = 0, before = -1;
    const char *begin = in.p, *end = in.p + in.n;
    for (const char *p = in.p; p < end;) {
        const char *at = p;
        const utf8proc_int32_t c = (utf8proc_int32_t)ox_utf8_next(&p);
        if (before >= 0 && utf8proc_grapheme_break_stateful(before, c, &state)) {
            put_cluster(n, w, in, (ox_str){begin, (size_t)(at - begin)}, out);
            begin = at;
        }
        before = c;
    }
    if (begin < end) put_cluster(n, w, in, (ox_str){begin, (size_t)(end - begin)}, out);
    return OX_OK;
}

/* ---- SentencePiece's own normalization: the longest key counts, spaces are tidied */

enum { SP_PREFIX, SP_SUFFIX, SP_TIDY, SP_ESCAPE };

#define MARK "\xe2\x96\x81"

ox_status ox_tok_read_sp(ox_tokenizer *tok, ox_normalizer *n, const ox_json *json, ox_err *err)
{
    OX_TRY(ox_tok_read_charsmap(tok, n, json, err));
    OX_TRY(ox_json_need_bool(json, "add_dummy_prefix", &n->on[SP_PREFIX], err));
    OX_TRY(ox_json_need_bool(json, "add_dummy_suffix", &n->on[SP_SUFFIX], err));
    OX_TRY(ox_json_need_bool(json, "remove_extra_whitespaces", &n->on[SP_TIDY], err));
    return ox_json_need_bool(json, "escape_whitespaces", &n->on[SP_ESCAPE], err);
}

/* What the beginning of `in` becomes; returns the bytes of `in` that it stands for. */
static size_t sp_prefix(const ox_normalizer *n, const ox_tok_work *w, ox_str in, ox_str *out)
{
    size_t value = 0, used = ox_tok_literal_at(w->tok, in);
    if (used) {
        *out = (ox_str){in.p, used};
        return used;
    }
    used = longest_key(n, in, &value);
    if (used && value <= n->content.n) {
        const ox_str rest = {n->content.p + value, n->content.n - value};
        const char *end = rest.n ? memchr(rest.p, 0, rest.n) : NULL;
        *out = (ox_str){rest.p, end ? (size_t)(end - rest.p) : rest.n};
        if (ox_utf8_check(*out) == out->n) return used;
    }
    used = ox_utf8_length(in.p, in.n);
    *out = (ox_str){in.p, used};
    return used;
}

static void sp_put(const ox_normalizer *n, ox_str s, ox_buf *out)
{
    size_t done = 0;
    for (size_t i = 0; n->on[SP_ESCAPE] && i < s.n; i++) {
        if (s.p[i] != ' ') continue;
        ox_buf_put(out, s.p + done, i - done);
        ox_buf_put_z(out, MARK);
        done = i + 1;
    }
    ox_buf_put(out, s.p + done, s.n - done);
}

ox_status ox_tok_run_sp(const ox_normalizer *n, ox_tok_work *w, ox_str in, ox_buf *out)
{
    const bool tidy = n->on[SP_TIDY];
    const ox_str space = n->on[SP_ESCAPE] ? OX_STR(MARK) : OX_STR(" ");
    ox_str s;
    size_t at = 0;
    while (tidy && at < in.n) {
        const size_t used = sp_prefix(n, w, (ox_str){in.p + at, in.n - at}, &s);
        if (!ox_str_is(s, " ")) break;
        at += used;
    }
    if (at == in.n) return OX_OK;
    if (n->on[SP_PREFIX]) ox_buf_put_str(out, space);
    ox_tok_made(w, out, in, in.p + at, in.p + at + ox_utf8_length(in.p + at, in.n - at));
    bool behind_space = tidy;
    while (at < in.n && out->n <= OX_TOK_MAX_BYTES) {
        const size_t from = at;
        at += sp_prefix(n, w, (ox_str){in.p + at, in.n - at}, &s);
        while (behind_space && ox_str_starts(s, OX_STR(" ")))
            s = (ox_str){s.p + 1, s.n - 1};
        sp_put(n, s, out);
        ox_tok_made(w, out, in, in.p + from, in.p + at);
        if (s.n) behind_space = tidy && s.p[s.n - 1] == ' ';
    }
    while (tidy && ox_str_ends(ox_buf_view(out), space))
        out->n -= space.n;
    if (w->made.n > out->n) w->made.n = out->n;
    if (n->on[SP_SUFFIX]) ox_buf_put_str(out, space);
    ox_tok_made(w, out, in, in.p + in.n, in.p + in.n);
    return OX_OK;
}
