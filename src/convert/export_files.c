/* export_files.c - the files beside the graph: genai_config.json, the tokenizer's files (the
 * source's own bytes, or made of what it knows) and generation_config.json. */
#include "convert/export_internal.h"

#include "base/json.h"

typedef struct files {
    const ox_source *s;
    const char *dir;
    ox_arena arena;
    const ox_json *tokenizer; /* tokenizer.json; NULL = none */
} files;

static ox_status write_file(const files *f, const char *name, ox_str bytes, ox_err *err)
{
    char *path = ox_path_join(f->dir, name);
    if (!path) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    const ox_status st = ox_file_write_atomic(path, bytes, err);
    ox_free(path);
    return st;
}

static ox_status write_buf(const files *f, const char *name, ox_buf *b, ox_err *err)
{
    ox_buf_put_c(b, '\n');
    const ox_status st = b->failed ? OX_FAIL(err, OX_NO_MEMORY, "out of memory for %s", name)
                                   : write_file(f, name, ox_buf_view(b), err);
    ox_buf_deinit(b);
    return st;
}

static void put_int(ox_json_writer *w, const char *key, int64_t v)
{
    ox_json_put_key(w, key);
    ox_json_put_i64(w, v);
}

static void put_text(ox_json_writer *w, const char *key, const char *v)
{
    ox_json_put_key(w, key);
    ox_json_put_z(w, v);
}

/* A float32 in its shortest decimal form: 0.6, not 0.6000000238. */
static void put_float(ox_json_writer *w, const char *key, float v)
{
    ox_buf b = {0};
    double d = (double)v;
    for (int digits = 1; digits < 10; digits++) {
        ox_buf_clear(&b);
        ox_buf_printf(&b, "%.*g", digits, (double)v);
        if (b.failed || !ox_str_to_f64(ox_buf_view(&b), &d) || (float)d == v) break;
    }
    ox_buf_deinit(&b);
    ox_json_put_key(w, key);
    ox_json_put_f64(w, d);
}

static void put_eos(ox_json_writer *w, const ox_facts *f)
{
    ox_json_put_key(w, "eos_token_id");
    if (f->n_eos == 1) {
        ox_json_put_i64(w, f->eos[0]);
        return;
    }
    ox_json_begin_array(w);
    for (int32_t i = 0; i < f->n_eos; i++)
        ox_json_put_i64(w, f->eos[i]);
    ox_json_end_array(w);
}

/* The text of a token, out of tokenizer.json; empty = not found. */
static ox_str token_text(const files *f, int64_t id)
{
    const ox_json *added = ox_json_get(f->tokenizer, "added_tokens");
    for (size_t i = 0; i < ox_json_n(added); i++) {
        const ox_json *t = ox_json_at(added, i), *its = ox_json_get(t, "id");
        if (ox_json_is_i64(its) && ox_json_i64(its) == id)
            return ox_json_str(ox_json_get(t, "content"));
    }
    const ox_json *vocab = ox_json_path(f->tokenizer, "model.vocab");
    for (size_t i = 0; ox_json_is(vocab, OX_JSON_OBJECT) && i < ox_json_n(vocab); i++) {
        const ox_json_member *m = ox_json_member_at(vocab, i);
        if (ox_json_is_i64(&m->value) && ox_json_i64(&m->value) == id) return ox_json_str(&m->key);
    }
    return (ox_str){"", 0};
}

static void put_token(const files *f, ox_json_writer *w, const char *key, int64_t id)
{
    const ox_str text = id >= 0 ? token_text(f, id) : (ox_str){"", 0};
    if (!text.n) return;
    ox_json_put_key(w, key);
    ox_json_put_str(w, text);
}

static const ox_term *first_term(const ox_graph *g, ox_term_kind kind)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.p[i].dead && g->nodes.p[i].term && g->nodes.p[i].term->kind == kind)
            return g->nodes.p[i].term;
    return NULL;
}

