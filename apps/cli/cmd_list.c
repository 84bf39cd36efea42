/* cmd_list.c - models below a folder: by what their files look like, nothing is opened. */
#include "cli/cli.h"

#include "base/fs.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 6 };

typedef struct found {
    ox_buf *out;
    int json;
    size_t n;
} found;

static void report(found *f, const char *path, const char *form)
{
    if (f->json) {
        ox_buf_put_z(f->out, f->n ? ",{\"path\":" : "{\"path\":");
        cli_json_str(f->out, path, strlen(path));
        ox_buf_printf(f->out, ",\"form\":\"%s\"}", form);
    } else {
        ox_buf_printf(f->out, "%-12s %s\n", form, path);
    }
    f->n++;
}

static int has(char **names, size_t n, const char *suffix)
{
    for (size_t i = 0; i < n; i++)
        if (ox_str_ends(ox_str_of(names[i]), ox_str_of(suffix))) return 1;
    return 0;
}

static ox_status walk(found *f, const char *dir, int depth, ox_err *err)
{
    char **names;
    size_t n;
    OX_TRY(ox_dir_list(&names, &n, dir, err));
    if (has(names, n, "genai_config.json"))
        report(f, dir, "ort-genai");
    else if (has(names, n, ".onnx"))
        report(f, dir, "onnx");
    else if (has(names, n, ".safetensors"))
        report(f, dir, "safetensors");
    for (size_t i = 0; i < n && !cli_interrupted(); i++) {
        char *path = ox_path_join(dir, names[i]);
        if (!path) break;
        ox_err ignored = OX_ERR_INIT; /* folders we may not read are not models */
        if (ox_str_ends(ox_str_of(names[i]), OX_STR(".gguf")))
            report(f, path, "gguf");
        else if (names[i][0] != '.' && depth < MAX_DEPTH && ox_path_is_dir(path))
            walk(f, path, depth + 1, &ignored);
        ox_free(path);
    }
    ox_dir_list_free(names, n);
    return OX_OK;
}

int cmd_list(const cli_options *o)
{
    const char *dir = o->args.n ? o->args.p[0] : ox_env("OXGEN_MODELS");
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    found f = {&b, o->json, 0};

    if (!dir || !*dir) return cli_usage("name a folder: oxgen list DIR, or set OXGEN_MODELS");
    if (o->json) ox_buf_put_z(&b, "{\"models\":[");
    const ox_status st = walk(&f, dir, 0, &err);
    if (o->json) ox_buf_put_z(&b, "]}\n");
    int code = st ? cli_fail(&err) : cli_stdout(ox_buf_view(&b));
    if (!st && !f.n && !o->json) cli_note(o, "no models below %s", dir);
    ox_buf_deinit(&b);
    return code;
}
