/* inspect.c - what a MODEL's files hold, as one JSON object: files, ports, operators, weights,
 * cache, context, and what each backend says. Nothing is packed or run. */
#include "base/json.h"
#include "engine/engine_internal.h"
#include "ops/op.h"
#include "oxgen/arm.h"

#include <string.h>

typedef struct tally {
    ox_str name;
    uint64_t n, bytes;
} tally;

typedef OX_VEC(tally) tallies;

static bool count(tallies *t, ox_str name, uint64_t n, uint64_t bytes)
{
    for (size_t i = 0; i < t->n; i++)
        if (ox_str_eq(t->p[i].name, name)) {
            t->p[i].n += n;
            t->p[i].bytes += bytes;
            return true;
        }
    return ox_vec_push(t, (tally){name, n, bytes});
}

static void put_files(ox_json_writer *w, const ox_source *s)
{
    ox_json_put_key(w, "files");
    ox_json_begin_array(w);
    for (size_t i = 0; i < s->files.n; i++) {
        ox_json_begin_object(w);
        ox_json_put_key(w, "path");
        ox_json_put_z(w, s->files.p[i].path);
        ox_json_put_key(w, "bytes");
        ox_json_put_i64(w, (int64_t)s->files.p[i].bytes);
        ox_json_end_object(w);
    }
    ox_json_end_array(w);
}

static void put_dims(ox_json_writer *w, const ox_graph *g, const ox_value *v)
{
    ox_json_begin_array(w);
    for (int32_t i = 0; i < v->rank; i++) {
        const int64_t d = v->dims[i], symbol = -2 - d;
        if (d >= 0)
            ox_json_put_i64(w, d);
        else if (symbol >= 0 && (size_t)symbol < g->symbols.n)
            ox_json_put_str(w, g->symbols.p[symbol]);
        else
            ox_json_put_z(w, "?");
    }
    ox_json_end_array(w);
}

static void put_port_list(ox_json_writer *w, const ox_graph *g, const ox_value_id *ids, size_t n)
{
    ox_json_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        const ox_value *v = ox_graph_value(g, ids[i]);
        ox_json_begin_object(w);
        ox_json_put_key(w, "name");
        ox_json_put_str(w, v->name);
        ox_json_put_key(w, "type");
        ox_json_put_z(w, ox_dtype_name(v->dtype));
        ox_json_put_key(w, "dims");
        put_dims(w, g, v);
        ox_json_end_object(w);
    }
    ox_json_end_array(w);
}

static void put_role(ox_json_writer *w, const char *key, ox_str name)
{
    if (!name.n) return;
    ox_json_put_key(w, key);
    ox_json_put_str(w, name);
}

static void put_ports(ox_json_writer *w, const ox_source *s)
{
    const ox_graph *g = s->graph;
    ox_json_put_key(w, "ports");
    ox_json_begin_object(w);
    ox_json_put_key(w, "inputs");
    put_port_list(w, g, g->inputs.p, g->inputs.n);
    ox_json_put_key(w, "outputs");
    put_port_list(w, g, g->outputs.p, g->outputs.n);
    ox_json_put_key(w, "roles");
    ox_json_begin_object(w);
    put_role(w, "input_ids", s->in_ids);
    put_role(w, "attention_mask", s->in_mask);
    put_role(w, "position_ids", s->in_positions);
    put_role(w, "past_key", s->in_past_k);
    put_role(w, "past_value", s->in_past_v);
    put_role(w, "logits", s->out_logits);
    put_role(w, "present_key", s->out_present_k);
    put_role(w, "present_value", s->out_present_v);
    ox_json_end_object(w);
    ox_json_end_object(w);
}

static ox_status put_operators(ox_json_writer *w, const ox_graph *g, ox_err *err)
{
    tallies t = {0};
    int64_t accuracy = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ox_node *n = &g->nodes.p[i];
        const int64_t level = n->dead                      ? 0
                              : n->term && n->term->weight ? n->term->accuracy_level
                                                           : ox_node_int(n, "accuracy_level", 0);
        if (level > accuracy) accuracy = level;
        if (!n->dead && !count(&t, n->op_type, 1, 0)) {
            ox_vec_deinit(&t);
            return OX_FAIL(err, OX_NO_MEMORY, "no memory for a report");
        }
    }
    ox_json_put_key(w, "operators");
    ox_json_begin_object(w);
    for (size_t i = 0; i < t.n; i++) {
        ox_json_put_key_str(w, t.p[i].name);
        ox_json_put_i64(w, (int64_t)t.p[i].n);
    }
    ox_json_end_object(w);
    /* The highest of all products: 4 allows 8-bit activations. */
    ox_json_put_key(w, "accuracy_level");
    ox_json_put_i64(w, accuracy);
    ox_vec_deinit(&t);
    return OX_OK;
}

