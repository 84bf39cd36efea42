/* decoder.c - a decoder graph opened by ONNX Runtime: which input is what, which output holds the
 * logits. The file's own reader is ONNX Runtime: a graph that it runs is run here, whether or not
 * oxgen's kernels could. */
#include "backend/ort/decoder_internal.h"

#include "base/log.h"

#include <string.h>

enum {
    MOST_ROWS = 2048,
    LOGITS_BYTES = 256 << 20, /* a chunk's logits stay below this */
};

static const struct {
    const char *name;
    feed_rule rule;
} known[] = {
#define OX_ORT_INPUT(name, rule) {name, FEED_##rule},
#include "backend/ort/inputs.def"
#undef OX_ORT_INPUT
};

static bool is_number(ox_dtype t)
{
    return t == OX_DTYPE_I64 || t == OX_DTYPE_I32 || t == OX_DTYPE_F32 || t == OX_DTYPE_BOOL;
}

static bool rule_of(feed_rule *rule, const ox_source *s, ox_str name)
{
    const struct {
        ox_str name;
        feed_rule rule;
    } named[] = {{s->in_ids, FEED_IDS}, {s->in_mask, FEED_MASK}, {s->in_positions, FEED_POSITIONS}};
    for (size_t i = 0; i < OX_COUNT(named); i++)
        if (named[i].name.n && ox_str_eq(name, named[i].name)) {
            *rule = named[i].rule;
            return true;
        }
    for (size_t i = 0; i < OX_COUNT(known); i++)
        if (ox_str_is(name, known[i].name)) {
            *rule = known[i].rule;
            return true;
        }
    return false;
}

/* What a step can fill: rows along the last dimension, the rest 1 (or a fixed count of copies). */
static ox_status check_feed(ox_ort_decoder *d, const feed *f, ox_err *err)
{
    const ox_onnx_value *v = f->port;
    if (!is_number(v->dtype) || v->rank < 0 || v->rank > 3)
        return OX_FAIL(
            err, OX_UNSUPPORTED,
            "input %.*s is %s of rank %d; expected int64, int32 or float32 of rank 1 to 3",
            OX_STR_ARGS(v->name), ox_dtype_name(v->dtype), v->rank);
    if (f->rule != FEED_IDS && f->rule != FEED_MASK && f->rule != FEED_POSITIONS) return OX_OK;
    if (!v->rank)
        return OX_FAIL(err, OX_UNSUPPORTED, "input %.*s is a scalar", OX_STR_ARGS(v->name));
    const int64_t rows = v->dims[v->rank - 1].value;
    if (v->rank > 1 && v->dims[v->rank - 2].value > 1)
        return OX_FAIL(err, OX_UNSUPPORTED, "input %.*s: made for a batch of %lld; expected 1",
                       OX_STR_ARGS(v->name), (long long)v->dims[v->rank - 2].value);
    if (f->rule == FEED_IDS && rows == 1) {
        d->most_rows = 1;
    } else if (rows >= 0 && !(f->rule == FEED_POSITIONS && rows == 1)) {
        return OX_FAIL(
            err, OX_UNSUPPORTED,
            "input %.*s has a fixed length of %lld; expected one that the prompt decides",
            OX_STR_ARGS(v->name), (long long)rows);
    }
    return OX_OK;
}

static ox_status find_feeds(ox_ort_decoder *d, const ox_source *s, ox_err *err)
{
    for (size_t i = 0; i < d->ports.n_inputs; i++) {
        feed f = {.port = &d->ports.inputs[i]};
        if (!rule_of(&f.rule, s, f.port->name)) continue;
        OX_TRY(check_feed(d, &f, err));
        if (!ox_vec_push(&d->feeds, f)) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    }
    return OX_OK;
}

static ox_status find_logits(ox_ort_decoder *d, ox_source *s, ox_err *err)
{
    const ox_onnx_value *v = NULL;
    for (size_t i = 0; i < d->ports.n_outputs; i++)
        if (ox_str_eq(d->ports.outputs[i].name, s->out_logits)) v = &d->ports.outputs[i];
    if (!v) return OX_FAIL(err, OX_UNSUPPORTED, "the graph has no logits output");
    if (v->dtype != OX_DTYPE_F32 && v->dtype != OX_DTYPE_F16 && v->dtype != OX_DTYPE_BF16)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "the logits are %s; expected float32, float16 or bfloat16",
                       ox_dtype_name(v->dtype));
    if (v->rank > 0 && v->dims[v->rank - 1].value > 0)
        s->facts.vocab_size = v->dims[v->rank - 1].value;
    if (s->facts.vocab_size <= 0 || s->facts.vocab_size > INT32_MAX)
        return OX_FAIL(err, OX_UNSUPPORTED,
                       "the width of the logits is not stated by graph or config");
    d->logits = v->name.p;
    d->logits_dtype = v->dtype;
    d->logits_rank = v->rank;
    d->vocab = s->facts.vocab_size;
    d->rows = LOGITS_UNKNOWN;
    const ox_onnx_value *ids = NULL;
    for (size_t i = 0; i < d->feeds.n; i++)
        if (d->feeds.p[i].rule == FEED_IDS) ids = d->feeds.p[i].port;
    const ox_onnx_dim *rows = v->rank == 3 ? &v->dims[1] : NULL;
    if (rows && rows->value == 1 && d->most_rows != 1)
        d->rows = LOGITS_LAST;
    else if (rows && rows->symbol.n && ids && ids->rank == 2 &&
             ox_str_eq(rows->symbol, ids->dims[1].symbol))
        d->rows = LOGITS_ALL;
    const size_t fit = (size_t)LOGITS_BYTES / ((size_t)d->vocab * sizeof(float));
    if (!d->most_rows) d->most_rows = fit > MOST_ROWS ? MOST_ROWS : fit ? fit : 1;
    return OX_OK;
}

