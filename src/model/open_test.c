/* open_test.c - folders of the two ONNX forms and what is said about wrong ones. The folders under
 * tests/data/model were written by tools/gen_file_fixtures.py. */
#define _GNU_SOURCE
#include "base/mem.h"
#include "model/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MODELS OXGEN_SOURCE_DIR "/tests/data/model/"

static ox_source *open_ok(const char *path)
{
    ox_source *s = NULL;
    ox_err err = OX_ERR_INIT;
    if (ox_source_open_onnx(&s, path, &err)) fail_msg("%s", err.msg);
    return s;
}

static bool warns(const ox_source *s, const char *text)
{
    for (size_t i = 0; i < s->warnings.n; i++)
        if (strstr(s->warnings.p[i], text)) return true;
    return false;
}

static void is(ox_str got, const char *want)
{
    if (!ox_str_is(got, want)) fail_msg("\"%.*s\" is not \"%s\"", OX_STR_ARGS(got), want);
}

static void check_genai(const ox_source *s)
{
    const ox_facts *f = &s->facts;
    assert_int_equal(s->form, OX_FORM_GENAI);
    is(f->type, "tiny");
    is(f->name, "genai");
    assert_int_equal(f->context_length, 128);
    assert_int_equal(f->vocab_size, 16);
    assert_int_equal(f->n_eos, 2);
    assert_int_equal(f->eos[0], 15);
    assert_int_equal(f->eos[1], 2);
    assert_int_equal(f->bos, 1);
    assert_true(f->search.do_sample && f->search.has_temperature && f->search.has_top_k);
    assert_true(f->search.temperature == 0.6f && f->search.top_k == 20);
    assert_true(f->search.has_repetition && f->search.repetition == 1.1f);
    assert_false(f->search.has_top_p); /* 1.0 switches it off */
    assert_false(f->search.has_min_p);
    assert_int_equal(f->search.max_length, 128);
    is(f->chat_template, "from file");
    assert_int_equal(f->tool_template.n, 0);
    assert_true(f->tokenizer_json.n > 100);
    is(s->in_ids, "input_ids");
    is(s->in_mask, "attention_mask");
    is(s->in_positions, "");
    is(s->in_past_k, "past_key_values.%d.key");
    is(s->out_present_v, "present.%d.value");
    is(s->out_logits, "logits");
}

static void opens_a_genai_folder(void **state)
{
    (void)state;
    ox_source *s = open_ok(MODELS "genai");
    check_genai(s);
    assert_int_equal(s->warnings.n, 1);
    assert_string_equal(s->warnings.p[0],
                        "genai_config.json: model.new_key is not known and was ignored");
    assert_int_equal(s->mappings.n, 2);
    assert_int_equal(s->files.n, 7);
    assert_non_null(strstr(s->files.p[6].path, "model.onnx.data"));
    assert_int_equal(s->files.p[6].bytes, 1024);
    assert_int_equal(s->graph->nodes.n, 5);
    assert_true(ox_value_is(ox_graph_find(s->graph, OX_STR("present.1.value"))));
    /* special_tokens_map.json adds what tokenizer_config.json lacks, and changes nothing. */
    const ox_str config = s->facts.tokenizer_config;
    assert_true(ox_str_find(config, OX_STR("\"bos_token\":\"a\""), 0) != SIZE_MAX);
    assert_true(ox_str_find(config, OX_STR("\"content\":\"<end>\""), 0) != SIZE_MAX);
    ox_source_close(&s);
    assert_null(s);
}

static void a_file_inside_names_its_folder(void **state)
{
    (void)state;
    const char *const paths[] = {MODELS "genai/", MODELS "genai/genai_config.json",
                                 MODELS "genai/tokenizer.json", MODELS "genai/model.onnx"};
    for (size_t i = 0; i < OX_COUNT(paths); i++) {
        ox_source *s = open_ok(paths[i]);
        check_genai(s);
        ox_source_close(&s);
    }
}

