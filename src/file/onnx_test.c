/* onnx_test.c - records against what the onnx package reads in the same files; damage and lies. */
#define _GNU_SOURCE
#include "file/onnx.h"

#include "base/mem.h"
#include "file/proto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FILES OXGEN_SOURCE_DIR "/tests/data/files/"

/* --- the dump that tools/gen_file_fixtures.py writes --- */

static void put_hex(ox_buf *b, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ox_buf_printf(b, "%02x", ((const uint8_t *)p)[i]);
}

static void trim(ox_buf *b)
{
    while (b->n && b->p[b->n - 1] == ' ')
        b->p[--b->n] = 0;
}

static void dump_tensor(ox_buf *b, const ox_onnx_tensor *t)
{
    size_t n = 0, bytes = 0;
    ox_buf_printf(b, "%.*s %d [", OX_STR_ARGS(t->name), (int)t->t.dtype);
    for (int32_t i = 0; i < t->t.rank; i++)
        ox_buf_printf(b, "%s%lld", i ? "," : "", (long long)t->t.dims[i]);
    ox_buf_printf(b, "]%s ", t->external ? " external" : "");
    assert_true(ox_tensor_count(&t->t, &n) && ox_tensor_bytes(&t->t, &bytes));
    if (t->t.dtype == OX_DTYPE_STRING) {
        for (size_t i = 0; i < n; i++) {
            if (i) ox_buf_put_c(b, ' ');
            put_hex(b, ((ox_str *)t->t.data)[i].p, ((ox_str *)t->t.data)[i].n);
        }
    } else {
        put_hex(b, t->t.data, bytes);
    }
    trim(b);
}

static void dump_sparse(ox_buf *b, const ox_onnx_sparse *s)
{
    for (int32_t i = 0; i < s->rank; i++)
        ox_buf_printf(b, "%s%lld", i ? "," : "", (long long)s->dims[i]);
    ox_buf_put_z(b, " | ");
    dump_tensor(b, &s->values);
    ox_buf_put_z(b, " | ");
    dump_tensor(b, &s->indices);
}

static void dump_type(ox_buf *b, const ox_onnx_value *v)
{
    ox_buf_printf(b, "%d %d ", (int)v->kind, (int)v->dtype);
    if (v->rank < 0) {
        ox_buf_put_c(b, '?');
        return;
    }
    ox_buf_put_c(b, '[');
    for (int32_t i = 0; i < v->rank; i++) {
        ox_buf_printf(b, "%s%lld", i ? "," : "", (long long)v->dims[i].value);
        if (v->dims[i].value < 0) ox_buf_printf(b, ":%.*s", OX_STR_ARGS(v->dims[i].symbol));
    }
    ox_buf_put_c(b, ']');
}

static void dump_graph(ox_buf *b, const ox_onnx_graph *g, int indent);

static void put_f32(ox_buf *b, float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    ox_buf_printf(b, " %08x", u);
}

static void dump_attr_value(ox_buf *b, const ox_onnx_attr *a, int indent)
{
    switch (a->type) {
    case OX_ONNX_ATTR_FLOAT:
        put_f32(b, a->f);
        break;
    case OX_ONNX_ATTR_INT:
        ox_buf_printf(b, " %lld", (long long)a->i);
        break;
    case OX_ONNX_ATTR_STRING:
        ox_buf_put_c(b, ' ');
        put_hex(b, a->s.p, a->s.n);
        trim(b);
        break;
    case OX_ONNX_ATTR_TENSOR:
        ox_buf_put_c(b, ' ');
        dump_tensor(b, a->t);
        break;
    case OX_ONNX_ATTR_FLOATS:
        for (size_t i = 0; i < a->n; i++)
            put_f32(b, a->floats[i]);
        break;
    case OX_ONNX_ATTR_INTS:
        for (size_t i = 0; i < a->n; i++)
            ox_buf_printf(b, " %lld", (long long)a->ints[i]);
        break;
    case OX_ONNX_ATTR_STRINGS:
        for (size_t i = 0; i < a->n; i++) {
            ox_buf_put_c(b, ' ');
            put_hex(b, a->strings[i].p, a->strings[i].n);
            if (!a->strings[i].n) ox_buf_put_c(b, '.');
        }
        break;
    case OX_ONNX_ATTR_TENSORS:
        for (size_t i = 0; i < a->n; i++) {
            ox_buf_printf(b, "\n%*s ", indent, "");
            dump_tensor(b, &a->tensors[i]);
        }
        break;
    case OX_ONNX_ATTR_TYPE:
        ox_buf_put_c(b, ' ');
        dump_type(b, a->type_value);
        break;
    case OX_ONNX_ATTR_SPARSE:
        ox_buf_put_c(b, ' ');
        dump_sparse(b, a->sparse);
        break;
    default:
        break;
    }
}

