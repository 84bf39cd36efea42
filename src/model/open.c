/* open.c - an ONNX folder on disk becomes a source: finds the decoder's file, reads the facts
 * around it, the records in it, the roles of its ports, and builds the graph.
 *
 *     PATH is                                   the decoder is
 *     folder with genai_config.json, or it      model.decoder.filename
 *     folder (or its onnx/), or a config in it  the only .onnx file
 *     a .onnx file                              that file
 *
 * The text files lie in the folder; for a graph in onnx/ also in the folder above, as model hubs
 * lay it out. */
#include "base/mem.h"
#include "graph/from_onnx.h"
#include "model/model_internal.h"
#include "ops/op.h"

#define GENAI "genai_config.json"

/* What is being opened; all paths owned. */
typedef struct place {
    char *dir;       /* folder of the text files */
    char *onnx;      /* the decoder; NULL until known */
    bool named_onnx; /* the user named a .onnx file */
} place;

static ox_status no_memory(ox_err *err)
{
    return OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
}

static ox_status has_file(const char *dir, const char *name, bool *yes, ox_err *err)
{
    char *path = ox_path_join(dir, name);
    if (!path) return no_memory(err);
    *yes = ox_path_is_file(path);
    ox_free(path);
    return OX_OK;
}

/* The .onnx files of a folder: how many, the names for a message, and one of them. */
static ox_status list_onnx(const char *dir, size_t *n_found, ox_buf *list, char **path, ox_err *err)
{
    char **names = NULL;
    size_t n = 0;
    *n_found = 0;
    OX_TRY(ox_dir_list(&names, &n, dir, err));
    for (size_t i = 0; i < n; i++) {
        if (!ox_str_ends(ox_str_of(names[i]), OX_STR(".onnx"))) continue;
        if (*n_found < 8) ox_buf_printf(list, "%s%s", *n_found ? ", " : "", names[i]);
        if (!*n_found) *path = ox_path_join(dir, names[i]);
        ++*n_found;
    }
    ox_dir_list_free(names, n);
    return *n_found && !*path ? no_memory(err) : OX_OK;
}

static ox_status find_only_onnx(place *p, ox_err *err)
{
    ox_buf list = {0};
    size_t n_found = 0;
    char *sub = ox_path_join(p->dir, "onnx");
    ox_status st = sub ? list_onnx(p->dir, &n_found, &list, &p->onnx, err) : no_memory(err);
    if (!st && !n_found && ox_path_is_dir(sub)) st = list_onnx(sub, &n_found, &list, &p->onnx, err);
    if (!st && !n_found)
        st = OX_FAIL(err, OX_NOT_FOUND, "%s: no .onnx file; expected a folder with a decoder graph",
                     p->dir);
    if (!st && n_found > 1)
        st = OX_FAIL(err, OX_BAD_ARGUMENT,
                     "%s: %zu .onnx files (%s%s) and no " GENAI
                     " that says which is the decoder; name the file itself",
                     p->dir, n_found, list.p ? list.p : "", n_found > 8 ? ", ..." : "");
    ox_buf_deinit(&list);
    ox_free(sub);
    return st;
}

/* Hub layout: dir/onnx/model.onnx with the text files in dir. */
static ox_status step_up(place *p, ox_err *err)
{
    static const char *const texts[] = {GENAI, "config.json", "tokenizer.json"};
    bool there = false;
    for (size_t i = 0; !there && i < OX_COUNT(texts); i++)
        OX_TRY(has_file(p->dir, texts[i], &there, err));
    if (there || strcmp(ox_path_base(p->dir), "onnx")) return OX_OK;
    char *up = ox_path_dir(p->dir);
    if (!up) return no_memory(err);
    ox_free(p->dir);
    p->dir = up;
    return OX_OK;
}

