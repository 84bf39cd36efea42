/* genai.c - genai_config.json: where the decoder is, what its ports are called, how it wants to be
 * sampled. Keys that are not known warn and are ignored; blocks that ask for another kind of model
 * are refused. */
#include "model/model_internal.h"

#include "base/mem.h"

static const char *const root_keys[] = {"model", "search", "speculative", "engine"};
static const char *const model_keys[] = {"type",
                                         "tokenizer_dir",
                                         "pad_token_id",
                                         "eos_token_id",
                                         "bos_token_id",
                                         "sep_token_id",
                                         "vocab_size",
                                         "context_length",
                                         "decoder",
                                         "decoder_start_token_id",
                                         "image_token_id",
                                         "audio_token_id",
                                         "boa_token_id",
                                         "video_token_id",
                                         "bot_token_id",
                                         "eot_token_id",
                                         "bor_token_id",
                                         "eor_token_id",
                                         "encoder",
                                         "embedding",
                                         "vision",
                                         "speech",
                                         "joiner",
                                         "vad",
                                         "mtp",
                                         "draft",
                                         "vision_start_token_id"};
static const char *const decoder_keys[] = {
    "filename",    "hidden_size",       "num_attention_heads", "num_key_value_heads",
    "head_size",   "num_hidden_layers", "session_options",     "run_options",
    "inputs",      "outputs",           "sliding_window",      "pipeline",
    "layer_types", "conv_cache_size",   "shared_initializers"};
static const char *const search_keys[] = {"max_length",
                                          "min_length",
                                          "batch_size",
                                          "num_beams",
                                          "num_return_sequences",
                                          "do_sample",
                                          "top_k",
                                          "top_p",
                                          "min_p",
                                          "temperature",
                                          "repetition_penalty",
                                          "no_repeat_ngram_size",
                                          "length_penalty",
                                          "early_stopping",
                                          "diversity_penalty",
                                          "past_present_share_buffer",
                                          "random_seed",
                                          "chunk_size",
                                          "blank_penalty"};

static ox_status warn_unknown(ox_source *s, const ox_json *object, const char *where,
                              const char *const *known, size_t n_known)
{
    for (size_t i = 0; i < ox_json_n(object); i++) {
        const ox_json_member *m = ox_json_member_at(object, i);
        bool found = !m;
        for (size_t k = 0; !found && k < n_known; k++)
            found = ox_str_is(ox_json_str(&m->key), known[k]);
        if (!found)
            OX_TRY(ox_source_warn(s, "genai_config.json: %s%.*s is not known and was ignored",
                                  where, OX_STR_ARGS(ox_json_str(&m->key))));
    }
    return OX_OK;
}

/* Config keys of ports, their defaults, and where the names go. */
static const struct {
    const char *path, *otherwise;
    size_t at;
} ports[] = {
    {"inputs.input_ids", "input_ids", offsetof(ox_source, in_ids)},
    {"inputs.attention_mask", "attention_mask", offsetof(ox_source, in_mask)},
    {"inputs.position_ids", "position_ids", offsetof(ox_source, in_positions)},
    {"inputs.past_key_names", "past_key_values.%d.key", offsetof(ox_source, in_past_k)},
    {"inputs.past_value_names", "past_key_values.%d.value", offsetof(ox_source, in_past_v)},
    {"outputs.logits", "logits", offsetof(ox_source, out_logits)},
    {"outputs.present_key_names", "present.%d.key", offsetof(ox_source, out_present_k)},
    {"outputs.present_value_names", "present.%d.value", offsetof(ox_source, out_present_v)},
};

static ox_status read_ports(ox_source *s, const ox_json *decoder, ox_err *err)
{
    for (size_t i = 0; i < 2; i++) {
        const ox_json *side = ox_json_get(decoder, i ? "outputs" : "inputs");
        if (side && !ox_json_is(side, OX_JSON_OBJECT))
            return OX_FAIL(err, OX_BAD_FILE, "model.decoder.%s must be an object, found %s",
                           i ? "outputs" : "inputs", ox_json_kind_name(side));
    }
    for (size_t i = 0; i < OX_COUNT(ports); i++) {
        ox_str name = ox_str_of(ports[i].otherwise);
        OX_TRY(ox_json_opt_str(decoder, ports[i].path, &name, err));
        memcpy((char *)s + ports[i].at, &name, sizeof(name));
    }
    return OX_OK;
}

ox_status ox_model_check_ports(ox_source *s, const ox_source *before)
{
    for (size_t i = 0; i < OX_COUNT(ports); i++) {
        ox_str stated, used;
        memcpy(&stated, (const char *)before + ports[i].at, sizeof(stated));
        memcpy(&used, (const char *)s + ports[i].at, sizeof(used));
        if (ox_str_eq(stated, used) || ox_str_is(stated, ports[i].otherwise) || !used.n) continue;
        OX_TRY(ox_source_warn(s,
                              "genai_config.json: the graph has no port '%.*s' (model.decoder.%s); "
                              "'%.*s' is used",
                              OX_STR_ARGS(stated), ports[i].path, OX_STR_ARGS(used)));
    }
    return OX_OK;
}

static ox_status refuse_other_kinds(const ox_json *model, const ox_json *decoder, ox_err *err)
{
    const char *const blocks[] = {"encoder", "joiner"};
    for (size_t i = 0; i < OX_COUNT(blocks); i++)
        if (ox_json_n(ox_json_get(model, blocks[i])))
            return OX_FAIL(err, OX_UNSUPPORTED,
                           "model.%s: a model of several networks; expected a decoder that reads "
                           "token ids",
                           blocks[i]);
    if (ox_json_n(ox_json_get(decoder, "pipeline")))
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "model.decoder.pipeline: a decoder split into stages; expected one graph");
    return OX_OK;
}

