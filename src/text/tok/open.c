/* open.c - builds a tokenizer from its files and answers questions about tokens. The order matters:
 * the model first (added tokens look their ids up), normalizers before the automata of added
 * tokens, decoders before the bytes of the tokens. */
#include "base/hash.h"
#include "text/import/import.h"
#include "text/tok/cache.h"
#include "text/tok/tok_internal.h"

ox_status ox_tok_copy(ox_tokenizer *tok, ox_str s, ox_str *out, ox_err *err)
{
    const char *copy = ox_arena_copy(&tok->arena, s.p, s.n);
    if (!copy) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
    *out = (ox_str){copy, s.n};
    return OX_OK;
}

ox_status ox_tok_read_pattern(ox_tokenizer *tok, const ox_json *json, const char *owner,
                              ox_regex **regex, ox_str *text, ox_err *err)
{
    const ox_json *re = ox_json_path(json, "pattern.Regex");
    const ox_json *literal = ox_json_path(json, "pattern.String");
    if (ox_json_is(re, OX_JSON_STRING)) return ox_regex_open(regex, ox_json_str(re), err);
    if (ox_json_is(literal, OX_JSON_STRING))
        return ox_tok_copy(tok, ox_json_str(literal), text, err);
    return OX_FAIL(err, OX_BAD_FILE, "%s needs a \"pattern\" with \"String\" or \"Regex\"", owner);
}

static ox_status index_ids(ox_tokenizer *tok, ox_err *err)
{
    tok->n_vocab = tok->vocab.n_ids;
    for (size_t i = 0; i < tok->added.n; i++) {
        if ((size_t)tok->added.p[i].id >= tok->n_vocab)
            tok->n_vocab = (size_t)tok->added.p[i].id + 1;
    }
    tok->added_of_id = ox_alloc((tok->n_vocab + 1) * sizeof(*tok->added_of_id));
    if (!tok->added_of_id) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
    memset(tok->added_of_id, 0xff, (tok->n_vocab + 1) * sizeof(*tok->added_of_id));
    for (size_t i = 0; i < tok->added.n; i++)
        tok->added_of_id[tok->added.p[i].id] = (int32_t)i;
    return OX_OK;
}

/* The members of the file but its model, which takes most of it. */
static void keep_rest(const ox_json *root, ox_buf *rest)
{
    ox_json_writer w = {.out = rest};
    ox_json_begin_object(&w);
    for (size_t i = 0; i < ox_json_n(root); i++) {
        const ox_json_member *m = ox_json_member_at(root, i);
        if (ox_str_is(ox_json_str(&m->key), "model")) continue;
        ox_json_put_key_str(&w, ox_json_str(&m->key));
        ox_json_put_node(&w, &m->value);
    }
    ox_json_end_object(&w);
}

/* rest: NULL, or what keep_rest writes. */
static ox_status read_json(ox_tokenizer *tok, ox_str text, ox_buf *rest, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_status st = OX_OK;
    OX_TRY_GOTO(ox_json_parse(&root, &arena, text, err));
    if (rest) keep_rest(root, rest);
    if (!tok->borrowed) OX_TRY_GOTO(ox_tok_read_model(tok, ox_json_get(root, "model"), err));
    OX_TRY_GOTO(ox_tok_read_normalizers(tok, ox_json_get(root, "normalizer"), 0, err));
    OX_TRY_GOTO(ox_tok_read_added(tok, ox_json_get(root, "added_tokens"), err));
    OX_TRY_GOTO(ox_tok_read_pretokenizers(tok, ox_json_get(root, "pre_tokenizer"), 0, err));
    tok->has_processor = !ox_json_is_null(ox_json_get(root, "post_processor"));
    OX_TRY_GOTO(ox_tok_read_processors(tok, ox_json_get(root, "post_processor"), 0, err));
    OX_TRY_GOTO(ox_tok_read_decoders(tok, ox_json_get(root, "decoder"), 0, err));
    OX_TRY_GOTO(ox_bpe_find_raw(tok, err));
fail:
    if (st) ox_err_prefix(err, "tokenizer.json");
    ox_arena_deinit(&arena);
    return st;
}

static ox_status make(ox_tokenizer **out, ox_err *err)
{
    ox_tokenizer *tok = ox_calloc(1, sizeof(*tok));
    *out = tok;
    if (!tok) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
    tok->unk = tok->max_added = -1;
    for (size_t i = 0; i < OX_SPECIAL_COUNT; i++)
        tok->special[i] = -1;
    tok->spare = ox_calloc(1, sizeof(*tok->spare));
    return tok->spare ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
}

static ox_status read_all(ox_tokenizer *tok, ox_str json, ox_str config, ox_buf *rest, ox_err *err)
{
    OX_TRY(read_json(tok, json, rest, err));
    OX_TRY(ox_tok_read_config(tok, config, err));
    OX_TRY(ox_tok_finish_added(tok, err));
    OX_TRY(index_ids(tok, err));
    return ox_tok_build_pieces(tok, err);
}

ox_status ox_tok_open_keeping(ox_tokenizer **out, ox_str file, ox_str config, ox_buf *rest,
                              ox_tok_parts *parts, ox_err *err)
{
    ox_status st = OX_OK;
    ox_buf imported = {0}, made_config = {0};
    ox_tokenizer *tok = NULL;
    OX_TRY_GOTO(make(&tok, err));
    OX_TRY_GOTO(ox_tok_import(file, config, &imported, &made_config, err));
    if (imported.n) file = ox_buf_view(&imported);
    if (made_config.n) config = ox_buf_view(&made_config);
    OX_TRY_GOTO(read_all(tok, file, config, rest, err));
    if (parts) {
        const size_t n = rest->n;
        ox_buf_put_str(rest, config);
        if (rest->failed) st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
        parts->rest = (ox_str){rest->p, n};
        parts->config = (ox_str){rest->p + n, rest->n - n};
    }
fail:
    ox_buf_deinit(&imported);
    ox_buf_deinit(&made_config);
    if (st) ox_tokenizer_close(&tok);
    *out = tok;
    return st;
}

