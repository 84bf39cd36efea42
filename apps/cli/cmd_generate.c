/* cmd_generate.c - one answer, as streamed text or as one JSON object with timing and memory. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct token_record {
    int32_t id;
    float logprob, margin;
    size_t best; /* index of its first entry in the best arrays */
} token_record;

typedef struct answer {
    const cli_options *o;
    ox_session *session;
    ox_buf text;
    OX_VEC(token_record) tokens;
    OX_VEC(int32_t) best_ids;
    OX_VEC(float) best_values;
    double first_token; /* clock, seconds */
    double load;        /* seconds */
    int failed_write;
    cli_answers several; /* with beams or several draws */
    cli_parts parts;
    ox_buf tools; /* JSON, or empty */
} answer;

static void record_logprobs(answer *a, token_record *t)
{
    const size_t k = (size_t)a->o->logprobs, n = a->best_ids.n;
    ox_err err = OX_ERR_INIT;
    if (!ox_vec_reserve(&a->best_ids, n + k) || !ox_vec_reserve(&a->best_values, n + k)) return;
    if (ox_session_logprobs(a->session, t->id, k, &t->logprob, a->best_ids.p + n,
                            a->best_values.p + n, &t->margin, &err))
        return;
    t->best = n;
    a->best_ids.n = a->best_values.n = n + k;
}

static int on_text(void *user, const char *text, size_t n, int32_t id)
{
    answer *a = user;
    if (id >= 0) {
        token_record t = {.id = id};
        if (!a->tokens.n) a->first_token = ox_clock_seconds();
        if (a->o->has_logprobs) record_logprobs(a, &t);
        if (!ox_vec_push(&a->tokens, t)) return 1;
    }
    if (a->o->json)
        ox_buf_put(&a->text, text, n);
    else if (n && !a->parts.shows && cli_stdout((ox_str){text, n}))
        a->failed_write = 1;
    return cli_interrupted() || a->failed_write;
}

/* Standard input without its last end of line, when no prompt is on the command line. */
static ox_status piped_prompt(ox_buf *text, ox_err *err)
{
    if (!isatty(STDIN_FILENO)) OX_TRY(cli_read_text(text, "-", err));
    if (text->n && text->p[text->n - 1] == '\n') text->n--;
    if (text->n) return OX_OK;
    return OX_FAIL(err, OX_BAD_ARGUMENT,
                   "a prompt is missing: oxgen generate MODEL \"PROMPT\", or a text by standard "
                   "input");
}

/* Text was given, and the tokenizer makes nothing of it, or there is none. */
static ox_status no_tokens(size_t n_text, ox_err *err)
{
    if (n_text)
        return OX_FAIL(
            err, OX_BAD_ARGUMENT,
            "the tokenizer makes no token of the prompt's %zu bytes: give other text, or "
            "ids with --ids",
            n_text);
    return OX_FAIL(err, OX_BAD_ARGUMENT, "the prompt is empty: give text, or ids with --ids");
}

static void on_part(void *user, const ox_parser_event *e)
{
    answer *a = user;
    cli_parts_event(&a->parts, e);
    if (a->parts.failed_write) a->failed_write = 1;
}

static ox_status prompt_ids(const ox_model *m, const cli_options *o, const char *tools,
                            int32_t **ids, size_t *n, ox_err *err)
{
    ox_buf text = {0}, messages = {0};
    ox_status st = OX_OK;

    if (o->ids) return cli_parse_ids(ids, n, o->ids, err);
    if (o->prompt_file)
        st = cli_read_text(&text, o->prompt_file, err);
    else if (o->args.n < 2)
        st = piped_prompt(&text, err);
    else if (!strcmp(o->args.p[1], "-"))
        st = cli_read_text(&text, "-", err);
    else
        ox_buf_put_z(&text, o->args.p[1]);
    ox_buf_reserve(&text, 1);
    if (!st && text.failed) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for the prompt");
    if (!st) st = cli_check_text(ox_buf_view(&text), "the prompt", err);
    if (!st && o->system) st = cli_check_text(ox_str_of(o->system), "--system", err);
    if (!st && (o->raw || !ox_model_has_template(m)))
        st = ox_model_encode(m, text.n ? text.p : "", text.n, OX_TEXT_ADD_SPECIAL, ids, n, err);
    else if (!st) {
        cli_messages(&messages, o->system, text.n ? text.p : "");
        st = messages.failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for the prompt")
                             : ox_model_chat_ids(m, messages.p, tools, NULL, 1, ids, n, err);
    }
    if (!st && !*n) st = no_tokens(text.n, err);
    ox_buf_deinit(&text);
    ox_buf_deinit(&messages);
    return st;
}

