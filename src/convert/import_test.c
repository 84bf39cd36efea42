/* import_test.c - tiny GGUF files as graphs of terms: what the graph looks like, that weights are
 * views, what is refused and how, and that no failed allocation leaks or crashes. */
#include "convert/import.h"

#include "convert/arch.h"
#include "graph/terms.h"
#include "tests/tiny_gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/oxgen_import_%ld.gguf", (long)getpid());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static ox_source *import(const tiny_gguf *t)
{
    ox_err err = OX_ERR_INIT;
    ox_source *s = NULL;
    assert_true(tiny_gguf_write(t, path));
    if (ox_import_gguf(&s, path, &err)) fail_msg("%s", err.msg);
    assert_int_equal(ox_graph_verify(s->graph, &err), OX_OK);
    assert_true(ox_graph_is_terms(s->graph));
    return s;
}

static int count(const ox_source *s, ox_term_kind kind)
{
    int n = 0;
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        n += s->graph->nodes.p[i].term->kind == kind;
    return n;
}

static const ox_term *find(const ox_source *s, const char *name)
{
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        if (ox_str_is(s->graph->nodes.p[i].name, name)) return s->graph->nodes.p[i].term;
    fail_msg("no term %s", name);
    return NULL;
}

static void a_decoder_becomes_terms(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 2, .format = OX_FORMAT_Q4_0, .tied = true};
    ox_source *s = import(&t);
    assert_int_equal(count(s, OX_TERM_EMBED), 1);
    assert_int_equal(count(s, OX_TERM_NORM), 5);
    assert_int_equal(count(s, OX_TERM_LINEAR), 14);
    assert_int_equal(count(s, OX_TERM_ROTATE), 4);
    assert_int_equal(count(s, OX_TERM_ATTEND), 2);
    assert_int_equal(count(s, OX_TERM_GLU), 2);
    assert_int_equal(count(s, OX_TERM_ADD), 4);
    assert_int_equal(count(s, OX_TERM_HEAD), 1);
    assert_int_equal(s->graph->caches.n, 2);
    const ox_term *embed = find(s, "/model/embed_tokens/Gather"),
                  *head = find(s, "/lm_head/MatMul");
    assert_ptr_equal(embed->weight, head->weight); /* tied: one object */
    const ox_term *q = find(s, "/model/layers.1/attn/q_rotary/RotaryEmbedding");
    assert_true(q->rotary->interleaved);
    assert_int_equal(q->rotary->rotary, TINY_HEAD);
    assert_int_equal(q->rotary->n_positions, 64);
    const ox_term *attend = find(s, "/model/layers.1/attn/GroupQueryAttention");
    assert_int_equal(attend->cache.i, 1);
    assert_float_equal(attend->scale, 0.25f, 1e-7);
    assert_int_equal(s->facts.vocab_size, TINY_VOCAB);
    assert_int_equal(s->facts.context_length, 64);
    assert_int_equal(s->facts.n_eos, 1);
    assert_int_equal(s->facts.eos[0], 2);
    assert_int_equal(s->warnings.n, 0);
    ox_source_close(&s);
}

static void weights_are_views_of_the_file(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_Q8_0};
    ox_source *s = import(&t);
    assert_int_equal(s->mappings.n, 1);
    const ox_mapping *m = &s->mappings.p[0];
    for (size_t i = 0; i < s->graph->nodes.n; i++) {
        const ox_weight *w = s->graph->nodes.p[i].term->weight;
        if (w) assert_in_range((uintptr_t)w->data, (uintptr_t)m->bytes, (uintptr_t)m->bytes + m->n);
    }
    ox_source_close(&s);
}

static void fused_tensors_become_views_of_rows(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "phi3", .n_layers = 1, .format = OX_FORMAT_Q4_1, .fused = true};
    ox_source *s = import(&t);
    const ox_weight *q = find(s, "/model/layers.0/attn/q_proj/MatMul")->weight;
    const ox_weight *k = find(s, "/model/layers.0/attn/k_proj/MatMul")->weight;
    const ox_weight *up = find(s, "/model/layers.0/mlp/up_proj/MatMul")->weight;
    const ox_weight *gate = find(s, "/model/layers.0/mlp/gate_proj/MatMul")->weight;
    assert_int_equal(q->rows, TINY_HEADS * TINY_HEAD);
    assert_ptr_equal(k->data, (const char *)q->data + q->bytes);
    assert_ptr_equal(up->data, (const char *)gate->data + gate->bytes);
    assert_false(find(s, "/model/layers.0/attn/q_rotary/RotaryEmbedding")->rotary->interleaved);
    ox_source_close(&s);
}

static void biases_are_taken_where_the_architecture_has_them(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "qwen2", .n_layers = 1, .format = OX_FORMAT_F32, .qkv_bias = true};
    ox_source *s = import(&t);
    assert_int_equal(find(s, "/model/layers.0/attn/v_proj/MatMul")->bias->cols, TINY_HEAD);
    assert_null(find(s, "/model/layers.0/attn/o_proj/MatMul")->bias);
    ox_source_close(&s);
}

