/* gguf_vocab.c - writes tokenizer.json from GGUF's arrays: model (vocabulary and merges), the
 * splitting that the file only names, added tokens by type, and the template around text.
 * SentencePiece vocabularies have scores instead of merges; see gguf_merges.c. */
#include "convert/gguf_vocab.h"

#include "base/json.h"
#include "convert/gguf_merges.h"

enum { MAX_SPLITS = 7, MAX_TOKENS = 1 << 20 };
enum { BOS = 1, WHOLE = 2, NFC = 4, BY_POSITION = 8, MARKS = 16 };
enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4 };

typedef struct split {
    const char *name;
    const char *patterns[MAX_SPLITS + 1];
} split;

static const split splits[] = {
#define OX_GGUF_SPLIT(id, ...) {#id, {__VA_ARGS__}},
#include "convert/gguf_pre.def"
};

typedef struct pre {
    const char *name, *split;
    unsigned flags;
} pre;

static const pre pres[] = {
#define OX_GGUF_PRE(name, split, flags) {name, #split, flags},
#include "convert/gguf_pre.def"
};

static const pre spms[] = {
#define OX_GGUF_SPM(name, flags) {name, "", flags},
#include "convert/gguf_spm.def"
#undef OX_GGUF_SPM
};

#define SPACE_MARK "\xe2\x96\x81"

static const split *find_split(const char *name)
{
    for (size_t i = 0; i < OX_COUNT(splits); i++) {
        if (!strcmp(splits[i].name, name)) return &splits[i];
    }
    return NULL;
}

const char *const *ox_gguf_split(const char *name)
{
    const split *s = find_split(name);
    return s ? s->patterns : NULL;
}

static ox_status find_pre(const ox_gguf_vocab *v, const pre **out, ox_err *err)
{
    for (size_t i = 0; i < OX_COUNT(pres); i++) {
        if (!ox_str_is(v->pre, pres[i].name)) continue;
        *out = &pres[i];
        return OX_OK;
    }
    return OX_FAIL(err, OX_UNSUPPORTED,
                   "the tokenizer splits text by \"%.*s\" (tokenizer.ggml.pre), "
                   "which is not known; convert the model from its original files instead",
                   OX_STR_ARGS(v->pre));
}

static void put_pair(ox_json_writer *w, const char *key, const char *text)
{
    ox_json_put_key(w, key);
    ox_json_put_z(w, text);
}

static void put_flag(ox_json_writer *w, const char *key, bool on)
{
    ox_json_put_key(w, key);
    ox_json_put_bool(w, on);
}

static void begin_typed(ox_json_writer *w, const char *type)
{
    ox_json_begin_object(w);
    put_pair(w, "type", type);
}

static void put_byte_level(ox_json_writer *w)
{
    begin_typed(w, "ByteLevel");
    put_flag(w, "add_prefix_space", false);
    put_flag(w, "trim_offsets", true);
    put_flag(w, "use_regex", false);
    ox_json_end_object(w);
}

static void put_splits(ox_json_writer *w, const split *s)
{
    begin_typed(w, "Sequence");
    ox_json_put_key(w, "pretokenizers");
    ox_json_begin_array(w);
    for (size_t i = 0; s && s->patterns[i]; i++) {
        begin_typed(w, "Split");
        ox_json_put_key(w, "pattern");
        ox_json_begin_object(w);
        put_pair(w, "Regex", s->patterns[i]);
        ox_json_end_object(w);
        put_pair(w, "behavior", "Isolated");
        put_flag(w, "invert", false);
        ox_json_end_object(w);
    }
    put_byte_level(w);
    ox_json_end_array(w);
    ox_json_end_object(w);
}

static void put_replace(ox_json_writer *w, const char *from, const char *to)
{
    begin_typed(w, "Replace");
    ox_json_put_key(w, "pattern");
    ox_json_begin_object(w);
    put_pair(w, "String", from);
    ox_json_end_object(w);
    put_pair(w, "content", to);
    ox_json_end_object(w);
}

