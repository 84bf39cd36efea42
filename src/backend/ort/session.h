/* session.h - one graph opened by ONNX Runtime: its settings, and its inputs and outputs as
 * records. */
#ifndef OX_BACKEND_ORT_SESSION_H
#define OX_BACKEND_ORT_SESSION_H
#include "backend/ort/ort.h"
#include "file/onnx.h"

/* *json gets the settings that were made, as an object. The caller releases the session. */
ox_status ox_ort_session_open(ox_ort_session **out, ox_buf *json, const ox_ort *o, const char *onnx,
                              const ox_ort_settings *s, ox_err *err);
/* Inputs and outputs of g from the session; names (NUL-terminated) and lists live in arena. */
ox_status ox_ort_session_ports(ox_onnx_graph *g, ox_arena *arena, const ox_ort *o,
                               const ox_ort_session *s, ox_err *err);
/* Element type and dimensions of a tensor value; data is the library's. */
ox_status ox_ort_value_view(ox_tensor *out, const ox_ort *o, ox_ort_value *v, ox_err *err);
/* A value over memory of ours. */
ox_status ox_ort_value_over(ox_ort_value **out, const ox_ort *o, const ox_tensor *t, ox_err *err);
#endif