static void put_decoder(ox_json_writer *w, const ox_graph *g)
{
    const ox_term *attend = first_term(g, OX_TERM_ATTEND), *embed = first_term(g, OX_TERM_EMBED);
    ox_json_put_key(w, "decoder");
    ox_json_begin_object(w);
    ox_json_put_key(w, "session_options");
    ox_json_begin_object(w);
    put_text(w, "log_id", "onnxruntime-genai");
    ox_json_put_key(w, "provider_options");
    ox_json_begin_array(w);
    ox_json_end_array(w);
    ox_json_end_object(w);
    put_text(w, "filename", "model.onnx");
    put_int(w, "head_size", attend ? attend->head_size : 0);
    put_int(w, "hidden_size", embed ? embed->weight->cols : 0);
    ox_json_put_key(w, "inputs");
    ox_json_begin_object(w);
    put_text(w, "input_ids", "input_ids");
    put_text(w, "attention_mask", "attention_mask");
    put_text(w, "past_key_names", "past_key_values.%d.key");
    put_text(w, "past_value_names", "past_key_values.%d.value");
    ox_json_end_object(w);
    ox_json_put_key(w, "outputs");
    ox_json_begin_object(w);
    put_text(w, "logits", "logits");
    put_text(w, "present_key_names", "present.%d.key");
    put_text(w, "present_value_names", "present.%d.value");
    ox_json_end_object(w);
    put_int(w, "num_attention_heads", attend ? attend->n_heads : 0);
    put_int(w, "num_hidden_layers", (int64_t)g->caches.n);
    put_int(w, "num_key_value_heads", attend ? attend->n_kv_heads : 0);
    ox_json_end_object(w);
}

static void put_search(ox_json_writer *w, const ox_facts *f)
{
    const ox_search *s = &f->search;
    ox_json_put_key(w, "search");
    ox_json_begin_object(w);
    ox_json_put_key(w, "do_sample");
    ox_json_put_bool(w, s->do_sample);
    ox_json_put_key(w, "early_stopping");
    ox_json_put_bool(w, true);
    put_float(w, "length_penalty", 1);
    put_int(w, "max_length", f->context_length);
    put_int(w, "min_length", 0);
    put_int(w, "no_repeat_ngram_size", 0);
    put_int(w, "num_beams", 1);
    put_int(w, "num_return_sequences", 1);
    ox_json_put_key(w, "past_present_share_buffer");
    ox_json_put_bool(w, true);
    put_float(w, "repetition_penalty", s->has_repetition ? s->repetition : 1);
    put_float(w, "temperature", s->has_temperature ? s->temperature : 1);
    put_int(w, "top_k", s->has_top_k ? s->top_k : 50);
    put_float(w, "top_p", s->has_top_p ? s->top_p : 1);
    ox_json_end_object(w);
}

static ox_status write_genai(const files *f, ox_err *err)
{
    const ox_facts *facts = &f->s->facts;
    ox_buf b = {0};
    ox_json_writer w = {.out = &b, .indent = 4};
    ox_json_begin_object(&w);
    ox_json_put_key(&w, "model");
    ox_json_begin_object(&w);
    if (facts->bos >= 0) put_int(&w, "bos_token_id", facts->bos);
    put_int(&w, "context_length", facts->context_length);
    put_decoder(&w, f->s->graph);
    if (facts->n_eos) {
        put_eos(&w, facts);
        put_int(&w, "pad_token_id", facts->eos[0]);
    }
    ox_json_put_key(&w, "type");
    ox_json_put_str(&w, facts->type);
    put_int(&w, "vocab_size", facts->vocab_size);
    ox_json_end_object(&w);
    put_search(&w, facts);
    ox_json_end_object(&w);
    return write_buf(f, "genai_config.json", &b, err);
}