static void dump_attr(ox_buf *b, const ox_onnx_attr *a, int indent)
{
    ox_buf_printf(b, "%*sattr %.*s %d", indent, "", OX_STR_ARGS(a->name), (int)a->type);
    if (a->ref_name.n)
        ox_buf_printf(b, " ref %.*s", OX_STR_ARGS(a->ref_name));
    else
        dump_attr_value(b, a, indent);
    ox_buf_put_c(b, '\n');
    if (a->type == OX_ONNX_ATTR_GRAPH) dump_graph(b, a->g, indent + 2);
    for (size_t i = 0; a->type == OX_ONNX_ATTR_GRAPHS && i < a->n; i++)
        dump_graph(b, a->graphs[i], indent + 2);
}

static void dump_names(ox_buf *b, const ox_str *s, size_t n)
{
    ox_buf_put_z(b, " (");
    for (size_t i = 0; i < n; i++)
        ox_buf_printf(b, "%s%.*s", i ? "," : "", OX_STR_ARGS(s[i]));
    ox_buf_put_c(b, ')');
}

static void dump_node(ox_buf *b, const ox_onnx_node *n, int indent)
{
    ox_buf_printf(b, "%*snode %.*s|%.*s|%.*s|%.*s", indent, "", OX_STR_ARGS(n->name),
                  OX_STR_ARGS(n->op_type), OX_STR_ARGS(n->domain), OX_STR_ARGS(n->overload));
    dump_names(b, n->inputs, n->n_inputs);
    dump_names(b, n->outputs, n->n_outputs);
    ox_buf_put_c(b, '\n');
    for (size_t i = 0; i < n->n_attrs; i++)
        dump_attr(b, &n->attrs[i], indent + 1);
}

static void dump_values(ox_buf *b, const char *word, const ox_onnx_value *v, size_t n, int indent)
{
    for (size_t i = 0; i < n; i++) {
        ox_buf_printf(b, "%*s%s %.*s ", indent, "", word, OX_STR_ARGS(v[i].name));
        dump_type(b, &v[i]);
        ox_buf_put_c(b, '\n');
    }
}

