/* model.c - picks the model's row and reads what all models share: the vocabulary. Files of old
 * have no type; their shape tells it. */
#include "text/tok/tok_internal.h"

#define OX_MODEL(name, read, run)                                                                  \
    ox_status read(ox_tokenizer *tok, const ox_json *json, ox_err *err);                           \
    ox_status run(ox_tok_work *w, ox_str piece);
#include "text/tok/models.def"
#undef OX_MODEL

static const ox_model_kind kinds[] = {
#define OX_MODEL(name, read, run) {#name, read, run},
#include "text/tok/models.def"
#undef OX_MODEL
};

const ox_model_kind *ox_tok_model_at(size_t number)
{
    return number < OX_COUNT(kinds) ? &kinds[number] : NULL;
}

size_t ox_tok_model_number(const ox_model_kind *kind)
{
    return (size_t)(kind - kinds);
}

bool ox_tok_model_needs_merges(size_t number)
{
    return kinds[number].run == ox_bpe_run;
}

bool ox_tok_model_needs_scores(size_t number)
{
    return kinds[number].run == ox_unigram_run;
}

static ox_str guess_type(const ox_json *json)
{
    if (ox_json_get(json, "merges")) return OX_STR("BPE");
    if (ox_json_is(ox_json_get(json, "vocab"), OX_JSON_ARRAY)) return OX_STR("Unigram");
    if (ox_json_get(json, "max_input_chars_per_word")) return OX_STR("WordPiece");
    return OX_STR("WordLevel");
}

ox_status ox_tok_read_model(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    ox_str type = guess_type(json);
    if (!ox_json_is(json, OX_JSON_OBJECT))
        return OX_FAIL(err, OX_BAD_FILE, "\"model\" must be an object, found %s",
                       ox_json_kind_name(json));
    OX_TRY(ox_json_opt_str(json, "type", &type, err));
    for (size_t i = 0; i < OX_COUNT(kinds); i++) {
        if (!ox_str_is(type, kinds[i].name)) continue;
        tok->model = &kinds[i];
        OX_TRY(kinds[i].read(tok, json, err));
        ox_tok_find_byte_tokens(tok);
        return OX_OK;
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "model \"%.*s\" is not supported", OX_STR_ARGS(type));
}

ox_status ox_tok_read_vocab_object(ox_tokenizer *tok, const ox_json *json, ox_err *err)
{
    const ox_json *vocab;
    size_t bytes = 0;
    OX_TRY(ox_json_need(json, "vocab", OX_JSON_OBJECT, &vocab, err));
    const size_t n = ox_json_n(vocab);
    for (size_t i = 0; i < n; i++)
        bytes += ox_json_member_at(vocab, i)->key.n;
    OX_TRY(ox_vocab_init(&tok->vocab, n, bytes, err));
    for (size_t i = 0; i < n; i++) {
        const ox_json_member *m = ox_json_member_at(vocab, i);
        if (!ox_json_is_i64(&m->value))
            return OX_FAIL(err, OX_BAD_FILE, "token \"%.*s\" must have an integer id, found %s",
                           OX_STR_ARGS(ox_json_str(&m->key)), ox_json_kind_name(&m->value));
        OX_TRY(ox_vocab_put(&tok->vocab, ox_json_str(&m->key), ox_json_i64(&m->value), err));
    }
    return OX_OK;
}

void ox_tok_find_byte_tokens(ox_tokenizer *tok)
{
    static const char hex[] = "0123456789ABCDEF";
    for (unsigned b = 0; b < 256; b++) {
        const char name[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
        tok->byte_ids[b] = ox_vocab_find(&tok->vocab, (ox_str){name, sizeof(name)});
    }
}

bool ox_ids_push(ox_ids *ids, int32_t id)
{
    return ox_vec_push(ids, id);
}

bool ox_tok_put_bytes(const ox_tokenizer *tok, ox_str s, ox_ids *ids)
{
    for (size_t i = 0; i < s.n; i++) {
        if (tok->byte_ids[(uint8_t)s.p[i]] < 0) return false;
    }
    if (!ox_vec_reserve(ids, ids->n + s.n)) return false;
    for (size_t i = 0; i < s.n; i++)
        ids->p[ids->n++] = tok->byte_ids[(uint8_t)s.p[i]];
    return true;
}

ox_status ox_tok_run_model(ox_tok_work *w)
{
    for (size_t i = 0; i < w->spans.n; i++) {
        const ox_span s = w->spans.p[i];
        const ox_str piece = {w->now.p + s.at, s.n};
        const size_t first = w->ids->n;
        OX_TRY(w->tok->model->run(w, piece));
        if (w->ranges && !ox_tok_measure(w, piece, first)) return ox_tok_no_memory(w);
    }
    return OX_OK;
}