static void put_logprobs(const answer *a, ox_buf *out)
{
    const size_t k = (size_t)a->o->logprobs;
    ox_buf_put_z(out, ",\"logprobs\":[");
    for (size_t i = 0; i < a->tokens.n; i++) {
        const token_record *t = &a->tokens.p[i];
        ox_buf_printf(out, "%s{\"id\":%d,\"logprob\":%.9g,\"margin\":%.9g,\"top\":[", i ? "," : "",
                      t->id, (double)t->logprob, (double)t->margin);
        for (size_t j = 0; j < k && t->best + j < a->best_ids.n; j++)
            ox_buf_printf(out, "%s{\"id\":%d,\"logprob\":%.9g}", j ? "," : "",
                          a->best_ids.p[t->best + j], (double)a->best_values.p[t->best + j]);
        ox_buf_put_z(out, "]}");
    }
    ox_buf_put_z(out, "]");
}

static void put_several(const cli_answers *several, ox_buf *out)
{
    ox_buf_put_z(out, ",\"sequences\":[");
    for (size_t i = 0; i < several->n; i++) {
        const cli_answer *a = &several->p[i];
        ox_buf_put_z(out, i ? ",{\"ids\":[" : "{\"ids\":[");
        for (size_t k = 0; k < a->ids.n; k++)
            ox_buf_printf(out, "%s%d", k ? "," : "", a->ids.p[k]);
        ox_buf_put_z(out, "],\"text\":");
        cli_json_str(out, a->text.p ? a->text.p : "", a->text.n);
        ox_buf_printf(out, ",\"finish_reason\":\"%s\"", a->finish);
        if (a->score != 0.0f) ox_buf_printf(out, ",\"score\":%.9g", (double)a->score);
        ox_buf_put_c(out, '}');
    }
    ox_buf_put_c(out, ']');
}

typedef struct timing {
    double load, prefill, ttft, decode; /* seconds */
} timing;

