/* chat.c - turns of a conversation; the cache keeps what a turn shares with the one before. */
#include "cli/chat.h"

#include "base/clock.h"

#include <string.h>

ox_status chat_say(chat *c, const char *role, const char *content, ox_err *err)
{
    chat_message m = {ox_strdup_n(role, strlen(role)), ox_strdup_n(content, strlen(content))};
    if (m.role && m.content && ox_vec_push(&c->messages, m)) return OX_OK;
    ox_free(m.role);
    ox_free(m.content);
    return OX_FAIL(err, OX_NO_MEMORY, "no memory for a message");
}

static void drop_last(chat *c)
{
    chat_message *m = &c->messages.p[--c->messages.n];
    ox_free(m->role);
    ox_free(m->content);
}

void chat_reset(chat *c)
{
    while (c->messages.n && strcmp(c->messages.p[c->messages.n - 1].role, "system"))
        drop_last(c);
}

ox_status chat_open(chat *c, const cli_options *o, const char *path, ox_err *err)
{
    *c = (chat){.o = o};
    c->path = ox_strdup_n(path, strlen(path));
    if (!c->path) return OX_FAIL(err, OX_NO_MEMORY, "no memory");
    OX_TRY(cli_open_model(&c->model, o, path, 0, err));
    OX_TRY(ox_session_open(&c->session, c->model, err));
    if (o->system) OX_TRY(cli_check_text(ox_str_of(o->system), "--system", err));
    return o->system ? chat_say(c, "system", o->system, err) : OX_OK;
}

void chat_close(chat *c)
{
    while (c->messages.n)
        drop_last(c);
    ox_vec_deinit(&c->messages);
    ox_buf_deinit(&c->answer);
    ox_session_close(&c->session);
    cli_close_model(&c->model, c->o, 0);
    ox_free(c->path);
    c->path = NULL;
}

void chat_json(const chat *c, ox_buf *out)
{
    ox_buf_put_c(out, '[');
    for (size_t i = 0; i < c->messages.n; i++) {
        const chat_message *m = &c->messages.p[i];
        ox_buf_printf(out, "%s{\"role\":\"%s\",\"content\":", i ? "," : "", m->role);
        cli_json_str(out, m->content, strlen(m->content));
        ox_buf_put_c(out, '}');
    }
    ox_buf_put_c(out, ']');
}

/* Ids of the whole conversation: rendered by the template, or the texts joined
 * when there is none. */
static ox_status conversation_ids(chat *c, int32_t **ids, size_t *n, ox_err *err)
{
    ox_buf json = {0};
    chat_json(c, &json);
    const ox_status st = json.failed
                             ? OX_FAIL(err, OX_NO_MEMORY, "no memory for the conversation")
                             : ox_model_chat_ids(c->model, json.p, NULL, NULL, 1, ids, n, err);
    ox_buf_deinit(&json);
    return st;
}

static int on_text(void *user, const char *text, size_t n, int32_t id)
{
    chat *c = user;
    if (id >= 0 && !c->n_new++) c->first = ox_clock_seconds();
    ox_buf_put(&c->answer, text, n);
    if (n && !c->parts.shows && cli_stdout((ox_str){text, n})) c->leave = c->code = 1;
    return cli_interrupted() || c->leave;
}

static void on_part(void *user, const ox_parser_event *e)
{
    chat *c = user;
    cli_parts_event(&c->parts, e);
    if (c->parts.failed_write) c->leave = c->code = 1;
}

static ox_status answer(chat *c, ox_err *err)
{
    cli_sampling sampling;
    ox_generate_options go;
    int32_t *ids = NULL;
    ox_finish why;

    ox_generate_options_init(&go);
    ox_status st = cli_sampling_open(&sampling, c->o, c->model, err);
    go.sampler = &sampling.o;
    go.max_new = c->o->has_max_new ? c->o->max_new : -1;
    go.stops = c->o->stop.p;
    go.n_stops = c->o->stop.n;
    go.ignore_eos = c->o->ignore_eos;
    go.on_text = on_text;
    go.user = c;
    if (!st) st = conversation_ids(c, &ids, &c->n_prompt, err);
    c->started = c->first = ox_clock_seconds();
    if (!st)
        st = ox_session_sync(c->session, ids, c->n_prompt, cli_progress, (void *)(uintptr_t)c->o,
                             &c->n_reused, err);
    cli_progress_end();
    if (!st) st = cli_parts_open(&c->parts, c->o, c->model, ids, c->n_prompt, NULL, err);
    go.parser = c->parts.parser;
    go.on_part = on_part;
    if (!st) st = ox_generate(c->session, &go, &why, err);
    cli_parts_done(&c->parts);
    cli_parts_close(&c->parts);
    c->prefill_s = c->first - c->started;
    c->decode_s = ox_clock_seconds() - c->first;
    const cli_stages stages = {c->n_prompt, c->n_reused, c->n_new, c->prefill_s, c->decode_s};
    if (!st) cli_verbose_answer(c->o, c->session, &stages);
    if (!st && why == OX_FINISH_LENGTH &&
        ox_session_length(c->session) >= (size_t)ox_model_context(c->model))
        cli_note(c->o, "the context of %lld tokens is full; /reset starts a new conversation",
                 (long long)ox_model_context(c->model));
    ox_release(ids);
    cli_sampling_close(&sampling);
    return st;
}

ox_status chat_turn(chat *c, const char *prompt, ox_err *err)
{
    ox_buf_clear(&c->answer);
    c->n_new = 0;
    OX_TRY(cli_check_text(ox_str_of(prompt), "the prompt", err));
    OX_TRY(chat_say(c, "user", prompt, err));
    const ox_status st = answer(c, err);
    if (st && !c->answer.n) {
        drop_last(c);
        return st;
    }
    OX_TRY(chat_say(c, "assistant", c->answer.p ? c->answer.p : "", err));
    return st;
}