static void dump_graph(ox_buf *b, const ox_onnx_graph *g, int indent)
{
    ox_buf_printf(b, "%*sgraph %.*s\n", indent, "", OX_STR_ARGS(g->name));
    dump_values(b, "input", g->inputs, g->n_inputs, indent);
    dump_values(b, "output", g->outputs, g->n_outputs, indent);
    dump_values(b, "value", g->values, g->n_values, indent);
    for (size_t i = 0; i < g->n_initializers; i++) {
        ox_buf_printf(b, "%*sinit ", indent, "");
        dump_tensor(b, &g->initializers[i]);
        ox_buf_put_c(b, '\n');
    }
    for (size_t i = 0; i < g->n_sparse; i++) {
        ox_buf_printf(b, "%*ssparse ", indent, "");
        dump_sparse(b, &g->sparse[i]);
        ox_buf_put_c(b, '\n');
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        dump_node(b, &g->nodes[i], indent);
}

static void dump_opsets(ox_buf *b, const char *word, const ox_onnx_opset *o, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ox_buf_printf(b, "%s %.*s %lld\n", word, OX_STR_ARGS(o[i].domain), (long long)o[i].version);
}

static void dump_model(ox_buf *b, const ox_onnx *m)
{
    ox_buf_printf(b, "ir %lld %.*s %.*s\n", (long long)m->ir_version, OX_STR_ARGS(m->producer),
                  OX_STR_ARGS(m->producer_version));
    dump_opsets(b, "opset", m->opsets, m->n_opsets);
    dump_graph(b, m->graph, 0);
    for (size_t k = 0; k < m->n_functions; k++) {
        const ox_onnx_function *f = &m->functions[k];
        ox_buf_printf(b, "function %.*s|%.*s|%.*s", OX_STR_ARGS(f->domain), OX_STR_ARGS(f->name),
                      OX_STR_ARGS(f->overload));
        dump_names(b, f->inputs, f->n_inputs);
        dump_names(b, f->outputs, f->n_outputs);
        dump_names(b, f->attr_names, f->n_attr_names);
        ox_buf_put_c(b, '\n');
        dump_opsets(b, " opset", f->opsets, f->n_opsets);
        for (size_t i = 0; i < f->n_attr_defaults; i++)
            dump_attr(b, &f->attr_defaults[i], 1);
        for (size_t i = 0; i < f->n_nodes; i++)
            dump_node(b, &f->nodes[i], 1);
    }
}

static void reads_as(const char *name)
{
    ox_buf path = {0}, want = {0}, got = {0};
    ox_err err = OX_ERR_INIT;
    ox_onnx *m = NULL;
    ox_buf_printf(&path, FILES "%s", name);
    if (ox_onnx_open(&m, path.p, &err)) fail_msg("%s", err.msg);
    dump_model(&got, m);
    ox_buf_put_z(&path, ".txt");
    assert_int_equal(ox_file_read(&want, path.p, 1 << 20, &err), OX_OK);
    assert_string_equal(got.p, want.p);
    ox_onnx_close(&m);
    assert_null(m);
    ox_buf_deinit(&path);
    ox_buf_deinit(&want);
    ox_buf_deinit(&got);
}

static void reads_every_storage_of_every_type(void **state)
{
    (void)state;
    reads_as("tensors.onnx");
}

static void reads_nodes_attributes_types_and_functions(void **state)
{
    (void)state;
    reads_as("nodes.onnx");
}

static void maps_external_data_once(void **state)
{
    (void)state;
    reads_as("external.onnx");
    ox_onnx *m = NULL;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_onnx_open(&m, FILES "external.onnx", &err), OX_OK);
    assert_int_equal(m->external.n, 1);
    const ox_onnx_tensor *t = m->graph->initializers;
    assert_ptr_equal((char *)t[0].t.data + 16, t[1].t.data);
    assert_int_equal((uintptr_t)t[3].t.data % 8, 0); /* at offset 65 in the file */
    ox_onnx_close(&m);
}

static void reads_sequences_and_optionals(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    ox_buf bytes = {0};
    ox_err err = OX_ERR_INIT;
    ox_onnx_tensor *items;
    size_t n;
    assert_int_equal(ox_file_read(&bytes, FILES "sequence.pb", 4096, &err), OX_OK);
    assert_int_equal(ox_onnx_sequence_parse(&items, &n, &arena, ox_buf_view(&bytes), &err), OX_OK);
    assert_int_equal(n, 2);
    assert_int_equal(items[0].t.dims[0], 2);
    assert_true(((float *)items[1].t.data)[0] == 3.0f);
    ox_buf_clear(&bytes);
    assert_int_equal(ox_file_read(&bytes, FILES "optional.pb", 4096, &err), OX_OK);
    assert_int_equal(ox_onnx_sequence_parse(&items, &n, &arena, ox_buf_view(&bytes), &err), OX_OK);
    assert_int_equal(n, 1);
    assert_int_equal(((int64_t *)items[0].t.data)[0], 5);
    ox_buf_deinit(&bytes);
    ox_arena_deinit(&arena);
}

/* --- damage --- */

