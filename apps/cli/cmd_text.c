/* cmd_text.c - tokenize and template: text in, ids or text out; no weights are prepared. */
#include "cli/cli.h"

#include <string.h>

static int open_text(ox_model **m, const cli_options *o, const char *usage, ox_err *err)
{
    if (!o->args.n) return cli_usage("a MODEL is missing: %s", usage);
    return cli_open_model(m, o, o->args.p[0], 1, err) ? cli_fail(err) : 0;
}

static void put_ids(ox_buf *out, const int32_t *ids, size_t n, const char *separator)
{
    for (size_t i = 0; i < n; i++)
        ox_buf_printf(out, "%s%d", i ? separator : "", ids[i]);
}

static void put_encoded(ox_buf *out, const ox_model *m, const int32_t *ids, size_t n, int json)
{
    if (!json) {
        put_ids(out, ids, n, " ");
        ox_buf_put_c(out, '\n');
        return;
    }
    ox_buf_put_z(out, "{\"ids\":[");
    put_ids(out, ids, n, ",");
    ox_buf_put_z(out, "],\"pieces\":[");
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *piece = ox_model_piece(m, ids[i], &len);
        if (i) ox_buf_put_c(out, ',');
        cli_json_str(out, piece ? piece : "", piece ? len : 0);
    }
    ox_buf_put_z(out, "]}\n");
}

static ox_status encode(const ox_model *m, const cli_options *o, ox_str text, ox_buf *out,
                        ox_err *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    OX_TRY(ox_model_encode(m, text.n ? text.p : "", text.n, o->no_special ? 0 : OX_TEXT_ADD_SPECIAL,
                           &ids, &n, err));
    put_encoded(out, m, ids, n, o->json);
    ox_release(ids);
    return OX_OK;
}

static ox_status decode(const ox_model *m, const cli_options *o, const char *list, ox_buf *out,
                        ox_err *err)
{
    int32_t *ids = NULL;
    size_t n = 0, len = 0;
    char *text = NULL;
    OX_TRY(cli_parse_ids(&ids, &n, list, err));
    const ox_status st =
        ox_model_decode(m, ids, n, o->no_special ? OX_TEXT_SKIP_SPECIAL : 0, &text, &len, err);
    ox_free(ids);
    if (st) return st;
    if (o->json) {
        ox_buf_put_z(out, "{\"text\":");
        cli_json_str(out, text, len);
        ox_buf_put_z(out, "}\n");
    } else {
        ox_buf_put(out, text, len);
        ox_buf_put_c(out, '\n');
    }
    ox_release(text);
    return OX_OK;
}

int cmd_tokenize(const cli_options *o)
{
    ox_model *m = NULL;
    ox_err err = OX_ERR_INIT;
    ox_buf text = {0}, out = {0};
    ox_status st = OX_OK;

    int code = open_text(&m, o, "oxgen tokenize MODEL \"TEXT\"", &err);
    if (code) return code;
    if (o->file || (o->args.n < 2 && !o->ids) || (o->args.n > 1 && !strcmp(o->args.p[1], "-")))
        st = cli_read_text(&text, o->file ? o->file : "-", &err);
    else if (o->ids)
        ox_buf_put_z(&text, o->ids);
    else
        ox_buf_put_z(&text, o->args.p[1]);
    ox_buf_put_c(&text, 0);
    if (!st && o->decode)
        st = decode(m, o, text.p, &out, &err);
    else if (!st)
        st = encode(m, o, (ox_str){text.p, text.n - 1}, &out, &err);
    if (!st && (text.failed || out.failed))
        st = OX_FAIL(&err, OX_NO_MEMORY, "no memory for the text");
    code = st ? cli_fail(&err) : cli_stdout(ox_buf_view(&out));
    ox_buf_deinit(&text);
    ox_buf_deinit(&out);
    ox_model_close(&m);
    return code;
}

/* K=V pairs to a JSON object; V that starts like JSON is JSON, else a string. */
static ox_status put_vars(ox_buf *out, const cli_list *vars, ox_err *err)
{
    ox_buf_put_c(out, '{');
    for (size_t i = 0; i < vars->n; i++) {
        const char *v = vars->p[i], *eq = strchr(v, '=');
        if (!eq || eq == v)
            return OX_FAIL(err, OX_BAD_ARGUMENT, "--var expects K=V, found '%s'", v);
        double number;
        const ox_str value = ox_str_of(eq + 1);
        const int is_json = ox_str_is(value, "true") || ox_str_is(value, "false") ||
                            ox_str_is(value, "null") || (value.n && strchr("[{\"", value.p[0])) ||
                            ox_str_to_f64(value, &number);
        if (i) ox_buf_put_c(out, ',');
        cli_json_str(out, v, (size_t)(eq - v));
        ox_buf_put_c(out, ':');
        if (is_json)
            ox_buf_put_str(out, value);
        else
            cli_json_str(out, value.p, value.n);
    }
    ox_buf_put_c(out, '}');
    return OX_OK;
}

int cmd_template(const cli_options *o)
{
    ox_model *m = NULL;
    ox_err err = OX_ERR_INIT;
    ox_buf messages = {0}, tools = {0}, vars = {0};
    char *text = NULL;
    size_t n = 0;

    const char *usage = "oxgen template MODEL \"TEXT\", or MODEL --messages F.json";
    if (o->args.n && !o->messages == (o->args.n < 2))
        return cli_usage("one of a text and --messages is expected: %s", usage);
    int code = open_text(&m, o, usage, &err);
    if (code) return code;
    ox_status st = OX_OK;
    if (o->messages)
        st = cli_read_text(&messages, o->messages, &err);
    else
        st = cli_check_text(ox_str_of(o->args.p[1]), "the text", &err);
    if (!o->messages) cli_messages(&messages, NULL, o->args.p[1]);
    if (!st && o->tools) st = cli_read_text(&tools, o->tools, &err);
    if (!st) st = put_vars(&vars, &o->var, &err);
    ox_buf_put_c(&messages, 0);
    if (o->tools) ox_buf_put_c(&tools, 0);
    if (!st && (messages.failed || tools.failed || vars.failed))
        st = OX_FAIL(&err, OX_NO_MEMORY, "no memory for the conversation");
    if (!st)
        st = ox_model_template(m, messages.p, o->tools ? tools.p : NULL, vars.p,
                               !o->no_generation_prompt, &text, &n, &err);
    if (o->messages && (!strncmp(err.msg, "JSON", 4) || !strncmp(err.msg, "messages", 8))) {
        ox_err_prefix(&err, "%s", o->messages);
        if (err.status == OX_BAD_FILE) err.status = OX_BAD_ARGUMENT; /* not the model's fault */
    }
    code = st ? cli_fail(&err) : cli_stdout((ox_str){text, n});
    ox_release(text);
    ox_buf_deinit(&messages);
    ox_buf_deinit(&tools);
    ox_buf_deinit(&vars);
    ox_model_close(&m);
    return code;
}
