/* tokenizer_test.c - every kind of every step against ids and texts that the reference library gave
 * (tools/gen_tokenizer_golden.py), and what files, texts and limits are refused. */
#include "text/tokenizer.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "convert/gguf_vocab.h"
#include "text/detok.h"
#include "text/unicode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct golden {
    ox_arena arena;
    const ox_json *root;
} golden;

static golden load(void)
{
    golden g = {.root = NULL};
    ox_buf text = {0};
    ox_err err = OX_ERR_INIT;
    const char *path = OXGEN_SOURCE_DIR "/tests/data/tokenizers/golden.json";
    if (ox_file_read(&text, path, 1 << 24, &err)) fail_msg("%s", err.msg);
    if (ox_json_parse(&g.root, &g.arena, ox_buf_view(&text), &err)) fail_msg("%s", err.msg);
    ox_buf_deinit(&text);
    return g;
}

/* The tokenizer.json of a case: its parts and the model they name. */
static void put_file(const golden *g, const ox_json *parts, ox_buf *out)
{
    ox_json_writer w = {.out = out};
    ox_json_begin_object(&w);
    for (size_t i = 0; i < ox_json_n(parts); i++) {
        const ox_json_member *m = ox_json_member_at(parts, i);
        const ox_str key = ox_json_str(&m->key);
        ox_json_put_key_str(&w, key);
        if (ox_str_is(key, "model"))
            ox_json_put_node(
                &w, ox_json_get_str(ox_json_get(g->root, "models"), ox_json_str(&m->value)));
        else
            ox_json_put_node(&w, &m->value);
    }
    ox_json_end_object(&w);
}

static ox_tokenizer *open_text(ox_str json, ox_str config)
{
    ox_tokenizer *tok = NULL;
    ox_err err = OX_ERR_INIT;
    if (ox_tokenizer_open(&tok, json, config, &err)) fail_msg("%s", err.msg);
    return tok;
}

static ox_tokenizer *open_case(const golden *g, const char *name)
{
    const ox_json *cases = ox_json_get(g->root, "cases");
    for (size_t i = 0; i < ox_json_n(cases); i++) {
        const ox_json *c = ox_json_at(cases, i);
        if (!ox_str_is(ox_json_str(ox_json_get(c, "name")), name)) continue;
        ox_buf file = {0};
        put_file(g, ox_json_get(c, "parts"), &file);
        ox_tokenizer *tok = open_text(ox_buf_view(&file), (ox_str){0});
        ox_buf_deinit(&file);
        return tok;
    }
    fail_msg("no case %s", name);
    return NULL;
}

static void encode_or_fail(const ox_tokenizer *tok, ox_str text, unsigned flags, ox_ids *ids)
{
    ox_err err = OX_ERR_INIT;
    ids->n = 0;
    if (ox_tokenizer_encode(tok, text, flags, ids, &err)) fail_msg("%s", err.msg);
}

static void same_ids(const char *name, size_t i, const ox_json *expected, const ox_ids *ids)
{
    bool same = ox_json_n(expected) == ids->n;
    for (size_t k = 0; same && k < ids->n; k++)
        same = ox_json_i64(ox_json_at(expected, k)) == ids->p[k];
    if (!same) fail_msg("%s, text %zu: %zu ids differ", name, i, ids->n);
}

static void same_text(const char *name, size_t i, const char *what, ox_str expected, ox_str got)
{
    if (!ox_str_eq(expected, got))
        fail_msg("%s, text %zu, %s: \"%.*s\" is not \"%.*s\"", name, i, what, OX_STR_ARGS(got),
                 OX_STR_ARGS(expected));
}

static bool streams_exactly(const char *name)
{
    return !strncmp(name, "byte-level", 10) || !strncmp(name, "spm, prep", 9) ||
           !strncmp(name, "pre-tok", 7) || !strncmp(name, "normalizer", 10);
}

