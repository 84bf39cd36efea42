/* import.h - makes a MODEL out of files that hold no graph: GGUF and safetensors (MODEL forms 4
 * and 5). The result is what model/ yields for ONNX folders, but its graph speaks terms from the
 * start (graph/terms.h), and its weights are views into the mapped files wherever the file's own
 * bytes are a format of tensor/formats.def. Read decoder.h next. */
#ifndef OX_CONVERT_IMPORT_H
#define OX_CONVERT_IMPORT_H
#include "convert/quantize.h"
#include "model/source.h"

/* The result is owned by the caller, see ox_source_close. Thread safe. An architecture that
 * arch.def does not list, a missing or ill-shaped tensor and a tensor type that formats.def does
 * not list are OX_UNSUPPORTED or OX_BAD_FILE, naming the thing. */
ox_status ox_import_gguf(ox_source **out, const char *path, ox_err *err);
/* q NULL keeps the file's formats; otherwise matrices are made anew as q says. */
ox_status ox_import_gguf_as(ox_source **out, const char *path, const ox_quant_choice *q,
                            ox_err *err);
/* dir has config.json and *.safetensors. q NULL means OX_QUANT_CHOICE_INIT. */
ox_status ox_import_hf(ox_source **out, const char *dir, const ox_quant_choice *q, ox_err *err);
#endif
