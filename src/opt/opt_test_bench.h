/* opt_test_bench.h - builds small ONNX graphs for opt_test.c and prints what became of them. Static
 * functions only. */
#ifndef OX_OPT_TEST_BENCH_H
#define OX_OPT_TEST_BENCH_H
#include "opt/opt.h"

#include "base/mem.h"
#include "tensor/half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { HIDDEN = 32, VOCAB = 48 };

typedef struct bench {
    ox_arena arena;
    ox_graph *g;
    ox_err err;
    ox_opt_report report;
    ox_buf text;
} bench;

static ox_value_id named(bench *b, const char *name, size_t n)
{
    ox_value_id v = ox_graph_find(b->g, (ox_str){name, n});
    if (!ox_value_is(v))
        assert_int_equal(ox_graph_add_value(b->g, (ox_str){name, n}, &v, &b->err), 0);
    return v;
}

static void input(bench *b, const char *name, ox_dtype type)
{
    const ox_value_id v = named(b, name, strlen(name));
    ox_graph_value(b->g, v)->kind = OX_VALUE_INPUT;
    ox_graph_value(b->g, v)->dtype = type;
    assert_true(ox_vec_push(&b->g->inputs, v));
}

static void begin(bench *b)
{
    memset(b, 0, sizeof(*b));
    assert_int_equal(ox_graph_open(&b->g, &b->arena, NULL, &b->err), OX_OK);
    input(b, "input_ids", OX_DTYPE_I64);
}

static void *tensor(bench *b, const char *name, ox_dtype type, int rank, const int64_t *dims)
{
    ox_tensor *t = ox_arena_take(&b->arena, sizeof(*t));
    size_t bytes;
    ox_value_id v;
    *t = (ox_tensor){.dtype = type, .rank = rank};
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    assert_true(ox_tensor_bytes(t, &bytes));
    t->data = ox_arena_take(&b->arena, bytes);
    assert_int_equal(ox_graph_add_constant(b->g, ox_str_of(name), t, &v, &b->err), OX_OK);
    return t->data;
}

static float *floats(bench *b, const char *name, int64_t d0, int64_t d1)
{
    const int64_t dims[2] = {d0, d1};
    return tensor(b, name, OX_DTYPE_F32, d1 ? 2 : 1, dims);
}

static void number(bench *b, const char *name, float x)
{
    *(float *)tensor(b, name, OX_DTYPE_F32, 0, NULL) = x;
}

static void ints(bench *b, const char *name, int n, ...)
{
    va_list ap;
    const int64_t dim = n;
    int64_t *p = tensor(b, name, OX_DTYPE_I64, 1, &dim);
    va_start(ap, n);
    for (int i = 0; i < n; i++)
        p[i] = va_arg(ap, int);
    va_end(ap);
}

/* Splits at blanks; "_" is an absent operand. */
static uint32_t names(bench *b, const char *list, ox_value_id *ids)
{
    uint32_t n = 0;
    while (*list) {
        const size_t len = strcspn(list, " ");
        ids[n++] = len == 1 && *list == '_' ? OX_NO_VALUE : named(b, list, len);
        list += len + (list[len] == ' ');
    }
    return n;
}

