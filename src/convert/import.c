/* import.c - see import_internal.h. */
#include "convert/import_internal.h"

enum { CONTEXT_MAX = 1 << 20 }; /* rotary tables have a row a position */

ox_status ox_import_begin(ox_source **out, ox_source_form form, const char *path, ox_err *err)
{
    ox_source *s = ox_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return OX_FAIL(err, OX_NO_MEMORY, "out of memory for %s", path);
    s->form = form;
    s->facts.bos = -1;
    s->path = ox_strdup_n(path, strlen(path));
    ox_status st = s->path ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "out of memory for %s", path);
    if (!st) st = ox_graph_open(&s->graph, &s->arena, NULL, err);
    if (st) {
        ox_source_close(&s);
        return st;
    }
    *out = s;
    return OX_OK;
}

ox_status ox_import_take_mapping(ox_source *s, ox_mapping *m, ox_err *err)
{
    ox_source_file f = {.bytes = m->n};
    f.path = m->path ? ox_strdup_n(m->path, strlen(m->path)) : NULL;
    if (!f.path || !ox_vec_push(&s->files, f)) {
        ox_free(f.path);
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for the list of files");
    }
    if (!ox_vec_push(&s->mappings, *m))
        return OX_FAIL(err, OX_NO_MEMORY, "out of memory for the list of files");
    *m = (ox_mapping){0};
    return OX_OK;
}

ox_status ox_import_add_eos(ox_source *s, int64_t id, ox_err *err)
{
    ox_facts *f = &s->facts;
    if (id < 0 || id >= f->vocab_size) return OX_OK; /* files say -1 for none */
    for (int32_t i = 0; i < f->n_eos; i++)
        if (f->eos[i] == id) return OX_OK;
    if (f->n_eos == OX_EOS_MAX)
        return OX_FAIL(err, OX_LIMIT, "%s: more than %d end-of-text ids", s->path, OX_EOS_MAX);
    f->eos[f->n_eos++] = (int32_t)id;
    return OX_OK;
}

ox_status ox_import_copy(ox_source *s, ox_str bytes, ox_str *out, ox_err *err)
{
    char *p = ox_arena_copy(&s->arena, bytes.p ? bytes.p : "", bytes.n);
    if (!p) return OX_FAIL(err, OX_NO_MEMORY, "%s: out of memory", s->path);
    *out = (ox_str){p, bytes.n};
    return OX_OK;
}

ox_status ox_import_set_facts(ox_source *s, ox_hparams *hp, ox_err *err)
{
    if (hp->context > CONTEXT_MAX) {
        const int64_t stated = hp->context;
        hp->context = CONTEXT_MAX;
        if (ox_source_warn(s, "the declared context of %lld positions is cut to %d",
                           (long long)stated, CONTEXT_MAX))
            return OX_FAIL(err, OX_NO_MEMORY, "out of memory");
    }
    s->facts.type = ox_str_of(hp->arch->word);
    s->facts.context_length = hp->context;
    s->facts.vocab_size = hp->vocab;
    return OX_OK;
}

ox_status ox_import_shape(ox_weight *w, ox_str name, int32_t rank, const int64_t *dims, ox_err *err)
{
    w->name = name;
    if (rank < 1 || rank > 2)
        return OX_FAIL(err, OX_BAD_FILE, "tensor %.*s has %d dimensions, expected 1 or 2",
                       OX_STR_ARGS(name), rank);
    w->rows = rank == 2 ? dims[0] : 1;
    w->cols = dims[rank - 1];
    if (w->rows < 1 || w->cols < 1)
        return OX_FAIL(err, OX_BAD_FILE, "tensor %.*s is empty: [%lld, %lld]", OX_STR_ARGS(name),
                       (long long)w->rows, (long long)w->cols);
    return OX_OK;
}

ox_status ox_import_warn_unused(ox_source *s, size_t n, const bool *used,
                                ox_str (*name)(const void *file, size_t i), const void *file)
{
    size_t n_unused = 0;
    ox_str first = {0};
    for (size_t i = 0; i < n; i++) {
        if (used[i]) continue;
        if (!n_unused++) first = name(file, i);
    }
    if (!n_unused) return OX_OK;
    return ox_source_warn(s,
                          "%zu tensors of the file are not part of the model and were left out, "
                          "the first is %.*s",
                          n_unused, OX_STR_ARGS(first));
}