static bool take_number(const ox_json *search, const char *key, float *out)
{
    const ox_json *v = ox_json_get(search, key);
    const double f = ox_json_f64(v);
    if (!ox_json_is(v, OX_JSON_NUMBER) || !(f >= 0 && f <= 1e6)) return false;
    *out = (float)f;
    return true;
}

/* top_p 0 or 1, top_k 0 and repetition 1 switch the sampler off in this format. */
static ox_status read_search(ox_source *s, const ox_json *search, ox_err *err)
{
    ox_search *f = &s->facts.search;
    int64_t most = 0, top_k = 0;
    if (!ox_json_is_null(search) && !ox_json_is(search, OX_JSON_OBJECT))
        return OX_FAIL(err, OX_BAD_FILE, "search must be an object, found %s",
                       ox_json_kind_name(search));
    OX_TRY(ox_json_opt_bool(search, "do_sample", &f->do_sample, err));
    OX_TRY(ox_json_opt_i64(search, "max_length", 0, INT32_MAX, &most, err));
    OX_TRY(ox_json_opt_i64(search, "top_k", 0, INT32_MAX, &top_k, err));
    f->max_length = (int32_t)most;
    f->stated = search;
    f->is_genai = true;
    f->top_k = (int32_t)top_k;
    f->has_top_k = top_k > 0;
    f->has_temperature = take_number(search, "temperature", &f->temperature);
    f->has_top_p = take_number(search, "top_p", &f->top_p) && f->top_p > 0 && f->top_p < 1;
    f->has_min_p = take_number(search, "min_p", &f->min_p);
    f->has_repetition =
        take_number(search, "repetition_penalty", &f->repetition) && f->repetition > 0;
    return OX_OK;
}

ox_status ox_model_add_eos(ox_source *s, const ox_json *ids, ox_err *err)
{
    ox_facts *f = &s->facts;
    const size_t n = ox_json_is(ids, OX_JSON_ARRAY) ? ids->n : 1;
    for (size_t i = 0; i < n; i++) {
        const ox_json *id = ox_json_is(ids, OX_JSON_ARRAY) ? ox_json_at(ids, i) : ids;
        const int64_t v = ox_json_is_i64(id) ? ox_json_i64(id) : -1;
        bool seen = v < 0 || v > INT32_MAX;
        for (int32_t k = 0; !seen && k < f->n_eos; k++)
            seen = f->eos[k] == v;
        if (seen) continue;
        if (f->n_eos == OX_EOS_MAX)
            return OX_FAIL(err, OX_LIMIT, "eos_token_id: more than %d ids", OX_EOS_MAX);
        f->eos[f->n_eos++] = (int32_t)v;
    }
    return OX_OK;
}

static ox_status read_model(ox_source *s, const ox_json *model, ox_err *err)
{
    ox_facts *f = &s->facts;
    int64_t bos = -1;
    OX_TRY(ox_json_opt_str(model, "type", &f->type, err));
    OX_TRY(ox_json_opt_i64(model, "context_length", 0, INT32_MAX, &f->context_length, err));
    OX_TRY(ox_json_opt_i64(model, "vocab_size", 0, INT32_MAX, &f->vocab_size, err));
    OX_TRY(ox_json_opt_i64(model, "decoder.head_size", 0, INT32_MAX, &f->head_size, err));
    OX_TRY(ox_json_opt_i64(model, "bos_token_id", INT32_MIN, INT32_MAX, &bos, err));
    f->bos = bos >= 0 && (!f->vocab_size || bos < f->vocab_size) ? (int32_t)bos : -1;
    const ox_json *eos = ox_json_get(model, "eos_token_id");
    if (!ox_json_is_null(eos) && !ox_json_is(eos, OX_JSON_NUMBER) &&
        !ox_json_is(eos, OX_JSON_ARRAY))
        return OX_FAIL(err, OX_BAD_FILE,
                       "model.eos_token_id must be a number or a list of numbers, found %s",
                       ox_json_kind_name(eos));
    OX_TRY(ox_model_add_eos(s, eos, err));
    if (!f->n_eos) OX_TRY(ox_model_add_eos(s, ox_json_get(model, "pad_token_id"), err));
    return OX_OK;
}

ox_status ox_model_read_genai(ox_source *s, const ox_json *root, ox_str *decoder_file,
                              ox_str *tokenizer_dir, ox_err *err)
{
    const ox_json *model = NULL, *decoder = NULL, *search = ox_json_get(root, "search");
    OX_TRY(ox_json_need(root, "model", OX_JSON_OBJECT, &model, err));
    OX_TRY(ox_json_need(root, "model.decoder", OX_JSON_OBJECT, &decoder, err));
    OX_TRY(refuse_other_kinds(model, decoder, err));
    OX_TRY(ox_json_need_str(root, "model.decoder.filename", decoder_file, err));
    OX_TRY(ox_json_opt_str(model, "tokenizer_dir", tokenizer_dir, err));
    OX_TRY(read_model(s, model, err));
    s->facts.session_options = ox_json_get(decoder, "session_options");
    OX_TRY(read_ports(s, decoder, err));
    OX_TRY(read_search(s, search, err));
    OX_TRY(warn_unknown(s, root, "", root_keys, OX_COUNT(root_keys)));
    OX_TRY(warn_unknown(s, model, "model.", model_keys, OX_COUNT(model_keys)));
    OX_TRY(warn_unknown(s, decoder, "model.decoder.", decoder_keys, OX_COUNT(decoder_keys)));
    return warn_unknown(s, search, "search.", search_keys, OX_COUNT(search_keys));
}
