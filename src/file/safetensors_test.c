/* safetensors_test.c - tensors against what the safetensors package reads; shards; lies. */
#define _GNU_SOURCE
#include "file/safetensors.h"

#include "tests/hostile.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES OXGEN_SOURCE_DIR "/tests/data/files/"

static int by_name(const void *a, const void *b)
{
    const ox_safetensors_tensor *x = *(ox_safetensors_tensor *const *)a,
                                *y = *(ox_safetensors_tensor *const *)b;
    return strcmp(x->name.p, y->name.p); /* names are copies: NUL-terminated */
}

static void reads_as_expected(const char *path)
{
    ox_safetensors *s = NULL;
    ox_err err = OX_ERR_INIT;
    ox_buf got = {0}, want = {0};
    const ox_safetensors_tensor *sorted[16];
    if (ox_safetensors_open(&s, path, &err)) fail_msg("%s", err.msg);
    assert_int_equal(s->tensors.n, 8);
    for (size_t i = 0; i < s->tensors.n; i++)
        sorted[i] = &s->tensors.p[i];
    qsort(sorted, s->tensors.n, sizeof(sorted[0]), by_name);
    for (size_t k = 0; k < s->tensors.n; k++) {
        const ox_safetensors_tensor *t = sorted[k];
        ox_buf_printf(&got, "%.*s %.*s [", OX_STR_ARGS(t->name), OX_STR_ARGS(t->type));
        for (int32_t i = 0; i < t->t.rank; i++)
            ox_buf_printf(&got, "%s%lld", i ? "," : "", (long long)t->t.dims[i]);
        ox_buf_put_z(&got, t->bytes ? "] " : "]");
        for (size_t i = 0; i < t->bytes; i++)
            ox_buf_printf(&got, "%02x", ((const uint8_t *)t->t.data)[i]);
        ox_buf_put_c(&got, '\n');
        assert_true((uintptr_t)t->t.data % ((size_t)ox_dtype_bits(t->t.dtype) / 8) == 0);
    }
    assert_int_equal(ox_file_read(&want, FILES "one.safetensors.txt", 1 << 20, &err), OX_OK);
    assert_string_equal(got.p, want.p);
    ox_buf_deinit(&got);
    ox_buf_deinit(&want);
    ox_safetensors_close(&s);
    assert_null(s);
}

static void reads_one_file(void **state)
{
    (void)state;
    reads_as_expected(FILES "one.safetensors");
}

static void reads_shards_by_their_index(void **state)
{
    (void)state;
    reads_as_expected(FILES "shards");
    reads_as_expected(FILES "shards/model.safetensors.index.json");
}

static ox_status read_bytes(ox_str bytes, ox_err *err)
{
    ox_safetensors *s = NULL;
    const ox_status st = ox_safetensors_parse(&s, bytes, err);
    volatile unsigned sum = 0;
    for (size_t k = 0; s && k < s->tensors.n; k++)
        for (size_t i = 0; i < s->tensors.p[k].bytes; i++)
            sum += ((const uint8_t *)s->tensors.p[k].t.data)[i];
    ox_safetensors_close(&s);
    return st;
}

static void survives_damage(void **state)
{
    (void)state;
    hostile_bytes(read_bytes, FILES "one.safetensors");
    hostile_memory(read_bytes, FILES "one.safetensors");
}

static void refused(const char *header, size_t n_data, ox_status want, const char *message)
{
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    const uint64_t n = strlen(header);
    ox_buf_put(&b, &n, 8);
    ox_buf_put_z(&b, header);
    for (size_t i = 0; i < n_data; i++)
        ox_buf_put_c(&b, 1);
    const ox_status st = hostile_try(read_bytes, b.p, b.n, &err);
    if (st != want || !strstr(err.msg, message))
        fail_msg("%d \"%s\" lacks \"%s\"", st, err.msg, message);
    ox_buf_deinit(&b);
}

#define ENTRY(name, dtype, shape, begin, end)                                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end \
    "]}"

static void refuses_headers_that_lie(void **state)
{
    (void)state;
    refused("{" ENTRY("w", "F32", "2", "0", "8") "}", 8, OX_OK, "");
    refused("{" ENTRY("w", "F32", "2", "0", "8") "}", 7, OX_BAD_FILE,
            "tensor w: data_offsets end at 8 of 7 bytes");
    refused("{" ENTRY("w", "F32", "2", "0", "8") "}", 9, OX_BAD_FILE,
            "9 bytes of data of which its tensors use 8");
    refused("{" ENTRY("w", "F32", "3", "0", "8") "}", 8, OX_BAD_FILE,
            "tensor w: 8 bytes of data, which is not");
    refused("{" ENTRY("w", "F32", "-2", "0", "8") "}", 8, OX_BAD_FILE, "dimension 0 is not");
    refused("{" ENTRY("w", "F32", "9223372036854775808", "0", "8") "}", 8, OX_BAD_FILE,
            "dimension 0 is not a number from 0 to 2^63-1");
    refused("{" ENTRY("w", "F32", "4294967296,4294967296", "0", "8") "}", 8, OX_BAD_FILE,
            "which is not what its shape");
    refused("{" ENTRY("w", "F32", "1,1,1,1,1,1,1,1,2", "0", "8") "}", 8, OX_UNSUPPORTED,
            "9 dimensions");
    refused("{" ENTRY("w", "F32", "2", "8", "0") "}", 8, OX_BAD_FILE, "two growing numbers");
    refused("{" ENTRY("w", "F32", "2", "-8", "0") "}", 8, OX_BAD_FILE, "two growing numbers");
    refused("{" ENTRY("w", "F32", "2", "1e0", "9") "}", 9, OX_BAD_FILE, "two growing numbers");
    refused("{" ENTRY("a", "F32", "2", "0", "8") "," ENTRY("b", "F32", "2", "4", "12") "}", 12,
            OX_BAD_FILE, "its tensors overlap at byte 4");
    refused("{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("b", "F32", "1", "8", "12") "}", 12,
            OX_BAD_FILE, "its tensors leave a hole at byte 8");
    refused("{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("a", "F32", "1", "4", "8") "}", 8,
            OX_BAD_FILE, "tensor a: it occurs twice");
    refused("[1]", 0, OX_BAD_FILE, "the header is not a JSON object");
    refused("{", 0, OX_BAD_FILE, "header: ");
    refused("{\"w\":3}", 0, OX_BAD_FILE, "tensor w: expected an object");
    refused("{}", 0, OX_OK, "");
}