static ox_status place_of(place *p, const char *path, ox_err *err)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (ox_path_is_dir(path)) {
        p->dir = ox_strdup_n(path, n);
        return p->dir ? OX_OK : no_memory(err);
    }
    if (!ox_path_is_file(path))
        return OX_FAIL(err, OX_NOT_FOUND, "%s: no such file or folder; expected a model", path);
    p->dir = ox_path_dir(path);
    if (!p->dir) return no_memory(err);
    const ox_str name = ox_str_of(path);
    if (ox_str_ends(name, OX_STR(".json"))) return OX_OK;
    if (!ox_str_ends(name, OX_STR(".onnx")))
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "%s: expected a model folder, its genai_config.json, or a .onnx file", path);
    p->named_onnx = true;
    p->onnx = ox_strdup_n(path, strlen(path));
    return p->onnx ? step_up(p, err) : no_memory(err);
}

/* True when two paths end in the same file name; enough to tell files of one folder apart. */
static bool same_name(const char *path, ox_str name)
{
    const size_t n = strlen(path);
    return n >= name.n && !memcmp(path + n - name.n, name.p, name.n) &&
           (n == name.n || path[n - name.n - 1] == '/');
}

static ox_status read_genai(ox_source *s, place *p, char **tokenizer_dir, ox_err *err)
{
    const ox_json *root = NULL;
    ox_str decoder = {"", 0}, text_dir = {"", 0};
    OX_TRY(ox_model_read_json(s, p->dir, GENAI, &root, err));
    if (!root) return OX_FAIL(err, OX_BAD_FILE, GENAI " is empty");
    ox_status st = ox_model_read_genai(s, root, &decoder, &text_dir, err);
    char *path = NULL;
    if (!st) st = ox_path_beneath(&path, p->dir, decoder, err);
    if (!st && text_dir.n) st = ox_path_beneath(tokenizer_dir, p->dir, text_dir, err);
    if (st) ox_err_prefix(err, GENAI);
    if (!p->onnx) {
        p->onnx = path;
        path = NULL;
    }
    ox_free(path);
    return st;
}

/* A .onnx file that the user named may be another graph than the decoder of the config. */
static ox_status config_is_about(const place *p, bool *yes, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_buf text = {0};
    const ox_json *root = NULL;
    OX_TRY(has_file(p->dir, GENAI, yes, err));
    if (!*yes || !p->named_onnx) return OX_OK;
    char *path = ox_path_join(p->dir, GENAI);
    ox_status st = path ? ox_file_read(&text, path, OX_MODEL_MAX_CONFIG, err) : no_memory(err);
    if (!st) {
        st = ox_json_parse(&root, &arena, ox_buf_view(&text), NULL);
        const ox_str name = ox_json_str(ox_json_path(st ? NULL : root, "model.decoder.filename"));
        *yes = name.n && same_name(p->onnx, name);
        st = st == OX_NO_MEMORY ? no_memory(err) : OX_OK; /* a damaged config is not about it */
    }
    ox_free(path);
    ox_buf_deinit(&text);
    ox_arena_deinit(&arena);
    return st;
}

/* "models--org--name/snapshots/<revision>" of a hub cache reads "org/name". */
static ox_status display_name(ox_source *s, const char *dir, ox_err *err)
{
    const char prefix[] = "/models--", *at = strstr(dir, "/snapshots/"), *begin = NULL;
    const char *base = ox_path_base(dir);
    size_t n = strlen(base);
    for (const char *q = dir; at && (q = strstr(q, prefix)) && q < at; q++)
        begin = q + sizeof(prefix) - 1;
    if (begin) {
        base = begin;
        n = (size_t)(at - begin);
    }
    char *name = ox_arena_copy(&s->arena, base, n);
    if (!name) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a name");
    char *dashes = begin ? strstr(name, "--") : NULL;
    if (dashes) {
        dashes[0] = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
        n--;
    }
    s->facts.name = (ox_str){name, n};
    return OX_OK;
}

