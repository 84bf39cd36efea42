/* gguf_test.c - keys and tensors against what the gguf package reads in the same file; lies. */
#include "file/gguf.h"

#include "tests/hostile.h"

#include <stdio.h>

#define FILES OXGEN_SOURCE_DIR "/tests/data/files/"

static void put_item(ox_buf *b, const ox_gguf_value *v, size_t i)
{
    const double f = ox_gguf_item_f64(v, i);
    uint64_t u;
    switch (v->type) {
    case OX_GGUF_STRING: {
        const ox_str s = ox_gguf_item_str(v, i);
        for (size_t k = 0; k < s.n; k++)
            ox_buf_printf(b, "%02x", (unsigned char)s.p[k]);
        if (!s.n) ox_buf_put_c(b, '.');
        break;
    }
    case OX_GGUF_F32: {
        const float narrow = (float)f;
        uint32_t w;
        memcpy(&w, &narrow, 4);
        ox_buf_printf(b, "%08x", w);
        break;
    }
    case OX_GGUF_F64:
        memcpy(&u, &f, 8);
        ox_buf_printf(b, "%016llx", (unsigned long long)u);
        break;
    default:
        ox_buf_printf(b, "%lld", (long long)ox_gguf_item_i64(v, i));
    }
}

static void dump(ox_buf *b, const ox_gguf *g)
{
    for (size_t k = 0; k < g->n_values; k++) {
        const ox_gguf_value *v = &g->values[k];
        ox_buf_printf(b, "%.*s %d %d", OX_STR_ARGS(v->key), (int)v->type, v->is_array);
        for (size_t i = 0; i < v->n; i++) {
            ox_buf_put_c(b, ' ');
            put_item(b, v, i);
        }
        ox_buf_put_c(b, '\n');
    }
    for (size_t k = 0; k < g->n_tensors; k++) {
        const ox_gguf_tensor *t = &g->tensors[k];
        ox_buf_printf(b, "%.*s [", OX_STR_ARGS(t->name));
        for (int32_t i = 0; i < t->rank; i++)
            ox_buf_printf(b, "%s%lld", i ? "," : "", (long long)t->dims[i]);
        ox_buf_printf(b, "] %d ", (int)t->ggml_type);
        for (size_t i = 0; t->known && i < t->bytes; i++)
            ox_buf_printf(b, "%02x", ((const uint8_t *)t->data)[i]);
        ox_buf_put_z(b, t->known ? "\n" : "?\n");
    }
}

static void reads_what_the_reference_reads(void **state)
{
    (void)state;
    ox_gguf *g = NULL;
    ox_err err = OX_ERR_INIT;
    ox_buf got = {0}, want = {0};
    if (ox_gguf_open(&g, FILES "small.gguf", &err)) fail_msg("%s", err.msg);
    assert_int_equal(ox_file_read(&want, FILES "small.gguf.txt", 1 << 20, &err), OX_OK);
    dump(&got, g);
    assert_string_equal(got.p, want.p);
    ox_buf_deinit(&got);
    ox_buf_deinit(&want);
    ox_gguf_close(&g);
    assert_null(g);
}

static void looks_up_with_defaults(void **state)
{
    (void)state;
    ox_gguf *g = NULL;
    ox_err err = OX_ERR_INIT;
    const ox_gguf_tensor *t = NULL;
    assert_int_equal(ox_gguf_open(&g, FILES "small.gguf", &err), OX_OK);
    assert_int_equal(ox_gguf_u32(g, "a.u32", 1), 4000000000u);
    assert_int_equal(ox_gguf_u32(g, "a.i32", 1), 1); /* negative: out of range */
    assert_int_equal(ox_gguf_u32(g, "a.u64", 1), 1);
    assert_int_equal(ox_gguf_u32(g, "a.string", 9), 9);
    assert_int_equal(ox_gguf_i64(g, "a.ints", 9), 9); /* an array */
    assert_int_equal(ox_gguf_i64(g, "none", -3), -3);
    assert_true(ox_gguf_f32(g, "a.f32", 0) == 1.5f);
    assert_true(ox_gguf_f64(g, "a.i32", 0) == -7);
    assert_true(ox_gguf_bool(g, "a.bool", false));
    assert_true(ox_gguf_bool(g, "none", true));
    assert_true(ox_str_is(ox_gguf_str(g, "a.string"), "text \xc3\xa9"));
    assert_int_equal(ox_gguf_str(g, "a.u8").n, 0);
    assert_int_equal(ox_gguf_item_str(ox_gguf_find(g, "a.strings"), 3).n, 0);
    assert_int_equal(ox_gguf_item_i64(ox_gguf_find(g, "a.ints"), 3), 0);
    assert_null(ox_gguf_find(g, "none"));
    assert_int_equal(ox_gguf_tensor_need(g, "q4_0", &t, &err), OX_OK);
    assert_int_equal(t->format, OX_FORMAT_Q4_0);
    assert_int_equal(ox_gguf_tensor_need(g, "none", &t, &err), OX_BAD_FILE);
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_gguf_tensor_need(g, "odd", &t, &err), OX_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "tensor odd has type iq4_xs (number 23)"));
    ox_gguf_close(&g);
}