bool ox_ort_decoder_on_cuda(const ox_ort_decoder *d)
{
    return strstr(d->settings.p, "\"provider\":\"CUDA\"") != NULL;
}

/* Whether one of the user's settings is exactly this. */
static bool asks_for(const ox_ort_settings *s, const char *option)
{
    for (size_t i = 0; i < s->n_options; i++)
        if (!strcmp(s->options[i], option)) return true;
    return false;
}

/* On a GPU memory of ours would be copied there and back each step: the library keeps the caches.
 */
static ox_status choose_cache_memory(ox_ort_decoder *d, const ox_ort_settings *s, ox_err *err)
{
    const bool cuda = ox_ort_decoder_on_cuda(d);
    if (asks_for(s, "caches=bound") || !(cuda || asks_for(s, "caches=library"))) return OX_OK;
    for (size_t i = 0; i < d->caches.n; i++)
        d->can_go_back &= d->caches.p[i].shared;
    return ox_ort_check(d->o,
                        d->o->api.CreateMemoryInfo(cuda ? "Cuda" : "Cpu", OX_ORT_DEVICE_ALLOCATOR,
                                                   0, OX_ORT_MEMORY_DEFAULT, &d->held),
                        "ONNX Runtime has no such memory", err);
}

ox_status ox_ort_decoder_open(ox_ort_decoder **out, ox_source *s, const char *onnx,
                              const ox_ort_settings *settings, ox_err *err)
{
    ox_status st = OX_OK;
    ox_ort_settings all = *settings;
    *out = NULL;
    all.folder = s->facts.session_options;
    ox_ort_decoder *d = ox_calloc(1, sizeof(*d));
    if (!d) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    d->profiled = settings->profile != NULL;
    OX_TRY_GOTO(ox_ort_open(&d->o, err));
    OX_TRY_GOTO(ox_ort_session_open(&d->session, &d->settings, d->o, onnx, &all, err));
    OX_TRY_GOTO(ox_ort_session_ports(&d->ports, &d->arena, d->o, d->session, err));
    OX_TRY_GOTO(ox_source_find_ports(s, &d->ports, err));
    OX_TRY_GOTO(find_feeds(d, s, err));
    OX_TRY_GOTO(find_logits(d, s, err));
    OX_TRY_GOTO(ox_ort_find_caches(d, s, err));
    OX_TRY_GOTO(ox_ort_look_into_file(d, onnx, err));
    OX_TRY_GOTO(choose_cache_memory(d, settings, err));
    size_t n_shared = 0;
    for (size_t i = 0; i < d->caches.n; i++)
        n_shared += d->caches.p[i].shared;
    ox_log(OX_LOG_INFO, "onnxruntime %s: %zu inputs, %zu caches of which %zu grow in place",
           d->o->about.version, d->ports.n_inputs, d->caches.n, n_shared);
    *out = d;
    return OX_OK;
fail:
    ox_ort_decoder_close(&d);
    return st;
}

void ox_ort_decoder_close(ox_ort_decoder **decoder)
{
    ox_ort_decoder *d = *decoder;
    if (!d) return;
    if (d->held) d->o->api.ReleaseMemoryInfo(d->held);
    if (d->session) d->o->api.ReleaseSession(d->session);
    ox_vec_deinit(&d->feeds);
    ox_vec_deinit(&d->caches);
    ox_buf_deinit(&d->settings);
    ox_arena_deinit(&d->arena);
    ox_ort_close(&d->o);
    ox_free(d);
    *decoder = NULL;
}

const ox_library *ox_ort_decoder_library(const ox_ort_decoder *d)
{
    return &d->o->about;
}

const char *ox_ort_decoder_settings(const ox_ort_decoder *d)
{
    return d->settings.p;
}

uint64_t ox_ort_decoder_weight_bytes(const ox_ort_decoder *d)
{
    return d->weight_bytes;
}

ox_ort_cost ox_ort_decoder_cost(const ox_ort_decoder *d)
{
    return d->cost;
}

uint64_t ox_ort_decoder_kv_bytes(const ox_ort_decoder *d)
{
    uint64_t total = 0;
    for (size_t i = 0; i < d->caches.n; i++)
        if (d->caches.p[i].axis >= 0)
            total += (uint64_t)d->caches.p[i].outer * d->caches.p[i].inner;
    return total;
}

size_t ox_ort_decoder_rows(const ox_ort_decoder *d)
{
    return d->most_rows;
}

ox_status ox_ort_decoder_end_profile(ox_ort_decoder *d, char **path, ox_err *err)
{
    char *theirs = NULL;
    *path = NULL;
    if (!d->profiled) return OX_OK;
    d->profiled = false;
    OX_TRY(ox_ort_check(d->o, d->o->api.SessionEndProfiling(d->session, d->o->allocator, &theirs),
                        "ONNX Runtime does not end its profile", err));
    *path = ox_strdup_n(theirs, strlen(theirs));
    const ox_status st =
        ox_ort_check(d->o, d->o->api.AllocatorFree(d->o->allocator, theirs), "ONNX Runtime", err);
    return *path ? st : OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
}
