/* node_tests.c - runs the ONNX project's node tests: a folder of cases, each with model.onnx and
 * test_data_set_N/{input,output}_M.pb (tools/gen_node_tests.py writes them). Every case runs in a
 * process of its own with a time limit. One line for each failing case, then the totals.
 *
 * usage: node_tests [--list] [--only TEXT] [--unsupported] [--fold] [--atol X] FOLDER
 * --fold infers shapes and folds constants first, and holds inference against the results.
 * exit 1 when a case failed */
#include "base/fs.h"
#include "file/onnx.h"
#include "file/proto.h"
#include "graph/from_onnx.h"
#include "ops/fold.h"
#include "ops/infer.h"
#include "ops/lane.h"
#include "ops/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60, VALUES_MAX = 64 };
static const size_t memory_limit = (size_t)2 << 30;
static bool folds;             /* run infer and fold first: results must stay the same */
static double absolute = 1e-7; /* --atol */
static int n_unknown;          /* outputs that inference says nothing about */

typedef struct item {
    ox_rt_kind kind;
    ox_onnx_tensor *t;
    size_t n;
} item;

typedef struct test {
    ox_arena arena;
    const char *dir;
    ox_onnx *o;
    ox_graph *g;
    ox_buf files[2 * VALUES_MAX];
    size_t n_files;
    ox_err err;
} test;

static ox_status read_item(test *t, const char *path, ox_onnx_kind kind, item *out)
{
    ox_buf *b = &t->files[t->n_files++];
    OX_TRY(ox_file_read(b, path, (size_t)1 << 30, &t->err));
    const ox_str bytes = ox_buf_view(b);
    *out = (item){.kind = OX_RT_TENSOR, .n = 1};
    if (kind == OX_ONNX_TENSOR) {
        out->t = ox_arena_take(&t->arena, sizeof(*out->t));
        return ox_onnx_tensor_parse(out->t, &t->arena, bytes, &t->err);
    }
    OX_TRY(ox_onnx_sequence_parse(&out->t, &out->n, &t->arena, bytes, &t->err));
    out->kind = OX_RT_SEQUENCE;
    if (kind != OX_ONNX_OPTIONAL) return OX_OK;
    ox_proto w = ox_proto_of(bytes);
    uint64_t element = 0;
    for (ox_proto_field f; ox_proto_next(&w, &f);)
        if (f.number == 2) element = f.value;
    if (element == 1) out->kind = out->n ? OX_RT_TENSOR : OX_RT_NONE;
    if (element == 0) out->kind = OX_RT_NONE;
    return OX_OK;
}

/* rtol 1e-3 and atol 1e-7 as the ONNX project's own runner has them; one step of the type where
 * that is coarser, since the expected values come from other roundings in between. */
static bool close_enough(ox_dtype t, double got, double want)
{
    const double rtol = t == OX_DTYPE_BF16 ? 0x1p-6 : t == OX_DTYPE_F16 ? 0x1p-9 : 1e-3;
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got)) return want >= got && want <= got;
    return fabs(got - want) <= absolute + rtol * fabs(want);
}

static ox_status compare(test *t, const char *name, const ox_tensor *got, const ox_tensor *want)
{
    size_t n = 0;
    if (got->dtype != want->dtype)
        return OX_FAIL(&t->err, OX_FAILED, "%s is %s, not %s", name, ox_dtype_name(got->dtype),
                       ox_dtype_name(want->dtype));
    if (got->rank != want->rank ||
        memcmp(got->dims, want->dims, (size_t)got->rank * sizeof(got->dims[0]))) {
        ox_buf b = {0};
        for (int32_t i = 0; i < got->rank; i++)
            ox_buf_printf(&b, " %lld", (long long)got->dims[i]);
        ox_buf_put_z(&b, ", not");
        for (int32_t i = 0; i < want->rank; i++)
            ox_buf_printf(&b, " %lld", (long long)want->dims[i]);
        return OX_FAIL(&t->err, OX_FAILED, "%s has the shape%.*s", name,
                       OX_STR_ARGS(ox_buf_view(&b)));
    }
    (void)ox_tensor_count(got, &n);
    const ox_lane_class k = ox_lane_class_of(got->dtype);
    const size_t width = (size_t)ox_dtype_bits(got->dtype) / 8;
    for (size_t i = 0; i < n; i++) {
        ox_lane a = {0}, b = {0};
        bool same;
        if (got->dtype == OX_DTYPE_STRING) {
            same = ox_str_eq(((const ox_str *)got->data)[i], ((const ox_str *)want->data)[i]);
        } else if (k == OX_LANE_NONE) {
            same = !memcmp((const char *)got->data + i * width,
                           (const char *)want->data + i * width, width);
        } else {
            ox_lane_load(got->dtype, got->data, NULL, i, 1, &a);
            ox_lane_load(want->dtype, want->data, NULL, i, 1, &b);
            same = k == OX_LANE_F ? close_enough(got->dtype, a.f, b.f) : a.u == b.u;
        }
        if (same) continue;
        if (k == OX_LANE_F)
            return OX_FAIL(&t->err, OX_FAILED, "%s[%zu] is %.9g, not %.9g", name, i, a.f, b.f);
        return OX_FAIL(&t->err, OX_FAILED, "%s[%zu] is %lld, not %lld", name, i, (long long)a.i,
                       (long long)b.i);
    }
    return OX_OK;
}

