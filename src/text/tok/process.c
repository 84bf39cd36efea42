/* process.c - post-processors for one text: the ids that go in front of and behind it. */
#include "text/tok/tok_internal.h"

static ox_status no_memory(ox_err *err)
{
    return OX_FAIL(err, OX_NO_MEMORY, "out of memory for a post-processor");
}

/* Wraps (front, back) around what is there. */
static ox_status wrap(ox_tokenizer *tok, const ox_ids *front, const ox_ids *back, ox_err *err)
{
    if (!ox_vec_reserve(&tok->before, tok->before.n + front->n)) return no_memory(err);
    if (front->n) {
        memmove(tok->before.p + front->n, tok->before.p, tok->before.n * sizeof(*front->p));
        memcpy(tok->before.p, front->p, front->n * sizeof(*front->p));
        tok->before.n += front->n;
    }
    for (size_t i = 0; i < back->n; i++) {
        if (!ox_ids_push(&tok->after, back->p[i])) return no_memory(err);
    }
    return OX_OK;
}

static ox_status put_special(const ox_json *json, ox_str name, ox_ids *to, ox_err *err)
{
    const ox_json *ids =
        ox_json_get(ox_json_get_str(ox_json_get(json, "special_tokens"), name), "ids");
    if (!ox_json_is(ids, OX_JSON_ARRAY))
        return OX_FAIL(err, OX_BAD_FILE, "the template's special token \"%.*s\" has no ids",
                       OX_STR_ARGS(name));
    for (size_t i = 0; i < ox_json_n(ids); i++) {
        const ox_json *id = ox_json_at(ids, i);
        if (!ox_json_is_i64(id) || ox_json_i64(id) < 0 || ox_json_i64(id) > OX_VOCAB_MAX_ID)
            return OX_FAIL(err, OX_BAD_FILE, "the template's special token \"%.*s\" has a bad id",
                           OX_STR_ARGS(name));
        if (!ox_ids_push(to, (int32_t)ox_json_i64(id))) return no_memory(err);
    }
    return OX_OK;
}

static ox_status read_template(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    const ox_json *single;
    ox_status st = OX_OK;
    ox_ids ids[2] = {{0}, {0}};
    unsigned n_texts = 0;
    OX_TRY(ox_json_need(json, "single", OX_JSON_ARRAY, &single, err));
    for (size_t i = 0; i < ox_json_n(single); i++) {
        const ox_json *item = ox_json_at(single, i);
        if (ox_json_get(item, "Sequence")) {
            n_texts++;
            continue;
        }
        ox_str name;
        OX_TRY_GOTO(ox_json_need_str(item, "SpecialToken.id", &name, err));
        OX_TRY_GOTO(put_special(json, name, &ids[n_texts > 0], err));
    }
    if (n_texts == 1)
        st = wrap(tok, &ids[0], &ids[1], err);
    else
        st = OX_FAIL(err, OX_UNSUPPORTED,
                     "the post-processor's template holds the text %u times, "
                     "expected once",
                     n_texts);
fail:
    ox_vec_deinit(&ids[0]);
    ox_vec_deinit(&ids[1]);
    return st;
}

static ox_status read_trim(ox_tokenizer *tok, const ox_json *json, bool otherwise, ox_err *err)
{
    bool trims = otherwise;
    OX_TRY(ox_json_opt_bool(json, "trim_offsets", &trims, err));
    tok->trims = tok->trims || trims;
    return OX_OK;
}

/* cls text sep */
static ox_status read_pair(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    int64_t cls = 0, sep = 0;
    OX_TRY(read_trim(tok, json, false, err));
    OX_TRY(ox_json_need_i64(json, "cls.1", 0, OX_VOCAB_MAX_ID, &cls, err));
    OX_TRY(ox_json_need_i64(json, "sep.1", 0, OX_VOCAB_MAX_ID, &sep, err));
    int32_t front = (int32_t)cls, back = (int32_t)sep;
    return wrap(tok, &(ox_ids){&front, 1, 1}, &(ox_ids){&back, 1, 1}, err);
}

static ox_status read_byte_level(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    return read_trim(tok, json, true, err);
}

static const ox_processor_kind kinds[] = {
#define OX_PROCESSOR(name, read) {#name, read},
#include "text/tok/processors.def"
#undef OX_PROCESSOR
};

ox_status ox_tok_read_processors(ox_tokenizer *tok, const ox_json *json, int depth, ox_err *err)
{
    ox_str type;
    if (ox_json_is_null(json)) return OX_OK;
    OX_TRY(ox_json_need_str(json, "type", &type, err));
    if (ox_str_is(type, "Sequence") && depth < 8) {
        const ox_json *list = ox_json_get(json, "processors");
        for (size_t i = 0; i < ox_json_n(list) && i < OX_TOK_MAX_STEPS; i++)
            OX_TRY(ox_tok_read_processors(tok, ox_json_at(list, i), depth + 1, err));
        return OX_OK;
    }
    for (size_t i = 0; i < OX_COUNT(kinds); i++) {
        if (ox_str_is(type, kinds[i].name)) return kinds[i].read(tok, json, err);
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "post-processor \"%.*s\" is not supported",
                   OX_STR_ARGS(type));
}