static void a_type_it_does_not_know_is_refused_when_used(void **state)
{
    (void)state;
    ox_safetensors *s = NULL;
    ox_err err = OX_ERR_INIT;
    const ox_safetensors_tensor *t = NULL;
    const char header[] = "{" ENTRY("w", "F6_E2M3", "4", "0", "3") "}";
    ox_buf b = {0};
    const uint64_t n = sizeof(header) - 1;
    ox_buf_put(&b, &n, 8);
    ox_buf_put_z(&b, header);
    ox_buf_put_z(&b, "abc");
    assert_int_equal(ox_safetensors_parse(&s, ox_buf_view(&b), &err), OX_OK);
    assert_int_equal(ox_safetensors_need(s, "w", &t, &err), OX_UNSUPPORTED);
    assert_string_equal(err.msg, "tensor w has type F6_E2M3, which oxgen does not read");
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_safetensors_need(s, "v", &t, &err), OX_BAD_FILE);
    ox_safetensors_close(&s);
    ox_buf_deinit(&b);
}

static void refuses_short_files_and_long_headers(void **state)
{
    (void)state;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(hostile_try(read_bytes, "", 0, &err), OX_BAD_FILE);
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(hostile_try(read_bytes, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, &err),
                     OX_BAD_FILE);
    assert_non_null(strstr(err.msg, "a header of 18446744073709551615 bytes in a file of 10"));
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(ox_file_write_atomic(path, ox_str_of(text), NULL), OX_OK);
}

static void index_refused(const char *dir, const char *text, ox_status want, const char *message)
{
    ox_safetensors *s = NULL;
    ox_err err = OX_ERR_INIT;
    write_file(dir, "model.safetensors.index.json", text);
    const ox_status st = ox_safetensors_open(&s, dir, &err);
    if (st != want || !strstr(err.msg, message))
        fail_msg("%d \"%s\" lacks \"%s\"", st, err.msg, message);
}

static void refuses_an_index_that_lies(void **state)
{
    (void)state;
    char dir[128], path[256], link[256];
    snprintf(dir, sizeof(dir), "/tmp/oxgen_safetensors_%ld", (long)getpid());
    assert_int_equal(mkdir(dir, 0700), 0);
    ox_safetensors *s = NULL;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_safetensors_open(&s, dir, &err), OX_NOT_FOUND);
    assert_non_null(strstr(err.msg, "0 .safetensors files and no model.safetensors.index.json"));
    index_refused(dir, "{}", OX_BAD_FILE, "model.safetensors.index.json: ");
    index_refused(dir, "{\"weight_map\":{\"w\":3}}", OX_BAD_FILE, "not named by a string");
    index_refused(dir, "{\"weight_map\":{\"w\":\"../x.safetensors\"}}", OX_BAD_FILE,
                  "outside the model folder");
    index_refused(dir, "{\"weight_map\":{\"w\":\"/etc/passwd\"}}", OX_BAD_FILE,
                  "outside the model folder");
    index_refused(dir, "{\"weight_map\":{\"w\":\"none.safetensors\"}}", OX_NOT_FOUND, "none");
    snprintf(link, sizeof(link), "%s/link.safetensors", dir);
    assert_int_equal(symlink(FILES "one.safetensors", link), 0);
    index_refused(dir, "{\"weight_map\":{\"w\":\"link.safetensors\"}}", OX_BAD_FILE,
                  "outside the model folder");
    unlink(link);
    const char empty[] = "\x02\0\0\0\0\0\0\0{}";
    snprintf(path, sizeof(path), "%s/a.safetensors", dir);
    assert_int_equal(ox_file_write_atomic(path, (ox_str){empty, 10}, NULL), OX_OK);
    index_refused(dir, "{\"weight_map\":{\"w\":\"a.safetensors\"}}", OX_BAD_FILE,
                  "tensor w is not in a.safetensors, where the index puts it");
    unlink(path);
    snprintf(path, sizeof(path), "%s/model.safetensors.index.json", dir);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_one_file),
        cmocka_unit_test(reads_shards_by_their_index),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(refuses_headers_that_lie),
        cmocka_unit_test(a_type_it_does_not_know_is_refused_when_used),
        cmocka_unit_test(refuses_short_files_and_long_headers),
        cmocka_unit_test(refuses_an_index_that_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
