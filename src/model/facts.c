/* facts.c - what the text files beside a graph say: sizes and search settings (config.json,
 * generation_config.json), the tokenizer's files, chat templates, and end-of-text ids.
 *
 * Chat templates, strongest first: chat_template.jinja, chat_template.json, "chat_template" in
 * tokenizer_config.json (a string, or a list of named templates). */
#include "model/model_internal.h"

#include "base/mem.h"

ox_status ox_model_list_file(ox_source *s, const char *path, uint64_t bytes, ox_err *err)
{
    const ox_source_file f = {ox_strdup_n(path, strlen(path)), bytes};
    if (f.path && ox_vec_push(&s->files, f)) return OX_OK;
    ox_free(f.path);
    return OX_FAIL(err, OX_NO_MEMORY, "no memory for the list of files");
}

ox_status ox_model_read_text(ox_source *s, const char *dir, const char *name, ox_str *out,
                             ox_err *err)
{
    ox_buf text = {0};
    char *path = ox_path_join(dir, name);
    ox_status st = path ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    *out = (ox_str){"", 0};
    if (!st && ox_path_is_file(path)) {
        st = ox_file_read(&text, path, OX_MODEL_MAX_CONFIG, err);
        const char *copy = st ? NULL : ox_arena_copy(&s->arena, text.p, text.n);
        if (!st && !copy) st = OX_FAIL(err, OX_NO_MEMORY, "%s: no memory to keep it", path);
        if (!st) *out = (ox_str){copy, text.n};
        if (!st) st = ox_model_list_file(s, path, text.n, err);
    }
    ox_buf_deinit(&text);
    ox_free(path);
    return st;
}

ox_status ox_model_read_json(ox_source *s, const char *dir, const char *name, const ox_json **root,
                             ox_err *err)
{
    ox_str text;
    *root = NULL;
    OX_TRY(ox_model_read_text(s, dir, name, &text, err));
    if (!text.n) return OX_OK;
    ox_status st = ox_json_parse_with(root, &s->arena, text, OX_JSON_NONFINITE, err);
    if (!st && !ox_json_is(*root, OX_JSON_OBJECT))
        st = OX_FAIL(err, OX_BAD_FILE, "expected an object, found %s", ox_json_kind_name(*root));
    if (st) ox_err_prefix(err, "%s", name);
    return st;
}

/* The first of `keys` that is a positive integer, in config or in its text_config. */
static int64_t first_size(const ox_json *config, const char *const *keys, size_t n)
{
    const ox_json *const places[] = {config, ox_json_get(config, "text_config")};
    for (size_t p = 0; p < OX_COUNT(places); p++)
        for (size_t i = 0; i < n; i++) {
            const int64_t v = ox_json_i64(ox_json_get(places[p], keys[i]));
            if (v > 0 && v <= INT32_MAX) return v;
        }
    return 0;
}

static bool take_number(const ox_json *from, const char *key, float *out)
{
    const ox_json *v = ox_json_get(from, key);
    const double f = ox_json_f64(v);
    if (!ox_json_is(v, OX_JSON_NUMBER) || !(f >= 0 && f <= 1e6)) return false;
    *out = (float)f;
    return true;
}

static void read_search(ox_search *f, const ox_json *from)
{
    const int64_t top_k = ox_json_i64(ox_json_get(from, "top_k"));
    const int64_t most = ox_json_i64(ox_json_get(from, "max_length"));
    f->stated = from;
    f->do_sample = ox_json_true(ox_json_get(from, "do_sample"));
    f->has_temperature = take_number(from, "temperature", &f->temperature);
    f->has_top_p = take_number(from, "top_p", &f->top_p);
    f->has_min_p = take_number(from, "min_p", &f->min_p);
    f->has_repetition = take_number(from, "repetition_penalty", &f->repetition);
    f->has_top_k = top_k > 0 && top_k <= INT32_MAX;
    if (f->has_top_k) f->top_k = (int32_t)top_k;
    if (most > 0 && most <= INT32_MAX) f->max_length = (int32_t)most;
}

static void read_bos(ox_facts *f, const ox_json *from)
{
    const ox_json *v = ox_json_get(from, "bos_token_id");
    const int64_t id = ox_json_is_i64(v) ? ox_json_i64(v) : -1;
    if (f->bos < 0 && id >= 0 && id <= INT32_MAX) f->bos = (int32_t)id;
}

