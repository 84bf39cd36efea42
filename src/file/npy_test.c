/* npy_test.c - arrays that NumPy wrote; files written here equal NumPy's
 * byte for byte; refusals. */
#include "file/npy.h"

#include "tests/hostile.h"

#include <stdio.h>
#include <unistd.h>

#define FILES OXGEN_SOURCE_DIR "/tests/data/files/"

static void read_file(const char *name, ox_buf *bytes, ox_tensor *t, ox_arena *arena)
{
    char path[512];
    ox_err err = OX_ERR_INIT;
    snprintf(path, sizeof(path), FILES "%s.npy", name);
    assert_int_equal(ox_file_read(bytes, path, 1 << 20, &err), OX_OK);
    if (ox_npy_parse(t, arena, ox_buf_view(bytes), &err)) fail_msg("%s: %s", name, err.msg);
}

static const char *const names[] = {"f4", "f2", "b1", "i8", "scalar", "u2", "c8", "empty", "v2"};

static void reads_what_numpy_wrote(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    ox_buf got = {0}, want = {0};
    for (size_t k = 0; k < OX_COUNT(names); k++) {
        ox_buf bytes = {0};
        ox_tensor t;
        size_t n = 0;
        read_file(names[k], &bytes, &t, &arena);
        ox_buf_printf(&got, "%s %d [", names[k], (int)t.dtype);
        for (int32_t i = 0; i < t.rank; i++)
            ox_buf_printf(&got, "%s%lld", i ? "," : "", (long long)t.dims[i]);
        assert_true(ox_tensor_bytes(&t, &n));
        ox_buf_put_z(&got, n ? "] " : "]");
        for (size_t i = 0; i < n; i++)
            ox_buf_printf(&got, "%02x", ((const uint8_t *)t.data)[i]);
        ox_buf_put_c(&got, '\n');
        ox_buf_deinit(&bytes);
    }
    assert_int_equal(ox_file_read(&want, FILES "npy.txt", 1 << 20, NULL), OX_OK);
    assert_string_equal(got.p, want.p);
    ox_buf_deinit(&got);
    ox_buf_deinit(&want);
    ox_arena_deinit(&arena);
}

static void writes_what_numpy_writes(void **state)
{
    (void)state;
    for (size_t k = 0; k + 1 < OX_COUNT(names); k++) { /* all but v2 */
        ox_arena arena = OX_ARENA_INIT;
        ox_buf bytes = {0}, again = {0};
        ox_tensor t;
        read_file(names[k], &bytes, &t, &arena);
        assert_int_equal(ox_npy_put(&again, &t, NULL), OX_OK);
        assert_int_equal(again.n, bytes.n);
        assert_memory_equal(again.p, bytes.p, bytes.n);
        ox_buf_deinit(&bytes);
        ox_buf_deinit(&again);
        ox_arena_deinit(&arena);
    }
}

static void keeps_bfloat16_through_a_file(void **state)
{
    (void)state;
    char path[128];
    uint16_t data[2] = {0x3fc0, 0xc000};
    const ox_tensor t = {OX_DTYPE_BF16, 1, {2}, data};
    ox_tensor back;
    ox_arena arena = OX_ARENA_INIT;
    ox_err err = OX_ERR_INIT;
    snprintf(path, sizeof(path), "/tmp/oxgen_npy_%ld.npy", (long)getpid());
    assert_int_equal(ox_npy_write(path, &t, &err), OX_OK);
    assert_int_equal(ox_npy_read(&back, &arena, path, 1 << 20, &err), OX_OK);
    assert_int_equal(back.dtype, OX_DTYPE_BF16);
    assert_memory_equal(back.data, data, 4);
    assert_int_equal(ox_npy_read(&back, &arena, path, 16, &err), OX_LIMIT);
    unlink(path);
    const ox_tensor nibbles = {OX_DTYPE_U4, 1, {2}, data};
    ox_buf b = {0};
    err = (ox_err)OX_ERR_INIT;
    assert_int_equal(ox_npy_put(&b, &nibbles, &err), OX_UNSUPPORTED);
    ox_arena_deinit(&arena);
}

