/* oga.c - ONNX Runtime GenAI as an arm of comparisons: the same folder and the same ids, its own
 * cache, search and loop. One generator a run. */
#include "backend/oga/oga.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

enum { ELEMENT_FLOAT32 = 1, LOGITS_RANK_MAX = 4, MAX_CONFIG = 64 << 20 };

struct ox_oga {
    ox_oga_lib *lib;
    ox_oga_model *model;
    ox_buf settings; /* JSON that was laid over the folder's config */
    int32_t end_id;  /* the only end-of-text id that the library knows */
};

void ox_oga_options_init(ox_oga_options *o)
{
    *o = (ox_oga_options){.struct_size = sizeof(*o)};
}

void ox_oga_request_init(ox_oga_request *r)
{
    *r = (ox_oga_request){.struct_size = sizeof(*r)};
}

static ox_status choose_device(const ox_oga_lib *l, ox_oga_config *c, const char *device,
                               ox_err *err)
{
    if (!device || !strcmp(device, "auto")) return OX_OK;
    if (strcmp(device, "cpu") && strcmp(device, "cuda"))
        return OX_FAIL(err, OX_NO_DEVICE, "device %s is not known; expected auto, cpu or cuda",
                       device);
    OX_TRY(ox_oga_check(l, l->api.OgaConfigClearProviders(c), OX_FAILED,
                        "ONNX Runtime GenAI refuses its providers", err));
    if (!strcmp(device, "cpu")) return OX_OK;
    return ox_oga_check(l, l->api.OgaConfigAppendProvider(c, device), OX_NO_DEVICE,
                        "ONNX Runtime GenAI refuses its providers", err);
}

/* The last id of the vocabulary that genai_config.json states; 0 where it states none. */
static ox_status read_end_id(int32_t *id, const char *folder, ox_err *err)
{
    ox_buf text = {0};
    ox_arena arena = OX_ARENA_INIT;
    const ox_json *root = NULL;
    int64_t vocab = 0;
    char *path = ox_path_join(folder, "genai_config.json");
    ox_status st = path ? ox_file_read(&text, path, MAX_CONFIG, err)
                        : OX_FAIL(err, OX_NO_MEMORY, "no memory for a path");
    if (!st) st = ox_json_parse(&root, &arena, ox_buf_view(&text), err);
    if (!st) st = ox_json_opt_i64(root, "model.vocab_size", 0, INT32_MAX, &vocab, err);
    if (st && err && path && !strstr(err->msg, path)) ox_err_prefix(err, "%s", path);
    *id = vocab > 0 ? (int32_t)(vocab - 1) : 0;
    ox_arena_deinit(&arena);
    ox_buf_deinit(&text);
    ox_free(path);
    return st;
}

static ox_status open_model(ox_oga *g, const char *folder, const ox_oga_options *o, ox_err *err)
{
    const ox_oga_lib *l = g->lib;
    ox_oga_config *c = NULL;
    OX_TRY(read_end_id(&g->end_id, folder, err));
    OX_TRY(ox_oga_overlay(&g->settings, g->end_id, o, err));
    OX_TRY(ox_oga_check(l, l->api.OgaCreateConfig(folder, &c), OX_UNSUPPORTED,
                        "ONNX Runtime GenAI refuses genai_config.json", err));
    ox_status st = choose_device(l, c, o->device, err);
    if (!st)
        st = ox_oga_check(l, l->api.OgaConfigOverlay(c, g->settings.p), OX_BAD_ARGUMENT,
                          "ONNX Runtime GenAI refuses its settings", err);
    if (!st)
        st = ox_oga_check(l, l->api.OgaCreateModelFromConfig(c, &g->model), OX_UNSUPPORTED,
                          "ONNX Runtime GenAI refuses the model", err);
    l->api.OgaDestroyConfig(c);
    return st;
}

/* The library's own choice is half of the CPUs: no comparison with engines that take all. */
static ox_status pick_threads(ox_oga_options *o, ox_err *err)
{
    const char *env = ox_env("OXGEN_THREADS");
    int64_t n = ox_cpu_count();
    if (o->n_threads < 0)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "%d threads: expected 1 or more", o->n_threads);
    if (!o->n_threads && env && *env && (!ox_str_to_i64(ox_str_of(env), &n) || n < 1 || n > 4096))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "OXGEN_THREADS=%s: expected 1 or more", env);
    if (!o->n_threads) o->n_threads = (int32_t)n;
    return OX_OK;
}

