/* config.c - what tokenizer_config.json adds: the names of the special tokens, further added
 * tokens, and whether text is wrapped in begin- and end-of-text tokens. */
#include "text/tok/tok_internal.h"

static const char *const special_keys[OX_SPECIAL_COUNT] = {"bos_token", "eos_token", "pad_token",
                                                           "unk_token"};

/* A token is a string or an object with its content and flags. */
static ox_status read_token(const ox_json *j, ox_added *a, ox_err *err)
{
    *a = (ox_added){.id = -1, .special = true};
    if (ox_json_is(j, OX_JSON_STRING)) {
        a->content = ox_json_str(j);
        return OX_OK;
    }
    if (!ox_json_is(j, OX_JSON_OBJECT)) return OX_OK;
    OX_TRY(ox_json_opt_str(j, "content", &a->content, err));
    OX_TRY(ox_json_opt_bool(j, "special", &a->special, err));
    OX_TRY(ox_json_opt_bool(j, "normalized", &a->normalized, err));
    OX_TRY(ox_json_opt_bool(j, "single_word", &a->single_word, err));
    OX_TRY(ox_json_opt_bool(j, "lstrip", &a->lstrip, err));
    return ox_json_opt_bool(j, "rstrip", &a->rstrip, err);
}

static ox_status add_all(ox_tokenizer *tok, const ox_json *list, ox_err *err)
{
    ox_added a;
    for (size_t i = 0; i < ox_json_n(list); i++) {
        const ox_json_member *m = ox_json_member_at(list, i);
        OX_TRY(read_token(m ? &m->value : ox_json_at(list, i), &a, err));
        OX_TRY(ox_tok_add(tok, a, err));
    }
    return OX_OK;
}

static ox_status read_specials(ox_tokenizer *tok, const ox_json *config, ox_err *err)
{
    for (size_t k = 0; k < OX_SPECIAL_COUNT; k++) {
        ox_added a;
        OX_TRY(read_token(ox_json_get(config, special_keys[k]), &a, err));
        if (!a.content.n) continue;
        a.special = true;
        OX_TRY(ox_tok_add(tok, a, err));
        tok->special[k] = ox_tokenizer_id(tok, a.content);
    }
    return OX_OK;
}

/* Loaders of these classes rebuild the template even without being told to. */
static bool class_adds_bos(ox_str name)
{
    static const char *const classes[] = {
#define OX_BOS_CLASS(name) name,
#include "text/tok/bos_classes.def"
#undef OX_BOS_CLASS
    };
    for (size_t i = 0; i < OX_COUNT(classes); i++) {
        if (ox_str_is(name, classes[i])) return true;
    }
    return false;
}

static ox_status wrap_by_flags(ox_tokenizer *tok, const ox_json *config, ox_err *err)
{
    const ox_json *bos = ox_json_get(config, "add_bos_token");
    const ox_json *eos = ox_json_get(config, "add_eos_token");
    bool add_bos = false, add_eos = false;
    if (ox_json_is_null(bos) && ox_json_is_null(eos)) {
        if (tok->has_processor ||
            !class_adds_bos(ox_json_str(ox_json_get(config, "tokenizer_class"))))
            return OX_OK;
        add_bos = true;
    }
    OX_TRY(ox_json_opt_bool(config, "add_bos_token", &add_bos, err));
    OX_TRY(ox_json_opt_bool(config, "add_eos_token", &add_eos, err));
    tok->before.n = tok->after.n = 0;
    const int32_t *ids = tok->special;
    if (add_bos && ids[OX_SPECIAL_BOS] >= 0 && !ox_ids_push(&tok->before, ids[OX_SPECIAL_BOS]))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a post-processor");
    if (add_eos && ids[OX_SPECIAL_EOS] >= 0 && !ox_ids_push(&tok->after, ids[OX_SPECIAL_EOS]))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a post-processor");
    return OX_OK;
}

ox_status ox_tok_read_config(ox_tokenizer *tok, ox_str text, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *config = NULL;
    ox_status st = OX_OK;
    tok->special[OX_SPECIAL_UNK] = tok->unk >= 0 ? tok->unk : -1;
    if (!text.n) return OX_OK;
    OX_TRY_GOTO(ox_json_parse_with(&config, &arena, text, OX_JSON_NONFINITE, err));
    if (!ox_json_is(config, OX_JSON_OBJECT)) {
        st = OX_FAIL(err, OX_BAD_FILE, "must be an object, found %s", ox_json_kind_name(config));
        goto fail;
    }
    OX_TRY_GOTO(add_all(tok, ox_json_get(config, "added_tokens_decoder"), err));
    OX_TRY_GOTO(read_specials(tok, config, err));
    OX_TRY_GOTO(add_all(tok, ox_json_get(config, "additional_special_tokens"), err));
    OX_TRY_GOTO(add_all(tok, ox_json_get(config, "extra_special_tokens"), err));
    OX_TRY_GOTO(wrap_by_flags(tok, config, err));
fail:
    if (st) ox_err_prefix(err, "tokenizer_config.json");
    ox_arena_deinit(&arena);
    return st;
}