/* Bytes of constants by type, and of the terms' weights by format (each object once). */
static ox_status put_weights(ox_json_writer *w, const ox_graph *g, ox_err *err)
{
    tallies t = {0};
    bool ok = true;
    for (size_t i = 0; i < g->values.n && ok; i++) {
        const ox_value *v = &g->values.p[i];
        size_t bytes;
        if (v->kind == OX_VALUE_CONSTANT && v->constant && ox_tensor_bytes(v->constant, &bytes))
            ok = count(&t, ox_str_of(ox_dtype_name(v->constant->dtype)), 1, bytes);
    }
    for (size_t i = 0; i < g->nodes.n && ok; i++) {
        const ox_term *term = g->nodes.p[i].dead ? NULL : g->nodes.p[i].term;
        bool again = false;
        for (size_t k = 0; term && term->weight && k < i && !again; k++)
            again = g->nodes.p[k].term && g->nodes.p[k].term->weight == term->weight;
        if (term && term->weight && !again)
            ok = count(&t, ox_str_of(ox_format_name(term->weight->format)), 1, term->weight->bytes);
    }
    ox_json_put_key(w, "weights");
    ox_json_begin_object(w);
    for (size_t i = 0; i < t.n; i++) {
        ox_json_put_key_str(w, t.p[i].name);
        ox_json_begin_object(w);
        ox_json_put_key(w, "tensors");
        ox_json_put_i64(w, (int64_t)t.p[i].n);
        ox_json_put_key(w, "bytes");
        ox_json_put_i64(w, (int64_t)t.p[i].bytes);
        ox_json_end_object(w);
    }
    ox_json_end_object(w);
    ox_vec_deinit(&t);
    return ok ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a report");
}

static void put_facts(ox_json_writer *w, const ox_source *s)
{
    static const char *const forms[] = {[OX_FORM_GENAI] = "ort-genai",
                                        [OX_FORM_ONNX] = "onnx",
                                        [OX_FORM_GGUF] = "gguf",
                                        [OX_FORM_SAFETENSORS] = "safetensors"};
    const ox_facts *f = &s->facts;
    ox_json_put_key(w, "model");
    ox_json_put_z(w, s->path);
    ox_json_put_key(w, "form");
    ox_json_put_z(w, forms[s->form]);
    ox_json_put_key(w, "architecture");
    ox_json_put_str(w, f->type);
    ox_json_put_key(w, "context");
    ox_json_put_i64(w, f->context_length);
    ox_json_put_key(w, "vocab");
    ox_json_put_i64(w, f->vocab_size);
    ox_json_put_key(w, "eos");
    ox_json_begin_array(w);
    for (int32_t i = 0; i < f->n_eos; i++)
        ox_json_put_i64(w, f->eos[i]);
    ox_json_end_array(w);
    ox_json_put_key(w, "tokenizer");
    ox_json_put_bool(w, f->tokenizer_json.n != 0);
    ox_json_put_key(w, "chat_template");
    ox_json_put_bool(w, f->chat_template.n != 0);
}

/* float16 cache, the default: bytes per position over all layers. */
static int64_t kv_bytes(const ox_graph *g)
{
    int64_t total = 0;
    for (size_t i = 0; i < g->caches.n; i++)
        total += 2LL * g->caches.p[i].n_kv_heads *
                 (g->caches.p[i].head_size + g->caches.p[i].v_head_size);
    return total;
}

/* What ONNX Runtime says: the graph is opened, and closed again. */
static ox_status put_ort(ox_json_writer *w, const char *path, ox_err *err)
{
    ox_model *m = NULL;
    ox_err why = OX_ERR_INIT;
    ox_library library;
    ox_buf said = {0};
    ox_model_options o;
    ox_model_options_init(&o);
    o.backend = "ort";
    const ox_status st = ox_model_open(&m, path, &o, &why);
    if (!st && !ox_model_library(m, &library, err))
        ox_buf_printf(&said, "runs on ONNX Runtime %s", library.version);
    else
        ox_buf_printf(&said, "%s: %s", st == OX_NO_DEVICE ? "missing" : "refused", why.msg);
    ox_model_close(&m);
    ox_json_put_key(w, "ort");
    ox_json_put_str(w, ox_buf_view(&said));
    ox_buf_deinit(&said);
    return st == OX_NO_MEMORY ? OX_FAIL(err, st, "%s", why.msg) : OX_OK;
}