/* Parses a copy of exactly these bytes, so that the sanitizer sees any read beyond. */
static ox_status try(const char *bytes, size_t n, ox_err *err)
{
    char *copy = malloc(n ? n : 1);
    ox_onnx *m = NULL;
    assert_non_null(copy);
    if (n) memcpy(copy, bytes, n);
    const ox_status st = ox_onnx_parse(&m, (ox_str){copy, n}, FILES, err);
    assert_true(!st == !!m);
    if (st && err) assert_int_not_equal(err->msg[0], 0);
    ox_onnx_close(&m);
    free(copy);
    return st;
}

static void survives_truncation_and_flips(void **state)
{
    (void)state;
    const char *const names[] = {FILES "tensors.onnx", FILES "nodes.onnx", FILES "external.onnx"};
    for (size_t k = 0; k < OX_COUNT(names); k++) {
        ox_buf b = {0};
        assert_int_equal(ox_file_read(&b, names[k], 1 << 20, NULL), OX_OK);
        for (size_t n = 0; n < b.n; n++) {
            ox_err err = OX_ERR_INIT;
            try(b.p, n, &err);
            const char old = b.p[n];
            const unsigned masks[] = {1, 2, 4, 8, 16, 32, 64, 128, 255};
            for (size_t j = 0; j < OX_COUNT(masks); j++) {
                ox_err e = OX_ERR_INIT;
                b.p[n] = (char)(old ^ (char)masks[j]);
                try(b.p, b.n, &e);
            }
            b.p[n] = old;
        }
        ox_buf_deinit(&b);
    }
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    const char *const names[] = {FILES "tensors.onnx", FILES "nodes.onnx", FILES "external.onnx"};
    for (size_t k = 0; k < OX_COUNT(names); k++) {
        for (long n = 1;; n++) {
            ox_onnx *m = NULL;
            ox_err err = OX_ERR_INIT;
            ox_mem_fail_after(n);
            const ox_status st = ox_onnx_open(&m, names[k], &err);
            ox_mem_fail_after(0);
            ox_onnx_close(&m);
            if (!st) break;
            assert_int_equal(st, OX_NO_MEMORY);
            assert_true(n < 1000);
        }
    }
}

/* --- lies: models built field by field --- */

static void put_model(ox_buf *out, ox_buf *graph)
{
    ox_proto_put_int(out, 1, 10);
    ox_proto_put_part(out, 7, graph);
}

static void put_dims(ox_buf *t, int32_t type, size_t n, const int64_t *dims)
{
    for (size_t i = 0; i < n; i++)
        ox_proto_put_int(t, 1, dims[i]);
    ox_proto_put_int(t, 2, type);
    ox_proto_put_len(t, 8, OX_STR("w"));
}

/* Wraps tensor t as the only initializer; expects a refusal that says `message`. */
static void tensor_refused_as(ox_buf *t, ox_status want, const char *message)
{
    ox_buf graph = {0}, model = {0};
    ox_err err = OX_ERR_INIT;
    ox_proto_put_part(&graph, 5, t);
    put_model(&model, &graph);
    assert_int_equal(try(model.p, model.n, &err), want);
    if (!strstr(err.msg, message)) fail_msg("\"%s\" lacks \"%s\"", err.msg, message);
    ox_buf_deinit(&graph);
    ox_buf_deinit(&model);
    ox_buf_deinit(t);
}

static ox_buf tensor_of(int32_t type, size_t n, const int64_t *dims)
{
    ox_buf t = {0};
    put_dims(&t, type, n, dims);
    return t;
}