ox_status ox_oga_open(ox_oga **out, const char *folder, const ox_oga_options *options, ox_err *err)
{
    ox_status st = OX_OK;
    ox_oga_options o;
    *out = NULL;
    ox_oga_options_init(&o);
    if (options)
        memcpy(&o, options, options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    OX_TRY(pick_threads(&o, err));
    if (!ox_path_is_dir(folder))
        return OX_FAIL(err, OX_NOT_FOUND, "%s: no such folder; expected one with genai_config.json",
                       folder);
    ox_oga *g = ox_calloc(1, sizeof(*g));
    if (!g) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a model");
    OX_TRY_GOTO(ox_oga_lib_open(&g->lib, err));
    OX_TRY_GOTO(open_model(g, folder, &o, err));
    *out = g;
    return OX_OK;
fail:
    ox_oga_close(&g);
    if (st != OX_NO_DEVICE && err && !strstr(err->msg, ox_path_base(folder)))
        ox_err_prefix(err, "%s", folder);
    return st;
}

void ox_oga_close(ox_oga **oga)
{
    ox_oga *g = *oga;
    if (!g) return;
    if (g->model) g->lib->api.OgaDestroyModel(g->model);
    if (g->lib) g->lib->api.OgaShutdown();
    ox_oga_lib_close(&g->lib);
    ox_buf_deinit(&g->settings);
    ox_free(g);
    *oga = NULL;
}

ox_status ox_oga_library(const ox_oga *g, ox_library *out, ox_err *err)
{
    (void)err;
    *out = g->lib->about;
    return OX_OK;
}

const char *ox_oga_session_json(const ox_oga *g)
{
    return g->settings.p;
}

/* --- a run ------------------------------------------------------------------------------------ */

typedef struct running {
    const ox_oga_lib *l;
    const ox_oga_request *r;
    ox_oga_generator *generator;
    int32_t end_id;
    double start;
} running;

static uint64_t since(double start)
{
    const double s = ox_clock_seconds() - start;
    return s > 0 ? (uint64_t)(s * 1e9) : 0;
}

static ox_status make_generator(running *q, const ox_oga_model *m, ox_err *err)
{
    static const char phrase[] = "ONNX Runtime GenAI refuses a search setting";
    const ox_oga_api *a = &q->l->api;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"max_length", (double)(q->r->n_prompt + q->r->n_new)},
                   {"min_length", 0},
                   {"batch_size", 1},
                   {"num_beams", 1},
                   {"num_return_sequences", 1},
                   {"repetition_penalty", 1},
                   {"no_repeat_ngram_size", 0}};
    ox_oga_params *p = NULL;
    OX_TRY(ox_oga_check(q->l, a->OgaCreateGeneratorParams(m, &p), OX_FAILED, phrase, err));
    ox_status st = ox_oga_check(q->l, a->OgaGeneratorParamsSetSearchBool(p, "do_sample", false),
                                OX_FAILED, phrase, err);
    for (size_t i = 0; !st && i < OX_COUNT(numbers); i++)
        st = ox_oga_check(
            q->l, a->OgaGeneratorParamsSetSearchNumber(p, numbers[i].name, numbers[i].value),
            OX_BAD_ARGUMENT, phrase, err);
    if (!st)
        st = ox_oga_check(q->l, a->OgaCreateGenerator(m, p, &q->generator), OX_FAILED,
                          "ONNX Runtime GenAI makes no generator", err);
    a->OgaDestroyGeneratorParams(p);
    return st;
}

static ox_status read_logits(const ox_oga_lib *l, ox_oga_tensor *t, const float **row,
                             size_t *vocab, ox_err *err)
{
    static const char phrase[] = "ONNX Runtime GenAI does not give its logits";
    int64_t dims[LOGITS_RANK_MAX] = {0};
    size_t rank = 0;
    int type = 0;
    void *data = NULL;
    OX_TRY(ox_oga_check(l, l->api.OgaTensorGetType(t, &type), OX_FAILED, phrase, err));
    OX_TRY(ox_oga_check(l, l->api.OgaTensorGetShapeRank(t, &rank), OX_FAILED, phrase, err));
    if (type != ELEMENT_FLOAT32 || !rank || rank > LOGITS_RANK_MAX)
        return OX_FAIL(err, OX_FAILED, "%s as float32", phrase);
    OX_TRY(ox_oga_check(l, l->api.OgaTensorGetShape(t, dims, rank), OX_FAILED, phrase, err));
    OX_TRY(ox_oga_check(l, l->api.OgaTensorGetData(t, &data), OX_FAILED, phrase, err));
    if (dims[rank - 1] <= 0) return OX_FAIL(err, OX_FAILED, "%s: they are empty", phrase);
    *row = data;
    *vocab = (size_t)dims[rank - 1];
    return OX_OK;
}

