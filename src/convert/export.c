/* export.c - see export.h: the folder as a whole. Everything is written into DIR.partial-HASH
 * beside DIR, HASH being of what would be written: a run that was killed leaves it with a
 * note of how far it came, and the next run of the same conversion goes on from there. A run that
 * fails or is stopped removes it. */
#include "convert/export_internal.h"

#include "base/json.h"

#define STATE_FILE "oxgen_convert.json"
#define NOTE_FILE "progress.json"

enum { NOTE_EVERY = 256 << 20, STATE_MAX = 1 << 16 };

typedef struct target {
    char *dir; /* without a slash at its end */
    char *partial;
    uint64_t hash;
    bool replaces; /* dir exists and holds an earlier result */
} target;

static void target_deinit(target *t)
{
    ox_free(t->dir);
    ox_free(t->partial);
}

static ox_status check_options(const ox_source *s, const ox_export_options *o, ox_err *err)
{
    OX_TRY(ox_quant_choice_check(&o->quant, err));
    if (o->io != OX_DTYPE_F32 && o->io != OX_DTYPE_F16 && o->io != OX_DTYPE_BF16)
        return OX_FAIL(err, OX_BAD_ARGUMENT,
                       "the graph's floats cannot be %s: use f32, f16 or bf16",
                       ox_dtype_name(o->io));
    if (o->accuracy_level < 0 || o->accuracy_level > 4)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "accuracy level %d: use 0 to 4", o->accuracy_level);
    if (!ox_graph_is_terms(s->graph))
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "%s is an ONNX model already: convert reads GGUF files "
                       "and safetensors folders",
                       s->path);
    return OX_OK;
}

static uint64_t hash_of(const ox_source *s, ox_str model)
{
    ox_buf b = {0};
    ox_buf_printf(&b, "%016llx", (unsigned long long)ox_hash64(model.p, model.n));
    for (size_t i = 0; i < s->files.n; i++)
        ox_buf_printf(&b, "|%s|%llu", ox_path_base(s->files.p[i].path),
                      (unsigned long long)s->files.p[i].bytes);
    const uint64_t h = ox_hash64(b.p, b.n);
    ox_buf_deinit(&b);
    return h;
}

/* One integer or string of a small JSON file beside the data; false when there is none. */
static bool read_state(const char *dir, const char *file, const char *key, ox_buf *text,
                       int64_t *number)
{
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_buf bytes = {0};
    char *path = ox_path_join(dir, file);
    bool ok = path && ox_path_is_file(path) && !ox_file_read(&bytes, path, STATE_MAX, NULL) &&
              !ox_json_parse(&root, &arena, ox_buf_view(&bytes), NULL);
    const ox_json *v = ok ? ox_json_get(root, key) : NULL;
    if (text) {
        ok = ox_json_is(v, OX_JSON_STRING);
        if (ok) ox_buf_put_str(text, ox_json_str(v));
    } else {
        ok = ox_json_is_i64(v);
        if (ok) *number = ox_json_i64(v);
    }
    ox_free(path);
    ox_buf_deinit(&bytes);
    ox_arena_deinit(&arena);
    return ok;
}

static ox_status write_note(const char *dir, int64_t n_done, ox_err *err)
{
    ox_buf b = {0};
    char *path = ox_path_join(dir, NOTE_FILE);
    ox_buf_printf(&b, "{\"jobs_done\": %lld}\n", (long long)n_done);
    const ox_status st = path && !b.failed ? ox_file_write_atomic(path, ox_buf_view(&b), err)
                                           : OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    ox_buf_deinit(&b);
    ox_free(path);
    return st;
}

static ox_status write_state(const ox_source *s, const ox_export_options *o, const char *dir,
                             ox_err *err)
{
    ox_buf b = {0};
    ox_json_writer w = {.out = &b, .indent = 2};
    char *path = ox_path_join(dir, STATE_FILE);
    ox_json_begin_object(&w);
    ox_json_put_key(&w, "source");
    ox_json_put_z(&w, ox_path_base(s->path));
    ox_json_put_key(&w, "quant");
    ox_json_put_z(&w, ox_quant_kind_name(o->quant.kind));
    ox_json_put_key(&w, "block");
    ox_json_put_i64(&w, o->quant.block);
    ox_json_put_key(&w, "io");
    ox_json_put_z(&w, ox_dtype_name(o->io));
    ox_json_end_object(&w);
    ox_buf_put_c(&b, '\n');
    const ox_status st = path && !b.failed ? ox_file_write_atomic(path, ox_buf_view(&b), err)
                                           : OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    ox_buf_deinit(&b);
    ox_free(path);
    return st;
}

