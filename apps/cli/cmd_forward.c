/* cmd_forward.c - runs any ONNX graph once: .npy or .pb tensors in, .npy tensors out.
 *
 * Reading and writing the files is the library's (ox_array_read, ox_array_write). Without -o the
 * outputs' names, types and shapes are printed. */
#include "cli/cli.h"

#include "base/fs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static ox_status read_inputs(ox_array *in, const cli_list *list, ox_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *eq = strchr(list->p[i], '=');
        if (!eq || eq == list->p[i] || !eq[1])
            return OX_FAIL(err, OX_BAD_ARGUMENT, "--in expects NAME=FILE, found '%s'", list->p[i]);
        char *name = ox_strdup_n(list->p[i], (size_t)(eq - list->p[i]));
        if (!name) return OX_FAIL(err, OX_NO_MEMORY, "no memory");
        const ox_status st = ox_array_read(&in[i], name, eq + 1, err);
        ox_free(name);
        OX_TRY(st);
    }
    return OX_OK;
}

static void put_shape(ox_buf *b, const ox_array *a)
{
    ox_buf_printf(b, "%s: %s [", a->name, ox_array_type_name(a->dtype));
    for (int32_t i = 0; i < a->rank; i++)
        ox_buf_printf(b, "%s%lld", i ? "," : "", (long long)a->dims[i]);
    ox_buf_put_z(b, "]\n");
}

/* Names of values may hold slashes: they become dots in file names. */
static ox_status write_output(const char *dir, const ox_array *a, ox_err *err)
{
    ox_buf file = {0};
    ox_buf_printf(&file, "%s/", dir);
    const size_t start = file.n;
    ox_buf_put_z(&file, a->name);
    ox_buf_put_z(&file, ".npy");
    for (size_t i = start; !file.failed && i < file.n; i++)
        if (file.p[i] == '/' || file.p[i] == '\\') file.p[i] = '.';
    const ox_status st =
        file.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory") : ox_array_write(a, file.p, err);
    ox_buf_deinit(&file);
    return st;
}

static ox_status run(const cli_options *o, ox_graph_run *g, ox_array *in, ox_array *out,
                     ox_buf *text, ox_err *err)
{
    OX_TRY(read_inputs(in, &o->in, err));
    OX_TRY(ox_graph_run_once(g, in, o->in.n, out, err));
    if (o->output && mkdir(o->output, 0777) && errno != EEXIST)
        return OX_FAIL(err, OX_IO, "%s: cannot create the folder: %s", o->output, strerror(errno));
    for (size_t i = 0; i < ox_graph_run_n_outputs(g); i++) {
        put_shape(text, &out[i]);
        if (o->output) OX_TRY(write_output(o->output, &out[i], err));
    }
    return OX_OK;
}

int cmd_forward(const cli_options *o)
{
    ox_graph_run *g = NULL;
    ox_err err = OX_ERR_INIT;
    ox_buf text = {0};
    ox_array *in = NULL, *out = NULL;

    if (!o->args.n)
        return cli_usage("expected: oxgen forward GRAPH.onnx [--in NAME=FILE] [-o DIR]");
    ox_model_options mo;
    ox_status st = cli_model_options(&mo, o, &err);
    if (!st) st = ox_graph_run_open_with(&g, o->args.p[0], &mo, &err);
    if (!st) {
        in = ox_calloc(o->in.n, sizeof(*in));
        out = ox_calloc(ox_graph_run_n_outputs(g), sizeof(*out));
        st = in && out ? run(o, g, in, out, &text, &err) : OX_FAIL(&err, OX_NO_MEMORY, "no memory");
    }
    const int code = st ? cli_fail(&err) : cli_stdout(ox_buf_view(&text));
    for (size_t i = 0; in && i < o->in.n; i++)
        ox_array_free(&in[i]);
    ox_free(in);
    ox_free(out);
    ox_buf_deinit(&text);
    ox_graph_run_close(&g);
    return code;
}