/* What a GPU of this machine would do with it, or what is missing. */
static void put_cuda(ox_json_writer *w, bool planned)
{
    ox_gpu_report gpu;
    size_t n = 0;
    ox_err why = OX_ERR_INIT;
    if (ox_machine_gpus(&gpu, 1, &n, &why))
        ox_json_put_z(w, why.msg);
    else
        ox_json_put_z(w, planned ? "runs, planned" : "refused: runs operator by operator");
}

static ox_status put_backends(ox_json_writer *w, ox_source *s, bool ask_ort, ox_err *err)
{
    ox_opt_report opt = {.is_terms = true};
    ox_err unsupported = OX_ERR_INIT;
    ox_buf said = {0};
    if (!ox_graph_is_terms(s->graph)) {
        const ox_opt_ports ports = {s->in_ids,        s->in_mask,       s->in_positions,
                                    s->in_past_k,     s->in_past_v,     s->out_logits,
                                    s->out_present_k, s->out_present_v, s->facts.context_length};
        OX_TRY(ox_opt_run(s->graph, &ports, &s->arena, &opt, err));
    }
    if (opt.is_terms)
        ox_buf_put_z(&said, "runs, planned");
    else if (ox_op_check_graph(s->graph, &unsupported))
        ox_buf_printf(&said, "refused: %s", unsupported.msg);
    else
        ox_buf_printf(&said, "runs operator by operator: node %.*s (%.*s): %s",
                      OX_STR_ARGS(opt.remaining[0].node), OX_STR_ARGS(opt.remaining[0].op_type),
                      opt.remaining[0].reason);
    ox_json_put_key(w, "kv_bytes_per_token");
    ox_json_put_i64(w, kv_bytes(s->graph));
    ox_json_put_key(w, "backends");
    ox_json_begin_object(w);
    ox_json_put_key(w, "native:cpu");
    ox_json_put_str(w, ox_buf_view(&said));
    ox_buf_deinit(&said);
    ox_json_put_key(w, "native:cuda");
    put_cuda(w, opt.is_terms);
    const ox_status st = ask_ort ? put_ort(w, s->path, err) : OX_OK;
    ox_json_end_object(w);
    return st;
}

ox_status ox_inspect_json(const char *path, int32_t with_graph, char **json, ox_err *err)
{
    return ox_inspect_json_with(path, with_graph, 0, json, err);
}

ox_status ox_inspect_json_with(const char *path, int32_t with_graph, int32_t ask_ort, char **json,
                               ox_err *err)
{
    ox_source *s = NULL;
    ox_buf out = {0}, graph = {0};
    ox_model_options o;
    ox_json_writer w = {.out = &out, .indent = 2};

    *json = NULL;
    ox_model_options_init(&o);
    o.quant = "keep";
    ox_status st = ox_source_open(&s, path, &o, err);
    if (st) return st;
    if (with_graph) ox_graph_print(s->graph, &graph);
    ox_json_begin_object(&w);
    put_facts(&w, s);
    put_files(&w, s);
    put_ports(&w, s);
    st = put_operators(&w, s->graph, err);
    if (!st) st = put_weights(&w, s->graph, err);
    if (!st) st = put_backends(&w, s, ask_ort != 0, err);
    ox_json_put_key(&w, "warnings");
    ox_json_begin_array(&w);
    for (size_t i = 0; i < s->warnings.n; i++)
        ox_json_put_z(&w, s->warnings.p[i]);
    ox_json_end_array(&w);
    if (with_graph) {
        ox_json_put_key(&w, "graph");
        ox_json_put_str(&w, ox_buf_view(&graph));
    }
    ox_json_end_object(&w);
    ox_buf_put_c(&out, '\n');
    ox_source_close(&s);
    if (!st && (out.failed || graph.failed))
        st = OX_FAIL(err, OX_NO_MEMORY, "no memory for a report");
    ox_buf_deinit(&graph);
    if (st) {
        ox_buf_deinit(&out);
        return st;
    }
    *json = out.p;
    return OX_OK;
}
