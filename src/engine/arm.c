/* arm.c - what a comparison asks of a model whose graph another library runs. */
#include "oxgen/arm.h"

#include "engine/engine_internal.h"

ox_status ox_model_library(const ox_model *m, ox_library *out, ox_err *err)
{
    *out = (ox_library){.api = 0};
    if (!m->ort) return OX_FAIL(err, OX_UNSUPPORTED, "the native backend uses no other library");
    *out = *ox_ort_decoder_library(m->ort);
    return OX_OK;
}

const char *ox_model_session_json(const ox_model *m)
{
    return m->ort ? ox_ort_decoder_settings(m->ort) : "{}";
}

/* The device's table; its trace goes into a file named by the prefix. */
static ox_status end_device_profile(ox_model *m, char **table, char **trace, ox_err *err)
{
    ox_buf text = {0}, events = {0};
    ox_status st = m->backend->ops->end_profile(m->backend, &text, &events, err);
    char *path = ox_strdup_n(m->profile, strlen(m->profile));
    if (!st && !path) st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a profile");
    if (!st) st = ox_file_write_atomic(path, ox_buf_view(&events), err);
    ox_buf_deinit(&events);
    if (!st) st = ox_engine_hand_over(&text, table, NULL, err);
    if (!st) *trace = path;
    if (st) {
        ox_buf_deinit(&text);
        ox_free(path);
    }
    return st;
}

ox_status ox_model_end_profile(ox_model *m, char **table, char **trace, ox_err *err)
{
    ox_buf b = {0};
    *table = *trace = NULL;
    if (m->ort) OX_TRY(ox_ort_decoder_end_profile(m->ort, trace, err));
    if (m->profile) return end_device_profile(m, table, trace, err);
    if (!*trace) return OX_FAIL(err, OX_BAD_ARGUMENT, "the model was opened without a profile");
    const ox_status st = ox_ort_profile_table(&b, *trace, err);
    if (!st) return ox_engine_hand_over(&b, table, NULL, err);
    ox_buf_deinit(&b);
    return st;
}
