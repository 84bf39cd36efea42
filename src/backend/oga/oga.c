/* oga.c - ONNX Runtime GenAI as an arm of comparisons: its C API, its own loop. */
#include "base/status.h"
#include "oxgen/arm.h"

struct ox_oga {
    ox_library library;
};

void ox_oga_options_init(ox_oga_options *o)
{
    *o = (ox_oga_options){.struct_size = sizeof(*o)};
}

void ox_oga_request_init(ox_oga_request *r)
{
    *r = (ox_oga_request){.struct_size = sizeof(*r)};
}

ox_status ox_library_oga(ox_library *out, ox_err *err)
{
    *out = (ox_library){.api = 0};
    return OX_FAIL(err, OX_NO_DEVICE, "ONNX Runtime GenAI: not in this build");
}

ox_status ox_oga_open(ox_oga **out, const char *folder, const ox_oga_options *o, ox_err *err)
{
    (void)folder;
    (void)o;
    *out = NULL;
    return OX_FAIL(err, OX_NO_DEVICE, "ONNX Runtime GenAI: not in this build");
}

void ox_oga_close(ox_oga **g)
{
    (void)g;
}

ox_status ox_oga_library(const ox_oga *g, ox_library *out, ox_err *err)
{
    (void)err;
    *out = g->library;
    return OX_OK;
}

const char *ox_oga_session_json(const ox_oga *g)
{
    (void)g;
    return "{}";
}

ox_status ox_oga_run(ox_oga *g, const ox_oga_request *r, int32_t *ids, uint64_t *ns, size_t *n_done,
                     ox_oga_times *times, ox_err *err)
{
    (void)g, (void)r, (void)ids, (void)ns, (void)n_done, (void)times;
    return OX_FAIL(err, OX_NO_DEVICE, "ONNX Runtime GenAI: not in this build");
}