static void refuses_dims_that_lie(void **state)
{
    (void)state;
    ox_buf t = tensor_of(1, 2, (int64_t[]){INT64_MIN, 1}); /* 2^63 as unsigned */
    tensor_refused_as(&t, OX_BAD_FILE, "tensor w: dimension 0 is -9223372036854775808");
    t = tensor_of(1, 1, (int64_t[]){-1});
    tensor_refused_as(&t, OX_BAD_FILE, "dimension 0 is -1; expected zero or more");
    t = tensor_of(1, 3, (int64_t[]){1ll << 40, 1ll << 40, 2});
    tensor_refused_as(&t, OX_BAD_FILE, "the product of its dimensions overflows");
    t = tensor_of(1, 1, (int64_t[]){INT64_MAX});
    tensor_refused_as(&t, OX_BAD_FILE, "the product of its dimensions overflows");
    t = tensor_of(8, 1, (int64_t[]){1ll << 50});
    tensor_refused_as(&t, OX_BAD_FILE, "expected 1125899906842624 strings");
    t = tensor_of(1, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1});
    tensor_refused_as(&t, OX_UNSUPPORTED, "more than 8 dimensions");
    t = tensor_of(1, 1, (int64_t[]){1ll << 40});
    tensor_refused_as(&t, OX_BAD_FILE, "0 bytes where its shape and type float32 ask for");
    t = tensor_of(99, 0, NULL);
    tensor_refused_as(&t, OX_UNSUPPORTED, "element type 99");
}

static void refuses_values_that_do_not_fit(void **state)
{
    (void)state;
    ox_buf t = tensor_of(1, 1, (int64_t[]){2});
    ox_proto_put_len(&t, 9, OX_STR("1234567"));
    tensor_refused_as(&t, OX_BAD_FILE, "7 bytes where its shape and type float32 ask for 8");
    t = tensor_of(1, 1, (int64_t[]){2});
    ox_proto_put_len(&t, 4, OX_STR("12345678abcd"));
    tensor_refused_as(&t, OX_BAD_FILE, "3 values in float_data where");
    t = tensor_of(1, 1, (int64_t[]){2});
    ox_proto_put_len(&t, 4, OX_STR("1234567"));
    tensor_refused_as(&t, OX_BAD_FILE, "damaged float_data");
    t = tensor_of(1, 1, (int64_t[]){2});
    ox_proto_put_len(&t, 7, OX_STR("\x01\x02"));
    tensor_refused_as(&t, OX_BAD_FILE, "values of type float32 in int64_data");
    t = tensor_of(7, 1, (int64_t[]){2});
    ox_proto_put_len(&t, 7, OX_STR("\x01\xff"));
    tensor_refused_as(&t, OX_BAD_FILE, "damaged int64_data");
    t = tensor_of(7, 1, (int64_t[]){1});
    ox_proto_put_len(&t, 7, OX_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    tensor_refused_as(&t, OX_BAD_FILE, "damaged int64_data: a varint");
    t = tensor_of(7, 1, (int64_t[]){1});
    ox_proto_put_int(&t, 7, 1);
    ox_proto_put_len(&t, 9, OX_STR("12345678"));
    tensor_refused_as(&t, OX_BAD_FILE, "both as raw bytes and as numbers");
    t = tensor_of(7, 0, NULL);
    ox_proto_put_len(&t, 3, OX_STR(""));
    tensor_refused_as(&t, OX_UNSUPPORTED, "segments");
}

static ox_buf external_of(const char *location, const char *offset, const char *length)
{
    const char *const keys[] = {"location", "offset", "length"};
    const char *const values[] = {location, offset, length};
    ox_buf t = tensor_of(1, 1, (int64_t[]){4}), entry = {0};
    ox_proto_put_int(&t, 14, 1);
    for (int i = 0; i < 3; i++) {
        if (!values[i]) continue;
        ox_proto_put_len(&entry, 1, ox_str_of(keys[i]));
        ox_proto_put_len(&entry, 2, ox_str_of(values[i]));
        ox_proto_put_part(&t, 13, &entry);
    }
    ox_buf_deinit(&entry);
    return t;
}

static void refuses_external_data_outside_its_file(void **state)
{
    (void)state;
    ox_buf t = external_of("external.data", "80", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "bytes 80 to 80+16 of external.data, which has 81");
    t = external_of("external.data", "18446744073709551615", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "is the file complete?");
    t = external_of("external.data", "18446744073709551616", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "external offset '18446744073709551616'; expected a number");
    t = external_of("external.data", "-1", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "external offset '-1'");
    t = external_of("external.data", "0", "12");
    tensor_refused_as(&t, OX_BAD_FILE, "12 bytes of external data where");
    t = external_of("external.data", "0", "x");
    tensor_refused_as(&t, OX_BAD_FILE, "external length 'x'");
    t = external_of(NULL, "0", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "without a location");
    t = external_of("missing.data", "0", "16");
    tensor_refused_as(&t, OX_NOT_FOUND, "tensor w: ");
    t = external_of("../files/external.data", "0", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "outside the model folder");
    t = external_of("/etc/passwd", "0", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "outside the model folder");
    t = external_of(".", "0", "16");
    tensor_refused_as(&t, OX_BAD_FILE, "");
}

static void refuses_links_that_leave_the_folder(void **state)
{
    (void)state;
    char dir[128], path[160];
    ox_buf t = external_of("weights.data", "0", "16"), graph = {0}, model = {0};
    ox_onnx *m = NULL;
    ox_err err = OX_ERR_INIT;
    snprintf(dir, sizeof(dir), "/tmp/oxgen_onnx_%ld", (long)getpid());
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(path, sizeof(path), "%s/weights.data", dir);
    assert_int_equal(symlink(FILES "external.data", path), 0);
    ox_proto_put_part(&graph, 5, &t);
    put_model(&model, &graph);
    assert_int_equal(ox_onnx_parse(&m, ox_buf_view(&model), dir, &err), OX_BAD_FILE);
    assert_non_null(strstr(err.msg, "outside the model folder"));
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_onnx_parse(&m, ox_buf_view(&model), NULL, &err), OX_UNSUPPORTED);
    unlink(path);
    rmdir(dir);
    ox_buf_deinit(&t);
    ox_buf_deinit(&graph);
    ox_buf_deinit(&model);
}