static void derives_everything_without_genai_config(void **state)
{
    (void)state;
    const char *const paths[] = {MODELS "hub", MODELS "hub/config.json",
                                 MODELS "hub/onnx/model.onnx"};
    for (size_t i = 0; i < OX_COUNT(paths); i++) {
        ox_source *s = open_ok(paths[i]);
        const ox_facts *f = &s->facts;
        assert_int_equal(s->form, OX_FORM_ONNX);
        is(f->type, "tiny");
        is(f->name, "hub");
        assert_int_equal(f->context_length, 64);
        assert_int_equal(f->vocab_size, 16); /* the graph's logits, not config.json's 99 */
        assert_int_equal(f->n_eos, 1);
        assert_int_equal(f->eos[0], 15); /* the id of the tokenizer's eos_token */
        assert_int_equal(f->bos, 1);
        assert_false(f->search.do_sample);
        assert_true(f->search.has_top_p && f->search.top_p == 0.9f);
        is(f->chat_template, "plain");
        is(f->tool_template, "tools");
        is(s->in_ids, "tokens");
        is(s->in_mask, "pad_mask");
        is(s->in_positions, "position_ids");
        is(s->in_past_k, "past_key_%d");
        is(s->in_past_v, "past_value_%d");
        is(s->out_present_k, "present_key_%d");
        is(s->out_present_v, "present_value_%d");
        assert_int_equal(s->warnings.n, 0);
        ox_source_close(&s);
    }
}

/* --- folders made here --- */

typedef struct folder {
    char dir[128];
} folder;

static folder folder_new(const char *name)
{
    folder f;
    snprintf(f.dir, sizeof(f.dir), "/tmp/oxgen_model_%s_%ld", name, (long)getpid());
    assert_int_equal(mkdir(f.dir, 0700), 0);
    return f;
}

static void folder_put(const folder *f, const char *name, const char *text)
{
    char *path = ox_path_join(f->dir, name);
    assert_int_equal(ox_file_write_atomic(path, ox_str_of(text), NULL), OX_OK);
    ox_free(path);
}

static void folder_copy(const folder *f, const char *name, const char *from)
{
    ox_buf bytes = {0};
    char *path = ox_path_join(f->dir, name);
    assert_int_equal(ox_file_read(&bytes, from, 1 << 20, NULL), OX_OK);
    assert_int_equal(ox_file_write_atomic(path, ox_buf_view(&bytes), NULL), OX_OK);
    ox_buf_deinit(&bytes);
    ox_free(path);
}

static void folder_remove(const folder *f)
{
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(ox_dir_list(&names, &n, f->dir, NULL), OX_OK);
    for (size_t i = 0; i < n; i++) {
        char *path = ox_path_join(f->dir, names[i]);
        unlink(path);
        ox_free(path);
    }
    ox_dir_list_free(names, n);
    assert_int_equal(rmdir(f->dir), 0);
}

static void refused(const char *path, ox_status want, const char *message)
{
    ox_source *s = NULL;
    ox_err err = OX_ERR_INIT;
    const ox_status st = ox_source_open_onnx(&s, path, &err);
    if (st != want || !strstr(err.msg, message))
        fail_msg("%d \"%s\" lacks \"%s\"", st, err.msg, message);
    assert_null(s);
}

static void says_what_is_wrong_with_a_folder(void **state)
{
    (void)state;
    folder f = folder_new("folder");
    char path[256];
    refused("/tmp/no_such_model", OX_NOT_FOUND, "/tmp/no_such_model: no such file or folder");
    refused(f.dir, OX_NOT_FOUND, "no .onnx file; expected a folder with a decoder graph");
    folder_put(&f, "notes.txt", "x");
    snprintf(path, sizeof(path), "%s/notes.txt", f.dir);
    refused(path, OX_UNSUPPORTED, "expected a model folder");
    folder_copy(&f, "a.onnx", MODELS "hub/onnx/model.onnx");
    ox_source *s = open_ok(f.dir);
    assert_true(warns(s, "no tokenizer.json, so only token ids can go in and out"));
    assert_true(warns(s, "no file states an end-of-text id"));
    assert_int_equal(s->facts.bos, -1);
    ox_source_close(&s);
    folder_put(&f, "vocab.json", "{}");
    s = open_ok(f.dir);
    assert_true(warns(s, "vocab.json but no tokenizer.json"));
    ox_source_close(&s);
    folder_copy(&f, "b.onnx", MODELS "hub/onnx/model.onnx");
    refused(f.dir, OX_BAD_ARGUMENT, "2 .onnx files (a.onnx, b.onnx) and no genai_config.json");
    folder_put(&f, "config.json", "{\"vocab_size\":");
    snprintf(path, sizeof(path), "%s/a.onnx", f.dir);
    refused(path, OX_BAD_FILE, "config.json: ");
    folder_put(&f, "config.json", "[1]");
    refused(path, OX_BAD_FILE, "config.json: expected an object, found an array");
    folder_remove(&f);
}