static int print_json(const answer *a, const ox_model *m, const int32_t *ids, size_t n_ids,
                      ox_finish why, const timing *t)
{
    ox_buf b = {0};
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    ox_buf_put_z(&b, "{\"model\":");
    cli_json_str(&b, a->o->args.p[0], strlen(a->o->args.p[0]));
    ox_buf_printf(&b, ",\"backend\":\"%s\",\"device\":\"%s\",\"prompt_ids\":[", ox_model_backend(m),
                  ox_model_device(m));
    for (size_t i = 0; i < n_ids; i++)
        ox_buf_printf(&b, "%s%d", i ? "," : "", ids[i]);
    ox_buf_put_z(&b, "],\"ids\":[");
    for (size_t i = 0; i < a->tokens.n; i++)
        ox_buf_printf(&b, "%s%d", i ? "," : "", a->tokens.p[i].id);
    ox_buf_put_z(&b, "],\"text\":");
    cli_json_str(&b, a->text.p ? a->text.p : "", a->text.n);
    ox_buf_printf(&b, ",\"finish_reason\":\"%s\"",
                  a->several.n ? a->several.p[0].finish : cli_finish_name(why));
    if (a->several.n) put_several(&a->several, &b);
    cli_parts_json(&a->parts, &b);
    if (a->o->has_logprobs) put_logprobs(a, &b);
    const double n_new = (double)a->tokens.n;
    ox_buf_printf(
        &b,
        ",\"timing\":{\"load_ms\":%.3f,\"prefill_ms\":%.3f,\"ttft_ms\":%.3f,\"decode_ms\":%.3f,"
        "\"prefill_tps\":%.3f,\"decode_tps\":%.3f,\"n_prompt\":%zu,\"n_new\":%zu}",
        t->load * 1e3, t->prefill * 1e3, t->ttft * 1e3, t->decode * 1e3,
        t->prefill > 0 ? (double)n_ids / t->prefill : 0.0,
        t->decode > 0 && n_new > 1 ? (n_new - 1) / t->decode : 0.0, n_ids, a->tokens.n);
    ox_buf_printf(&b, ",\"memory\":{\"weights\":%llu,\"kv\":%llu,\"peak_rss\":%llu},\"warnings\":[",
                  (unsigned long long)ox_model_weight_bytes(m),
                  (unsigned long long)ox_session_kv_bytes(a->session),
                  (unsigned long long)use.ru_maxrss * 1024u);
    for (size_t i = 0; i < ox_model_n_warnings(m); i++) {
        if (i) ox_buf_put_c(&b, ',');
        cli_json_str(&b, ox_model_warning(m, i), strlen(ox_model_warning(m, i)));
    }
    ox_buf_put_z(&b, "]}\n");
    const int code = b.failed ? 4 : cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    return code;
}

/* The first of several answers is what `ids` and `text` say. */
static ox_status answer_several(answer *a, const ox_sampler_options *so, int *code, ox_err *err)
{
    OX_TRY(cli_several(&a->several, a->session, a->o, so, code, err));
    a->first_token = ox_clock_seconds();
    for (size_t i = 0; i < a->several.n; i++) {
        cli_answer *one = &a->several.p[i];
        if (one->text.failed) return OX_FAIL(err, OX_NO_MEMORY, "no memory for an answer");
        for (size_t k = 0; !i && k < one->ids.n; k++)
            if (!ox_vec_push(&a->tokens, (token_record){.id = one->ids.p[k]}))
                return OX_FAIL(err, OX_NO_MEMORY, "no memory for an answer");
        if (!i) ox_buf_put(&a->text, one->text.p, one->text.n);
        if (a->o->json) continue;
        ox_buf_put_z(&one->text, i + 1 < a->several.n ? "\n\n" : "");
        if (cli_stdout(ox_buf_view(&one->text))) a->failed_write = 1;
    }
    return OX_OK;
}

/* The session that classifier-free guidance moves away from; holds the prompt's last token when no
 * negative prompt is given, as Hugging Face does. */
static ox_status open_guide(ox_session **out, ox_model *m, const cli_options *o, const int32_t *ids,
                            size_t n, ox_err *err)
{
    int32_t *own = NULL;
    size_t n_own = 0;
    ox_buf messages = {0};
    ox_status st = OX_OK;
    const char *text = o->negative_prompt;
    if (text) {
        st = cli_check_text(ox_str_of(text), "--negative-prompt", err);
        cli_messages(&messages, o->system, text);
        if (!st && (o->raw || !ox_model_has_template(m)))
            st = ox_model_encode(m, text, strlen(text), OX_TEXT_ADD_SPECIAL, &own, &n_own, err);
        else if (!st && !messages.failed)
            st = ox_model_chat_ids(m, messages.p, NULL, NULL, 1, &own, &n_own, err);
    }
    if (!st) st = ox_session_open(out, m, err);
    if (!st && n_own) st = ox_session_append(*out, own, n_own, 0, NULL, NULL, err);
    if (!st && !n_own) st = ox_session_append(*out, ids + n - 1, 1, 0, NULL, NULL, err);
    ox_release(own);
    ox_buf_deinit(&messages);
    return st;
}

