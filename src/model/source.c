/* source.c - freeing a source and collecting its warnings; opening ONNX folders is elsewhere. */
#include "model/source.h"

#include "file/onnx.h"

void ox_source_close(ox_source **s)
{
    if (!s || !*s) return;
    ox_source *x = *s;
    ox_graph_close(&x->graph);
    if (x->onnx) {
        ox_onnx *onnx = x->onnx;
        ox_onnx_close(&onnx);
    }
    for (size_t i = 0; i < x->mappings.n; i++)
        ox_mapping_close(&x->mappings.p[i]);
    for (size_t i = 0; i < x->files.n; i++)
        ox_free(x->files.p[i].path);
    for (size_t i = 0; i < x->warnings.n; i++)
        ox_free(x->warnings.p[i]);
    ox_vec_deinit(&x->mappings);
    ox_vec_deinit(&x->files);
    ox_vec_deinit(&x->warnings);
    ox_arena_deinit(&x->arena);
    ox_free(x->path);
    ox_free(x);
    *s = NULL;
}

ox_status ox_source_warn(ox_source *s, const char *fmt, ...)
{
    ox_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    ox_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    char *line = b.failed ? NULL : ox_strdup_n(b.p, b.n);
    ox_buf_deinit(&b);
    if (line && ox_vec_push(&s->warnings, line)) return OX_OK;
    ox_free(line);
    return OX_NO_MEMORY;
}
