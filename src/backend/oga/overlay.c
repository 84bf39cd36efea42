/* overlay.c - what is laid over a folder's genai_config.json: threads and session options, and one
 * end-of-text id instead of the model's, the last of the vocabulary, which hardly ever is the best
 * one; oga.c goes on behind it. min_length would forbid the end-of-text tokens instead, and so
 * change which token is the best one: an arm that ignores end of text picks it and goes on. */
#include "backend/oga/oga.h"
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

typedef enum setting_kind {
    SETTING_NUMBER,
    SETTING_SWITCH,
    SETTING_LEVEL,
    SETTING_TEXT
} setting_kind;

static const struct {
    const char *key;
    setting_kind kind;
    const char *name;
} rows[] = {
#define OX_OGA_SETTING(key, kind, name) {key, SETTING_##kind, name},
#include "backend/oga/settings.def"
#undef OX_OGA_SETTING
};

static const char *level_name(const char *value)
{
    static const char *const names[][2] = {{"disable", "ORT_DISABLE_ALL"},
                                           {"basic", "ORT_ENABLE_BASIC"},
                                           {"extended", "ORT_ENABLE_EXTENDED"},
                                           {"all", "ORT_ENABLE_ALL"}};
    for (size_t i = 0; i < OX_COUNT(names); i++)
        if (!strcmp(names[i][0], value)) return names[i][1];
    return value;
}

static ox_status put_value(ox_json_writer *w, setting_kind kind, const char *value,
                           const char *option, ox_err *err)
{
    int64_t n = 0;
    if (kind == SETTING_TEXT) {
        ox_json_put_z(w, value);
        return OX_OK;
    }
    if (kind == SETTING_LEVEL) {
        ox_json_put_z(w, level_name(value));
        return OX_OK;
    }
    if (!ox_str_to_i64(ox_str_of(value), &n) || n < 0 || (kind == SETTING_SWITCH && n > 1))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--ort-option %s: expected %s", option,
                       kind == SETTING_SWITCH ? "0 or 1" : "a whole number");
    if (kind == SETTING_SWITCH)
        ox_json_put_bool(w, n != 0);
    else
        ox_json_put_i64(w, n);
    return OX_OK;
}

static ox_status put_option(ox_json_writer *w, const char *option, ox_err *err)
{
    const char *eq = strchr(option, '=');
    if (!eq || eq == option)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--ort-option expects KEY=VALUE, found '%s'", option);
    const ox_str key = {option, (size_t)(eq - option)};
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (ox_str_is(key, rows[i].key)) {
            ox_json_put_key(w, rows[i].name);
            return put_value(w, rows[i].kind, eq + 1, option, err);
        }
    ox_json_put_key_str(w, key);
    ox_json_put_z(w, eq + 1);
    return OX_OK;
}

ox_status ox_oga_overlay(ox_buf *json, int32_t end_id, const ox_oga_options *o, ox_err *err)
{
    ox_json_writer w = {.out = json};
    ox_status st = OX_OK;
    ox_json_begin_object(&w);
    ox_json_put_key(&w, "model");
    ox_json_begin_object(&w);
    ox_json_put_key(&w, "eos_token_id");
    ox_json_put_i64(&w, end_id);
    ox_json_put_key(&w, "decoder");
    ox_json_begin_object(&w);
    ox_json_put_key(&w, "session_options");
    ox_json_begin_object(&w);
    if (o->n_threads > 0) {
        ox_json_put_key(&w, "intra_op_num_threads");
        ox_json_put_i64(&w, o->n_threads);
    }
    for (size_t i = 0; !st && i < o->n_ort_options; i++)
        st = put_option(&w, o->ort_options[i], err);
    for (int i = 0; i < 4; i++)
        ox_json_end_object(&w);
    if (!st && json->failed) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for session options");
    return st;
}
