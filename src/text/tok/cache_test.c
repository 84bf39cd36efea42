/* cache_test.c - a tokenizer read back from its packed form encodes and decodes as before; every
 * kind of damage is noticed; the folder is written once, mended, and left alone when it can't be.
 */
#define _GNU_SOURCE
#include "text/tok/cache.h"

#include "base/outfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const char head_json[] =
    "{\"added_tokens\":[{\"content\":\"<s>\",\"special\":true,\"normalized\":false}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
    "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{";

/* All bytes from `first` on, and `extra` tokens more so that the file is worth keeping. */
static void make_json(ox_buf *out, int first, int extra)
{
    ox_buf name = {0};
    ox_buf_put_z(out, head_json);
    for (int b = first; b < 256; b++) {
        const ox_byte_char c = ox_byte_to_char((uint8_t)b);
        ox_buf_clear(&name);
        ox_json_quote(&name, (ox_str){c.utf8, c.n});
        ox_buf_printf(out, "%s%.*s:%d", b > first ? "," : "", (int)name.n, name.p, b);
    }
    ox_buf_put_z(out, ",\"th\":256,\"the\":257");
    for (int i = 0; i < extra; i++)
        ox_buf_printf(out, ",\"token%d\":%d", i, 258 + i);
    ox_buf_put_z(out, "},\"merges\":[\"t h\",\"th e\"]}}");
    ox_buf_deinit(&name);
    assert_false(out->failed);
}

static void same(const ox_tokenizer *a, const ox_tokenizer *b)
{
    static const char text[] = "the <s> th\xc3\xa9 other thing\n";
    ox_ids x = {0}, y = {0};
    ox_buf s = {0}, t = {0};
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_tokenizer_encode(a, OX_STR(text), 3, &x, &err), OX_OK);
    assert_int_equal(ox_tokenizer_encode(b, OX_STR(text), 3, &y, &err), OX_OK);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.p, y.p, x.n * sizeof(*x.p));
    assert_int_equal(ox_tokenizer_decode(b, y.p, y.n, false, &t, &err), OX_OK);
    assert_int_equal(ox_tokenizer_decode(a, x.p, x.n, false, &s, &err), OX_OK);
    assert_string_equal(s.p, t.p);
    assert_string_equal(s.p, text);
    ox_vec_deinit(&x);
    ox_vec_deinit(&y);
    ox_buf_deinit(&s);
    ox_buf_deinit(&t);
}

static void every_damage_is_noticed(void **state)
{
    ox_buf json = {0}, rest = {0}, packed = {0};
    ox_tokenizer *tok = NULL, *back = NULL;
    ox_tok_parts parts;
    ox_err err = OX_ERR_INIT;
    const uint64_t key[2] = {1, 2};
    (void)state;
    make_json(&json, 0, 10);
    assert_int_equal(ox_tok_open_keeping(&tok, ox_buf_view(&json), OX_STR(""), &rest, &parts, &err),
                     OX_OK);
    ox_tok_pack(tok, &parts, key, &packed);
    assert_false(packed.failed);
    const size_t step = packed.n / 2000 + 1;
    for (size_t i = 0; i < packed.n; i += step) { /* a byte changed, and cut off there */
        for (int cut = 0; cut < 2; cut++) {
            char *copy = malloc(packed.n);
            ox_tokenizer *t = calloc(1, sizeof(*t));
            memcpy(copy, packed.p, packed.n);
            copy[i] = (char)(copy[i] ^ 0x55);
            assert_false(ox_tok_unpack(t, &parts, (ox_str){copy, cut ? i : packed.n}, key));
            ox_tok_let_go(t);
            free(t);
            free(copy);
        }
    }
    char path[] = "/tmp/oxgen-cache-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, packed.p, packed.n) == (ssize_t)packed.n);
    close(fd);
    ox_mapping map = {0};
    assert_int_equal(ox_mapping_open(&map, path, &err), OX_OK);
    assert_int_equal(ox_tok_open_packed(&back, &map, key, &err), OX_OK);
    same(tok, back);
    ox_tokenizer_close(&back);
    unlink(path);
    ox_tokenizer_close(&tok);
    ox_buf_deinit(&json);
    ox_buf_deinit(&rest);
    ox_buf_deinit(&packed);
}

static void the_folder_is_mended(int first)
{
    char dir[] = "/tmp/oxgen-cachedir-XXXXXX";
    ox_buf json = {0}, path = {0};
    ox_tokenizer *plain = NULL, *cached = NULL;
    ox_err err = OX_ERR_INIT;
    char **names = NULL;
    size_t n = 0;
    assert_non_null(mkdtemp(dir));
    setenv("XDG_CACHE_HOME", dir, 1);
    make_json(&json, first, 20000);
    assert_int_equal(ox_tokenizer_open(&plain, ox_buf_view(&json), OX_STR(""), &err), OX_OK);
    ox_buf_printf(&path, "%s/oxgen/tokenizers", dir);
    for (int round = 0; round < 4; round++) {
        assert_int_equal(ox_tokenizer_open_cached(&cached, ox_buf_view(&json), OX_STR(""), &err),
                         OX_OK);
        assert_true(round == 0 || round == 3 || cached->borrowed == (round == 1));
        same(plain, cached);
        ox_tokenizer_close(&cached);
        assert_int_equal(ox_dir_list(&names, &n, path.p, &err), OX_OK);
        assert_int_equal(n, 1);
        char *file = ox_path_join(path.p, names[0]);
        if (round == 1) assert_int_equal(ox_file_write_atomic(file, OX_STR("junk"), &err), OX_OK);
        ox_free(file);
        ox_dir_list_free(names, n);
    }
    ox_dir_remove(path.p);
    path.n -= strlen("/tokenizers");
    path.p[path.n] = 0;
    ox_dir_remove(path.p);
    ox_dir_remove(dir);
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* can't be made: no error */
    assert_int_equal(ox_tokenizer_open_cached(&cached, ox_buf_view(&json), OX_STR(""), &err),
                     OX_OK);
    same(plain, cached);
    ox_tokenizer_close(&cached);
    ox_tokenizer_close(&plain);
    ox_buf_deinit(&json);
    ox_buf_deinit(&path);
}

static void the_folder_is_mended_with_all_bytes(void **state)
{
    (void)state;
    the_folder_is_mended(0);
}

/* Such a tokenizer has no table of bytes, in the file neither. */
static void the_folder_is_mended_with_bytes_missing(void **state)
{
    (void)state;
    the_folder_is_mended(5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_damage_is_noticed),
        cmocka_unit_test(the_folder_is_mended_with_all_bytes),
        cmocka_unit_test(the_folder_is_mended_with_bytes_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
