/* library.c - finds and opens libonnxruntime. */
#include "base/status.h"
#include "oxgen/arm.h"

ox_status ox_library_ort(ox_library *out, ox_err *err)
{
    *out = (ox_library){.api = 0};
    return OX_FAIL(err, OX_NO_DEVICE, "ONNX Runtime backend: not in this build");
}