static ox_status read_bytes(ox_str bytes, ox_err *err)
{
    ox_gguf *g = NULL;
    const ox_status st = ox_gguf_parse(&g, bytes, err);
    unsigned sum = 0;
    for (size_t k = 0; g && k < g->n_tensors; k++)
        for (size_t i = 0; i < g->tensors[k].bytes; i++)
            sum += g->tensors[k].data ? ((const uint8_t *)g->tensors[k].data)[i] : 0u;
    assert_true(sum < UINT32_MAX);
    ox_gguf_close(&g);
    return st;
}

static void survives_damage(void **state)
{
    (void)state;
    hostile_bytes(read_bytes, FILES "small.gguf");
    hostile_memory(read_bytes, FILES "small.gguf");
}

/* --- files written by hand --- */

static void put_le(ox_buf *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ox_buf_put_c(b, (char)(v >> (8 * i) & 0xff));
}

static void put_str(ox_buf *b, const char *z)
{
    put_le(b, strlen(z), 8);
    ox_buf_put_z(b, z);
}

static void put_head(ox_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    ox_buf_clear(b);
    ox_buf_put_z(b, "GGUF");
    put_le(b, version, 4);
    put_le(b, n_tensors, 8);
    put_le(b, n_keys, 8);
}

static void put_tensor(ox_buf *b, const char *name, uint32_t rank, const uint64_t *dims,
                       uint32_t type, uint64_t offset)
{
    put_str(b, name);
    put_le(b, rank, 4);
    for (uint32_t i = 0; i < rank; i++)
        put_le(b, dims[i], 8);
    put_le(b, type, 4);
    put_le(b, offset, 8);
}

static void refused(ox_buf *b, ox_status want, const char *message)
{
    ox_err err = OX_ERR_INIT;
    const ox_status st = hostile_try(read_bytes, b->p, b->n, &err);
    if (st != want || !strstr(err.msg, message))
        fail_msg("%d \"%s\" lacks \"%s\"", st, err.msg, message);
    ox_buf_deinit(b);
}

static void pad(ox_buf *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ox_buf_put_c(b, 0);
}

static void refuses_wrong_headers(void **state)
{
    (void)state;
    ox_buf b = {0};
    ox_buf_put_z(&b, "GGML");
    refused(&b, OX_BAD_FILE, "does not begin with \"GGUF\"");
    refused(&b, OX_BAD_FILE, "does not begin with \"GGUF\""); /* empty */
    ox_buf_put_z(&b, "version https://git-lfs.github.com/spec/v1\n");
    refused(&b, OX_BAD_FILE, "Git LFS pointer");
    put_head(&b, 1, 0, 0);
    refused(&b, OX_UNSUPPORTED, "GGUF version 1; expected 2 or 3");
    put_head(&b, 0x03000000, 0, 0);
    refused(&b, OX_UNSUPPORTED, "big-endian");
    put_head(&b, 3, UINT64_MAX, 0);
    refused(&b, OX_LIMIT, "18446744073709551615 tensors; at most");
    put_head(&b, 3, 0, UINT64_MAX);
    refused(&b, OX_LIMIT, "keys; at most");
    put_head(&b, 3, 100, 0);
    refused(&b, OX_BAD_FILE, "the list of keys and tensors runs past the end");
    put_head(&b, 3, 0, 0);
    assert_int_equal(hostile_try(read_bytes, b.p, b.n, NULL), OX_OK);
    ox_buf_deinit(&b);
}