/* DIR is new, empty, or an earlier conversion of the same source. */
static ox_status check_dir(target *t, const ox_source *s, ox_err *err)
{
    char **names = NULL;
    size_t n = 0;
    ox_buf source = {0};
    if (ox_path_is_file(t->dir))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%s is a file, expected a folder or a new name",
                       t->dir);
    if (!ox_path_is_dir(t->dir)) return OX_OK;
    OX_TRY(ox_dir_list(&names, &n, t->dir, err));
    ox_dir_list_free(names, n);
    if (!n) return OX_OK;
    t->replaces = read_state(t->dir, STATE_FILE, "source", &source, NULL) &&
                  ox_str_is(ox_buf_view(&source), ox_path_base(s->path));
    ox_buf_deinit(&source);
    if (t->replaces) return OX_OK;
    return OX_FAIL(err, OX_BAD_ARGUMENT,
                   "folder %s is not empty and not an earlier conversion of "
                   "%s: give another folder or empty it",
                   t->dir, ox_path_base(s->path));
}

static ox_status want_parent(const char *dir, ox_err *err)
{
    char *above = ox_path_dir(dir);
    if (!above) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    const ox_status st =
        ox_path_is_dir(above)
            ? OX_OK
            : OX_FAIL(err, OX_NOT_FOUND, "%s cannot be made: there is no folder %s; make it first",
                      dir, above);
    ox_free(above);
    return st;
}

static ox_status target_init(target *t, const ox_source *s, const char *out_dir, ox_str model,
                             ox_err *err)
{
    size_t n = strlen(out_dir);
    ox_buf b = {0};
    while (n > 1 && out_dir[n - 1] == '/')
        n--;
    t->dir = ox_strdup_n(out_dir, n);
    t->hash = hash_of(s, model);
    ox_buf_printf(&b, "%.*s.partial-%08x", (int)n, out_dir, (unsigned)(t->hash >> 32));
    t->partial = b.failed ? NULL : ox_strdup_n(b.p, b.n);
    ox_buf_deinit(&b);
    if (n && t->dir) OX_TRY(want_parent(t->dir, err));
    if (!n || !t->dir || !t->partial)
        return OX_FAIL(err, n ? OX_NO_MEMORY : OX_BAD_ARGUMENT, "no folder to write to");
    return check_dir(t, s, err);
}

static ox_status check_room(const target *t, uint64_t bytes, ox_err *err)
{
    char *above = ox_path_dir(t->dir);
    if (!above) return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    const uint64_t room = ox_disk_free(above);
    const ox_status st = room >= bytes
                             ? OX_OK
                             : OX_FAIL(err, OX_IO,
                                       "%s needs %.2f MB and the disk has %.2f MB free: free "
                                       "some room or give a folder elsewhere",
                                       t->dir, (double)bytes / 1e6, (double)room / 1e6);
    ox_free(above);
    return st;
}

/* All arrays, from where an earlier run stopped. */
static ox_status write_data(const target *t, const ox_emitter *e, const ox_export_options *o,
                            ox_err *err)
{
    int64_t n_done = 0;
    uint64_t unnoted = 0;
    ox_outfile file = OX_OUTFILE_INIT;
    ox_stream s = {.file = &file, .o = o};
    char *path = ox_path_join(t->partial, OX_EXPORT_DATA);
    ox_status st = path ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    if (st || !read_state(t->partial, NOTE_FILE, "jobs_done", NULL, &n_done)) n_done = 0;
    if (n_done < 0 || n_done > (int64_t)e->jobs.n || !path || !ox_path_is_file(path)) n_done = 0;
    if (st) goto fail;
    if (!n_done) OX_TRY_GOTO(check_room(t, e->end, err));
    OX_TRY_GOTO(ox_outfile_open(&file, path, n_done > 0, err));
    OX_TRY_GOTO(ox_outfile_resize(&file, e->end, err));
    for (size_t i = 0; i < e->jobs.n; i++)
        s.total += e->jobs.p[i].bytes;
    for (int64_t i = 0; i < (int64_t)e->jobs.n; i++) {
        const ox_job *j = &e->jobs.p[i];
        if (i < n_done) {
            s.done += j->bytes;
            continue;
        }
        OX_TRY_GOTO(ox_job_run(j, &s, err));
        unnoted += j->bytes;
        if (unnoted < NOTE_EVERY) continue;
        OX_TRY_GOTO(ox_outfile_sync(&file, err));
        OX_TRY_GOTO(write_note(t->partial, i + 1, err));
        unnoted = 0;
    }
    st = ox_outfile_close(&file, err);
fail:
    ox_outfile_abandon(&file);
    ox_free(path);
    return st;
}

