/* export.h - writes an imported model (a graph of terms) as an ORT-GenAI folder that ORT-GenAI
 * itself loads: model.onnx, model.onnx.data, genai_config.json and the tokenizer's files.
 *
 * Matrices are streamed one at a time, so memory stays bounded by one stripe of one matrix. A
 * weight keeps its exact values wherever ONNX Runtime has a form for them; the report says
 * what was chosen. The folder appears whole or not at all: everything is written beside
 * it and renamed at the end. */
#ifndef OX_CONVERT_EXPORT_H
#define OX_CONVERT_EXPORT_H
#include "convert/quantize.h"
#include "model/source.h"

typedef struct ox_export_options {
    size_t struct_size;
    ox_quant_choice quant;
    ox_dtype io;            /* F32, F16 or BF16: activations, caches, scales */
    int32_t accuracy_level; /* 0 to 4, of MatMulNBits */
    bool dry_run;           /* fills the report, writes nothing */
    bool each;              /* the report has a line for every matrix, too */
    void (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes); /* NULL allowed */
    void *user;
    const volatile int *cancel; /* polled between stripes, not 0 = stop; NULL allowed */
} ox_export_options;

#define OX_EXPORT_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .struct_size = sizeof(ox_export_options), .quant = OX_QUANT_CHOICE_INIT,                   \
        .io = OX_DTYPE_F32, .accuracy_level = 4                                                    \
    }

/* s is an import that keeps the file's formats: ox_import_gguf(), or ox_import_hf() with kind
 * OX_QUANT_KEEP; o->quant is applied while writing. Fails without leaving anything behind; a
 * folder `out_dir` that is neither empty nor an earlier result of this function is refused. The
 * report is text, one line for all matrices that went the same way and a summary. */
ox_status ox_export_genai(const ox_source *s, const char *out_dir, const ox_export_options *o,
                          ox_buf *report, ox_err *err);
#endif