static void check_result(const ox_tokenizer *tok, const char *name, size_t i, ox_str text,
                         const ox_json *r)
{
    ox_ids ids = {0};
    ox_buf out = {0}, streamed = {0};
    ox_err err = OX_ERR_INIT;
    const ox_json *plain = ox_json_at(r, 1), *all = ox_json_at(r, 2), *kept = ox_json_at(r, 3);
    encode_or_fail(tok, text, 0, &ids);
    same_ids(name, i, ox_json_is(plain, OX_JSON_ARRAY) ? plain : ox_json_at(r, 0), &ids);
    encode_or_fail(tok, text, OX_ENCODE_ADD_SPECIAL | OX_ENCODE_PARSE_SPECIAL, &ids);
    same_ids(name, i, ox_json_at(r, 0), &ids);
    const ox_str shown = ox_json_is(all, OX_JSON_STRING) ? ox_json_str(all) : text;
    assert_int_equal(ox_tokenizer_decode(tok, ids.p, ids.n, false, &out, &err), OX_OK);
    same_text(name, i, "decoded", shown, ox_buf_view(&out));
    ox_buf_clear(&out);
    assert_int_equal(ox_tokenizer_decode(tok, ids.p, ids.n, true, &out, &err), OX_OK);
    same_text(name, i, "without special tokens",
              ox_json_is(kept, OX_JSON_STRING) ? ox_json_str(kept) : shown, ox_buf_view(&out));
    ox_detok d;
    ox_detok_init(&d, tok, true, true);
    for (size_t k = 0; k < ids.n; k++)
        ox_detok_push(&d, ids.p[k], &streamed);
    ox_detok_flush(&d, &streamed);
    if (streams_exactly(name)) same_text(name, i, "streamed", shown, ox_buf_view(&streamed));
    ox_buf_deinit(&out);
    ox_buf_deinit(&streamed);
    ox_vec_deinit(&ids);
}

static void every_kind_agrees_with_the_reference(void **state)
{
    (void)state;
    golden g = load();
    const ox_json *cases = ox_json_get(g.root, "cases"), *texts = ox_json_get(g.root, "texts");
    assert_true(ox_json_n(cases) > 60);
    for (size_t i = 0; i < ox_json_n(cases); i++) {
        const ox_json *c = ox_json_at(cases, i), *results = ox_json_get(c, "results");
        ox_tokenizer *tok = open_case(&g, ox_json_str(ox_json_get(c, "name")).p);
        assert_int_equal(ox_json_n(results), ox_json_n(texts));
        for (size_t k = 0; k < ox_json_n(texts); k++)
            check_result(tok, ox_json_str(ox_json_get(c, "name")).p, k,
                         ox_json_str(ox_json_at(texts, k)), ox_json_at(results, k));
        ox_tokenizer_close(&tok);
    }
    ox_arena_deinit(&g.arena);
}

static void repeated(ox_buf *b, const char *unit, size_t n)
{
    ox_buf_clear(b);
    for (size_t i = 0; i < n; i++)
        ox_buf_put_z(b, unit);
}

/* Quadratic time would take minutes here. */
static void long_pieces_take_linear_time(void **state)
{
    static const char *const units[] = {"a",  " ", "\n",          "1", "\xcc\x81\xcc\xa7",
                                        "ab", "<", "\xe2\x96\x81"};
    static const char *const names[] = {"byte-level bpe", "spm, prepended",
                                        "unigram",        "normalizer nfc",
                                        "wordpiece",      "pre-tokenizer thousands"};
    (void)state;
    golden g = load();
    ox_buf text = {0};
    ox_ids ids = {0};
    const double begin = ox_clock_seconds();
    for (size_t i = 0; i < OX_COUNT(names); i++) {
        ox_tokenizer *tok = open_case(&g, names[i]);
        for (size_t k = 0; k < OX_COUNT(units); k++) {
            ox_err err = OX_ERR_INIT;
            repeated(&text, units[k], 200000);
            ids.n = 0;
            const ox_status st = ox_tokenizer_encode(tok, ox_buf_view(&text), 0, &ids, &err);
            if (st && st != OX_LIMIT) fail_msg("%s: %s", names[i], err.msg);
        }
        ox_tokenizer_close(&tok);
    }
    assert_true(ox_clock_seconds() - begin < 120);
    ox_buf_deinit(&text);
    ox_vec_deinit(&ids);
    ox_arena_deinit(&g.arena);
}

static void text_that_is_not_utf8_is_refused_with_its_offset(void **state)
{
    (void)state;
    golden g = load();
    ox_tokenizer *tok = open_case(&g, "byte-level bpe");
    ox_ids ids = {0};
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_tokenizer_encode(tok, OX_STR("ab\xffz"), 0, &ids, &err), OX_BAD_ARGUMENT);
    assert_string_equal(err.msg, "the text is not UTF-8: byte 2 (0xff) is ill-formed");
    assert_int_equal(ids.n, 0);
    ox_tokenizer_close(&tok);
    ox_arena_deinit(&g.arena);
}

static void refuses(const char *json, const char *config, ox_status st, const char *message)
{
    ox_tokenizer *tok = NULL;
    ox_err err = OX_ERR_INIT;
    const ox_status got = ox_tokenizer_open(&tok, ox_str_of(json), ox_str_of(config), &err);
    if (got != st || !strstr(err.msg, message)) fail_msg("%d, \"%s\"", got, err.msg);
    assert_null(tok);
}

#define WITH(part)                                                                                 \
    "{" part ",\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}"