/* The finished folder takes its name; an earlier result goes away afterwards. */
static ox_status swap(const target *t, ox_err *err)
{
    ox_buf old = {0};
    ox_status st = OX_OK;
    if (!t->replaces) return ox_path_move(t->partial, t->dir, err);
    ox_buf_printf(&old, "%s.old-%08x", t->dir, (unsigned)(t->hash >> 32));
    if (old.failed) st = OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    if (!st) st = ox_path_move(t->dir, old.p, err);
    if (!st) {
        st = ox_path_move(t->partial, t->dir, err);
        if (st)
            (void)ox_path_move(old.p, t->dir, NULL);
        else
            ox_dir_remove(old.p);
    }
    ox_buf_deinit(&old);
    return st;
}

static ox_status write_folder(const target *t, const ox_source *s, const ox_emitter *e,
                              ox_str model, ox_err *err)
{
    char *graph = ox_path_join(t->partial, "model.onnx");
    char *note = ox_path_join(t->partial, NOTE_FILE);
    ox_status st = graph && note ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    if (st) goto fail;
    OX_TRY_GOTO(ox_dir_make(t->partial, err));
    OX_TRY_GOTO(write_data(t, e, e->o, err));
    OX_TRY_GOTO(ox_file_write_atomic(graph, model, err));
    OX_TRY_GOTO(ox_export_files(s, t->partial, e->report, err));
    OX_TRY_GOTO(write_state(s, e->o, t->partial, err));
    ox_file_remove(note);
    OX_TRY_GOTO(swap(t, err));
fail:
    if (st) ox_dir_remove(t->partial);
    ox_free(graph);
    ox_free(note);
    return st;
}

static bool has_codes(const ox_emitter *e)
{
    for (size_t i = 0; i < e->kinds.n; i++)
        if (e->kinds.p[i].form.nbits) return true;
    return false;
}

static void summarise(const ox_emitter *e, const ox_source *s, size_t model_bytes)
{
    for (size_t i = 0; i < s->warnings.n; i++)
        ox_buf_printf(e->report, "warning: %s\n", s->warnings.p[i]);
    ox_emit_report(e);
    ox_buf_printf(e->report, ", %.2f MB of graph\n", (double)model_bytes / 1e6);
    if (e->o->accuracy_level == 4 && has_codes(e))
        ox_buf_put_z(
            e->report,
            "accuracy level 4 (the default): ONNX Runtime may round activations to 8 bits, "
            "which is fast, but a small model can answer nonsense then; --accuracy 0 "
            "keeps them float\n");
}

ox_status ox_export_genai(const ox_source *s, const char *out_dir, const ox_export_options *o,
                          ox_buf *report, ox_err *err)
{
    static const ox_onnx_opset opsets[] = {{{"", 0}, 21}, {{"com.microsoft", 13}, 1}};
    const ox_onnx_model_info info = {.ir_version = 10,
                                     .producer = OX_STR("oxgen"),
                                     .graph_name = OX_STR("main_graph"),
                                     .opsets = opsets,
                                     .n_opsets = OX_COUNT(opsets)};
    ox_buf own_report = {0}, model = {0};
    ox_emitter e = {.g = s->graph, .o = o, .report = report ? report : &own_report};
    target t = {0};
    ox_status st;
    OX_TRY(check_options(s, o, err));
    OX_TRY_GOTO(ox_emit_graph(&e, err));
    OX_TRY_GOTO(ox_onnx_model_write(&model, &e.w, &info, err));
    summarise(&e, s, model.n);
    if (e.report->failed) OX_TRY_GOTO(OX_FAIL(err, OX_NO_MEMORY, "out of memory for the report"));
    if (!o->dry_run) {
        OX_TRY_GOTO(target_init(&t, s, out_dir, ox_buf_view(&model), err));
        OX_TRY_GOTO(write_folder(&t, s, &e, ox_buf_view(&model), err));
    }
fail:
    target_deinit(&t);
    ox_onnx_graph_writer_deinit(&e.w);
    ox_map_deinit(&e.constants);
    ox_map_deinit(&e.tensors);
    ox_vec_deinit(&e.jobs);
    ox_vec_deinit(&e.kinds);
    ox_arena_deinit(&e.arena);
    ox_buf_deinit(&own_report);
    ox_buf_deinit(&model);
    return st;
}
