/* gguf_vocab_test.c - merges made from scores in the order of the reference converter, the parts of
 * the written files, and refusals. That the result encodes rightly is tested in text/. */
#include "convert/gguf_vocab.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MARK "\xe2\x96\x81"

enum { N_BYTES = 256, N_WORDS = 17, N = 3 + N_BYTES + N_WORDS };

static char byte_names[N_BYTES][8];
static ox_str tokens[N];
static float scores[N];
static int32_t types[N];

/* <unk> <s> </s>, the bytes, words. */
static ox_gguf_vocab sample(void)
{
    static const char *const words[N_WORDS] = {MARK "t",
                                               "he",
                                               MARK "the",
                                               "er",
                                               "in",
                                               MARK,
                                               "t",
                                               "h",
                                               "e",
                                               "r",
                                               "i",
                                               "n",
                                               "a",
                                               "\xc3\xa9",
                                               MARK "\xc3\xa9"
                                                    "a",
                                               "\xc3\xa9"
                                               "a",
                                               "th"};
    static const float word_scores[N_WORDS] = {-1,  -2,  -3,  -4,  -4,  -10, -11, -12,  -13,
                                               -14, -15, -16, -17, -18, -5,  -6,  -2.5f};
    tokens[0] = OX_STR("<unk>");
    tokens[1] = OX_STR("<s>");
    tokens[2] = OX_STR("</s>");
    for (int i = 0; i < N; i++)
        types[i] = i == 0 ? 2 : i < 3 ? 3 : i < 3 + N_BYTES ? 6 : 1;
    for (int b = 0; b < N_BYTES; b++) {
        snprintf(byte_names[b], sizeof(byte_names[b]), "<0x%02X>", (unsigned)b);
        tokens[3 + b] = ox_str_of(byte_names[b]);
    }
    for (int i = 0; i < N_WORDS; i++) {
        tokens[3 + N_BYTES + i] = ox_str_of(words[i]);
        scores[3 + N_BYTES + i] = word_scores[i];
    }
    return (ox_gguf_vocab){.kind = OX_STR("llama"),
                           .n = N,
                           .tokens = tokens,
                           .scores = scores,
                           .types = types,
                           .bos = 1,
                           .eos = 2,
                           .unk = 0,
                           .pad = -1,
                           .add_bos = -1,
                           .add_eos = -1,
                           .add_space_prefix = -1};
}

typedef struct written {
    ox_buf json, config;
    ox_arena arena;
    const ox_json *root, *options;
} written;

static written write_or_fail(const ox_gguf_vocab *v)
{
    written w = {.root = NULL};
    ox_err err = OX_ERR_INIT;
    if (ox_gguf_vocab_write(v, &w.json, &w.config, &err)) fail_msg("%s", err.msg);
    if (ox_json_parse(&w.root, &w.arena, ox_buf_view(&w.json), &err)) fail_msg("%s", err.msg);
    if (ox_json_parse(&w.options, &w.arena, ox_buf_view(&w.config), &err)) fail_msg("%s", err.msg);
    return w;
}

static void written_deinit(written *w)
{
    ox_buf_deinit(&w->json);
    ox_buf_deinit(&w->config);
    ox_arena_deinit(&w->arena);
}

static void assert_json(const ox_json *node, const char *text)
{
    ox_buf out = {0};
    ox_json_put_node(&(ox_json_writer){.out = &out}, node);
    assert_string_equal(out.p, text);
    ox_buf_deinit(&out);
}

static void scores_become_merges_in_the_reference_order(void **state)
{
    (void)state;
    ox_gguf_vocab v = sample();
    written w = write_or_fail(&v);
    assert_json(ox_json_path(w.root, "model.merges"),
                "[[\"" MARK "\",\"t\"],[\"h\",\"e\"],[\"t\",\"h\"],[\"" MARK
                "t\",\"he\"],[\"e\",\"r\"],"
                "[\"i\",\"n\"],[\"" MARK "\",\"\xc3\xa9"
                "a\"],[\"\xc3\xa9\",\"a\"]]");
    written_deinit(&w);
    v.architecture = OX_STR("gemma2");
    w = write_or_fail(&v);
    assert_json(ox_json_path(w.root, "model.merges"), "[[\"" MARK "\",\"t\"],[\"h\",\"e\"],[\"" MARK
                                                      "t\",\"he\"],[\"e\",\"r\"],[\"i\",\"n\"],"
                                                      "[\"" MARK "\",\"\xc3\xa9"
                                                      "a\"],[\"\xc3\xa9\",\"a\"],[\"t\",\"h\"]]");
    written_deinit(&w);
}