ox_status ox_model_read_hf(ox_source *s, const char *dir, ox_err *err)
{
    static const char *const context_keys[] = {
        "max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len",
        "max_sequence_length"};
    static const char *const vocab_keys[] = {"vocab_size", "padded_vocab_size", "n_vocab"};
    const ox_json *config = NULL, *generation = NULL;
    ox_facts *f = &s->facts;
    OX_TRY(ox_model_read_json(s, dir, "config.json", &config, err));
    OX_TRY(ox_model_read_json(s, dir, "generation_config.json", &generation, err));
    const ox_json *text = ox_json_get(config, "text_config");
    f->type = ox_json_str(ox_json_get(config, "model_type"));
    f->context_length = first_size(config, context_keys, OX_COUNT(context_keys));
    f->vocab_size = first_size(config, vocab_keys, OX_COUNT(vocab_keys));
    OX_TRY(ox_model_add_eos(s, ox_json_get(generation, "eos_token_id"), err));
    if (!f->n_eos) OX_TRY(ox_model_add_eos(s, ox_json_get(config, "eos_token_id"), err));
    if (!f->n_eos) OX_TRY(ox_model_add_eos(s, ox_json_get(text, "eos_token_id"), err));
    read_bos(f, generation);
    read_bos(f, config);
    read_bos(f, text);
    read_search(&f->search, generation);
    return OX_OK;
}

/* "</s>" or {"content": "</s>", ...} */
static ox_str token_text(const ox_json *token)
{
    return ox_json_is(token, OX_JSON_OBJECT) ? ox_json_str(ox_json_get(token, "content"))
                                             : ox_json_str(token);
}

/* The id of a special token by its text: added_tokens, then the vocabulary. NULL = not there. */
static const ox_json *find_token(const ox_json *tokenizer, ox_str text)
{
    const ox_json *added = ox_json_get(tokenizer, "added_tokens");
    for (size_t i = 0; text.n && ox_json_is(added, OX_JSON_ARRAY) && i < added->n; i++) {
        const ox_json *t = ox_json_at(added, i);
        if (ox_str_eq(ox_json_str(ox_json_get(t, "content")), text)) return ox_json_get(t, "id");
    }
    return text.n ? ox_json_get_str(ox_json_path(tokenizer, "model.vocab"), text) : NULL;
}

/* Parses the whole tokenizer, so only when no other file names an end. */
static ox_status eos_from_tokenizer(ox_source *s, const ox_json *config, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *tokenizer = NULL;
    const ox_str text = token_text(ox_json_get(config, "eos_token"));
    ox_status st = OX_OK;
    if (text.n && s->facts.tokenizer_json.n && s->facts.tokenizer_json.p[0] == '{') {
        st = ox_json_parse(&tokenizer, &arena, s->facts.tokenizer_json, err);
        if (st)
            ox_err_prefix(err, "tokenizer.json");
        else
            st = ox_model_add_eos(s, find_token(tokenizer, text), err);
    }
    ox_arena_deinit(&arena);
    return st;
}

static ox_status read_template_config(ox_source *s, const ox_json *template, ox_err *err)
{
    ox_facts *f = &s->facts;
    if (ox_json_is(template, OX_JSON_STRING)) f->chat_template = ox_json_str(template);
    for (size_t i = 0; ox_json_is(template, OX_JSON_ARRAY) && i < template->n; i++) {
        const ox_json *entry = ox_json_at(template, i);
        ox_str name = {"", 0}, text = {"", 0};
        OX_TRY(ox_json_opt_str(entry, "name", &name, err));
        OX_TRY(ox_json_opt_str(entry, "template", &text, err));
        if (ox_str_is(name, "default") || template->n == 1) f->chat_template = text;
        if (ox_str_is(name, "tool_use")) f->tool_template = text;
    }
    return OX_OK;
}

static ox_status read_templates(ox_source *s, const char *dir, const ox_json *config, ox_err *err)
{
    const ox_json *json = NULL;
    ox_str file;
    OX_TRY(read_template_config(s, ox_json_get(config, "chat_template"), err));
    OX_TRY(ox_model_read_json(s, dir, "chat_template.json", &json, err));
    OX_TRY(read_template_config(s, ox_json_get(json, "chat_template"), err));
    OX_TRY(ox_model_read_text(s, dir, "chat_template.jinja", &file, err));
    if (file.n) s->facts.chat_template = file;
    OX_TRY(ox_model_read_text(s, dir, "additional_chat_templates/tool_use.jinja", &file, err));
    if (file.n) s->facts.tool_template = file;
    return OX_OK;
}

/* Older folders keep the special tokens' names in special_tokens_map.json alone: what
 * tokenizer_config.json lacks is added to the bytes that go to the tokenizer. */