static ox_status compare_value(test *t, const char *name, const ox_rt_value *got, const item *want)
{
    if (want->kind == OX_RT_TENSOR && got->kind == OX_RT_TENSOR)
        return compare(t, name, &got->t, &want->t->t);
    if (got->kind != want->kind) return OX_FAIL(&t->err, OX_FAILED, "%s is of another kind", name);
    if (got->kind == OX_RT_NONE) return OX_OK;
    if (got->n_items != want->n)
        return OX_FAIL(&t->err, OX_FAILED, "%s has %zu items, not %zu", name, got->n_items,
                       want->n);
    for (size_t i = 0; i < want->n; i++)
        OX_TRY(compare(t, name, &got->items[i]->t, &want->t[i].t));
    return OX_OK;
}

/* What inference says of an output must be true of its value. */
static ox_status check_inferred(test *t, ox_str name, const ox_rt_value *got)
{
    const ox_value *v = ox_graph_value(t->g, ox_graph_find(t->g, name));
    const char *wrong = NULL;
    if (got->kind != OX_RT_TENSOR) return OX_OK;
    if (v->dtype && v->dtype != got->t.dtype) wrong = "another type";
    if (v->rank >= 0 && v->rank != got->t.rank) wrong = "another rank";
    for (int32_t i = 0; !wrong && i < v->rank; i++)
        if (v->dims[i] >= 0 && v->dims[i] != got->t.dims[i]) wrong = "another shape";
    if (wrong)
        return OX_FAIL(&t->err, OX_FAILED, "%s was inferred for \"%.*s\"", wrong,
                       OX_STR_ARGS(name));
    if (v->rank < 0 && v->type == OX_TYPE_TENSOR) n_unknown++;
    return OX_OK;
}

static ox_status run_set(test *t, int i_set)
{
    ox_run_input in[VALUES_MAX];
    ox_str wanted[VALUES_MAX];
    ox_run_results *r = NULL;
    char path[4096];
    size_t n_in = 0, n_out = t->o->graph->n_outputs;
    if (t->o->graph->n_inputs > VALUES_MAX || n_out > VALUES_MAX)
        return OX_FAIL(&t->err, OX_LIMIT, "too many inputs");
    for (size_t i = 0; i < t->o->graph->n_inputs; i++) {
        const ox_onnx_value *v = &t->o->graph->inputs[i];
        item x;
        snprintf(path, sizeof(path), "%s/test_data_set_%d/input_%zu.pb", t->dir, i_set, i);
        if (!ox_path_is_file(path)) continue;
        OX_TRY(read_item(t, path, v->kind, &x));
        ox_tensor *items = ox_arena_take_n(&t->arena, x.n + 1, sizeof(*items));
        for (size_t k = 0; k < x.n; k++)
            items[k] = x.t[k].t;
        in[n_in++] = (ox_run_input){.name = v->name,
                                    .kind = x.kind,
                                    .t = items[0],
                                    .items = items,
                                    .n_items = x.n,
                                    .item_dtype = v->dtype};
    }
    for (size_t i = 0; i < n_out; i++)
        wanted[i] = t->o->graph->outputs[i].name;
    const ox_run_options options = {.memory_limit = memory_limit, .node_limit = 1000000};
    OX_TRY(ox_graph_eval(&r, t->g, in, n_in, wanted, n_out, &options, &t->err));
    ox_status st = OX_OK;
    for (size_t i = 0; !st && i < n_out; i++) {
        item want;
        char name[256];
        snprintf(path, sizeof(path), "%s/test_data_set_%d/output_%zu.pb", t->dir, i_set, i);
        snprintf(name, sizeof(name), "%.*s", OX_STR_ARGS(wanted[i]));
        if (folds) st = check_inferred(t, wanted[i], r->values[i]);
        if (st) break;
        if (!ox_path_is_file(path)) continue;
        st = read_item(t, path, t->o->graph->outputs[i].kind, &want);
        if (!st) st = compare_value(t, name, r->values[i], &want);
    }
    ox_run_results_close(&r);
    return st;
}

