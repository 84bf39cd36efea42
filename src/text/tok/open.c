/* open.c - builds a tokenizer from its files and answers questions about tokens. The order matters:
 * the model first (added tokens look their ids up), normalizers before the automata of added
 * tokens, decoders before the bytes of the tokens. */
#include "base/hash.h"
#include "text/import/import.h"
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

static ox_status read_json(ox_tokenizer *tok, ox_str text, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_status st = OX_OK;
    OX_TRY_GOTO(ox_json_parse(&root, &arena, text, err));
    OX_TRY_GOTO(ox_tok_read_model(tok, ox_json_get(root, "model"), err));
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

ox_status ox_tokenizer_open(ox_tokenizer **out, ox_str tokenizer_json, ox_str config_json,
                            ox_err *err)
{
    ox_status st = OX_OK;
    ox_buf imported = {0}, config = {0};
    ox_tokenizer *tok = ox_calloc(1, sizeof(*tok));
    if (!tok) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
    tok->unk = tok->max_added = -1;
    tok->spare = ox_calloc(1, sizeof(*tok->spare));
    if (!tok->spare) {
        st = OX_FAIL(err, OX_NO_MEMORY, "out of memory for a tokenizer");
        goto fail;
    }
    for (size_t i = 0; i < OX_SPECIAL_COUNT; i++)
        tok->special[i] = -1;
    OX_TRY_GOTO(ox_tok_import(tokenizer_json, config_json, &imported, &config, err));
    if (imported.n) tokenizer_json = ox_buf_view(&imported);
    if (config.n) config_json = ox_buf_view(&config);
    OX_TRY_GOTO(read_json(tok, tokenizer_json, err));
    OX_TRY_GOTO(ox_tok_read_config(tok, config_json, err));
    OX_TRY_GOTO(ox_tok_finish_added(tok, err));
    OX_TRY_GOTO(index_ids(tok, err));
    OX_TRY_GOTO(ox_tok_build_pieces(tok, err));
fail:
    ox_buf_deinit(&imported);
    ox_buf_deinit(&config);
    if (st) ox_tokenizer_close(&tok);
    *out = tok;
    return st;
}

void ox_tokenizer_close(ox_tokenizer **out)
{
    ox_tokenizer *tok = *out;
    if (!tok) return;
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