static ox_status give_logits(running *q, size_t i, ox_err *err)
{
    ox_oga_tensor *t = NULL;
    const float *row = NULL;
    size_t vocab = 0;
    if (!q->r->on_logits) return OX_OK;
    OX_TRY(ox_oga_check(q->l, q->l->api.OgaGenerator_GetLogits(q->generator, &t), OX_FAILED,
                        "ONNX Runtime GenAI failed", err));
    ox_status st = read_logits(q->l, t, &row, &vocab, err);
    if (!st) st = q->r->on_logits(q->r->user, q->r->n_prompt - 1 + i, row, vocab);
    q->l->api.OgaDestroyTensor(t);
    return st;
}

static ox_status next_token(running *q, size_t i, int32_t *id, ox_err *err)
{
    const ox_oga_api *a = &q->l->api;
    const int32_t *next = NULL;
    size_t n = 0;
    if (q->r->forced) {
        *id = q->r->forced[i];
        return OX_OK;
    }
    OX_TRY(ox_oga_check(q->l, a->OgaGenerator_GenerateNextToken(q->generator), OX_FAILED,
                        "ONNX Runtime GenAI failed", err));
    OX_TRY(ox_oga_check(q->l, a->OgaGenerator_GetNextTokens(q->generator, &next, &n), OX_FAILED,
                        "ONNX Runtime GenAI gives no token", err));
    if (n != 1) return OX_FAIL(err, OX_FAILED, "ONNX Runtime GenAI gave %zu tokens a step", n);
    *id = next[0];
    return OX_OK;
}

/* Tokens that the library has not appended itself: forced ones, and end of text, behind which it
 * would stop. */
static ox_status carry_on(running *q, size_t i, int32_t id, ox_err *err)
{
    if ((!q->r->forced && id != q->end_id) || i + 1 == q->r->n_new) return OX_OK;
    return ox_oga_check(q->l, q->l->api.OgaGenerator_AppendTokens(q->generator, &id, 1), OX_FAILED,
                        "ONNX Runtime GenAI failed", err);
}

static ox_status run(running *q, int32_t *ids, uint64_t *ns, size_t *n_done, ox_oga_times *times,
                     ox_err *err)
{
    const ox_oga_request *r = q->r;
    OX_TRY(ox_oga_check(q->l,
                        q->l->api.OgaGenerator_AppendTokens(q->generator, r->prompt, r->n_prompt),
                        OX_FAILED, "ONNX Runtime GenAI failed on the prompt", err));
    times->prompt = times->end = since(q->start);
    for (size_t i = 0; i < r->n_new; i++) {
        OX_TRY(give_logits(q, i, err));
        OX_TRY(next_token(q, i, &ids[i], err));
        times->end = since(q->start);
        if (ns) ns[i] = times->end;
        *n_done = i + 1;
        OX_TRY(carry_on(q, i, ids[i], err));
        if (r->progress && r->progress(r->user, "decode", i + 1, r->n_new))
            return OX_FAIL(err, OX_CANCELLED, "interrupted after %zu of %zu new tokens", i + 1,
                           r->n_new);
    }
    return OX_OK;
}

ox_status ox_oga_run(ox_oga *g, const ox_oga_request *request, int32_t *ids, uint64_t *ns,
                     size_t *n_done, ox_oga_times *times, ox_err *err)
{
    ox_oga_request r;
    ox_oga_times ignored;
    ox_oga_request_init(&r);
    memcpy(&r, request, request->struct_size < sizeof(r) ? request->struct_size : sizeof(r));
    *n_done = 0;
    if (!times) times = &ignored;
    *times = (ox_oga_times){0};
    if (!r.n_prompt) return OX_FAIL(err, OX_BAD_ARGUMENT, "an empty prompt has no next token");
    running q = {.l = g->lib, .r = &r, .end_id = g->end_id, .start = ox_clock_seconds()};
    ox_status st = make_generator(&q, g->model, err);
    q.start = ox_clock_seconds();
    if (!st) st = run(&q, ids, ns, n_done, times, err);
    if (q.generator) g->lib->api.OgaDestroyGenerator(q.generator);
    return st;
}
