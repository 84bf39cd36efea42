/* import_internal.h - what both importers share: a source under construction. */
#ifndef OX_CONVERT_IMPORT_INTERNAL_H
#define OX_CONVERT_IMPORT_INTERNAL_H
#include "base/json.h"
#include "convert/decoder.h"
#include "model/source.h"

/* An empty source with an empty graph in its arena. */
ox_status ox_import_begin(ox_source **out, ox_source_form form, const char *path, ox_err *err);
/* Takes over the mapping (*m is closed afterwards) and lists its file. */
ox_status ox_import_take_mapping(ox_source *s, ox_mapping *m, ox_err *err);
ox_status ox_import_add_eos(ox_source *s, int64_t id, ox_err *err);
/* Copies bytes into the source's arena. */
ox_status ox_import_copy(ox_source *s, ox_str bytes, ox_str *out, ox_err *err);
/* Facts that hparams know; a context beyond reason is cut in both, with a warning. */
ox_status ox_import_set_facts(ox_source *s, ox_hparams *hp, ox_err *err);
/* config.json has been parsed: fills the rest from the folder's other files. */
ox_status ox_import_hf_facts(ox_source *s, const char *dir, const ox_json *config, ox_err *err);
/* A 1- or 2-dimensional tensor as a weight; longer shapes are refused. dims are in row-major
 * order (rows first). */
ox_status ox_import_shape(ox_weight *w, ox_str name, int32_t rank, const int64_t *dims,
                          ox_err *err);
/* Warns about tensors that nothing used. */
ox_status ox_import_warn_unused(ox_source *s, size_t n, const bool *used,
                                ox_str (*name)(const void *file, size_t i), const void *file);
#endif