static void refused(const tiny_gguf *t, ox_status want, const char *const words[3])
{
    ox_err err = OX_ERR_INIT;
    ox_source *s = NULL;
    assert_true(tiny_gguf_write(t, path));
    assert_int_equal(ox_import_gguf(&s, path, &err), want);
    assert_null(s);
    for (int i = 0; i < 3 && words[i]; i++)
        if (!strstr(err.msg, words[i])) fail_msg("\"%s\" lacks \"%s\"", err.msg, words[i]);
}

static void refusals_name_the_thing(void **state)
{
    (void)state;
    refused(&(tiny_gguf){.arch = "mamba", .n_layers = 1}, OX_UNSUPPORTED,
            (const char *const[3]){"mamba", "llama, qwen2, qwen3"});
    refused(&(tiny_gguf){.arch = "llama", .n_layers = 2, .without = "blk.1.ffn_gate.weight"},
            OX_BAD_FILE, (const char *const[3]){"blk.1.ffn_gate.weight [64, 32]", "missing"});
    refused(&(tiny_gguf){.arch = "llama", .n_layers = 1, .misshapen = "blk.0.attn_q.weight"},
            OX_BAD_FILE, (const char *const[3]){"blk.0.attn_q.weight", "[32, 32]", "[32, 64]"});
    refused(
        &(tiny_gguf){
            .arch = "llama", .n_layers = 1, .misshapen = "blk.0.attn_q.weight", .wrong_type = 17},
        OX_UNSUPPORTED, (const char *const[3]){"blk.0.attn_q.weight", "iq2_xs"});
    refused(&(tiny_gguf){.arch = "qwen2", .n_layers = 1}, OX_BAD_FILE,
            (const char *const[3]){"attn_q.bias"});
    refused(&(tiny_gguf){.arch = "llama", .n_layers = 1, .n_heads = 3}, OX_BAD_FILE,
            (const char *const[3]){"attn_q.weight"});
    refused(&(tiny_gguf){.arch = "llama", .n_layers = 0}, OX_BAD_FILE,
            (const char *const[3]){"number of layers", "0"});
}

static void quantised_anew_when_asked(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_F32, .tied = true};
    const ox_quant_choice q = OX_QUANT_CHOICE_INIT;
    ox_err err = OX_ERR_INIT;
    ox_source *s = NULL;
    assert_true(tiny_gguf_write(&t, path));
    assert_int_equal(ox_import_gguf_as(&s, path, &q, &err), OX_OK);
    const ox_weight *down = find(s, "/model/layers.0/mlp/down_proj/MatMul")->weight;
    const ox_weight *head = find(s, "/lm_head/MatMul")->weight;
    assert_int_equal(down->format, OX_FORMAT_NBITS);
    assert_int_equal(down->nbits.bits, 4);
    assert_int_equal(head->nbits.bits, 8);
    assert_ptr_equal(find(s, "/model/embed_tokens/Gather")->weight, head);
    ox_source_close(&s);
}

/* Every byte of keys and tensor descriptions changed in three ways, and the file cut there. */
static void hostile_headers_are_refused_or_read(void **state)
{
    (void)state;
    static const unsigned char masks[] = {1, 128, 255};
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_Q4_0};
    ox_buf b = {0};
    assert_true(tiny_gguf_bytes(&t, &b));
    for (size_t i = 4; i < 1600; i++) {
        const char old = b.p[i];
        for (size_t k = 0; k < OX_COUNT(masks) + 1; k++) {
            ox_err err = OX_ERR_INIT;
            ox_source *s = NULL;
            const bool cut = k == OX_COUNT(masks);
            b.p[i] = cut ? old : (char)(old ^ (char)masks[k]);
            const ox_str bytes = {b.p, cut ? i : b.n};
            assert_int_equal(ox_file_write_atomic(path, bytes, NULL), OX_OK);
            if (ox_import_gguf(&s, path, &err)) assert_int_not_equal(err.msg[0], 0);
            ox_source_close(&s);
        }
        b.p[i] = old;
    }
    ox_buf_deinit(&b);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const tiny_gguf t = {.arch = "llama", .n_layers = 1, .format = OX_FORMAT_Q4_0};
    const ox_quant_choice q = OX_QUANT_CHOICE_INIT;
    assert_true(tiny_gguf_write(&t, path));
    for (long n = 1;; n++) {
        ox_err err = OX_ERR_INIT;
        ox_source *s = NULL;
        ox_mem_fail_after(n);
        const ox_status st = ox_import_gguf_as(&s, path, &q, &err);
        ox_mem_fail_after(0);
        ox_source_close(&s);
        if (!st) break;
        assert_int_equal(st, OX_NO_MEMORY);
        assert_int_not_equal(err.msg[0], 0);
        assert_true(n < 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decoder_becomes_terms),
        cmocka_unit_test(weights_are_views_of_the_file),
        cmocka_unit_test(fused_tensors_become_views_of_rows),
        cmocka_unit_test(biases_are_taken_where_the_architecture_has_them),
        cmocka_unit_test(refusals_name_the_thing),
        cmocka_unit_test(quantised_anew_when_asked),
        cmocka_unit_test(hostile_headers_are_refused_or_read),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
