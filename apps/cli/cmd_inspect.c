/* cmd_inspect.c - the model report: JSON as the library gives it, or the same as lines. */
#include "cli/cli.h"

#include "base/arena.h"
#include "base/json.h"

#include <string.h>

static void put_value(ox_buf *out, const ox_json *v)
{
    if (v->kind == OX_JSON_STRING)
        ox_buf_put_str(out, ox_json_str(v));
    else if (v->kind == OX_JSON_NUMBER)
        ox_buf_printf(out, "%lld", (long long)v->u.i);
    else if (v->kind == OX_JSON_BOOL)
        ox_buf_put_z(out, v->truth ? "yes" : "no");
}

/* "[2,batch]" */
static void put_dims(ox_buf *out, const ox_json *dims)
{
    ox_buf_put_c(out, '[');
    for (size_t i = 0; i < dims->n; i++) {
        if (i) ox_buf_put_c(out, ',');
        put_value(out, ox_json_at(dims, i));
    }
    ox_buf_put_c(out, ']');
}

static void put_port_list(ox_buf *out, const char *title, const ox_json *list)
{
    ox_buf_printf(out, "%s: %u\n", title, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const ox_json *p = ox_json_at(list, i);
        if (i == 6 && list->n > 8) {
            ox_buf_printf(out, "  … %zu more\n", (size_t)list->n - i);
            return;
        }
        ox_buf_put_z(out, "  ");
        put_value(out, ox_json_get(p, "name"));
        ox_buf_put_c(out, ' ');
        put_value(out, ox_json_get(p, "type"));
        ox_buf_put_c(out, ' ');
        put_dims(out, ox_json_get(p, "dims"));
        ox_buf_put_c(out, '\n');
    }
}

static void put_members(ox_buf *out, const char *title, const ox_json *object)
{
    ox_buf_printf(out, "%s:\n", title);
    for (size_t i = 0; i < object->n; i++) {
        const ox_json *v = &object->u.members[i].value;
        ox_buf_put_z(out, "  ");
        ox_buf_put_str(out, ox_json_str(&object->u.members[i].key));
        ox_buf_put_z(out, ": ");
        if (v->kind == OX_JSON_OBJECT) {
            put_value(out, ox_json_get(v, "tensors"));
            ox_buf_put_z(out, " tensors, ");
            put_value(out, ox_json_get(v, "bytes"));
            ox_buf_put_z(out, " bytes");
        } else {
            put_value(out, v);
        }
        ox_buf_put_c(out, '\n');
    }
}

static void put_lines(ox_buf *out, const ox_json *r)
{
    static const char *const plain[] = {
        "model", "form",      "architecture",  "context",
        "vocab", "tokenizer", "chat_template", "kv_bytes_per_token"};
    for (size_t i = 0; i < OX_COUNT(plain); i++) {
        ox_buf_printf(out, "%s: ", plain[i]);
        put_value(out, ox_json_get(r, plain[i]));
        ox_buf_put_c(out, '\n');
    }
    const ox_json *files = ox_json_get(r, "files"), *ports = ox_json_get(r, "ports");
    ox_buf_put_z(out, "files:\n");
    for (size_t i = 0; i < files->n; i++) {
        ox_buf_put_z(out, "  ");
        put_value(out, ox_json_get(ox_json_at(files, i), "path"));
        ox_buf_put_z(out, ", ");
        put_value(out, ox_json_get(ox_json_at(files, i), "bytes"));
        ox_buf_put_z(out, " bytes\n");
    }
    put_port_list(out, "inputs", ox_json_get(ports, "inputs"));
    put_port_list(out, "outputs", ox_json_get(ports, "outputs"));
    put_members(out, "operators", ox_json_get(r, "operators"));
    put_members(out, "weights", ox_json_get(r, "weights"));
    put_members(out, "backends", ox_json_get(r, "backends"));
    if (ox_json_get(r, "graph")) put_value(out, ox_json_get(r, "graph"));
}

int cmd_inspect(const cli_options *o)
{
    ox_err err = OX_ERR_INIT;
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_buf out = {0};
    char *json = NULL;

    if (!o->args.n) return cli_usage("a MODEL is missing: oxgen inspect MODEL");
    const int ort = o->backend && !strcmp(o->backend, "ort");
    if (o->backend && !ort && strcmp(o->backend, "native"))
        return cli_usage("--backend %s is not known; expected native or ort", o->backend);
    ox_status st = ox_inspect_json_with(o->args.p[0], o->graph, ort, &json, &err);
    if (!st && o->json) ox_buf_put_z(&out, json);
    if (!st && !o->json) st = ox_json_parse(&root, &arena, ox_str_of(json), &err);
    if (!st && !o->json) put_lines(&out, root);
    const int code = st ? cli_fail(&err) : cli_stdout(ox_buf_view(&out));
    ox_buf_deinit(&out);
    ox_arena_deinit(&arena);
    ox_release(json);
    return code;
}
