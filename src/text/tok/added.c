/* added.c - tokens that are cut out of the text before anything else sees it. Leftmost, then
 * longest; a hit that a flag rejects is passed over whole. Tokens with `normalized` are looked for
 * in normalized text, in their own normalized form. */
#include "text/tok/tok_internal.h"
#include "text/unicode.h"

/* Behind the model's tokens (their count, not their highest id, as the oracle does). */
static int32_t next_free_id(const ox_tokenizer *tok)
{
    return tok->max_added >= (int32_t)tok->vocab.n || !tok->vocab.n ? tok->max_added + 1
                                                                    : (int32_t)tok->vocab.n;
}

ox_status ox_tok_add(ox_tokenizer *tok, ox_added token, ox_err *err)
{
    if (!token.content.n || ox_map_get(&tok->added_by_content, token.content, NULL)) return OX_OK;
    if (token.content.n > OX_TOK_MAX_CONTENT || tok->added.n == OX_TOK_MAX_ADDED)
        return OX_FAIL(err, OX_LIMIT,
                       "added token \"%.40s...\" is longer than %d bytes or there are "
                       "more than %d",
                       token.content.p, (int)OX_TOK_MAX_CONTENT, (int)OX_TOK_MAX_ADDED);
    OX_TRY(ox_tok_copy(tok, token.content, &token.content, err));
    token.shown = token.content;
    token.id = ox_vocab_find(&tok->vocab, token.content);
    if (token.id < 0) token.id = next_free_id(tok);
    if (!ox_map_put(&tok->added_by_content, token.content, tok->added.n) ||
        !ox_vec_push(&tok->added, token))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for added tokens");
    if (token.id > tok->max_added) tok->max_added = token.id;
    return OX_OK;
}

ox_status ox_tok_read_added(ox_tokenizer *tok, const ox_json *list, ox_err *err)
{
    if (!ox_json_is_null(list) && !ox_json_is(list, OX_JSON_ARRAY))
        return OX_FAIL(err, OX_BAD_FILE, "added_tokens is not an array");
    for (size_t i = 0; i < ox_json_n(list); i++) {
        const ox_json *j = ox_json_at(list, i);
        ox_added a = {.id = -1};
        OX_TRY(ox_json_need_str(j, "content", &a.content, err));
        OX_TRY(ox_json_opt_bool(j, "special", &a.special, err));
        a.normalized = !a.special;
        OX_TRY(ox_json_opt_bool(j, "normalized", &a.normalized, err));
        OX_TRY(ox_json_opt_bool(j, "single_word", &a.single_word, err));
        OX_TRY(ox_json_opt_bool(j, "lstrip", &a.lstrip, err));
        OX_TRY(ox_json_opt_bool(j, "rstrip", &a.rstrip, err));
        OX_TRY(ox_json_opt_bool(j, "literal", &a.literal, err));
        OX_TRY(ox_tok_add(tok, a, err));
    }
    return OX_OK;
}

static ox_status add_normal_form(ox_tokenizer *tok, ox_tok_work *w, size_t i, ox_err *err)
{
    ox_str form = tok->added.p[i].content;
    if (!tok->added.p[i].literal) OX_TRY(ox_tok_normalize(w, form, &form));
    if (form.n > OX_TOK_MAX_CONTENT)
        return OX_FAIL(err, OX_LIMIT, "added token \"%.40s...\" is longer than %d bytes",
                       tok->added.p[i].content.p, (int)OX_TOK_MAX_CONTENT);
    OX_TRY(ox_tok_copy(tok, form, &tok->added.p[i].shown, err));
    /* Of two with one form the first special one is found, else the first. */
    if (form.n && !ox_trie_has(&tok->added_normal, form) &&
        !ox_trie_put(&tok->added_normal, form, (int32_t)i))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for added tokens");
    return OX_OK;
}