static bool is_added(const ox_gguf_vocab *v, size_t id)
{
    const int32_t type = v->types ? v->types[id] : 1;
    return type == TYPE_UNKNOWN || type == TYPE_CONTROL || type == TYPE_USER ||
           (int64_t)id == v->bos || (int64_t)id == v->eos || (int64_t)id == v->unk;
}

static void put_added(ox_json_writer *w, const ox_gguf_vocab *v)
{
    ox_json_put_key(w, "added_tokens");
    ox_json_begin_array(w);
    for (size_t id = 0; id < v->n; id++) {
        if (!v->tokens[id].n || !is_added(v, id)) continue;
        ox_json_begin_object(w);
        ox_json_put_key(w, "id");
        ox_json_put_u64(w, id);
        ox_json_put_key(w, "content");
        ox_json_put_str(w, v->tokens[id]);
        put_flag(w, "single_word", false);
        put_flag(w, "lstrip", false);
        put_flag(w, "rstrip", false);
        put_flag(w, "normalized", false);
        put_flag(w, "special", !v->types || v->types[id] != TYPE_USER);
        ox_json_end_object(w);
    }
    ox_json_end_array(w);
}

static void put_item(ox_json_writer *w, const char *kind, ox_str id)
{
    ox_json_begin_object(w);
    ox_json_put_key(w, kind);
    ox_json_begin_object(w);
    ox_json_put_key(w, "id");
    ox_json_put_str(w, id);
    ox_json_put_key(w, "type_id");
    ox_json_put_i64(w, 0);
    ox_json_end_object(w);
    ox_json_end_object(w);
}

static void put_special(ox_json_writer *w, const ox_gguf_vocab *v, int64_t id)
{
    const ox_str token = v->tokens[id];
    ox_json_put_key_str(w, token);
    ox_json_begin_object(w);
    ox_json_put_key(w, "id");
    ox_json_put_str(w, token);
    ox_json_put_key(w, "ids");
    ox_json_begin_array(w);
    ox_json_put_i64(w, id);
    ox_json_end_array(w);
    ox_json_put_key(w, "tokens");
    ox_json_begin_array(w);
    ox_json_put_str(w, token);
    ox_json_end_array(w);
    ox_json_end_object(w);
}

static void put_template(ox_json_writer *w, const ox_gguf_vocab *v, bool bos, bool eos)
{
    ox_json_put_key(w, "post_processor");
    begin_typed(w, "TemplateProcessing");
    for (int pair = 0; pair < 2; pair++) {
        ox_json_put_key(w, pair ? "pair" : "single");
        ox_json_begin_array(w);
        for (int i = 0; i <= pair; i++) {
            if (bos) put_item(w, "SpecialToken", v->tokens[v->bos]);
            put_item(w, "Sequence", i ? OX_STR("B") : OX_STR("A"));
            if (eos) put_item(w, "SpecialToken", v->tokens[v->eos]);
        }
        ox_json_end_array(w);
    }
    ox_json_put_key(w, "special_tokens");
    ox_json_begin_object(w);
    if (bos) put_special(w, v, v->bos);
    if (eos && (!bos || v->eos != v->bos)) put_special(w, v, v->eos);
    ox_json_end_object(w);
    ox_json_end_object(w);
}

static void put_vocab(ox_json_writer *w, const ox_gguf_vocab *v, bool respell)
{
    ox_json_put_key(w, "vocab");
    ox_json_begin_object(w);
    for (size_t id = 0; id < v->n; id++) {
        ox_buf name = {0};
        ox_gguf_spell(v->tokens[id], id, respell, &name);
        ox_json_put_key_str(w, ox_buf_view(&name));
        ox_json_put_u64(w, id);
        if (name.failed) w->out->failed = true;
        ox_buf_deinit(&name);
    }
    ox_json_end_object(w);
}