static void refuses_duplicate_and_missing_names(void **state)
{
    (void)state;
    ox_buf t = {0}, graph = {0}, model = {0};
    ox_err err = OX_ERR_INIT;
    for (int i = 0; i < 2; i++) {
        put_dims(&t, 1, 1, (int64_t[]){0});
        ox_proto_put_part(&graph, 5, &t);
    }
    put_model(&model, &graph);
    assert_int_equal(try(model.p, model.n, &err), OX_BAD_FILE);
    assert_string_equal(err.msg, "two initializers are called w");
    ox_buf_clear(&model);
    ox_proto_put_int(&t, 2, 1);
    ox_proto_put_len(&t, 4, OX_STR("1234"));
    ox_proto_put_part(&graph, 5, &t);
    put_model(&model, &graph);
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(try(model.p, model.n, &err), OX_BAD_FILE);
    assert_string_equal(err.msg, "initializer number 0 has no name");
    ox_buf_deinit(&t);
    ox_buf_deinit(&graph);
    ox_buf_deinit(&model);
}

static void refuses_deep_nesting(void **state)
{
    (void)state;
    ox_buf graph = {0}, attr = {0}, node = {0}, model = {0};
    ox_err err = OX_ERR_INIT;
    for (int i = 0; i < 100; i++) {
        ox_proto_put_len(&attr, 1, OX_STR("body"));
        ox_proto_put_part(&attr, 6, &graph);
        ox_proto_put_len(&node, 4, OX_STR("If"));
        ox_proto_put_part(&node, 5, &attr);
        ox_proto_put_part(&graph, 1, &node);
    }
    put_model(&model, &graph);
    assert_int_equal(try(model.p, model.n, &err), OX_LIMIT);
    assert_non_null(strstr(err.msg, "node number 0 (If): attribute body: node number 0 (If)"));
    /* A type of a hundred sequences. */
    ox_buf type = {0}, inner = {0}, value = {0};
    for (int i = 0; i < 100; i++) {
        ox_proto_put_part(&inner, 1, &type);
        ox_proto_put_part(&type, 4, &inner);
    }
    ox_proto_put_len(&value, 1, OX_STR("v"));
    ox_proto_put_part(&value, 2, &type);
    ox_proto_put_part(&graph, 11, &value);
    ox_buf_clear(&model);
    put_model(&model, &graph);
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(try(model.p, model.n, &err), OX_LIMIT);
    assert_string_equal(err.msg, "value v: types nest deeper than 8 levels");
    ox_buf *const all[] = {&graph, &attr, &node, &model, &type, &inner, &value};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        ox_buf_deinit(all[i]);
}

