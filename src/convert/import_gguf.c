/* import_gguf.c - a GGUF file as a source: hyperparameters and facts from its metadata, weights as
 * views of its mapping. */
#include "convert/import.h"

#include "convert/gguf_vocab.h"
#include "convert/import_internal.h"

typedef struct lookup {
    const ox_gguf *g;
    bool *used; /* [g->n_tensors] */
} lookup;

static ox_status find(void *user, const char *name, ox_weight *out, bool *found, ox_err *err)
{
    lookup *l = user;
    const ox_gguf_tensor *t = ox_gguf_tensor_find(l->g, name);
    *found = t != NULL;
    if (!t) return OX_OK;
    OX_TRY(ox_gguf_tensor_need(l->g, name, &t, err)); /* refuses unknown types */
    l->used[t - l->g->tensors] = true;
    int32_t rank = t->rank;
    while (rank > 2 && t->dims[rank - 1] == 1)
        rank--;
    const int64_t dims[2] = {rank == 2 ? t->dims[1] : t->dims[0], t->dims[0]};
    *out = (ox_weight){.format = t->format, .data = t->data, .bytes = t->bytes};
    return ox_import_shape(out, t->name, rank, dims, err);
}

static ox_str tensor_name(const void *file, size_t i)
{
    return ((const ox_gguf *)file)->tensors[i].name;
}

static bool is_end_token(ox_str text)
{
    static const char *const ends[] = {
#define OX_END_TOKEN(text) text,
#include "convert/end_tokens.def"
#undef OX_END_TOKEN
    };
    for (size_t i = 0; i < OX_COUNT(ends); i++)
        if (ox_str_is(text, ends[i])) return true;
    return false;
}

/* The ids that metadata names, then control tokens that are known to end an answer. */
static ox_status read_ends(ox_source *s, const ox_gguf *g, ox_err *err)
{
    enum { CONTROL = 3, USER_DEFINED = 4 };
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < OX_COUNT(keys); i++)
        OX_TRY(ox_import_add_eos(s, ox_gguf_i64(g, keys[i], -1), err));
    const ox_gguf_value *tokens = ox_gguf_find(g, "tokenizer.ggml.tokens");
    const ox_gguf_value *types = ox_gguf_find(g, "tokenizer.ggml.token_type");
    for (size_t i = 0; tokens && types && i < tokens->n && i < types->n; i++) {
        const int64_t type = ox_gguf_item_i64(types, i);
        if (type != CONTROL && type != USER_DEFINED) continue;
        if (is_end_token(ox_gguf_item_str(tokens, i)))
            OX_TRY(ox_import_add_eos(s, (int64_t)i, err));
    }
    return OX_OK;
}

/* A tokenizer of an unknown kind is a warning: ids can still be run. */
static ox_status read_tokenizer(ox_source *s, const ox_gguf *g, ox_err *err)
{
    ox_buf json = {0}, config = {0};
    ox_err why = OX_ERR_INIT;
    ox_status st = ox_gguf_tokenizer(g, &json, &config, &why);
    if (st == OX_UNSUPPORTED) {
        st = ox_source_warn(s, "%s; only token ids can be used", why.msg);
        goto fail;
    }
    if (st) {
        OX_FAIL(err, st, "%s", why.msg);
        goto fail;
    }
    OX_TRY_GOTO(ox_import_copy(s, ox_buf_view(&json), &s->facts.tokenizer_json, err));
    OX_TRY_GOTO(ox_import_copy(s, ox_buf_view(&config), &s->facts.tokenizer_config, err));
fail:
    ox_buf_deinit(&json);
    ox_buf_deinit(&config);
    return st;
}

static ox_status read_facts(ox_source *s, const ox_gguf *g, ox_err *err)
{
    ox_facts *f = &s->facts;
    OX_TRY(read_ends(s, g, err));
    OX_TRY(read_tokenizer(s, g, err));
    const int64_t bos = ox_gguf_i64(g, "tokenizer.ggml.bos_token_id", -1);
    f->bos = bos >= 0 && bos < f->vocab_size ? (int32_t)bos : -1;
    OX_TRY(ox_import_copy(s, ox_gguf_str(g, "general.name"), &f->name, err));
    OX_TRY(ox_import_copy(s, ox_gguf_str(g, "tokenizer.chat_template"), &f->chat_template, err));
    return ox_import_copy(s, ox_gguf_str(g, "tokenizer.chat_template.tool_use"), &f->tool_template,
                          err);
}

static ox_status build(ox_source *s, ox_gguf *g, const ox_quant_choice *q, ox_err *err)
{
    lookup l = {.g = g, .used = ox_calloc(g->n_tensors ? g->n_tensors : 1, sizeof(bool))};
    const ox_tensors tensors = {.user = &l, .find = find};
    ox_hparams hp = {0};
    ox_status st;
    if (!l.used) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < g->n_tensors; i++) /* rotary factors are read with the metadata */
        l.used[i] = ox_str_starts(g->tensors[i].name, OX_STR("rope_"));
    OX_TRY_GOTO(ox_hparams_from_gguf(&hp, g, err));
    OX_TRY_GOTO(ox_import_set_facts(s, &hp, err));
    OX_TRY_GOTO(ox_decoder_build(s->graph, &hp, &tensors, q, err));
    OX_TRY_GOTO(read_facts(s, g, err));
    OX_TRY_GOTO(ox_import_warn_unused(s, g->n_tensors, l.used, tensor_name, g));
    OX_TRY_GOTO(ox_import_take_mapping(s, &g->file, err));
fail:
    ox_free(l.used);
    return st;
}

ox_status ox_import_gguf_as(ox_source **out, const char *path, const ox_quant_choice *q,
                            ox_err *err)
{
    ox_gguf *g = NULL;
    ox_source *s = NULL;
    ox_status st;
    *out = NULL;
    if (q) OX_TRY(ox_quant_choice_check(q, err));
    OX_TRY(ox_gguf_open(&g, path, err));
    OX_TRY_GOTO(ox_import_begin(&s, OX_FORM_GGUF, path, err));
    st = build(s, g, q, err);
    if (st) {
        ox_err_prefix(err, "%s", ox_path_base(path));
        goto fail;
    }
    ox_gguf_close(&g);
    *out = s;
    return OX_OK;
fail:
    ox_gguf_close(&g);
    ox_source_close(&s);
    return st;
}

ox_status ox_import_gguf(ox_source **out, const char *path, ox_err *err)
{
    return ox_import_gguf_as(out, path, NULL, err);
}