static void what_is_not_known_is_refused_by_name(void **state)
{
    (void)state;
    refuses("[1", "", OX_BAD_FILE, "tokenizer.json: JSON: the text ends too early");
    refuses("{}", "", OX_BAD_FILE, "\"model\" must be an object, found missing");
    refuses("{\"model\":{\"type\":\"Magic\"}}", "", OX_UNSUPPORTED, "model \"Magic\"");
    refuses(WITH("\"normalizer\":{\"type\":\"Odd\"}"), "", OX_UNSUPPORTED, "normalizer \"Odd\"");
    refuses(WITH("\"pre_tokenizer\":{\"type\":\"Odd\"}"), "", OX_UNSUPPORTED,
            "pre-tokenizer \"Odd\"");
    refuses(WITH("\"post_processor\":{\"type\":\"Odd\"}"), "", OX_UNSUPPORTED,
            "post-processor \"Odd\"");
    refuses(WITH("\"decoder\":{\"type\":\"Odd\"}"), "", OX_UNSUPPORTED, "decoder \"Odd\"");
    refuses(WITH("\"decoder\":null"), "7", OX_BAD_FILE, "tokenizer_config.json: must be an object");
    refuses(WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"}}"), "",
            OX_UNSUPPORTED, "can't be compiled");
    refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "", OX_BAD_FILE,
            "id -1, expected 0 to");
    refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "",
            OX_BAD_FILE, "merge 0 (\"a\" and \"b\") names a token that is not in the vocabulary");
    refuses("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999},\"merges\":[]}}", "",
            OX_BAD_FILE, "id 99999999");
}

static void config_names_special_tokens_and_wraps(void **state)
{
    static const char json[] =
        "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,"
        "\"<s>\":1,\"</s>\":2,\"a\":3}}}";
    (void)state;
    ox_ids ids = {0};
    ox_tokenizer *tok = open_text(
        OX_STR(json),
        OX_STR("{\"bos_token\":{\"content\":\"<s>\"},\"eos_token\":\"</s>\",\"pad_token\":null,"
               "\"add_bos_token\":true,\"model_max_length\":1000000000000000019884624838656,"
               "\"additional_special_tokens\":[\"<new>\"]}"));
    encode_or_fail(tok, OX_STR("a"), OX_ENCODE_ADD_SPECIAL, &ids);
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.p[0], 1);
    assert_int_equal(ids.p[1], 3);
    assert_true(ox_tokenizer_adds_bos(tok));
    assert_int_equal(ox_tokenizer_special(tok, OX_SPECIAL_BOS), 1);
    assert_int_equal(ox_tokenizer_special(tok, OX_SPECIAL_EOS), 2);
    assert_int_equal(ox_tokenizer_special(tok, OX_SPECIAL_PAD), -1);
    assert_int_equal(ox_tokenizer_special(tok, OX_SPECIAL_UNK), 0);
    assert_int_equal(ox_tokenizer_id(tok, OX_STR("<new>")), 4);
    assert_int_equal(ox_tokenizer_n_vocab(tok), 5);
    assert_true(ox_tokenizer_is_special(tok, 4));
    assert_false(ox_tokenizer_is_special(tok, 3));
    assert_false(ox_tokenizer_is_special(tok, -7));
    assert_null(ox_tokenizer_token(tok, 99).p);
    ox_tokenizer_close(&tok);
    tok = open_text(OX_STR(json), OX_STR("{\"bos_token\":null,\"add_bos_token\":true}"));
    assert_false(ox_tokenizer_adds_bos(tok));
    ox_tokenizer_close(&tok);
    tok = open_text(OX_STR(json),
                    OX_STR("{\"bos_token\":\"<s>\",\"tokenizer_class\":\"LlamaTokenizer\"}"));
    assert_true(ox_tokenizer_adds_bos(tok));
    ox_tokenizer_close(&tok);
    ox_vec_deinit(&ids);
}

/* Every name that GGUF files give their splitting leads to patterns that
 * compile and lose nothing. */
