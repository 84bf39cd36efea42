/* micro_peer.c - the same work as a micro-benchmark's row, done by ONNX Runtime: a graph of one
 * node is written into memory, opened there, its operands bound once. A run is one call of
 * RunWithBinding, so its time holds what ONNX Runtime does around a node. Rows are those of the
 * table below. */
#define _GNU_SOURCE
#include "engine/micro.h"

#include "backend/ort/ort.h"
#include "base/mem.h"
#include "file/onnx_write.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPSET = 13, OPERANDS = 2 };

typedef struct peer {
    ox_ort_graph *graph;
    ox_tensor in[OPERANDS];
    const char *names[OPERANDS];
    size_t n_in;
    ox_onnx_graph_writer g;
    ox_buf file;
    int fd;
} peer;

static ox_status peer_run(ox_micro_case *c, ox_err *err)
{
    return ox_ort_graph_repeat(((peer *)c->state)->graph, err);
}

static void peer_close(void *state)
{
    peer *p = state;
    ox_ort_graph_close(&p->graph);
    ox_onnx_graph_writer_deinit(&p->g);
    ox_buf_deinit(&p->file);
    if (p->fd >= 0) close(p->fd);
    ox_free(p);
}

/* An operand that the caller binds: [rows, cols], or [cols] for rows 0. */
static ox_status operand(ox_micro_case *c, const char *name, ox_dtype t, int64_t rows, int64_t cols,
                         ox_err *err)
{
    peer *p = c->state;
    const int32_t rank = rows ? 2 : 1;
    const ox_onnx_dim dims[2] = {{.value = rows ? rows : cols}, {.value = cols}};
    const size_t n = (size_t)(rows ? rows : 1) * (size_t)cols;
    void *data = t == OX_DTYPE_I64 ? ox_micro_bytes(c, n * 8, err) : ox_micro_values(c, t, n, err);
    if (!data) return OX_NO_MEMORY;
    ox_onnx_put_input(&p->g, ox_str_of(name), t, rank, dims);
    p->names[p->n_in] = name;
    p->in[p->n_in++] =
        (ox_tensor){.dtype = t, .rank = rank, .dims = {dims[0].value, dims[1].value}, .data = data};
    return OX_OK;
}

static void node(ox_micro_case *c, const char *op, const char *a, const char *b)
{
    ox_onnx_graph_writer *g = &((peer *)c->state)->g;
    ox_onnx_begin_node(g, ox_str_of(op), OX_STR(""), OX_STR("node"));
    ox_onnx_put_operand(g, ox_str_of(a));
    if (b) ox_onnx_put_operand(g, ox_str_of(b));
    ox_onnx_put_result(g, OX_STR("y"));
}

static void result(ox_micro_case *c, ox_dtype t, int64_t rows, int64_t cols)
{
    ox_onnx_graph_writer *g = &((peer *)c->state)->g;
    const ox_onnx_dim dims[2] = {{.value = rows}, {.value = cols}};
    ox_onnx_end_node(g);
    ox_onnx_put_output(g, OX_STR("y"), t, 2, dims);
}

static ox_status peer_matmul(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_dtype t = (ox_dtype)row->kind;
    OX_TRY(operand(c, "a", t, row->a, row->b, err));
    OX_TRY(operand(c, "b", t, row->b, row->c, err));
    node(c, "MatMul", "a", "b");
    result(c, t, row->a, row->c);
    return OX_OK;
}

/* The second operand is a constant of the graph, so that it can be packed beforehand. */
static ox_status peer_dense(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_dtype t = (ox_dtype)row->kind;
    OX_TRY(operand(c, "a", t, row->a, row->b, err));
    const ox_tensor w = {.dtype = t,
                         .rank = 2,
                         .dims = {row->b, row->c},
                         .data = ox_micro_values(c, t, (size_t)row->b * (size_t)row->c, err)};
    if (!w.data) return OX_NO_MEMORY;
    ox_onnx_put_tensor(&((peer *)c->state)->g, OX_STR("b"), &w);
    node(c, "MatMul", "a", "b");
    result(c, t, row->a, row->c);
    return OX_OK;
}

static ox_status peer_gather(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_dtype t = (ox_dtype)row->kind;
    OX_TRY(operand(c, "a", t, row->a, row->b, err));
    OX_TRY(operand(c, "b", OX_DTYPE_I64, 0, row->c, err));
    int64_t *ids = ((peer *)c->state)->in[1].data;
    for (int64_t i = 0; i < row->c; i++)
        ids[i] = i * 97 % row->a;
    node(c, "Gather", "a", "b");
    result(c, t, row->c, row->b);
    return OX_OK;
}

static ox_status peer_add(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    const ox_dtype t = (ox_dtype)row->kind;
    OX_TRY(operand(c, "a", t, row->a, row->b, err));
    OX_TRY(operand(c, "b", t, 0, row->b, err));
    node(c, "Add", "a", "b");
    result(c, t, row->a, row->b);
    return OX_OK;
}

static ox_status peer_reduce_mean(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    static const int64_t axes[] = {1};
    OX_TRY(operand(c, "a", OX_DTYPE_F32, row->a, row->b, err));
    node(c, "ReduceMean", "a", NULL);
    ox_onnx_attr_ints(&((peer *)c->state)->g, "axes", axes, 1);
    ox_onnx_attr_int(&((peer *)c->state)->g, "keepdims", 1);
    result(c, OX_DTYPE_F32, row->a, 1);
    return OX_OK;
}

static const struct {
    micro_make_fn *of, *make;
} peers[] = {{ox_micro_matmul, peer_matmul},
             {ox_micro_dense, peer_dense},
             {ox_micro_gather, peer_gather},
             {ox_micro_add, peer_add},
             {ox_micro_reduce_mean, peer_reduce_mean}};

/* ONNX Runtime opens paths only; this one leads into memory. */
static ox_status open_graph(ox_micro_case *c, ox_err *err)
{
    peer *p = c->state;
    const ox_onnx_opset opset = {.version = OPSET};
    const ox_onnx_model_info info = {
        .ir_version = 8, .graph_name = OX_STR("peer"), .opsets = &opset, .n_opsets = 1};
    const ox_ort_settings settings = {.n_threads = c->cost.n_threads};
    char path[64];
    OX_TRY(ox_onnx_model_write(&p->file, &p->g, &info, err));
    p->fd = memfd_create("oxgen-peer", MFD_CLOEXEC);
    if (p->fd < 0 || write(p->fd, p->file.p, p->file.n) != (ssize_t)p->file.n)
        return OX_FAIL(err, OX_IO, "no memory file for a graph");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", p->fd);
    OX_TRY(ox_ort_graph_open(&p->graph, path, &settings, err));
    return ox_ort_graph_bind(p->graph, p->names, p->in, p->n_in, err);
}

ox_status ox_micro_peer_make(ox_micro_case *c, const micro_row *row, ox_err *err)
{
    for (size_t i = 0; i < OX_COUNT(peers); i++) {
        if (peers[i].of != row->make) continue;
        peer *p = c->state = ox_calloc(1, sizeof(*p));
        if (!p) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
        p->fd = -1;
        c->close = peer_close;
        c->run = peer_run;
        OX_TRY(peers[i].make(c, row, err));
        OX_TRY(open_graph(c, err));
        return peer_run(c, err);
    }
    return OX_FAIL(err, OX_UNSUPPORTED, "ONNX Runtime has no such row");
}