#define DECODER(filename, more) "{\"model\":{\"decoder\":{\"filename\":\"" filename "\"" more "}}}"

static void says_what_is_wrong_with_a_config(void **state)
{
    (void)state;
    folder f = folder_new("config");
    folder_copy(&f, "model.onnx", MODELS "hub/onnx/model.onnx");
    const struct {
        const char *text;
        ox_status st;
        const char *message;
    } rows[] = {
        {"{", OX_BAD_FILE, "genai_config.json: "},
        {"", OX_BAD_FILE, "genai_config.json is empty"},
        {"{}", OX_BAD_FILE, "genai_config.json: \"model\" must be an object"},
        {"{\"model\":{\"decoder\":{}}}", OX_BAD_FILE, "model.decoder.filename"},
        {DECODER("none.onnx", ""), OX_NOT_FOUND, "none.onnx: cannot open"},
        {DECODER("../model.onnx", ""), OX_BAD_FILE, "outside the model folder"},
        {DECODER("/etc/passwd", ""), OX_BAD_FILE, "outside the model folder"},
        {DECODER("model.onnx", ",\"pipeline\":[{\"a\":{}}]"), OX_UNSUPPORTED, "split into stages"},
        {DECODER("model.onnx", ",\"inputs\":{\"input_ids\":3}"), OX_BAD_FILE, "inputs.input_ids"},
        {"{\"model\":{\"decoder\":{\"filename\":\"model.onnx\"},\"encoder\":{\"filename\":\"e\"}}}",
         OX_UNSUPPORTED, "model.encoder: a model of several networks"},
        {"{\"model\":{\"decoder\":{\"filename\":\"model.onnx\"},\"context_length\":-1}}",
         OX_BAD_FILE, "context_length"},
        {"{\"model\":{\"tokenizer_dir\":\"../x\",\"decoder\":{\"filename\":\"model.onnx\"}}}",
         OX_BAD_FILE, "outside the model folder"},
    };
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        folder_put(&f, "genai_config.json", rows[i].text);
        refused(f.dir, rows[i].st, rows[i].message);
    }
    /* Port names that the graph does not have are derived. */
    folder_put(&f, "genai_config.json", DECODER("model.onnx", ""));
    ox_source *s = open_ok(f.dir);
    is(s->in_ids, "tokens");
    is(s->in_past_v, "past_value_%d");
    ox_source_close(&s);
    folder_remove(&f);
}

static void says_when_a_graph_is_no_decoder(void **state)
{
    (void)state;
    folder f = folder_new("graph");
    folder_copy(&f, "model.onnx", OXGEN_SOURCE_DIR "/tests/data/files/nodes.onnx");
    refused(f.dir, OX_UNSUPPORTED, "model.onnx: the graph has no input of token ids");
    folder_put(&f, "model.onnx", "version https://git-lfs.github.com/spec/v1\n");
    refused(f.dir, OX_BAD_FILE, "model.onnx: a Git LFS pointer");
    folder_remove(&f);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    const char *const paths[] = {MODELS "genai", MODELS "hub", MODELS "genai/model.onnx"};
    for (size_t i = 0; i < OX_COUNT(paths); i++) {
        for (long n = 1;; n++) {
            ox_source *s = NULL;
            ox_err err = OX_ERR_INIT;
            ox_mem_fail_after(n);
            const ox_status st = ox_source_open_onnx(&s, paths[i], &err);
            ox_mem_fail_after(0);
            if (!st) { /* nothing was lost on the way */
                assert_int_equal(s->form, i == 1 ? OX_FORM_ONNX : OX_FORM_GENAI);
                assert_int_equal(s->warnings.n, i != 1);
                assert_int_equal(s->facts.eos[0], 15);
            }
            ox_source_close(&s);
            if (!st) break;
            if (st != OX_NO_MEMORY) fail_msg("allocation %ld: %d %s", n, st, err.msg);
            assert_true(n < 10000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_a_genai_folder),
        cmocka_unit_test(a_file_inside_names_its_folder),
        cmocka_unit_test(derives_everything_without_genai_config),
        cmocka_unit_test(says_what_is_wrong_with_a_folder),
        cmocka_unit_test(says_what_is_wrong_with_a_config),
        cmocka_unit_test(says_when_a_graph_is_no_decoder),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