static ox_status read_bytes(ox_str bytes, ox_err *err)
{
    ox_arena arena = OX_ARENA_INIT;
    ox_tensor t;
    size_t n = 0;
    volatile unsigned sum = 0;
    const ox_status st = ox_npy_parse(&t, &arena, bytes, err);
    if (!st && ox_tensor_bytes(&t, &n))
        for (size_t i = 0; i < n; i++)
            sum += ((const uint8_t *)t.data)[i];
    ox_arena_deinit(&arena);
    return st;
}

static void survives_damage(void **state)
{
    (void)state;
    hostile_bytes(read_bytes, FILES "f4.npy");
    hostile_bytes(read_bytes, FILES "v2.npy");
    hostile_memory(read_bytes, FILES "f4.npy");
}

static void refused(const char *header, ox_status want, const char *message)
{
    ox_buf b = {0};
    ox_err err = OX_ERR_INIT;
    ox_buf_put(&b, "\x93NUMPY\x01\x00", 8);
    ox_buf_put_c(&b, (char)strlen(header));
    ox_buf_put_c(&b, 0);
    ox_buf_put_z(&b, header);
    const ox_status st = hostile_try(read_bytes, b.p, b.n, &err);
    if (st != want || !strstr(err.msg, message))
        fail_msg("%d \"%s\" lacks \"%s\"", st, err.msg, message);
    ox_buf_deinit(&b);
}

static void refuses_headers_that_lie(void **state)
{
    (void)state;
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", OX_OK, "");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", OX_BAD_FILE,
            "0 bytes of data; its shape asks for 8");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", OX_BAD_FILE, "dimension 0");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
            OX_BAD_FILE, "dimension 0");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
            OX_BAD_FILE, "product overflows");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
            OX_UNSUPPORTED, "more than 8 dimensions");
    refused("{'descr': '<f4', 'shape': (0,", OX_BAD_FILE, "damaged .npy shape");
    refused("{'descr': '<f4'}", OX_BAD_FILE, "without shape");
    refused("{'shape': ()}", OX_BAD_FILE, "without descr");
    refused("{'descr': [('a', '<f4')], 'shape': ()}", OX_UNSUPPORTED, "records");
    refused("{'descr': '|O', 'shape': ()}", OX_UNSUPPORTED, "type '|O'");
    refused("{'descr': '', 'shape': ()}", OX_UNSUPPORTED, "type ''");
    refused("{'descr': '<f4", OX_UNSUPPORTED, "");
    refused("{'other': 1}", OX_BAD_FILE, "key 'other'");
    refused("", OX_BAD_FILE, "damaged .npy header");
}

static void refuses_orders_it_does_not_read(void **state)
{
    (void)state;
    ox_arena arena = OX_ARENA_INIT;
    ox_tensor t;
    const struct {
        const char *path, *message;
    } rows[] = {{FILES "fortran.npy", "Fortran-ordered"},
                {FILES "big.npy", "big-endian"},
                {FILES "text.npy", "type '<U2'"}};
    for (size_t i = 0; i < OX_COUNT(rows); i++) {
        ox_err err = OX_ERR_INIT;
        assert_int_equal(ox_npy_read(&t, &arena, rows[i].path, 1 << 20, &err), OX_UNSUPPORTED);
        if (!strstr(err.msg, rows[i].message)) fail_msg("%s", err.msg);
    }
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_npy_read(&t, &arena, FILES "nodes.onnx", 1 << 20, &err), OX_BAD_FILE);
    ox_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_numpy_wrote),
        cmocka_unit_test(writes_what_numpy_writes),
        cmocka_unit_test(keeps_bfloat16_through_a_file),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(refuses_headers_that_lie),
        cmocka_unit_test(refuses_orders_it_does_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