ox_status ox_tok_finish_added(ox_tokenizer *tok, ox_err *err)
{
    ox_status st = OX_OK;
    ox_tok_work w = {.tok = tok, .err = err};
    const size_t n = tok->added.n;
    for (size_t k = 0; n && k < 2 * n; k++) { /* special ones, then the others */
        const size_t i = k % n;
        const ox_added *a = &tok->added.p[i];
        if (a->special != (k < n)) continue;
        if (a->normalized) {
            OX_TRY_GOTO(add_normal_form(tok, &w, i, err));
        } else if (!ox_trie_put(&tok->added_raw, a->content, (int32_t)i)) {
            st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for added tokens");
            goto fail;
        }
    }
    for (size_t i = 0; i < tok->added.n; i++) {
        ox_added *a = &tok->added.p[i];
        uint64_t k;
        a->hidden = ox_map_get(&tok->added_by_content, a->shown, &k) && tok->added.p[k].special;
    }
fail:
    ox_buf_deinit(&w.normal[0]);
    ox_buf_deinit(&w.normal[1]);
    ox_regex_run_deinit(&w.run);
    return st;
}

/* Longest token that begins at `at`: its position in the list, *n its bytes. -1: none. */
static int32_t longest_at(const ox_trie *trie, ox_str text, size_t at, size_t *n)
{
    int32_t best = -1;
    uint32_t node = 0;
    for (size_t i = at; i < text.n; i++) {
        node = ox_trie_step(trie, node, (uint8_t)text.p[i]);
        if (!node) break;
        if (ox_trie_value(trie, node) >= 0) {
            best = ox_trie_value(trie, node);
            *n = i + 1 - at;
        }
    }
    return best;
}

size_t ox_tok_literal_at(const ox_tokenizer *tok, ox_str s)
{
    size_t n = 0;
    if (!tok->added_normal.n_nodes || !s.n || !tok->added_normal.roots[(uint8_t)s.p[0]]) return 0;
    const int32_t hit = longest_at(&tok->added_normal, s, 0, &n);
    return hit >= 0 && tok->added.p[hit].literal ? n : 0;
}

static uint32_t char_before(ox_str text, size_t at)
{
    const char *p = text.p + at;
    do
        p--;
    while (((unsigned char)*p & 0xc0) == 0x80);
    return ox_utf8_next(&p);
}

static uint32_t char_at(ox_str text, size_t at)
{
    const char *p = text.p + at;
    return ox_utf8_next(&p);
}

static bool stands_alone(ox_str text, size_t begin, size_t end)
{
    return !(begin > 0 && ox_char_is_word(char_before(text, begin))) &&
           !(end < text.n && ox_char_is_word(char_at(text, end)));
}

static size_t space_before(ox_str text, size_t at, size_t least)
{
    while (at > least && ox_char_is_space(char_before(text, at))) {
        do
            at--;
        while (((unsigned char)text.p[at] & 0xc0) == 0x80);
    }
    return at;
}

static size_t space_after(ox_str text, size_t at)
{
    while (at < text.n) {
        const char *p = text.p + at;
        if (!ox_char_is_space(ox_utf8_next(&p))) break;
        at = (size_t)(p - text.p);
    }
    return at;
}

static bool push_hit(ox_added_hits *hits, int32_t id, size_t begin, size_t end)
{
    return ox_vec_push(hits, (ox_added_hit){id, {(uint32_t)begin, (uint32_t)(end - begin)}});
}

bool ox_tok_split_added(const ox_tok_work *w, const ox_trie *trie, ox_str text, ox_added_hits *hits)
{
    const bool skip_special = !(w->flags & OX_ENCODE_PARSE_SPECIAL);
    size_t done = 0, at = 0;
    while (trie->n_nodes && at < text.n) {
        size_t n = 0;
        const int32_t hit = trie->roots[(uint8_t)text.p[at]] ? longest_at(trie, text, at, &n) : -1;
        if (hit < 0) {
            at++;
            continue;
        }
        size_t begin = at, end = at + n;
        const ox_added *a = &w->tok->added.p[hit];
        at = end;
        if (skip_special && a->special) continue;
        if (a->single_word && !stands_alone(text, begin, end)) continue;
        if (a->lstrip) begin = begin > done ? space_before(text, begin, done) : done;
        if (a->rstrip) end = space_after(text, end);
        if (done < begin && !push_hit(hits, -1, done, begin)) return false;
        if (begin < end && !push_hit(hits, a->id, begin, end)) return false;
        done = end;
    }
    return done >= text.n || push_hit(hits, -1, done, text.n);
}
