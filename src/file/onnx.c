/* onnx.c - see onnx.h. Opens files, reads ModelProto, and loose TensorProto, SequenceProto and
 * OptionalProto messages. Graphs: onnx_graph.c; tensors: onnx_tensor.c. */
#include "file/onnx.h"

#include "file/onnx_internal.h"

#include "base/mem.h"

ox_status ox_onnx_damaged(ox_onnx_reader *r, const ox_proto *p, const char *message)
{
    return OX_FAIL(r->err, OX_BAD_FILE, "damaged %s: %s at byte %zu of it", message, p->bad,
                   ox_proto_at(p));
}

ox_status ox_onnx_count(ox_onnx_reader *r, ox_str message, size_t counts[OX_ONNX_FIELDS])
{
    ox_proto w = ox_proto_of(message);
    memset(counts, 0, OX_ONNX_FIELDS * sizeof(counts[0]));
    for (ox_proto_field f; ox_proto_next(&w, &f);)
        if (f.number < OX_ONNX_FIELDS && f.wire == OX_PROTO_LEN) counts[f.number]++;
    return w.bad ? ox_onnx_damaged(r, &w, "message") : OX_OK;
}

ox_status ox_onnx_want(ox_onnx_reader *r, const ox_proto_field *f, int32_t wire)
{
    if (f->wire == wire) return OX_OK;
    return OX_FAIL(r->err, OX_BAD_FILE, "field %u has wire type %d; expected %d", f->number,
                   (int)f->wire, (int)wire);
}

ox_status ox_onnx_take_plain(ox_onnx_reader *r, size_t n, size_t size, void *out)
{
    void *p = n ? ox_arena_take_n(r->arena, n, size) : NULL;
    memcpy(out, &p, sizeof(p));
    if (n && !p) return OX_FAIL(r->err, OX_NO_MEMORY, "no memory for %zu items", n);
    return OX_OK;
}

ox_status ox_onnx_take(ox_onnx_reader *r, size_t n, size_t size, void *out)
{
    if (n > OX_ONNX_MAX_RECORDS - r->records)
        return OX_FAIL(r->err, OX_LIMIT, "more than %d nodes, values, tensors and attributes",
                       OX_ONNX_MAX_RECORDS);
    r->records += n;
    return ox_onnx_take_plain(r, n, size, out);
}

enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_FUNCTION = 25
};

static ox_status read_model_field(ox_onnx_reader *r, const ox_proto_field *f, ox_onnx *m)
{
    switch (f->number) {
    case MODEL_IR:
        m->ir_version = (int64_t)f->value;
        return ox_onnx_want(r, f, OX_PROTO_VARINT);
    case MODEL_PRODUCER:
        m->producer = f->bytes;
        return ox_onnx_want(r, f, OX_PROTO_LEN);
    case MODEL_PRODUCER_VERSION:
        m->producer_version = f->bytes;
        return ox_onnx_want(r, f, OX_PROTO_LEN);
    case MODEL_GRAPH:
        OX_TRY(ox_onnx_want(r, f, OX_PROTO_LEN));
        if (m->graph) return OX_FAIL(r->err, OX_BAD_FILE, "two graphs; expected one");
        OX_TRY(ox_onnx_take(r, 1, sizeof(*m->graph), &m->graph));
        return ox_onnx_read_graph(r, f->bytes, m->graph);
    case MODEL_OPSET:
        OX_TRY(ox_onnx_want(r, f, OX_PROTO_LEN));
        return ox_onnx_read_opset(r, f->bytes, &m->opsets[m->n_opsets++]);
    case MODEL_FUNCTION:
        OX_TRY(ox_onnx_want(r, f, OX_PROTO_LEN));
        return ox_onnx_read_function(r, f->bytes, &m->functions[m->n_functions++]);
    default:
        return OX_OK;
    }
}