static void bounds_the_number_of_records(void **state)
{
    (void)state;
    ox_buf graph = {0}, model = {0};
    ox_err err = OX_ERR_INIT;
    for (int i = 0; i <= OX_ONNX_MAX_RECORDS; i++)
        ox_buf_put(&graph, "\x6a\x00", 2); /* an empty value_info */
    put_model(&model, &graph);
    assert_int_equal(try(model.p, model.n, &err), OX_LIMIT);
    ox_buf_deinit(&graph);
    ox_buf_deinit(&model);
}

static void refuses_what_is_not_a_model(void **state)
{
    (void)state;
    const struct {
        ox_str bytes;
        const char *message;
    } rows[] = {
        {OX_STR(""), "the file is empty"},
        {OX_STR("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "Git LFS pointer"},
        {OX_STR("<!DOCTYPE html>"), ""},
        {OX_STR("\x08\x0a"), "no graph in it"},
        {OX_STR("\x3a\x00"), "no IR version in it"},
        {OX_STR("\x08\x0a\x3a\x00\x3a"), "damaged message"},
        {OX_STR("\x08\x0a\x3a\x03\x0a\x01"), "damaged message"},
    };
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        ox_err err = OX_ERR_INIT;
        assert_int_equal(try(rows[i].bytes.p, rows[i].bytes.n, &err), OX_BAD_FILE);
        if (!strstr(err.msg, rows[i].message)) fail_msg("%zu: %s", i, err.msg);
    }
    ox_err err = OX_ERR_INIT;
    ox_onnx *m = NULL;
    assert_int_equal(ox_onnx_open(&m, FILES "none.onnx", &err), OX_NOT_FOUND);
}

static void skips_groups_and_unknown_fields(void **state)
{
    (void)state;
    ox_err err = OX_ERR_INIT;
    /* ir 10, group 100 { varint, group 3 {} }, empty graph, field 1000 */
    const char good[] = "\x08\x0a\xa3\x06\x08\x01\x1b\x1c\xa4\x06\x3a\x00\xc0\x3e\x01";
    assert_int_equal(try(good, sizeof(good) - 1, &err), OX_OK);
    const char open[] = "\x08\x0a\x3a\x00\xa3\x06\x08\x01";
    assert_int_equal(try(open, sizeof(open) - 1, &err), OX_BAD_FILE);
    const char crossed[] = "\x08\x0a\x3a\x00\x0b\x13\x0c\x14";
    assert_int_equal(try(crossed, sizeof(crossed) - 1, &err), OX_BAD_FILE);
    char deep[200];
    memset(deep, 0x0b, sizeof(deep));
    assert_int_equal(try(deep, sizeof(deep), &err), OX_BAD_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_storage_of_every_type),
        cmocka_unit_test(reads_nodes_attributes_types_and_functions),
        cmocka_unit_test(maps_external_data_once),
        cmocka_unit_test(reads_sequences_and_optionals),
        cmocka_unit_test(survives_truncation_and_flips),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(refuses_dims_that_lie),
        cmocka_unit_test(refuses_values_that_do_not_fit),
        cmocka_unit_test(refuses_external_data_outside_its_file),
        cmocka_unit_test(refuses_links_that_leave_the_folder),
        cmocka_unit_test(refuses_duplicate_and_missing_names),
        cmocka_unit_test(refuses_deep_nesting),
        cmocka_unit_test(bounds_the_number_of_records),
        cmocka_unit_test(refuses_what_is_not_a_model),
        cmocka_unit_test(skips_groups_and_unknown_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
