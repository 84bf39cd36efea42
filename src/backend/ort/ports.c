/* ports.c - what a session says of its inputs and outputs, as the records of file/onnx.h, and
 * values as tensors. ONNX Runtime numbers element types as ONNX does. */
#include "backend/ort/session.h"

#include <string.h>

static ox_status read_name(ox_str *out, ox_arena *arena, const ox_ort *o, char *name, ox_err *err)
{
    const size_t n = strlen(name);
    char *copy = ox_arena_copy(arena, name, n);
    *out = (ox_str){copy, n};
    const ox_status st =
        ox_ort_check(o, o->api.AllocatorFree(o->allocator, name), "ONNX Runtime", err);
    return copy ? st : OX_FAIL(err, OX_NO_MEMORY, "no memory for a name");
}

static ox_status read_dims(ox_onnx_value *v, ox_arena *arena, const ox_ort *o,
                           const ox_ort_shape *shape, ox_err *err)
{
    static const char phrase[] = "ONNX Runtime does not tell a shape";
    int64_t dims[OX_RANK_MAX];
    const char *symbols[OX_RANK_MAX] = {0};
    size_t rank = 0;
    int type = 0;
    OX_TRY(ox_ort_check(o, o->api.GetTensorElementType(shape, &type), phrase, err));
    OX_TRY(ox_ort_check(o, o->api.GetDimensionsCount(shape, &rank), phrase, err));
    if (rank > OX_RANK_MAX)
        return OX_FAIL(err, OX_UNSUPPORTED, "port %.*s has %zu dimensions; expected at most %d",
                       OX_STR_ARGS(v->name), rank, OX_RANK_MAX);
    OX_TRY(ox_ort_check(o, o->api.GetDimensions(shape, dims, rank), phrase, err));
    OX_TRY(ox_ort_check(o, o->api.GetSymbolicDimensions(shape, symbols, rank), phrase, err));
    v->kind = OX_ONNX_TENSOR;
    v->dtype = (ox_dtype)type;
    v->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        v->dims[i].value = dims[i] < 0 ? -1 : dims[i];
        if (!symbols[i] || !*symbols[i]) continue;
        const size_t n = strlen(symbols[i]);
        v->dims[i].symbol = (ox_str){ox_arena_copy(arena, symbols[i], n), n};
        if (!v->dims[i].symbol.p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a name");
    }
    return OX_OK;
}

/* Takes type. */
static ox_status read_type(ox_onnx_value *v, ox_arena *arena, const ox_ort *o, ox_ort_type *type,
                           ox_err *err)
{
    const ox_ort_shape *shape = NULL;
    int kind = 0;
    v->kind = OX_ONNX_OTHER;
    v->rank = -1;
    ox_status st =
        ox_ort_check(o, o->api.GetOnnxTypeFromTypeInfo(type, &kind), "ONNX Runtime", err);
    if (!st && kind == OX_ORT_TYPE_TENSOR) {
        st = ox_ort_check(o, o->api.CastTypeInfoToTensorInfo(type, &shape), "ONNX Runtime", err);
        if (!st && shape) st = read_dims(v, arena, o, shape, err);
    }
    o->api.ReleaseTypeInfo(type);
    return st;
}

static ox_status read_port(ox_onnx_value *v, ox_arena *arena, const ox_ort *o,
                           const ox_ort_session *s, size_t i, bool input, ox_err *err)
{
    const ox_ort_api *a = &o->api;
    char *name = NULL;
    ox_ort_type *type = NULL;
    OX_TRY(ox_ort_check(o,
                        input ? a->SessionGetInputName(s, i, o->allocator, &name)
                              : a->SessionGetOutputName(s, i, o->allocator, &name),
                        "ONNX Runtime does not tell a name", err));
    OX_TRY(read_name(&v->name, arena, o, name, err));
    OX_TRY(ox_ort_check(o,
                        input ? a->SessionGetInputTypeInfo(s, i, &type)
                              : a->SessionGetOutputTypeInfo(s, i, &type),
                        "ONNX Runtime does not tell a type", err));
    return read_type(v, arena, o, type, err);
}

static ox_status read_list(ox_onnx_value **list, size_t *n, ox_arena *arena, const ox_ort *o,
                           const ox_ort_session *s, bool input, ox_err *err)
{
    size_t bytes;
    OX_TRY(ox_ort_check(
        o, input ? o->api.SessionGetInputCount(s, n) : o->api.SessionGetOutputCount(s, n),
        "ONNX Runtime", err));
    if (!ox_size_mul(*n, sizeof(**list), &bytes)) return OX_FAIL(err, OX_LIMIT, "too many ports");
    *list = ox_arena_take(arena, bytes);
    if (!*list) return OX_FAIL(err, OX_NO_MEMORY, "no memory for ports");
    memset(*list, 0, bytes);
    for (size_t i = 0; i < *n; i++)
        OX_TRY(read_port(&(*list)[i], arena, o, s, i, input, err));
    return OX_OK;
}

ox_status ox_ort_session_ports(ox_onnx_graph *g, ox_arena *arena, const ox_ort *o,
                               const ox_ort_session *s, ox_err *err)
{
    *g = (ox_onnx_graph){.n_nodes = 0};
    OX_TRY(read_list(&g->inputs, &g->n_inputs, arena, o, s, true, err));
    return read_list(&g->outputs, &g->n_outputs, arena, o, s, false, err);
}

ox_status ox_ort_value_view(ox_tensor *out, const ox_ort *o, ox_ort_value *v, ox_err *err)
{
    static const char phrase[] = "ONNX Runtime does not tell a value's shape";
    ox_ort_shape *shape = NULL;
    size_t rank = 0;
    int type = 0, kind = 0;
    *out = (ox_tensor){.rank = 0};
    OX_TRY(ox_ort_check(o, o->api.GetValueType(v, &kind), phrase, err));
    if (kind != OX_ORT_TYPE_TENSOR) return OX_FAIL(err, OX_UNSUPPORTED, "an output is no tensor");
    OX_TRY(ox_ort_check(o, o->api.GetTensorTypeAndShape(v, &shape), phrase, err));
    ox_status st = ox_ort_check(o, o->api.GetTensorElementType(shape, &type), phrase, err);
    if (!st) st = ox_ort_check(o, o->api.GetDimensionsCount(shape, &rank), phrase, err);
    if (!st && rank > OX_RANK_MAX)
        st = OX_FAIL(err, OX_UNSUPPORTED, "an output has %zu dimensions", rank);
    if (!st) st = ox_ort_check(o, o->api.GetDimensions(shape, out->dims, rank), phrase, err);
    o->api.ReleaseTensorTypeAndShapeInfo(shape);
    out->dtype = (ox_dtype)type;
    out->rank = (int32_t)rank;
    if (!st && type != OX_DTYPE_STRING)
        st = ox_ort_check(o, o->api.GetTensorMutableData(v, &out->data), phrase, err);
    return st;
}

ox_status ox_ort_value_over(ox_ort_value **out, const ox_ort *o, const ox_tensor *t, ox_err *err)
{
    size_t bytes;
    if (!ox_tensor_bytes(t, &bytes)) return OX_FAIL(err, OX_LIMIT, "a tensor is too large");
    return ox_ort_check(o,
                        o->api.CreateTensorWithDataAsOrtValue(o->cpu, t->data, bytes, t->dims,
                                                              (size_t)t->rank, (int)t->dtype, out),
                        "ONNX Runtime refuses a tensor", err);
}
