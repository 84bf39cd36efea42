/* convert.c - the public conversion: import that keeps the file's formats, then export. */
#include "convert/export.h"
#include "convert/import.h"
#include "engine/engine_internal.h"

#include <string.h>

void ox_convert_options_init(ox_convert_options *o)
{
    *o = (ox_convert_options){.struct_size = sizeof(*o), .accuracy = -1};
}

typedef struct watcher {
    const ox_convert_options *o;
    volatile int cancel;
} watcher;

static void on_progress(void *user, uint64_t done, uint64_t total)
{
    watcher *w = user;
    if (w->o->progress && w->o->progress(w->o->user, "convert", done, total)) w->cancel = 1;
}

static ox_status choose_type(const char *io, ox_dtype *out, ox_err *err)
{
    *out = OX_DTYPE_F32;
    if (!io || !strcmp(io, "f32")) return OX_OK;
    *out = !strcmp(io, "f16") ? OX_DTYPE_F16 : OX_DTYPE_BF16;
    if (!strcmp(io, "f16") || !strcmp(io, "bf16")) return OX_OK;
    return OX_FAIL(err, OX_BAD_ARGUMENT, "--io %s is not known; expected f32, f16 or bf16", io);
}

static ox_status read_options(ox_export_options *eo, const ox_convert_options *o, bool is_gguf,
                              ox_err *err)
{
    const char *quant = o->quant ? o->quant : is_gguf ? "keep" : "int4";
    if (!ox_quant_kind_of(ox_str_of(quant), &eo->quant.kind))
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "--quant %s is not known; expected keep, int4, int8, f16, bf16 or f32",
                       quant);
    if (o->block) eo->quant.block = o->block;
    if (o->head_bits) eo->quant.head_bits = o->head_bits;
    eo->quant.asym = o->asym != 0;
    if (o->accuracy >= 0) eo->accuracy_level = o->accuracy;
    eo->dry_run = o->dry_run != 0;
    eo->each = o->each != 0;
    OX_TRY(choose_type(o->io, &eo->io, err));
    return ox_quant_choice_check(&eo->quant, err);
}

/* A folder that is a model already, in the form that a conversion writes. */
static ox_status refuse_onnx(const char *src, ox_err *err)
{
    char *config = ox_path_join(src, "genai_config.json");
    if (!config) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    const bool there = ox_path_is_file(config);
    ox_free(config);
    if (!there && !ox_str_ends(ox_str_of(src), OX_STR(".onnx"))) return OX_OK;
    return OX_FAIL(err, OX_UNSUPPORTED,
                   "%s is an ONNX model already: convert reads GGUF files and safetensors folders",
                   src);
}

ox_status ox_convert(const char *src, const char *dir, const ox_convert_options *options,
                     char **report, ox_err *err)
{
    ox_convert_options o;
    ox_export_options eo = OX_EXPORT_OPTIONS_INIT;
    ox_quant_choice keep = OX_QUANT_CHOICE_INIT;
    ox_source *s = NULL;
    ox_buf text = {0};
    const bool is_gguf = ox_str_ends(ox_str_of(src), OX_STR(".gguf")) && !ox_path_is_dir(src);

    *report = NULL;
    ox_convert_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    watcher w = {&o, 0};
    keep.kind = OX_QUANT_KEEP;
    eo.progress = on_progress;
    eo.user = &w;
    eo.cancel = &w.cancel;
    ox_status st = read_options(&eo, &o, is_gguf, err);
    if (!st) st = ox_engine_want_path(src, err);
    if (!st) st = refuse_onnx(src, err);
    if (!st) st = is_gguf ? ox_import_gguf(&s, src, err) : ox_import_hf(&s, src, &keep, err);
    st = ox_refused(st, err);
    if (!st) st = ox_export_genai(s, dir, &eo, &text, err);
    ox_source_close(&s);
    if (!st && (text.failed || !ox_buf_reserve(&text, 1)))
        st = OX_FAIL(err, OX_NO_MEMORY, "no memory for the report");
    if (st) {
        ox_buf_deinit(&text);
        return st;
    }
    text.p[text.n] = 0;
    *report = text.p;
    return OX_OK;
}