static ox_status run_case(test *t)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/model.onnx", t->dir);
    OX_TRY(ox_onnx_open(&t->o, path, &t->err));
    const ox_from_onnx_options keep = {.keep = ox_op_keep};
    OX_TRY(ox_graph_from_onnx_with(&t->g, &t->arena, t->o, &keep, &t->err));
    OX_TRY(ox_op_check_graph(t->g, &t->err));
    if (folds) {
        for (size_t i = 0; i < t->g->values.n; i++) { /* forget what the file says */
            ox_value *v = &t->g->values.p[i];
            if (v->kind != OX_VALUE_NODE) continue;
            v->dtype = OX_DTYPE_NONE;
            v->rank = -1;
        }
        OX_TRY(ox_graph_infer(t->g, &t->err));
        OX_TRY(ox_graph_fold(t->g, (size_t)1 << 24, &t->err));
        OX_TRY(ox_graph_infer(t->g, &t->err));
        OX_TRY(ox_graph_verify(t->g, &t->err));
    }
    for (int i = 0;; i++) {
        snprintf(path, sizeof(path), "%s/test_data_set_%d", t->dir, i);
        if (!ox_path_is_dir(path)) break;
        OX_TRY(run_set(t, i));
    }
    return OX_OK;
}

/* Runs one case in a child: 0 passed, 1 failed, 2 unsupported; message gets why. */
static int guarded(const char *dir, char *message, size_t cap)
{
    int pipe_fds[2], status = 0;
    size_t n = 0;
    if (pipe(pipe_fds)) exit(3);
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) exit(3);
    if (!child) {
        test t = {.dir = dir};
        close(pipe_fds[0]);
        alarm(SECONDS);
        const ox_status st = run_case(&t);
        if (st && write(pipe_fds[1], t.err.msg, strlen(t.err.msg)) < 0) _exit(3);
        ox_graph_close(&t.g);
        ox_onnx_close(&t.o);
        ox_arena_deinit(&t.arena);
        for (size_t i = 0; i < t.n_files; i++)
            ox_buf_deinit(&t.files[i]);
        if (folds && !st && n_unknown) printf("unknown shape: %s\n", dir);
        if (st == OX_UNSUPPORTED) exit(2);
        exit(st ? 1 : 0);
    }
    close(pipe_fds[1]);
    for (ssize_t got; n + 1 < cap && (got = read(pipe_fds[0], message + n, cap - 1 - n)) > 0;)
        n += (size_t)got;
    message[n] = 0;
    close(pipe_fds[0]);
    if (waitpid(child, &status, 0) < 0) exit(3);
    if (WIFSIGNALED(status)) {
        snprintf(message, cap, "killed by signal %d", WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status);
}

static void list_operators(void)
{
    for (size_t i = 0; i < ox_op_count(); i++) {
        const ox_op *o = ox_op_at(i);
        printf("%s%s%s-%d\n", o->domain, *o->domain ? "." : "", o->name, o->since);
    }
}

int main(int argc, char **argv)
{
    const char *folder = NULL, *only = "";
    bool list = false, show_unsupported = false;
    size_t n = 0, count[3] = {0}, total = 0;
    char **names, path[4096], message[2048];
    ox_err err = OX_ERR_INIT;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list"))
            list = true;
        else if (!strcmp(argv[i], "--unsupported"))
            show_unsupported = true;
        else if (!strcmp(argv[i], "--fold"))
            folds = true;
        else if (!strcmp(argv[i], "--atol") && i + 1 < argc)
            absolute = strtod(argv[++i], NULL);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else
            folder = argv[i];
    }
    if (list) list_operators();
    if (!folder) return list ? 0 : 2;
    if (ox_dir_list(&names, &n, folder, &err)) {
        printf("%s\n", err.msg);
        return 2;
    }
    for (size_t i = 0; i < n; i++) {
        if (!strstr(names[i], only)) continue;
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        int r = guarded(path, message, sizeof(message));
        if (r > 2) r = 1;
        count[r]++;
        total++;
        if (r == 1) printf("FAIL %s: %s\n", names[i], message);
        if (r == 2 && show_unsupported) printf("lack %s: %s\n", names[i], message);
    }
    ox_dir_list_free(names, n);
    printf("%zu passed, %zu failed, %zu unsupported of %zu\n", count[0], count[1], count[2], total);
    return count[1] ? 1 : 0;
}
