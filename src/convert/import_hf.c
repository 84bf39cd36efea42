/* import_hf.c - a Hugging Face folder (config.json and safetensors) as a source; weights are views
 * of the mapped files, or re-made as the caller chooses. */
#include "convert/import.h"

#include "convert/import_internal.h"
#include "file/safetensors.h"

#include <stdio.h>

enum { CONFIG_MAX = 16 << 20 };

typedef struct lookup {
    const ox_safetensors *file;
    ox_arena *arena;
    bool *used;         /* [file->tensors.n] */
    const char *prefix; /* before every name but the head's */
    const char *head_prefix;
} lookup;

static bool in_mapping(const ox_safetensors *f, const void *data)
{
    for (size_t i = 0; i < f->files.n; i++) {
        const ox_mapping *m = &f->files.p[i];
        if ((uintptr_t)data - (uintptr_t)m->bytes < m->n) return true;
    }
    return false;
}

static ox_status find(void *user, const char *name, ox_weight *out, bool *found, ox_err *err)
{
    static const struct {
        ox_dtype dtype;
        ox_format format;
    } formats[] = {{OX_DTYPE_F32, OX_FORMAT_F32},
                   {OX_DTYPE_F16, OX_FORMAT_F16},
                   {OX_DTYPE_BF16, OX_FORMAT_BF16}};
    lookup *l = user;
    char full[256];
    const bool is_head = !strncmp(name, "lm_head.", 8);
    snprintf(full, sizeof full, "%s%s", is_head ? l->head_prefix : l->prefix, name);
    const ox_safetensors_tensor *t = ox_safetensors_find(l->file, full);
    *found = t != NULL;
    if (!t) return OX_OK;
    l->used[t - l->file->tensors.p] = true;
    *out = (ox_weight){.data = t->t.data, .bytes = t->bytes};
    for (size_t i = 0; i < OX_COUNT(formats); i++)
        if (t->t.dtype == formats[i].dtype) {
            out->format = formats[i].format;
            if (!in_mapping(l->file, out->data)) /* an unaligned file: its copy is short-lived */
                out->data = ox_arena_copy(l->arena, out->data, out->bytes);
            if (!out->data) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for tensor %s", full);
            ox_str kept = {ox_arena_copy(l->arena, t->name.p, t->name.n), t->name.n};
            if (!kept.p) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for tensor %s", full);
            return ox_import_shape(out, kept, t->t.rank, t->t.dims, err);
        }
    return OX_FAIL(err, OX_UNSUPPORTED, "tensor %s has type %.*s, expected F32, F16 or BF16", full,
                   OX_STR_ARGS(t->type));
}

static ox_str tensor_name(const void *file, size_t i)
{
    return ((const ox_safetensors *)file)->tensors.p[i].name;
}

/* Text models inside larger ones have longer names; the embedding tells which. */
static ox_status find_prefix(lookup *l, ox_err *err)
{
    static const char *const prefixes[][2] = {{"model.", ""},
                                              {"model.language_model.", ""},
                                              {"language_model.model.", "language_model."},
                                              {"", ""}};
    char name[256];
    for (size_t i = 0; i < OX_COUNT(prefixes); i++) {
        l->prefix = prefixes[i][0];
        l->head_prefix = prefixes[i][1];
        snprintf(name, sizeof name, "%sembed_tokens.weight", l->prefix);
        if (ox_safetensors_find(l->file, name)) return OX_OK;
    }
    return OX_FAIL(err, OX_BAD_FILE,
                   "tensor model.embed_tokens.weight is missing: the folder holds "
                   "no decoder's weights");
}

static void mark_leftovers(lookup *l)
{
    for (size_t i = 0; i < l->file->tensors.n; i++) {
        const ox_str name = l->file->tensors.p[i].name;
        if (ox_str_ends(name, OX_STR("rotary_emb.inv_freq"))) l->used[i] = true;
        if (ox_str_is(name, "lm_head.weight")) l->used[i] = true; /* a tied model may have it */
    }
}

static ox_status build(ox_source *s, ox_safetensors *file, const ox_json *config,
                       const ox_quant_choice *q, ox_err *err)
{
    const size_t n = file->tensors.n;
    lookup l = {.file = file, .arena = &s->arena, .used = ox_calloc(n ? n : 1, sizeof(bool))};
    const ox_tensors tensors = {.user = &l, .find = find};
    ox_hparams hp = {0};
    ox_status st;
    if (!l.used) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    OX_TRY_GOTO(find_prefix(&l, err));
    st = ox_hparams_from_config(&hp, config, &s->arena, err);
    if (!st) st = ox_import_set_facts(s, &hp, err);
    if (st && !strstr(err ? err->msg : "", "config.json")) ox_err_prefix(err, "config.json");
    if (st) goto fail;
    OX_TRY_GOTO(ox_decoder_build(s->graph, &hp, &tensors, q, err));
    mark_leftovers(&l);
    OX_TRY_GOTO(ox_import_warn_unused(s, n, l.used, tensor_name, file));
    for (size_t i = 0; i < file->files.n; i++)
        OX_TRY_GOTO(ox_import_take_mapping(s, &file->files.p[i], err));
fail:
    ox_free(l.used);
    return st;
}

static ox_status read_config(const ox_json **config, ox_source *s, const char *dir, ox_err *err)
{
    ox_buf text = {0};
    char *path = ox_path_join(dir, "config.json");
    ox_status st = path ? ox_file_read(&text, path, CONFIG_MAX, err)
                        : OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    if (!st) {
        st = ox_json_parse(config, &s->arena, ox_buf_view(&text), err);
        if (st) ox_err_prefix(err, "config.json");
    }
    ox_free(path);
    ox_buf_deinit(&text);
    return st;
}

ox_status ox_import_hf(ox_source **out, const char *dir, const ox_quant_choice *q, ox_err *err)
{
    static const ox_quant_choice usual = OX_QUANT_CHOICE_INIT;
    ox_source *s = NULL;
    ox_safetensors *file = NULL;
    const ox_json *config = NULL;
    ox_status st;
    *out = NULL;
    if (!q) q = &usual;
    OX_TRY(ox_quant_choice_check(q, err));
    OX_TRY(ox_import_begin(&s, OX_FORM_SAFETENSORS, dir, err));
    OX_TRY_GOTO(read_config(&config, s, dir, err));
    OX_TRY_GOTO(ox_safetensors_open(&file, dir, err));
    OX_TRY_GOTO(build(s, file, config, q, err));
    OX_TRY_GOTO(ox_import_hf_facts(s, dir, config, err));
    ox_safetensors_close(&file);
    *out = s;
    return OX_OK;
fail:
    ox_err_prefix(err, "%s", ox_path_base(dir));
    ox_safetensors_close(&file);
    ox_source_close(&s);
    return st;
}
