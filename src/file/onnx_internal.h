/* onnx_internal.h - what the parts of the ONNX reader share: onnx.c (files and models),
 * onnx_graph.c (graphs, nodes, attributes, types) and onnx_tensor.c (tensors and where their bytes
 * are).
 *
 * A reader fills zeroed records from one message at a time: a first walk counts the repeated
 * fields, a second one fills arrays of exactly that size. The error report
 * travels in the reader. */
#ifndef OX_FILE_ONNX_INTERNAL_H
#define OX_FILE_ONNX_INTERNAL_H
#include "file/onnx.h"
#include "file/proto.h"

typedef struct ox_onnx_reader {
    ox_arena *arena;
    ox_onnx *model;  /* NULL when reading loose tensors: external data is refused */
    const char *dir; /* where external data is; NULL refuses it */
    size_t records;  /* so far, against OX_ONNX_MAX_RECORDS */
    int depth;       /* graphs around the one being read */
    ox_err *err;
} ox_onnx_reader;

enum { OX_ONNX_FIELDS = 32 };

/* counts[k] = fields number k of wire type LEN, for k < OX_ONNX_FIELDS. Walks the whole message:
 * after success a second walk cannot find damage. */
ox_status ox_onnx_count(ox_onnx_reader *r, ox_str message, size_t counts[OX_ONNX_FIELDS]);
/* Fails unless field f has the wire type that onnx.proto gives it. */
ox_status ox_onnx_want(ox_onnx_reader *r, const ox_proto_field *f, int32_t wire);
/* n zeroed records in *out, counted against the limit; NULL for n = 0. */
ox_status ox_onnx_take(ox_onnx_reader *r, size_t n, size_t size, void *out);
/* The same for strings and numbers, which the file's size bounds. */
ox_status ox_onnx_take_plain(ox_onnx_reader *r, size_t n, size_t size, void *out);
ox_status ox_onnx_damaged(ox_onnx_reader *r, const ox_proto *p, const char *message);

ox_status ox_onnx_read_tensor(ox_onnx_reader *r, ox_str bytes, ox_onnx_tensor *out);
ox_status ox_onnx_read_sparse(ox_onnx_reader *r, ox_str bytes, ox_onnx_sparse *out);
ox_status ox_onnx_read_graph(ox_onnx_reader *r, ox_str bytes, ox_onnx_graph *out);
ox_status ox_onnx_read_function(ox_onnx_reader *r, ox_str bytes, ox_onnx_function *out);
ox_status ox_onnx_read_opset(ox_onnx_reader *r, ox_str bytes, ox_onnx_opset *out);
#endif