static void named_splits_of_gguf_files_work(void **state)
{
    enum { BOS = 1, WHOLE = 2, NFC = 4, MARKS = 16 };
    static const struct {
        const char *name;
        unsigned flags;
    } rows[] = {
#define OX_GGUF_PRE(name, split, flags) {name, flags},
#include "convert/gguf_pre.def"
    };
    static const char text[] = "It's 12345 caf\xc3\xa9s,  \xe4\xbd\xa0\xe5\xa5\xbd\n\n  (x+1)?";
    (void)state;
    ox_str tokens[256];
    ox_buf alphabet[256] = {{0}};
    for (uint32_t b = 0; b < 256; b++) { /* the printable alphabet of bytes, in code point order */
        const bool same = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        const uint32_t c = same ? b : b <= 32 ? 0x100 + b : b == 173 ? 0x143 : 0x121 + b - 127;
        ox_utf8_put(&alphabet[b], c);
        tokens[b] = ox_buf_view(&alphabet[b]);
    }
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        if (rows[i].flags & MARKS) continue; /* these do not spell bytes */
        const ox_gguf_vocab v = {.kind = OX_STR("gpt2"),
                                 .pre = ox_str_of(rows[i].name),
                                 .n = 256,
                                 .tokens = tokens,
                                 .bos = -1,
                                 .eos = -1,
                                 .unk = -1,
                                 .pad = -1};
        ox_buf json = {0}, config = {0};
        ox_ids ids = {0};
        ox_err err = OX_ERR_INIT;
        if (ox_gguf_vocab_write(&v, &json, &config, &err))
            fail_msg("%s: %s", rows[i].name, err.msg);
        ox_tokenizer *tok = open_text(ox_buf_view(&json), ox_buf_view(&config));
        encode_or_fail(tok, OX_STR(text), OX_ENCODE_ADD_SPECIAL, &ids);
        assert_int_equal(ids.n, sizeof(text) - 1);
        for (size_t k = 0; k < ids.n; k++)
            assert_int_equal(ids.p[k], (uint8_t)text[k]);
        ox_tokenizer_close(&tok);
        ox_vec_deinit(&ids);
        ox_buf_deinit(&json);
        ox_buf_deinit(&config);
    }
    for (size_t b = 0; b < 256; b++)
        ox_buf_deinit(&alphabet[b]);
}

static void explosive_patterns_end_in_an_error(void **state)
{
    (void)state;
    ox_tokenizer *tok = open_text(
        OX_STR(WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a|aa)+$\"}}")),
        (ox_str){0});
    ox_buf text = {0};
    ox_ids ids = {0};
    ox_err err = OX_ERR_INIT;
    repeated(&text, "a", 5000);
    ox_buf_put_z(&text, "b");
    assert_int_equal(ox_tokenizer_encode(tok, ox_buf_view(&text), 0, &ids, &err), OX_LIMIT);
    assert_non_null(strstr(err.msg, "a pattern of the tokenizer"));
    ox_buf_deinit(&text);
    ox_vec_deinit(&ids);
    ox_tokenizer_close(&tok);
}

static void memory_failure_is_reported_at_every_site(void **state)
{
    static const char *const names[] = {"spm, metaspace",  "byte-level bpe", "unigram with bytes",
                                        "normalizer bert", "wordpiece",      "normalizer charsmap"};
    (void)state;
    golden g = load();
    const ox_json *cases = ox_json_get(g.root, "cases");
    for (size_t i = 0; i < ox_json_n(cases); i++) {
        const ox_json *c = ox_json_at(cases, i);
        bool wanted = false;
        for (size_t k = 0; k < OX_COUNT(names); k++)
            wanted = wanted || ox_str_is(ox_json_str(ox_json_get(c, "name")), names[k]);
        if (!wanted) continue;
        ox_buf file = {0};
        put_file(&g, ox_json_get(c, "parts"), &file);
        for (long n = 1, done = 0; !done; n += n < 60 ? 1 : 7) {
            ox_tokenizer *tok = NULL;
            ox_ids ids = {0};
            ox_buf out = {0};
            ox_err err = OX_ERR_INIT;
            ox_mem_fail_after(n);
            ox_status st = ox_tokenizer_open(&tok, ox_buf_view(&file), (ox_str){0}, &err);
            if (!st) st = ox_tokenizer_encode(tok, OX_STR("Hi <s> \xc3\xa9 there"), 3, &ids, &err);
            if (!st) st = ox_tokenizer_decode(tok, ids.p, ids.n, true, &out, &err);
            ox_mem_fail_after(0);
            if (st && st != OX_NO_MEMORY) fail_msg("site %ld: %d %s", n, st, err.msg);
            done = !st;
            ox_buf_deinit(&out);
            ox_vec_deinit(&ids);
            ox_tokenizer_close(&tok);
        }
        ox_buf_deinit(&file);
    }
    ox_arena_deinit(&g.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_agrees_with_the_reference),
        cmocka_unit_test(long_pieces_take_linear_time),
        cmocka_unit_test(text_that_is_not_utf8_is_refused_with_its_offset),
        cmocka_unit_test(what_is_not_known_is_refused_by_name),
        cmocka_unit_test(config_names_special_tokens_and_wraps),
        cmocka_unit_test(named_splits_of_gguf_files_work),
        cmocka_unit_test(explosive_patterns_end_in_an_error),
        cmocka_unit_test(memory_failure_is_reported_at_every_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