static ox_status read_model(ox_onnx *m, ox_str bytes, const char *dir, ox_err *err)
{
    ox_onnx_reader r = {.arena = &m->arena, .model = m, .dir = dir, .err = err};
    size_t n[OX_ONNX_FIELDS];
    if (ox_str_starts(bytes, OX_STR("version https://git-lfs")))
        return OX_FAIL(err, OX_BAD_FILE,
                       "a Git LFS pointer, not the model; fetch the real file (git lfs pull)");
    if (!bytes.n) return OX_FAIL(err, OX_BAD_FILE, "the file is empty; expected an ONNX model");
    m->producer = m->producer_version = (ox_str){"", 0};
    OX_TRY(ox_onnx_count(&r, bytes, n));
    OX_TRY(ox_onnx_take(&r, n[MODEL_OPSET], sizeof(*m->opsets), &m->opsets));
    OX_TRY(ox_onnx_take(&r, n[MODEL_FUNCTION], sizeof(*m->functions), &m->functions));
    ox_proto w = ox_proto_of(bytes);
    for (ox_proto_field f; ox_proto_next(&w, &f);)
        OX_TRY(read_model_field(&r, &f, m));
    if (!m->graph || m->ir_version <= 0)
        return OX_FAIL(err, OX_BAD_FILE, "no %s in it; expected an ONNX model",
                       m->graph ? "IR version" : "graph");
    return OX_OK;
}

ox_status ox_onnx_parse(ox_onnx **out, ox_str bytes, const char *dir, ox_err *err)
{
    *out = NULL;
    ox_onnx *m = ox_calloc(1, sizeof(*m));
    if (!m) return OX_FAIL(err, OX_NO_MEMORY, "no memory for an ONNX model");
    const ox_status st = read_model(m, bytes, dir, err);
    if (st)
        ox_onnx_close(&m);
    else
        *out = m;
    return st;
}

ox_status ox_onnx_open(ox_onnx **out, const char *path, ox_err *err)
{
    ox_mapping file = {0};
    *out = NULL;
    OX_TRY(ox_mapping_open(&file, path, err));
    char *dir = ox_path_dir(path);
    ox_status st = dir ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    if (!st) {
        st = ox_onnx_parse(out, (ox_str){(const char *)file.bytes, file.n}, dir, err);
        if (st) ox_err_prefix(err, "%s", ox_path_base(path));
    }
    if (st)
        ox_mapping_close(&file);
    else
        (*out)->file = file;
    ox_free(dir);
    return st;
}

void ox_onnx_close(ox_onnx **o)
{
    ox_onnx *m = *o;
    if (!m) return;
    for (size_t i = 0; i < m->external.n; i++)
        ox_mapping_close(&m->external.p[i]);
    ox_vec_deinit(&m->external);
    ox_vec_deinit(&m->locations);
    ox_mapping_close(&m->file);
    ox_arena_deinit(&m->arena);
    ox_free(m);
    *o = NULL;
}

ox_status ox_onnx_tensor_parse(ox_onnx_tensor *out, ox_arena *arena, ox_str bytes, ox_err *err)
{
    ox_onnx_reader r = {.arena = arena, .err = err};
    return ox_onnx_read_tensor(&r, bytes, out);
}

/* SequenceProto and OptionalProto number their fields alike: 3 tensors,
 * 5 sequences, 7 optionals. */
static ox_status read_items(ox_onnx_reader *r, ox_str bytes, ox_onnx_tensor *items, size_t *n,
                            int depth)
{
    ox_proto w = ox_proto_of(bytes);
    if (depth == OX_ONNX_MAX_TYPE_DEPTH)
        return OX_FAIL(r->err, OX_LIMIT, "sequences nest deeper than %d levels",
                       OX_ONNX_MAX_TYPE_DEPTH);
    for (ox_proto_field f; ox_proto_next(&w, &f);) {
        if (f.number == 4 || f.number == 6)
            return OX_FAIL(r->err, OX_UNSUPPORTED, "a sequence of %s; expected tensors",
                           f.number == 4 ? "sparse tensors" : "maps");
        if (f.number != 3 && f.number != 5 && f.number != 7) continue;
        OX_TRY(ox_onnx_want(r, &f, OX_PROTO_LEN));
        if (f.number == 3) {
            if (items) OX_TRY(ox_onnx_read_tensor(r, f.bytes, &items[*n]));
            ++*n;
        } else {
            OX_TRY(read_items(r, f.bytes, items, n, depth + 1));
        }
    }
    return w.bad ? ox_onnx_damaged(r, &w, "sequence") : OX_OK;
}

ox_status ox_onnx_sequence_parse(ox_onnx_tensor **items, size_t *n, ox_arena *arena, ox_str bytes,
                                 ox_err *err)
{
    ox_onnx_reader r = {.arena = arena, .err = err};
    size_t count = 0;
    *items = NULL;
    *n = 0;
    OX_TRY(read_items(&r, bytes, NULL, &count, 0));
    OX_TRY(ox_onnx_take(&r, count, sizeof(**items), items));
    return read_items(&r, bytes, *items, n, 0);
}