static ox_status write_generation(const files *f, ox_err *err)
{
    const ox_facts *facts = &f->s->facts;
    const ox_search *s = &facts->search;
    ox_buf b = {0};
    ox_json_writer w = {.out = &b, .indent = 2};
    ox_json_begin_object(&w);
    if (facts->bos >= 0) put_int(&w, "bos_token_id", facts->bos);
    if (facts->n_eos) put_eos(&w, facts);
    ox_json_put_key(&w, "do_sample");
    ox_json_put_bool(&w, s->do_sample);
    if (s->has_temperature) put_float(&w, "temperature", s->temperature);
    if (s->has_top_k) put_int(&w, "top_k", s->top_k);
    if (s->has_top_p) put_float(&w, "top_p", s->top_p);
    if (s->has_min_p) put_float(&w, "min_p", s->min_p);
    if (s->has_repetition) put_float(&w, "repetition_penalty", s->repetition);
    ox_json_end_object(&w);
    return write_buf(f, "generation_config.json", &b, err);
}

static ox_status write_tokenizer_config(const files *f, ox_err *err)
{
    const ox_facts *facts = &f->s->facts;
    if (facts->tokenizer_config.n)
        return write_file(f, "tokenizer_config.json", facts->tokenizer_config, err);
    ox_buf b = {0};
    ox_json_writer w = {.out = &b, .indent = 2};
    ox_json_begin_object(&w);
    put_token(f, &w, "bos_token", facts->bos);
    put_token(f, &w, "eos_token", facts->n_eos ? facts->eos[0] : -1);
    put_token(f, &w, "pad_token", facts->n_eos ? facts->eos[0] : -1);
    ox_json_put_key(&w, "clean_up_tokenization_spaces");
    ox_json_put_bool(&w, false);
    put_int(&w, "model_max_length", facts->context_length);
    put_text(&w, "tokenizer_class", "PreTrainedTokenizerFast");
    if (facts->chat_template.n) {
        ox_json_put_key(&w, "chat_template");
        ox_json_put_str(&w, facts->chat_template);
    }
    ox_json_end_object(&w);
    return write_buf(f, "tokenizer_config.json", &b, err);
}

static ox_status write_special_tokens(const files *f, ox_err *err)
{
    const ox_facts *facts = &f->s->facts;
    ox_buf b = {0};
    ox_json_writer w = {.out = &b, .indent = 2};
    ox_json_begin_object(&w);
    put_token(f, &w, "bos_token", facts->bos);
    put_token(f, &w, "eos_token", facts->n_eos ? facts->eos[0] : -1);
    put_token(f, &w, "pad_token", facts->n_eos ? facts->eos[0] : -1);
    ox_json_end_object(&w);
    return write_buf(f, "special_tokens_map.json", &b, err);
}

static ox_status write_tokenizer(files *f, ox_buf *report, ox_err *err)
{
    const ox_facts *facts = &f->s->facts;
    if (!facts->tokenizer_json.n) {
        ox_buf_put_z(report, "warning: the source has no tokenizer that could be written; put a "
                             "tokenizer.json into the folder before running text through it\n");
        return OX_OK;
    }
    OX_TRY(ox_json_parse(&f->tokenizer, &f->arena, facts->tokenizer_json, err));
    OX_TRY(write_file(f, "tokenizer.json", facts->tokenizer_json, err));
    OX_TRY(write_tokenizer_config(f, err));
    OX_TRY(write_special_tokens(f, err));
    if (!facts->chat_template.n) return OX_OK;
    return write_file(f, "chat_template.jinja", facts->chat_template, err);
}

ox_status ox_export_files(const ox_source *s, const char *dir, ox_buf *report, ox_err *err)
{
    files f = {.s = s, .dir = dir};
    ox_status st = write_tokenizer(&f, report, err);
    if (!st) st = write_genai(&f, err);
    if (!st) st = write_generation(&f, err);
    ox_arena_deinit(&f.arena);
    return st;
}