static ox_status answer_once(answer *a, ox_model *m, ox_sampler_options *so, int *code, ox_err *err)
{
    const cli_options *o = a->o;
    int32_t *ids = NULL;
    size_t n = 0;
    timing t = {.load = a->load};
    ox_finish why = OX_FINISH_LENGTH;
    ox_generate_options go;

    ox_generate_options_init(&go);
    go.sampler = so;
    go.max_new = o->has_max_new ? o->max_new : -1;
    go.stops = o->stop.p;
    go.n_stops = o->stop.n;
    go.ignore_eos = o->ignore_eos;
    go.on_text = on_text;
    go.keep_logits = o->has_logprobs;
    go.user = a;
    ox_status st = o->tools ? cli_read_text(&a->tools, o->tools, err) : OX_OK;
    if (!st && o->tools) st = cli_check_text(ox_buf_view(&a->tools), "--tools", err);
    const char *tools = o->tools ? a->tools.p ? a->tools.p : "" : NULL;
    if (!st) st = prompt_ids(m, o, tools, &ids, &n, err);
    const double start = ox_clock_seconds();
    if (!st) st = ox_session_append(a->session, ids, n, 0, cli_progress, (void *)(uintptr_t)o, err);
    t.prefill = ox_clock_seconds() - start;
    cli_progress_end();
    const int several = cli_wants_several(o, m, so);
    if (!st && so->guidance_scale != 1.0f && !several)
        st = open_guide(&go.guide, m, o, ids, n, err);
    if (!st && !several && !o->raw && !o->ids)
        st = cli_parts_open(&a->parts, o, m, ids, n, tools, err);
    go.parser = a->parts.parser;
    go.on_part = on_part;
    if (!st && several) st = answer_several(a, so, code, err);
    if (!st && !several) st = ox_generate(a->session, &go, &why, err);
    ox_session_close(&go.guide);
    cli_parts_done(&a->parts);
    t.ttft = a->tokens.n ? a->first_token - start : 0;
    t.decode = a->tokens.n ? ox_clock_seconds() - a->first_token : 0;
    if (!st) {
        *code = a->failed_write ? 1 : why == OX_FINISH_CANCELLED ? 130 : *code;
        if (o->json) {
            *code = print_json(a, m, ids, n, why, &t) ? 1 : *code;
        } else if (a->tokens.n && !a->failed_write) {
            cli_stdout(OX_STR("\n"));
        }
        const cli_stages stages = {n, 0, a->tokens.n, t.prefill, t.decode};
        cli_verbose_answer(o, a->session, &stages);
    }
    ox_release(ids);
    return st;
}

int cmd_generate(const cli_options *o)
{
    ox_model *m = NULL;
    cli_sampling sampling = {0};
    ox_err err = OX_ERR_INIT;
    answer a = {.o = o};
    int code = 0;

    if (!o->args.n) return cli_usage("a MODEL is missing: oxgen generate MODEL \"PROMPT\"");
    if (o->has_logprobs && (o->logprobs < 0 || o->logprobs > 1000))
        return cli_usage("--logprobs expects 0 to 1000, found %lld", o->logprobs);
    const double start = ox_clock_seconds();
    ox_status st = cli_open_model(&m, o, o->args.p[0], 0, &err);
    a.load = ox_clock_seconds() - start;
    if (!st) st = cli_sampling_open(&sampling, o, m, &err);
    if (!st) st = ox_session_open(&a.session, m, &err);
    if (!st) st = answer_once(&a, m, &sampling.o, &code, &err);
    if (st) code = cli_fail(&err);
    if (code == 130 && !st) cli_stopped();
    ox_session_close(&a.session);
    code = cli_close_model(&m, o, code);
    cli_sampling_close(&sampling);
    cli_answers_free(&a.several);
    cli_parts_close(&a.parts);
    ox_buf_deinit(&a.tools);
    ox_buf_deinit(&a.text);
    ox_vec_deinit(&a.tokens);
    ox_vec_deinit(&a.best_ids);
    ox_vec_deinit(&a.best_values);
    return code;
}
