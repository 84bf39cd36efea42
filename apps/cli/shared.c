/* shared.c - what several commands do: open a model, build a sampler, read
 * ids, text and messages. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TEXT = 256 << 20 };

static ox_status in_int32(long long v, const char *flag, int32_t *out, ox_err *err)
{
    if (v < INT32_MIN || v > INT32_MAX)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--%s %lld is out of range", flag, v);
    *out = (int32_t)v;
    return OX_OK;
}

char *cli_find_model(const char *name)
{
    const char *models = ox_env("OXGEN_MODELS");
    if (!models || !*models || !*name || *name == '/' || ox_path_is_dir(name) ||
        ox_path_is_file(name))
        return NULL;
    char *path = ox_path_join(models, name);
    if (path && (ox_path_is_dir(path) || ox_path_is_file(path))) return path;
    ox_free(path);
    return NULL;
}

ox_status cli_model_options(ox_model_options *mo, const cli_options *o, ox_err *err)
{
    ox_model_options_init(mo);
    if (o->has_threads && o->threads < 1)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--threads %lld: expected 1 or more", o->threads);
    if (o->has_max_new && o->max_new < 0)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--max-new-tokens %lld: expected 0 or more",
                       o->max_new);
    if (o->has_context && o->context < 1)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--context %lld: expected 1 or more", o->context);
    OX_TRY(in_int32(o->threads, "threads", &mo->n_threads, err));
    OX_TRY(in_int32(o->block, "block", &mo->quant_block, err));
    OX_TRY(in_int32(o->head_bits, "head-bits", &mo->head_bits, err));
    mo->context = o->context;
    mo->backend = o->backend;
    mo->device = o->device;
    mo->numerics = o->numerics;
    mo->kv = o->kv;
    mo->quant = o->quant;
    mo->quant_asym = o->asym;
    mo->allow_cpu = o->allow_cpu;
    mo->ort_options = o->ort_option.p;
    mo->n_ort_options = o->ort_option.n;
    mo->progress = cli_progress;
    mo->progress_user = (void *)(uintptr_t)o;
    return OX_OK;
}

ox_status cli_open_model(ox_model **out, const cli_options *o, const char *path, int text_only,
                         ox_err *err)
{
    ox_model_options mo;
    OX_TRY(cli_model_options(&mo, o, err));
    char *prefix = o->has_profile ? cli_profile_prefix(o) : NULL;
    if (o->has_profile && !prefix) return OX_FAIL(err, OX_NO_MEMORY, "no memory");
    mo.text_only = text_only;
    mo.profile = prefix;
    const double start = ox_clock_seconds();
    const ox_status st = ox_model_open(out, path, &mo, err);
    ox_free(prefix);
    OX_TRY(st);
    cli_progress_end();
    for (size_t i = 0; i < ox_model_n_warnings(*out); i++)
        cli_note_later(o, ox_model_warning(*out, i));
    if ((!o->device || !strcmp(o->device, "auto")) && strcmp(ox_model_device(*out), "cpu") != 0)
        cli_note(o, "running on %s; --device cpu uses the CPU", ox_model_device(*out));
    cli_verbose_model(o, *out, ox_clock_seconds() - start);
    return OX_OK;
}

ox_status cli_parse_ids(int32_t **ids, size_t *n, const char *text, ox_err *err)
{
    OX_VEC(int32_t) v = {0};
    const char *at = text;
    while (*at) {
        const size_t len = strcspn(at, ", \n\t");
        int64_t id;
        if (len) {
            if (!ox_str_to_i64((ox_str){at, len}, &id) || id < 0 || id > INT32_MAX) {
                ox_vec_deinit(&v);
                return OX_FAIL(err, OX_BAD_ARGUMENT,
                               "--ids expects token ids such as 1,2,3, found '%.*s'",
                               (int)(len < 40 ? len : 40), at);
            }
            if (!ox_vec_push(&v, (int32_t)id)) {
                ox_vec_deinit(&v);
                return OX_FAIL(err, OX_NO_MEMORY, "no memory for token ids");
            }
        }
        at += len + (at[len] != 0);
    }
    if (!v.n) {
        ox_vec_deinit(&v);
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--ids is empty; expected ids such as 1,2,3");
    }
    *ids = v.p;
    *n = v.n;
    return OX_OK;
}

ox_status cli_check_text(ox_str text, const char *what, ox_err *err)
{
    const char *nul = text.n ? memchr(text.p, 0, text.n) : NULL;
    const size_t good = ox_json_utf8_check(text);
    if (nul)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%s holds a NUL byte (byte %zu); expected text", what,
                       (size_t)(nul - text.p));
    if (good < text.n)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%s is not UTF-8: byte %zu (0x%02x) is ill-formed",
                       what, good, (unsigned char)text.p[good]);
    return OX_OK;
}

ox_status cli_read_text(ox_buf *out, const char *path, ox_err *err)
{
    return ox_file_read(out, path, MAX_TEXT, err);
}

void cli_json_str(ox_buf *out, const char *s, size_t n)
{
    ox_json_quote(out, (ox_str){s, n});
}

static void put_message(ox_buf *out, const char *role, const char *content)
{
    ox_buf_printf(out, "{\"role\":\"%s\",\"content\":", role);
    cli_json_str(out, content, strlen(content));
    ox_buf_put_c(out, '}');
}

void cli_messages(ox_buf *out, const char *system, const char *prompt)
{
    ox_buf_put_c(out, '[');
    if (system) {
        put_message(out, "system", system);
        ox_buf_put_c(out, ',');
    }
    put_message(out, "user", prompt);
    ox_buf_put_c(out, ']');
}

const char *cli_finish_name(ox_finish f)
{
    static const char *const names[] = {
        [OX_FINISH_STOP] = "stop",
        [OX_FINISH_LENGTH] = "length",
        [OX_FINISH_STOP_STRING] = "stop_string",
        [OX_FINISH_CANCELLED] = "cancelled",
    };
    return names[f];
}