/* Moves the mappings of the records into the source, which can then drop their pages. */
static ox_status take_mappings(ox_source *s, ox_onnx *o, ox_err *err)
{
    OX_TRY(ox_model_list_file(s, o->file.path, o->file.n, err));
    for (size_t i = 0; i < o->external.n; i++)
        OX_TRY(ox_model_list_file(s, o->external.p[i].path, o->external.p[i].n, err));
    if (!ox_vec_reserve(&s->mappings, s->mappings.n + o->external.n + 1))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for the list of files");
    ox_vec_push(&s->mappings, o->file);
    o->file = (ox_mapping){0};
    for (size_t i = 0; i < o->external.n; i++)
        ox_vec_push(&s->mappings, o->external.p[i]);
    o->external.n = 0;
    return OX_OK;
}

static ox_status read_graph(ox_source *s, const char *path, ox_err *err)
{
    const ox_from_onnx_options options = {.keep = ox_op_keep};
    ox_onnx *o = NULL;
    OX_TRY(ox_onnx_open(&o, path, err));
    s->onnx = o;
    OX_TRY(take_mappings(s, o, err));
    const ox_source stated = *s;
    ox_status st = ox_model_find_ports(s, o->graph, err);
    if (!st) st = ox_model_warn_inputs(s, o->graph);
    if (!st && s->form == OX_FORM_GENAI) st = ox_model_check_ports(s, &stated);
    if (!st) st = ox_graph_from_onnx_with(&s->graph, &s->arena, o, &options, err);
    if (!st) st = ox_op_check_attrs(s->graph, err);
    if (st) ox_err_prefix(err, "%s", ox_path_base(path));
    return st;
}

/* Everything but the graph. */
static ox_status open_texts(ox_source *s, place *p, ox_err *err)
{
    bool genai = false;
    char *tokenizer_dir = NULL;
    OX_TRY(config_is_about(p, &genai, err));
    s->form = genai ? OX_FORM_GENAI : OX_FORM_ONNX;
    ox_status st = genai ? read_genai(s, p, &tokenizer_dir, err) : ox_model_read_hf(s, p->dir, err);
    if (!st && !p->onnx) st = find_only_onnx(p, err);
    if (!st) st = display_name(s, p->dir, err);
    if (!st) st = ox_model_read_tokenizer(s, tokenizer_dir ? tokenizer_dir : p->dir, err);
    ox_free(tokenizer_dir);
    return st;
}

/* onnx NULL: the graph is read; else it gets the decoder's path (owned) and the graph is not. */
static ox_status open_as(ox_source **out, char **onnx, const char *path, ox_err *err)
{
    place p = {0};
    *out = NULL;
    ox_source *s = ox_calloc(1, sizeof(*s));
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    s->facts.bos = -1;
    s->path = ox_strdup_n(path, strlen(path));
    ox_status st = s->path ? place_of(&p, path, err) : no_memory(err);
    if (!st) st = open_texts(s, &p, err);
    if (!st && !onnx) st = read_graph(s, p.onnx, err);
    if (!st && onnx) {
        *onnx = p.onnx;
        p.onnx = NULL;
    }
    ox_free(p.dir);
    ox_free(p.onnx);
    if (st)
        ox_source_close(&s);
    else
        *out = s;
    return st;
}

ox_status ox_source_open_onnx(ox_source **out, const char *path, ox_err *err)
{
    return open_as(out, NULL, path, err);
}

ox_status ox_source_open_texts(ox_source **out, char **onnx, const char *path, ox_err *err)
{
    *onnx = NULL;
    return open_as(out, onnx, path, err);
}

ox_status ox_source_find_ports(ox_source *s, const struct ox_onnx_graph *g, ox_err *err)
{
    const ox_source stated = *s;
    OX_TRY(ox_model_find_ports(s, g, err));
    return s->form == OX_FORM_GENAI ? ox_model_check_ports(s, &stated) : OX_OK;
}