static void sentencepiece_files_begin_text_and_prefix_a_space(void **state)
{
    (void)state;
    ox_gguf_vocab v = sample();
    written w = write_or_fail(&v);
    assert_true(ox_json_true(ox_json_get(w.options, "add_bos_token")));
    assert_json(ox_json_get(w.options, "bos_token"), "\"<s>\"");
    assert_json(ox_json_get(w.options, "pad_token"), "null");
    assert_null(ox_json_get(w.options, "chat_template"));
    assert_json(ox_json_path(w.root, "normalizer.normalizers.0.type"), "\"Prepend\"");
    assert_json(ox_json_path(w.root, "post_processor.single.0.SpecialToken.id"), "\"<s>\"");
    assert_int_equal(ox_json_n(ox_json_get(w.root, "added_tokens")), 3);
    assert_json(ox_json_path(w.root, "decoder.decoders.3.type"), "\"Strip\"");
    written_deinit(&w);
    v.add_space_prefix = v.add_bos = 0;
    v.chat_template = OX_STR("{{ x }}");
    w = write_or_fail(&v);
    assert_json(ox_json_path(w.root, "normalizer.normalizers.0.type"), "\"Replace\"");
    assert_json(ox_json_path(w.root, "post_processor.single.0"),
                "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}");
    assert_null(ox_json_path(w.root, "decoder.decoders.3"));
    assert_json(ox_json_get(w.options, "chat_template"), "\"{{ x }}\"");
    written_deinit(&w);
}

static void merges_of_missing_tokens_are_left_out(void **state)
{
    static const ox_str few[] = {{"a", 1}, {"b", 1}, {"ab", 2}, {"<x>", 3}, {"", 0}};
    static const ox_str merges[] = {{"a b", 3}, {"b a", 3}, {"q", 1}, {"a c", 3}};
    static const int32_t kinds[] = {1, 1, 1, 4, 5};
    (void)state;
    const ox_gguf_vocab v = {.kind = OX_STR("gpt2"),
                             .pre = OX_STR("gpt-2"),
                             .n = 5,
                             .tokens = few,
                             .types = kinds,
                             .merges = merges,
                             .n_merges = 4,
                             .bos = -1,
                             .eos = -1,
                             .unk = -1,
                             .pad = -1};
    written w = write_or_fail(&v);
    assert_json(ox_json_path(w.root, "model.merges"), "[[\"a\",\"b\"]]");
    assert_json(ox_json_path(w.root, "model.vocab"),
                "{\"a\":0,\"b\":1,\"ab\":2,\"<x>\":3,\"[EMPTY_4]\":4}");
    assert_json(ox_json_path(w.root, "added_tokens.0.special"), "false");
    written_deinit(&w);
}

static void what_is_not_known_is_refused_by_name(void **state)
{
    (void)state;
    ox_buf a = {0}, b = {0};
    ox_gguf_vocab v = sample();
    ox_err err = OX_ERR_INIT;
    v.kind = OX_STR("rwkv");
    assert_int_equal(ox_gguf_vocab_write(&v, &a, &b, &err), OX_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "\"rwkv\" (tokenizer.ggml.model)"));
    err = (ox_err)OX_ERR_INIT;
    v.kind = OX_STR("gpt2");
    v.pre = OX_STR("new-one");
    assert_int_equal(ox_gguf_vocab_write(&v, &a, &b, &err), OX_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "\"new-one\" (tokenizer.ggml.pre)"));
    err = (ox_err)OX_ERR_INIT;
    v = sample();
    v.eos = N;
    assert_int_equal(ox_gguf_vocab_write(&v, &a, &b, &err), OX_BAD_FILE);
    err = (ox_err)OX_ERR_INIT;
    v = sample();
    v.scores = NULL;
    assert_int_equal(ox_gguf_vocab_write(&v, &a, &b, &err), OX_BAD_FILE);
    ox_buf_deinit(&a);
    ox_buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_become_merges_in_the_reference_order),
        cmocka_unit_test(sentencepiece_files_begin_text_and_prefix_a_space),
        cmocka_unit_test(merges_of_missing_tokens_are_left_out),
        cmocka_unit_test(what_is_not_known_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