ox_status ox_tokenizer_open(ox_tokenizer **out, ox_str tokenizer_json, ox_str config_json,
                            ox_err *err)
{
    return ox_tok_open_keeping(out, tokenizer_json, config_json, NULL, NULL, err);
}

static ox_status unpack(ox_tokenizer *tok, ox_str file, const uint64_t *key, ox_err *err)
{
    ox_tok_parts parts = {{NULL, 0}, {NULL, 0}};
    if (!ox_tok_unpack(tok, &parts, file, key))
        return OX_FAIL(err, OX_BAD_FILE, "not a packed tokenizer, or a damaged one");
    const size_t n_vocab = tok->n_vocab;
    OX_TRY(read_all(tok, parts.rest, parts.config, NULL, err));
    if (tok->n_vocab != n_vocab)
        return OX_FAIL(err, OX_BAD_FILE, "a packed tokenizer of other tokens");
    return OX_OK;
}

ox_status ox_tok_open_packed(ox_tokenizer **out, ox_mapping *map, const uint64_t *key, ox_err *err)
{
    ox_tokenizer *tok = NULL;
    ox_status st = make(&tok, err);
    if (st) {
        ox_mapping_close(map);
    } else {
        tok->file = *map;
        *map = (ox_mapping){0};
        st = unpack(tok, (ox_str){(const char *)tok->file.bytes, tok->file.n}, key, err);
    }
    if (st) ox_tokenizer_close(&tok);
    *out = tok;
    return st;
}

ox_status ox_tok_open_borrowed(ox_tokenizer **out, ox_str file, ox_err *err)
{
    ox_tokenizer *tok = NULL;
    ox_status st = make(&tok, err);
    if (!st) st = unpack(tok, file, NULL, err);
    if (st) ox_tokenizer_close(&tok);
    *out = tok;
    return st;
}

void ox_tokenizer_close(ox_tokenizer **out)
{
    ox_tokenizer *tok = *out;
    if (!tok) return;
    ox_tok_let_go(tok);
    ox_mapping_close(&tok->file);
    for (size_t i = 0; i < tok->normalizers.n; i++)
        ox_regex_close(&tok->normalizers.p[i].regex);
    for (size_t i = 0; i < tok->pretokenizers.n; i++)
        ox_regex_close(&tok->pretokenizers.p[i].regex);
    for (size_t i = 0; i < tok->decoders.n; i++)
        ox_regex_close(&tok->decoders.p[i].regex);
    ox_vec_deinit(&tok->normalizers);
    ox_vec_deinit(&tok->pretokenizers);
    ox_vec_deinit(&tok->decoders);
    ox_vec_deinit(&tok->added);
    ox_map_deinit(&tok->added_by_content);
    ox_trie_deinit(&tok->added_raw);
    ox_trie_deinit(&tok->added_normal);
    ox_trie_deinit(&tok->trie);
    ox_vocab_deinit(&tok->vocab);
    ox_vec_deinit(&tok->before);
    ox_vec_deinit(&tok->after);
    ox_free(tok->added_of_id);
    ox_free(tok->merges);
    ox_free(tok->merged);
    ox_free(tok->merge_bits);
    ox_free(tok->char_ids);
    ox_free(tok->raw_ranks);
    if (tok->spare) ox_free(atomic_load(&tok->spare->cache));
    ox_free(tok->spare);
    ox_free(tok->scores);
    ox_free(tok->piece_bytes);
    ox_free(tok->piece_at);
    ox_arena_deinit(&tok->arena);
    ox_free(tok);
    *out = NULL;
}

size_t ox_tokenizer_n_vocab(const ox_tokenizer *tok)
{
    return tok->n_vocab;
}

static const ox_added *added_at(const ox_tokenizer *tok, int32_t id)
{
    if (id < 0 || (size_t)id >= tok->n_vocab || tok->added_of_id[id] < 0) return NULL;
    return &tok->added.p[tok->added_of_id[id]];
}

ox_str ox_tokenizer_token(const ox_tokenizer *tok, int32_t id)
{
    const ox_added *a = added_at(tok, id);
    return a ? a->content : ox_vocab_str(&tok->vocab, id);
}

ox_str ox_tok_shown(const ox_tokenizer *tok, int32_t id)
{
    const ox_added *a = added_at(tok, id);
    return a ? a->shown : ox_vocab_str(&tok->vocab, id);
}

bool ox_tok_is_hidden(const ox_tokenizer *tok, int32_t id)
{
    const ox_added *a = added_at(tok, id);
    return a && a->hidden;
}

int32_t ox_tokenizer_id(const ox_tokenizer *tok, ox_str token)
{
    uint64_t i;
    if (ox_map_get(&tok->added_by_content, token, &i)) return tok->added.p[i].id;
    return ox_vocab_find(&tok->vocab, token);
}

bool ox_tokenizer_is_special(const ox_tokenizer *tok, int32_t id)
{
    const ox_added *a = added_at(tok, id);
    return a && a->special;
}

bool ox_tokenizer_strips_first_space(const ox_tokenizer *tok)
{
    return tok->strips_first_space;
}

int32_t ox_tokenizer_special(const ox_tokenizer *tok, ox_special which)
{
    return which < OX_SPECIAL_COUNT ? tok->special[which] : -1;
}

bool ox_tokenizer_adds_bos(const ox_tokenizer *tok)
{
    return tok->before.n && tok->before.p[0] == tok->special[OX_SPECIAL_BOS];
}
