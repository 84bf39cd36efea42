/* open.c - recognises which of the five forms MODEL is and opens it (docs/models.md). */
#include "convert/import.h"
#include "engine/engine_internal.h"

#include <string.h>

static bool has_suffix(const char *path, const char *suffix)
{
    return ox_str_ends(ox_str_of(path), ox_str_of(suffix));
}

ox_status ox_engine_want_path(const char *path, ox_err *err)
{
    if (ox_path_is_dir(path) || ox_path_is_file(path)) return OX_OK;
    if (ox_path_exists(path) && (has_suffix(path, ".gguf") || has_suffix(path, ".onnx")))
        return OX_OK; /* a pipe or a device: its reader refuses it by name */
    return OX_FAIL(err, OX_NOT_FOUND,
                   "%s: no such file or folder; expected a model folder, a .onnx or a .gguf file "
                   "(a name alone is looked for here, then in $OXGEN_MODELS)",
                   path);
}

static ox_status folder_has(const char *dir, const char *suffix, bool *found, ox_err *err)
{
    char **names;
    size_t n;
    *found = false;
    OX_TRY(ox_dir_list(&names, &n, dir, err));
    for (size_t i = 0; i < n; i++)
        *found |= has_suffix(names[i], suffix);
    ox_dir_list_free(names, n);
    return OX_OK;
}

/* Model hubs keep the graphs of a repository in a sub-folder of this name. */
static ox_status hub_folder_has_onnx(const char *dir, bool *found, ox_err *err)
{
    char *sub = ox_path_join(dir, "onnx");
    if (!sub) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    const ox_status st = ox_path_is_dir(sub) ? folder_has(sub, ".onnx", found, err) : OX_OK;
    ox_free(sub);
    return st;
}

static ox_status read_choice(ox_quant_choice *q, const ox_model_options *o, ox_err *err)
{
    *q = (ox_quant_choice)OX_QUANT_CHOICE_INIT;
    if (o->quant && !ox_quant_kind_of(ox_str_of(o->quant), &q->kind))
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "--quant %s is not known; expected keep, int4, int8, f16, bf16 or f32",
                       o->quant);
    if (o->quant_block) q->block = o->quant_block;
    if (o->head_bits) q->head_bits = o->head_bits;
    q->asym = o->quant_asym != 0;
    return ox_quant_choice_check(q, err);
}

static ox_status open_gguf(ox_source **out, const char *path, const ox_model_options *o,
                           ox_err *err)
{
    ox_quant_choice q;
    if (!o->quant || !strcmp(o->quant, "keep")) return ox_import_gguf(out, path, err);
    OX_TRY(read_choice(&q, o, err));
    return ox_import_gguf_as(out, path, &q, err);
}

ox_status ox_source_open(ox_source **out, const char *path, const ox_model_options *o, ox_err *err)
{
    bool genai = false, onnx = false, safetensors = false;
    ox_quant_choice q;

    OX_TRY(read_choice(&q, o, err));
    if (!ox_path_is_dir(path)) {
        OX_TRY(ox_engine_want_path(path, err));
        if (has_suffix(path, ".gguf")) return open_gguf(out, path, o, err);
        if (has_suffix(path, ".onnx") || has_suffix(path, ".json"))
            return ox_source_open_onnx(out, path, err);
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "%s is not a model; expected a folder with genai_config.json or a decoder "
                       ".onnx, a Hugging Face folder, or a .gguf file",
                       path);
    }
    OX_TRY(folder_has(path, "genai_config.json", &genai, err));
    OX_TRY(folder_has(path, ".onnx", &onnx, err));
    OX_TRY(folder_has(path, ".safetensors", &safetensors, err));
    if (!safetensors) OX_TRY(folder_has(path, ".safetensors.index.json", &safetensors, err));
    if (genai || onnx) return ox_source_open_onnx(out, path, err);
    if (safetensors) return ox_import_hf(out, path, &q, err);
    OX_TRY(hub_folder_has_onnx(path, &onnx, err));
    if (onnx) return ox_source_open_onnx(out, path, err);
    return OX_FAIL(err, OX_UNSUPPORTED,
                   "%s holds no model: expected genai_config.json, a decoder .onnx, or config.json "
                   "with *.safetensors; for a .gguf file name the file itself",
                   path);
}

ox_status ox_source_open_file(ox_source **out, char **onnx, const char *path, ox_err *err)
{
    bool has_onnx = false, safetensors = false;
    *out = NULL;
    *onnx = NULL;
    if (ox_path_is_dir(path)) {
        OX_TRY(folder_has(path, ".onnx", &has_onnx, err));
        if (!has_onnx) OX_TRY(folder_has(path, "genai_config.json", &has_onnx, err));
        if (!has_onnx) OX_TRY(hub_folder_has_onnx(path, &has_onnx, err));
        if (!has_onnx) OX_TRY(folder_has(path, ".safetensors", &safetensors, err));
    }
    if (has_suffix(path, ".gguf") || safetensors)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "%s is no ONNX file, and --backend ort runs nothing else: make one with "
                       "oxgen convert %s -o DIR first",
                       path, path);
    return ox_source_open_texts(out, onnx, path, err);
}