static void begin_bpe(ox_json_writer *w, const ox_gguf_vocab *v, bool spm, bool whole)
{
    ox_json_put_key(w, "model");
    begin_typed(w, "BPE");
    put_pair(w, "dropout", NULL);
    ox_json_put_key(w, "unk_token");
    if (spm && v->unk >= 0)
        ox_json_put_str(w, v->tokens[v->unk]);
    else
        ox_json_put_null(w);
    put_pair(w, "continuing_subword_prefix", NULL);
    put_pair(w, "end_of_word_suffix", NULL);
    put_flag(w, "fuse_unk", spm);
    put_flag(w, "byte_fallback", spm);
    put_flag(w, "ignore_merges", whole);
}

static void begin_file(ox_json_writer *w, const ox_gguf_vocab *v)
{
    ox_json_begin_object(w);
    put_pair(w, "version", "1.0");
    put_pair(w, "truncation", NULL);
    put_pair(w, "padding", NULL);
    put_added(w, v);
}

static void put_config(const ox_gguf_vocab *v, bool bos, bool eos, ox_buf *out)
{
    ox_json_writer w = {.out = out, .indent = 2};
    const struct {
        const char *key;
        int64_t id;
    } specials[] = {
        {"bos_token", v->bos}, {"eos_token", v->eos}, {"unk_token", v->unk}, {"pad_token", v->pad}};
    ox_json_begin_object(&w);
    put_flag(&w, "add_bos_token", bos);
    put_flag(&w, "add_eos_token", eos);
    for (size_t i = 0; i < OX_COUNT(specials); i++) {
        ox_json_put_key(&w, specials[i].key);
        if (specials[i].id >= 0)
            ox_json_put_str(&w, v->tokens[specials[i].id]);
        else
            ox_json_put_null(&w);
    }
    put_flag(&w, "clean_up_tokenization_spaces", false);
    put_pair(&w, "tokenizer_class", "PreTrainedTokenizerFast");
    if (v->chat_template.n) {
        ox_json_put_key(&w, "chat_template");
        ox_json_put_str(&w, v->chat_template);
    }
    ox_json_end_object(&w);
}

static void put_type(ox_json_writer *w, const char *key, const char *type)
{
    ox_json_put_key(w, key);
    begin_typed(w, type);
    ox_json_end_object(w);
}

static void put_spm_normalizer(ox_json_writer *w, bool prefix)
{
    ox_json_put_key(w, "normalizer");
    begin_typed(w, "Sequence");
    ox_json_put_key(w, "normalizers");
    ox_json_begin_array(w);
    if (prefix) {
        begin_typed(w, "Prepend");
        put_pair(w, "prepend", SPACE_MARK);
        ox_json_end_object(w);
    }
    put_replace(w, " ", SPACE_MARK);
    ox_json_end_array(w);
    ox_json_end_object(w);
}

static void put_spm_decoder(ox_json_writer *w, bool prefix)
{
    ox_json_put_key(w, "decoder");
    begin_typed(w, "Sequence");
    ox_json_put_key(w, "decoders");
    ox_json_begin_array(w);
    put_replace(w, SPACE_MARK, " ");
    begin_typed(w, "ByteFallback");
    ox_json_end_object(w);
    begin_typed(w, "Fuse");
    ox_json_end_object(w);
    if (prefix) {
        begin_typed(w, "Strip");
        put_pair(w, "content", " ");
        ox_json_put_key(w, "start");
        ox_json_put_i64(w, 1);
        ox_json_put_key(w, "stop");
        ox_json_put_i64(w, 0);
        ox_json_end_object(w);
    }
    ox_json_end_array(w);
    ox_json_end_object(w);
}

static unsigned spm_flags(ox_str architecture)
{
    for (size_t i = 0; i < OX_COUNT(spms); i++) {
        if (ox_str_is(architecture, spms[i].name)) return spms[i].flags;
    }
    return 0;
}