/* "axis=-1 eps=1e-5f approximate=tanh perm=0,2,1,3" */
static uint32_t attributes(bench *b, const char *list, ox_attr *attrs)
{
    uint32_t n = 0;
    while (*list) {
        const size_t len = strcspn(list, " "), at = strcspn(list, "=");
        ox_attr *a = &attrs[n++];
        const char *text = ox_arena_copy(&b->arena, list + at + 1, len - at - 1);
        *a = (ox_attr){.name = {ox_arena_copy(&b->arena, list, at), at}, .type = OX_ATTR_INT};
        char *end;
        a->i = strtol(text, &end, 10);
        if (*end == ',') {
            int64_t *p = ox_arena_take_n(&b->arena, 8, sizeof(*p));
            a->type = OX_ATTR_INTS;
            for (a->ints = p; *text; text = *end ? end + 1 : end)
                p[a->n++] = strtol(text, &end, 10);
        } else if (*end &&
                   (text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9'))) {
            a->type = OX_ATTR_FLOAT;
            a->f = strtof(text, NULL);
        } else if (*end) {
            a->type = OX_ATTR_STRING;
            a->s = ox_str_of(text);
        }
        list += len + (list[len] == ' ');
    }
    return n;
}

static void op_in(bench *b, const char *domain, const char *op, const char *in, const char *out,
                  const char *attrs)
{
    ox_value_id inputs[16], outputs[8];
    ox_attr list[16];
    char name[64];
    ox_node_id id;
    ox_node n = {.op_type = ox_str_of(op), .domain = ox_str_of(domain), .version = 21};
    n.inputs = inputs;
    n.outputs = outputs;
    n.attrs = list;
    n.n_inputs = names(b, in, inputs);
    n.n_outputs = names(b, out, outputs);
    n.n_attrs = attributes(b, attrs, list);
    snprintf(name, sizeof(name), "n%zu", b->g->nodes.n);
    n.name = ox_str_of(name);
    assert_int_equal(ox_graph_add_node(b->g, &n, &id, &b->err), OX_OK);
}

static void op(bench *b, const char *name, const char *in, const char *out, const char *attrs)
{
    op_in(b, "", name, in, out, attrs);
}

/* ids -> x by a table */
static void embedding(bench *b)
{
    floats(b, "table", VOCAB, HIDDEN);
    op(b, "Gather", "table input_ids", "x", "");
}

/* in -> logits by a matrix */
static void logits(bench *b, const char *in)
{
    floats(b, "head", HIDDEN, VOCAB);
    char operands[64];
    snprintf(operands, sizeof(operands), "%s head", in);
    op(b, "MatMul", operands, "logits", "");
    const ox_value_id out = named(b, "logits", 6);
    assert_true(ox_vec_push(&b->g->outputs, out));
}

static void run(bench *b)
{
    const ox_status st = ox_opt_run(b->g, NULL, &b->arena, &b->report, &b->err);
    if (st) fail_msg("%s", b->err.msg);
}

static void end(bench *b)
{
    ox_graph_close(&b->g);
    ox_arena_deinit(&b->arena);
    ox_buf_deinit(&b->text);
}

static void prints(bench *b, const char *want)
{
    ox_buf_clear(&b->text);
    ox_graph_print(b->g, &b->text);
    const char *got = strchr(b->text.p, '\n') + 1; /* without the heading */
    if (strcmp(got, want)) {
        printf("got:\n%s", got);
        fail_msg("the printed graph differs");
    }
}

/* Runs the rules; lines between the embedding and the head must be `want`. */
static void becomes(bench *b, const char *want)
{
    char all[8192];
    run(b);
    if (!b->report.is_terms) {
        ox_opt_report_print(&b->report, &b->text);
        fail_msg("%s", b->text.p);
    }
    assert_true(ox_graph_is_terms(b->g));
    snprintf(all, sizeof(all),
             "  %%n0[float32 rowsx32] = embed(%%input_ids) weight=table:f32 48x32 scale=1\n%s"
             "  %%logits[float32 rows_wantedx48] = head(",
             want);
    ox_buf_clear(&b->text);
    ox_graph_print(b->g, &b->text);
    const char *got = strchr(b->text.p, '\n') + 1;
    if (strncmp(got, all, strlen(all))) {
        printf("got:\n%s", got);
        fail_msg("the printed terms differ");
    }
    end(b);
}

static void remains(bench *b, const char *node, const char *reason)
{
    ox_buf before = {0};
    ox_graph_print(b->g, &before);
    run(b);
    assert_false(b->report.is_terms);
    assert_true(b->report.n_remaining > 0);
    const ox_opt_remaining *r = &b->report.remaining[0];
    if (!ox_str_is(r->node, node) || !strstr(r->reason, reason))
        fail_msg("%.*s: %s", OX_STR_ARGS(r->node), r->reason);
    ox_graph_print(b->g, &b->text);
    assert_string_equal(b->text.p, before.p); /* the graph is as it was */
    ox_buf_deinit(&before);
    end(b);
}

/* ---- a whole decoder layer */
#endif
