/* hf_facts.c - what a Hugging Face folder says beside weights and sizes: the tokenizer's files,
 * chat templates, end-of-text ids and search settings (generation_config.json wins over
 * config.json). */
#include "convert/import_internal.h"

enum { FILE_MAX = 64 << 20 };

/* The file's bytes in the source's arena; empty when there is none. */
static ox_status read_file(ox_source *s, const char *dir, const char *name, ox_str *out,
                           ox_err *err)
{
    ox_buf text = {0};
    char *path = ox_path_join(dir, name);
    ox_status st = OX_OK;
    *out = (ox_str){"", 0};
    if (!path) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    if (ox_path_is_file(path)) {
        st = ox_file_read(&text, path, FILE_MAX, err);
        if (!st) st = ox_import_copy(s, ox_buf_view(&text), out, err);
    }
    ox_buf_deinit(&text);
    ox_free(path);
    return st;
}

static ox_status read_json(ox_source *s, ox_str text, const char *name, const ox_json **out,
                           ox_err *err)
{
    *out = NULL;
    if (!text.n) return OX_OK;
    const ox_status st = ox_json_parse_with(out, &s->arena, text, OX_JSON_NONFINITE, err);
    if (st) ox_err_prefix(err, "%s", name);
    return st;
}

static ox_status read_ends(ox_source *s, const ox_json *from, bool *stated, ox_err *err)
{
    const ox_json *eos = ox_json_get(from, "eos_token_id");
    if (ox_json_is_null(eos)) return OX_OK;
    *stated = true;
    if (ox_json_is_i64(eos)) return ox_import_add_eos(s, ox_json_i64(eos), err);
    for (size_t i = 0; i < ox_json_n(eos); i++)
        if (ox_json_is_i64(ox_json_at(eos, i)))
            OX_TRY(ox_import_add_eos(s, ox_json_i64(ox_json_at(eos, i)), err));
    return OX_OK;
}

static bool take_float(const ox_json *from, const char *key, float *out)
{
    const ox_json *v = ox_json_get(from, key);
    if (!ox_json_is(v, OX_JSON_NUMBER)) return false;
    *out = (float)ox_json_f64(v);
    return true;
}

static void read_search(ox_search *search, const ox_json *from)
{
    const ox_json *top_k = ox_json_get(from, "top_k"), *most = ox_json_get(from, "max_length");
    search->stated = from;
    search->do_sample = ox_json_true(ox_json_get(from, "do_sample"));
    search->has_temperature = take_float(from, "temperature", &search->temperature);
    search->has_top_p = take_float(from, "top_p", &search->top_p);
    search->has_min_p = take_float(from, "min_p", &search->min_p);
    search->has_repetition = take_float(from, "repetition_penalty", &search->repetition);
    search->has_top_k =
        ox_json_is_i64(top_k) && ox_json_i64(top_k) >= 0 && ox_json_i64(top_k) <= INT32_MAX;
    if (search->has_top_k) search->top_k = (int32_t)ox_json_i64(top_k);
    if (ox_json_is_i64(most) && ox_json_i64(most) > 0 && ox_json_i64(most) <= INT32_MAX)
        search->max_length = (int32_t)ox_json_i64(most);
}

/* A file of its own, a string, or a list of named ones. */
static ox_status read_templates(ox_source *s, const char *dir, const ox_json *config, ox_err *err)
{
    const ox_json *t = ox_json_get(config, "chat_template");
    ox_facts *f = &s->facts;
    f->chat_template = ox_json_str(t);
    for (size_t i = 0; ox_json_is(t, OX_JSON_ARRAY) && i < ox_json_n(t); i++) {
        const ox_str name = ox_json_str(ox_json_get(ox_json_at(t, i), "name"));
        const ox_str text = ox_json_str(ox_json_get(ox_json_at(t, i), "template"));
        if (ox_str_is(name, "default")) f->chat_template = text;
        if (ox_str_is(name, "tool_use")) f->tool_template = text;
    }
    ox_str file;
    OX_TRY(read_file(s, dir, "chat_template.jinja", &file, err));
    if (file.n) f->chat_template = file;
    return OX_OK;
}

ox_status ox_import_hf_facts(ox_source *s, const char *dir, const ox_json *config, ox_err *err)
{
    const ox_json *generation, *tokenizer, *text = ox_json_get(config, "text_config");
    ox_facts *f = &s->facts;
    ox_str bytes;
    bool stated = false;
    OX_TRY(read_file(s, dir, "generation_config.json", &bytes, err));
    OX_TRY(read_json(s, bytes, "generation_config.json", &generation, err));
    OX_TRY(read_ends(s, generation, &stated, err));
    if (!stated) OX_TRY(read_ends(s, config, &stated, err));
    if (!stated) OX_TRY(read_ends(s, text, &stated, err));
    const ox_json *const bos[] = {ox_json_get(generation, "bos_token_id"),
                                  ox_json_get(config, "bos_token_id"),
                                  ox_json_get(text, "bos_token_id")};
    for (size_t i = 0; i < OX_COUNT(bos); i++) {
        const int64_t id = ox_json_is_i64(bos[i]) ? ox_json_i64(bos[i]) : -1;
        if (f->bos < 0 && id >= 0 && id < f->vocab_size) f->bos = (int32_t)id;
    }
    read_search(&f->search, generation);
    OX_TRY(read_file(s, dir, "tokenizer.json", &f->tokenizer_json, err));
    OX_TRY(read_file(s, dir, "tokenizer_config.json", &f->tokenizer_config, err));
    OX_TRY(read_json(s, f->tokenizer_config, "tokenizer_config.json", &tokenizer, err));
    OX_TRY(read_templates(s, dir, tokenizer, err));
    return ox_import_copy(s, ox_str_of(ox_path_base(dir)), &f->name, err);
}
