/* chat_commands.c - the slash commands of `oxgen run`, one function a row of chat_commands.def. */
#include "cli/chat.h"

#include "base/fs.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void do_help(chat *c, const char *arg);

static void do_reset(chat *c, const char *arg)
{
    (void)arg;
    chat_reset(c);
    fprintf(stderr, "conversation forgotten\n");
}

static void do_system(chat *c, const char *arg)
{
    ox_err err = OX_ERR_INIT;
    chat_reset(c);
    while (c->messages.n) {
        chat_message *m = &c->messages.p[--c->messages.n];
        ox_free(m->role);
        ox_free(m->content);
    }
    if (*arg && chat_say(c, "system", arg, &err)) cli_fail(&err);
}

static void do_stats(chat *c, const char *arg)
{
    struct rusage use;
    (void)arg;
    getrusage(RUSAGE_SELF, &use);
    const size_t run = c->n_prompt - c->n_reused;
    fprintf(stderr,
            "prompt %zu tokens (%zu from the cache), %.1f tok/s; answer %zu tokens, %.1f tok/s\n",
            c->n_prompt, c->n_reused, c->prefill_s > 0 ? (double)run / c->prefill_s : 0.0, c->n_new,
            c->decode_s > 0 && c->n_new > 1 ? (double)(c->n_new - 1) / c->decode_s : 0.0);
    fprintf(stderr, "weights %.1f MB, cache %.1f MB, context %zu of %lld, peak memory %.1f MB\n",
            (double)ox_model_weight_bytes(c->model) / 1e6,
            (double)ox_session_kv_bytes(c->session) / 1e6, ox_session_length(c->session),
            (long long)ox_model_context(c->model), (double)use.ru_maxrss * 1024e-6);
}

static void do_save(chat *c, const char *arg)
{
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    if (!*arg) {
        fprintf(stderr, "/save needs a file name\n");
        return;
    }
    chat_json(c, &b);
    ox_buf_put_c(&b, '\n');
    if (b.failed || ox_file_write_atomic(arg, ox_buf_view(&b), &err))
        cli_fail(&err);
    else
        fprintf(stderr, "saved %zu messages to %s\n", c->messages.n, arg);
    ox_buf_deinit(&b);
}

static ox_status load(chat *c, const char *path, ox_err *err)
{
    ox_buf b = {0};
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    ox_status st = ox_file_read(&b, path, 64 << 20, err);
    if (!st) st = ox_json_parse(&root, &arena, ox_buf_view(&b), err);
    if (!st && root->kind != OX_JSON_ARRAY)
        st = OX_FAIL(err, OX_BAD_FILE, "%s: expected a JSON array of messages", path);
    for (size_t i = 0; !st && i < root->n; i++) {
        const ox_json *role = ox_json_get(ox_json_at(root, i), "role");
        const ox_json *content = ox_json_get(ox_json_at(root, i), "content");
        if (!role || !content || role->kind != OX_JSON_STRING || content->kind != OX_JSON_STRING)
            st = OX_FAIL(err, OX_BAD_FILE, "%s: message %zu has no role or content text", path, i);
    }
    if (!st) do_system(c, "");
    for (size_t i = 0; !st && i < root->n; i++)
        st = chat_say(c, ox_json_get(ox_json_at(root, i), "role")->u.text,
                      ox_json_get(ox_json_at(root, i), "content")->u.text, err);
    ox_buf_deinit(&b);
    ox_arena_deinit(&arena);
    return st;
}

static void do_load(chat *c, const char *arg)
{
    ox_err err = OX_ERR_INIT;
    if (!*arg)
        fprintf(stderr, "/load needs a file name\n");
    else if (load(c, arg, &err))
        cli_fail(&err);
    else
        fprintf(stderr, "loaded %zu messages\n", c->messages.n);
}

static void do_model(chat *c, const char *arg)
{
    ox_err err = OX_ERR_INIT;
    ox_model *m = NULL;
    ox_session *s = NULL;
    if (!*arg) {
        fprintf(stderr, "model: %s\n", c->path);
        return;
    }
    char *path = cli_find_model(arg);
    if (!path) path = ox_strdup_n(arg, strlen(arg));
    if (!path || cli_open_model(&m, c->o, path, 0, &err) || ox_session_open(&s, m, &err)) {
        cli_fail(&err);
        ox_model_close(&m);
        ox_free(path);
        return;
    }
    ox_session_close(&c->session);
    cli_close_model(&c->model, c->o, 0);
    ox_free(c->path);
    c->model = m;
    c->session = s;
    c->path = path;
}

static void do_backend(chat *c, const char *arg)
{
    (void)arg;
    fprintf(stderr, "backend %s on %s, %d threads\n", ox_model_backend(c->model),
            ox_model_device(c->model), ox_model_n_threads(c->model));
}

static void do_exit(chat *c, const char *arg)
{
    (void)arg;
    c->leave = 1;
}

typedef struct chat_row {
    const char *name;
    void (*fn)(chat *c, const char *arg);
    const char *arg, *help;
} chat_row;

static const chat_row rows[] = {
#define CHAT_COMMAND(name, fn, arg, help) {name, fn, arg, help},
#include "cli/chat_commands.def"
#undef CHAT_COMMAND
};

static void do_help(chat *c, const char *arg)
{
    (void)c, (void)arg;
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        fprintf(stderr, "  /%-8s %-5s %s\n", rows[i].name, rows[i].arg, rows[i].help);
}

int chat_command(chat *c, const char *line)
{
    if (line[0] != '/') return 0;
    const size_t n = strcspn(line + 1, " \t");
    const char *arg = line + 1 + n;
    arg += strspn(arg, " \t");
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (ox_str_eq((ox_str){line + 1, n}, ox_str_of(rows[i].name))) {
            rows[i].fn(c, arg);
            return 1;
        }
    fprintf(stderr, "there is no command /%.*s; /help lists them\n", (int)n, line + 1);
    return 1;
}