static ox_status write_spm(const ox_gguf_vocab *v, ox_buf *json, ox_buf *config, ox_err *err)
{
    ox_json_writer w = {.out = json};
    const bool prefix = v->add_space_prefix != 0 && !v->n_merges;
    const bool by_position = (spm_flags(v->architecture) & BY_POSITION) != 0;
    const bool bos = v->bos >= 0 && v->add_bos != 0, eos = v->eos >= 0 && v->add_eos > 0;
    begin_file(&w, v);
    put_spm_normalizer(&w, prefix);
    put_pair(&w, "pre_tokenizer", NULL);
    put_template(&w, v, bos, eos);
    put_spm_decoder(&w, prefix);
    begin_bpe(&w, v, true, false);
    put_vocab(&w, v, by_position);
    if (v->n_merges)
        OX_TRY(ox_gguf_put_merges(&w, v, err));
    else
        OX_TRY(ox_gguf_put_merges_by_score(&w, v, by_position, err));
    ox_json_end_object(&w);
    ox_json_end_object(&w);
    put_config(v, bos, eos, config);
    return OX_OK;
}

static ox_status write_byte_level(const ox_gguf_vocab *v, ox_buf *json, ox_buf *config, ox_err *err)
{
    const pre *how = NULL;
    ox_json_writer w = {.out = json};
    OX_TRY(find_pre(v, &how, err));
    if (how->flags & MARKS) return write_spm(v, json, config, err);
    const bool bos = v->bos >= 0 && (v->add_bos < 0 ? (how->flags & BOS) != 0 : v->add_bos);
    const bool eos = v->eos >= 0 && v->add_eos > 0;
    begin_file(&w, v);
    if (how->flags & NFC)
        put_type(&w, "normalizer", "NFC");
    else
        put_pair(&w, "normalizer", NULL);
    ox_json_put_key(&w, "pre_tokenizer");
    put_splits(&w, find_split(how->split));
    put_template(&w, v, bos, eos);
    ox_json_put_key(&w, "decoder");
    put_byte_level(&w);
    begin_bpe(&w, v, false, (how->flags & WHOLE) != 0);
    put_vocab(&w, v, false);
    OX_TRY(ox_gguf_put_merges(&w, v, err));
    ox_json_end_object(&w);
    ox_json_end_object(&w);
    put_config(v, bos, eos, config);
    return OX_OK;
}

static ox_status check(const ox_gguf_vocab *v, ox_err *err)
{
    const int64_t ids[] = {v->bos, v->eos, v->unk, v->pad};
    if (!v->n || v->n > MAX_TOKENS)
        return OX_FAIL(err, OX_BAD_FILE, "the tokenizer has %zu tokens, expected 1 to %d", v->n,
                       (int)MAX_TOKENS);
    for (size_t i = 0; i < OX_COUNT(ids); i++) {
        if (ids[i] >= (int64_t)v->n)
            return OX_FAIL(err, OX_BAD_FILE,
                           "special token id %lld is beyond the %zu tokens of the "
                           "tokenizer",
                           (long long)ids[i], v->n);
    }
    return OX_OK;
}

ox_status ox_gguf_vocab_write(const ox_gguf_vocab *v, ox_buf *tokenizer_json,
                              ox_buf *tokenizer_config, ox_err *err)
{
    OX_TRY(check(v, err));
    if (ox_str_is(v->kind, "gpt2"))
        OX_TRY(write_byte_level(v, tokenizer_json, tokenizer_config, err));
    else if (ox_str_is(v->kind, "llama") || ox_str_is(v->kind, "gemma4"))
        OX_TRY(write_spm(v, tokenizer_json, tokenizer_config, err));
    else
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "a tokenizer of kind \"%.*s\" (tokenizer.ggml.model) is "
                       "not supported",
                       OX_STR_ARGS(v->kind));
    if (tokenizer_json->failed || tokenizer_config->failed)
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for the tokenizer");
    return OX_OK;
}