static ox_status merge_special_tokens(ox_source *s, const ox_json *config, const ox_json *map,
                                      const ox_json **merged, ox_err *err)
{
    ox_buf text = {0};
    ox_json_writer w = {.out = &text};
    bool more = false;
    *merged = config;
    for (size_t i = 0; i < ox_json_n(map); i++)
        more |= !ox_json_get_str(config, ox_json_str(&ox_json_member_at(map, i)->key));
    if (!more) return OX_OK;
    ox_json_begin_object(&w);
    for (size_t i = 0; i < ox_json_n(config); i++) {
        const ox_json_member *m = ox_json_member_at(config, i);
        ox_json_put_key_str(&w, ox_json_str(&m->key));
        ox_json_put_node(&w, &m->value);
    }
    for (size_t i = 0; i < ox_json_n(map); i++) {
        const ox_json_member *m = ox_json_member_at(map, i);
        if (ox_json_get_str(config, ox_json_str(&m->key))) continue;
        ox_json_put_key_str(&w, ox_json_str(&m->key));
        ox_json_put_node(&w, &m->value);
    }
    ox_json_end_object(&w);
    const char *copy = text.failed ? NULL : ox_arena_copy(&s->arena, text.p, text.n);
    s->facts.tokenizer_config = (ox_str){copy ? copy : "", copy ? text.n : 0};
    ox_buf_deinit(&text);
    if (!copy) return OX_FAIL(err, OX_NO_MEMORY, "no memory for the tokenizer's config");
    return ox_json_parse_with(merged, &s->arena, s->facts.tokenizer_config, OX_JSON_NONFINITE, err);
}

static ox_status warn_without_tokenizer(ox_source *s, const char *dir, ox_err *err)
{
    static const char *const others[] = {"vocab.json", "vocab.txt"};
    for (size_t i = 0; i < OX_COUNT(others); i++) {
        char *path = ox_path_join(dir, others[i]);
        if (!path) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
        const bool there = ox_path_is_file(path);
        ox_free(path);
        if (there)
            return ox_source_warn(s,
                                  "%s: %s but no tokenizer.json, which oxgen needs to read and "
                                  "print text (transformers' AutoTokenizer can save it)",
                                  dir, others[i]);
    }
    return ox_source_warn(s, "%s: no tokenizer.json, so only token ids can go in and out", dir);
}

/* SentencePiece and tiktoken, which the tokenizer knows by their bytes. */
static const char *const other_tokenizers[] = {"tokenizer.model", "tiktoken.model"};

/* Some folders name their tiktoken file after themselves: the first that ends so. */
static ox_status read_tiktoken(ox_source *s, const char *dir, ox_err *err)
{
    static const char end[] = ".tiktoken";
    char **names = NULL;
    size_t n = 0;
    ox_status st = OX_OK;
    if (ox_dir_list(&names, &n, dir, NULL)) return OX_OK; /* may be opened but not listed */
    for (size_t i = 0; i < n && !st && !s->facts.tokenizer_json.n; i++) {
        const size_t length = strlen(names[i]);
        if (length >= sizeof(end) && !strcmp(names[i] + length - (sizeof(end) - 1), end))
            st = ox_model_read_text(s, dir, names[i], &s->facts.tokenizer_json, err);
    }
    ox_dir_list_free(names, n);
    return st;
}

ox_status ox_model_read_tokenizer(ox_source *s, const char *dir, ox_err *err)
{
    const ox_json *config = NULL, *map = NULL;
    ox_facts *f = &s->facts;
    OX_TRY(ox_model_read_text(s, dir, "tokenizer.json", &f->tokenizer_json, err));
    for (size_t i = 0; i < OX_COUNT(other_tokenizers) && !f->tokenizer_json.n; i++)
        OX_TRY(ox_model_read_text(s, dir, other_tokenizers[i], &f->tokenizer_json, err));
    if (!f->tokenizer_json.n) OX_TRY(read_tiktoken(s, dir, err));
    OX_TRY(ox_model_read_text(s, dir, "tokenizer_config.json", &f->tokenizer_config, err));
    if (f->tokenizer_config.n) {
        const ox_status st =
            ox_json_parse_with(&config, &s->arena, f->tokenizer_config, OX_JSON_NONFINITE, err);
        if (st) {
            ox_err_prefix(err, "tokenizer_config.json");
            return st;
        }
    }
    OX_TRY(ox_model_read_json(s, dir, "special_tokens_map.json", &map, err));
    OX_TRY(merge_special_tokens(s, config, map, &config, err));
    OX_TRY(read_templates(s, dir, config, err));
    if (!f->tokenizer_json.n) OX_TRY(warn_without_tokenizer(s, dir, err));
    if (!f->n_eos) OX_TRY(eos_from_tokenizer(s, config, err));
    if (!f->n_eos)
        OX_TRY(ox_source_warn(s, "no file states an end-of-text id: answers end by length only"));
    return OX_OK;
}