static void refuses_keys_that_lie(void **state)
{
    (void)state;
    ox_buf b = {0};
    put_head(&b, 3, 0, 1);
    put_le(&b, UINT64_MAX, 8);
    pad(&b, 64);
    refused(&b, OX_BAD_FILE, "a key runs past the end");
    put_head(&b, 3, 0, 1);
    put_str(&b, "k");
    put_le(&b, 13, 4);
    pad(&b, 64);
    refused(&b, OX_BAD_FILE, "key k: value type 13");
    put_head(&b, 3, 0, 1);
    put_str(&b, "k");
    put_le(&b, OX_GGUF_ARRAY, 4);
    put_le(&b, OX_GGUF_STRING, 4);
    put_le(&b, 1ull << 61, 8);
    pad(&b, 64);
    refused(&b, OX_BAD_FILE, "key k: an array of strings runs past the end");
    put_head(&b, 3, 0, 1);
    put_str(&b, "k");
    put_le(&b, OX_GGUF_ARRAY, 4);
    put_le(&b, OX_GGUF_U64, 4);
    put_le(&b, 1ull << 61, 8); /* times 8 overflows */
    pad(&b, 64);
    refused(&b, OX_BAD_FILE, "key k: an array runs past the end");
    put_head(&b, 3, 0, 1);
    put_str(&b, "k");
    put_le(&b, OX_GGUF_ARRAY, 4);
    put_le(&b, OX_GGUF_ARRAY, 4);
    pad(&b, 64);
    refused(&b, OX_UNSUPPORTED, "key k: an array of arrays");
    put_head(&b, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        put_str(&b, "twice");
        put_le(&b, OX_GGUF_U8, 4);
        put_le(&b, 1, 1);
    }
    refused(&b, OX_BAD_FILE, "the key twice occurs twice");
    put_head(&b, 3, 0, 1);
    put_str(&b, "split.count");
    put_le(&b, OX_GGUF_U16, 4);
    put_le(&b, 2, 2);
    refused(&b, OX_UNSUPPORTED, "one of 2 parts of a split model");
    put_head(&b, 3, 0, 1);
    put_str(&b, "general.alignment");
    put_le(&b, OX_GGUF_U32, 4);
    put_le(&b, 24, 4);
    refused(&b, OX_BAD_FILE, "general.alignment is 24");
}

static void one_tensor(ox_buf *b, uint32_t rank, const uint64_t *dims, uint32_t type,
                       uint64_t offset, size_t data)
{
    put_head(b, 3, 1, 0);
    put_tensor(b, "w", rank, dims, type, offset);
    pad(b, (32 - b->n % 32) % 32 + data);
}

static void refuses_tensors_that_lie(void **state)
{
    (void)state;
    ox_buf b = {0};
    one_tensor(&b, 0, NULL, 0, 0, 0);
    refused(&b, OX_BAD_FILE, "tensor w: 0 dimensions; expected 1 to 4");
    one_tensor(&b, 5, (uint64_t[]){1, 1, 1, 1, 1}, 0, 0, 64);
    refused(&b, OX_BAD_FILE, "tensor w: 5 dimensions");
    one_tensor(&b, 1, (uint64_t[]){1ull << 63}, 0, 0, 64);
    refused(&b, OX_BAD_FILE, "dimension 0 is 9223372036854775808; expected less than 2^63");
    one_tensor(&b, 3, (uint64_t[]){1ull << 32, 1ull << 32, 2}, 0, 0, 64);
    refused(&b, OX_BAD_FILE, "the product of its dimensions overflows");
    one_tensor(&b, 1, (uint64_t[]){1ull << 62}, 0, 0, 64);
    refused(&b, OX_BAD_FILE, "the product of its dimensions overflows");
    one_tensor(&b, 1, (uint64_t[]){16}, 2, 0, 64);
    refused(&b, OX_BAD_FILE, "rows of 16 elements; q4_0 needs a multiple of 32");
    one_tensor(&b, 1, (uint64_t[]){16}, 0, 0, 63);
    refused(&b, OX_BAD_FILE, "tensor w: 64 bytes at offset 0 run past the end of the file");
    one_tensor(&b, 1, (uint64_t[]){16}, 0, 16, 128);
    refused(&b, OX_BAD_FILE, "tensor w: offset 16 is not a multiple of 32");
    one_tensor(&b, 1, (uint64_t[]){16}, 0, UINT64_MAX - 31, 128);
    refused(&b, OX_BAD_FILE, "run past the end");
    one_tensor(&b, 1, (uint64_t[]){16}, UINT32_MAX, 0, 128);
    refused(&b, OX_BAD_FILE, "tensor type 4294967295");
    put_head(&b, 3, 2, 0);
    for (int i = 0; i < 2; i++)
        put_tensor(&b, "w", 1, (uint64_t[]){0}, 0, 0);
    refused(&b, OX_BAD_FILE, "two tensors are called w");
    put_head(&b, 3, 1, 0);
    put_tensor(&b, "", 1, (uint64_t[]){0}, 0, 0);
    pad(&b, 8);
    refused(&b, OX_BAD_FILE, "a tensor's name of 0 bytes");
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    ox_gguf *g = NULL;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_gguf_open(&g, FILES "none.gguf", &err), OX_NOT_FOUND);
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_gguf_open(&g, FILES "nodes.onnx", &err), OX_BAD_FILE);
    assert_string_equal(err.msg, "nodes.onnx: not a GGUF file: it does not begin with \"GGUF\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_reference_reads),
        cmocka_unit_test(looks_up_with_defaults),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(refuses_wrong_headers),
        cmocka_unit_test(refuses_keys_that_lie),
        cmocka_unit_test(refuses_tensors_that_lie),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
